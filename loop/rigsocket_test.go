package loop

import (
	"strings"

	"relay/httpparse"
	"relay/usage"
)

// scriptSocket is one connection: the loop's Socket, and the other end of it in
// the hands of the test.
type scriptSocket struct {
	rig    *rig
	conn   Conn
	out    string // all that the loop has written
	unread []byte // sent while reading was paused

	waiting int  // written bytes that the kernel has not taken
	stuck   bool // the kernel takes nothing
	low     int
	notify  bool

	paused, watch bool
	reached       bool   // the peer's kernel has acknowledged something
	fin           bool   // CloseWrite was called
	closed        bool   // Close was called, or the other end has gone
	dropped       bool   // Close was called
	aborted       bool   // Abort was called
	panicOn       string // a Write that holds this text panics
	writes        int
}

func (s *scriptSocket) Write(p []byte) {
	if s.closed {
		return
	}
	if s.panicOn != "" && strings.Contains(string(p), s.panicOn) {
		s.panicOn = ""
		panic(planted)
	}
	if s.fin {
		s.rig.t.Errorf("written after CloseWrite: %.60q", p)
	}
	s.writes++
	s.out += string(p)
	if s.stuck {
		s.waiting += len(p)
	}
}

func (s *scriptSocket) Buffered() int { return s.waiting }

func (s *scriptSocket) NotifyDrained(low int) { s.notify, s.low = true, low }

func (s *scriptSocket) PauseRead(watchHangUp bool) { s.paused, s.watch = true, watchHangUp }

func (s *scriptSocket) ResumeRead() { s.paused = false }

func (s *scriptSocket) Mark() { s.reached = false }

func (s *scriptSocket) Reached() bool { return s.reached }

func (s *scriptSocket) CloseWrite() {
	if s.waiting > 0 {
		s.rig.t.Errorf("CloseWrite with %d bytes not taken", s.waiting)
	}
	s.fin = true
}

func (s *scriptSocket) Close() {
	if !s.closed {
		s.closed, s.dropped, s.waiting = true, true, 0
	}
}

func (s *scriptSocket) Abort() {
	s.aborted = true
	s.Close()
}

// send gives the loop bytes in one read.
func (s *scriptSocket) send(text string) {
	if s.paused {
		s.unread = append(s.unread, text...)
		return
	}
	s.deliver([]byte(text))
	s.rig.settle()
}

// sendEach gives the loop bytes in reads of n bytes.
func (s *scriptSocket) sendEach(text string, n int) {
	for len(text) > n {
		s.send(text[:n])
		text = text[n:]
	}
	s.send(text)
}

// deliver hands p over and overwrites it afterwards: a view that was kept shows.
func (s *scriptSocket) deliver(p []byte) {
	if s.closed {
		return
	}
	s.rig.nowNs += 1000
	s.rig.callback(s.conn, func() { s.conn.OnBytes(p) })
	for i := range p {
		p[i] = 0xdd
	}
}

// read lets the peer take n bytes of what waits.
func (s *scriptSocket) read(n int) {
	s.waiting -= min(n, s.waiting)
	s.tellDrained()
	s.rig.settle()
}

// readAll lets the peer take everything, from now on.
func (s *scriptSocket) readAll() {
	s.stuck = false
	for s.waiting > 0 {
		s.read(s.waiting)
	}
}

func (s *scriptSocket) tellDrained() {
	if s.notify && !s.closed && s.waiting <= s.low {
		s.notify = false
		s.rig.nowNs += 1000
		s.rig.callback(s.conn, s.conn.OnDrained)
	}
}

// close is the other end going away.
func (s *scriptSocket) close(c Cause) {
	if s.closed {
		return
	}
	s.closed, s.waiting = true, 0
	s.rig.nowNs += 1000
	s.rig.callback(s.conn, func() { s.conn.OnClosed(c) })
	s.rig.settle()
}

// reply is one answer as the client reads it.
type reply struct {
	status int
	fields map[string]string // by lower-case name
	body   string
	keep   bool // the connection may be used again
	whole  bool // the message has its proper end
	chunks bool
}

// replies reads everything that the client has got.
func (s *scriptSocket) replies() []reply {
	s.rig.t.Helper()
	var all []reply
	for p := []byte(s.out); len(p) > 0; {
		var r httpparse.Response
		var g httpparse.Progress
		n, fault := r.Parse(p, &g, false)
		if fault != httpparse.OK || n == 0 {
			s.rig.t.Fatalf("no head of an answer (%s): %.200q", fault, p)
		}
		p = p[n:]
		a := reply{status: r.Status, fields: fieldsOf(r.Fields), keep: r.KeepAlive, chunks: r.Body == httpparse.ByChunks}
		switch r.Body {
		case httpparse.NoBody:
			a.whole = true
		case httpparse.ByLength:
			n := min(int(r.ContentLength), len(p))
			a.body, a.whole = string(p[:n]), n == int(r.ContentLength)
			p = p[n:]
		case httpparse.ByChunks:
			var c httpparse.Chunks
			for len(p) > 0 && !a.whole {
				piece, n, done, fault := c.Next(p)
				if fault != httpparse.OK {
					s.rig.t.Fatalf("a bad chunk (%s): %.200q", fault, p)
				}
				a.body, a.whole = a.body+string(piece), done
				p = p[n:]
			}
		case httpparse.UntilClose:
			a.body, a.whole, p = string(p), s.fin, nil
		}
		all = append(all, a)
	}
	return all
}

// reply is the only answer that the client has got.
func (s *scriptSocket) reply() reply {
	s.rig.t.Helper()
	all := s.replies()
	if len(all) != 1 {
		s.rig.t.Fatalf("%d answers, 1 is wanted: %.300q", len(all), s.out)
	}
	return all[0]
}

// asked is one request as the host reads it.
type asked struct {
	line   string // method and target
	fields map[string]string
	body   string
}

// requests reads everything that the host has got.
func (s *scriptSocket) requests() []asked {
	s.rig.t.Helper()
	var all []asked
	for p := []byte(s.out); len(p) > 0; {
		var r httpparse.Request
		var g httpparse.Progress
		n, fault := r.Parse(p, &g)
		if fault != httpparse.OK || n == 0 {
			s.rig.t.Fatalf("no head of a request (%s): %.200q", fault, p)
		}
		p = p[n:]
		a := asked{line: string(r.Method) + " " + string(r.Target), fields: fieldsOf(r.Fields)}
		if r.Chunked || r.ContentLength < 0 {
			s.rig.t.Fatalf("a request without its length: %.300q", s.out)
		}
		n = min(int(r.ContentLength), len(p))
		a.body, p = string(p[:n]), p[n:]
		all = append(all, a)
	}
	return all
}

func fieldsOf(fields []httpparse.Field) map[string]string {
	m := map[string]string{}
	for _, f := range fields {
		name := strings.ToLower(string(f.Name))
		if _, twice := m[name]; twice {
			name += " (again)"
		}
		m[name] = string(f.Value)
	}
	return m
}

// scriptSpool keeps the rows.
type scriptSpool struct {
	rig      *rig
	admitted []usage.Event
	rows     []usage.Event
	lost     int
	full     bool // takes no admitted record
	slow     bool // rows wait to be synced
	broken   bool // rows cannot be taken
	panics   bool // the next Row panics
	synced   int64
}

// Admitted implements Spool.
func (s *scriptSpool) Admitted(e *usage.Event) bool {
	if !s.full {
		s.admitted = append(s.admitted, own(e))
	}
	return !s.full
}

// Row implements Spool.
func (s *scriptSpool) Row(e *usage.Event) bool {
	if s.panics {
		s.panics = false
		s.lost++
		panic(planted)
	}
	if s.broken {
		s.lost++
		return false
	}
	for i := range s.rows {
		if s.rows[i].RequestID == e.RequestID {
			s.rig.t.Error("a second row for one request")
		}
	}
	s.rows = append(s.rows, own(e))
	return true
}

// Pending implements Spool.
func (s *scriptSpool) Pending() bool { return s.slow && s.synced < s.Position() }

// Position implements Spool.
func (s *scriptSpool) Position() int64 { return int64(len(s.rows)) }

// SyncedTo implements Spool.
func (s *scriptSpool) SyncedTo() int64 { return s.synced }

// sync makes rows durable, up to the n-th.
func (s *scriptSpool) sync(n int64) {
	s.synced = n
	s.rig.post(Synced{})
}

// own is the event with strings that live on.
func own(e *usage.Event) usage.Event {
	c := *e
	for _, s := range []*string{&c.CallerID, &c.ModelAsked, &c.UpstreamRequestID} {
		*s = strings.Clone(*s)
	}
	return c
}

// scriptInflater decodes what the test says, when it says so.
type scriptInflater struct {
	rig      *rig
	owner    any
	encoding string
	in       string // encoded bytes
	took     int
	wanted   bool
	ended    bool
	stopped  bool
	panics   bool // the next Write panics
}

func (r *rig) inflate(encoding string, _ int, owner any) Inflater {
	if r.noInflater {
		return nil
	}
	f := &scriptInflater{rig: r, owner: owner, encoding: encoding, wanted: true}
	r.inflaters = append(r.inflaters, f)
	return f
}

func (f *scriptInflater) Write(p []byte) {
	if f.panics {
		panic(planted)
	}
	f.in += string(p)
}

func (f *scriptInflater) End()  { f.ended = true }
func (f *scriptInflater) Next() { f.wanted = true }
func (f *scriptInflater) Stop() { f.stopped = true }

// give hands a piece over that used up all encoded bytes so far.
func (f *scriptInflater) give(m Inflated) {
	f.rig.t.Helper()
	if !f.wanted {
		f.rig.t.Error("a piece that nobody has asked for")
	}
	f.wanted = false
	m.Owner, m.By, m.Took = f.owner, f, len(f.in)-f.took
	f.took = len(f.in)
	f.rig.post(&m)
}
