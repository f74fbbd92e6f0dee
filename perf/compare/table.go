package compare

import (
	"fmt"
	"io"

	"relay/perf/report"
)

// A Row sums up one target: medians and ranges over the rounds that count.
type Row struct {
	Target        string
	Rounds        int // that count
	Excluded      int
	CPUPerRequest report.Spread // microseconds
	Ratio         float64       // of its median to that of the first target; 0 = unknown
	Served        report.Spread // per second
	ErrorShare    report.Spread
	OverheadP50   report.Spread // milliseconds
	OverheadP99   report.Spread
	RSSMB         report.Spread
	Goroutines    int // the most of any round; -1 = unknown
}

// Rows sums up steps by target, in the order in which targets came first.
func Rows(steps []Step) []Row {
	var rows []Row
	values := make(map[string]*[6][]float64)
	at := make(map[string]int)
	for _, s := range steps {
		i, seen := at[s.Target]
		if !seen {
			i = len(rows)
			at[s.Target] = i
			rows = append(rows, Row{Target: s.Target, Goroutines: -1})
			values[s.Target] = new([6][]float64)
		}
		if s.Excluded != "" {
			rows[i].Excluded++
			continue
		}
		rows[i].Rounds++
		rows[i].Goroutines = max(rows[i].Goroutines, s.Goroutines)
		v := values[s.Target]
		for k, x := range [6]float64{s.CPUPerRequestUs, s.Load.ServedRate, s.Load.ErrorShare, s.Load.Overhead.P50, s.Load.Overhead.P99, float64(s.RSSBytes) / 1e6} {
			v[k] = append(v[k], x)
		}
	}
	for i := range rows {
		r, v := &rows[i], values[rows[i].Target]
		r.CPUPerRequest, r.Served, r.ErrorShare = report.Of(v[0]...), report.Of(v[1]...), report.Of(v[2]...)
		r.OverheadP50, r.OverheadP99, r.RSSMB = report.Of(v[3]...), report.Of(v[4]...), report.Of(v[5]...)
		if first := rows[0].CPUPerRequest.Median; first > 0 {
			r.Ratio = r.CPUPerRequest.Median / first
		}
	}
	return rows
}

// Print writes the rows as a table.
func Print(w io.Writer, rows []Row, missing []string) error {
	cells := make([][]string, len(rows))
	for i, r := range rows {
		goroutines := "–"
		if r.Goroutines >= 0 {
			goroutines = fmt.Sprint(r.Goroutines)
		}
		ratio := "–"
		if r.Ratio > 0 {
			ratio = fmt.Sprintf("%.2f", r.Ratio)
		}
		rounds := fmt.Sprint(r.Rounds)
		if r.Excluded > 0 {
			rounds += fmt.Sprintf(" (%d excluded)", r.Excluded)
		}
		cells[i] = []string{
			r.Target, rounds, r.CPUPerRequest.Text(1), ratio, r.Served.Text(0),
			fmt.Sprintf("%.3f", r.ErrorShare.High*100), r.OverheadP50.Text(2), r.OverheadP99.Text(2), r.RSSMB.Text(1), goroutines,
		}
	}
	head := []string{"target", "rounds", "CPU µs/request", "ratio", "served/s", "errors % (worst)", "overhead p50 ms", "overhead p99 ms", "RSS MB", "goroutines"}
	if err := report.Table(w, head, cells); err != nil {
		return err
	}
	for _, line := range missing {
		if _, err := fmt.Fprintln(w, "\n"+line); err != nil {
			return fmt.Errorf("compare: write the table: %w", err)
		}
	}
	return nil
}
