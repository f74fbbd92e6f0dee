package source

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"relay/store/catalog"
)

// Watch reloads on change of the file (also when it is replaced by rename or
// by a symlink swap) and when Reload is called, until ctx ends. Each accepted
// catalog is given to apply, in order, on the goroutine of Watch. It blocks,
// and returns nil. At most one Watch of a File may run.
//
// The directory is watched, because a watched file is lost when it is
// replaced. The file is also looked at every two seconds: changes behind a
// symlink into another directory and on network mounts raise no event.
func (f *File) Watch(ctx context.Context, apply func(*catalog.Tables)) error {
	events, failures, stop := f.watchFolder()
	defer stop()
	poll := time.NewTicker(f.poll)
	defer poll.Stop()
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	defer quiet.Stop()
	var since time.Time // of the first event of a burst; zero = none awaits reading
	why := noticed      // strongest of the burst

	// A change is read after a pause, however it was found: whoever writes in
	// place first empties the file.
	changed := f.changed() // since Open
	for {
		if changed {
			now := time.Now()
			if since.IsZero() {
				since = now
			}
			if now.Sub(since) < settleMax {
				quiet.Reset(settle)
			}
			changed = false
		}
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
			f.reload(asked, apply)
		case <-quiet.C:
			f.reload(why, apply)
			since, why = time.Time{}, noticed
		case <-poll.C:
			if changed = f.changed(); changed {
				why = max(why, polled)
			}
		case event := <-events:
			if changed = event.Op != fsnotify.Chmod; changed { // polling sees a new mode
				why = max(why, f.reasonOf(event.Name))
			}
		case <-failures: // events were lost
			changed, why = true, touched
		}
	}
}

// reasonOf tells events of the file from those of its neighbours. Mounts of
// Kubernetes swap a symlink named "..data", through which the file is reached.
func (f *File) reasonOf(name string) reason {
	name = filepath.Base(name)
	if name == filepath.Base(f.path) || strings.HasPrefix(name, "..") {
		return touched
	}
	return noticed
}

// watchFolder starts the events. Without them, which happens when the
// machine's inotify instances are used up, polling goes on alone.
func (f *File) watchFolder() (events <-chan fsnotify.Event, failures <-chan error, stop func()) {
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		if err = watcher.Add(filepath.Dir(f.path)); err != nil {
			_ = watcher.Close() // it holds nothing yet
		}
	}
	if err != nil {
		slog.Warn("catalog directory cannot be watched; the file is polled", "path", f.path, "every", f.poll, "error", err)
		return nil, nil, func() {}
	}
	return watcher.Events, watcher.Errors, func() { _ = watcher.Close() }
}
