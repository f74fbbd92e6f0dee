package lanes

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"relay/admit"
	"relay/store/catalog"
)

// plainText is the script of the plain design. KEYS[1] is the policy; ARGV[1]
// is doubles: tokens, then, to reserve, the amounts of requests and tokens,
// their windows in µs, and the slots; to settle, the tokens that come back. The
// state are doubles, too: when it expires, time, requests in the bucket, index
// of the window, tokens in it and in the one before, slots. It replies 0, or 1
// for a denial.
const plainText = `
local unpack, pack, call, floor = struct.unpack, struct.pack, redis.call, math.floor
local key, arg = KEYS[1], ARGV[1]
local stored = call('GET', key)
if #arg == 8 then
  if stored then
    local till, at, level, index, count, before, used = unpack('<ddddddd', stored)
    call('SETRANGE', key, 32, pack('<ddd', math.max(0, count - unpack('<d', arg)), before, math.max(0, used - 1)))
  end
  return 0
end
local n, a1, a2, w1, w2, slots = unpack('<dddddd', arg)
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local till, at, level, index, count, before, used = 0, now, 0, 0, 0, 0, 0
if stored then till, at, level, index, count, before, used = unpack('<ddddddd', stored) end
level = math.max(0, level - (now - at) * a1 / w1)
local i = floor(now / w2)
if i > index then
  if i == index + 1 then before = count else before = 0 end
  count, index = 0, i
end
if level + 1 > a1 or count + before * ((i + 1) * w2 - now) / w2 + n > a2 or used + 1 > slots then return 1 end
if till - now < w2 then
  till = now + 4 * w2
  call('SET', key, pack('<ddddddd', till, now, level + 1, index, count + n, before, used + 1), 'PX', floor(4 * w2 / 1000))
else
  call('SETRANGE', key, 8, pack('<dddddd', now, level + 1, index, count + n, before, used + 1))
end
return 0`

// A plain counter asks by one call of the script for each request, and settles
// by another, over a connection of the loop.
type plain struct {
	loop   *loop
	keys   []string // by policy
	limits *[3]catalog.Limit
	fd     int    // the connection
	head   []byte // of every call, up to the key
	out    []byte // to be sent
	in     []byte // received, not yet understood
	order  queue  // who is answered next; a nil is a settlement
}

func newPlain(l *loop, addr string, keys []string, limits *[3]catalog.Limit) (*plain, error) {
	fd, err := connect(addr)
	if err != nil {
		return nil, fmt.Errorf("lanes: connect to %s: %w", addr, err)
	}
	sum := sha1.Sum([]byte(plainText))
	return &plain{
		loop: l, keys: keys, limits: limits, fd: fd, in: make([]byte, 0, 64<<10),
		head: fmt.Appendf(nil, "*5\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n", hex.EncodeToString(sum[:])),
	}, nil
}

// connect opens a connection that does not block.
func connect(addr string) (fd int, err error) {
	nc, err := net.DialTimeout("tcp", addr, storeTimeout)
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	raw, err := nc.(*net.TCPConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Control(func(own uintptr) { fd, failed = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) })
	return fd, errors.Join(err, failed) // the copy does not block either
}

// loadPlain gives the script to the store.
func loadPlain(addr string) error {
	nc, err := net.DialTimeout("tcp", addr, storeTimeout)
	if err != nil {
		return fmt.Errorf("lanes: load the script: %w", err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(storeTimeout))
	fmt.Fprintf(nc, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%d\r\n%s\r\n", len(plainText), plainText)
	reply := make([]byte, 256)
	n, err := nc.Read(reply)
	if err != nil || reply[0] != '$' {
		return fmt.Errorf("lanes: load the script: %q, %w", reply[:n], err)
	}
	return nil
}

// call appends a call about a policy.
func (c *plain) call(policy int, args ...float64) {
	key := c.keys[policy]
	c.out = append(c.out, c.head...)
	c.text(len(key))
	c.out = append(c.out, key...)
	c.out = append(c.out, "\r\n"...)
	c.text(8 * len(args))
	for _, v := range args {
		c.out = binary.LittleEndian.AppendUint64(c.out, math.Float64bits(v))
	}
	c.out = append(c.out, "\r\n"...)
	if c.loop.holds {
		c.loop.tally.ops++
	}
}

// text begins a text of so many bytes.
func (c *plain) text(n int) {
	c.out = append(c.out, '$')
	c.out = strconv.AppendInt(c.out, int64(n), 10)
	c.out = append(c.out, "\r\n"...)
}

func (c *plain) ask(_ int64, r *request) {
	requests, tokens, slots := &c.limits[0], &c.limits[1], &c.limits[2]
	c.call(r.policy, tokensExpected, float64(requests.Amount), float64(tokens.Amount),
		float64(requests.Window.Microseconds()), float64(tokens.Window.Microseconds()), float64(slots.Amount))
	c.order.put(r)
}

func (c *plain) settle(_ int64, r *request) {
	c.call(r.policy, float64(tokensExpected-r.tokens))
	c.order.put(nil)
	c.loop.ended(r)
}

// answers reads what has come.
func (c *plain) answers(nowNs int64) error {
	for {
		n, err := unix.Read(c.fd, c.in[len(c.in):cap(c.in)])
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			return nil
		case err != nil:
			return fmt.Errorf("lanes: read from the store: %w", err)
		case n == 0:
			return errors.New("lanes: the store has closed the connection")
		}
		c.in = c.in[:len(c.in)+n]
		full := len(c.in) == cap(c.in)
		if err := c.understand(nowNs); err != nil || !full {
			return err
		}
	}
}

// understand takes whole replies.
func (c *plain) understand(nowNs int64) error {
	rest := c.in
	for {
		line, behind, whole := bytes.Cut(rest, []byte("\r\n"))
		if !whole {
			break
		}
		rest = behind
		if len(line) != 2 || line[0] != ':' || c.order.len() == 0 {
			return fmt.Errorf("lanes: the store replied %.200q", line)
		}
		r := c.order.take()
		switch {
		case r == nil:
		case line[1] == '0':
			c.loop.decided(nowNs, r, admit.Granted)
		default:
			c.loop.decided(nowNs, r, admit.Denied)
		}
	}
	c.in = c.in[:copy(c.in[:cap(c.in)], rest)]
	return nil
}

// send writes as much as the connection takes.
func (c *plain) send() error {
	for len(c.out) > 0 {
		n, err := unix.Write(c.fd, c.out)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("lanes: write to the store: %w", err)
		}
		c.out = c.out[:copy(c.out, c.out[n:])]
	}
	return nil
}

func (c *plain) tick(int64) {}

func (c *plain) await(atMost time.Duration) error {
	what := int16(unix.POLLIN)
	if len(c.out) > 0 {
		what |= unix.POLLOUT
	}
	_, err := await(c.fd, what, atMost)
	return err
}

// rests waits for the replies to the settlements.
func (c *plain) rests(int64) bool { return c.order.len() == 0 }

func (c *plain) close() {
	c.loop.tally.unsettled += int64(c.order.len())
	unix.Close(c.fd)
}
