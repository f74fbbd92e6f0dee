package httpparse

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/textproto"
	"slices"
	"testing"
)

// rewritten are fields that net/http moves out of its Header, or changes in it.
var rewritten = []string{"Host", "Transfer-Encoding", "Content-Length", "Trailer", "Cache-Control", "Connection"}

// compareFields checks that both readers saw the same values in the same order.
func compareFields(t *testing.T, fields []Field, h http.Header) {
	t.Helper()
	ours := http.Header{}
	for _, f := range fields {
		name := textproto.CanonicalMIMEHeaderKey(string(f.Name))
		ours[name] = append(ours[name], string(f.Value))
	}
	for name := range ours {
		if !slices.Contains(rewritten, name) && !slices.Equal(ours[name], h[name]) {
			t.Fatalf("%s: %q, net/http has %q", name, ours[name], h[name])
		}
	}
	for name := range h {
		if !slices.Contains(rewritten, name) && ours[name] == nil {
			t.Fatalf("%s: only net/http has it: %q", name, h[name])
		}
	}
}

// netReader counts what net/http has taken off the input.
type netReader struct {
	in  *bytes.Reader
	buf *bufio.Reader
}

func newNetReader(in []byte) netReader {
	r := bytes.NewReader(in)
	return netReader{r, bufio.NewReader(r)}
}

func (r netReader) taken() int { return int(r.in.Size()) - r.in.Len() - r.buf.Buffered() }

// compareBody reads the rest of in, a body of one kind, in both ways.
func compareBody(t *testing.T, in []byte, kind BodyKind, length int64, body io.Reader, net netReader) {
	t.Helper()
	var data []byte
	n, whole := 0, true
	switch kind {
	case ByChunks:
		var err Error
		data, n, whole, err = decode(in, nil)
		if err != OK {
			return
		}
	case ByLength:
		whole = length <= int64(len(in))
		n = int(min(length, int64(len(in))))
		data = in[:n]
	case UntilClose:
		n, data = len(in), in
	}
	before := net.taken()
	netData, err := io.ReadAll(body)
	if !whole {
		if err == nil {
			t.Fatalf("net/http reads %q as whole, of %q", netData, in)
		}
		return
	}
	if err != nil {
		return
	}
	if !bytes.Equal(data, netData) || n != net.taken()-before {
		t.Fatalf("body %q of %d bytes, net/http has %q of %d", data, n, netData, net.taken()-before)
	}
}

func FuzzAgainstNetHTTP(f *testing.F) {
	for _, in := range requestSeeds {
		f.Add([]byte(in), false, false)
	}
	for i, in := range responseSeeds {
		f.Add([]byte(in), true, i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, in []byte, response, head bool) {
		if response {
			compareResponse(t, in, head)
		} else {
			compareRequest(t, in)
		}
	})
}

func compareRequest(t *testing.T, in []byte) {
	var r Request
	n, err := r.Parse(in, new(Progress))
	if n == 0 || err != OK || bytes.HasPrefix(in, []byte("\r\n")) { // net/http takes no leading lines
		return
	}
	net := newNetReader(in)
	req, netErr := http.ReadRequest(net.buf)
	if netErr != nil {
		return
	}
	if n != net.taken() {
		t.Fatalf("head of %d bytes, net/http has %d", n, net.taken())
	}
	if req.Method != string(r.Method) || req.RequestURI != string(r.Target) || req.ProtoMinor != int(r.Minor) {
		t.Fatalf("%s, net/http has %s %s %s", r.describe(), req.Method, req.RequestURI, req.Proto)
	}
	if req.Method != "CONNECT" {
		if req.Host != string(r.Host) || req.URL.RawQuery != string(r.Query) || req.Close == r.KeepAlive {
			t.Fatalf("%s, net/http has host %q, query %q, close %t", r.describe(), req.Host, req.URL.RawQuery, req.Close)
		}
	}
	compareFields(t, r.Fields, req.Header)
	kind := NoBody
	switch {
	case r.Chunked:
		kind = ByChunks
	case r.ContentLength >= 0:
		kind = ByLength
	}
	if r.Chunked != slices.Equal(req.TransferEncoding, []string{"chunked"}) || !r.Chunked && req.ContentLength != max(0, r.ContentLength) {
		t.Fatalf("%s, net/http has length %d, coding %q", r.describe(), req.ContentLength, req.TransferEncoding)
	}
	compareBody(t, in[n:], kind, r.ContentLength, req.Body, net)
}

func compareResponse(t *testing.T, in []byte, head bool) {
	var r Response
	n, err := r.Parse(in, new(Progress), head)
	if n == 0 || err != OK {
		return
	}
	net := newNetReader(in)
	req := &http.Request{Method: "GET"}
	if head {
		req.Method = "HEAD"
	}
	res, netErr := http.ReadResponse(net.buf, req)
	if netErr != nil {
		return
	}
	if n != net.taken() {
		t.Fatalf("head of %d bytes, net/http has %d", n, net.taken())
	}
	if res.StatusCode != r.Status || res.ProtoMinor != int(r.Minor) {
		t.Fatalf("%s, net/http has %s %s", r.describe(), res.Proto, res.Status)
	}
	if r.KeepAlive && res.Close {
		t.Fatalf("%s, net/http closes", r.describe())
	}
	compareFields(t, r.Fields, res.Header)
	compareBody(t, in[n:], r.Body, r.ContentLength, res.Body, net)
}
