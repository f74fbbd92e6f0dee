package target

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"relay/perf/mockhost"
)

const askTimeout = 5 * time.Second

// Goroutines asks the control listener; -1 when there is none.
func (t *Target) Goroutines(ctx context.Context) (int, error) {
	if t.Control == "" {
		return -1, nil
	}
	v, err := t.Metric(ctx, "go_goroutines")
	return int(v), err
}

// Metric reads one metric without labels from the control listener.
func (t *Target) Metric(ctx context.Context, name string) (float64, error) {
	body, err := get(ctx, "http://"+t.Control+"/metrics")
	if err != nil {
		return 0, err
	}
	defer body.Body.Close()
	lines := bufio.NewScanner(body.Body)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(rest, 64)
		}
	}
	return 0, fmt.Errorf("target: %s has no metric %s: %w", t.Name, name, lines.Err())
}

// MockStats reads the totals of a mock that runs as a process.
func (t *Target) MockStats(ctx context.Context) (mockhost.Stats, error) {
	var s mockhost.Stats
	answer, err := get(ctx, "http://"+t.Addr+"/_mock/stats")
	if err != nil {
		return s, err
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&s); err != nil {
		return s, fmt.Errorf("target: stats of the mock: %w", err)
	}
	return s, nil
}

var asking = &http.Client{Timeout: askTimeout} // covers the body too

func get(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("target: ask %s: %w", url, err)
	}
	answer, err := asking.Do(request)
	if err != nil {
		return nil, fmt.Errorf("target: ask %s: %w", url, err)
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, fmt.Errorf("target: ask %s: status %d", url, answer.StatusCode)
	}
	return answer, nil
}
