package admit

import (
	"slices"
	"testing"

	"relay/store/catalog"
)

func TestPlan(t *testing.T) {
	tables := tables(t)
	hostKeys := tables.Hosts[0].Keys
	d := &Demand{}
	for _, tt := range []struct {
		name, key string
		hostKey   *catalog.HostKey
		want      []string
	}{
		{"all", goodKey, hostKeys[0], []string{"policy/some", "relay_key/good", "account/payer", "host_key/host/limited"}},
		{"host key without limits", goodKey, hostKeys[1], []string{"policy/some", "relay_key/good", "account/payer"}},
		{"no host key", goodKey, nil, []string{"policy/some", "relay_key/good", "account/payer"}},
		{"host key alone", freeKey, hostKeys[0], []string{"host_key/host/limited"}},
		{"nothing", freeKey, hostKeys[1], nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, _ := Key(tables, []byte(tt.key), 0)
			if got := d.Plan(k, tt.hostKey); got != (len(tt.want) > 0) {
				t.Errorf("Plan is %t", got)
			}
			var groups []string
			for i := range d.count {
				groups = append(groups, d.parts[i].group.Name)
			}
			if !slices.Equal(groups, tt.want) {
				t.Errorf("groups %q, want %q", groups, tt.want)
			}
			for i := int(d.count); i < len(d.parts); i++ {
				if g := d.parts[i].group; g != nil {
					t.Errorf("%s is left from an earlier plan", g.Name)
				}
			}
		})
	}
}

// What is misused panics, rather than losing what is held.
func TestDemandBugs(t *testing.T) {
	rig := newRig(t, 1)
	d := rig.demand(group(1, requests(catalog.TokenBucket, 10, minute)))
	rig.ask(d, Parked)
	k := &catalog.RelayKey{Policy: &catalog.Policy{}, Account: &catalog.Account{}}
	panics(t, "plan while parked", func() { d.Plan(k, nil) })
	panics(t, "ask while parked", func() { rig.leases.Ask(rig.nowNs, d) })
	panics(t, "settle while parked", func() { rig.leases.Settle(rig.nowNs, d, Use{}, true) })
	panics(t, "charge while parked", func() { rig.leases.Charge(rig.nowNs, d, Use{}) })
	rig.answer(decision{d, Granted})
	panics(t, "plan while held", func() { d.Plan(k, nil) })
	panics(t, "ask while held", func() { rig.leases.Ask(rig.nowNs, d) })
	panics(t, "cancel while held", func() { rig.leases.Cancel(rig.nowNs, d) })
	rig.leases.Settle(rig.nowNs, d, Use{}, true)
	panics(t, "settle twice", func() { rig.leases.Settle(rig.nowNs, d, Use{}, true) })
	d.Plan(k, nil)
}

func panics(t *testing.T, name string, act func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", name)
		}
	}()
	act()
}
