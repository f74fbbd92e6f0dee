package baseline

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"relay/perf/mockhost"
)

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestServe(t *testing.T) {
	mock, err := mockhost.Start(mockhost.Options{Scenario: "instant"})
	if err != nil {
		t.Fatal(err)
	}
	defer mock.Close()
	upstream, err := url.Parse(mock.URL())
	if err != nil {
		t.Fatal(err)
	}
	inference, control := listen(t), listen(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, inference, control, upstream) }()
	// Many short streams at once: none may break.
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			answer, err := http.Post("http://"+inference.Addr().String()+"/v1/chat/completions", "application/json",
				strings.NewReader(`{"model":"gpt-mock","stream":true,"messages":[]}`))
			if err != nil {
				t.Error(err)
				return
			}
			defer answer.Body.Close()
			if body, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(body), "[DONE]") {
				t.Errorf("stream %q, %v", body, err)
			}
		})
	}
	wait.Wait()
	answer, err := http.Get("http://" + control.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, _ := io.ReadAll(answer.Body); !strings.Contains(string(body), "\ngo_goroutines ") {
		t.Error("/metrics does not tell the goroutines")
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
