package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/google/uuid"
)

// Oldest, as a position to read from, is the oldest frame that is kept.
const Oldest int64 = -1

// noEnd is the end of a reader without a limit.
const noEnd int64 = -1

// A Reader reads the stream of one loop of one run. It is not safe for use by
// several goroutines.
type Reader struct {
	run      Run
	loop     int
	folder   string
	position int64
	limit    func() int64 // position to stop at; nil: the last whole frame
	end      int64        // what limit said last, or noEnd

	listing listing
	file    *os.File // of the window number opened
	opened  uint64
	buffer  []byte // bytes of that file
	offset  int64  // in the file, of the buffer
}

// A GapError is a part of a stream that cannot be read. The reader has passed
// it: the next call of Next goes on behind it.
type GapError struct {
	Run      uuid.UUID
	Loop     int
	From, To int64 // positions
	Deleted  bool  // by retention; otherwise the bytes are damaged or missing
}

// Error says what is missing and why.
func (e *GapError) Error() string {
	what := "damaged"
	if e.Deleted {
		what = "deleted"
	}
	return fmt.Sprintf("spool: run %s loop %d: positions %d to %d are %s", e.Run, e.Loop, e.From, e.To, what)
}

// OpenReader reads the stream of one loop of a run from a position, which is 0,
// Oldest, or the End of a frame, up to the last whole frame. For the run of
// this process use Spool.Reader, which stops at what is synced: a position
// beyond that may be lost with the power, and must not become a watermark.
func OpenReader(run Run, loop int, from int64) (*Reader, error) {
	r := &Reader{run: run, loop: loop, folder: loopFolder(run.folder, loop), position: from, end: noEnd}
	if err := r.refresh(); err != nil {
		return nil, err
	}
	if from == Oldest {
		r.position = r.listing.carry.start
	}
	return r, nil
}

// Close releases the reader's file.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}

// Position is where the next frame starts.
func (r *Reader) Position() int64 { return r.position }

// Next returns the next frame; its payload is valid until the next call. It
// returns io.EOF at the end of what there is: a later call may find more. A
// *GapError says that something cannot be read and was passed.
func (r *Reader) Next() (Frame, error) {
	r.end = noEnd
	if r.limit != nil {
		if r.end = r.limit(); r.position >= r.end {
			return Frame{}, io.EOF
		}
	}
	f, ok, err := r.find()
	if err == nil && !ok {
		if err = r.refresh(); err == nil {
			f, ok, err = r.find()
		}
	}
	if err == nil && !ok {
		return r.pass()
	}
	if err != nil {
		return Frame{}, err
	}
	return r.take(f), nil
}

// take moves behind the frame at the position.
func (r *Reader) take(f Frame) Frame {
	f.Position, f.End = r.position, r.position+int64(frameBytesMin+len(f.Payload))
	r.position = f.End
	return f
}

// Decode is Decode of the frame's payload, with where it stands filled in.
func (r *Reader) Decode(f Frame) (Record, error) {
	record, err := Decode(f.Payload)
	if err != nil {
		return Record{}, fmt.Errorf("run %s loop %d position %d: %w", r.run.ID, r.loop, f.Position, err)
	}
	record.Run, record.Loop, record.Kind, record.Position, record.End = r.run.ID, r.loop, f.Kind, f.Position, f.End
	return record, nil
}

// refresh lists the folder again.
func (r *Reader) refresh() error {
	l, err := list(r.folder, r.listing.windows)
	if errors.Is(err, fs.ErrNotExist) { // the whole run was deleted
		r.listing = listing{}
		return nil
	}
	if err != nil {
		return err
	}
	r.listing = l
	return nil
}

// find looks for a whole frame at the position: in the segment with the
// highest number first, see the package's words on positions.
func (r *Reader) find() (Frame, bool, error) {
	windows := r.listing.windows
	for i := len(windows) - 1; i >= 0; i-- {
		w := &windows[i]
		if !w.holds(r.position) {
			continue
		}
		f, ok, err := r.frameAt(w, headerBytes+r.position-w.start)
		if ok || err != nil {
			return f, ok, err
		}
	}
	return Frame{}, false, nil
}

// frameAt reads the frame at an offset of a segment. Bytes in the buffer that
// make no frame are read again: they may have been half written.
func (r *Reader) frameAt(w *window, offset int64) (Frame, bool, error) {
	for range 2 {
		b, err := r.bytesAt(w, offset, frameBytesMin)
		if err != nil {
			return Frame{}, false, err
		}
		if n, ok := frameLength(b); ok {
			if b, err = r.bytesAt(w, offset, n); err != nil {
				return Frame{}, false, err
			}
			if f, ok := parseFrame(b); ok {
				return f, true, nil
			}
		}
		r.buffer = r.buffer[:0]
	}
	return Frame{}, false, nil
}

// bytesAt returns n bytes of a segment, or fewer at its end. They are valid
// until the next call.
func (r *Reader) bytesAt(w *window, offset int64, n int) ([]byte, error) {
	if r.file == nil || r.opened != w.number {
		if err := r.Close(); err != nil {
			return nil, fmt.Errorf("spool: %w", err)
		}
		f, err := os.Open(w.path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("spool: %w", err)
		}
		r.file, r.opened, r.buffer = f, w.number, r.buffer[:0]
	}
	from := offset - r.offset
	if from < 0 || from+int64(n) > int64(len(r.buffer)) {
		if r.buffer == nil {
			r.buffer = make([]byte, 0, readBytes)
		}
		m, err := r.file.ReadAt(r.buffer[:readBytes], offset)
		if err != nil && err != io.EOF {
			r.buffer = r.buffer[:0]
			return nil, fmt.Errorf("spool: %w", err)
		}
		if r.end != noEnd { // what is behind it may still change
			m = int(min(int64(m), max(headerBytes+r.end-w.start-offset, 0)))
		}
		r.buffer, r.offset, from = r.buffer[:m], offset, 0
	}
	return r.buffer[from:min(from+int64(n), int64(len(r.buffer)))], nil
}

// pass is called where no frame starts. If there are frames behind the
// position it moves there and says so; otherwise the stream ends here, for now.
func (r *Reader) pass() (Frame, error) {
	gap := &GapError{Run: r.run.ID, Loop: r.loop, From: r.position, To: r.listing.carry.start, Deleted: true}
	if gap.To <= r.position {
		gap.Deleted = false
		var err error
		if gap.To, err = r.resume(); err != nil {
			return Frame{}, err
		}
		if gap.To < 0 && r.end != noEnd {
			gap.To = r.end
		}
		if gap.To < 0 {
			return Frame{}, io.EOF
		}
		// It may have been half written when it was looked at first.
		r.listing.windows = nil
		if err := r.refresh(); err != nil {
			return Frame{}, err
		}
		if f, ok, err := r.find(); err != nil {
			return Frame{}, err
		} else if ok {
			return r.take(f), nil
		}
	}
	r.position = gap.To
	return Frame{}, gap
}

// resume is the first position behind the current one where a frame can be
// read, or -1.
func (r *Reader) resume() (int64, error) {
	best := int64(-1)
	for i := range r.listing.windows {
		w := &r.listing.windows[i]
		if w.start > r.position {
			if best < 0 || w.start < best {
				best = w.start
			}
		}
	}
	for i := range r.listing.windows {
		w := &r.listing.windows[i]
		if w.start > r.position {
			continue
		}
		for p := r.position + 1; best < 0 || p < best; p++ {
			offset := headerBytes + p - w.start
			b, err := r.bytesAt(w, offset, frameBytesMin)
			if err != nil {
				return -1, err
			}
			if len(b) < frameBytesMin {
				break
			}
			n, ok := frameLength(b)
			if !ok {
				continue
			}
			if b, err = r.bytesAt(w, offset, n); err != nil {
				return -1, err
			}
			if _, ok := parseFrame(b); ok {
				best = p
				break
			}
		}
	}
	return best, nil
}
