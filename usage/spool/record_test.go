package spool

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"
	"google.golang.org/protobuf/encoding/protowire"

	"relay/usage"
)

// fill gives every field under v a value of its own.
func fill(v reflect.Value, next *int64) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), next)
		}
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(200 + i))
		}
	case reflect.String:
		*next++
		v.SetString("text-" + strconv.FormatInt(*next, 10))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(2)
	case reflect.Uint64:
		*next++
		v.SetUint(uint64(*next))
	default:
		*next++
		v.SetInt(*next)
	}
}

func fullEvent() *usage.Event {
	var e usage.Event
	next := int64(100)
	fill(reflect.ValueOf(&e).Elem(), &next)
	return &e
}

func TestDecodeRoundTrip(t *testing.T) {
	negative := fullEvent()
	negative.OverheadNs, negative.StartUnixNs = -5, -1
	for name, e := range map[string]*usage.Event{
		"every field": fullEvent(), "zero": {}, "negative numbers": negative, "usual": sample(3),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(appendEvent(nil, e, 42, "relay-1"))
			if err != nil {
				t.Fatal(err)
			}
			if want := (Record{RowSeq: 42, Instance: "relay-1", Event: *e}); got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

// TestDecodeUnknown: a later version adds fields of every wire type.
func TestDecodeUnknown(t *testing.T) {
	b := appendEvent(nil, sample(1), 1, "")
	b = protowire.AppendTag(b, 29, protowire.VarintType)
	b = protowire.AppendVarint(b, 1<<60)
	b = protowire.AppendTag(b, 100, protowire.BytesType)
	b = protowire.AppendString(b, "new")
	b = protowire.AppendTag(b, 1000, protowire.Fixed32Type)
	b = protowire.AppendFixed32(b, 1)
	b = protowire.AppendTag(b, 5000, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, 1)
	got, err := Decode(b)
	if err != nil || got.Event != *sample(1) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestDecodeMalformed(t *testing.T) {
	good := appendEvent(nil, sample(1), 1, "relay")
	for name, b := range map[string][]byte{
		"empty":             {},
		"cut":               good[:len(good)-1],
		"group":             append(bytes.Clone(good), 28<<3&0x7f|3),
		"field 0":           append(bytes.Clone(good), 0, 0),
		"long length":       append(bytes.Clone(good), 8<<3|2, 0xff, 0xff, 0xff, 0xff, 0x0f),
		"wrong wire type":   append(bytes.Clone(good), 8<<3, 5),
		"short id":          append(bytes.Clone(good), 1<<3|2, 1, 5),
		"unknown outcome":   protowire.AppendVarint(protowire.AppendTag(bytes.Clone(good), 22, 0), 7),
		"no outcome":        protowire.AppendVarint(protowire.AppendTag(bytes.Clone(good), 22, 0), 0),
		"unknown source":    protowire.AppendVarint(protowire.AppendTag(bytes.Clone(good), 26, 0), 99),
		"enormous status":   protowire.AppendVarint(protowire.AppendTag(bytes.Clone(good), 20, 0), 1<<40),
		"overlong varint":   append(bytes.Clone(good), 30<<3&0x7f|0x80, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1),
		"fixed in a varint": protowire.AppendFixed64(protowire.AppendTag(bytes.Clone(good), 30, protowire.Fixed64Type), 1),
	} {
		if r, err := Decode(b); err == nil {
			t.Errorf("%s: taken as %+v", name, r)
		}
	}
}

// protoFields reads event.proto: the field numbers of a message by name, and
// the type of each.
func protoFields(t *testing.T, message string) map[protowire.Number][2]string {
	t.Helper()
	text, err := os.ReadFile("event.proto")
	if err != nil {
		t.Fatal(err)
	}
	_, body, ok := strings.Cut(string(text), "message "+message+" {")
	if !ok {
		t.Fatalf("no message %s", message)
	}
	body, _, _ = strings.Cut(body, "\n}")
	fields := make(map[protowire.Number][2]string)
	for _, m := range regexp.MustCompile(`(?m)^  (\w+) (\w+) = (\d+);`).FindAllStringSubmatch(body, -1) {
		n, err := strconv.Atoi(m[3])
		if err != nil {
			t.Fatal(err)
		}
		fields[protowire.Number(n)] = [2]string{m[1], m[2]}
	}
	return fields
}

// TestProto decodes an event by event.proto and the protobuf library alone.
func TestProto(t *testing.T) {
	e := fullEvent()
	fields := protoFields(t, "Event")
	got := make(map[string]any)
	last := protowire.Number(0)
	for b := appendEvent(nil, e, 9, "relay-1"); len(b) > 0; {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 || number <= last {
			t.Fatalf("tag of field %d after %d: %v", number, last, protowire.ParseError(n))
		}
		b, last = b[n:], number
		f, ok := fields[number]
		if !ok {
			t.Fatalf("field %d is not in event.proto", number)
		}
		switch {
		case kind == protowire.VarintType && (f[0] == "int64" || f[0] == "uint64" || f[0] == "bool" || f[0] == "Outcome" || f[0] == "Source"):
			v, n := protowire.ConsumeVarint(b)
			got[f[1]], b = int64(v), b[n:]
		case kind == protowire.Fixed64Type && f[0] == "sfixed64":
			v, n := protowire.ConsumeFixed64(b)
			got[f[1]], b = int64(v), b[n:]
		case kind == protowire.BytesType && (f[0] == "string" || f[0] == "bytes"):
			v, n := protowire.ConsumeBytes(b)
			got[f[1]], b = string(v), b[n:]
		default:
			t.Fatalf("field %d is a %s, encoded as wire type %d", number, f[0], kind)
		}
	}
	if len(got) != len(fields) {
		t.Errorf("%d fields are encoded, event.proto has %d", len(got), len(fields))
	}
	for name, want := range map[string]any{
		"request_id": string(e.RequestID[:]), "row_seq": int64(9), "instance": "relay-1", "caller_id": e.CallerID,
		"start_unix_ns": e.StartUnixNs, "end_unix_ns": e.EndUnixNs, "host_key": e.HostKey, "error": e.Error,
		"status": int64(e.Status), "outcome": int64(e.Outcome) + 1, "source": int64(e.Source) + 1,
		"stream": int64(1), "hung_up": int64(1), "reasoning": e.Tokens.Reasoning, "web_searches": e.Tokens.WebSearches,
		"price_request": e.Price.RequestNano, "price_web_search": e.Price.WebSearchNano,
		"cost_audio": e.Cost.Audio, "cost_total": e.Cost.Total, "cost_provider": e.ProviderCost, "bytes_out": e.BytesOut,
	} {
		if got[name] != want {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
}

func TestSealRoundTrip(t *testing.T) {
	want := Seal{Rows: 5, UnixNs: 77, ClosedBy: uuid.UUID{1, 2, 3}, Interrupted: 2}
	got, err := DecodeSeal(appendSeal(nil, &want))
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if n := len(protoFields(t, "Seal")); n != 4 {
		t.Errorf("event.proto has %d fields in Seal", n)
	}
}

func TestPutString(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"fits", "abcdefgh", "abcdefgh"},
		{"cut", "abcdefghi", "abcdefgh"},
		{"cut before a character", "abcdefgé", "abcdefg"},
		{"cut before a long one", "abcde\U0001F600", "abcde"},
		{"not UTF-8", "a\xffb", "a\uFFFDb"},
		{"half a character", "a\xc3", "a\uFFFD"},
		{"zero", "a\x00b", "a\uFFFDb"},
		{"nothing but rubbish", "\xff\xff\xff\xff", "\uFFFD\uFFFD"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, rest, err := nextField(putString(nil, 8, tt.in, 8))
			if err != nil || len(rest) != 0 || string(f.bytes) != tt.want || !utf8.Valid(f.bytes) {
				t.Errorf("got %q, rest %q, %v; want %q", f.bytes, rest, err, tt.want)
			}
		})
	}
}

// TestLargestEvent: every field at its largest fits into a frame.
func TestLargestEvent(t *testing.T) {
	e := fullEvent()
	var grow func(v reflect.Value)
	grow = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				grow(v.Field(i))
			}
		case reflect.String:
			v.SetString(strings.Repeat("x", 2*FrameBytesMax))
		case reflect.Int, reflect.Int64:
			v.SetInt(-1) // ten bytes
		case reflect.Uint64:
			v.SetUint(1<<64 - 1)
		}
	}
	grow(reflect.ValueOf(e).Elem())
	b := beginFrame(nil, RowFrame)
	b = appendEvent(b, e, 1<<64-1, strings.Repeat("i", 1000))
	endFrame(b, 0) // panics above the limit
	if f, ok := parseFrame(b); !ok || f.Kind != RowFrame {
		t.Error("the frame does not parse")
	}
	t.Logf("%d of %d bytes", len(b)-frameHeadBytes, FrameBytesMax)
}

func TestRecordJSON(t *testing.T) {
	r := Record{Run: uuid.MustParse("0198c5a0-0000-7000-8000-000000000001"), Loop: 2, Kind: RowFrame, Position: 10, RowSeq: 3, Instance: "relay-1", Event: *sample(4000)}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"kind":"row"`, `"request_id":"72657175-6573-7420-3030-303034303030"`, `"start":"2027-01-15T08:00:00.004Z"`,
		`"outcome":"completed"`, `"source":"reported"`, `"tokens":{"input":4000,"cached_input":0,`,
		`"cost_usd":"0.0051"`, `"total":5100000`, `"cost_nano_usd":{"input":5000000,`, `"input_pico_usd":1250000`,
		`"run":"0198c5a0-0000-7000-8000-000000000001"`, `"loop":2`, `"row_seq":3`, `"hung_up":false`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	var keys map[string]any
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatal(err)
	}
	for k := range keys {
		if k != strings.ToLower(k) {
			t.Errorf("key %q is not in snake case", k)
		}
	}
}

func TestHeader(t *testing.T) {
	want := header{kind: carryHeader, loop: 3, run: uuid.UUID{9, 8}, number: 5, start: 1 << 40, rows: 77}
	b := make([]byte, headerBytes)
	want.put(b)
	got, err := parseHeader(b)
	if err != nil || got != want {
		t.Fatalf("got %+v, %v", got, err)
	}
	for i := range b {
		bad := bytes.Clone(b)
		bad[i] ^= 0x10
		if h, err := parseHeader(bad); err == nil {
			t.Errorf("flip in byte %d: taken as %+v", i, h)
		}
	}
	binary.LittleEndian.PutUint16(b[8:], 2)
	binary.LittleEndian.PutUint32(b[60:], checksum(b[:60]))
	if _, err := parseHeader(b); err == nil || err == errHeader {
		t.Errorf("a later version: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(appendEvent(nil, sample(1), 1, "relay"))
	f.Add(appendEvent(nil, fullEvent(), 1, "relay"))
	f.Add(appendSeal(nil, &Seal{Rows: 1}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := DecodeSeal(b); err != nil && len(b) == 0 {
			t.Error("an empty seal is sound")
		}
		if _, err := glanceEvent(b); err != nil && len(b) == 0 {
			t.Error("an empty glance is sound")
		}
		r, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Decode(appendEvent(nil, &r.Event, r.RowSeq, r.Instance))
		if err != nil {
			t.Fatalf("%+v is not read back: %v", r, err)
		}
		third, err := Decode(appendEvent(nil, &again.Event, again.RowSeq, again.Instance))
		if err != nil || third != again { // the first time strings may be cut and cleaned
			t.Fatalf("got %+v, %v\nwant %+v", third, err, again)
		}
	})
}
