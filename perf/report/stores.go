package report

import "fmt"

// storeVerdict tells what limits in a store cost the gateway over limits in its
// own memory: at the highest rate at which both stood, for each store with
// leases.
func (s *Scenario) storeVerdict() []string {
	var memory, shared []row[Point]
	for _, r := range group(s.Points, pointName, func(p *Point) string { return p.Excluded }) {
		if len(r.rounds) == 0 || r.rounds[0].Store == nil || r.rounds[0].System != own {
			continue
		}
		if r.values(func(p *Point) float64 { return p.ErrorShare }).Median > ErrorShareMax {
			continue
		}
		switch u := r.rounds[0].Store; {
		case u.Program == StoreMemory:
			memory = append(memory, r)
		case u.Leases:
			shared = append(shared, r)
		}
	}
	best := make(map[string][2]row[Point]) // by program: in memory, and in the store
	var order []string
	for _, r := range shared {
		for _, m := range memory {
			program, at := r.rounds[0].Store.Program, r.rounds[0].Offered
			if m.rounds[0].Offered != at {
				continue
			}
			had, known := best[program]
			if !known {
				order = append(order, program)
			}
			if !known || had[1].rounds[0].Offered < at {
				best[program] = [2]row[Point]{m, r}
			}
		}
	}
	var lines []string
	for _, program := range order {
		lines = append(lines, storeLine(program, best[program]))
	}
	return lines
}

func storeLine(program string, pair [2]row[Point]) string {
	memory, shared := &pair[0], &pair[1]
	cpu := func(p *Point) float64 { return p.CPUPerRequestUs }
	mine, theirs := memory.values(cpu).Median, shared.values(cpu).Median
	line := fmt.Sprintf("At %s requests/s with leases Relay took %s µs of CPU per request with limits in %s and %s µs with limits in memory",
		human(shared.rounds[0].Offered), human(theirs), program, human(mine))
	if mine > 0 {
		word := "within"
		if theirs > StoreRatioMax*mine {
			word = "NOT within"
		}
		line += fmt.Sprintf(" (%.2f×, %s the %.2f× that it may)", theirs/mine, word, StoreRatioMax)
	}
	return line + fmt.Sprintf("; the store took %s µs and %s EVALSHA per request.",
		human(shared.values(func(p *Point) float64 { return p.Store.CPUPerRequestUs }).Median),
		human(shared.values(func(p *Point) float64 { return p.Store.EvalsPerReq }).Median))
}
