package ladder

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"relay/perf/report"
)

// A scenario is one named ladder.
type scenario struct {
	number      int
	name        string
	asks        string
	completedBy string // what Relay does not have yet and the whole answer needs
	climbs      bool   // knee and capacity are told
	remote      bool   // it may be run against a gateway that runs already
	run         func(context.Context, *bench, *report.Scenario) error
}

// scenarios are in the order of their numbers. It is a function because the
// profiles refer to the table, too.
func scenarios() []scenario {
	return []scenario{
		{0, "overview", "What do a request and an open stream cost in each system?", "", false, false, overview},
		{1, "one-relay", "Where are knee and capacity of one relay, on one core and on all?", "", true, true, oneRelay},
		{2, "goroutine-baseline", "Where are those of gateways that do the same work with a goroutine for each connection?", "", true, false, goroutineBaseline},
		{3, "plain-proxies", "What is the floor: proxies without keys, limits and accounts?", "", true, false, plainProxies},
		{4, "four-relays", "Do four relays behind a balancer carry what four relays can?", "limits in a shared store (here each relay counts for itself)", true, false, fourRelays},
		{5, "stores", "What does a request cost the store that counts its limits, and what does the store cost it?", "", false, false, stores},
		{6, "upstream-idle", "What do too few idle connections to the provider cost?", "", true, false, upstreamIdle},
		{7, "open-streams", "What does an open stream cost, and how much later do its events come?", "", false, false, openStreams},
		{8, "caps-and-gc", "Does the cap of requests in flight bind where it should, and what does the collector cost?", "", false, false, capsAndGC},
		{9, "past-capacity", "Is the peak kept at 1.5 and 2 times the capacity, are refusals fast, and is all well afterwards?", "", false, false, pastCapacity},
		{10, "slow-soak", "Do thousands in flight pass without one failure, and with exact accounts?", "the ledger (here the rows of the spool are counted)", false, false, slowSoak},
		{11, "mischief", "Do slow readers, callers who leave, and faults of the provider harm others, or leak?", "", false, false, mischief},
		{12, "growth", "Does the cost of a request stay flat while keys, policies, connections and bodies grow?", "", false, false, growth},
		{13, "translation", "What does it cost to answer in another shape than that of the provider?", "translation between shapes", false, false, nil},
	}
}

func scenarioNames() []string {
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	return names
}

// Scenarios are number, name and question of each, a line each.
func Scenarios() string {
	var b strings.Builder
	for _, s := range scenarios() {
		fmt.Fprintf(&b, "%2d  %-18s  %s", s.number, s.name, s.asks)
		if s.completedBy != "" {
			fmt.Fprintf(&b, " Not whole without %s.", s.completedBy)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// findScenario finds one by name or number.
func findScenario(text string) (scenario, error) {
	number, err := strconv.Atoi(text)
	for _, s := range scenarios() {
		if s.name == text || err == nil && s.number == number {
			return s, nil
		}
	}
	return scenario{}, fmt.Errorf("ladder: no scenario %q; there are\n%s", text, Scenarios())
}
