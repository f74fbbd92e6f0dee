package target

import (
	"bufio"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"relay/perf/mockhost"
	"relay/perf/openloop"
)

// TestPlainProxies starts the proxies that are installed; the others must say
// that they are missing.
func TestPlainProxies(t *testing.T) {
	mock, err := mockhost.Start(mockhost.Options{Scenario: "instant"})
	if err != nil {
		t.Fatal(err)
	}
	defer mock.Close()
	for name, begin := range map[string]func(context.Context, int, string) (*Target, error){
		"nginx":   Nginx,
		"haproxy": func(ctx context.Context, n int, addr string) (*Target, error) { return HAProxy(ctx, n, addr) },
	} {
		t.Run(name, func(t *testing.T) {
			_, lookErr := exec.LookPath(name)
			got, err := begin(t.Context(), 2, mock.Addr())
			var absent *Missing
			if lookErr != nil {
				if !errors.As(err, &absent) {
					t.Fatalf("%v, want a Missing error", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			mix := openloop.Mix{Host: got.Addr, ChatModel: "gpt-mock", MessagesModel: "claude-mock"}
			nc, err := net.Dial("tcp", got.Addr)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			for range 2 { // keep-alive
				if status, err := Exchange(nc, mix.Request(openloop.Messages, "", 1000)); status != 200 || err != nil {
					t.Fatalf("status %d, %v", status, err)
				}
			}
			if !Alive(nc) {
				t.Error("the idle connection counts as closed")
			}
			if u, err := got.Usage(); err != nil || u.RSS == 0 {
				t.Errorf("usage %+v, %v", u, err)
			}
			dir := got.dir
			got.Close()
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("folder %s is left behind: %v", dir, err)
			}
			if ended, _ := got.Ended(); !ended {
				t.Error("still running")
			}
		})
	}
}

// TestTLS reaches the mock by TLS, trusting the certificate that was made.
func TestTLS(t *testing.T) {
	if _, err := exec.LookPath("haproxy"); err != nil {
		_, _, err := TLS(t.Context(), 1, "127.0.0.1:1")
		var absent *Missing
		if !errors.As(err, &absent) {
			t.Errorf("%v, want a Missing error", err)
		}
		return
	}
	mock, err := mockhost.Start(mockhost.Options{Scenario: "instant"})
	if err != nil {
		t.Fatal(err)
	}
	defer mock.Close()
	front, trusted, err := TLS(t.Context(), 1, mock.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer front.Close()
	text, err := os.ReadFile(trusted)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	nc, err := tls.Dial("tcp", front.Addr, &tls.Config{RootCAs: roots})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	mix := openloop.Mix{Host: front.Addr, ChatModel: "gpt-mock", MessagesModel: "claude-mock"}
	if status, err := Exchange(nc, mix.Request(openloop.Chat, "", 1000)); status != 200 || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
}

func TestCatalog(t *testing.T) {
	text, err := Catalog{Mock: "http://mock:1", Keys: 5, Policies: 2}.Text()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`base_url: "http://mock:1/v1"`, "name: app-4,", "account: team-4, policy: policy-0}", "{name: policy-1,"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if text, err = (Catalog{Limits: "{meter: requests, amount: 5, window: 1s}"}).Text(); err != nil || !strings.Contains(string(text), "limits: [{meter: requests, amount: 5, window: 1s}]}") || strings.Contains(string(text), LimitsUsual) {
		t.Errorf("%v, limits of its own in\n%s", err, text)
	}
	if _, err := (Catalog{Keys: keysMax + 1}).Text(); err == nil {
		t.Error("a catalog of too many keys")
	}
}

// TestStores starts the stores that are installed; the others must say that they
// are missing.
func TestStores(t *testing.T) {
	for _, program := range []string{ProgramRedis, ProgramValkey, ProgramDragonfly} {
		t.Run(program, func(t *testing.T) {
			_, lookErr := exec.LookPath(program)
			got, err := Store(t.Context(), program)
			var absent *Missing
			if lookErr != nil {
				if !errors.As(err, &absent) {
					t.Fatalf("%v, want a Missing error", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			before, err := ReadStoreStats(got.Addr)
			if err != nil {
				t.Fatal(err)
			}
			nc, err := net.Dial("tcp", got.Addr)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			nc.SetDeadline(time.Now().Add(10 * time.Second))
			const script = "local n = 0 for i = 1, 20000000 do n = n + i end redis.call('SET', KEYS[1], 1) return 'done'"
			in := bufio.NewReader(nc)
			fmt.Fprintf(nc, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%d\r\n%s\r\n", len(script), script)
			for range 2 { // length and hash
				if _, err := in.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			for range 3 {
				fmt.Fprintf(nc, "*4\r\n$7\r\nEVALSHA\r\n$40\r\n%x\r\n$1\r\n1\r\n$3\r\nkey\r\n", sha1.Sum([]byte(script)))
				if reply, err := in.ReadString('\n'); err != nil || reply != "$4\r\n" {
					t.Fatalf("reply %q, %v", reply, err)
				}
				in.ReadString('\n')
			}
			after, err := ReadStoreStats(got.Addr)
			if err != nil {
				t.Fatal(err)
			}
			if after.Evals-before.Evals != 3 || after.Commands-before.Commands < 3 || after.CPU-before.CPU < 10*time.Millisecond {
				t.Errorf("%+v, before it %+v", after, before)
			}
		})
	}
	if _, err := ReadStoreStats("127.0.0.1:1"); err == nil {
		t.Error("a store that is not there tells of itself")
	}
}

func TestAliveSeesTheEnd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if !Alive(nc) {
		t.Error("an open connection counts as closed")
	}
	peer.Close()
	for until := time.Now().Add(time.Second); Alive(nc); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("a closed connection counts as open")
		}
	}
}

func TestStartFailures(t *testing.T) {
	for _, tt := range []struct{ name, script, err string }{
		{"ends at once", "echo no such setting >&2; exit 3", "ended at once: no such setting"},
		{"wrong lines", "echo listening other=1; echo listening another=2; exec sleep 60", "printed no line for inference"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, pipe, err := start(t.Context(), "script", exec.Command("sh", "-c", tt.script))
			if err != nil {
				t.Fatal(err)
			}
			_, err = got.awaitLines(pipe, "inference", "control")
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v, want %q", err, tt.err)
			}
		})
	}
	if _, _, err := start(t.Context(), "nothing", exec.Command("/nonexistent")); err == nil {
		t.Error("a program that is not there was started")
	}
	if _, err := (Setup{}).Start(t.Context(), "envoy"); err == nil || !strings.Contains(err.Error(), "haproxy") {
		t.Errorf("an unknown target: %v", err)
	}
}

func TestTail(t *testing.T) {
	long := strings.Repeat("goroutine 7 [running]\n", 1000)
	for _, tt := range []struct{ name, said, begins string }{
		{"few words", "no such setting\n", "no such setting"},
		{"a crash", "listening\npanic: out of cheese\n" + long, "panic: out of cheese\ngoroutine 7"},
		{"many words", "first\n" + long + "the end", ""},
	} {
		var kept tail
		kept.Write([]byte(tt.said))
		got := kept.String()
		if len(got) > outputTold || !strings.HasPrefix(got, tt.begins) || tt.begins == "" && !strings.HasSuffix(got, "the end") {
			t.Errorf("%s: %.200q", tt.name, got)
		}
	}
}

func TestQuantile(t *testing.T) {
	h := Histogram{{1, 0}, {2, 50}, {4, 100}, {math.Inf(1), 100}}
	for _, tt := range []struct {
		h           Histogram
		share, want float64
	}{
		{h, 0.5, 2}, {h, 0.25, 1.5}, {h, 0.75, 3}, {h, 1, 4}, {nil, 0.5, -1}, {Histogram{{1, 0}, {math.Inf(1), 0}}, 0.5, -1},
		{Histogram{{1, 1}, {math.Inf(1), 100}}, 0.99, 1},
		{h.Add(Histogram{{1, 0}, {2, 40}, {4, 40}, {math.Inf(1), 40}}, -1), 0.5, 2 + 2*20.0/50}, // 10 below 2, 50 to 4
		{h.Add(h, 1), 0.5, 2},
	} {
		if got := tt.h.Quantile(tt.share); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%v of %v is %v, want %v", tt.share, tt.h, got, tt.want)
		}
	}
}

func TestMetric(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "# HELP go_goroutines x\ngo_goroutines 17\n"+
			"x_seconds_bucket{le=\"0.001\"} 10\nx_seconds_bucket{le=\"0.002\"} 20\nx_seconds_bucket{le=\"+Inf\"} 21\nx_seconds_sum 1\n")
	})}
	go server.Serve(l)
	defer server.Close()
	got := &Target{Name: "x", Control: l.Addr().String()}
	if n, err := got.Goroutines(t.Context()); n != 17 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := got.Metric(t.Context(), "absent"); err == nil {
		t.Error("a metric that is not there was read")
	}
	if _, err := got.Histogram(t.Context(), "absent"); err == nil {
		t.Error("a histogram that is not there was read")
	}
	h, err := got.Histogram(t.Context(), "x_seconds")
	if want := (Histogram{{0.001, 10}, {0.002, 20}, {math.Inf(1), 21}}); err != nil || !slices.Equal(h, want) {
		t.Errorf("histogram %v, %v", h, err)
	}
	if n, err := (&Target{}).Goroutines(t.Context()); n != -1 || err != nil {
		t.Errorf("without a control listener: %d, %v", n, err)
	}
}
