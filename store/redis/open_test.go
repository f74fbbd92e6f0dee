package redis_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"relay/store/catalog"
	"relay/store/redis"
	"relay/store/redis/redistest"
	"relay/store/state"
)

// open is a store on these servers, closed with the test.
func open(t testing.TB, o redis.Options, servers ...*redistest.Server) *redis.Store {
	t.Helper()
	for _, s := range servers {
		o.Addrs = append(o.Addrs, s.Addr())
	}
	s, err := redis.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func group(id uint64, limits ...catalog.Limit) *catalog.Group {
	return &catalog.Group{ID: id, Name: "policy/test", Limits: limits}
}

func window(amount int64) catalog.Limit {
	return catalog.Limit{Meter: catalog.Requests, Strategy: catalog.FixedWindow, Amount: amount, Window: 24 * time.Hour}
}

func slots(amount int64) catalog.Limit {
	return catalog.Limit{Meter: catalog.Concurrency, Amount: amount}
}

// ask makes an Op that wants n units of every rule.
func ask(g *catalog.Group, n int64) *state.Op {
	o := &state.Op{Group: g}
	again(o, n)
	return o
}

func again(o *state.Op, n int64) {
	o.Clear()
	for k := range o.Group.Limits {
		o.Want[k], o.Need[k] = n, n
	}
}

// apply sends Ops to the lane of the first one.
func apply(s *redis.Store, ops ...*state.Op) {
	s.Lane(s.LaneOf(ops[0].Group.ID)).Apply(0, ops)
}

// got fails unless an Op of its own gets n units of every rule.
func got(t *testing.T, s *redis.Store, g *catalog.Group, n int64) *state.Op {
	t.Helper()
	o := ask(g, n)
	apply(s, o)
	if o.Lost || o.Got[0] != n {
		t.Fatalf("lost %v, got %v, want %d: %v", o.Lost, o.Got, n, s.Err())
	}
	return o
}

func TestOpenRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		o          redis.Options
	}{
		{"no address", "no address", redis.Options{}},
		{"a password without a scheme", "host:port", redis.Options{Addrs: []string{"secret@127.0.0.1:6379"}}},
		{"no port", "host:port", redis.Options{Addrs: []string{"localhost"}}},
		{"port of a letter", "has a port", redis.Options{Addrs: []string{"localhost:x"}}},
		{"scheme", "scheme that is none of redis", redis.Options{Addrs: []string{"http://localhost:1"}}},
		{"database", "database that is no number", redis.Options{Addrs: []string{"redis://localhost:1/x"}}},
		{"parameter", "parameter that is none of", redis.Options{Addrs: []string{"redis://localhost:1/?timeout=1"}}},
		{"password in clear", "%40", redis.Options{Addrs: []string{"redis://:se%cret@localhost:1"}}},
		{"port with password", "has a port", redis.Options{Addrs: []string{"redis://:secret@localhost:70000"}}},
		{"slash in a password", "database that is no number", redis.Options{Addrs: []string{"redis://u:1/secret@localhost:1"}}},
		{"question mark in a password", "parameter that is none of", redis.Options{Addrs: []string{"redis://u:1?secret@localhost:1"}}},
		{"no scheme", "scheme that is none of", redis.Options{Addrs: []string{"secret://localhost:1"}}},
		{"two users", "must be those of address 1", redis.Options{Addrs: []string{"redis://:secret@a:1", "redis://:other@b:1"}}},
		{"database of a cluster", "database 0 only", redis.Options{Addrs: []string{"redis://a:1/2", "redis://b:1/2"}}},
		{"tags", "allowed are 1 to 1024", redis.Options{Addrs: []string{"a:1"}, Tags: 2000}},
		{"lanes", "allowed are 1 to 16", redis.Options{Addrs: []string{"a:1"}, Lanes: 17}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := redis.Open(tt.o)
			if err == nil || !strings.Contains(err.Error(), tt.text) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "se%cret") {
				t.Fatalf("error is %v, want one with %q and without the password", err, tt.text)
			}
		})
	}
}

func TestOpenForms(t *testing.T) {
	server := redistest.Start(t, "--requirepass", "a@b/c", "--databases", "4")
	for _, form := range []string{"redis://:a%40b%2Fc@ADDR", "redis://default:a%40b%2Fc@ADDR/3", "redis://:a%40b%2Fc@ADDR/?protocol=2"} {
		s := open(t, redis.Options{Addrs: []string{strings.Replace(form, "ADDR", server.Addr(), 1)}})
		got(t, s, group(1, window(1000)), 1)
	}
	s, err := redis.Open(redis.Options{Addrs: []string{server.Addr()}, Password: "a@b/c"})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err = redis.Open(redis.Options{Addrs: []string{server.Addr()}, Password: "wrong"}); err == nil {
		t.Fatal("a wrong password opens the store")
	}
}

func TestOpenMismatch(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, redis.Options{Tags: 4}, server)
	_, err := redis.Open(redis.Options{Addrs: []string{server.Addr()}, Tags: 8})
	var m *redis.MismatchError
	if !errors.As(err, &m) || m.Stored != "1 4" || m.Wanted != "1 8" {
		t.Fatalf("error is %v, want a mismatch of 4 and 8 tags", err)
	}
	// A store that is emptied and taken over by others is not counted in.
	server.Do("SET", "{s00}meta", "1 8")
	until(t, func() bool { return s.Err() != nil })
	o := ask(group(1, window(10)), 1)
	if apply(s, o); !o.Lost {
		t.Fatal("counted in a store of other tags")
	}
	server.Do("DEL", "{s00}meta")
	until(t, func() bool { return s.Err() == nil })
	got(t, s, group(1, window(10)), 1)
}

func TestOpenNodeOfCluster(t *testing.T) {
	nodes := redistest.StartCluster(t, 3)
	_, err := redis.Open(redis.Options{Addrs: []string{nodes[2].Addr()}})
	if err == nil || !strings.Contains(err.Error(), "addresses of several nodes") {
		t.Fatalf("error is %v, want one that asks for several addresses", err)
	}
	server := redistest.Start(t)
	if _, err = redis.Open(redis.Options{Addrs: []string{server.Addr(), "127.0.0.1:1"}}); err == nil {
		t.Fatal("a server without cluster mode opens as a cluster")
	}
}

// TestLive checks that relays know of each other, and share by their loops.
func TestLive(t *testing.T) {
	server := redistest.Start(t)
	a := open(t, redis.Options{Loops: 1}, server)
	g := group(1, window(100_000))
	lent := func(s *redis.Store) int64 {
		o := ask(g, 0)
		o.More[0] = 1e6
		o.Want[0] = 99_000 - 400
		apply(s, o)
		n := o.Extra[0]
		o.Return[0] = state.Return{Units: o.Got[0] + n, GrantNs: o.NowNs}
		o.Want, o.Need, o.More = [state.RulesMax]int64{}, [state.RulesMax]int64{}, [state.RulesMax]int64{}
		apply(s, o)
		return n
	}
	if n := lent(a); n != 1400/state.LeaseParts {
		t.Fatalf("lent %d to the only loop", n)
	}
	b := open(t, redis.Options{Loops: 3}, server)
	if b.Live() != 2 {
		t.Fatalf("%d relays live, want 2", b.Live())
	}
	if n := lent(b); n != 1400/state.LeaseParts/4 {
		t.Fatalf("lent %d to one of four loops", n)
	}
	until(t, func() bool { return a.Live() == 2 })
	b.Close()
	until(t, func() bool { return a.Live() == 1 })
}

// until waits for something that other goroutines bring about.
func until(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it has not come about within 10 s")
		}
	}
}

// TestOpenTLS enters a server by TLS, and none that it cannot trust.
func TestOpenTLS(t *testing.T) {
	dir, roots := certificate(t)
	port := strconv.Itoa(redistest.FreePort(t))
	redistest.Start(t, "--tls-port", port, "--tls-auth-clients", "no",
		"--tls-cert-file", filepath.Join(dir, "cert.pem"), "--tls-key-file", filepath.Join(dir, "key.pem"))
	url := "rediss://localhost:" + port
	s := open(t, redis.Options{Addrs: []string{url}, TLS: &tls.Config{RootCAs: roots}})
	got(t, s, group(1, window(10)), 1)
	if _, err := redis.Open(redis.Options{Addrs: []string{url}}); err == nil {
		t.Fatal("a certificate that nobody vouches for opens the store")
	}
}

// certificate writes one for localhost.
func certificate(t *testing.T) (dir string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir, roots = t.TempDir(), x509.NewCertPool()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	roots.AppendCertsFromPEM(text)
	for name, content := range map[string][]byte{
		"cert.pem": text, "key.pem": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, roots
}
