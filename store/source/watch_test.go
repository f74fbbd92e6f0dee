package source

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"relay/store/catalog"
)

// patience is how long a test waits for what must happen, whatever else the
// machine does. Nothing that must not happen is waited for.
const patience = 30 * time.Second

// small is a sound catalog with one model of the given name.
func small(model string) string {
	return `hosts: [{name: h, shape: openai, base_url: "https://h/v1", keys: [{name: k, value: env:TEST_SMALL}]}]
models: [{name: ` + model + `, bindings: [{host: h}], price: {input: 1}}]
policies: [{name: p, models: ["*"]}]
accounts: [{name: a}]
relay_keys: [{name: r, sha256: "` + someHash + `", account: a, policy: p}]
`
}

// A watched file and what Watch made of it.
type watched struct {
	t       *testing.T
	path    string
	file    *File
	applied chan *catalog.Tables
}

// watch opens path and watches it until the test ends.
func watch(t *testing.T, path string) *watched {
	t.Helper()
	f, tables, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if tables.Generation != 1 || f.Status().Generation != 1 {
		t.Fatalf("generation is %d", tables.Generation)
	}
	w := &watched{t, path, f, make(chan *catalog.Tables, 100)}
	return w
}

func (w *watched) start(poll time.Duration) {
	w.file.poll = poll
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := w.file.Watch(ctx, func(t *catalog.Tables) { w.applied <- t }); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(func() {
		cancel()
		done.Wait()
	})
}

// await waits for a catalog whose first model has the name.
func (w *watched) await(model string) *catalog.Tables {
	w.t.Helper()
	limit := time.After(patience)
	for {
		select {
		case tables := <-w.applied:
			if tables.Models[0].Name == model {
				return tables
			}
		case <-limit:
			w.t.Fatalf("%s is not live; status %+v", model, w.file.Status())
		}
	}
}

// until waits for a status.
func (w *watched) until(what string, reached func(Status) bool) Status {
	w.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if s := w.file.Status(); reached(s) {
			return s
		}
	}
	w.t.Fatalf("no status with %s: %+v", what, w.file.Status())
	return Status{}
}

// write replaces a file in one step, so that nobody sees half of it.
func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path+".tmp", []byte(text), 0o600))
	must(t, os.Rename(path+".tmp", path))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Polling is out of reach in these tests, so that events alone do it.
func TestWatchEvents(t *testing.T) {
	t.Setenv("TEST_SMALL", "sk-small")
	for _, tt := range []struct {
		name    string
		replace func(t *testing.T, folder, path, text string)
	}{
		{"write in place", func(t *testing.T, _, path, text string) { must(t, os.WriteFile(path, []byte(text), 0o600)) }},
		{"rename", func(t *testing.T, folder, path, text string) {
			write(t, filepath.Join(folder, "new"), text)
			must(t, os.Rename(filepath.Join(folder, "new"), path))
		}},
		{"remove and create", func(t *testing.T, _, path, text string) {
			must(t, os.Remove(path))
			must(t, os.WriteFile(path, []byte(text), 0o600))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "relay.yaml")
			write(t, path, small("first"))
			w := watch(t, path)
			w.start(time.Hour)
			for i, model := range []string{"second", "third"} {
				tt.replace(t, folder, path, small(model))
				if tables := w.await(model); tables.Generation != uint64(i)+2 {
					t.Errorf("generation of %s is %d", model, tables.Generation)
				}
			}
		})
	}
}

// Mounts of Kubernetes swap a symlink to a folder, through which the file is
// reached by another symlink.
func TestWatchSymlinkSwap(t *testing.T) {
	t.Setenv("TEST_SMALL", "sk-small")
	folder := t.TempDir()
	for _, version := range []string{"first", "second"} {
		must(t, os.Mkdir(filepath.Join(folder, ".."+version), 0o700))
		write(t, filepath.Join(folder, ".."+version, "relay.yaml"), small(version))
	}
	must(t, os.Symlink("..first", filepath.Join(folder, "..data")))
	path := filepath.Join(folder, "relay.yaml")
	must(t, os.Symlink("..data/relay.yaml", path))
	w := watch(t, path)
	w.start(time.Hour)
	must(t, os.Symlink("..second", filepath.Join(folder, "..data_tmp")))
	must(t, os.Rename(filepath.Join(folder, "..data_tmp"), filepath.Join(folder, "..data")))
	w.await("second")
}

// A target in another folder raises no event in the folder of the symlink.
func TestWatchPolls(t *testing.T) {
	t.Setenv("TEST_SMALL", "sk-small")
	target := filepath.Join(t.TempDir(), "target.yaml")
	write(t, target, small("first"))
	path := filepath.Join(t.TempDir(), "relay.yaml")
	must(t, os.Symlink(target, path))
	w := watch(t, path)
	w.start(10 * time.Millisecond)
	write(t, target, small("second-"))
	w.await("second-")
	must(t, os.Remove(path))
	s := w.until("a missing file", func(s Status) bool { return strings.Contains(s.LastError, "no such file") })
	if s.Generation != 2 || s.Refused != 1 {
		t.Errorf("status is %+v", s)
	}
	must(t, os.Symlink(target, path))
	w.until("no error", func(s Status) bool { return s.LastError == "" })
}

func TestWatchSeesWhatChangedSinceOpen(t *testing.T) {
	t.Setenv("TEST_SMALL", "sk-small")
	path := filepath.Join(t.TempDir(), "relay.yaml")
	write(t, path, small("first"))
	w := watch(t, path)
	write(t, path, small("between"))
	w.start(time.Hour)
	w.await("between")
}

func TestWatchRefusesBad(t *testing.T) {
	logs := captureLogs(t)
	t.Setenv("TEST_SMALL", "sk-small")
	path := filepath.Join(t.TempDir(), "relay.yaml")
	write(t, path, small("first"))
	w := watch(t, path)
	w.start(time.Hour)
	live := w.file.Status()

	bad := strings.Replace(small("second"), "shape: openai", "shape: azure", 1)
	write(t, path, bad)
	s := w.until("an error", func(s Status) bool { return s.LastError != "" })
	if want := path + ":1: hosts[0].shape: is none of: openai, anthropic"; s.LastError != want {
		t.Errorf("error is %q, want %q", s.LastError, want)
	}
	if s.Refused != 1 || s.Reloads != 0 || s.Generation != 1 || s.Revision != live.Revision || !s.LoadedAt.Equal(live.LoadedAt) || s.LastErrorAt.IsZero() {
		t.Errorf("status is %+v, was %+v", s, live)
	}
	if len(w.applied) > 0 {
		t.Error("a refused catalog was applied")
	}
	// The same refusal is told once, unless somebody asks.
	write(t, path, bad)
	w.file.Reload()
	w.until("a second refusal", func(s Status) bool { return s.Refused == 2 })
	if n := strings.Count(logs.String(), "catalog refused"); n != 2 {
		t.Errorf("%d refusals are logged, want 2", n)
	}
	write(t, path, small("third"))
	w.await("third")
	s = w.until("the third", func(s Status) bool { return s.Generation == 2 })
	if s.LastError != "" || !s.LastErrorAt.IsZero() || s.Reloads != 1 || s.Refused != 2 || s.Revision == live.Revision {
		t.Errorf("status is %+v", s)
	}
	// Bad, and back to what is live: nothing to apply, and no error any more.
	write(t, path, bad)
	w.until("an error again", func(s Status) bool { return s.LastError != "" })
	write(t, path, small("third"))
	s = w.until("no error", func(s Status) bool { return s.LastError == "" })
	if s.Generation != 2 || s.Reloads != 1 || len(w.applied) > 0 {
		t.Errorf("status is %+v", s)
	}
	if n := strings.Count(logs.String(), "catalog is again what is live"); n != 1 {
		t.Errorf("the end of the error is logged %d times", n)
	}
}

func TestReload(t *testing.T) {
	t.Setenv("TEST_SMALL", "sk-small")
	path := filepath.Join(t.TempDir(), "relay.yaml")
	write(t, path, small("first"))
	w := watch(t, path)
	w.start(time.Hour)
	w.file.Reload() // nothing has changed
	w.file.Reload()
	// A secret that changed makes a new generation of the same file.
	t.Setenv("TEST_SMALL", "sk-small-2")
	w.file.Reload()
	if tables := w.await("first"); string(tables.Hosts[0].Keys[0].Value) != "sk-small-2" || tables.Generation != 2 {
		t.Errorf("generation %d has another secret", tables.Generation)
	}
	must(t, os.Unsetenv("TEST_SMALL"))
	w.file.Reload()
	s := w.until("an error", func(s Status) bool { return s.LastError != "" })
	if !strings.Contains(s.LastError, "env:TEST_SMALL is not set") || s.Generation != 2 {
		t.Errorf("status is %+v", s)
	}
}

// TestRefusalIsToldOnce reads what is refused again and again, for each reason
// that a watch may have: only who asks is told again, once.
func TestRefusalIsToldOnce(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, path string)
	}{
		{"bad text", func(t *testing.T, path string) { write(t, path, "hosts: 5\n") }},
		{"no secret", func(t *testing.T, _ string) { must(t, os.Unsetenv("TEST_SMALL")) }},
		{"no file", func(t *testing.T, path string) {
			must(t, os.Remove(path))
			must(t, os.Mkdir(path, 0o700))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			logs := captureLogs(t)
			t.Setenv("TEST_SMALL", "sk-small")
			path := filepath.Join(t.TempDir(), "relay.yaml")
			write(t, path, small("first"))
			f, _, err := Open(path)
			must(t, err)
			tt.spoil(t, path)
			want := uint64(0)
			for round := range 3 {
				for _, why := range []reason{touched, polled, noticed, asked} {
					if round == 0 && why == touched || why == asked {
						want++
					}
					f.seen = nil // as if it looked different
					f.reload(why, func(*catalog.Tables) { t.Error("a refused catalog was applied") })
					if n := uint64(strings.Count(logs.String(), "catalog refused")); n != want || f.Status().Refused != want {
						t.Fatalf("round %d, reason %d: told %d times, counted %d times, want %d", round, why, n, f.Status().Refused, want)
					}
				}
			}
		})
	}
}

func TestStatusIsBounded(t *testing.T) {
	t.Setenv("TEST_SMALL", "sk-small")
	path := filepath.Join(t.TempDir(), "relay.yaml")
	write(t, path, small("first"))
	w := watch(t, path)
	w.start(time.Hour)
	write(t, path, "hosts:\n"+strings.Repeat("  - {}\n", 50))
	s := w.until("an error", func(s Status) bool { return s.LastError != "" })
	if lines := strings.Split(s.LastError, "\n"); len(lines) != statusLinesMax+1 || !strings.HasPrefix(lines[statusLinesMax], "… and ") {
		t.Errorf("%d lines, last %q", len(lines), lines[len(lines)-1])
	}
}

func TestOpenRefuses(t *testing.T) {
	folder := t.TempDir()
	_, _, err := Open(filepath.Join(folder, "none.yaml"))
	if err == nil || !errors.Is(err, os.ErrNotExist) || !strings.HasSuffix(err.Error(), "none.yaml: no such file or directory") {
		t.Errorf("missing file: %v", err)
	}
	if _, _, err = Open(folder); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("folder: %v", err)
	}
	path := filepath.Join(folder, "relay.yaml")
	write(t, path, "hosts: []\nmodels: 5\n")
	_, _, err = Open(path)
	var invalid *InvalidError
	want := "catalog: " + path + " has 3 errors:\n" +
		path + ": policies: must hold at least one entry\n" +
		path + ":1: hosts: must hold at least one entry\n" +
		path + ":2: models: must be a list; an empty one is []"
	if !errors.As(err, &invalid) || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// captureLogs makes the default logger write where the test can read.
func captureLogs(t *testing.T) *lockedBuffer {
	out := &lockedBuffer{}
	former := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(out, nil)))
	t.Cleanup(func() { slog.SetDefault(former) })
	return out
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
