package mockhost

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// A headFault is a head that no client may accept, or a body that does not
// keep what its head says.
type headFault uint8

const noHeadFault headFault = 0

const okBody = `{"id":"chatcmpl-mock","object":"chat.completion","created":1,"model":"mock","choices":[{"index":0,"message":{"role":"assistant","content":"You should not see this."},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`

func okHead(fields string) string {
	return "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n" + fields + "\r\n"
}

var okLength = fmt.Sprintf("content-length: %d\r\n", len(okBody))

// padMark stands in a raw answer for a padding that is made when it is sent.
const padMark = "\x02"

// headPads are the paddings of answers that are too long to be kept.
var headPads = map[string]struct {
	text  string
	times int
}{
	"huge":        {"a", hugeHeadBytes},
	"many-fields": {"x-odd: a\r\n", 100_000},
}

// headFaults are the raw answers; the connection is closed behind each.
var headFaults = []struct{ name, raw string }{
	{"none", ""},
	{"status-line", "HTTP/1.1 OK\r\n" + okLength + "\r\n" + okBody},
	{"status-range", "HTTP/1.1 099 Odd\r\n" + okLength + "\r\n" + okBody},
	{"version", "HTTP/3.1 200 OK\r\n" + okLength + "\r\n" + okBody},
	{"garbage", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"},
	{"http09", okBody},
	{"two-lengths", okHead(okLength+"content-length: 7\r\n") + okBody},
	{"bad-length", okHead("content-length: +12\r\n") + okBody},
	{"huge-length", okHead("content-length: 99999999999999999999\r\n") + okBody},
	{"length-and-chunked", okHead(okLength+"transfer-encoding: chunked\r\n") + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(okBody), okBody)},
	{"unknown-coding", okHead("transfer-encoding: xchunked\r\n") + okBody},
	{"nul", okHead("x-odd: a\x00b\r\n"+okLength) + okBody},
	{"control", okHead("x-odd: a\x01b\r\n"+okLength) + okBody},
	{"bare-cr", okHead("x-odd: a\rb\r\n"+okLength) + okBody},
	{"bare-lf", strings.ReplaceAll(okHead(okLength), "\r\n", "\n") + okBody},
	{"fold", okHead("x-odd: a\r\n b\r\n"+okLength) + okBody},
	{"space-before-colon", okHead("x-odd : a\r\n"+okLength) + okBody},
	{"no-colon", okHead("x-odd\r\n"+okLength) + okBody},
	{"empty-name", okHead(": a\r\n"+okLength) + okBody},
	{"101", "HTTP/1.1 101 Switching Protocols\r\nupgrade: mock\r\nconnection: upgrade\r\n\r\nmock mock"},
	{"huge", okHead("x-odd: "+padMark+"\r\n"+okLength) + okBody},
	{"many-fields", okHead(padMark+okLength) + okBody},
	{"half", "HTTP/1.1 200 OK\r\ncontent-type: appli"},
	{"chunk-size", okHead("transfer-encoding: chunked\r\n") + "zz\r\n" + okBody + "\r\n0\r\n\r\n"},
	{"chunk-end", okHead("transfer-encoding: chunked\r\n") + fmt.Sprintf("%x\r\n%sXX0\r\n\r\n", len(okBody), okBody)},
	{"chunk-huge", okHead("transfer-encoding: chunked\r\n") + "ffffffffffffffffff\r\n" + okBody},
	{"chunk-cut", okHead("transfer-encoding: chunked\r\n") + fmt.Sprintf("%x\r\n%s\r\n", len(okBody), okBody)},
	{"short-body", okHead(okLength) + okBody[:len(okBody)/2]},
	{"long-body", okHead(okLength) + okBody + okBody},
	{"http10", "HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n" + okBody},
}

var headFaultNames = func() string {
	var names []string
	for _, f := range headFaults[1:] {
		names = append(names, f.name)
	}
	return strings.Join(names, " ")
}()

// HeadFaults lists the values of the scenario word "head".
func HeadFaults() []string { return strings.Fields(headFaultNames) }

func setHead(s *scenario, v string) error {
	i := slices.IndexFunc(headFaults, func(f struct{ name, raw string }) bool { return f.name == v })
	if i <= 0 {
		return fmt.Errorf("want one of %s", headFaultNames)
	}
	s.head = headFault(i)
	return nil
}

// answerWithWrongHead sends the raw answer and closes.
func (c *conn) answerWithWrongHead(sc *scenario) bool {
	fault := &headFaults[sc.head]
	raw := fault.raw
	if pad, ok := headPads[fault.name]; ok {
		raw = strings.Replace(raw, padMark, strings.Repeat(pad.text, pad.times), 1)
	}
	const portion = 64 << 10
	for b := []byte(raw); len(b) > 0; b = b[min(portion, len(b)):] {
		if !c.write(bytes.Clone(b[:min(portion, len(b))])) {
			return false
		}
	}
	return false
}
