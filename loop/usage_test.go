package loop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"relay/usage"
)

// TestRowFields: what a row says of a request.
func TestRowFields(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c := r.accept()
	ask := post(chatPath, strings.Replace(chatAsk, `"gpt"`, `"gpt-alias-9"`, 1), "X-Request-ID: theirs")
	c.send(ask)
	r.pass(20 * time.Millisecond)
	u := r.open()
	r.pass(time.Second)
	body := `{"usage":{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens_details":{"reasoning_tokens":5}}}`
	u.send(given(200, asJSON, body, "X-Request-ID: req_1"))
	row := r.row(0)
	price := rigTables.Model([]byte("gpt")).Bindings[0].Price
	want := usage.Event{
		RequestID: row.RequestID, CallerID: "theirs", Generation: rigTables.Generation,
		StartUnixNs: row.StartUnixNs, EndUnixNs: row.EndUnixNs,
		Key: "free", Account: "acc", Policy: "free", ModelAsked: "gpt-alias-9", Model: "gpt",
		UpstreamModel: "gpt-real-with-a-long-name", Host: "o", HostKey: "main", UpstreamRequestID: "req_1",
		Route: "chat_completions", ShapeIn: "openai", ShapeOut: "openai", Status: 200, UpstreamStatus: 200,
		Outcome: usage.Completed, Attempts: 1,
		Tokens: usage.Tokens{Input: 60, CachedInput: 40, Output: 20, Reasoning: 5},
		Source: usage.Reported, Price: *price,
		Cost:       usage.Cost{Input: 75_000, CachedInput: 5_000, Output: 200_000, Total: 280_000},
		OverheadNs: row.OverheadNs, FirstTokenNs: row.FirstTokenNs, UpstreamNs: row.UpstreamNs,
		BytesIn: int64(len(ask)), BytesOut: int64(len(body)),
	}
	if row != want {
		t.Errorf("row %+v\nwant %+v", row, want)
	}
	if row.UpstreamNs < int64(time.Second) || row.OverheadNs < int64(20*time.Millisecond) || row.OverheadNs > int64(100*time.Millisecond) ||
		row.EndUnixNs-row.StartUnixNs < int64(time.Second) || row.StartUnixNs < rigEpochNs || row.FirstTokenNs < int64(time.Second) {
		t.Errorf("times of row %+v", row)
	}
}

// TestAdmittedRecord: before a billable attempt an estimate is written down, and
// the row replaces it.
func TestAdmittedRecord(t *testing.T) {
	r := newRig(t)
	defer r.end()
	_, u := r.exchange(post(messagePath, messageAsk))
	if len(r.spool.admitted) != 1 {
		t.Fatalf("%d admitted records", len(r.spool.admitted))
	}
	a := r.spool.admitted[0]
	if a.Tokens != (usage.Tokens{Input: usage.EstimateTokens(int64(len(messageAsk))), Output: 9}) || a.Source != usage.Estimated || a.Cost.Total == 0 || a.Key != "free" || a.Model != "claude" || a.ShapeOut != "anthropic" {
		t.Errorf("admitted %+v", a)
	}
	u.send(given(200, asJSON, messageReply))
	if row := r.row(0); row.RequestID != a.RequestID || row.Tokens != (usage.Tokens{Input: 100, Output: 20}) {
		t.Errorf("row %+v", row)
	}
}

// TestRowSources: where the tokens of a row come from.
func TestRowSources(t *testing.T) {
	big := given(200, asJSON, `{"data":"`+strings.Repeat("x", 391)+`"}`)
	for _, tt := range []struct {
		name, path, ask string
		act             func(c, u *scriptSocket)
		source          usage.Source
		tokens          usage.Tokens
		outcome         usage.Outcome
	}{
		{"reported", chatPath, chatAsk, func(_, u *scriptSocket) { serve(u) }, usage.Reported, usage.Tokens{Input: 100, Output: 20}, usage.Completed},
		{"not reported", chatPath, chatAsk, func(_, u *scriptSocket) { u.send(big) }, usage.Estimated, usage.Tokens{Input: 15, Output: 101}, usage.Completed},
		{"null", chatPath, chatAsk, func(_, u *scriptSocket) { u.send(given(200, asJSON, `{"usage":null,"a":"bcdef"}`)) }, usage.Estimated, usage.Tokens{Input: 15, Output: 7}, usage.Completed},
		{"embeddings have no output", "/v1/embeddings", chatAsk, func(_, u *scriptSocket) { u.send(big) }, usage.Estimated, usage.Tokens{Input: 15}, usage.Completed},
		{"moderations are free", "/v1/moderations", `{"input":"x"}`, func(_, u *scriptSocket) { serve(u) }, usage.NoTokens, usage.Tokens{}, usage.Completed},
		{"counting is free", "/v1/messages/count_tokens", messageAsk, func(_, u *scriptSocket) { u.send(given(200, asJSON, `{"input_tokens":9}`)) }, usage.NoTokens, usage.Tokens{}, usage.Completed},
		{"204", chatPath, chatAsk, func(_, u *scriptSocket) { u.send("HTTP/1.1 204 No\r\n\r\n") }, usage.Estimated, usage.Tokens{Input: 15}, usage.Completed},
		{"cut, usage seen", messagePath, messageStreamAsk, func(_, u *scriptSocket) {
			u.send(eventsHead + chunk(startMessage) + chunk(endMessage[:20]))
			u.close(EOF)
		}, usage.Partial, usage.Tokens{Input: 25, Output: 1}, usage.Cut},
		{"cut, more text than usage", messagePath, messageStreamAsk, func(_, u *scriptSocket) {
			u.send(eventsHead + chunk(startMessage) + chunk(strings.Repeat(deltaMessage, 8)))
			u.close(EOF)
		}, usage.Partial, usage.Tokens{Input: 25, Output: 6}, usage.Cut},
		{"cut, no usage", chatPath, streamAsk, func(_, u *scriptSocket) { u.send(eventsHead + chunk(token+token)); u.close(Reset) }, usage.Estimated, usage.Tokens{Input: 19, Output: 2}, usage.Cut},
		{"left behind the usage", chatPath, streamAsk, func(c, u *scriptSocket) {
			u.send(eventsHead + chunk(token+stopEvent+usageEvent))
			c.close(EOF)
		}, usage.Partial, usage.Tokens{Input: 100, Output: 20}, usage.Cancelled},
		{"running totals are not added", messagePath, messageStreamAsk, func(_, u *scriptSocket) {
			u.send(eventsHead + chunk(startMessage+endMessage+strings.Replace(endMessage, "15", "17", 1)+stopMessage) + lastChunk)
		}, usage.Reported, usage.Tokens{Input: 25, Output: 17}, usage.Completed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			c, u := r.exchange(post(tt.path, tt.ask))
			tt.act(c, u)
			row := r.row(0)
			if row.Source != tt.source || row.Tokens != tt.tokens || row.Outcome != tt.outcome {
				t.Errorf("row has %+v by %s, outcome %s", row.Tokens, row.Source, row.Outcome)
			}
			if want := usage.Charge(&tt.tokens, &row.Price); tt.source != usage.NoTokens && row.Cost != want || tt.source == usage.NoTokens && row.Cost.Total != 0 {
				t.Errorf("cost %+v, want %+v", row.Cost, want)
			}
			r.pass(failureDelay + TickEvery)
		})
	}
}

// TestRowCost: parts are rounded once, and the total is their sum.
func TestRowCost(t *testing.T) {
	r := newRig(t)
	defer r.end()
	_, u := r.exchange(post(messagePath, messageAsk))
	u.send(given(200, asJSON, `{"type":"message","usage":{"input_tokens":3,"cache_creation_input_tokens":12304,"cache_read_input_tokens":0,"output_tokens":550}}`))
	c := r.row(0).Cost
	if c.Total != 54_399_000 || c.Total != c.Input+c.CachedInput+c.CacheWrite5m+c.CacheWrite1h+c.Output+c.Request {
		t.Errorf("cost %+v", c)
	}
}

// TestRowsMatchRequests: one row for each request of a known key, in the order
// in which they end; none for strangers.
func TestRowsMatchRequests(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c := r.accept()
	for _, text := range []string{
		follower, post("/v1/nothing", ""), post(chatPath, "{}", "Authorization: Bearer rk-none"),
		post(chatPath, `{"model":"nope"}`), head("PUT", chatPath),
	} {
		c.send(text)
	}
	c.send(post(chatPath, chatAsk))
	serve(r.open())
	var got []string
	for _, row := range r.spool.rows {
		got = append(got, fmt.Sprintf("%s %d %s", row.Route, row.Status, row.Outcome))
	}
	want := "[models 200 completed chat_completions 404 refused chat_completions 200 completed]"
	if fmt.Sprint(got) != want {
		t.Errorf("rows %v\nwant %v", got, want)
	}
}

// TestRowLost: a row that the spool cannot take is counted, and the answer goes.
func TestRowLost(t *testing.T) {
	r := newRig(t)
	defer r.end()
	c, u := r.exchange(post(chatPath, chatAsk))
	r.spool.broken = true
	serve(u)
	if c.reply().status != 200 || r.loop.metrics.EventsLost != 1 {
		t.Errorf("status %d, %d lost", c.reply().status, r.loop.metrics.EventsLost)
	}
}

// TestSynced: with a spool that syncs at every row the last bytes wait for
// their own row, and so does the next request.
func TestSynced(t *testing.T) {
	r := newRig(t)
	defer r.end()
	r.spool.slow = true
	a, ua := r.exchange(post(chatPath, chatAsk, "X-Request-ID: a1"))
	b, ub := r.exchange(post(chatPath, streamAsk))
	a.send(post(chatPath, chatAsk, "X-Request-ID: a2")) // behind the running one
	serve(ua)
	ub.send(eventsHead + chunk(token))
	if !strings.HasSuffix(b.out, chunk(token)) {
		t.Error("events before the last one wait")
	}
	shown := b.out
	ub.send(chunk(stopEvent+doneEvent) + lastChunk)
	if a.out != "" || b.out != shown && !strings.HasSuffix(b.out, chunk(stopEvent+doneEvent)) || strings.HasSuffix(b.out, lastChunk) {
		t.Fatalf("before the sync: %q and %q", a.out, b.out)
	}
	if len(ua.requests()) != 1 {
		t.Error("the next request goes on before the answer is out")
	}
	r.spool.sync(1) // the row of a only
	if got := a.reply(); got.status != 200 || got.fields["x-request-id"] != "a1" {
		t.Errorf("status %d", got.status)
	}
	if strings.HasSuffix(b.out, lastChunk) {
		t.Error("the last chunk went before its row was synced")
	}
	r.spool.sync(2)
	if !b.reply().whole {
		t.Error("not whole after the sync")
	}
	second := ua
	if len(ua.requests()) != 2 {
		second = ub
	}
	if got := second.requests(); len(got) != 2 || got[1].fields["x-request-id"] != "a2" {
		t.Fatalf("the next request is at no host: %v", got)
	}
	serve(second)
	r.spool.sync(3)
	if all := a.replies(); len(all) != 2 || !all[1].whole {
		t.Errorf("%d answers", len(all))
	}
}

// TestSyncHangs: a sync that never ends costs the clients that wait for it
// after a while, and those that are left at the end of a drain.
func TestSyncHangs(t *testing.T) {
	for _, end := range []func(*rig){
		func(r *rig) { r.pass(r.loop.config.StreamIdle + time.Second) },
		func(r *rig) { r.post(Drain{AfterNs: int64(time.Second)}); r.pass(2 * time.Second) },
	} {
		r := newRig(t)
		r.spool.slow = true
		a, ua := r.exchange(post(chatPath, chatAsk))
		serve(ua)
		if a.out != "" || a.closed {
			t.Errorf("before the sync: %q, closed %t", a.out, a.closed)
		}
		end(r)
		if !a.closed || a.out != "" {
			t.Errorf("closed %t, %q", a.closed, a.out)
		}
		r.spool.sync(1)
		r.end()
	}
}

// TestSyncedEverything: refusals, models, cuts and closes wait as well, and
// clients that leave meanwhile are no trouble.
func TestSyncedEverything(t *testing.T) {
	for name, act := range map[string]func(r *rig) (c *scriptSocket, closes bool){
		"refused": func(r *rig) (*scriptSocket, bool) {
			c := r.accept()
			c.send(post(chatPath, `{"model":"nope"}`))
			return c, false
		},
		"models": func(r *rig) (*scriptSocket, bool) {
			c := r.accept()
			c.send(head("GET", "/v1/models", "Connection: close"))
			return c, true
		},
		"bad gateway": func(r *rig) (*scriptSocket, bool) {
			c, u := r.exchange(post(chatPath, chatAsk))
			u.reached = true
			u.close(EOF)
			return c, false
		},
		"large answer": func(r *rig) (*scriptSocket, bool) {
			c, u := r.exchange(post(chatPath, chatAsk))
			u.sendEach(given(200, asJSON, large(200<<10)), 50<<10)
			return c, false
		},
	} {
		for _, leaves := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, leaves: %t", name, leaves), func(t *testing.T) {
				r := newRig(t)
				defer r.end()
				r.spool.slow = true
				c, closes := act(r)
				r.pass(time.Second)
				if c.out != "" || c.fin {
					t.Fatalf("before the sync: %q, FIN: %t", c.out, c.fin)
				}
				if leaves {
					c.close(Reset)
				}
				r.spool.sync(1)
				if leaves {
					return
				}
				if a := c.reply(); !a.whole || c.fin != closes || a.keep == closes {
					t.Errorf("whole: %t, FIN: %t", a.whole, c.fin)
				}
			})
		}
	}
	t.Run("cut", func(t *testing.T) {
		r := newRig(t)
		defer r.end()
		r.spool.slow = true
		c, u := r.exchange(post(chatPath, streamAsk))
		u.send(eventsHead + chunk(token))
		u.close(Reset)
		r.pass(2 * failureDelay)
		if strings.Contains(c.out, "error") || c.fin {
			t.Fatal("the frame went before its row was synced")
		}
		r.spool.sync(1)
		if !strings.Contains(c.out, "upstream_disconnected") || c.fin {
			t.Errorf("after the sync: %q, FIN: %t", c.out, c.fin)
		}
		r.pass(2 * failureDelay)
		if !c.fin {
			t.Error("the connection is left")
		}
	})
}
