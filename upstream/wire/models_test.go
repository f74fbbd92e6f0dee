package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

var threeModels = []ModelInfo{{"a/b:c", "host-1", 1764500000}, {`q"q`, "host-2", 0}, {"z", "host-1", 1764500000}}

func TestModelShapes(t *testing.T) {
	for _, tt := range []struct {
		s    Shape
		want string
	}{
		{OpenAI, `{"id":"a/b:c","object":"model","created":1764500000,"owned_by":"host-1"}`},
		{Anthropic, `{"type":"model","id":"a/b:c","display_name":"a/b:c","created_at":"2025-11-30T10:53:20Z","capabilities":null,"deprecated_at":null,` +
			`"lifecycle":"active","line":null,"max_input_tokens":null,"max_tokens":null,"retires_at":null}`},
	} {
		if got := string(AppendModel(nil, tt.s, threeModels[0])); got != tt.want {
			t.Errorf("%v: got %s, want %s", tt.s, got, tt.want)
		}
	}
	list, bad := AppendModelList(nil, OpenAI, threeModels, []byte("limit=junk"))
	want := `{"object":"list","data":[{"id":"a/b:c","object":"model","created":1764500000,"owned_by":"host-1"},` +
		`{"id":"q\"q","object":"model","created":0,"owned_by":"host-2"},{"id":"z","object":"model","created":1764500000,"owned_by":"host-1"}]}`
	if string(list) != want || bad != "" {
		t.Errorf("got %s, %q, want %s", list, bad, want)
	}
	if list, _ := AppendModelList(nil, OpenAI, nil, nil); string(list) != `{"object":"list","data":[]}` {
		t.Errorf("empty list: %s", list)
	}
	if list, _ := AppendModelList(nil, Anthropic, nil, nil); string(list) != `{"data":[],"has_more":false,"first_id":null,"last_id":null}` {
		t.Errorf("empty list: %s", list)
	}
}

func TestModelPages(t *testing.T) {
	many := make([]ModelInfo, 45)
	for i := range many {
		many[i].ID = fmt.Sprintf("m/%02d", i)
	}
	for _, tt := range []struct {
		query       string
		first, last string // "" for null
		n           int
		more        bool
		bad         string
	}{
		{"", "m/00", "m/19", 20, true, ""},
		{"limit=1", "m/00", "m/00", 1, true, ""},
		{"limit=45", "m/00", "m/44", 45, false, ""},
		{"limit=1000", "m/00", "m/44", 45, false, ""},
		{"after_id=m%2F19", "m/20", "m/39", 20, true, ""},
		{"after_id=m%2f39&limit=20", "m/40", "m/44", 5, false, ""},
		{"after_id=m/44", "", "", 0, false, ""},
		{"before_id=m/20&limit=5", "m/15", "m/19", 5, true, ""},
		{"before_id=m/05", "m/00", "m/04", 5, false, ""},
		{"before_id=m/00", "", "", 0, false, ""},
		{"beta=true&limit=2", "m/00", "m/01", 2, true, ""},
		{"limit=0", "", "", 0, false, "limit"},
		{"limit=1001", "", "", 0, false, "limit"},
		{"limit=-1", "", "", 0, false, "limit"},
		{"limit=", "", "", 0, false, "limit"},
		{"limit=1e1", "", "", 0, false, "limit"},
		{"limit=99999999999999999999", "", "", 0, false, "limit"},
		{"after_id=nope", "", "", 0, false, "after_id"},
		{"before_id=nope", "", "", 0, false, "before_id"},
		{"before_id=m/01&after_id=m/00", "", "", 0, false, "before_id"},
		{"after_id=%zz", "", "", 0, false, "query"},
	} {
		t.Run(tt.query, func(t *testing.T) {
			out, bad := AppendModelList([]byte("kept"), Anthropic, many, []byte(tt.query))
			rest, kept := strings.CutPrefix(string(out), "kept")
			if bad != tt.bad || !kept || bad != "" && rest != "" {
				t.Fatalf("bad %q, want %q; out %q", bad, tt.bad, out)
			}
			if bad != "" {
				return
			}
			var list struct {
				Data    []struct{ ID string }
				HasMore bool    `json:"has_more"`
				FirstID *string `json:"first_id"`
				LastID  *string `json:"last_id"`
			}
			if err := json.Unmarshal([]byte(rest), &list); err != nil {
				t.Fatal(err)
			}
			first, last := "", ""
			if list.FirstID != nil {
				first, last = *list.FirstID, *list.LastID
			}
			if first != tt.first || last != tt.last || len(list.Data) != tt.n || list.HasMore != tt.more {
				t.Errorf("got %q to %q, %d, more %v", first, last, len(list.Data), list.HasMore)
			}
			if tt.n > 0 && (list.Data[0].ID != first || list.Data[tt.n-1].ID != last) {
				t.Errorf("the ids do not match the list")
			}
		})
	}
}
