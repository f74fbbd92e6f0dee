package openloop

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"relay/perf/mockhost"
)

func TestBodyBytes(t *testing.T) {
	var m Mix
	r := rand.New(rand.NewPCG(1, 2))
	sizes := make([]int, 100_000)
	for i := range sizes {
		sizes[i] = m.BodyBytes(r)
	}
	slices.Sort(sizes)
	if p50 := sizes[len(sizes)/2]; p50 < 2000 || p50 > 2100 {
		t.Errorf("p50 %d, want about 2048", p50)
	}
	if p99 := sizes[len(sizes)*99/100]; p99 < 19000 || p99 > 22000 {
		t.Errorf("p99 %d, want about 20480", p99)
	}
}

func TestRequest(t *testing.T) {
	m := Mix{Host: "h", ChatModel: "gpt-mock", MessagesModel: "claude-mock", Stream: true}
	for kind, want := range map[Kind]string{Chat: "Authorization: Bearer k", Messages: "x-api-key: k"} {
		request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(m.Request(kind, "k", 3000)))))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(request.Body)
		if err != nil || len(body) != 3000 || request.ContentLength != 3000 {
			t.Errorf("%v: %d bytes of body, %v", kind, len(body), err)
		}
		if !strings.Contains(string(m.Request(kind, "k", 3000)), want) {
			t.Errorf("%v: no %q", kind, want)
		}
	}
}

func TestReadAnswer(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     answer
		err      error
	}{
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-Mock-Duration-Us: 50123\r\n\r\nabc", answer{200, 50123, false, false}, nil},
		{"chunks", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nt: 1\r\n\r\n", answer{200, -1, false, false}, nil},
		{"close", "HTTP/1.1 503 No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", answer{503, -1, true, false}, nil},
		{"until the end", "HTTP/1.1 200 OK\r\n\r\nabc", answer{200, -1, true, false}, nil},
		{"interim", "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", answer{204, -1, false, false}, nil},
		{"cut head", "HTTP/1.1 200 OK\r\nContent-", answer{200, -1, false, false}, io.ErrUnexpectedEOF},
		{"cut body", "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab", answer{200, -1, false, false}, io.ErrUnexpectedEOF},
		{"cut chunks", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n", answer{200, -1, false, false}, io.ErrUnexpectedEOF},
		{"no chunk size", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n", answer{200, -1, false, false}, errAnswer},
		{"no status line", "oh no no no no\r\n\r\n", answer{0, -1, false, false}, errAnswer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readAnswer(bufio.NewReader(strings.NewReader(tt.in)), new(stream))
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("got %+v, %v, want %+v, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

func TestRun(t *testing.T) {
	mock, err := mockhost.Start(mockhost.Options{Scenario: "instant,first=5ms", Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	defer mock.Close()
	for _, stream := range []bool{false, true} {
		got, err := Run(context.Background(), Options{
			Addr: mock.Addr(), Rate: 400, WarmUp: 100 * time.Millisecond, Hold: 500 * time.Millisecond,
			Mix: Mix{Host: "h", Keys: []string{"k"}, ChatModel: "gpt-mock", MessagesModel: "claude-mock", Stream: stream},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got.Offered != 200 || got.Answered != 200 || got.ByStatus[200] != 200 || got.ErrorShare != 0 || len(got.Failures) != 0 {
			t.Errorf("stream %v: %+v", stream, got)
		}
		for name, k := range got.ByKind {
			if k.Sent != 100 || k.Total.P50 < 5 || k.Overhead.Count != 100 || k.Overhead.P50 > k.Total.P50 {
				t.Errorf("stream %v: %s %+v", stream, name, k)
			}
		}
	}
}

// stall is a target that answers everything at once, but not while it sleeps.
func stall(t *testing.T, asleep, length time.Duration) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var first atomic.Int64
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				in := bufio.NewReader(nc)
				for {
					request, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					io.Copy(io.Discard, request.Body)
					first.CompareAndSwap(0, time.Now().UnixNano())
					since := time.Since(time.Unix(0, first.Load()))
					if since >= asleep && since < asleep+length {
						time.Sleep(asleep + length - since)
					}
					io.WriteString(nc, "HTTP/1.1 200 OK\r\nx-mock-duration-us: 0\r\ncontent-length: 0\r\n\r\n")
				}
			}()
		}
	}()
	return l.Addr().String()
}

// TestStallShowsAsLatency: with 4 connections and a target that sleeps for half
// of the hold, half of the requests must show it, sent or not.
func TestStallShowsAsLatency(t *testing.T) {
	addr := stall(t, 200*time.Millisecond, 400*time.Millisecond)
	got, err := Run(context.Background(), Options{
		Addr: addr, Rate: 500, Hold: 800 * time.Millisecond, Connections: 4, ConnectionsMax: 4,
		Mix: Mix{Host: "h", ChatModel: "a", MessagesModel: "b", BodyBytesExact: 300},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Offered != 400 || got.Answered != 400 {
		t.Fatalf("offered %d answered %d, want 400 each", got.Offered, got.Answered)
	}
	chat := got.ByKind["chat"].Total
	if chat.Max < 350 {
		t.Errorf("longest latency %v ms, want about 400", chat.Max)
	}
	if chat.P90 < 200 { // latencies fall evenly from 400 to 0 ms over half of the requests
		t.Errorf("p90 %v ms, want about 320: waiting requests were left out", chat.P90)
	}
}

func TestFailuresCount(t *testing.T) {
	mock, err := mockhost.Start(mockhost.Options{Scenario: "instant"})
	if err != nil {
		t.Fatal(err)
	}
	defer mock.Close()
	got, err := Run(context.Background(), Options{
		Addr: mock.Addr(), Rate: 200, Hold: 200 * time.Millisecond, Drain: 3 * time.Second,
		Mix: Mix{Host: "h", ChatModel: "m:reset", MessagesModel: "m:status=529"},
	})
	if err != nil {
		t.Fatal(err)
	}
	failed := int64(0)
	for _, n := range got.Failures {
		failed += n
	}
	if failed != 20 || got.ByStatus[529] != 20 || got.ErrorShare != 1 {
		t.Errorf("%d failed, %v, share %v: %+v", failed, got.ByStatus, got.ErrorShare, got)
	}
	got, err = Run(context.Background(), Options{
		Addr: mock.Addr(), Rate: 100, Hold: 200 * time.Millisecond, Drain: 3 * time.Second,
		Mix: Mix{Host: "h", ChatModel: "m:silent", MessagesModel: "m"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Unanswered != 10 || got.Answered != 10 {
		t.Errorf("unanswered %d answered %d, want 10 each", got.Unanswered, got.Answered)
	}
}
