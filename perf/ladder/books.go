package ladder

import (
	"fmt"
	"os"
	"slices"

	"relay/perf/money"
	"relay/perf/openloop"
	"relay/perf/report"
	"relay/perf/target"
)

// A ledger holds what generators saw of one system against what it has kept.
type ledger struct {
	gateways []*target.Target
	shelves  []*shelf
	seen     money.Seen
}

// openLedger begins to keep the records of those gateways that have any.
func openLedger(gateways ...*target.Target) (*ledger, error) {
	l := &ledger{seen: money.Seen{ByStatus: make(map[int]int64)}}
	for _, g := range gateways {
		if g.DataDir == "" {
			continue
		}
		s, err := newShelf(g.DataDir)
		if err != nil {
			l.close()
			return nil, err
		}
		l.gateways, l.shelves = append(l.gateways, g), append(l.shelves, s)
	}
	return l, nil
}

// add takes note of what a generator saw.
func (l *ledger) add(r *openloop.Result) {
	for status, n := range r.ByStatusAll {
		l.seen.ByStatus[status] += n
	}
	l.seen.Lost += r.LostAll
}

// check ends the gateways and compares; nil = there are no accounts.
func (l *ledger) check() (*report.Money, error) {
	if len(l.gateways) == 0 {
		return nil, nil
	}
	all := money.Count{ByStatus: make(map[int]int64), ByAccount: make(map[string]int64), CostByAccount: make(map[string]int64)}
	for i, g := range l.gateways {
		g.Stop()
		folder, err := l.shelves[i].close()
		if err != nil {
			return nil, err
		}
		c, err := money.Read(folder)
		if err != nil {
			return nil, err
		}
		add(&all, c)
	}
	return &report.Money{
		Answered: l.seen.ByStatus[200], Lost: l.seen.Lost, Rows: all.ByStatus[200], Problem: money.Check(all, l.seen),
	}, nil
}

// close forgets the records.
func (l *ledger) close() {
	for _, s := range l.shelves {
		s.remove()
	}
}

// add adds the books of one of several gateways.
func add(all *money.Count, c money.Count) {
	all.Rows += c.Rows
	all.Cost += c.Cost
	all.Duplicates += c.Duplicates
	all.Unended += c.Unended
	all.Interrupted += c.Interrupted
	all.Mispriced += c.Mispriced
	all.Unsealed += c.Unsealed
	for status, n := range c.ByStatus {
		all.ByStatus[status] += n
	}
	for account, n := range c.ByAccount {
		all.ByAccount[account] += n
	}
	for account, n := range c.CostByAccount {
		all.CostByAccount[account] += n
	}
}

// dataFolder gives the gateway of a setup a folder that outlives it, for
// measurements that stop it themselves.
func dataFolder(setup *target.Setup) (folder string, remove func(), err error) {
	folder, err = os.MkdirTemp("", "relay-perf-books-")
	if err != nil {
		return "", nil, fmt.Errorf("ladder: data folder: %w", err)
	}
	setup.RelayEnv = append(slices.Clone(setup.RelayEnv), "RELAY_DATA_DIR="+folder)
	return folder, func() { os.RemoveAll(folder) }, nil
}

// keepsAccounts says whether a system has a row for each request.
func keepsAccounts(system string) bool { return slices.Contains(gateways(), system) }
