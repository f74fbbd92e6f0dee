package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
)

// runBytesMax bounds a result file.
const runBytesMax = 256 << 20

// ReadRun reads a result file of a ladder.
func ReadRun(path string) (*Run, error) {
	if stat, err := os.Stat(path); err == nil && stat.Size() > runBytesMax {
		return nil, fmt.Errorf("report: %s has %d bytes: a result has at most %d", path, stat.Size(), runBytesMax)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	run := new(Run)
	if err := json.Unmarshal(text, run); err != nil {
		return nil, fmt.Errorf("report: %s is no result of a ladder: %w", path, err)
	}
	var kind struct {
		Command string
		Results json.RawMessage
	}
	if err := json.Unmarshal(text, &kind); err == nil && kind.Command != "" && len(run.Scenarios) == 0 {
		return nil, fmt.Errorf("report: %s is no result of a ladder: it has no scenarios; relay-perf %s wrote it", path, kind.Command)
	}
	if run.Profile == "" || len(run.Scenarios) == 0 && run.Failed == "" {
		return nil, fmt.Errorf("report: %s is no result of a ladder: it has no scenarios", path)
	}
	return run, nil
}

// Pool makes one run of several: points of a scenario go together, their rounds
// numbered on. Host and settings are those of the latest.
func Pool(runs ...*Run) (*Run, error) {
	if len(runs) == 0 {
		return nil, errors.New("report: no results")
	}
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b *Run) int { return a.Taken.Compare(b.Taken) })
	last := *runs[len(runs)-1]
	last.Scenarios, last.Missing = nil, nil
	last.Taken = runs[0].Taken
	rounds := 0
	for _, r := range runs {
		if r.Profile != last.Profile {
			return nil, fmt.Errorf("report: results of the profiles %s and %s do not go together", r.Profile, last.Profile)
		}
		if r.Failed != "" {
			last.Failed = r.Failed
		}
		most := 0
		for _, s := range r.Scenarios {
			most = max(most, last.add(s, rounds))
		}
		rounds += most
		for _, line := range r.Missing {
			if !slices.Contains(last.Missing, line) {
				last.Missing = append(last.Missing, line)
			}
		}
	}
	for _, r := range runs {
		if r.Host != last.Host {
			for i := range last.Scenarios {
				last.Scenarios[i].Notes = append(last.Scenarios[i].Notes, noteHosts)
			}
			break
		}
	}
	return &last, nil
}

// noteHosts tells that pooled figures may not be alike.
const noteHosts = "The pooled runs differ in host or commit; the host facts are those of the latest."

// noteSums tells what pooling leaves apart.
const noteSums = "Knee and capacity are those of the latest of the pooled runs, not of all."

// add takes a scenario in, its rounds behind so many others, and gives its own
// number of rounds. Sums are those of the latest run.
func (r *Run) add(s Scenario, behind int) (rounds int) {
	i := slices.IndexFunc(r.Scenarios, func(x Scenario) bool { return x.Name == s.Name })
	if i < 0 {
		i = len(r.Scenarios)
		r.Scenarios = append(r.Scenarios, Scenario{Number: s.Number, Name: s.Name, Asks: s.Asks, CompletedBy: s.CompletedBy})
	}
	into := &r.Scenarios[i]
	for _, p := range s.Points {
		rounds = max(rounds, p.Round)
		p.Round += behind
		into.Points = append(into.Points, p)
	}
	for _, p := range s.Streams {
		rounds = max(rounds, p.Round)
		p.Round += behind
		into.Streams = append(into.Streams, p)
	}
	for _, p := range s.Idle {
		rounds = max(rounds, p.Round)
		p.Round += behind
		into.Idle = append(into.Idle, p)
	}
	if len(s.Summaries) > 0 {
		if len(into.Summaries) > 0 && !slices.Contains(into.Notes, noteSums) {
			into.Notes = append(into.Notes, noteSums)
		}
		into.Summaries = s.Summaries
	}
	for _, note := range s.Notes {
		if !slices.Contains(into.Notes, note) {
			into.Notes = append(into.Notes, note)
		}
	}
	return rounds
}
