package redis

import (
	"relay/store/catalog"
	"relay/store/state"
)

// An account is what a lane knows of a group between batches: the slots that
// the loops of this process have, and what the store has still to be told.
type account struct {
	held  int64     // slots, the sum of Lent over the Ops of the group
	owed  *state.Op // charges and returns that no Op carries any more; nil = none
	queue bool      // its slots and debts are told with one of the next batches
}

// ledger are the accounts of a lane by group. Groups without slots and debts
// have none.
type ledger struct {
	accounts map[uint64]*account
	owing    []*catalog.Group // with debts, first come first served
	free     []*account
}

func newLedger() ledger { return ledger{accounts: make(map[uint64]*account)} }

// of is the account of a group; it is made when there is none.
func (t *ledger) of(id uint64) *account {
	a := t.accounts[id]
	if a == nil {
		if n := len(t.free); n > 0 {
			a, t.free = t.free[n-1], t.free[:n-1]
		} else {
			a = new(account)
		}
		t.accounts[id] = a
	}
	return a
}

// held is how many slots of a group this process has.
func (t *ledger) held(id uint64) int64 {
	if len(t.accounts) == 0 {
		return 0
	}
	if a := t.accounts[id]; a != nil {
		return a.held
	}
	return 0
}

// hold adds slots to those of a group.
func (t *ledger) hold(id uint64, n int64) {
	if n == 0 {
		return
	}
	a := t.of(id)
	if a.held += n; a.held < 0 {
		panic("BUG: a slot comes back that this process has not been lent")
	}
	t.settled(id, a)
}

// settled drops an account that says nothing.
func (t *ledger) settled(id uint64, a *account) {
	if a.held == 0 && a.owed == nil && !a.queue {
		*a = account{}
		delete(t.accounts, id)
		t.free = append(t.free, a)
	}
}

// enqueue has the debts of a group told with one of the next batches. It
// reports false when there is no room.
func (t *ledger) enqueue(g *catalog.Group) (*account, bool) {
	a := t.accounts[g.ID]
	if (a == nil || !a.queue) && len(t.owing) >= accountsMax {
		return nil, false
	}
	if a = t.of(g.ID); !a.queue {
		a.queue = true
		t.owing = append(t.owing, g)
	}
	return a, true
}

// keep takes over what an Op that was never sent had to say. It reports false
// when that is forgotten.
func (t *ledger) keep(o *state.Op) bool {
	t.hold(o.Group.ID, o.Slots-o.Lent())
	changed := o.Slots != o.Lent()
	o.SetLent(o.Slots)
	for k := range o.Group.Limits {
		changed = changed || o.Charge[k] > 0 || o.Return[k].Units > 0
	}
	if !changed && (o.Want != [state.RulesMax]int64{} || o.More != [state.RulesMax]int64{}) {
		return true
	}
	a, ok := t.enqueue(o.Group) // also for one that was there to tell of slots, as those of debts may be
	if !ok {
		return !changed
	}
	for k := range o.Group.Limits {
		if o.Charge[k] > 0 || o.Return[k].Units > 0 {
			a.owe(o.Group, k, o.Charge[k], o.Return[k], o.Bounds[k])
		}
	}
	return true
}

// giveBack takes over what the store granted an Op that was answered Lost. It
// reports false when that is forgotten.
func (t *ledger) giveBack(o *state.Op) bool {
	a, ok := t.enqueue(o.Group)
	if !ok {
		return false
	}
	for k := range o.Group.Limits {
		if n := o.Got[k] + o.Extra[k]; n > 0 && o.Group.Limits[k].Meter != catalog.Concurrency {
			a.owe(o.Group, k, 0, state.Return{Units: n, GrantNs: o.NowNs}, o.Bounds[k])
		}
	}
	return true
}

// owe adds to the debts of a rule.
func (a *account) owe(g *catalog.Group, k int, charge int64, r state.Return, b state.Bounds) {
	if a.owed == nil {
		a.owed = &state.Op{Group: g}
	}
	if a.owed.Group != g {
		a.regroup(g)
	}
	o := a.owed
	o.Charge[k] += charge
	if b.FromNs > o.Bounds[k].FromNs {
		o.Bounds[k] = b
	}
	if r.Units > 0 {
		o.Return[k] = addReturns(&g.Limits[k], o.Return[k], r)
	}
}

// regroup goes on with the limits of another catalog. Debts of rules that are
// others now are let go.
func (a *account) regroup(g *catalog.Group) {
	o := a.owed
	for k := range state.RulesMax {
		if k < len(g.Limits) && k < len(o.Group.Limits) && kindOf(&g.Limits[k]) == kindOf(&o.Group.Limits[k]) {
			continue
		}
		o.Charge[k], o.Return[k], o.Bounds[k] = 0, state.Return{}, state.Bounds{}
	}
	o.Group = g
}

// addReturns is two returns in one. Where they may be of two windows the
// earlier one is given up, or counted to the earlier time: a return that comes
// too late does nothing, and one that enlarges another window is never made.
func addReturns(l *catalog.Limit, a, b state.Return) state.Return {
	if a.Units == 0 {
		return b
	}
	if a.GrantNs > b.GrantNs {
		a, b = b, a
	}
	switch classOf(l) {
	case fixed, sliding:
		if !joins(l, a, b) {
			return b
		}
	}
	return state.Return{Units: a.Units + b.Units, GrantNs: a.GrantNs}
}

// joins reports whether two returns are of one window for sure, or of a bucket.
func joins(l *catalog.Limit, a, b state.Return) bool {
	switch classOf(l) {
	case bucket:
		return true
	case fixed, sliding:
		window := usOf(l.Window)
		return a.GrantNs/1e3/window == b.GrantNs/1e3/window
	}
	return a.GrantNs == b.GrantNs
}

// doubt has the slots of a group told again.
func (t *ledger) doubt(g *catalog.Group) {
	t.enqueue(g)
}

// debts are Ops that tell the store what is owed, at most n of them, and none
// of a group that is blocked.
func (t *ledger) debts(n int, list []*state.Op, blocked func(id uint64) bool) []*state.Op {
	stay := t.owing[:0]
	for _, g := range t.owing {
		if len(list) >= n || blocked(g.ID) {
			stay = append(stay, g)
			continue
		}
		a := t.accounts[g.ID]
		o := a.owed
		if o == nil {
			o = &state.Op{Group: g}
		}
		a.owed, a.queue = nil, false
		list = append(list, o)
		t.settled(g.ID, a)
	}
	clear(t.owing[len(stay):])
	t.owing = stay
	return list
}
