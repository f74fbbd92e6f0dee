package redis

import (
	"encoding/binary"
	"errors"
	"math"

	"relay/store/catalog"
	"relay/store/state"
)

// What the script says of an Op.
const (
	codeWhole  = 0 // it has what it wants
	codeLent   = 1 // and all that it could be lent
	codeSome   = 2 // and some of it: doubles
	codePart   = 3 // it has a part of what it wants: doubles
	codeDenied = 4 // what the first request needs is not there: mask of rules
	codeEach   = 9 // of a sum: the Ops follow one by one
)

var errReply = errors.New("redis: the reply of the script is cut or of an unknown form")

// A reader takes a reply apart.
type reader struct {
	text string
	bad  bool
}

func (r *reader) code() byte {
	if len(r.text) == 0 {
		r.bad = true
		return codeWhole
	}
	c := r.text[0]
	r.text = r.text[1:]
	return c
}

func (r *reader) skip(n int) {
	if len(r.text) < n {
		r.bad = true
		return
	}
	r.text = r.text[n:]
}

func (r *reader) float() float64 {
	if len(r.text) < 8 {
		r.bad = true
		return 0
	}
	var word [8]byte
	copy(word[:], r.text)
	r.text = r.text[8:]
	return math.Float64frombits(binary.LittleEndian.Uint64(word[:]))
}

func (r *reader) int() int64 { return int64(r.float()) }

// answer fills in the answers of all Ops of the call. On an error some are.
func (c *call) answer(text string, loops int64) error {
	r := reader{text: text}
	if r.float() != c.seq {
		return errReply
	}
	at := 0
	for i := range c.runs {
		group, ops := c.runs[i].group, c.ops[at:at+c.runs[i].count]
		at += len(ops)
		code := r.code()
		for _, o := range ops {
			o.Begin()
			if code == codeEach {
				r.grant(o, r.code())
			} else {
				r.grant(o, code)
			}
		}
		var v view
		v.read(&r, group)
		if r.bad {
			return errReply
		}
		for _, o := range ops {
			v.tell(o, loops)
		}
	}
	if len(r.text) > 0 {
		return errReply
	}
	return nil
}

// grant notes what an Op has got. Rules that denied it wait for something.
func (r *reader) grant(o *state.Op, code byte) {
	switch code {
	case codeWhole, codeLent, codeSome:
		o.Got = o.Want
		if code == codeLent {
			o.Extra = lendable(o)
		}
		for k := range o.Group.Limits {
			if code == codeSome {
				o.Extra[k] = r.int()
			}
		}
	case codePart:
		for k := range o.Group.Limits {
			o.Got[k] = r.int()
		}
	case codeDenied:
		mask := r.int()
		for k := range o.Group.Limits {
			if mask>>k&1 == 1 {
				o.RetryNs[k] = 1
			}
		}
	default:
		r.bad = true
	}
}

// lent is how many slots an answer brought.
func lent(o *state.Op) int64 {
	n, limited := int64(math.MaxInt64), false
	for k := range o.Group.Limits {
		if o.Group.Limits[k].Meter == catalog.Concurrency {
			n, limited = min(n, o.Got[k]+o.Extra[k]), true
		}
	}
	if !limited {
		return 0
	}
	return n
}

// A view is the state of a group as of an answer, in the units of the store.
type view struct {
	nowUs int64
	slots int64
	rules [state.RulesMax][5]float64
}

// read takes the head of a record.
func (v *view) read(r *reader, g *catalog.Group) {
	r.skip(24)
	v.nowUs = r.int()
	r.skip(8)
	v.slots = r.int()
	r.skip(8)
	for k := range g.Limits {
		for i := range classes[classOf(&g.Limits[k])] {
			v.rules[k][i] = r.float()
		}
	}
}

// tell says in an answer what is left and how long it takes.
func (v *view) tell(o *state.Op, loops int64) {
	o.NowNs = v.nowUs * 1e3
	keep, limited := int64(math.MaxInt64), false
	for k := range o.Group.Limits {
		l := &o.Group.Limits[k]
		o.Left[k] = v.left(k, l)
		o.RestNs[k] = v.restUs(k, l) * 1e3
		if o.RetryNs[k] != 0 {
			o.RetryNs[k] = v.retryNs(k, l, o.Need[k])
		}
		if l.Meter == catalog.Concurrency {
			keep, limited = min(keep, state.Share(l.Amount, l.Amount, l.Amount-v.slots, loops)), true
		}
	}
	if limited {
		o.Keep = keep
	}
}

// left is how many units of a rule there are.
func (v *view) left(k int, l *catalog.Limit) int64 {
	s, window := &v.rules[k], float64(usOf(l.Window))
	switch classOf(l) {
	case slots:
		return max(0, l.Amount-v.slots)
	case bucket:
		return max(0, l.Amount-int64(math.Ceil(s[0]/window)))
	case sliding:
		overlap := 0.0
		if s[1] > 0 {
			overlap = min(s[1], math.Ceil(s[1]*(v.endUs(window)-float64(v.nowUs))/window))
		}
		return max(0, l.Amount-int64(s[0])-int64(overlap))
	case calendar:
		if float64(v.nowUs) >= s[2] {
			return 0
		}
	}
	return max(0, l.Amount-int64(s[0]))
}

// endUs is the end of the window of the grid that is now.
func (v *view) endUs(window float64) float64 {
	return (math.Floor(float64(v.nowUs)/window) + 1) * window
}

// restUs is how long until a rule says the same as no rule.
func (v *view) restUs(k int, l *catalog.Limit) int64 {
	s, window, now := &v.rules[k], float64(usOf(l.Window)), float64(v.nowUs)
	rest := 0.0
	switch c := classOf(l); {
	case c == bucket:
		rest = math.Ceil(s[0] / float64(l.Amount))
		if s[1]+s[2] > 0 {
			const lease = state.LeaseNs / 1e3
			rest = max(rest, float64((v.nowUs/lease+2)*lease-v.nowUs))
		}
	case c == session && s[1] > 0:
		rest = s[1] + window - now
	case c == calendar && s[0] > 0:
		rest = s[2] - now
	case c == sliding && s[0] > 0:
		rest = v.endUs(window) + window - now
	case c == sliding && s[1] > 0, c == fixed && s[0] > 0:
		rest = v.endUs(window) - now
	}
	return int64(min(max(rest, 0), waitMaxUs))
}

// waitMaxUs is the longest wait that is told.
const waitMaxUs = float64(state.WaitMaxNs / 1000)

// retryNs is how long until n units fit in a rule that has refused them, at
// least one step of the clock.
func (v *view) retryNs(k int, l *catalog.Limit, n int64) int64 {
	s, window, now, need := &v.rules[k], float64(usOf(l.Window)), float64(v.nowUs), float64(n)
	if n > l.Amount {
		return state.NeverNs
	}
	wait := 0.0
	switch classOf(l) {
	case slots:
		return state.ConcurrencyRetryNs
	case bucket:
		wait = math.Ceil((s[0] + (need-float64(l.Amount))*window) / float64(l.Amount))
	case fixed:
		wait = v.endUs(window) - now
	case sliding:
		wait = v.slideUs(s, float64(l.Amount), window, need)
	case session:
		wait = s[1] + window - now
	case calendar:
		wait = s[2] - now
	}
	return int64(min(max(wait, 1), waitMaxUs)) * 1e3
}

// slideUs is how long until need fits in a sliding window: within this window
// as the one before slides out, or in the next as this one does.
func (v *view) slideUs(s *[5]float64, amount, window, need float64) float64 {
	end, now := v.endUs(window), float64(v.nowUs)
	if free := amount - need - s[0]; free >= 0 {
		if s[1] == 0 {
			return 0
		}
		return end - math.Floor(free*window/s[1]) - now
	}
	return end + window - min(math.Floor((amount-need)*window/s[0]), window) - now
}
