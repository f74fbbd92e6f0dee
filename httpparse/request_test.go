package httpparse

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// chatPost is the head that a client library sends for a chat request.
const chatPost = "POST /openai/v1/chat/completions HTTP/1.1\r\n" +
	"Host: relay.example.com:8080\r\n" +
	"User-Agent: OpenAI/Python 1.99.1\r\n" +
	"Accept: application/json\r\n" +
	"Accept-Encoding: gzip, deflate, br, zstd\r\n" +
	"Connection: keep-alive\r\n" +
	"Content-Type: application/json\r\n" +
	"Authorization: Bearer rk-0123456789abcdef0123456789abcdef\r\n" +
	"X-Stainless-Lang: python\r\n" +
	"X-Stainless-Package-Version: 1.99.1\r\n" +
	"X-Stainless-Retry-Count: 0\r\n" +
	"X-Request-ID: 0191f5d2-7c4e-7b1a-9f3e-2f6f0e8f3b11\r\n" +
	"Content-Length: 1024\r\n\r\n"

// describe puts all that a head says in one comparable text.
func (r *Request) describe() string {
	return fmt.Sprintf("%s %s path=%s query=%q host=%q minor=%d fields=%q length=%d chunked=%t keep=%t expect=%t",
		r.Method, r.Target, r.Path, r.Query, r.Host, r.Minor, r.Fields,
		r.ContentLength, r.Chunked, r.KeepAlive, r.ExpectContinue)
}

func parseRequest(in string) (r *Request, n int, err Error) {
	r = new(Request)
	n, err = r.Parse([]byte(in), new(Progress))
	return r, n, err
}

func TestRequestParse(t *testing.T) {
	r, n, err := parseRequest(chatPost + "{}")
	if n != len(chatPost) || err != OK {
		t.Fatalf("n = %d, err = %v; want %d", n, err, len(chatPost))
	}
	if len(r.Fields) != 12 {
		t.Fatalf("%d fields, want 12", len(r.Fields))
	}
	for _, tt := range []struct{ what, got, want string }{
		{"method", string(r.Method), "POST"},
		{"target", string(r.Target), "/openai/v1/chat/completions"},
		{"path", string(r.Path), "/openai/v1/chat/completions"},
		{"host", string(r.Host), "relay.example.com:8080"},
		{"name", string(r.Fields[7].Name), "X-Stainless-Lang"},
		{"value", string(r.Field("x-stainless-lang")), "python"},
		{"framing", fmt.Sprint(r.ContentLength, r.Chunked, r.KeepAlive, r.ExpectContinue, r.Minor), "1024 false true false 1"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s = %q, want %q", tt.what, tt.got, tt.want)
		}
	}
	if r.Query != nil || r.Field("x-missing") != nil {
		t.Errorf("query = %q, missing field = %q; want nil", r.Query, r.Field("x-missing"))
	}
}

func TestRequestIncomplete(t *testing.T) {
	for cut := range len(chatPost) {
		if _, n, err := parseRequest(chatPost[:cut]); n != 0 || err != OK {
			t.Fatalf("first %d bytes: n = %d, err = %v", cut, n, err)
		}
	}
}

func TestRequestLine(t *testing.T) {
	for _, tt := range []struct {
		line string
		err  Error
	}{
		{"GET / HTTP/1.1", OK},
		{"GET / HTTP/1.0", OK},
		{"get / HTTP/1.1", OK},
		{"M-SEARCH!#$%&'*+.^_`|~09 / HTTP/1.1", OK},
		{"GET /%zz\"<>\\^`{|} HTTP/1.1", OK},
		{"GET  / HTTP/1.1", Malformed},
		{"GET /  HTTP/1.1", Malformed},
		{"GET / HTTP/1.1 ", Malformed},
		{" GET / HTTP/1.1", Malformed},
		{"GET\t/ HTTP/1.1", Malformed},
		{"GET /\tHTTP/1.1", Malformed},
		{"GET /\vHTTP/1.1", Malformed},
		{"GET / x HTTP/1.1", Malformed},
		{"GET /", Malformed},
		{"GET", Malformed},
		{"GET / ", Malformed},
		{"GET HTTP/1.1", Malformed},
		{"G(T / HTTP/1.1", Malformed},
		{"G\"T / HTTP/1.1", Malformed},
		{"GET: / HTTP/1.1", Malformed},
		{"G\x80T / HTTP/1.1", Malformed},
		{"GET /\x00 HTTP/1.1", Malformed},
		{"GET /\x7f HTTP/1.1", Malformed},
		{"GET /\xc3\xa4 HTTP/1.1", Malformed},
		{"GET /a#b HTTP/1.1", Malformed},
		{"GET /\r HTTP/1.1", Malformed},
		{"GET / HTTP/1.1\r", Malformed},
		{"GET / http/1.1", Malformed},
		{"GET / HTTP/1,1", Malformed},
		{"GET / HTTP/1.", Malformed},
		{"GET / HTTP/1", Malformed},
		{"GET / HTTP/1.10", Malformed},
		{"GET / HTTP/01.1", Malformed},
		{"GET / HTTP/+1.1", Malformed},
		{"GET / HTTP/a.1", Malformed},
		{"GET / HTTP/1.\xb1", Malformed},
		{"GET / HTTPS/1.1", Malformed},
		{"GET / ICY/1.1", Malformed},
		{"GET / HTTP/1.2", BadVersion},
		{"GET / HTTP/0.9", BadVersion},
		{"GET / HTTP/2.0", BadVersion},
		{"GET / HTTP/3.0", BadVersion},
		{"PRI * HTTP/2.0", BadVersion},
		{"G@T / HTTP/2.0", Malformed},
		{"GET * HTTP/1.1", BadTarget},
		{"GET foo HTTP/1.1", BadTarget},
		{"GET ?x HTTP/1.1", BadTarget},
		{"GET a.com:80 HTTP/1.1", BadTarget},
		{"OPTIONS ** HTTP/1.1", BadTarget},
		{"OPTIONS *?x HTTP/1.1", BadTarget},
		{"\x16\x03\x01\x02\x00", Malformed},
	} {
		if _, _, err := parseRequest(tt.line + "\r\nHost: a\r\n\r\n"); err != tt.err {
			t.Errorf("%q: %v, want %v", tt.line, err, tt.err)
		}
	}
}

func TestRequestTarget(t *testing.T) {
	for _, tt := range []struct {
		method, target    string
		path, query, host string // query "-" = nil
		err               Error
	}{
		{"GET", "/", "/", "-", "field", OK},
		{"GET", "/a/b?c=d?e", "/a/b", "c=d?e", "field", OK},
		{"GET", "/a?", "/a", "", "field", OK},
		{"GET", "//evil.example/x", "//evil.example/x", "-", "field", OK},
		{"GET", "/http://other/", "/http://other/", "-", "field", OK},
		{"OPTIONS", "*", "*", "-", "field", OK},
		{"GET", "http://other/x?y", "/x", "y", "other", OK},
		{"GET", "HTTPS://other:8443/x", "/x", "-", "other:8443", OK},
		{"GET", "http://other", "/", "-", "other", OK},
		{"GET", "http://other?y", "/", "y", "other", OK},
		{"GET", "http://other/?y", "/", "y", "other", OK},
		{"GET", "http://[::1]:80/", "/", "-", "[::1]:80", OK},
		{"GET", "http://user@other/", "", "-", "", BadTarget},
		{"GET", "http://user:pw@other/", "", "-", "", BadTarget},
		{"GET", "http:///x", "", "-", "", BadTarget},
		{"GET", "http://", "", "-", "", BadTarget},
		{"GET", "http:/x", "", "-", "", BadTarget},
		{"GET", "http:/", "", "-", "", BadTarget},
		{"GET", "http:x", "", "-", "", BadTarget},
		{"GET", "http://:80/", "", "-", "", BadTarget},
		{"GET", "http://other:x/", "", "-", "", BadTarget},
		{"GET", "http://other:99999/", "", "-", "", BadTarget},
		{"GET", "http://a,b/", "", "-", "", BadTarget},
		{"GET", "ftp://other/", "", "-", "", BadTarget},
		{"GET", "ws://other/", "", "-", "", BadTarget},
		{"CONNECT", "other:443", "", "-", "other:443", OK},
		{"CONNECT", "[::1]:443", "", "-", "[::1]:443", OK},
		{"CONNECT", "other", "", "-", "", BadTarget},
		{"CONNECT", "other:", "", "-", "", BadTarget},
		{"CONNECT", "[::1]", "", "-", "", BadTarget},
		{"CONNECT", "1234", "", "-", "", BadTarget},
		{"CONNECT", "/", "", "-", "", BadTarget},
		{"CONNECT", "*", "", "-", "", BadTarget},
		{"CONNECT", "http://other:443/", "", "-", "", BadTarget},
		{"CONNECT", "a@b:443", "", "-", "", BadTarget},
		{"connect", "other:443", "", "-", "", BadTarget},
	} {
		r, _, err := parseRequest(tt.method + " " + tt.target + " HTTP/1.1\r\nHost: field\r\n\r\n")
		if err != tt.err {
			t.Errorf("%s %s: %v, want %v", tt.method, tt.target, err, tt.err)
			continue
		}
		if err != OK {
			continue
		}
		query := string(r.Query)
		if r.Query == nil {
			query = "-"
		}
		if string(r.Path) != tt.path || query != tt.query || string(r.Host) != tt.host || string(r.Target) != tt.target {
			t.Errorf("%s %s: path %q query %q host %q", tt.method, tt.target, r.Path, query, r.Host)
		}
		if want := tt.method != "CONNECT"; r.KeepAlive != want {
			t.Errorf("%s %s: keep-alive %t, want %t", tt.method, tt.target, r.KeepAlive, want)
		}
	}
}

func TestRequestHost(t *testing.T) {
	for _, tt := range []struct {
		name, head, host string
		err              Error
	}{
		{"1.1 without", "GET / HTTP/1.1\r\n\r\n", "", BadHost},
		{"1.1 absolute without", "GET http://a/ HTTP/1.1\r\n\r\n", "", BadHost},
		{"1.0 without", "GET / HTTP/1.0\r\n\r\n", "", OK},
		{"1.0 absolute without", "GET http://a/ HTTP/1.0\r\n\r\n", "a", OK},
		{"1.0 with", "GET / HTTP/1.0\r\nHost: b\r\n\r\n", "b", OK},
		{"any case", "GET / HTTP/1.1\r\nhOsT:b\r\n\r\n", "b", OK},
		{"two", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "", BadHost},
		{"two equal", "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\nhost: a\r\n\r\n", "", BadHost},
		{"1.0 two", "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", "", BadHost},
		{"absolute, two", "GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "", BadHost},
		{"absolute, invalid field", "GET http://a/ HTTP/1.1\r\nHost: a b\r\n\r\n", "", BadHost},
		{"absolute overrides", "GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n", "a", OK},
		{"empty", "GET / HTTP/1.1\r\nHost:\r\n\r\n", "", BadHost},
		{"blank", "GET / HTTP/1.1\r\nHost:  \t \r\n\r\n", "", BadHost},
	} {
		r, _, err := parseRequest(tt.head)
		if err != tt.err || err == OK && string(r.Host) != tt.host {
			t.Errorf("%s: %v, host %q; want %v, %q", tt.name, err, r.Host, tt.err, tt.host)
		}
	}
	for _, tt := range []struct {
		host string
		ok   bool
	}{
		{"example.com", true}, {"example.com:80", true}, {"example.com:", true}, {"a_b-c~d.e", true},
		{"127.0.0.1:8080", true}, {"[::1]", true}, {"[::1]:80", true}, {"[2001:db8::192.0.2.1]", true}, {"a:65535", true},
		{"a b", false}, {"a,b", false}, {"a/b", false}, {"a?b", false}, {"a#b", false}, {"a@b", false}, {"user:pw@a", false},
		{"a\\b", false}, {"a%00", false}, {"a\"b", false}, {"a;b", false}, {"\xc3\xa4", false}, {"http://a", false},
		{"a:b", false}, {"a:80:80", false}, {"a:-1", false}, {"a:65536", false}, {"a:000080", false}, {":80", false},
		{"::1", false}, {"[::1", false}, {"::1]", false}, {"[]", false}, {"[::1]a", false}, {"[::1]80", false},
		{"[::1%25eth0]", false}, {"[v1.a]", false}, {"[1.2.3.4]", false}, {"[::1]]", false}, {"a\tb", false},
	} {
		_, _, err := parseRequest("GET / HTTP/1.1\r\nHost: " + tt.host + "\r\n\r\n")
		if (err == OK) != tt.ok || !tt.ok && err != BadHost {
			t.Errorf("Host %q: %v, want valid %t", tt.host, err, tt.ok)
		}
	}
}

func TestRequestFields(t *testing.T) {
	for _, tt := range []struct {
		name, lines string
		err         Error
	}{
		{"empty value", "X:\r\n", OK},
		{"blanks around", "X: \t y \t\r\n", OK},
		{"HTAB inside", "X: a\tb\r\n", OK},
		{"obs-text", "X: \x80\xff\xc3\xa4\r\n", OK},
		{"all tchar", "!#$%&'*+-.^_`|~0aZ: y\r\n", OK},
		{"blank before colon", "X : y\r\n", Malformed},
		{"HTAB before colon", "X\t: y\r\n", Malformed},
		{"empty name", ": y\r\n", Malformed},
		{"no colon", "X\r\n", Malformed},
		{"blank in name", "X Y: z\r\n", Malformed},
		{"fold", "X: a\r\n b\r\n", Malformed},
		{"HTAB fold", "X: a\r\n\tb\r\n", Malformed},
		{"fold at first", " X: a\r\n", Malformed},
		{"blank line in front of the end", " \r\n", Malformed},
		{"bare LF", "X: a\nY: b\r\n", Malformed},
		{"bare LF ends line", "X: a\n", Malformed},
		{"bare CR", "X: a\rY: b\r\n", Malformed},
		{"CR CR LF", "X: a\r\r\n", Malformed},
		{"LF CR", "X: a\n\rY: b\r\n", Malformed},
		{"NUL in value", "X: a\x00b\r\n", Malformed},
		{"NUL in name", "X\x00: b\r\n", Malformed},
		{"vertical tab", "X: a\vb\r\n", Malformed},
		{"form feed in front", "X:\fb\r\n", Malformed},
		{"DEL", "X: a\x7f\r\n", Malformed},
		{"DEL in a long value", "X: " + strings.Repeat("y", 37) + "\x7f" + strings.Repeat("y", 37) + "\r\n", Malformed},
		{"HTAB in a long value", "X: " + strings.Repeat("y", 37) + "\t" + strings.Repeat("y", 37) + "\r\n", OK},
		{"ESC in a long value", "X: " + strings.Repeat("\xff", 8) + "\x1b" + strings.Repeat("y", 7) + "\r\n", Malformed},
		{"quoted name", "\"X\": y\r\n", Malformed},
		{"obs-text in name", "X\xc3\xa4: y\r\n", Malformed},
		{"parenthesis in name", "X(: y\r\n", Malformed},
	} {
		if _, _, err := parseRequest("GET / HTTP/1.1\r\nHost: a\r\n" + tt.lines + "\r\n"); err != tt.err {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.err)
		}
	}
	r, _, _ := parseRequest("GET / HTTP/1.1\r\nHost: a\r\nX: \t y z \t\r\nE: \t\r\n\r\n")
	if got := string(r.Field("x")); got != "y z" {
		t.Errorf("trimmed value = %q", got)
	}
	if v := r.Field("e"); v == nil || len(v) != 0 {
		t.Errorf("blank value = %q, want empty and not nil", v)
	}
}

// TestRequestOctets tries each octet in each part of a head.
func TestRequestOctets(t *testing.T) {
	const tchars = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for o := range 256 {
		token := strings.IndexByte(tchars, byte(o)) >= 0 && o != 0
		for _, tt := range []struct {
			part, format string
			ok           bool
		}{
			{"method", "G%cT / HTTP/1.1\r\nHost: a\r\n\r\n", token},
			{"target", "GET /%c HTTP/1.1\r\nHost: a\r\n\r\n", o > 0x20 && o < 0x7f && o != '#'},
			{"name", "GET / HTTP/1.1\r\nHost: a\r\nX%cX: y\r\n\r\n", token || o == ':'},
			{"value", "GET / HTTP/1.1\r\nHost: a\r\nX: y%cy\r\n\r\n", o == '\t' || o >= 0x20 && o != 0x7f},
		} {
			in := bytes.Replace([]byte(tt.format), []byte("%c"), []byte{byte(o)}, 1)
			if _, err := new(Request).Parse(in, new(Progress)); (err == OK) != tt.ok {
				t.Errorf("%s with %#02x: %v, want valid %t", tt.part, o, err, tt.ok)
			}
		}
	}
}

func TestRequestLeadingLines(t *testing.T) {
	const head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	for lines := range LeadingLinesMax + 2 {
		in := strings.Repeat("\r\n", lines) + head
		_, n, err := parseRequest(in)
		if lines <= LeadingLinesMax && (n != len(in) || err != OK) {
			t.Errorf("%d lines: n = %d, %v", lines, n, err)
		}
		if lines > LeadingLinesMax && err != Malformed {
			t.Errorf("%d lines: %v, want %v", lines, err, Malformed)
		}
	}
	for _, in := range []string{"\n" + head, "\r" + head, "\r\r\n" + head, " \r\n" + head} {
		if _, _, err := parseRequest(in); err != Malformed {
			t.Errorf("%q: %v, want %v", in[:4], err, Malformed)
		}
	}
}

// TestRequestPipelined parses heads that stand behind one another.
func TestRequestPipelined(t *testing.T) {
	in := []byte("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: b\r\n\r\n")
	var r Request
	var g Progress
	for _, want := range []string{"/1", "/2"} {
		n, err := r.Parse(in, &g)
		if err != OK || string(r.Path) != want || len(r.Fields) != 1 {
			t.Fatalf("path %q, %d fields, %v; want %q", r.Path, len(r.Fields), err, want)
		}
		if g != (Progress{}) {
			t.Fatalf("progress = %+v behind a whole head", g)
		}
		in = in[n:]
	}
	if len(in) != 0 {
		t.Fatalf("%d bytes left", len(in))
	}
}

// TestRequestReused checks that nothing of one request is left in the next.
func TestRequestReused(t *testing.T) {
	var r Request
	for _, in := range []string{
		"POST http://a/b?c HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\nX: y\r\n\r\n",
		"GET / HTTP/1.0\r\n\r\n",
		"CONNECT a:1 HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: c\r\n\r\n",
	} {
		if _, err := r.Parse([]byte(in), new(Progress)); err != OK {
			t.Fatalf("%q: %v", in, err)
		}
		fresh, _, _ := parseRequest(in)
		if got, want := r.describe(), fresh.describe(); got != want {
			t.Errorf("reused %s\nfresh %s", got, want)
		}
	}
}

// TestViews checks that appending to a view never writes into the input.
func TestViews(t *testing.T) {
	const request = "POST http://a:1/b?c HTTP/1.1\r\nHost: d\r\nX: y \r\n\r\n"
	const response = "HTTP/1.1 200 OK\r\nX: y \r\n\r\n"
	in, out := []byte(request), []byte(response)
	var r Request
	var a Response
	if _, err := r.Parse(in, new(Progress)); err != OK {
		t.Fatal(err)
	}
	if _, err := a.Parse(out, new(Progress), false); err != OK {
		t.Fatal(err)
	}
	views := [][]byte{r.Method, r.Target, r.Path, r.Query, r.Host, a.Reason}
	for _, f := range append(r.Fields, a.Fields...) {
		views = append(views, f.Name, f.Value)
	}
	for _, v := range views {
		_ = append(v, "!!"...)
	}
	if string(in) != request || string(out) != response {
		t.Errorf("inputs are now %q and %q", in, out)
	}
}

// TestRequestRefusedTarget: after an error nothing is left of a request before.
func TestRequestRefusedTarget(t *testing.T) {
	var r Request
	for _, tt := range []struct{ in, method, target string }{
		{"GET /first HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/first"},
		{"GET  /second HTTP/1.1\r\n", "", ""},
		{"POST /third HTTP/1.1\r\n: x\r\n", "POST", "/third"},
	} {
		var g Progress
		r.Parse([]byte(tt.in), &g)
		if string(r.Method) != tt.method || string(r.Target) != tt.target {
			t.Errorf("%q: %s %s", tt.in, r.Method, r.Target)
		}
	}
}
