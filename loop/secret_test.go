package loop

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// secrets are what must not be told: relay keys by their prefix, and the values
// of host keys.
var secrets = []string{"rk-", "host-secret"}

// reveals is the secret that a text holds, or "".
func reveals(text string) string {
	for _, s := range secrets {
		if strings.Contains(text, s) {
			return s
		}
	}
	return ""
}

// TestKeysNotTold: no error, head or row tells a credential, whatever was wrong
// with it or behind it.
func TestKeysNotTold(t *testing.T) {
	fields := map[string]string{
		"bearer":    "Authorization: Bearer rk-%s",
		"x-api-key": "x-api-key: rk-%s\r\nAuthorization: Basic x",
		"own":       "X-WR-API-Key: rk-%s\r\nAuthorization: Bearer sk-none",
	}
	for _, tt := range []struct{ name, key, path, body string }{
		{"unknown", "none", chatPath, chatAsk},
		{"disabled", "off", messagePath, messageAsk},
		{"expired", "old", chatPath, chatAsk},
		{"model not allowed", "few", chatPath, chatAsk},
		{"over its limit", "rated", chatPath, chatAsk},
		{"bad JSON", "free", chatPath, "{]"},
		{"unknown path", "free", "/v1/rk-free/x", "{}"},
		{"unknown model", "free", "/v1/chat/completions", `{"model":"rk-free"}`},
		{"no host", "free", messagePath, messageAsk},
	} {
		for name, field := range fields {
			t.Run(tt.name+" in "+name, func(t *testing.T) {
				r := newRig(t)
				defer r.end()
				c := r.accept()
				ask := post(tt.path, tt.body, fmt.Sprintf(field, tt.key))
				if tt.name == "over its limit" {
					for range 2 {
						c.send(ask)
						r.failDial(DialRefused)
					}
				}
				c.send(ask)
				if len(r.dials) > 0 {
					r.failDial(DialTLS)
				}
				for _, a := range c.replies() {
					if a.status < 400 {
						t.Errorf("status %d", a.status)
					}
				}
				if s := reveals(c.out); s != "" {
					t.Errorf("the caller is told %s: %q", s, c.out)
				}
				for _, row := range r.spool.rows {
					row.ModelAsked = "" // the caller's own text
					if s := reveals(fmt.Sprintf("%+v", row)); s != "" {
						t.Errorf("the row has %s: %+v", s, row)
					}
				}
			})
		}
	}
}

// TestKeysNotSent: only the host's own credential leaves, wherever the caller
// put its key besides.
func TestKeysNotSent(t *testing.T) {
	for _, fields := range [][]string{
		{"Authorization: Bearer rk-free"},
		{"Authorization: Bearer rk-free", "x-api-key: rk-free", "Cookie: key=rk-free"},
		{"Authorization: Bearer rk-free", "X-WR-Api-Key: rk-free", "X-Custom: see rk-free", "api-key: rk-free"},
		{"X-WR-Api-Key: rk-free", "Authorization: Bearer rk-few", "x-api-key: rk-few"},
		{"x-api-key: rk-free", "Authorization: Basic cmstZnJlZQ==", "Proxy-Authorization: Bearer rk-free"},
	} {
		for _, path := range []string{chatPath, messagePath} {
			for _, query := range []string{"", "?key=rk-free", "?beta=true"} {
				r := newRig(t)
				ask, own := chatAsk, "host-secret-o"
				if path == messagePath {
					ask, own = messageAsk, "host-secret-a"
				}
				c := r.accept()
				c.send(post(path+query, ask, fields...))
				u := r.open()
				got := u.requests()[0]
				if strings.Contains(u.out, "rk-") || strings.Count(u.out, "host-secret") != 1 || strings.Contains(u.out, "cmstZnJlZQ") {
					t.Errorf("%v: the host got %q", fields, u.out)
				}
				if got.fields["authorization"]+got.fields["x-api-key"] != map[string]string{chatPath: "Bearer " + own, messagePath: own}[path] {
					t.Errorf("%v: the host got %v", fields, got.fields)
				}
				if strings.Contains(got.line, "beta") != (query == "?beta=true") {
					t.Errorf("the host got %s", got.line)
				}
				u.send(given(200, asJSON, map[string]string{chatPath: chatReply, messagePath: messageReply}[path]))
				if a := c.reply(); a.status != 200 || reveals(c.out) != "" {
					t.Errorf("status %d: %q", a.status, c.out)
				}
				r.end()
			}
		}
	}
}

// TestHostKeysNotTold: what goes wrong at a host tells nothing of its key.
func TestHostKeysNotTold(t *testing.T) {
	for name, act := range map[string]func(r *rig, u *scriptSocket){
		"reset":   func(_ *rig, u *scriptSocket) { u.close(Reset) },
		"junk":    func(_ *rig, u *scriptSocket) { u.send("Bearer host-secret-o\r\n\r\n") },
		"silence": func(r *rig, _ *scriptSocket) { r.pass(31 * time.Second) },
		"refused credential": func(_ *rig, u *scriptSocket) {
			u.send(given(403, asJSON, `{"error":{"message":"key host-secret-o"}}`))
		},
		"HTML":       func(_ *rig, u *scriptSocket) { u.send(given(500, "text/html", "host-secret-o")) },
		"redirect":   func(_ *rig, u *scriptSocket) { u.send("HTTP/1.1 302 x\r\nLocation: /host-secret-o\r\n\r\n") },
		"broken":     func(_ *rig, u *scriptSocket) { u.send(given(200, asJSON, `{"key":"host-secret-o"`)) },
		"set cookie": func(_ *rig, u *scriptSocket) { u.send(given(200, asJSON, chatReply, "Set-Cookie: host-secret-o")) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			c, u := r.exchange(post(chatPath, chatAsk))
			u.reached = true
			act(r, u)
			if s := reveals(c.out); s != "" || c.out == "" {
				t.Errorf("the caller is told %q: %q", s, c.out)
			}
			if s := reveals(fmt.Sprintf("%+v %+v", r.row(0), r.spool.admitted)); s != "" {
				t.Errorf("a record has %s", s)
			}
		})
	}
}
