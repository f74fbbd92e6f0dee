//go:build integration

package conformance

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Sizes of the pouring upstream.
const (
	pourPiece = 64 << 10
	pourMost  = 96 << 20
	pourKept  = 2 << 20 // what Relay and the test may keep of it themselves
)

// pour writes chunks of lines until the connection does not take more for a
// while or pourMost is reached, and returns how much it took.
func (l *link) pour(text string) (taken int) {
	piece := chunk(strings.Repeat(text, pourPiece/len(text)))
	for taken < pourMost {
		_ = l.SetWriteDeadline(time.Now().Add(2 * time.Second))
		n, err := l.Write([]byte(piece))
		taken += n
		if err != nil {
			return taken
		}
	}
	return taken
}

// pourHeld is what may be on the way to a client that does not read: the
// sending sides of both connections, the receiving side of Relay's, and
// Relay's own buffers. The kernel says how far it lets sockets grow.
func pourHeld(t *testing.T) int {
	t.Helper()
	return kernelMax(t, "tcp_rmem") + 2*kernelMax(t, "tcp_wmem") + pourKept
}

// kernelMax is the third number of a setting of socket memory, in bytes.
func kernelMax(t *testing.T, name string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/net/ipv4/" + name)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text))
	n, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A client that does not read stops its upstream, in bounded memory; when it
// reads on, or goes, things go on.
func TestReader(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kind, text string }{
		{"text/event-stream", `data: {"choices":[{"index":0,"delta":{"content":"hello"}}]}` + "\n\n"},
		{"text/plain", "hello, hello, hello\n"},
		{"application/json", `{"hello":"hello, hello, hello"},     ` + "\n"},
	} {
		for _, then := range []string{"goes", "reads on"} {
			t.Run(tt.kind+"/"+then, func(t *testing.T) {
				t.Parallel()
				o := take(t, "open")
				c := dial(t)
				_ = c.Conn.(*net.TCPConn).SetReadBuffer(64 << 10)
				c.send(whole(t.Name(), o.model))
				l := o.accept(t)
				l.request(t)
				l.send("HTTP/1.1 200 OK\r\nContent-Type: " + tt.kind + "\r\n" + chunked + "\r\n")
				taken := l.pour(tt.text)
				if taken > pourHeld(t) {
					t.Errorf("the upstream wrote %d MiB to a client that does not read", taken>>20)
				}
				if then == "goes" {
					reset(c.Conn)
					_ = l.SetReadDeadline(time.Now().Add(goneTime))
					if _, err := l.r.ReadByte(); err == nil || isTimeout(err) {
						t.Errorf("the upstream connection is open: %v", err)
					}
					return
				}
				got := make(chan string, 1)
				go func() {
					a, _ := c.read(3*soon, false)
					got <- a.body
				}()
				time.Sleep(quiet)
				_ = l.Close() // in a chunk, maybe: the answer is cut
				body := <-got
				want := strings.Repeat(tt.text, len(body)/len(tt.text)+1)
				sound, _, _ := strings.Cut(body, `data: {"error"`)
				if !strings.HasPrefix(want, strings.TrimRight(sound, "\n")) || len(body) < taken/4 {
					t.Errorf("%d bytes were written, %d came", taken, len(body))
				}
			})
		}
	}
}

// A client that reads a little at a time gets everything.
func TestReaderSlow(t *testing.T) {
	t.Parallel()
	o := take(t, "open")
	c := dial(t)
	c.send(whole(t.Name()+"/slow", o.model))
	l := o.accept(t)
	l.request(t)
	text := strings.Repeat("0123456789abcdef", 512<<10>>4)
	go func() {
		l.send("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n" + fmt.Sprintf("Content-Length: %d\r\n\r\n", 8*len(text)))
		for range 8 {
			l.send(text)
		}
	}()
	var got strings.Builder
	buffer := make([]byte, 32<<10)
	_ = c.SetReadDeadline(time.Now().Add(3 * soon))
	for got.Len() < 8*len(text) {
		n, err := c.r.Read(buffer)
		got.Write(buffer[:n])
		if err != nil {
			t.Fatalf("after %d bytes: %v", got.Len(), err)
		}
		time.Sleep(time.Millisecond)
	}
	if !strings.Contains(got.String(), strings.Repeat(text, 7)) {
		t.Error("the body is not what was sent")
	}
}
