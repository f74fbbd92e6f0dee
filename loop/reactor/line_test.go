package reactor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/net/nettest"
)

// newLine connects a line of a loop, and returns it with the peer's end.
func newLine(r *Reactor, index int) (line, peer net.Conn, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer ln.Close()
	if line, err = r.DialLine(context.Background(), index, &net.Dialer{Timeout: 5 * time.Second}, ln.Addr().String()); err != nil {
		return nil, nil, err
	}
	peer, err = ln.Accept()
	return line, peer, err
}

// TestLineIsConn: a line behaves as connections do: deadlines, closes, races.
func TestLineIsConn(t *testing.T) {
	st := play(t, Options{Loops: 2}, func(*core) {})
	dialed := 0
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		dialed++
		if c1, c2, err = newLine(st.r, dialed); err != nil {
			return nil, nil, nil, err
		}
		return c1, c2, func() { _ = c1.Close(); _ = c2.Close() }, nil
	})
}

// TestLineBulk: much goes both ways at once, in pieces that fit no buffer.
func TestLineBulk(t *testing.T) {
	st := play(t, Options{Loops: 1}, func(*core) {})
	line, peer, err := newLine(st.r, 0)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(peer, peer); _ = peer.Close() }()
	sent := bytes.Repeat([]byte("0123456789abcdef-"), 1<<16)
	wrote := make(chan error, 1)
	go func() {
		_, err := line.Write(sent)
		wrote <- err
	}()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(line, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%v; what came back is the same: %t", err, bytes.Equal(got, sent))
	}
	if err := receive(t, wrote); err != nil {
		t.Error(err)
	}
	_ = line.Close()
}

// TestLineEnds: a line whose peer or loop has gone tells its reader.
func TestLineEnds(t *testing.T) {
	for name, end := range map[string]func(st *stage, peer net.Conn){
		"peer": func(_ *stage, peer net.Conn) { _ = peer.Close() },
		"loop": func(st *stage, _ net.Conn) { st.r.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			st := play(t, Options{Loops: 1}, func(*core) {})
			line, peer, err := newLine(st.r, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer peer.Close()
			read := make(chan error, 1)
			go func() {
				_, err := line.Read(make([]byte, 1))
				read <- err
			}()
			end(st, peer)
			if err := receive(t, read); err == nil {
				t.Error("the reader is told nothing")
			}
			if err := line.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			if err := line.Close(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("the second close: %v", err)
			}
		})
	}
}
