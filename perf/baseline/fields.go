package baseline

import (
	"bytes"
	"maps"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"

	"relay/httpparse"
	"relay/store/catalog"
	"relay/upstream"
)

// A fieldFilter tells which header fields go on, by name. It asks the package
// that decides, once per name, and remembers. Any goroutine may use it.
type fieldFilter struct {
	ask   func(name string) bool
	known atomic.Pointer[map[string]bool]
	mu    sync.Mutex // of those who learn
}

func newFieldFilter(ask func(name string) bool) *fieldFilter {
	f := &fieldFilter{ask: ask}
	f.known.Store(new(map[string]bool))
	return f
}

// passes reports whether a field goes on.
func (f *fieldFilter) passes(name string) bool {
	if pass, known := (*f.known.Load())[name]; known {
		return pass
	}
	return f.learn(strings.Clone(name)) // it may be a view
}

func (f *fieldFilter) learn(name string) bool {
	pass := f.ask(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	old := *f.known.Load()
	if len(old) < fieldNamesMax {
		known := make(map[string]bool, len(old)+1)
		maps.Copy(known, old)
		known[name] = pass
		f.known.Store(&known)
	}
	return pass
}

const probe = "probe"

// sentTo asks which of a caller's fields a host of the shape gets.
func sentTo(s catalog.Shape) func(name string) bool {
	return func(name string) bool {
		head := upstream.AppendRequestHead(nil, &upstream.RequestHead{
			Host: &catalog.Host{Shape: s}, Key: &catalog.HostKey{}, ContentLength: -1,
			Fields: []httpparse.Field{{Name: []byte(name), Value: []byte(probe)}},
		})
		return bytes.Contains(head, []byte("\r\n"+name+": "+probe+"\r\n")) && !strings.EqualFold(name, "anthropic-version")
	}
}

// returned asks which of a host's fields a caller gets.
func returned(name string) bool {
	head := upstream.AppendResponseHead(nil, &upstream.ResponseHead{
		Status: 200, Fields: []httpparse.Field{{Name: []byte(name), Value: []byte(probe)}},
	})
	return bytes.Contains(head, []byte("\r\n"+name+": "+probe+"\r\n"))
}

// named calls drop with each field that a Connection field names (RFC 9110
// §7.6.1), by its canonical name.
func named(connection string, drop func(name string)) {
	for option := range strings.SplitSeq(connection, ",") {
		option = strings.TrimSpace(option)
		if option != "" && !strings.EqualFold(option, "close") && !strings.EqualFold(option, "keep-alive") {
			drop(textproto.CanonicalMIMEHeaderKey(option))
		}
	}
}
