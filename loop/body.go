package loop

import (
	"relay/httpparse"
	"relay/upstream/wire"
)

// bodyStart is the first piece of memory for a body; an announced length alone
// reserves no more.
const bodyStart = 64 << 10

// bodyGrowth multiplies a body's memory when it is full, so that a large body
// is copied little.
const bodyGrowth = 8

// expectBody makes x ready to read the request body.
func (x *exchange) expectBody(head, after []byte) {
	l, r := x.loop, &x.loop.request
	c := x.client
	x.route.Suffix = nil // a view into head, which is borrowed
	x.head = append(l.buffers.take(len(head)), head...)
	x.scan.Reset(x.route.ID)
	x.bodyLeft = max(r.ContentLength, 0)
	if r.Chunked {
		x.bodyLeft = -1
	}
	c.enter(receiving)
	if x.bodyLeft == 0 {
		x.bodyComplete()
		return
	}
	if r.ExpectContinue && len(after) == 0 {
		c.put(append(c.room(32), "HTTP/1.1 100 Continue\r\n\r\n"...))
	}
	l.wheel.arm(&c.timer, l.nowNs+int64(bodyGrace))
}

// takeBody takes the bytes of p that belong to the body and returns how many.
// Afterwards the body may be complete, or the request refused.
func (x *exchange) takeBody(p []byte) (n int) {
	c := x.client
	if x.bodyLeft >= 0 {
		n = int(min(int64(len(p)), x.bodyLeft))
		x.bodyLeft -= int64(n)
		if !x.appendBody(p[:n]) {
			return n
		}
		x.scanBody(x.bodyLeft == 0)
		return n
	}
	for n < len(p) && c.state == receiving {
		data, used, done, fault := x.chunks.Next(p[n:])
		n += used
		if fault != httpparse.OK {
			x.refuse(wire.BadRequest, fault.String(), "", 0)
			return len(p)
		}
		if int64(len(x.body)+len(data))+x.chunks.Left() > x.loop.config.RequestBytesMax { // announced: not waited for
			x.refuse(wire.BodyTooLarge, "", "", 0)
			return len(p)
		}
		if !x.appendBody(data) {
			return n
		}
		if done {
			x.bodyLeft = 0
			x.scanBody(true)
			return n
		}
	}
	if c.state == receiving {
		x.scanBody(false)
	}
	return n
}

// appendBody keeps a piece of the body, or refuses the request when there is
// no room for it.
func (x *exchange) appendBody(p []byte) bool {
	l := x.loop
	x.event.BytesIn += int64(len(p))
	need := len(x.body) + len(p)
	if int64(need) > l.config.RequestBytesMax {
		x.refuse(wire.BodyTooLarge, "", "", 0)
		return false
	}
	if need <= cap(x.body) {
		x.body = append(x.body, p...)
		return true
	}
	size := max(need, bodyGrowth*cap(x.body))
	if x.bodyLeft >= 0 {
		whole := need + int(x.bodyLeft)
		if x.body == nil {
			size = max(need, bodyStart)
		}
		size = min(size, whole)
	} else {
		size = min(size, int(l.config.RequestBytesMax))
	}
	if !l.buffers.room(int64(size)) {
		l.metrics.Shed[ShedMemory]++
		x.refuse(wire.Overloaded, "", "", 0)
		return false
	}
	grown := append(append(l.buffers.take(size), x.body...), p...)
	l.buffers.give(x.body)
	x.body = grown
	return true
}

// scanBody looks at what has come of the body, and goes on when it is whole.
func (x *exchange) scanBody(end bool) {
	if !x.multipart {
		if fault := x.scan.Advance(x.body, end); fault != wire.ScanOK {
			x.refuse(wire.BadRequest, fault.Message(), fault.Param(), 0)
			return
		}
	}
	if end {
		x.bodyComplete()
	}
}

// bodyTimer looks at a body that is not complete after a while: it goes on as
// long as its average rate holds, which single bytes do not keep up.
func (x *exchange) bodyTimer() {
	l := x.loop
	deadlineNs := x.startNs + int64(bodyGrace) + x.event.BytesIn*1e9/bodyRateMin
	if l.nowNs < deadlineNs {
		l.wheel.arm(&x.client.timer, deadlineNs)
		return
	}
	x.refuse(wire.RequestTimeout, "", "", 0)
}

// bodyComplete goes on to admission.
func (x *exchange) bodyComplete() {
	l, c := x.loop, x.client
	c.enter(running)
	l.wheel.disarm(&c.timer)
	x.readNs = l.nowNs
	if x.multipart {
		contentType := x.parsedHead().Field("content-type")
		span, fault := wire.ScanMultipart(x.body, contentType)
		if fault != wire.ScanOK {
			x.refuse(wire.BadRequest, fault.Message(), fault.Param(), 0)
			return
		}
		x.scan.Model = span
	} else if len(x.body) == 0 {
		if fault := x.scan.Advance(nil, true); fault != wire.ScanOK {
			x.refuse(wire.BadRequest, fault.Message(), fault.Param(), 0)
			return
		}
	}
	x.admit()
}

// parsedHead parses the kept request head into the loop's scratch. It was
// valid once, so it is valid again.
func (x *exchange) parsedHead() *httpparse.Request {
	var g httpparse.Progress
	if n, fault := x.loop.request.Parse(x.head, &g); n == 0 || fault != httpparse.OK {
		panic("BUG: a kept request head is not valid")
	}
	return &x.loop.request
}
