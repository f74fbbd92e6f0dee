package loop

import (
	"strings"
	"testing"
	"time"

	"relay/store/catalog"
	"relay/usage"
)

const (
	ratedKey  = "Authorization: Bearer rk-rated"
	narrowKey = "Authorization: Bearer rk-narrow"
)

// TestDenied: a denial names the limit and the time after which it grants.
func TestDenied(t *testing.T) {
	for _, path := range []string{chatPath, messagePath} {
		t.Run(path, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			body := chatAsk
			if path == messagePath {
				body = messageAsk
			}
			c := r.accept()
			for i := range 2 {
				c.send(post(path, body, ratedKey))
				if i == 0 {
					r.open()
				}
				r.sockets[1].send(given(200, asJSON, map[string]string{chatPath: chatReply, messagePath: messageReply}[path]))
			}
			r.pass(10 * time.Second)
			c.out = ""
			c.send(post(path, body, ratedKey))
			a := c.reply()
			wantError(t, a, 429, 0, path == messagePath, "rate_limit_error", "rate_limit_error", "rate_limit_exceeded",
				"limit of policy/rated reached: 2 requests per 1m0s")
			if a.fields["retry-after"] != "20" || !a.keep {
				t.Errorf("retry-after %q, want 20; kept alive: %t", a.fields["retry-after"], a.keep)
			}
			if row := r.row(2); row.Outcome != usage.Refused || row.Error != "rate_limited" || row.Status != 429 || row.Cost.Total != 0 || row.Attempts != 0 {
				t.Errorf("row %+v", row)
			}
			if r.loop.metrics.Denials[catalog.Requests] != 1 || len(r.spool.admitted) != 2 {
				t.Errorf("%d denials, %d admitted", r.loop.metrics.Denials[catalog.Requests], len(r.spool.admitted))
			}
			r.pass(19 * time.Second)
			c.out = ""
			c.send(post(path, body, ratedKey))
			if a := c.reply(); a.status != 429 || a.fields["retry-after"] != "1" {
				t.Errorf("a second early: status %d, retry-after %q", a.status, a.fields["retry-after"])
			}
			r.pass(time.Second)
			c.send(post(path, body, ratedKey))
			serve(r.sockets[1])
			if all := c.replies(); len(all) != 2 || all[1].status != 200 {
				t.Errorf("after the time told: %v", all)
			}
		})
	}
}

// TestDeniedConcurrency: slots come back however a request ends.
func TestDeniedConcurrency(t *testing.T) {
	for name, end := range map[string]func(r *rig, c, u *scriptSocket){
		"answered":    func(_ *rig, _, u *scriptSocket) { serve(u) },
		"FIN":         func(_ *rig, c, _ *scriptSocket) { c.close(EOF) },
		"reset":       func(_ *rig, c, _ *scriptSocket) { c.close(Reset) },
		"host reset":  func(_ *rig, _, u *scriptSocket) { u.close(Reset) },
		"host junk":   func(_ *rig, _, u *scriptSocket) { u.send("junk\r\n\r\n") },
		"host error":  func(_ *rig, _, u *scriptSocket) { u.send(given(500, asJSON, `{"error":{}}`)) },
		"host cut":    func(_ *rig, _, u *scriptSocket) { u.send(eventsHead + chunk(token)); u.close(EOF) },
		"left stream": func(_ *rig, c, u *scriptSocket) { u.send(eventsHead + chunk(token)); c.close(Reset) },
		"host silent": func(r *rig, _, _ *scriptSocket) { r.pass(31 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			for range 2 {
				_, other := r.exchange(post(chatPath, chatAsk, narrowKey))
				c, u := r.exchange(post(chatPath, chatAsk, narrowKey))
				third := r.accept()
				third.send(post(chatPath, chatAsk, narrowKey))
				r.pass(2 * TickEvery) // it is asked for twice
				if a := third.reply(); a.status != 429 || !strings.Contains(a.body, "limit of policy/narrow reached: 2 requests at a time") || a.fields["retry-after"] == "" {
					t.Fatalf("the third got %d: %s", a.status, a.body)
				}
				end(r, c, u)
				other.close(Reset)
				r.idle()
				u.close(EOF)
			}
		})
	}
}

// TestParked: a request waits for the store; whoever leaves meanwhile gives
// back what is granted later.
func TestParked(t *testing.T) {
	r := newRig(t)
	defer r.end()
	r.holdLane = true
	stays, leaves, denied := r.accept(), r.accept(), r.accept()
	for _, c := range []*scriptSocket{stays, leaves, denied} {
		c.send(post(chatPath, chatAsk, narrowKey))
	}
	if len(r.dials) != 0 || r.loop.metrics.Exchanges != 3 {
		t.Fatalf("%d dials, %d exchanges", len(r.dials), r.loop.metrics.Exchanges)
	}
	leaves.close(EOF)
	denied.close(EOF)
	if r.loop.metrics.Exchanges != 1 || len(r.spool.rows) != 2 {
		t.Errorf("%d exchanges, %d rows", r.loop.metrics.Exchanges, len(r.spool.rows))
	}
	if row := r.row(0); row.Outcome != usage.Cancelled || !row.HungUp || row.Attempts != 0 || row.Source != usage.NoTokens || row.Key != "narrow" {
		t.Errorf("row %+v", row)
	}
	r.holdLane = false
	r.settle()
	serve(r.open())
	if stays.reply().status != 200 {
		t.Errorf("status %d", stays.reply().status)
	}
}

// TestStoreLost: without the store nothing is admitted.
func TestStoreLost(t *testing.T) {
	for _, path := range []string{chatPath, messagePath} {
		r := newRig(t)
		r.holdLane = true
		c := r.accept()
		body := chatAsk
		if path == messagePath {
			body = messageAsk
		}
		c.send(post(path, body, ratedKey))
		r.holdLane, r.storeLost = false, true
		r.settle()
		wantError(t, c.reply(), 503, 529, path == messagePath, "service_unavailable_error", "overloaded_error", "server_is_overloaded", "Limits cannot be checked")
		r.end()
	}
}

// TestOwedSlot: a slot that the lane has no room for is given back later.
func TestOwedSlot(t *testing.T) {
	r := newRig(t)
	defer r.end()
	_, u := r.exchange(post(chatPath, chatAsk, narrowKey))
	r.laneFull = true
	serve(u)
	if r.slots() != 1 {
		t.Fatalf("%d slots are lent", r.slots())
	}
	r.pass(time.Second)
	r.laneFull = false
	r.pass(time.Second)
	if r.slots() != 0 {
		t.Error("the slot is not given back")
	}
}

// TestNewTables: a running exchange keeps its catalog, the next one has the new.
func TestNewTables(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c, u := r.exchange(post(chatPath, chatAsk))
	next := *rigTables
	next.Generation = 77
	r.post(Tables{&next})
	serve(u)
	c.send(post(chatPath, chatAsk))
	serve(u)
	if a, b := r.row(0).Generation, r.row(1).Generation; a == 77 || b != 77 {
		t.Errorf("generations %d and %d", a, b)
	}
}

// TestModelRules: which key may use which model on which route.
func TestModelRules(t *testing.T) {
	for _, tt := range []struct {
		name, path, body, key string
		status                int
		code, text            string
	}{
		{"not of the policy", chatPath, chatAsk, "rk-few", 403, "model_not_allowed", "may not use"},
		{"unknown", chatPath, `{"model":"gpt-5"}`, "rk-few", 404, "model_not_found", "does not exist"},
		{"of the other shape", chatPath, strings.Replace(chatAsk, "gpt", "claude", 1), "rk-few", 400, "", "other shape"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			c := r.accept()
			c.send(post(tt.path, tt.body, "Authorization: Bearer "+tt.key))
			a := c.reply()
			if a.status != tt.status || !a.keep || !strings.Contains(a.body, tt.text) || !strings.Contains(a.body, `"param":"model"`) ||
				tt.code != "" && !strings.Contains(a.body, `"code":"`+tt.code+`"`) {
				t.Errorf("status %d, body %s", a.status, a.body)
			}
			if row := r.row(0); row.Outcome != usage.Refused || row.Status != tt.status {
				t.Errorf("row %+v", row)
			}
		})
	}
}

// TestModelLists: a key sees what it may use, in the shape that it asks in.
func TestModelLists(t *testing.T) {
	for _, tt := range []struct {
		path, key string
		status    int
		has, not  string
	}{
		{"/v1/models", "rk-free", 200, `"id":"gpt"`, "nothing"},
		{"/v1/models", "rk-few", 200, `"id":"claude"`, `"gpt"`},
		{"/anthropic/v1/models?limit=1", "rk-free", 200, `"has_more":true`, `"object"`},
		{"/anthropic/v1/models?limit=x", "rk-free", 400, `"type":"error"`, `"object"`},
		{"/v1/models/gpt", "rk-free", 200, `"id":"gpt"`, "claude"},
		{"/v1/models/g%70t", "rk-free", 200, `"id":"gpt"`, "claude"},
		{"/v1/models/gpt", "rk-few", 404, "model_not_found", `"id"`},
		{"/v1/models/none", "rk-free", 404, "model_not_found", `"id"`},
		{"/v1/models", "rk-none", 401, "invalid_api_key", `"id"`},
	} {
		t.Run(tt.path+" "+tt.key, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			c := r.accept()
			c.send(head("GET", tt.path, "Authorization: Bearer "+tt.key))
			a := c.reply()
			if a.status != tt.status || !a.keep || !strings.Contains(a.body, tt.has) || strings.Contains(a.body, tt.not) {
				t.Errorf("status %d, body %s", a.status, a.body)
			}
			want := 1
			if tt.status == 401 {
				want = 0
			}
			if len(r.spool.rows) != want || want == 1 && (r.row(0).Cost.Total != 0 || r.row(0).Source != usage.NoTokens) {
				t.Errorf("rows %+v", r.spool.rows)
			}
		})
	}
}
