package admit

import (
	"strings"
	"testing"

	"relay/httpparse"
	"relay/upstream/wire"
)

// head makes a request of field lines.
func head(lines ...string) *httpparse.Request {
	r := &httpparse.Request{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		r.Fields = append(r.Fields, httpparse.Field{Name: []byte(name), Value: []byte(strings.Trim(value, " "))})
	}
	return r
}

func TestCredential(t *testing.T) {
	for _, tt := range []struct {
		name              string
		lines             []string
		openai, anthropic string
	}{
		{"nothing", nil, "", ""},
		{"other fields", []string{"Host: a", "X-API-Kez: k", "Authorizatiom: Bearer k", "X-WR-API-Kex: k"}, "", ""},
		{"bearer", []string{"Host: a", "Authorization: Bearer rk-1"}, "rk-1", "rk-1"},
		{"any case", []string{"AUTHORIZATION: bEARER rk-1"}, "rk-1", "rk-1"},
		{"more blanks", []string{"Authorization: Bearer    rk-1"}, "rk-1", "rk-1"},
		{"x-api-key", []string{"X-Api-Key: rk-1"}, "rk-1", "rk-1"},
		{"both", []string{"x-api-key: rk-a", "authorization: Bearer rk-o"}, "rk-o", "rk-a"},
		{"own field before all", []string{"x-api-key: a", "authorization: Bearer o", "X-WR-Api-Key: rk-w"}, "rk-w", "rk-w"},
		{"empty own field", []string{"X-WR-API-Key:", "x-api-key: rk-1"}, "rk-1", "rk-1"},
		{"empty key", []string{"x-api-key:", "authorization: Bearer rk-1"}, "rk-1", "rk-1"},
		{"empty bearer", []string{"authorization: Bearer", "x-api-key: rk-1"}, "rk-1", "rk-1"},
		{"all empty", []string{"authorization: Bearer ", "x-api-key:", "X-WR-API-Key:"}, "", ""},
		{"another scheme", []string{"authorization: Basic cms6"}, "", ""},
		{"another scheme and a key", []string{"authorization: Basic cms6", "x-api-key: rk-1"}, "rk-1", "rk-1"},
		{"no scheme", []string{"authorization: rk-1"}, "", ""},
		{"scheme runs on", []string{"authorization: Bearerrk-1"}, "", ""},
		{"scheme with a tab", []string{"authorization: Bearer\trk-1"}, "", ""},
		{"same twice", []string{"authorization: Bearer k", "Authorization: bearer k"}, "k", "k"},
		{"two bearers", []string{"authorization: Bearer k", "authorization: Bearer j"}, "", ""},
		{"two bearers and a key", []string{"authorization: Bearer k", "authorization: Bearer j", "x-api-key: a"}, "", "a"},
		{"two keys", []string{"x-api-key: k", "x-api-key: j", "authorization: Bearer o"}, "o", ""},
		{"two own fields", []string{"x-wr-api-key: k", "x-wr-api-key: j", "authorization: Bearer o"}, "", ""},
		{"own field decides", []string{"x-wr-api-key: k", "authorization: Bearer a", "authorization: Bearer b"}, "k", "k"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := head(tt.lines...)
			if got := string(Credential(r, wire.OpenAI)); got != tt.openai {
				t.Errorf("on an OpenAI route %q, want %q", got, tt.openai)
			}
			if got := string(Credential(r, wire.Anthropic)); got != tt.anthropic {
				t.Errorf("on an Anthropic route %q, want %q", got, tt.anthropic)
			}
		})
	}
}
