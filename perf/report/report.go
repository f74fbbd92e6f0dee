package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"relay/perf/machine"
)

// Table writes a Markdown table.
func Table(w io.Writer, head []string, rows [][]string) error {
	rule := make([]string, len(head))
	for i := range rule {
		rule[i] = "---"
	}
	for _, row := range append([][]string{head, rule}, rows...) {
		if _, err := fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | ")); err != nil {
			return fmt.Errorf("report: write a table: %w", err)
		}
	}
	return nil
}

// A Spread is the median of some values and their range.
type Spread struct {
	Median, Low, High float64
	Values            []float64
}

// Of gathers values; a Spread of none is all zero.
func Of(values ...float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Low: sorted[0], High: sorted[n-1], Values: values}
}

// Text is "median [low–high]", with a number of decimals; "–" for no values.
func (s Spread) Text(decimals int) string {
	if len(s.Values) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.*f [%.*f–%.*f]", decimals, s.Median, decimals, s.Low, decimals, s.High)
}

// A File is what is kept of a measurement.
type File struct {
	Command  string
	Taken    time.Time
	Host     machine.Facts
	Settings any
	Results  any
}

// Write keeps a measurement as JSON; an empty path keeps nothing.
func Write(path, command string, settings, results any) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(File{command, time.Now().UTC(), machine.Host(), settings, results}, "", "  ")
	if err != nil {
		return fmt.Errorf("report: encode: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}
