package spool

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"relay/usage"
)

// A Recovery is what was found when a run was closed for an owner that is gone.
type Recovery struct {
	Run         uuid.UUID
	Instance    string
	Rows        uint64 // in the run, the interrupted ones included
	Interrupted uint64 // rows written for exchanges that had none
	CutBytes    int64  // torn ends of segments
	Damage      []GapError
	Quarantined []string // segments whose header is damaged, renamed
	Err         error    // why it is not closed; tried again later
}

// A closer closes runs: it ends every stream with rows for the exchanges that
// have none, and a sealed frame. All of it goes into one new segment per loop,
// which appears whole or not at all, so that a closing that is cut short can
// be done again.
type closer struct {
	by  uuid.UUID // the run of this process
	log *slog.Logger
}

// recoverAll closes all runs in dir whose owner is gone.
func (c *closer) recoverAll(dir string) ([]Recovery, error) {
	runs, err := Runs(dir)
	if err != nil {
		return nil, err
	}
	var done []Recovery
	for _, r := range runs {
		if r.Sealed || r.ID == c.by {
			continue
		}
		lock, err := lockRun(r.folder)
		if errors.Is(err, errLocked) || errors.Is(err, os.ErrNotExist) {
			continue // alive, or deleted just now
		}
		if err != nil {
			done = append(done, Recovery{Run: r.ID, Instance: r.Instance, Err: err})
			continue
		}
		if !exists(filepath.Join(r.folder, sealedName)) && exists(r.folder) { // another process may have been quicker
			done = append(done, c.close(r))
		}
		if err := lock.Close(); err != nil {
			c.log.Error("spool: release lock", "run", r.ID, "error", err)
		}
	}
	return done, nil
}

// close closes one run. The caller holds its lock.
func (c *closer) close(r Run) Recovery {
	rec := Recovery{Run: r.ID, Instance: r.Instance}
	rec.Err = c.closeLoops(r, &rec)
	if rec.Err != nil {
		c.log.Error("spool: run not closed", "run", r.ID, "error", rec.Err)
		return rec
	}
	c.log.Info("spool: run closed", "run", r.ID, "instance", r.Instance, "rows", rec.Rows,
		"interrupted", rec.Interrupted, "cut_bytes", rec.CutBytes, "damaged_parts", len(rec.Damage),
		"quarantined", len(rec.Quarantined))
	return rec
}

func (c *closer) closeLoops(r Run, rec *Recovery) error {
	loops, err := loopFolders(r.folder)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	var streams []*stream
	empty := true
	for _, loop := range loops {
		s, err := c.survey(r, loop, rec)
		if err != nil {
			return err
		}
		streams = append(streams, s)
		empty = empty && s.account.position == 0 && len(rec.Quarantined) == 0
	}
	if empty { // nothing was ever written: there is nothing to keep
		if err := os.RemoveAll(r.folder); err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		return syncFolderOf(r.folder)
	}
	for _, s := range streams {
		if err := c.seal(r, s, rec); err != nil {
			return fmt.Errorf("spool: close loop %d: %w", s.loop, err)
		}
	}
	return writeWhole(filepath.Join(r.folder, sealedName), nil)
}

// A stream is one loop of a run that is being closed.
type stream struct {
	loop    int
	folder  string
	account *account
	last    uint64 // highest segment number
	sealed  bool   // by an earlier closing
}

// survey reads a stream from end to end, puts segments without a header aside,
// and cuts a torn end.
func (c *closer) survey(r Run, loop int, rec *Recovery) (*stream, error) {
	s := &stream{loop: loop, folder: loopFolder(r.folder, loop)}
	if err := c.tidy(s.folder, rec); err != nil {
		return nil, err
	}
	var err error
	if s.account, err = loadAccount(s.folder); err != nil {
		return nil, err
	}
	reader, err := OpenReader(r, loop, s.account.position)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	s.last = max(reader.listing.last, reader.listing.carry.number)
	for {
		f, err := reader.Next()
		if err == io.EOF {
			break
		}
		var gap *GapError
		if errors.As(err, &gap) {
			c.log.Error("spool: a part of the stream cannot be read", "error", gap)
			rec.Damage = append(rec.Damage, *gap)
			continue
		}
		if err != nil {
			return nil, err
		}
		s.sealed = f.Kind == SealedFrame
		if err := s.account.add(f); err != nil { // the checksum is right: not what this program writes
			c.log.Error("spool: frame without an event", "run", r.ID, "loop", loop, "error", err)
			rec.Damage = append(rec.Damage, GapError{Run: r.ID, Loop: loop, From: f.Position, To: f.End})
		}
	}
	s.account.position = reader.Position()
	if !s.sealed {
		return s, cutTorn(reader, rec)
	}
	return s, nil
}

// tidy removes what was being made when the owner died, and quarantines
// segments whose header is damaged.
func (c *closer) tidy(folder string, rec *Recovery) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), temporarySuffix) {
			if err := removeGone(filepath.Join(folder, e.Name())); err != nil {
				return fmt.Errorf("spool: %w", err)
			}
		}
	}
	l, err := list(folder, nil)
	if err != nil {
		return err
	}
	for _, path := range l.broken {
		about, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		if about.Size() <= headerBytes { // not even one frame
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("spool: %w", err)
			}
			continue
		}
		bad := strings.TrimSuffix(path, segmentSuffix) + badSuffix
		if err := os.Rename(path, bad); err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		c.log.Error("spool: segment without a sound header put aside", "segment", bad)
		rec.Quarantined = append(rec.Quarantined, bad)
	}
	return syncFolder(folder)
}

// cutTorn cuts the last segment behind the last whole frame of the stream.
func cutTorn(r *Reader, rec *Recovery) error {
	windows := r.listing.windows
	if len(windows) == 0 {
		return nil
	}
	w := windows[len(windows)-1]
	bytes := headerBytes + max(r.position-w.start, 0)
	if w.bytes <= bytes {
		return nil
	}
	f, err := os.OpenFile(w.path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	if err := errors.Join(f.Truncate(bytes), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("spool: cut %s: %w", w.path, err)
	}
	rec.CutBytes += w.bytes - bytes
	return nil
}

// seal writes the last segment of a stream.
func (c *closer) seal(r Run, s *stream, rec *Recovery) error {
	a := s.account
	if s.sealed {
		rec.Rows += a.rows
		return nil
	}
	b := make([]byte, headerBytes)
	h := header{loop: uint32(s.loop), run: r.ID, number: s.last + 1, start: a.position}
	h.put(b)
	items := a.items()
	for _, item := range items {
		record, err := Decode(item.payload)
		if err != nil {
			return err
		}
		a.rows++
		interrupt(&record.Event, a.lastNs)
		at := len(b)
		b = appendEvent(beginFrame(b, RowFrame), &record.Event, a.rows, record.Instance)
		endFrame(b, at)
	}
	at := len(b)
	b = appendSeal(beginFrame(b, SealedFrame), &Seal{
		Rows: a.rows, UnixNs: time.Now().UnixNano(), ClosedBy: c.by, Interrupted: uint64(len(items)),
	})
	endFrame(b, at)
	rec.Rows += a.rows
	rec.Interrupted += uint64(len(items))
	return writeWhole(filepath.Join(s.folder, segmentName(s.last+1)), b)
}

// interrupt makes the row of an exchange whose process died out of its
// admission. Its cost is that of the estimate. It ends at the last sign of
// life of its loop, which does not depend on when it is written.
func interrupt(e *usage.Event, lastNs int64) {
	e.EndUnixNs = max(lastNs, e.StartUnixNs)
	e.Outcome = usage.Interrupted
	e.Status = 0
	e.Source = usage.NoTokens
	if e.Tokens != (usage.Tokens{}) {
		e.Source = usage.Estimated
	}
	e.Cost = usage.Charge(&e.Tokens, &e.Price)
}
