package spool

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

const (
	lockName     = "LOCK"
	identityName = "run.json"
	sealedName   = "SEALED"
	newPrefix    = ".new-" // a run that is being made: its lock is taken before its name is given
)

// A Run is the spool of one process, alive or gone.
type Run struct {
	ID       uuid.UUID
	Instance string // RELAY_INSTANCE_ID
	Loops    int
	Started  time.Time
	Sealed   bool // complete: nothing is ever added
	folder   string
}

// identity is the content of run.json, for people and for Runs.
type identity struct {
	Format   int       `json:"format"`
	Run      uuid.UUID `json:"run"`
	Instance string    `json:"instance"`
	Loops    int       `json:"loops"`
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
}

// newRun names a run. It is on no disk yet.
func newRun(dir, instance string, loops int) (Run, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Run{}, fmt.Errorf("spool: run id: %w", err)
	}
	return Run{ID: id, Instance: instance, Loops: loops, Started: time.Now(), folder: filepath.Join(dir, id.String())}, nil
}

// found makes the folder of a new run, with the folders of its loops, and holds
// its lock. The name appears only once the lock is held, so that nobody takes
// the run for one whose owner is gone.
func (r *Run) found() (*os.File, error) {
	dir := filepath.Dir(r.folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	made := filepath.Join(dir, newPrefix+r.ID.String())
	if err := os.Mkdir(made, 0o700); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	lock, err := lockRun(made)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(made))
	}
	if err := r.furnish(made); err != nil {
		return nil, errors.Join(fmt.Errorf("spool: make run %s: %w", r.ID, err), lock.Close(), os.RemoveAll(made))
	}
	return lock, nil
}

// furnish fills the folder of a new run and gives it its name.
func (r *Run) furnish(made string) error {
	text, err := json.Marshal(identity{
		Format: formatVersion, Run: r.ID, Instance: r.Instance, Loops: r.Loops, PID: os.Getpid(), Started: r.Started.UTC(),
	})
	if err != nil {
		return err
	}
	for loop := range r.Loops {
		if err := os.Mkdir(loopFolder(made, loop), 0o700); err != nil {
			return err
		}
	}
	if err := writeWhole(filepath.Join(made, identityName), append(text, '\n')); err != nil {
		return err
	}
	if err := os.Rename(made, r.folder); err != nil {
		return err
	}
	return syncFolderOf(r.folder)
}

// errLocked says that a run has an owner.
var errLocked = errors.New("spool: run is locked")

// lockRun takes the lock of a run, or fails with errLocked at once. Closing
// the file, or the end of the process, releases it.
func lockRun(folder string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(folder, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EINTR {
			break
		}
	}
	if err == nil {
		return f, nil
	}
	if err == unix.EWOULDBLOCK {
		err = errLocked
	} else {
		err = fmt.Errorf("spool: lock %s: %w", f.Name(), err)
	}
	return nil, errors.Join(err, f.Close())
}

// Runs lists the runs in a spool's folder, oldest first. A run whose identity
// cannot be read is listed without it.
func Runs(dir string) ([]Run, error) {
	entries, err := os.ReadDir(dir) // by name: UUIDv7 sorts by time
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	var runs []Run
	for _, e := range entries {
		id, err := uuid.Parse(e.Name())
		if err != nil || !e.IsDir() || id.String() != e.Name() {
			continue
		}
		r := Run{ID: id, folder: filepath.Join(dir, e.Name())}
		r.Sealed = exists(filepath.Join(r.folder, sealedName))
		if who, err := readIdentity(r.folder); err == nil {
			r.Instance, r.Loops, r.Started = who.Instance, who.Loops, who.Started
		}
		if loops, err := loopFolders(r.folder); err == nil && len(loops) > 0 {
			r.Loops = max(r.Loops, loops[len(loops)-1]+1)
		}
		runs = append(runs, r)
	}
	return runs, nil
}

func readIdentity(folder string) (identity, error) {
	f, err := os.Open(filepath.Join(folder, identityName))
	if err != nil {
		return identity{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, identityBytes))
	if err != nil {
		return identity{}, err
	}
	var who identity
	if err := json.Unmarshal(text, &who); err != nil {
		return identity{}, err
	}
	who.Loops = min(max(who.Loops, 0), LoopsMax)
	return who, nil
}

// removeHalfMade removes the folders of starts that did not get to their name.
func removeHalfMade(dir string, now time.Time) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), newPrefix) {
			continue
		}
		about, err := e.Info()
		if err != nil || now.Sub(about.ModTime()) < staleFolder {
			continue
		}
		folder := filepath.Join(dir, e.Name())
		lock, err := lockRun(folder)
		if err != nil {
			continue // somebody is at it
		}
		errs = append(errs, os.RemoveAll(folder), lock.Close())
	}
	return errors.Join(errs...)
}
