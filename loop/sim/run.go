package sim

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"relay/loop"
	"relay/store/catalog"
	"relay/store/state"
)

// clientsMax is how many clients come in a run.
const clientsMax = 24

// stepsMax bounds a run; a run that needs more hangs.
const stepsMax = 2_000_000

// Run is one run of a seed over a catalog with a relay key rk-sim and models
// gpt-mock and claude-mock. The error tells every promise that was broken.
func Run(seed uint64, tables *catalog.Tables) error {
	w := NewWorld(seed, tables)
	for range 1 + w.rng.IntN(clientsMax) {
		w.after(int64(w.rng.IntN(int(4*time.Second))), func() { w.newClient() })
	}
	end := w.nowNs + int64(60*time.Second)
	w.runUntil(end)
	for _, c := range w.clients {
		c.leave()
	}
	w.quiet = true
	w.runUntil(end + int64(200*time.Second))
	w.checkEnd(tables)
	if len(w.problems) > 0 {
		return errors.New(fmt.Sprintf("seed %d (%d panics injected):\n", seed, w.panics) + strings.Join(w.problems, "\n"))
	}
	return nil
}

func (w *World) runUntil(ns int64) {
	for i := 0; len(w.queue) > 0 && w.queue[0].atNs <= ns; i++ {
		if i > stepsMax {
			w.fault("the run does not end")
			return
		}
		w.step()
	}
	w.nowNs = ns
}

// checkEnd looks for anything left behind.
func (w *World) checkEnd(tables *catalog.Tables) {
	var m loop.Metrics
	w.callback(nil, func() {
		(&loop.Scrape{Reply: func(s *loop.Scrape) { m = s.Metrics }}).Deliver(w.loop)
	})
	left := func(what string, n int64) {
		if n != 0 {
			w.fault("left behind: %d %s", n, what)
		}
	}
	left("clients", m.Clients)
	left("exchanges", m.Exchanges)
	left("streams", m.Streams)
	left("upstream connections", m.Upstreams)
	left("idle upstream connections", m.IdleUpstreams)
	left("bytes of the budget", m.BudgetUsed)
	left("timers", m.Timers)
	left("leases", m.Leases)
	inflight, _ := w.cap.Load()
	left("slots of the in-flight cap", inflight)
	for _, s := range w.sockets {
		if s.open {
			w.fault("a socket was left open")
			break
		}
	}
	if m.Events != uint64(w.spool.total) {
		w.fault("%d events counted, %d rows", m.Events, w.spool.total)
	}
	if m.Panics != uint64(w.panics) {
		w.fault("%d panics counted of %d", m.Panics, w.panics)
	}
	w.checkSlots(tables)
}

// checkSlots takes every concurrency slot of every group: one that was not
// given back shows as a denial.
func (w *World) checkSlots(tables *catalog.Tables) {
	for _, p := range tables.Policies {
		for _, rule := range p.Group.Limits {
			if rule.Meter != catalog.Concurrency {
				continue
			}
			o := &state.Op{Group: &p.Group}
			for k := range p.Group.Limits {
				o.Want[k], o.Need[k] = rule.Amount, rule.Amount
			}
			w.nowNs += int64(time.Hour) // refill what is counted by time
			w.store.Apply(w.wallNs(), []*state.Op{o})
			if o.RetryNs != [state.RulesMax]int64{} {
				w.fault("a concurrency slot of %s was not given back", p.Group.Name)
				return
			}
		}
	}
}
