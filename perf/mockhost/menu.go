package mockhost

import (
	"encoding/json"
	"strings"
)

// faultMenu is what the word fault deals, in turn.
var faultMenu = []string{
	"status=429,retry-after=1", "status=429", "status=500", "status=503", "reset", "cut=3", "cut-rst=3", "malformed=3",
	"nodone", "error-frame=3", "context-length", "content-filter", "gzip", "crlf",
}

var faultMenuText = strings.Join(faultMenu, " ")

// deal gives a request a fault of the menu when it is its turn: so many of a
// hundred of equal scenario, evenly spread. The others are sound.
func (s *Server) deal(text string, sc *scenario) *scenario {
	s.mu.Lock()
	if len(s.struck) >= scenariosMax {
		clear(s.struck)
	}
	s.struck[text]++
	n := s.struck[text]
	turn := n * sc.menu / 100
	struck := turn > (n-1)*sc.menu/100
	name := faultMenu[(turn+len(faultMenu)-1)%len(faultMenu)]
	if struck {
		s.dealt[name]++
	}
	s.mu.Unlock()
	if !struck {
		return sc
	}
	fault, err := parseScenario(name)
	if err != nil {
		panic("BUG: the menu of faults: " + err.Error())
	}
	fault.pace, fault.counts = sc.pace, sc.counts
	return &fault
}

// isPrefill reports whether the last message of a conversation is the
// assistant's.
func isPrefill(prompt []byte) bool {
	var turns []turn
	return json.Unmarshal(prompt, &turns) == nil && len(turns) > 0 && turns[len(turns)-1].Role == "assistant"
}
