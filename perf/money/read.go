package money

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"relay/usage"
	"relay/usage/spool"
)

// rowsMax bounds the rows of a data folder; each takes 16 bytes of memory.
const rowsMax = 50_000_000

// spoolFolder is where a data folder holds the spool.
const spoolFolder = "spool"

// Read counts the rows of a data folder: all runs, loops and segments. The
// gateway must have ended. A spool with a part missing has no count.
func Read(dataDir string) (Count, error) {
	return ReadRows(dataDir, func(*spool.Record) {})
}

// ReadRows is Read, and shows each row on the way.
func ReadRows(dataDir string, row func(*spool.Record)) (Count, error) {
	t := teller{
		row:   row,
		count: Count{ByStatus: make(map[int]int64), ByAccount: make(map[string]int64), CostByAccount: make(map[string]int64)},
	}
	runs, err := spool.Runs(filepath.Join(dataDir, spoolFolder))
	if err != nil {
		return Count{}, fmt.Errorf("money: %w", err)
	}
	if len(runs) == 0 {
		return Count{}, fmt.Errorf("money: %s holds no run of a spool", dataDir)
	}
	for _, run := range runs {
		if !run.Sealed {
			t.count.Unsealed++
		}
		for loop := range run.Loops {
			if err := t.stream(run, loop); err != nil {
				return Count{}, fmt.Errorf("money: %w", err)
			}
		}
	}
	t.count.Duplicates = duplicates(t.ids)
	return t.count, nil
}

// A teller counts the streams of a spool one after the other.
type teller struct {
	row   func(*spool.Record)
	count Count
	ids   [][16]byte // of all rows

	// Of the stream being read.
	open map[[16]byte]bool // admitted, without a row
	rows uint64            // row_seq of the last row
}

// stream counts one loop of a run.
func (t *teller) stream(run spool.Run, loop int) error {
	r, err := spool.OpenReader(run, loop, 0) // what retention has deleted shows as a gap
	if err != nil {
		return err
	}
	defer r.Close()
	t.open, t.rows = make(map[[16]byte]bool), 0
	for {
		f, err := r.Next()
		if err == io.EOF {
			break
		}
		var gap *spool.GapError
		if errors.As(err, &gap) && gap.Deleted {
			return fmt.Errorf("%w: the spool had to hold more than the %d MiB that it keeps", err, spool.KeepBytesDefault>>20)
		}
		if err != nil {
			return err
		}
		if err := t.take(r, f); err != nil {
			return fmt.Errorf("run %s loop %d: %w", run.ID, loop, err)
		}
	}
	t.count.Unended += int64(len(t.open))
	return nil
}

func (t *teller) take(r *spool.Reader, f spool.Frame) error {
	switch f.Kind {
	case spool.SealedFrame:
		seal, err := spool.DecodeSeal(f.Payload)
		if err == nil && seal.Rows != t.rows {
			err = fmt.Errorf("the seal tells of %d rows, there are %d", seal.Rows, t.rows)
		}
		return err
	case spool.AdmittedFrame, spool.RowFrame:
	default:
		return nil
	}
	record, err := r.Decode(f)
	if err != nil {
		return err
	}
	if f.Kind == spool.AdmittedFrame {
		t.open[record.Event.RequestID] = true
		return nil
	}
	if record.RowSeq != t.rows+1 {
		return fmt.Errorf("row %d follows row %d", record.RowSeq, t.rows)
	}
	if len(t.ids) >= rowsMax {
		return fmt.Errorf("more than %d rows", rowsMax)
	}
	t.rows++
	t.add(&record)
	return nil
}

// add counts a row.
func (t *teller) add(record *spool.Record) {
	c, e := &t.count, &record.Event
	delete(t.open, e.RequestID)
	t.ids = append(t.ids, e.RequestID)
	c.Rows++
	c.ByStatus[e.Status]++
	c.ByAccount[e.Account]++
	c.Cost += e.Cost.Total
	c.CostByAccount[e.Account] += e.Cost.Total
	if e.Cost != due(e) {
		c.Mispriced++
	}
	if e.Outcome == usage.Interrupted {
		c.Interrupted++
		c.Unended++
	}
	t.row(record)
}

// due is the cost that a row has to have. Where nothing is counted nothing is
// paid; only an interrupted one is paid as it was admitted.
func due(e *usage.Event) usage.Cost {
	if e.Source == usage.NoTokens && e.Outcome != usage.Interrupted {
		return usage.Cost{}
	}
	return usage.Charge(&e.Tokens, &e.Price)
}

// duplicates is how many ids are there besides the distinct ones. It sorts them.
func duplicates(ids [][16]byte) int64 {
	slices.SortFunc(ids, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
	return int64(len(ids) - len(slices.Compact(ids)))
}
