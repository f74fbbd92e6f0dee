package reactor

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"relay/loop"
	"relay/store/catalog"
)

// An identity is a self-signed certificate for localhost, and the files of it.
type identity struct {
	pair              tls.Certificate
	pool              *x509.CertPool
	certFile, keyFile string
}

// newIdentity makes one with a serial number, in dir.
func newIdentity(t testing.TB, dir string, serial int64) *identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	id := &identity{pool: x509.NewCertPool(), certFile: filepath.Join(dir, "cert.pem"), keyFile: filepath.Join(dir, "key.pem")}
	certText := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyText := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
	if err := os.WriteFile(id.keyFile, keyText, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(id.certFile, certText, 0o600); err != nil {
		t.Fatal(err)
	}
	if id.pair, err = tls.X509KeyPair(certText, keyText); err != nil {
		t.Fatal(err)
	}
	if !id.pool.AppendCertsFromPEM(certText) {
		t.Fatal("the certificate does not parse")
	}
	return id
}

func (id *identity) client() *tls.Config {
	return &tls.Config{RootCAs: id.pool, ServerName: "localhost"}
}

// versions are what both directions are tested with.
var versions = map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}

// TestInboundTLS: many small messages, a large body, resumption, and a close
// that looks like one.
func TestInboundTLS(t *testing.T) {
	for name, version := range versions {
		t.Run(name, func(t *testing.T) {
			id := newIdentity(t, t.TempDir(), 1)
			closed := make(chan loop.Cause, 10)
			st := playSilent(t, Options{}, func(c *core) {
				c.accept = func(c *core, s loop.Socket, p loop.Peer) loop.Conn {
					if !p.TLS || !p.Addr.IsValid() {
						t.Errorf("peer is %+v", p)
					}
					return &conn{core: c, bytes: s.Write, closed: func(cause loop.Cause) { closed <- cause }}
				}
			})
			st.addr = st.listen(ListenOptions{CertFile: id.certFile, KeyFile: id.keyFile})
			config := id.client()
			config.MinVersion, config.MaxVersion = version, version
			config.ClientSessionCache = tls.NewLRUClientSessionCache(4)
			for i := range 5 {
				c := tls.Client(st.dialClient(), config)
				for range 50 {
					roundTrip(t, c, "hello over TLS")
				}
				if resumed := c.ConnectionState().DidResume; resumed != (i > 0) {
					t.Errorf("connection %d: resumed is %v", i, resumed)
				}
				_ = c.Close()
				if cause := receive(t, closed); cause != loop.EOF {
					t.Errorf("cause is %d, want EOF", cause)
				}
			}
			c := tls.Client(st.dialClient(), config)
			const size = 20 << 20
			go func() { _, _ = io.Copy(c, &patternReader{n: size}) }()
			var got patternCheck
			if _, err := io.CopyN(&got, c, size); err != nil || got.wrong {
				t.Errorf("got %d bytes, wrong %v, %v", got.off, got.wrong, err)
			}
			_ = c.NetConn().(*net.TCPConn).CloseWrite()
			if cause := receive(t, closed); cause != loop.Reset {
				t.Errorf("a FIN without close_notify is cause %d, want Reset", cause)
			}
		})
	}
}

// TestTLSCloses: Close and CloseWrite send a close_notify, unless output is
// lost by it.
func TestTLSCloses(t *testing.T) {
	id := newIdentity(t, t.TempDir(), 1)
	st := playSilent(t, Options{Loops: 1}, func(c *core) {
		c.accept = func(c *core, s loop.Socket, _ loop.Peer) loop.Conn {
			return &conn{core: c, bytes: func(p []byte) {
				switch string(p) {
				case "close":
					s.Write([]byte("bye"))
					s.Close()
				case "half":
					s.Write([]byte("bye"))
					s.CloseWrite()
				case "cut":
					s.Write(make([]byte, 32<<20))
					s.Close()
				}
			}}
		}
	})
	st.addr = st.listen(ListenOptions{TLS: &tls.Config{Certificates: []tls.Certificate{id.pair}}})
	for _, how := range []string{"close", "half", "cut"} {
		c := tls.Client(st.dialClient(), id.client())
		if _, err := io.WriteString(c, how); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(c)
		if how == "cut" {
			if err == nil || len(got) >= 32<<20 {
				t.Errorf("cut: got %d bytes, %v", len(got), err)
			}
		} else if string(got) != "bye" || err != nil {
			t.Errorf("%s: got %q, %v", how, got, err)
		}
	}
}

// tlsServer accepts TLS for the dialer's tests and hands each connection on.
func tlsServer(t *testing.T, config *tls.Config) (addr string, conns chan *tls.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	conns = make(chan *tls.Conn, 100)
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				s := tls.Server(c, config)
				if err := s.Handshake(); err != nil {
					_ = c.Close()
					return
				}
				conns <- s
			}()
		}
	}()
	return ln.Addr().String(), conns
}

func tlsHost(t *testing.T, addr string) *catalog.Host {
	h := hostAt(t, addr)
	h.Hostname, h.TLS = "localhost", true
	return h
}

// TestOutboundTLS: messages, bytes that come with the handshake, resumption,
// a large body, and the ends of a connection.
func TestOutboundTLS(t *testing.T) {
	for name, version := range versions {
		t.Run(name, func(t *testing.T) {
			id := newIdentity(t, t.TempDir(), 1)
			addr, conns := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{id.pair}, MinVersion: version, MaxVersion: version, NextProtos: []string{"http/1.1"}})
			x := newCaller()
			st := playSilent(t, Options{RootCAs: id.pool}, x.shape)
			for i := range 4 {
				st.r.Dial(&loop.Dial{Loop: 0, Host: tlsHost(t, addr)})
				c := receive(t, conns)
				s := receive(t, x.opened)
				state := c.ConnectionState()
				if state.DidResume != (i > 0) || state.ServerName != "localhost" || state.NegotiatedProtocol != "http/1.1" {
					t.Errorf("connection %d: %+v", i, state)
				}
				_, _ = io.WriteString(c, "first")
				if got := receive(t, x.texts); got != "first" {
					t.Errorf("got %q", got)
				}
				st.on(0, func(*core) { s.Write([]byte("question")) })
				got := make([]byte, 8)
				if _, err := io.ReadFull(c, got); err != nil || string(got) != "question" {
					t.Errorf("got %q, %v", got, err)
				}
				want := loop.EOF
				if i%2 == 1 {
					want = loop.Reset // cut: no close_notify
					_ = c.NetConn().Close()
				} else {
					_ = c.Close()
				}
				if cause := receive(t, x.closed); cause != want {
					t.Errorf("cause is %d, want %d", cause, want)
				}
			}
		})
	}
}

// TestTLSBody: a large body through a reader that pauses, and one to a slow
// server, both ways exact.
func TestTLSBody(t *testing.T) {
	id := newIdentity(t, t.TempDir(), 1)
	addr, conns := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{id.pair}})
	const size = 20 << 20
	var in patternCheck
	done := make(chan loop.Cause, 1)
	opened := make(chan loop.Socket, 1)
	st := playSilent(t, Options{Loops: 1, RootCAs: id.pool}, func(c *core) {
		c.opened = func(c *core, s loop.Socket, _ *loop.Dial) loop.Conn {
			opened <- s
			paused, reads := false, 0
			return &conn{core: c, bytes: func(p []byte) {
				if paused {
					t.Error("OnBytes while paused")
				}
				_, _ = in.Write(p)
				if reads++; reads%5 == 0 {
					paused = true
					s.PauseRead(false)
					c.Post(note(func(*core) { paused = false; s.ResumeRead() }))
				}
			}, closed: func(cause loop.Cause) { done <- cause }}
		}
	})
	st.r.Dial(&loop.Dial{Host: tlsHost(t, addr)})
	c, s := receive(t, conns), receive(t, opened)
	st.on(0, func(*core) {
		p := make([]byte, size)
		pattern(0, p)
		s.Write(p)
	})
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(struct{ io.Writer }{c}, &patternReader{n: size})
		sent <- err
		_ = c.CloseWrite()
		_ = c.NetConn().(*net.TCPConn).CloseWrite() // the end must not overtake held bytes
	}()
	var out patternCheck
	if _, err := io.CopyN(&out, c, size); err != nil || out.wrong {
		t.Errorf("server got %d bytes, wrong %v, %v", out.off, out.wrong, err)
	}
	if err := receive(t, sent); err != nil {
		t.Error(err)
	}
	if cause := receive(t, done); cause != loop.EOF || in.off != size || in.wrong {
		t.Errorf("loop got %d bytes, wrong %v, cause %d", in.off, in.wrong, cause)
	}
}

// TestUntrustedServer: a certificate nobody vouches for is a TLS fault.
func TestUntrustedServer(t *testing.T) {
	id, other := newIdentity(t, t.TempDir(), 1), newIdentity(t, t.TempDir(), 2)
	addr, _ := tlsServer(t, &tls.Config{Certificates: []tls.Certificate{id.pair}})
	x := newCaller()
	st := playSilent(t, Options{RootCAs: other.pool}, x.shape)
	st.r.Dial(&loop.Dial{Host: tlsHost(t, addr)})
	if d := receive(t, x.failed); d.Fault != loop.DialTLS || !strings.Contains(d.Text, "certificate") {
		t.Errorf("fault %d (%s), want TLS", d.Fault, d.Text)
	}
}

// TestStuckHandshakes: clients that never finish their handshake hold up
// nobody, and are dropped in the end.
func TestStuckHandshakes(t *testing.T) {
	id := newIdentity(t, t.TempDir(), 1)
	st := playSilent(t, Options{}, func(c *core) { c.accept = echo })
	st.addr = st.listen(ListenOptions{TLS: &tls.Config{Certificates: []tls.Certificate{id.pair}}})
	var stuck []*net.TCPConn
	for range 100 {
		c := st.dialClient()
		_, _ = c.Write([]byte{22, 3, 1})
		stuck = append(stuck, c)
	}
	eventually(t, "they are in their handshake", func() bool { return st.r.Stats().Handshakes == 100 })
	roundTrip(t, tls.Client(st.dialClient(), id.client()), "hello")
	start := time.Now()
	for _, c := range stuck {
		_, _ = io.ReadAll(c)
	}
	if took := time.Since(start); took > 2*handshakeTimeout {
		t.Errorf("they were dropped after %v", took)
	}
	eventually(t, "their places are free", func() bool {
		s := st.r.Stats()
		return s.Handshakes == 0 && s.HandshakesFailed == 100 && clients(st.r) == 1
	})
}

// TestCertificateReload: a new pair of files is used without a restart; a
// broken one is not.
func TestCertificateReload(t *testing.T) {
	dir := t.TempDir()
	id := newIdentity(t, dir, 1)
	st := playSilent(t, Options{}, func(c *core) { c.accept = echo })
	st.addr = st.listen(ListenOptions{CertFile: id.certFile, KeyFile: id.keyFile})
	serial := func() string {
		c := tls.Client(st.dialClient(), &tls.Config{InsecureSkipVerify: true})
		defer c.Close()
		roundTrip(t, c, "x")
		return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	if got := serial(); got != "1" {
		t.Errorf("serial %s, want 1", got)
	}
	if err := os.WriteFile(id.certFile, []byte("half writ"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := &certificate{certFile: id.certFile, keyFile: id.keyFile, pair: &id.pair}
	if pair, err := k.get(nil); err != nil || pair != &id.pair {
		t.Errorf("a broken file gave %v, %v", pair, err)
	}
	newIdentity(t, dir, 2)
	eventually(t, "the new certificate is used", func() bool { return serial() == "2" })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if err := st.r.Listen(ln, ListenOptions{CertFile: id.certFile, KeyFile: "no such file"}); err == nil {
		t.Error("a listener without a key was taken")
	}
}

// TestProxyHeaders: on cleartext the loop is told to expect the header, on TLS
// the reactor reads it.
func TestProxyHeaders(t *testing.T) {
	id := newIdentity(t, t.TempDir(), 1)
	peers := make(chan loop.Peer, 1)
	st := playSilent(t, Options{}, func(c *core) {
		c.accept = func(c *core, s loop.Socket, p loop.Peer) loop.Conn {
			peers <- p
			return &conn{core: c, bytes: s.Write}
		}
	})
	st.addr = st.listen(ListenOptions{ProxyProtocol: true})
	const line = "PROXY TCP4 192.0.2.7 192.0.2.8 1234 443\r\n"
	roundTrip(t, st.dialClient(), line)
	if p := receive(t, peers); !p.ProxyHeader || p.TLS {
		t.Errorf("peer is %+v", p)
	}
	st.addr = st.listen(ListenOptions{ProxyProtocol: true, TLS: &tls.Config{Certificates: []tls.Certificate{id.pair}}})
	for _, tt := range []struct{ name, header, want string }{
		{"v1", line, "192.0.2.7:1234"},
		{"v1 unknown", "PROXY UNKNOWN\r\n", ""},
		{"v2 local", "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00", ""},
		{"v2", "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x07\xc0\x00\x02\x08\x04\xd2\x01\xbb", "192.0.2.7:1234"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := st.dialClient()
			want := tt.want
			if want == "" {
				want = c.LocalAddr().String()
			}
			// One write carries the header and the hello.
			roundTrip(t, tls.Client(&prefixed{TCPConn: c, head: tt.header}, id.client()), "hello")
			if p := receive(t, peers); p.ProxyHeader || !p.TLS || p.Addr.String() != want {
				t.Errorf("peer is %+v, want %s", p, want)
			}
		})
	}
	for _, header := range []string{"PROXY TCP4 1.2.3.4\r\n", "GET / HTTP/1.1\r\n", ""} {
		c := st.dialClient()
		if err := tls.Client(&prefixed{TCPConn: c, head: header}, id.client()).Handshake(); err == nil {
			t.Errorf("%q was taken", header)
		}
	}
}

// TestProxiesFrom closes connections of peers that may not send a PROXY header.
func TestProxiesFrom(t *testing.T) {
	st := playSilent(t, Options{}, func(c *core) {
		c.accept = func(c *core, s loop.Socket, p loop.Peer) loop.Conn { return &conn{core: c, bytes: s.Write} }
	})
	for _, tt := range []struct {
		from  string
		taken bool
	}{{"127.0.0.0/8", true}, {"192.0.2.0/24", false}} {
		st.addr = st.listen(ListenOptions{ProxyProtocol: true, ProxiesFrom: []netip.Prefix{netip.MustParsePrefix(tt.from)}})
		before := st.r.Stats().Untrusted
		if c := st.dialClient(); tt.taken {
			roundTrip(t, c, "PROXY UNKNOWN\r\n")
		} else if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Errorf("%s: a stranger was taken", tt.from)
		}
		if got := st.r.Stats().Untrusted - before; (got == 0) != tt.taken {
			t.Errorf("%s: %d connections counted as untrusted", tt.from, got)
		}
	}
}

// prefixed writes head in front of the first write.
type prefixed struct {
	*net.TCPConn
	head string
}

func (p *prefixed) Write(b []byte) (int, error) {
	head := p.head
	p.head = ""
	n, err := p.TCPConn.Write(append([]byte(head), b...))
	return max(0, n-len(head)), err
}

// TestRefusalOverTLS: a refused client of a TLS listener can read its answer.
func TestRefusalOverTLS(t *testing.T) {
	id := newIdentity(t, t.TempDir(), 1)
	st := playSilent(t, Options{MaxConns: 1}, func(c *core) { c.accept = echo })
	st.addr = st.listen(ListenOptions{TLS: &tls.Config{Certificates: []tls.Certificate{id.pair}}})
	roundTrip(t, tls.Client(st.dialClient(), id.client()), "first")
	wantRefusal(t, tls.Client(st.dialClient(), id.client()))
}

// TestKeyUpdate: keys change in the middle of a connection, which only
// openssl does on demand.
func TestKeyUpdate(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Fatalf("openssl is needed (apt-get install openssl): %v", err)
	}
	id := newIdentity(t, t.TempDir(), 1)
	addr := closedAddr(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, openssl, "s_server", "-accept", addr, "-cert", id.certFile, "-key", id.keyFile, "-tls1_3")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	x := newCaller()
	st := playSilent(t, Options{Loops: 1, RootCAs: id.pool}, x.shape)
	var s loop.Socket
	eventually(t, "the server is up", func() bool {
		st.r.Dial(&loop.Dial{Host: tlsHost(t, addr)})
		select {
		case s = <-x.opened:
			return true
		case d := <-x.failed:
			if d.Fault != loop.DialRefused {
				t.Fatalf("dial: %s", d.Text)
			}
			return false
		}
	})
	lines := bufio.NewReader(stdout)
	want := func(text string) {
		t.Helper()
		for {
			got, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("server said %q, %v", got, err)
			}
			if strings.Contains(got, text) {
				return
			}
		}
	}
	for i := range 20 {
		_, _ = io.WriteString(stdin, "K\n") // new keys, and the same asked of us
		want("SSL_do_handshake -> 1")
		out := fmt.Sprintf("there %d\n", i)
		_, _ = io.WriteString(stdin, out)
		got := ""
		for !strings.Contains(got, out) {
			got += receive(t, x.texts)
		}
		in := fmt.Sprintf("here %d", i)
		st.on(0, func(*core) { s.Write([]byte(in + "\n")) })
		want(in)
	}
	if len(x.closed) != 0 {
		t.Error("the connection is gone")
	}
}
