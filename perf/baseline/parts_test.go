package baseline

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"relay/store/catalog"
	"relay/upstream/wire"
	"relay/usage"
)

// TestEvent compares a whole row with what is expected, but for times and ids.
func TestEvent(t *testing.T) {
	onEngines(t, func(t *testing.T, engine string) {
		r := startRig(t, engine, nil)
		body := strings.Replace(chatStream, "gpt-mock", "gpt-alias", 1)
		a := r.call(chatPath+"?mock=in=1000,cached=400,out=50,reasoning=20", keyWide, body, "X-Request-ID: whole")
		rows := r.rows("whole")
		if len(rows) != 1 {
			t.Fatalf("%d rows", len(rows))
		}
		e := rows[0]
		if e.StartUnixNs == 0 || e.EndUnixNs < e.StartUnixNs || e.FirstTokenNs <= 0 || e.UpstreamNs <= 0 || e.OverheadNs <= 0 ||
			e.GrantUnixNs <= 0 || e.UpstreamRequestID == "" || e.RequestID == [16]byte{} || e.RequestID[6]>>4 != 7 {
			t.Errorf("times or ids: %+v", e)
		}
		e.StartUnixNs, e.EndUnixNs, e.FirstTokenNs, e.UpstreamNs, e.OverheadNs, e.GrantUnixNs, e.UpstreamRequestID, e.RequestID = 0, 0, 0, 0, 0, 0, "", [16]byte{}
		want := usage.Event{
			CallerID: "whole", Generation: 1, Key: "wide", Account: "team", Policy: "wide",
			ModelAsked: "gpt-alias", Model: "gpt-mock", UpstreamModel: "gpt-mock", Host: "chat-host", HostKey: "main",
			Route: "chat_completions", ShapeIn: "openai", ShapeOut: "openai", Status: 200, UpstreamStatus: 200,
			Outcome: usage.Completed, Stream: true, Attempts: 1,
			Tokens: usage.Tokens{Input: 600, CachedInput: 400, Output: 50, Reasoning: 20}, Source: usage.Reported,
			Price:   catalog.Price{Input: 2_000_000, CachedInput: 500_000, CacheWrite5m: 2_000_000, CacheWrite1h: 2_000_000, Output: 10_000_000},
			Cost:    usage.Cost{Input: 1_200_000, CachedInput: 200_000, Output: 500_000, Total: 1_900_000},
			BytesIn: int64(len(body)), BytesOut: int64(len(a.body)),
		}
		if e != want {
			t.Errorf("row  %+v\nwant %+v", e, want)
		}
		if strings.Contains(a.body, `"usage":{`) {
			t.Errorf("the caller got usage that it did not ask for: %s", a.body)
		}
	})
}

// TestOutgoing reads edited bodies, whole and byte by byte.
func TestOutgoing(t *testing.T) {
	c := new(core)
	c.bodies.New = func() any { return &body{core: c} }
	const text = "0123456789"
	for _, tt := range []struct {
		name  string
		edits []wire.Edit
	}{
		{"none", nil},
		{"first", []wire.Edit{{Off: 0, End: 3, Text: []byte("ab")}}},
		{"last", []wire.Edit{{Off: 10, End: 10, Text: []byte("end")}}},
		{"two", []wire.Edit{{Off: 2, End: 4, Text: []byte("a longer text")}, {Off: 4, End: 8}}},
		{"all", []wire.Edit{{Off: 0, End: 10, Text: []byte("new")}}},
	} {
		b := c.body()
		b.bytes, b.edits = append(b.bytes, text...), append(b.edits, tt.edits...)
		want := string(wire.AppendEdited(nil, b.bytes, b.edits))
		o := b.reader()
		whole, err := io.ReadAll(o)
		slowly, errSlowly := io.ReadAll(iotest.OneByteReader(b.reader()))
		if err != nil || errSlowly != nil || string(whole) != want || string(slowly) != want {
			t.Errorf("%s: %q, %q, want %q", tt.name, whole, slowly, want)
		}
		if b.holders.Load() != 3 {
			t.Errorf("%s: %d holders", tt.name, b.holders.Load())
		}
		o.Close()
		o.Close()
		if b.holders.Load() != 2 {
			t.Errorf("%s: %d holders after a close", tt.name, b.holders.Load())
		}
		if _, err := o.Read(make([]byte, 1)); err != io.ErrClosedPipe {
			t.Errorf("%s: read behind the close: %v", tt.name, err)
		}
	}
}

func TestBodyRead(t *testing.T) {
	c := new(core)
	c.bodies.New = func() any { return &body{core: c} }
	for _, tt := range []struct {
		length, announced, most int64
		fits                    bool
	}{
		{0, 0, 10, true}, {10, 10, 10, true}, {10, -1, 10, true}, {11, -1, 10, false}, {100_000, 100_000, 200_000, true}, {100_000, -1, 99_999, false},
	} {
		b := c.body()
		text := strings.Repeat("x", int(tt.length))
		fits, err := b.read(iotest.HalfReader(strings.NewReader(text)), tt.announced, tt.most)
		if fits != tt.fits || err != nil || fits && string(b.bytes) != text {
			t.Errorf("%+v: %v %v, %d bytes", tt, fits, err, len(b.bytes))
		}
		b.drop()
	}
	if _, err := c.body().read(iotest.ErrReader(io.ErrUnexpectedEOF), -1, 10); err != io.ErrUnexpectedEOF {
		t.Errorf("error %v", err)
	}
}

// TestFieldFilters asks for names of both directions, twice.
func TestFieldFilters(t *testing.T) {
	filters := []*fieldFilter{newFieldFilter(sentTo(catalog.OpenAI)), newFieldFilter(sentTo(catalog.Anthropic)), newFieldFilter(returned)}
	want := map[string][3]bool{
		"Content-Type": {true, true, true}, "Accept": {true, true, true}, "X-Own": {true, true, true},
		"Authorization": {}, "X-Api-Key": {}, "X-Wr-Api-Key": {}, "Cookie": {}, "User-Agent": {false, false, true}, "Host": {}, "Content-Length": {},
		"Transfer-Encoding": {}, "Connection": {}, "Te": {}, "Upgrade": {}, "X-Forwarded-For": {false, false, true}, "Anthropic-Version": {false, false, true},
		"Anthropic-Beta": {false, true, true}, "Openai-Beta": {true, false, true}, "X-Request-Id": {}, "Set-Cookie": {true, true, false}, "Server": {true, true, false},
		"X-Ratelimit-Limit-Requests": {true, true, false},
	}
	for range 2 {
		for name, passes := range want {
			for i, f := range filters {
				if name == "Host" && i == 2 || name == "Authorization" && i == 2 || name == "Cookie" && i == 2 || strings.HasPrefix(name, "X-Api") && i == 2 {
					continue // no field of an answer
				}
				if f.passes(name) != passes[i] {
					t.Errorf("filter %d of %s: %v", i, name, !passes[i])
				}
			}
		}
	}
	for i := range fieldNamesMax + 10 {
		filters[0].passes("X-" + strings.Repeat("a", i%50) + string(rune('a'+i%26)) + strings.Repeat("b", i/50))
	}
	if n := len(*filters[0].known.Load()); n > fieldNamesMax {
		t.Errorf("%d names remembered", n)
	}
}

func TestNamed(t *testing.T) {
	h := http.Header{"X-A": nil, "X-B": nil, "Keep-Alive": nil}
	named("close, x-a ,keep-alive,, X-C", func(name string) { delete(h, name) })
	if got := slices.Sorted(maps.Keys(h)); !slices.Equal(got, []string{"Keep-Alive", "X-B"}) {
		t.Errorf("left are %q", got)
	}
}

// TestRecycled sends bodies of different lengths one after the other, and
// together, and wants each host to get what its caller sent.
func TestRecycled(t *testing.T) {
	onEngines(t, func(t *testing.T, engine string) {
		r := startRig(t, engine, nil)
		for i, n := range []int{10, 60_000, 100, 8000, 3000, 7000, 20} {
			body := `{"model":"gpt-mock","n":1,"x":"` + strings.Repeat(string(rune('a'+i)), n) + `"}`
			if a := r.call(chatPath, keyWide, body); a.StatusCode != 200 {
				t.Errorf("%d %s", a.StatusCode, a.body)
			}
			kept := r.mock.Requests()
			if sent := kept[len(kept)-1].Body; !bytes.Equal(sent, []byte(body)) {
				t.Errorf("body of %d bytes: sent %d, %.80q", len(body), len(sent), sent)
			}
		}
	})
}
