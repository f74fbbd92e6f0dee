package mockhost

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A scenario is how one request is answered: how fast, with which counts, and
// what goes wrong.
type scenario struct {
	pace
	counts
	trouble
	stamp bool // every content event carries the time it was sent, as mock_us
	times int  // the trouble strikes so many requests of equal scenario text; 0 = all
	flap  bool // and then spares as many, and so on
	menu  int  // percent of the requests that get a fault of the menu
}

// counts set usage exactly; -1 leaves the mock's own count.
type counts struct {
	in, out, cached, write, write1h, reasoning int64
	calls                                      int // tool calls of an answer that calls a tool
	noUsage                                    bool
	usageInFinish                              bool
	usageRunning                               bool
	thinking                                   bool
}

// trouble is what goes wrong. Its zero value is a sound answer.
type trouble struct {
	transport  transportFault
	head       headFault
	status     int
	retryAfter string
	code       refusalCode
	html       bool

	jsonBroken, jsonOnStream, emptyBody             bool
	closeDelimited, connectionClose, gzip           bool
	crlf, cr, noSpace, comments, bom, noDone, drip  bool
	chunkExtension, trailers                        bool
	early, prefillRefused                           bool
	interim                                         int // 1xx heads before the answer
	pause                                           time.Duration
	split                                           int // -1 = off: the write is cut at this offset of the stream's body
	cut, cutReset, stall, malformed, errorFrame     int // -1 = off: after so many content events
	idleClose, idleReset, idleTimeoutNote, idleJunk time.Duration
}

// A transportFault ends the exchange before any answer.
type transportFault uint8

const (
	noTransportFault transportFault = iota
	reset                           // RST
	hangUp                          // FIN
	silent                          // nothing until the peer leaves
)

// A refusalCode is a 400 with a meaning.
type refusalCode uint8

const (
	plainRefusal refusalCode = iota
	contextLength
	contentFilter
)

// A knob is one word of a scenario.
type knob struct {
	name, value, doc string
	set              func(*scenario, string) error
}

// Knobs lists the words of a scenario, one per line: the word, the form of its
// value, and what it does.
func Knobs() []string {
	lines := make([]string, len(knobs))
	for i, k := range knobs {
		word := k.name
		if k.value != "" {
			word += "=" + k.value
		}
		lines[i] = fmt.Sprintf("%-22s %s", word, k.doc)
	}
	return lines
}

func newScenario() scenario {
	return scenario{
		counts:  counts{in: -1, out: -1, cached: -1, write: -1, write1h: -1, reasoning: -1, calls: 1},
		trouble: noTrouble,
		pace:    paces["fast"],
	}
}

var noTrouble = trouble{split: -1, cut: -1, cutReset: -1, stall: -1, malformed: -1, errorFrame: -1,
	idleClose: -1, idleReset: -1, idleTimeoutNote: -1, idleJunk: -1}

// parseScenario reads words separated by ',' or ':', each "name" or
// "name=value". Later words win.
func parseScenario(text string) (scenario, error) {
	s := newScenario()
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ':' }) {
		name, value, _ := strings.Cut(word, "=")
		set := knobIndex[name]
		if set == nil {
			return s, fmt.Errorf("mock: no scenario word %q", name)
		}
		if err := set(&s, value); err != nil {
			return s, fmt.Errorf("mock: scenario word %q: %w", word, err)
		}
	}
	if s.times > 0 && s.trouble == noTrouble {
		return s, fmt.Errorf("mock: scenario %q: times without anything that goes wrong", text)
	}
	return s, nil
}

var knobIndex = func() map[string]func(*scenario, string) error {
	index := make(map[string]func(*scenario, string) error)
	for _, k := range knobs {
		index[k.name] = k.set
	}
	return index
}()

func flag(at func(*scenario) *bool) func(*scenario, string) error {
	return func(s *scenario, v string) error {
		if v != "" {
			return fmt.Errorf("takes no value")
		}
		*at(s) = true
		return nil
	}
}

func number[T int | int64](at func(*scenario) *T, low, high int64) func(*scenario, string) error {
	return func(s *scenario, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < low || n > high {
			return fmt.Errorf("want a number from %d to %d", low, high)
		}
		*at(s) = T(n)
		return nil
	}
}

func duration(at func(*scenario) *time.Duration, low, high time.Duration) func(*scenario, string) error {
	return func(s *scenario, v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d < low || d > high {
			return fmt.Errorf("want a duration from %v to %v", low, high)
		}
		*at(s) = d
		return nil
	}
}

// optional is a number that may be left out for 0.
func optional(at func(*scenario) *int) func(*scenario, string) error {
	set := number(at, 0, eventsMax)
	return func(s *scenario, v string) error {
		if v == "" {
			v = "0"
		}
		return set(s, v)
	}
}
