package ladder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"relay/perf/machine"
	"relay/perf/report"
	"relay/perf/target"
)

// Options say what is measured and how. What is 0 or empty is as the profile
// says.
type Options struct {
	Profile   string   // of Profiles
	Scenarios []string // names or numbers
	Systems   []string // in the order of each step; all but direct when empty

	Program   string   // path of relay-perf
	RelayPath string   // of the relay binary; "" leaves Relay out
	RelayEnv  []string // settings of all gateways, NAME=VALUE
	Keys      int      // relay keys, each with its account
	Workers   int      // threads of the plain proxies

	Rounds       int
	Rates        []float64 // requests per second, instead of the usual steps
	Streams      []int     // open at once, instead of the usual points
	WarmUp, Hold time.Duration
	Processes    int // of the generator; 1 = this one

	// What runs already, perhaps on other hosts: nothing is started then.
	Gateway, GatewayControl, Mock string

	Progress io.Writer // a line per step
}

// Systems are what is compared when nothing else is said, in the order of each
// step.
func Systems() []string {
	return []string{target.NameRelay, target.NameNetHTTP, target.NameFastHTTP, target.NameHAProxy, target.NameNginx}
}

// gateways are the systems that check keys, count limits and keep accounts.
func gateways() []string {
	return []string{target.NameRelay, target.NameNetHTTP, target.NameFastHTTP}
}

// A bench is one run.
type bench struct {
	o       Options
	profile Profile
	cores   int // of the machine
	run     *report.Run
	left    map[string]bool // systems that are missing
	broken  []string        // money that does not add up, and checks that failed
	started []int           // processes of what is measured
}

// Run takes the measurements. What was measured until an error is in the run,
// too; it is nil when nothing could be.
func Run(ctx context.Context, o Options) (*report.Run, error) {
	b := &bench{o: o, cores: runtime.NumCPU(), left: make(map[string]bool)}
	chosen, err := b.prepare()
	if err != nil {
		return nil, err
	}
	b.run = &report.Run{
		Taken: time.Now().UTC(), Host: machine.Host(), Profile: b.profile.Name, Settings: b.settings(), Systems: b.o.Systems,
	}
	err = b.scenarios(ctx, chosen)
	b.run.Ended = time.Now().UTC()
	if err != nil {
		b.run.Failed = err.Error()
		return b.run, err
	}
	if len(b.broken) > 0 {
		return b.run, fmt.Errorf("ladder: %d checks failed:\n  %s", len(b.broken), strings.Join(b.broken, "\n  "))
	}
	return b.run, nil
}

func (b *bench) scenarios(ctx context.Context, chosen []scenario) error {
	for _, s := range chosen {
		b.tell("%d %s: %s", s.number, s.name, s.asks)
		out := report.Scenario{Number: s.number, Name: s.name, Asks: s.asks, CompletedBy: s.completedBy}
		if s.completedBy != "" {
			b.tell("  this is not whole without %s", s.completedBy)
		}
		var err error
		if s.run != nil {
			err = s.run(ctx, b, &out)
		}
		if s.climbs {
			out.Summaries = summarize(out.Points)
		}
		if b.o.Gateway != "" {
			out.Notes = append(out.Notes, "The gateway and the mock run elsewhere: of CPU and memory is known what they tell themselves, which for a gateway takes its control listener, and nobody has looked at their accounts.")
		}
		b.run.Scenarios = append(b.run.Scenarios, out)
		if err != nil {
			return fmt.Errorf("ladder: %s: %w", s.name, err)
		}
	}
	return nil
}

// prepare fills in what the profile says and checks the rest.
func (b *bench) prepare() ([]scenario, error) {
	var err error
	if b.profile, err = findProfile(b.o.Profile); err != nil {
		return nil, err
	}
	o := &b.o
	for _, n := range []struct {
		value *int
		usual int
	}{{&o.Rounds, b.profile.rounds}, {&o.Keys, accountsUsual}, {&o.Processes, 1}, {&o.Workers, b.cores}} {
		if *n.value == 0 {
			*n.value = n.usual
		}
	}
	for _, d := range []struct {
		value *time.Duration
		usual time.Duration
	}{{&o.WarmUp, b.profile.warmUp}, {&o.Hold, b.profile.hold}} {
		if *d.value == 0 {
			*d.value = d.usual
		}
	}
	if len(o.Streams) > 0 {
		b.profile.streams = o.Streams
	}
	if len(o.Systems) == 0 {
		o.Systems = Systems()
	}
	if len(o.Scenarios) == 0 {
		o.Scenarios = b.profile.scenarios
	}
	if o.Gateway != "" {
		o.Systems = o.Systems[:1]
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	var chosen []scenario
	for _, name := range o.Scenarios {
		s, err := findScenario(name)
		if err != nil {
			return nil, err
		}
		if o.Gateway != "" && !s.remote {
			return nil, fmt.Errorf("ladder: scenario %s starts its gateways itself: it cannot be run against one that runs already", s.name)
		}
		chosen = append(chosen, s)
	}
	return chosen, nil
}

func (o *Options) check() error {
	known := append(Systems(), target.NameDirect)
	for _, name := range o.Systems {
		if !slices.Contains(known, name) {
			return fmt.Errorf("ladder: no system %q: want any of %s", name, strings.Join(known, ", "))
		}
	}
	for _, rate := range o.Rates {
		if rate <= 0 || rate > rateMax {
			return fmt.Errorf("ladder: a rate of %v: want more than 0 and at most %d", rate, rateMax)
		}
	}
	switch {
	case o.Rounds < 1 || o.Rounds > roundsMax:
		return fmt.Errorf("ladder: %d rounds: want 1 to %d", o.Rounds, roundsMax)
	case len(o.Rates) > stepsMax || len(o.Streams) > stepsMax:
		return fmt.Errorf("ladder: %d rates and %d numbers of streams: want at most %d", len(o.Rates), len(o.Streams), stepsMax)
	case o.WarmUp < 0 || o.Hold <= 0 || o.WarmUp+o.Hold > holdMax:
		return fmt.Errorf("ladder: warm-up %v and hold %v: want a hold, and at most %v together", o.WarmUp, o.Hold, holdMax)
	case o.Keys < 1 || o.Keys > keysMax:
		return fmt.Errorf("ladder: %d relay keys: want 1 to %d", o.Keys, keysMax)
	case o.Processes < 1 || o.Processes > processesMax:
		return fmt.Errorf("ladder: %d processes: want 1 to %d", o.Processes, processesMax)
	case (o.Gateway == "") != (o.Mock == ""):
		return errors.New("ladder: a gateway that runs already is measured with the mock behind it: both addresses are needed")
	}
	return nil
}

// settings are what the run was told, by flag.
func (b *bench) settings() map[string]string {
	o := &b.o
	out := map[string]string{
		"profile": b.profile.Name, "scenario": strings.Join(o.Scenarios, ","), "systems": strings.Join(o.Systems, ","),
		"rounds": strconv.Itoa(o.Rounds), "warm-up": o.WarmUp.String(), "hold": o.Hold.String(), "keys": strconv.Itoa(o.Keys),
		"processes": strconv.Itoa(o.Processes), "workers": strconv.Itoa(o.Workers), "relay-env": strings.Join(o.RelayEnv, " "),
	}
	if len(o.Rates) > 0 {
		out["rates"] = strings.Trim(fmt.Sprint(o.Rates), "[]")
	}
	if len(o.Streams) > 0 {
		out["streams"] = strings.Trim(fmt.Sprint(o.Streams), "[]")
	}
	for flag, addr := range map[string]string{"gateway": o.Gateway, "gateway-control": o.GatewayControl, "mock": o.Mock} {
		if addr != "" {
			out[flag] = addr
		}
	}
	return out
}

// tell prints a line of progress.
func (b *bench) tell(format string, args ...any) { fmt.Fprintf(b.o.Progress, format+"\n", args...) }

// among are the systems of the run that are among some.
func (b *bench) among(some ...string) []string {
	return slices.DeleteFunc(slices.Clone(b.o.Systems), func(name string) bool { return !slices.Contains(some, name) })
}

// isLeft notes, once, that a system is missing.
func (b *bench) isLeft(name string, err error) bool {
	var absent *target.Missing
	if !errors.As(err, &absent) {
		return false
	}
	if !b.left[name] {
		b.left[name] = true
		text := fmt.Sprintf("%s is left out: %v", name, absent)
		b.run.Missing = append(b.run.Missing, text)
		b.tell("  %s", text)
	}
	return true
}

// fail notes a check that failed.
func (b *bench) fail(what, problem string) {
	b.broken = append(b.broken, what+": "+problem)
	b.tell("  FAILED: %s: %s", what, problem)
}

// climb runs lanes of the systems that are there.
func (b *bench) climb(ctx context.Context, out *report.Scenario, c climb) error {
	c.rounds, c.begin, c.isLeft, c.progress = b.o.Rounds, b.stage, b.isLeft, b.o.Progress
	c.broken = func(system, problem string) { b.fail(system, "the money does not add up: "+problem) }
	c.lanes = slices.DeleteFunc(c.lanes, func(l lane) bool { return b.left[l.system] })
	points, err := c.run(ctx)
	out.Points = append(out.Points, points...)
	return err
}
