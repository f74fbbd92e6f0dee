package admit

import (
	"math"

	"relay/store/catalog"
	"relay/store/state"
)

// A Verdict is how a Demand stands.
type Verdict uint8

// The verdicts.
const (
	Granted Verdict = iota
	Denied          // by a limit; the Demand says which
	Parked          // the store is being asked
	Lost            // the store could not be asked
	Full            // no room to ask: overload
)

// A Demand is one request's demand on its counter groups, all or nothing. It
// is part of the exchange, and must not move between Plan and its end. Owner:
// the exchange's loop.
type Demand struct {
	Owner    any      // the exchange; not touched here
	Estimate Estimate // filled in before Ask

	// Why it was denied.
	Group   *catalog.Group
	Limit   catalog.Limit
	RetryNs int64 // until the limit could grant; state.NeverNs: it never will

	parts   [state.GroupsMax]part
	grantNs int64 // see GrantNs
	count   uint8
	stands  stand
}

// A stand is where a demand, or its part of one group, is.
type stand uint8

const (
	open    stand = iota // nothing is taken
	waiting              // for an answer of the store
	taken                // to be settled
)

// A part is the demand on one group.
type part struct {
	group  *catalog.Group // as planned
	demand *Demand
	lease  *lease // it is not dropped while the part waits or is taken

	next, prev *part // in the lease's queue
	stands     stand
	asked      bool // its units are in the lease's Op

	// What it reserves, or has reserved.
	rules   *catalog.Group // the limits that units are of
	units   [state.RulesMax]int64
	grantNs int64                 // store time of the grant; the earlier one of two; MaxInt64 = no units
	epoch   uint32                // of the lease
	again   bool                  // it was asked for before, and there was no slot
	charged [state.RulesMax]int64 // of units: charged beyond the grant
	packed  bool                  // all units are of one packet
	slot    bool                  // it has taken a slot
}

// Plan names the groups that have limits: policy, relay key, account, host key.
// It reports whether there are any; without any there is nothing to ask. h may
// be nil.
func (d *Demand) Plan(k *catalog.RelayKey, h *catalog.HostKey) bool {
	if d.stands != open {
		panic("BUG: a demand that waits or holds units is planned anew")
	}
	for i := range d.count {
		d.parts[i].letGo()
	}
	d.count, d.Group, d.grantNs = 0, nil, 0
	d.add(&k.Policy.Group)
	d.add(&k.Group)
	d.add(&k.Account.Group)
	if h != nil {
		d.add(&h.Group)
	}
	return d.count > 0
}

func (d *Demand) add(g *catalog.Group) {
	if g.ID == 0 {
		return
	}
	p := &d.parts[d.count]
	p.group, p.demand = g, d
	d.count++
}

// letGo forgets pointers into a catalog that may have gone.
func (p *part) letGo() { p.group, p.rules, p.lease = nil, nil, nil }

// Parked reports whether the demand awaits an answer.
func (d *Demand) Parked() bool { return d.stands == waiting }

// Holds reports whether the demand was granted and is to be settled.
func (d *Demand) Holds() bool { return d.stands == taken }

// GrantNs is the store time, Unix, at which what the demand holds was granted:
// the earliest over its groups; when it has taken slots only, or nothing, the
// time of the store when it was granted here, as well as the loop knows. It
// stays after Settle, until the next Plan or Ask. 0 = it was not granted.
func (d *Demand) GrantNs() int64 { return d.grantNs }

// complete reports whether all parts are taken; then the demand is. storeNs is
// the time of the store.
func (d *Demand) complete(storeNs int64) bool {
	d.grantNs = math.MaxInt64
	for i := range d.count {
		p := &d.parts[i]
		if p.stands != taken {
			d.grantNs = 0
			return false
		}
		d.grantNs = min(d.grantNs, p.grantNs)
	}
	if d.grantNs == math.MaxInt64 {
		d.grantNs = storeNs
	}
	d.stands = taken
	return true
}

// deny notes why.
func (d *Demand) deny(g *catalog.Group, rule int, retryNs int64) {
	d.Group, d.Limit, d.RetryNs = g, g.Limits[rule], retryNs
}

// reserve computes what the part wants by the limits of its lease.
func (p *part) reserve() {
	l := p.lease
	p.rules, p.epoch, p.charged = l.group, l.epoch, [state.RulesMax]int64{}
	for k := range l.group.Limits {
		p.units[k] = 0
		if l.kinds[k] != slotRule {
			p.units[k] = p.demand.Estimate.want(&l.group.Limits[k])
		}
	}
}

// need is how many units of a rule have to be available: one of those that
// reserve nothing.
func (p *part) need(k int) int64 { return max(1, p.units[k]) }
