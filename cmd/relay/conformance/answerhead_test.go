//go:build integration

package conformance

import (
	"fmt"
	"strings"
	"testing"
)

// A nonsense is an upstream's answer that is none: 502, the upstream
// connection is dropped, nothing is tried again, the client goes on.
type nonsense struct {
	name, out string
	fin       bool // the upstream closes behind it
	sound     bool // as HTTP, so that the upstream connection may stay
}

// typed are the lines of an answer that would be a good one, behind its first.
var typed = fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(completion))

// answered is an answer with other lines; begun has another status line.
func answered(lines string) string   { return "HTTP/1.1 200 OK\r\n" + lines + "\r\n" + completion }
func begun(statusLine string) string { return statusLine + "\r\n" + typed + "\r\n" + completion }

func nonsenses() []nonsense {
	inBits := chunk(completion) + "0\r\n\r\n"
	coded := func(v string) string {
		return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: " + v + "\r\n\r\n" + inBits
	}
	long := strings.Repeat("a", 70000)
	list := []nonsense{
		{"nothing", "", true, false},
		{"line end alone", "\r\n", true, false},
		{"empty lines first", "\r\n\r\n" + answered(typed), false, false},
		{"HTTP/0.9", "<html>hello</html>\n", false, false},
		{"HTTP/0.9 with JSON", completion, true, false},
		{"garbage", "\xde\xad\xbe\xef\x00\x01", false, false},
		{"TLS alert", "\x15\x03\x01\x00\x02\x02\x28", false, false},
		{"another protocol", begun("SSH-2.0-OpenSSH"), false, false},
		{"ICY", begun("ICY 200 OK"), false, false},
		{"HTTP/2 frames", "\x00\x00\x12\x04\x00\x00\x00\x00\x00", false, false},
		{"half a status line", "HTTP/1.1 2", true, false},
		{"head without end", "HTTP/1.1 200 OK\r\n" + typed, true, false},
		{"unasked 101", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x05hello", false, false},
		{"101 and an answer", "HTTP/1.1 101 Switching Protocols\r\n\r\n" + answered(typed), false, false},
		{"many 1xx", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 100) + answered(typed), false, false},
		{"1xx with a length", "HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\nhello" + answered(typed), false, false},
		{"1xx with chunks", "HTTP/1.1 103 Early Hints\r\n" + chunked + "\r\n" + answered(typed), false, false},
		{"100 and garbage", "HTTP/1.1 100 Continue\r\n\r\ngarbage\r\n\r\n", false, false},
		{"100 and nothing", "HTTP/1.1 100 Continue\r\n\r\n", true, false},
		{"302", sized("302 Found", "Location: http://evil.test/\r\n", completion), false, false},
		{"304", "HTTP/1.1 304 Not Modified\r\n\r\n", false, false},
		{"HTML", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>", false, false},
		{"JSON that is broken", sized("200 OK", "", `{"id":`), false, true},
		{"JSON twice", sized("200 OK", "", "{}{}"), false, true},
		{"length twice different", answered(typed + "Content-Length: 1\r\n"), false, false},
		{"lengths in a list", answered("Content-Type: application/json\r\nContent-Length: 1, 2\r\n"), false, false},
		{"length and chunked", "HTTP/1.1 200 OK\r\n" + typed + chunked + "\r\n" + inBits, false, false},
		{"chunked and length", "HTTP/1.1 200 OK\r\n" + chunked + typed + "\r\n" + inBits, false, false},
		{"chunked twice", coded("chunked, chunked"), false, false},
		{"chunked in two lines", coded("chunked\r\nTransfer-Encoding: chunked"), false, false},
		{"gzip, chunked", coded("gzip, chunked"), false, false},
		{"chunked, gzip", coded("chunked, gzip"), false, false},
		{"identity", coded("identity"), false, false},
		{"empty coding", coded(""), false, false},
		{"coding with a control byte", coded("\vchunked"), false, false},
		{"unknown coding", coded("cow"), false, false},
		{"chunked in HTTP/1.0", strings.Replace(coded("chunked"), "HTTP/1.1", "HTTP/1.0", 1), false, false},
		{"unknown content coding", sized("200 OK", "Content-Encoding: cow\r\n", completion), false, false},
		{"content coding twice", sized("200 OK", "Content-Encoding: gzip, gzip\r\n", completion), false, false},
		{"gzip that is none", sized("200 OK", "Content-Encoding: gzip\r\n", completion), false, true},
		{"status line too long", "HTTP/1.1 200 " + long, false, false},
		{"field too long", "HTTP/1.1 200 OK\r\nX-A: " + long, false, false},
		{"field name too long", "HTTP/1.1 200 OK\r\n" + long, false, false},
		{"fields too many", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: b\r\n", 3000), false, false},
		{"head too long", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: "+long[:9000]+"\r\n", 9), false, false},
		{"fold", answered("X-A: b\r\n c\r\n" + typed), false, false},
		{"blank before the colon", answered("X-A : b\r\n" + typed), false, false},
		{"blank before the colon of the length", answered("Content-Type: application/json\r\nContent-Length : 5\r\n"), false, false},
		{"no colon", answered("X-A\r\n" + typed), false, false},
		{"empty name", answered(": b\r\n" + typed), false, false},
		{"blank first", answered(" X-A: b\r\n" + typed), false, false},
		{"LF behind a field", answered("X-A: b\n" + typed), false, false},
		{"LF behind the status line", "HTTP/1.1 200 OK\n" + typed + "\r\n" + completion, false, false},
		{"LF everywhere", strings.ReplaceAll(answered(typed), "\r\n", "\n"), false, false},
		{"CR in a value", answered("X-A: b\rX-B: c\r\n" + typed), false, false},
		{"CR in the reason", begun("HTTP/1.1 200 O\rK"), false, false},
		{"NUL in the reason", begun("HTTP/1.1 200 O\x00K"), false, false},
	}
	for _, v := range []string{"", "-1", "+5", "0x10", "5 5", "5a", "1e3", "99999999999999999999", "5,", "18446744073709551617"} {
		list = append(list, nonsense{fmt.Sprintf("length %q", v), answered("Content-Type: application/json\r\nContent-Length: " + v + "\r\n"), false, false})
	}
	for _, o := range []string{"\x00", "\x01", "\b", "\v", "\f", "\x1b", "\x7f"} {
		list = append(list, nonsense{fmt.Sprintf("%q in a value", o), answered("X-A: b" + o + "c\r\n" + typed), false, false},
			nonsense{fmt.Sprintf("%q in a name", o), answered("X" + o + "A: b\r\n" + typed), false, false})
	}
	for _, l := range []string{
		"HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 OK", "HTTP/1.1 20 OK", "HTTP/1.1 2000 OK", "HTTP/1.1 2x0 OK", "HTTP/1.1 -20 OK",
		"HTTP/1.1 +200 OK", "HTTP/1.1 000 OK", "HTTP/1.1 099 OK", "HTTP/1.1 600 OK", "HTTP/1.1 999 OK", "HTTP/1.1  200 OK",
		"HTTP/1.1\t200 OK", "HTTP/1.1 200\tOK", "HTTP/1.1 200OK", "HTTP/1.1 200.0 OK", "http/1.1 200 OK", "HTTP/1.2 200 OK",
		"HTTP/2 200 OK", "HTTP/2.0 200 OK", "HTTP/3.0 200 OK", "HTTP/11 200 OK", "HTTP/1.10 200 OK", "HTTP/01.1 200 OK", "HTTPS/1.1 200 OK",
		" HTTP/1.1 200 OK", "XHTTP/1.1 200 OK", "200 OK", "OK",
	} {
		list = append(list, nonsense{fmt.Sprintf("status line %q", l), begun(l), false, false})
	}
	return list
}

func TestAnswerRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range nonsenses() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := take(t, "open")
			c := dial(t)
			c.send(whole(t.Name(), o.model))
			l := o.accept(t)
			l.request(t)
			l.send(tt.out)
			if tt.fin {
				_ = l.Close()
			}
			a := c.answer(t)
			if a.status != 502 || a.cut || !strings.Contains(a.body, `"error"`) {
				t.Errorf("the answer is %q", a.head+a.body)
			}
			if !tt.fin && !tt.sound {
				l.ends(t, goneTime)
			}
			o.lonely(t)
			if a.closes() {
				c.ends(t)
			} else {
				c.lives(t, t.Name())
			}
		})
	}
}

// An answer is the same however it comes in pieces; the client gets its body
// and its status.
func TestAnswerPassed(t *testing.T) {
	t.Parallel()
	inBits := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + chunked + "\r\n"
	fault := `{"error":{"message":"x","type":"y"}}`
	for _, tt := range []struct {
		name, out string
		fin       bool
		status    int
		body      string
	}{
		{"length", sized("200 OK", "", completion), false, 200, completion},
		{"no reason", sized("200 ", "", completion), false, 200, completion},
		{"no blank before the missing reason", sized("200", "", completion), false, 200, completion},
		{"reason with bytes above ASCII", sized("200 \xe4\xf6", "", completion), false, 200, completion},
		{"length twice equal", sized("200 OK", fmt.Sprintf("Content-Length: %d\r\n", len(completion)), completion), false, 200, completion},
		{"chunked", inBits + chunk(completion) + "0\r\n\r\n", false, 200, completion},
		{"chunked, extension and trailer", inBits + fmt.Sprintf("%x;a=b\r\n%s\r\n", len(completion), completion) + "0;c\r\nX-T: u\r\n\r\n", false, 200, completion},
		{"chunks of one byte", inBits + bytewise(completion) + "0\r\n\r\n", false, 200, completion},
		{"until close", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + completion, true, 200, completion},
		{"HTTP/1.0 until close", "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + completion, true, 200, completion},
		{"HTTP/1.0 with length", "HTTP/1.0 200 OK\r\n" + typed + "\r\n" + completion, false, 200, completion},
		{"text until close", "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhello", true, 200, "hello"},
		{"204", "HTTP/1.1 204 No Content\r\n\r\n", false, 204, ""},
		{"204 with a length", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", false, 204, ""},
		{"100 first", "HTTP/1.1 100 Continue\r\n\r\n" + sized("200 OK", "", completion), false, 200, completion},
		{"103 first", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + sized("200 OK", "", completion), false, 200, completion},
		{"five 1xx first", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 5) + sized("200 OK", "", completion), false, 200, completion},
		{"400", sized("400 Bad Request", "", fault), false, 400, fault},
		{"404", sized("404 Not Found", "", fault), false, 404, fault},
		{"408", sized("408 Request Timeout", "Connection: close\r\n", fault), true, 408, fault},
		{"422", sized("422 Unprocessable Content", "", fault), false, 422, fault},
		{"429", sized("429 Too Many Requests", "Retry-After: 9\r\n", fault), false, 429, fault},
		{"500", sized("500 Internal Server Error", "", fault), false, 500, fault},
		{"503", sized("503 Service Unavailable", "", fault), false, 503, fault},
		{"201", sized("201 Created", "", completion), false, 201, completion},
		{"field at its bound", sized("200 OK", fieldOf(fieldMax), completion), false, 200, completion},
		{"empty text", "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n", false, 200, ""},
		{"audio", "HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nContent-Length: 4\r\n\r\n\x00\x01\r\n", false, 200, "\x00\x01\r\n"},
	} {
		for _, n := range []int{1, 1 << 20} {
			t.Run(fmt.Sprintf("%s/%d", tt.name, n), func(t *testing.T) {
				t.Parallel()
				o := take(t, "open")
				c := dial(t)
				c.send(whole(t.Name(), o.model))
				l := o.accept(t)
				l.request(t)
				if n == 1 && len(tt.out) < 1000 {
					for i := range tt.out {
						l.send(tt.out[i : i+1])
					}
				} else {
					l.send(tt.out)
				}
				if tt.fin {
					_ = l.Close()
				}
				a := c.answer(t)
				if a.status != tt.status || a.body != tt.body || a.cut || len(a.interim) > 0 {
					t.Errorf("the answer is %v %q", a.interim, a.head+a.body)
				}
				if strings.Contains(strings.ToLower(a.head), "x-t:") {
					t.Errorf("a trailer is in %q", a.head)
				}
				o.lonely(t)
				if !a.closes() {
					c.lives(t, t.Name())
				}
			})
		}
	}
}

// bytewise is a text in chunks of one byte.
func bytewise(text string) string {
	var b strings.Builder
	for i := range len(text) {
		b.WriteString(chunk(text[i : i+1]))
	}
	return b.String()
}

// An HTTP/1.0 client gets no chunks, whatever the upstream sends.
func TestAnswerOld(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, out, body string }{
		{"chunked", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + chunked + "\r\n" + chunk(completion) + "0\r\n\r\n", completion},
		{"chunked text", "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n" + chunked + "\r\n" + chunk("hello") + chunk("you") + "0\r\n\r\n", "helloyou"},
		{"until close", "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhello", "hello"},
		{"events", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + chunked + "\r\n" + chunk(events) + "0\r\n\r\n", events},
	} {
		for _, stay := range []string{"", "Connection: keep-alive\r\n"} {
			t.Run(tt.name+"/"+stay, func(t *testing.T) {
				t.Parallel()
				o := take(t, "open")
				c := dial(t)
				c.send(strings.Replace(whole(t.Name(), o.model, stay), "HTTP/1.1", "HTTP/1.0", 1))
				l := o.accept(t)
				l.request(t)
				l.send(tt.out)
				if strings.HasPrefix(tt.name, "until") {
					_ = l.Close()
				}
				a := c.answer(t)
				if a.framing == "chunked" || a.body != tt.body || a.cut {
					t.Errorf("%s: %q", a.framing, a.head+a.body)
				}
				if stay != "" && !a.closes() {
					if a.field("connection") != "keep-alive" {
						t.Errorf("the connection stays and does not say so: %q", a.head)
					}
					c.lives(t, t.Name())
				} else {
					c.ends(t)
				}
			})
		}
	}
}
