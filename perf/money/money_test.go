package money

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"relay/store/catalog"
	"relay/usage"
	"relay/usage/spool"
)

var price = catalog.Price{Input: 1_250_000, Output: 10_000_000}

// sample is the row of request n: 40 input and 7 output tokens, which cost
// 120,000 nano-USD.
func sample(n, status int) *usage.Event {
	e := &usage.Event{
		RequestID: [16]byte{byte(n), byte(n >> 8), 15: 1}, StartUnixNs: 1, EndUnixNs: 2,
		Account: []string{"team-0", "team-1"}[n%2], Key: "app", Model: "gpt-mock", Status: status, Price: price,
	}
	if status == 200 {
		e.Tokens, e.Source = usage.Tokens{Input: 40, Output: 7}, usage.Reported
		e.Cost = usage.Charge(&e.Tokens, &e.Price)
	} else {
		e.Outcome = usage.Failed
	}
	return e
}

// openIn opens the spool of a data folder; it ends with the test at the latest.
func openIn(t *testing.T, dir string, loops int) *spool.Spool {
	t.Helper()
	s, err := spool.Open(spool.Options{
		Dir: filepath.Join(dir, "spool"), Loops: loops, Sync: time.Millisecond, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func put(t *testing.T, s *spool.Spool, loop int, e *usage.Event) {
	t.Helper()
	if !s.Writer(loop).Admitted(e) || !s.Writer(loop).Row(e) {
		t.Fatal("the spool takes no record")
	}
}

func read(t *testing.T, dir string) Count {
	t.Helper()
	c, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestReadAndCheck: two runs of two loops, then one thing wrong with them.
func TestReadAndCheck(t *testing.T) {
	const each = 25 // rows of each loop of each run, of which the first has status 502
	whole := Seen{ByStatus: map[int]int64{200: 96, 503: 2, 502: 4}}
	for _, tt := range []struct {
		name  string
		plant func(t *testing.T, s *spool.Spool)
		seen  Seen
		want  string // "" = it adds up
	}{
		{"whole", nil, whole, ""},
		{"an answer without a row", nil, Seen{ByStatus: map[int]int64{200: 97, 502: 4}}, "97 answers with status 200 have 96 rows: 1 are missing"},
		{"an answer that may have no row", nil, Seen{ByStatus: map[int]int64{200: 96, 502: 4, 401: 3, 529: 7}}, ""},
		{"an error of the upstream without a row", nil, Seen{ByStatus: map[int]int64{200: 96, 502: 5}}, "5 answers with status 502 have 4 rows"},
		{"a row without an answer", nil, Seen{ByStatus: map[int]int64{200: 95, 502: 4}}, "1 rows are of no answer and 0 requests were lost: 1 are too many; status 200 has 96 rows and 95 answers"},
		{"a row of a lost request", nil, Seen{ByStatus: map[int]int64{200: 95, 502: 4}, Lost: 1}, ""},
		{"more rows than lost requests", nil, Seen{ByStatus: map[int]int64{200: 95, 502: 2}, Lost: 2}, "3 rows are of no answer and 2 requests were lost"},
		{"a caller who left", func(t *testing.T, s *spool.Spool) { put(t, s, 0, sample(500, 0)) }, whole, "status 0 has 1 rows and 0 answers"},
		{"a lost one who left", func(t *testing.T, s *spool.Spool) { put(t, s, 0, sample(500, 0)) }, Seen{ByStatus: whole.ByStatus, Lost: 1}, ""},
		{"a duplicate in the loop", func(t *testing.T, s *spool.Spool) { put(t, s, 0, sample(501, 200)); put(t, s, 0, sample(501, 200)) }, whole, "1 rows have the request id of an earlier row"},
		{"a duplicate in another loop", func(t *testing.T, s *spool.Spool) { put(t, s, 0, sample(501, 200)); put(t, s, 1, sample(501, 200)) }, whole, "1 rows have the request id"},
		{"an admitted one without an end", func(t *testing.T, s *spool.Spool) { s.Writer(1).Admitted(sample(502, 200)) }, Seen{ByStatus: whole.ByStatus, Lost: 9}, "1 admitted requests have no row of their end (1 of them one written"},
		{"a wrong cost", func(t *testing.T, s *spool.Spool) {
			e := sample(503, 200)
			e.Cost.Total++
			put(t, s, 0, e)
		}, whole, "1 rows do not cost"},
		{"a cost of nothing", func(t *testing.T, s *spool.Spool) {
			e := sample(503, 502)
			e.Cost.Total = 5
			put(t, s, 0, e)
		}, whole, "1 rows do not cost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for run := range 2 {
				s := openIn(t, dir, 2)
				for loop := range 2 {
					for i := range each {
						status := 200
						if i == 0 {
							status = 502
						}
						put(t, s, loop, sample((run*2+loop)*each+i, status))
					}
				}
				if tt.plant != nil && run == 1 {
					tt.plant(t, s)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			c := read(t, dir)
			if got := Check(c, tt.seen); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q: %+v", got, tt.want, c)
			}
			if tt.plant == nil && (c.Rows != 100 || c.Cost != 96*120_000 || c.ByAccount["team-0"]+c.ByAccount["team-1"] != 100 ||
				c.CostByAccount["team-0"]+c.CostByAccount["team-1"] != c.Cost || c.ByStatus[502] != 4 || c.Unsealed != 0) {
				t.Errorf("count %+v", c)
			}
		})
	}
}

// TestKilled: a run that nobody has closed.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, 1)
	put(t, s, 0, sample(1, 200))
	for n := range 3 {
		s.Writer(0).Admitted(sample(10+n, 200))
	}
	if c := read(t, dir); c.Rows != 1 || c.Unended != 3 || c.Interrupted != 0 || c.Unsealed != 1 {
		t.Errorf("before its run is closed: %+v", c)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c := read(t, dir)
	if c.Rows != 4 || c.Unended != 3 || c.Interrupted != 3 || c.ByStatus[0] != 3 || c.Unsealed != 0 || c.Mispriced != 0 {
		t.Errorf("behind: %+v", c)
	}
}

func TestReadRows(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir, 2)
	put(t, s, 0, sample(2, 200))
	put(t, s, 1, sample(3, 200))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	accounts := ""
	if _, err := ReadRows(dir, func(r *spool.Record) { accounts += r.Event.Account }); err != nil || accounts != "team-0team-1" {
		t.Errorf("%q, %v", accounts, err)
	}
}

// TestNoCount: where rows may be missing there is no count.
func TestNoCount(t *testing.T) {
	if _, err := Read(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no run") {
		t.Errorf("an empty folder: %v", err)
	}
	dir := t.TempDir()
	s := openIn(t, dir, 1)
	for n := range 20 {
		put(t, s, 0, sample(n, 200))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "spool", "*", "0", "*.seg"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("segments %v, %v", segments, err)
	}
	whole, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		spoil func([]byte) []byte
	}{
		{"damaged", func(b []byte) []byte { b[len(b)/2]++; return b }},
		{"cut", func(b []byte) []byte { return b[:len(b)/2] }},
	} {
		if err := os.WriteFile(segments[0], tt.spoil(append([]byte(nil), whole...)), 0o600); err != nil {
			t.Fatal(err)
		}
		var gap *spool.GapError
		if _, err := Read(dir); !errors.As(err, &gap) {
			t.Errorf("%s: %v, want a gap", tt.name, err)
		}
	}
}
