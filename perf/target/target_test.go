package target

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
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
	if _, err := (Catalog{Keys: keysMax + 1}).Text(); err == nil {
		t.Error("a catalog of too many keys")
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

func TestMetric(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "# HELP go_goroutines x\ngo_goroutines 17\n")
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
	if n, err := (&Target{}).Goroutines(t.Context()); n != -1 || err != nil {
		t.Errorf("without a control listener: %d, %v", n, err)
	}
}
