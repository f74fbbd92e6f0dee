package ladder

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"time"

	"relay/perf/machine"
	"relay/perf/openloop"
	"relay/perf/report"
	"relay/perf/target"
)

// The parts of a stage, as points name them.
const (
	partGateway   = "gateway"
	partMock      = "mock"
	partGenerator = "generator"
	partProxy     = "proxy" // before several gateways
	partStore     = "store"
)

// secondsFast is about what the mock takes for a request at its usual pace.
const secondsFast = 0.055

// A stage is a system with its mock, as they run.
type stage struct {
	bench    *bench
	lane     *lane
	mock     *target.Target
	gateways []*target.Target
	front    *target.Target // a balancer before the gateways; nil = none
	store    *target.Target // that counts limits; nil = none
	groups   map[string]machine.Group
	scrape   float64 // heap objects that a look at all metrics makes
	ledger   *ledger
}

// stage starts what a lane needs, or takes what runs already.
func (b *bench) stage(ctx context.Context, l *lane) (running, error) {
	s := &stage{bench: b, lane: l, groups: make(map[string]machine.Group)}
	err := s.start(ctx)
	if err == nil {
		err = s.prepare(ctx)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *stage) start(ctx context.Context) (err error) {
	o, l := &s.bench.o, s.lane
	if o.Gateway != "" {
		s.mock = target.Remote("mock", o.Mock, "")
		s.gateways = []*target.Target{target.Remote(l.system, o.Gateway, o.GatewayControl)}
		return nil
	}
	setup, err := s.bench.setup(ctx, l)
	if err != nil {
		return err
	}
	s.mock = setup.Mock
	if program := l.counting.program; program != "" && program != report.StoreMemory {
		if s.store, err = target.Store(ctx, program); err != nil {
			return err
		}
		setup.RelayEnv = append(setup.RelayEnv, target.StoreEnv(s.store.Addr)...)
	}
	if l.relays > 0 {
		s.front, s.gateways, err = setup.StartBehindHAProxy(ctx, l.system, l.relays)
		return err
	}
	t, err := setup.Start(ctx, l.system)
	if err != nil {
		return err
	}
	s.gateways = []*target.Target{t}
	return nil
}

// setup starts a mock for a lane and says how its system is started.
func (b *bench) setup(ctx context.Context, l *lane) (target.Setup, error) {
	setup := target.Setup{
		Program: b.o.Program, RelayPath: b.o.RelayPath, RelayEnv: slices.Concat(b.o.RelayEnv, l.env),
		RelayKeys: b.o.Keys, Policies: l.policies, Limits: l.limits, Workers: b.o.Workers,
	}
	if l.keys > 0 {
		setup.RelayKeys = l.keys
	}
	if l.workers > 0 {
		setup.Workers = l.workers
	}
	pace := l.pace
	if pace == "" {
		pace = "fast"
	}
	var err error
	setup.Mock, err = target.Mock(ctx, b.o.Program, pace)
	return setup, err
}

// prepare finds the processes and the cost of looking at them.
func (s *stage) prepare(ctx context.Context) (err error) {
	if s.ledger, err = openLedger(s.gateways...); err != nil {
		return err
	}
	for _, t := range s.targets() {
		if !t.Local() {
			continue
		}
		members, err := t.Members()
		if err != nil {
			return err
		}
		part := s.part(t)
		s.groups[part] = append(s.groups[part], members...)
		s.bench.started = append(s.bench.started, t.PID)
	}
	first, err := s.metrics(ctx)
	if err != nil {
		return err
	}
	second, err := s.metrics(ctx)
	s.scrape = second[metricMallocs] - first[metricMallocs]
	return err
}

func (s *stage) part(t *target.Target) string {
	switch t {
	case s.mock:
		return partMock
	case s.front:
		return partProxy
	case s.store:
		return partStore
	}
	return partGateway
}

// targets are all processes of the stage.
func (s *stage) targets() []*target.Target {
	out := slices.Clone(s.gateways)
	if s.mock != nil {
		out = append(out, s.mock)
	}
	for _, t := range []*target.Target{s.front, s.store} {
		if t != nil {
			out = append(out, t)
		}
	}
	return out
}

// entrance is what the generator points at.
func (s *stage) entrance() *target.Target {
	if s.front != nil {
		return s.front
	}
	return s.gateways[0]
}

// step offers a load and measures.
func (s *stage) step(ctx context.Context, rate float64) (report.Point, error) {
	m := newMeasurement(ctx, s)
	defer m.close()
	o := s.load(rate)
	o.HoldBegin, o.HoldEnd = func() { m.begin(o.Hold / 2) }, m.end
	var load *openloop.Result
	var err error
	if n := s.bench.o.Processes; n > 1 {
		load, err = openloop.RunProcesses(ctx, s.bench.o.Program, n, o)
	} else {
		load, err = openloop.Run(ctx, o)
	}
	for _, t := range s.targets() {
		if ended, said := t.Ended(); ended {
			return report.Point{}, fmt.Errorf("%s ended under load of %.0f requests/s: %s", t.Name, rate, said)
		}
	}
	if err != nil {
		return report.Point{}, err
	}
	s.ledger.add(load)
	m.close()
	return m.point(load)
}

// load is what is offered at a rate.
func (s *stage) load(rate float64) openloop.Options {
	b, l := s.bench, s.lane
	keys := b.o.Keys
	if l.keys > 0 {
		keys = l.keys
	}
	mix := target.Setup{RelayKeys: keys}.Mix(s.entrance())
	mix.Keys = spread(mix.Keys, keysUsed)
	if b.o.Gateway != "" && l.pace != "" { // the mock runs already: each request says how it is to be answered
		query := "?mock=" + url.QueryEscape(l.pace)
		mix.ChatPath, mix.MessagesPath = "/openai/v1/chat/completions"+query, "/anthropic/v1/messages"+query
	}
	if l.mix != nil {
		l.mix(&mix)
	}
	seconds := l.seconds
	if seconds == 0 {
		seconds = secondsFast
	}
	most := b.connectionsMost()
	warmUp := b.o.WarmUp
	if whole := time.Duration(seconds * warmUpOver * float64(time.Second)); l.seconds > 0 && warmUp < whole {
		warmUp = whole // until then it is not seen how many requests the mock keeps waiting
	}
	return openloop.Options{
		Addr: s.entrance().Addr, Mix: mix, Rate: rate, WarmUp: warmUp, Hold: b.o.Hold, ConnectionsMax: most,
		Connections: min(connectionsMin+int(rate*seconds*connectionsOver), most),
	}
}

// spread takes n of all, at even distances.
func spread[T any](all []T, n int) []T {
	if len(all) <= n {
		return all
	}
	out := make([]T, n)
	for i := range out {
		out[i] = all[i*len(all)/n]
	}
	return out
}

// connectionsMost is what the limit of open files leaves for the connections of
// a system.
func (b *bench) connectionsMost() int {
	return min((int(b.run.Host.Descriptors)-descriptorsOwn)/descriptorsEach, connectionsMost)
}

// generator are the processes that make the load: this one and its children,
// but for what is measured.
func (b *bench) generator() (machine.Group, error) {
	return machine.Tree{PID: os.Getpid()}.Members(b.started...)
}

// books stops the gateways and looks at their money.
func (s *stage) books() (*report.Money, error) { return s.ledger.check() }

func (s *stage) stop() {
	if s.ledger != nil {
		s.ledger.close()
	}
	if s.front != nil {
		s.front.Close()
	}
	for _, t := range s.gateways {
		t.Close()
	}
	if s.store != nil {
		s.store.Close()
	}
	if s.mock != nil {
		s.mock.Close()
	}
}
