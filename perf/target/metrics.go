package target

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
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
	values, err := t.Metrics(ctx, name)
	if err != nil {
		return 0, err
	}
	v, ok := values[name]
	if !ok {
		return 0, fmt.Errorf("target: %s has no metric %s", t.Name, name)
	}
	return v, nil
}

// Metrics reads metrics without labels, all at once; those that the target does
// not have are left out.
func (t *Target) Metrics(ctx context.Context, names ...string) (map[string]float64, error) {
	answer, err := get(ctx, "http://"+t.Control+"/metrics")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	values := make(map[string]float64)
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if !slices.Contains(names, name) {
			continue
		}
		if values[name], err = strconv.ParseFloat(text, 64); err != nil {
			return nil, fmt.Errorf("target: metric %s of %s: %w", name, t.Name, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("target: metrics of %s: %w", t.Name, err)
	}
	return values, nil
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
