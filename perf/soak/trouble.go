package soak

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"relay/perf/openloop"
	"relay/perf/target"
)

// A Trouble says how many callers behave badly beside the load, each kind as a
// share of its rate. Each has a connection of its own.
type Trouble struct {
	// SlowShare: they send their body in pieces and read a large stream slowly.
	// They have to get all of it.
	SlowShare float64
	// LeaveShare: they leave in the middle of their request, while they wait, or
	// in the middle of a stream.
	LeaveShare float64
	// FaultShare: the provider fails them, with the words of Faults in turn.
	FaultShare float64
	Faults     []string // the usual ones when empty
}

// faultsUsual are what a provider does wrong without any blame on its key or
// host as a whole: others go on as before.
var faultsUsual = []string{
	"status=500", "status=400", "reset", "close", "cut", "cut-rst", "json-broken", "html", "empty", "error-frame", "malformed=2", "nodone",
}

// The kinds of trouble.
const (
	slow = iota
	leave
	fault
	troubles
)

var troubleNames = [troubles]string{"slow", "leaving", "failed"}

// A Troubled is what became of the callers of one kind.
type Troubled struct {
	Callers  int64
	ByStatus map[int]int64 // whole answers
	Lost     int64         // without one
	Causes   map[string]int64
}

func (t *Trouble) shares() [troubles]float64 {
	return [...]float64{slow: t.SlowShare, leave: t.LeaveShare, fault: t.FaultShare}
}

func (t *Trouble) check() error {
	if len(t.Faults) == 0 {
		t.Faults = faultsUsual
	}
	for kind, share := range t.shares() {
		if share < 0 || share > shareMax {
			return fmt.Errorf("soak: a share of %v of %s callers: want 0 to %v", share, troubleNames[kind], shareMax)
		}
	}
	return nil
}

// makeTrouble starts the callers of one kind by a schedule until the load has been
// sent, and waits for the last of them.
func (s *soak) makeTrouble(ctx context.Context, kind int, rate float64, length time.Duration) {
	begin := time.Now()
	places := make(chan struct{}, troubleAtOnce)
	var wait sync.WaitGroup
	for n := 0; ; n++ {
		due := time.Duration(float64(n) / rate * float64(time.Second))
		if due >= length || !pause(ctx, time.Until(begin.Add(due))) {
			break
		}
		places <- struct{}{}
		wait.Go(func() {
			defer func() { <-places }()
			status, err := s.misbehave(ctx, kind, n)
			s.noteTrouble(kind, n, status, err)
		})
	}
	wait.Wait()
}

func (s *soak) noteTrouble(kind, n, status int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.result
	t := &r.Trouble[kind]
	if t.ByStatus == nil {
		t.ByStatus, t.Causes = make(map[int]int64), make(map[string]int64)
	}
	t.Callers++
	s.sent[n%len(s.sent)]++
	if err != nil {
		t.Lost++
		r.Seen.Lost++
		if cause := target.Cause(err); t.Causes[cause] > 0 || len(t.Causes) < causesMax {
			t.Causes[cause]++
		}
		return
	}
	t.ByStatus[status]++
	r.Seen.ByStatus[status]++
}

// misbehave is one caller.
func (s *soak) misbehave(ctx context.Context, kind, n int) (status int, err error) {
	nc, err := net.DialTimeout("tcp", s.t.Addr, troubleTime)
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.Close() })()
	nc.SetDeadline(time.Now().Add(troubleTime))
	mix, key := s.mix, s.mix.Keys[n%len(s.mix.Keys)]
	shape := openloop.Kind(n / len(s.mix.Keys) % 2)
	switch kind {
	case slow:
		mix.Stream = true
		return beSlow(nc, asking(mix, fmt.Sprintf("instant,pour=%d", slowBytes)).Request(shape, key, slowBodyBytes))
	case leave:
		mix.Stream = n%2 == 0
		return 0, goAway(nc, asking(mix, "instant,first=300ms,tps=20,tokens=200").Request(shape, key, slowBodyBytes), n%leavings)
	}
	words := s.o.Trouble.Faults[n%len(s.o.Trouble.Faults)]
	mix.Stream = n/len(s.o.Trouble.Faults)%2 == 0
	if _, err := nc.Write(asking(mix, "instant,"+words).Request(shape, key, slowBodyBytes)); err != nil {
		return 0, err
	}
	return readWhole(nc)
}

// asking makes the mix ask the mock for a scenario of its own.
func asking(m openloop.Mix, words string) *openloop.Mix {
	query := "?mock=" + url.QueryEscape(words)
	m.ChatPath, m.MessagesPath = "/openai/v1/chat/completions"+query, "/anthropic/v1/messages"+query
	return &m
}

// beSlow sends a request in pieces and reads the answer at slowRate.
func beSlow(nc net.Conn, request []byte) (int, error) {
	nc.(*net.TCPConn).SetReadBuffer(slowPieceBytes) // else the kernel would be the fast reader
	piece := len(request)/slowPieces + 1
	for len(request) > 0 {
		n := min(piece, len(request))
		if _, err := nc.Write(request[:n]); err != nil {
			return 0, err
		}
		request = request[n:]
		time.Sleep(slowPieceTime)
	}
	return readWhole(slowReader{nc})
}

// A slowReader reads a piece now and then.
type slowReader struct{ r io.Reader }

func (s slowReader) Read(b []byte) (int, error) {
	time.Sleep(slowPieceTime)
	return s.r.Read(b[:min(len(b), slowPieceBytes)])
}

// The ways to leave.
const (
	inHead = iota
	inBody
	waiting
	inAnswer
	leavings
)

var errLeft = fmt.Errorf("soak: the caller left")

// goAway sends a request and leaves on the way, half of the time with a reset.
func goAway(nc net.Conn, request []byte, way int) error {
	head := strings.Index(string(request), "\r\n\r\n")
	send := map[int]int{inHead: head / 2, inBody: head + (len(request)-head)/2}[way]
	if send == 0 {
		send = len(request)
	}
	if _, err := nc.Write(request[:send]); err != nil {
		return err
	}
	time.Sleep(time.Duration(rand.Int64N(int64(leaveTime))))
	if way == inAnswer {
		if _, err := nc.Read(make([]byte, 256)); err != nil {
			return err
		}
	}
	if rand.IntN(2) == 0 {
		nc.(*net.TCPConn).SetLinger(0)
	}
	return errLeft
}

// readWhole reads an answer to its end, as its framing tells it.
func readWhole(r io.Reader) (int, error) {
	answer, err := http.ReadResponse(bufio.NewReaderSize(r, slowPieceBytes), nil)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}
