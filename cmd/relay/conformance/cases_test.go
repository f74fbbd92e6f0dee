//go:build integration

package conformance

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// In the texts of cases CASE stands for the name of the case.

const (
	line     = "POST /v1/chat/completions HTTP/1.1\r\n"
	hostLine = "Host: relay.test\r\n"
	keyLine  = "Authorization: Bearer " + relayKey + "\r\nContent-Type: application/json\r\nX-Case: CASE\r\n"
	start    = line + hostLine + keyLine
)

// body is a request body, and bodyLine the field that announces it.
var (
	body     = `{"model":"echo","messages":[{"role":"user","content":"hello"}]}`
	bodyLine = fmt.Sprintf("Content-Length: %d\r\n", len(body))
	chunked  = "Transfer-Encoding: chunked\r\n"
)

// chunk is one chunk of a body.
func chunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

// whole is a sound request of a case for a model, with more field lines.
func whole(name, model string, lines ...string) string {
	return strings.ReplaceAll(request(model, lines...), "CASE", name)
}

// request is whole with the case left open.
func request(model string, lines ...string) string {
	text := strings.Replace(body, "echo", model, 1)
	return start + strings.Join(lines, "") + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(text), text)
}

// A refusal is a case of bytes that are no request: one answer of a status,
// then the end, and nothing is forwarded, neither they nor what follows.
type refusal struct {
	name, in, status string // status may be several, apart by a blank
}

// refuseAll runs refusals. Behind each comes a sound request, which must not be
// taken for one.
func refuseAll(t *testing.T, list []refusal) {
	for _, tt := range list {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			name := t.Name()
			c := dial(t)
			c.send(strings.ReplaceAll(tt.in, "CASE", name) + whole(name, "echo"))
			c.refused(t, tt.status)
			nothing(t, name)
		})
	}
}

// refused wants one answer of a status that says close, and the end.
func (c *client) refused(t *testing.T, status string) {
	t.Helper()
	a := c.answer(t)
	if !strings.Contains(" "+status+" ", fmt.Sprintf(" %d ", a.status)) || len(a.interim) > 0 {
		t.Errorf("status %v %d, want %s", a.interim, a.status, status)
	}
	if !a.closes() || a.cut || !strings.Contains(a.body, `"error"`) {
		t.Errorf("the refusal is %q", a.head+a.body)
	}
	c.ends(t)
}

// nothing fails the test if a request of the case was forwarded.
func nothing(t *testing.T, name string) {
	t.Helper()
	for _, s := range echo.requests(name) {
		t.Errorf("forwarded: %q", s.head+s.body)
	}
}

// A passage is a case of a request that is served and forwarded once.
type passage struct {
	name, in string
	body     string   // as the upstream gets it; "" = body
	has      []string // lines of the forwarded head
	hasNot   []string // texts that the forwarded head has nowhere
	closes   bool     // the connection ends with the answer
}

// passAll runs passages.
func passAll(t *testing.T, list []passage) {
	for _, tt := range list {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := dial(t)
			c.send(strings.ReplaceAll(tt.in, "CASE", t.Name()))
			c.passed(t, &tt)
		})
	}
}

// passed wants the answer of a passage and looks at what was forwarded.
func (c *client) passed(t *testing.T, tt *passage) {
	t.Helper()
	name := t.Name()
	a := c.answer(t)
	if a.status != 200 || a.body != completion || a.cut {
		t.Errorf("the answer is %q", a.head+a.body)
	}
	list := echo.requests(name)
	if len(list) != 1 {
		t.Fatalf("forwarded %d times", len(list))
	}
	for _, fault := range list[0].faults() {
		t.Errorf("forwarded with %s", fault)
	}
	want := tt.body
	if want == "" {
		want = body
	}
	if list[0].body != want {
		t.Errorf("the body is %q, want %q", list[0].body, want)
	}
	for _, text := range tt.has {
		if !strings.Contains(list[0].head, text+"\r\n") {
			t.Errorf("%q is missing in %q", text, list[0].head)
		}
	}
	for _, text := range tt.hasNot {
		if strings.Contains(strings.ToLower(list[0].head), strings.ToLower(text)) {
			t.Errorf("%q is in %q", text, list[0].head)
		}
	}
	if a.closes() != tt.closes {
		t.Errorf("connection: %q, want close: %t", a.field("connection"), tt.closes)
	}
	if tt.closes {
		c.ends(t)
	} else {
		c.lives(t, name)
	}
}

// sized is an answer with a length.
func sized(status, lines, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s", status, len(body), lines, body)
}

func itoa(n int) string { return strconv.Itoa(n) }
