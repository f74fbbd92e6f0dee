package mockhost

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// statuses posts a request some times and gives what came, 0 for no answer.
func statuses(t *testing.T, s *Server, times int, body string) []int {
	t.Helper()
	var out []int
	for range times {
		answer, err := http.Post(s.URL()+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			out = append(out, 0)
			continue
		}
		_, err = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if err != nil {
			out = append(out, 0)
			continue
		}
		out = append(out, answer.StatusCode)
	}
	return out
}

func TestFlap(t *testing.T) {
	for _, loop := range []bool{false, true} {
		s, err := Start(Options{Scenario: "instant", Loop: loop})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		got := fmt.Sprint(statuses(t, s, 10, `{"model":"m:status=503,flap=2","messages":[]}`))
		if want := "[503 503 200 200 503 503 200 200 503 503]"; got != want {
			t.Errorf("loop %t: %s, want %s", loop, got, want)
		}
	}
}

func TestPrefillRefused(t *testing.T) {
	s, err := Start(Options{Scenario: "instant,prefill-refused", Loop: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	user, prefill := `{"role":"user","content":"a"}`, `{"role":"assistant","content":"b"}`
	for _, tt := range []struct {
		messages string
		status   int
	}{{user, 200}, {user + "," + prefill, 400}, {prefill + "," + user, 200}, {"", 200}} {
		body := `{"model":"m","max_tokens":5,"messages":[` + tt.messages + `]}`
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/v1/messages", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("anthropic-version", "2023-06-01")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != tt.status || tt.status == 400 && !strings.Contains(string(text), `"invalid_request_error"`) {
			t.Errorf("%s: status %d: %s", tt.messages, answer.StatusCode, text)
		}
	}
}

func TestFaultMenu(t *testing.T) {
	s, err := Start(Options{Scenario: "instant,tokens=40", Loop: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := 20 * len(faultMenu)
	statuses(t, s, n, `{"model":"m:fault","stream":true,"messages":[]}`)
	total := uint64(0)
	for _, name := range faultMenu {
		total += s.Stats().Faults[name]
		if s.Stats().Faults[name] != 1 {
			t.Errorf("%s was dealt %d times of %d requests, want once", name, s.Stats().Faults[name], n)
		}
	}
	if total != uint64(len(faultMenu)) {
		t.Errorf("%d faults of %d requests, want 5 %%", total, n)
	}
	got := statuses(t, s, 4, `{"model":"m:fault=100","messages":[]}`)
	if fmt.Sprint(got) != "[429 429 500 503]" {
		t.Errorf("all of them: %v", got)
	}
	for _, words := range []string{"fault=0", "fault=101", "fault=x", "flap=0", "flap"} {
		if _, err := parseScenario(words + ",status=500"); err == nil {
			t.Errorf("%s is accepted", words)
		}
	}
}
