package lanes

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"relay/store/catalog"
)

// Options say what is measured.
type Options struct {
	Addr      string  // host:port of the store, which has no password
	Loops     int     // 0 = 2
	Lanes     int     // 0 = 1
	Rate      float64 // requests per second; 0 = 50,000
	Policies  int     // 0 = 1,000
	Hot       bool    // few policies
	Saturated bool    // the limit on requests lets half of the rate through

	Latency      time.Duration // from granted to settled; 0 = 2 ms
	WarmUp, Hold time.Duration // 0 = 2 s and 5 s
	Rounds       int           // 0 = 1
	Modes        []string      // 0 = all
	Progress     io.Writer     // a line per point
}

// The ways of asking, in the order of each round.
const (
	Leases = "leases"
	Exact  = "exact"
	Plain  = "plain"
	Memory = "memory"
)

// Modes lists them.
func Modes() []string { return []string{Leases, Exact, Plain, Memory} }

// A Point is one way of asking at one rate, in one round.
type Point struct {
	Mode    string
	Round   int
	Offered float64 // requests per second, by the schedule
	Decided float64 // per second
	NotHeld string  // why the rate was not held; "" = it was

	StoreUs  float64 // CPU of the store per request
	Evals    float64 // calls of scripts per request
	Commands float64 // per request; those that scripts make among them
	Ops      float64 // group operations per request; of the plain design: calls
	ClientUs float64 // CPU of this process per request

	P50Us, P99Us float64 // from asked to decided
	LagP99Us     float64 // of a loop behind its schedule
	StoreCores   float64

	DeniedRate    float64 // per second
	Lost, Refused int64   // refused: there was no room to ask
	Unsent        int64   // too many were open
	Unsettled     int64   // requests and leases that had not gone back at the end
}

// Run measures all modes at the rate and at half of it, interleaved.
func Run(ctx context.Context, o Options) ([]Point, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	if err := loadPlain(o.Addr); err != nil {
		return nil, err
	}
	var points []Point
	for round := 1; round <= o.Rounds; round++ {
		for _, rate := range []float64{o.Rate, o.Rate / 2} {
			for _, mode := range o.Modes {
				p, err := o.point(ctx, mode, rate)
				if err != nil {
					return points, fmt.Errorf("round %d, %s at %.0f/s: %w", round, mode, rate, err)
				}
				p.Round = round
				points = append(points, p)
				fmt.Fprintf(o.Progress, "  round %d  %s\n", round, &p)
			}
		}
	}
	return points, nil
}

func (o *Options) fill() error {
	o.Loops, o.Lanes, o.Rounds = cmp.Or(o.Loops, 2), cmp.Or(o.Lanes, 1), cmp.Or(o.Rounds, 1)
	o.Rate, o.Policies = cmp.Or(o.Rate, 50_000), cmp.Or(o.Policies, 1000)
	o.Latency, o.WarmUp, o.Hold = cmp.Or(o.Latency, 2*time.Millisecond), cmp.Or(o.WarmUp, 2*time.Second), cmp.Or(o.Hold, 5*time.Second)
	if o.Hot {
		o.Policies = policiesHot
	}
	if len(o.Modes) == 0 {
		o.Modes = Modes()
	}
	for _, mode := range o.Modes {
		if ways[mode] == nil {
			return fmt.Errorf("lanes: no way of asking %q: want any of %v", mode, Modes())
		}
	}
	switch {
	case o.Rate < 1 || o.Rate > rateMax:
		return fmt.Errorf("lanes: a rate of %v: want 1 to %d", o.Rate, rateMax)
	case o.Policies < 1 || o.Policies > policiesMax:
		return fmt.Errorf("lanes: %d policies: want 1 to %d", o.Policies, policiesMax)
	case o.Loops < 1 || o.Loops > loopsMax:
		return fmt.Errorf("lanes: %d loops: want 1 to %d", o.Loops, loopsMax)
	case o.Rounds < 1 || o.Rounds > roundsMax:
		return fmt.Errorf("lanes: %d rounds: want 1 to %d", o.Rounds, roundsMax)
	case o.Latency < 0 || o.WarmUp < 0 || o.Hold <= 0 || o.Latency > holdMax || o.WarmUp > holdMax || o.Hold > holdMax:
		return fmt.Errorf("lanes: latency %v, warm-up %v, hold %v: want a hold, and at most %v each", o.Latency, o.WarmUp, o.Hold, holdMax)
	}
	return nil
}

// rules are the limits of every policy at a rate.
func (o *Options) rules(rate float64) [3]catalog.Limit {
	rules := [3]catalog.Limit{
		{Meter: catalog.Requests, Strategy: catalog.TokenBucket, Amount: requestsAmount, Window: window},
		{Meter: catalog.Tokens, Strategy: catalog.SlidingWindow, Amount: tokensAmount, Window: window},
		{Meter: catalog.Concurrency, Amount: slotsAmount},
	}
	if o.Saturated {
		rules[0].Amount, rules[0].Window = max(1, int64(rate*saturatedShare)/int64(o.Policies)), time.Second
	}
	return rules
}

// policies are new ones, which no store knows: ids from first on.
func policies(n int, first uint64, rules [3]catalog.Limit) []*catalog.RelayKey {
	keys := make([]*catalog.RelayKey, n)
	account := &catalog.Account{}
	for i := range keys {
		name := fmt.Sprintf("policy/%d", i)
		keys[i] = &catalog.RelayKey{Account: account, Policy: &catalog.Policy{
			Name: name, Group: catalog.Group{ID: first + uint64(i), Name: name, Limits: rules[:]},
		}}
	}
	return keys
}

// String tells the point while the run goes on.
func (p *Point) String() string {
	text := fmt.Sprintf("%-7s %7.0f/s offered %7.0f decided, store %.2f µs, client %.2f µs, %.4f EVALSHA and %.3f operations per request, p50 %.0f p99 %.0f µs, lag p99 %.0f µs, %.0f denied/s",
		p.Mode, p.Offered, p.Decided, p.StoreUs, p.ClientUs, p.Evals, p.Ops, p.P50Us, p.P99Us, p.LagP99Us, p.DeniedRate)
	if p.NotHeld != "" {
		text += " — NOT HELD: " + p.NotHeld
	}
	return text
}
