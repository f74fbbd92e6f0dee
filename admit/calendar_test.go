package admit

import (
	"math/rand/v2"
	"testing"
	"time"

	"relay/store/catalog"
	"relay/store/state"
)

func TestBounds(t *testing.T) {
	for _, tt := range []struct {
		name, zone      string
		period          catalog.Period
		at, from, until string
	}{
		{"hour", "UTC", catalog.Hour, "2027-03-04T05:06:07.5Z", "2027-03-04T05:00:00Z", "2027-03-04T06:00:00Z"},
		{"hour of a zone with minutes", "Asia/Kathmandu", catalog.Hour, "2027-03-04T05:06:07Z", "2027-03-04T04:15:00Z", "2027-03-04T05:15:00Z"},
		{"beginning of an hour", "UTC", catalog.Hour, "2027-03-04T05:00:00Z", "2027-03-04T05:00:00Z", "2027-03-04T06:00:00Z"},
		{"hour before the clock goes back", "Europe/Berlin", catalog.Hour, "2027-10-31T00:30:00Z", "2027-10-31T00:00:00Z", "2027-10-31T01:00:00Z"},
		{"the same hour again", "Europe/Berlin", catalog.Hour, "2027-10-31T01:30:00Z", "2027-10-31T01:00:00Z", "2027-10-31T02:00:00Z"},
		{"hour before half an hour back", "Australia/Lord_Howe", catalog.Hour, "2027-04-03T14:50:00Z", "2027-04-03T14:00:00Z", "2027-04-03T15:00:00Z"},
		{"half an hour again", "Australia/Lord_Howe", catalog.Hour, "2027-04-03T15:10:00Z", "2027-04-03T15:00:00Z", "2027-04-03T15:30:00Z"},
		{"half an hour forward", "Australia/Lord_Howe", catalog.Hour, "2027-10-02T15:45:00Z", "2027-10-02T15:30:00Z", "2027-10-02T16:00:00Z"},
		{"day", "UTC", catalog.Day, "2027-12-31T23:59:59.999999999Z", "2027-12-31T00:00:00Z", "2028-01-01T00:00:00Z"},
		{"day of 23 hours", "Europe/Berlin", catalog.Day, "2027-03-28T12:00:00Z", "2027-03-27T23:00:00Z", "2027-03-28T22:00:00Z"},
		{"day of 25 hours", "Europe/Berlin", catalog.Day, "2027-10-31T12:00:00Z", "2027-10-30T22:00:00Z", "2027-10-31T23:00:00Z"},
		{"day without midnight", "Africa/Cairo", catalog.Day, "2027-04-30T12:00:00Z", "2027-04-29T22:00:00Z", "2027-04-30T21:00:00Z"},
		{"day before it", "Africa/Cairo", catalog.Day, "2027-04-29T21:59:59Z", "2027-04-28T22:00:00Z", "2027-04-29T22:00:00Z"},
		{"day whose last hour comes twice", "Africa/Cairo", catalog.Day, "2027-10-28T21:30:00Z", "2027-10-27T21:00:00Z", "2027-10-28T22:00:00Z"},
		{"day that begins twice", "America/Havana", catalog.Day, "2027-11-07T12:00:00Z", "2027-11-07T04:00:00Z", "2027-11-08T05:00:00Z"},
		{"week of a Sunday", "UTC", catalog.Week, "2027-03-07T23:00:00Z", "2027-03-01T00:00:00Z", "2027-03-08T00:00:00Z"},
		{"week of a Monday", "UTC", catalog.Week, "2027-03-08T00:00:00Z", "2027-03-08T00:00:00Z", "2027-03-15T00:00:00Z"},
		{"week over the end of a year", "America/New_York", catalog.Week, "2028-01-01T12:00:00Z", "2027-12-27T05:00:00Z", "2028-01-03T05:00:00Z"},
		{"week with a change", "America/New_York", catalog.Week, "2027-03-14T12:00:00Z", "2027-03-08T05:00:00Z", "2027-03-15T04:00:00Z"},
		{"month", "UTC", catalog.Month, "2028-02-29T23:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{"December", "Asia/Tokyo", catalog.Month, "2027-12-31T14:59:59Z", "2027-11-30T15:00:00Z", "2027-12-31T15:00:00Z"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			zone, err := time.LoadLocation(tt.zone)
			if err != nil {
				t.Fatal(err)
			}
			l := &catalog.Limit{Strategy: catalog.Calendar, Period: tt.period, Zone: zone}
			got := Bounds(l, parse(t, tt.at))
			if want := (state.Bounds{FromNs: parse(t, tt.from), UntilNs: parse(t, tt.until)}); got != want {
				t.Errorf("%v to %v, want %s to %s", time.Unix(0, got.FromNs).UTC(), time.Unix(0, got.UntilNs).UTC(), tt.from, tt.until)
			}
		})
	}
}

func parse(t *testing.T, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixNano()
}

// Every instant is in one period, periods follow each other without a gap, and
// a cache says the same.
func TestBoundsFollow(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 12))
	c := NewCalendar()
	for _, name := range []string{"UTC", "Europe/Berlin", "Africa/Cairo", "America/Havana", "America/Sao_Paulo", "America/Santiago", "Asia/Beirut", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu", "America/St_Johns", "Atlantic/Azores"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for p := catalog.Hour; p <= catalog.Month; p++ {
			l := &catalog.Limit{Strategy: catalog.Calendar, Period: p, Zone: zone}
			for range 40 {
				at := rnd.Int64N(30 * 365 * 24 * 3600 * second)
				at += 365 * 24 * 3600 * second * 15 // 1985 to 2015 has the odd ones
				for range 60 {
					b := Bounds(l, at)
					if b.FromNs > at || at >= b.UntilNs {
						t.Fatalf("%s, period %d: %d is not in %+v", name, p, at, b)
					}
					for _, ns := range []int64{b.FromNs, b.UntilNs - 1, b.FromNs + rnd.Int64N(b.UntilNs-b.FromNs)} {
						if same := c.Bounds(l, ns); same != b {
							t.Fatalf("%s, period %d: %v is in %+v and %v in %+v", name, p, time.Unix(0, at).In(zone), b, time.Unix(0, ns).In(zone), same)
						}
					}
					at = b.UntilNs
				}
			}
		}
	}
}

func TestCalendarIsBounded(t *testing.T) {
	c := NewCalendar()
	for i := range 3 * periodsMax {
		l := &catalog.Limit{Period: catalog.Day, Zone: time.FixedZone("zone", i)}
		if b := c.Bounds(l, epochNs); b != Bounds(l, epochNs) {
			t.Fatal("a cached period is another")
		}
		if len(c.known) > periodsMax {
			t.Fatalf("%d periods are known", len(c.known))
		}
	}
	l := &catalog.Limit{Period: catalog.Day, Zone: time.UTC}
	c.Bounds(l, epochNs)
	if n := testing.AllocsPerRun(100, func() { c.Bounds(l, epochNs) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Near the end of a period a loop may think that the next one has begun, by the
// clock of another store: what it is lent ends with the period that is counted.
func TestLeaseEndsWithPeriod(t *testing.T) {
	const hour = 3600 * second
	r := newRig(t, 1)
	r.nowNs = hour - 100*milli - epochNs%hour
	g := group(1, catalog.Limit{Meter: catalog.Cost, Strategy: catalog.Calendar, Amount: 1_000_000, Period: catalog.Hour})
	r.granted(r.demand(g))
	d := r.demand(g)
	r.leases.aheadNs += 200 * milli
	r.ask(d, Parked)
	r.answer(decision{d, Granted})
	r.nowNs += 99 * milli
	r.ask(r.demand(g), Granted)
	if r.leases.groups[1].has(0) < 1000 {
		t.Fatal("nothing is lent for another one")
	}
	r.nowNs += milli
	r.ask(r.demand(g), Parked)
}
