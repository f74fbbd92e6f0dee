package loop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"relay/store/source"
	"relay/usage"
)

// limitedRig is a rig whose only key is under some limits, and whose account
// has a budget; either may be empty.
func limitedRig(t *testing.T, limits, budget string) *rig {
	t.Helper()
	text := rigCatalog[:strings.Index(rigCatalog, "policies:")] + fmt.Sprintf(`policies:
  - {name: p, models: [gpt, claude], limits: [%s]}
accounts: [{name: acc%s}]
relay_keys: [{name: k, key: rk-free, account: acc, policy: p}]
`, limits, budget)
	tables, problems := source.Check([]byte(text))
	if tables == nil {
		t.Fatal(problems)
	}
	return newRigOn(t, rigConfig, tables)
}

// ask sends a request and has the host answer with so many tokens, unless it
// is refused before. It returns what the caller got.
func (r *rig) ask(path, body string, input, output int) reply {
	r.t.Helper()
	before := len(r.dials)
	c := r.accept()
	c.send(post(path, body))
	if len(r.dials) > before {
		u := r.open()
		text := fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`, input, output, input+output)
		if path == messagePath {
			text = fmt.Sprintf(`{"type":"message","content":[],"stop_reason":"end_turn","usage":{"input_tokens":%d,"output_tokens":%d}}`, input, output)
		}
		u.send(given(200, asJSON, text))
		u.close(EOF)
	}
	defer c.close(EOF)
	return c.reply()
}

// TestTokenLimits: what requests have used decides, by meter, and not that
// there was one.
func TestTokenLimits(t *testing.T) {
	for _, tt := range []struct {
		name, limits string
		statuses     [4]int // of requests that use 7000 and 3000 tokens each
		text         string
	}{
		{"one is too much already", "{meter: tokens, amount: 111, window: 1h}", [4]int{200, 429, 429, 429}, "limit of policy/p reached: 111 tokens per 1h0m0s"},
		{"input", "{meter: tokens.input, amount: 14100, window: 1h, strategy: fixed-window}", [4]int{200, 200, 429, 429}, "14100 tokens.input per 1h0m0s"},
		{"output", "{meter: tokens.output, amount: 9001, window: 1h, strategy: session-window}", [4]int{200, 200, 200, 429}, "9001 tokens.output"},
		{"posthoc", "{meter: tokens, amount: 10001, window: 1h, strategy: sliding-window, reserve: posthoc}", [4]int{200, 200, 429, 429}, "10001 tokens"},
		{"strict without a bound", "{meter: tokens.output, amount: 5000, window: 1h, strategy: fixed-window, reserve: strict}", [4]int{429, 429, 429, 429}, "limit of policy/p is less than this request may use: 5000 tokens.output"},
		{"requests only", "{meter: requests, amount: 3, window: 1h, strategy: fixed-window}", [4]int{200, 200, 200, 429}, "3 requests"},
		{"cost", "{meter: cost, amount: 0.08, window: 1h, strategy: fixed-window}", [4]int{200, 200, 429, 429}, "limit of policy/p reached: 0.08 USD per 1h0m0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := limitedRig(t, tt.limits, "")
			defer r.end()
			for i, want := range tt.statuses {
				a := r.ask(chatPath, chatAsk, 7000, 3000)
				if a.status != want || want == 429 && !strings.Contains(a.body, tt.text) {
					t.Errorf("request %d: status %d, want %d: %s", i, a.status, want, a.body)
				}
				never := strings.Contains(tt.text, "less than")
				if want == 429 && (never != (a.fields["x-should-retry"] == "false") || never == (a.fields["retry-after"] != "")) {
					t.Errorf("request %d: fields %v", i, a.fields)
				}
			}
		})
	}
}

// TestBudget: an account's budget holds on every route that costs something,
// in its period, and is told of in USD.
func TestBudget(t *testing.T) {
	r := limitedRig(t, "", ", budget: {usd: 0.11, period: day, timezone: UTC}")
	defer r.end()
	embed := `{"model":"gpt","input":"hi"}`
	for i, want := range []int{200, 200, 429} { // 40,000 tokens of input at 1.25 USD per million are 0.05 USD
		if a := r.ask("/v1/embeddings", embed, 40_000, 0); a.status != want || want == 429 && !strings.Contains(a.body, "limit of account/acc reached: 0.11 USD per day") {
			t.Errorf("request %d: status %d, want %d: %s", i, a.status, want, a.body)
		}
	}
	if a := r.ask(chatPath, chatAsk, 1, 1); a.status != 429 || a.fields["retry-after"] != "50400" { // 10:00 UTC
		t.Errorf("another route: status %d, retry-after %s", a.status, a.fields["retry-after"])
	}
	r.pass(14*time.Hour - time.Minute)
	if a := r.ask(chatPath, chatAsk, 1, 1); a.status != 429 {
		t.Errorf("a minute before midnight: status %d", a.status)
	}
	r.pass(time.Minute)
	if a := r.ask(chatPath, chatAsk, 1, 1); a.status != 200 {
		t.Errorf("the next day: status %d: %s", a.status, a.body)
	}
}

// TestRefund: an attempt that fails before any output costs no tokens, and
// what was estimated too high comes back.
func TestRefund(t *testing.T) {
	r := limitedRig(t, "{meter: tokens, amount: 1000, window: 1h, strategy: fixed-window, reserve: strict}", "")
	defer r.end()
	body := strings.Replace(chatAsk, "{", `{"max_tokens":900,`, 1)
	for range 3 {
		c := r.accept()
		c.send(post(chatPath, body))
		u := r.open()
		u.send(given(500, asJSON, `{"error":{"message":"no","type":"server_error","param":null,"code":null}}`))
		if a := c.reply(); a.status != 500 {
			t.Fatalf("status %d: %s", a.status, a.body)
		}
		c.close(EOF)
		u.close(EOF)
	}
	for i, want := range []int{200, 200, 429} {
		if a := r.ask(chatPath, body, 20, 40); a.status != want {
			t.Errorf("request %d: status %d, want %d: %s", i, a.status, want, a.body)
		}
		if i == 1 { // 120 are used: 900 and the input do not fit
			r.ask(chatPath, body, 20, 40)
		}
	}
}

// TestTopUp: a long stream is counted while it runs.
func TestTopUp(t *testing.T) {
	r := limitedRig(t, "{meter: tokens.output, amount: 6000, window: 1h, strategy: fixed-window}", "")
	defer r.end()
	c, u := r.exchange(post(chatPath, streamAsk))
	u.send(eventsHead)
	event := `data: {"id":"c","choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", 6000) + `"},"finish_reason":null}]}` + "\n\n"
	statuses := map[int]int{}
	for i := range 8 {
		u.send(chunk(event))
		r.pass(200 * time.Millisecond)
		a := r.ask(chatPath, chatAsk, 1, 1)
		statuses[i] = a.status
	}
	if statuses[0] != 200 || statuses[7] != 429 {
		t.Errorf("statuses beside the stream: %v", statuses)
	}
	u.send(chunk(stopEvent+usageEvent+doneEvent) + lastChunk)
	if a := c.reply(); !a.whole {
		t.Error("the stream is not whole")
	}
}

// TestRateLimitFields: answers and denials tell how the tightest limits stand.
func TestRateLimitFields(t *testing.T) {
	limits := "{meter: requests, amount: 2, window: 1m}, {meter: requests, amount: 100, window: 1h}, {meter: tokens, amount: 10000, window: 1h, strategy: fixed-window}"
	for path, names := range map[string][2]string{
		chatPath:    {"x-ratelimit-remaining-requests", "x-ratelimit-remaining-tokens"},
		messagePath: {"anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-tokens-remaining"},
	} {
		r := limitedRig(t, limits, "")
		body := chatAsk
		if path == messagePath {
			body = messageAsk
		}
		for i, want := range []string{"1", "0", "0"} {
			a := r.ask(path, body, 100, 100)
			if a.fields[names[0]] != want || a.fields[names[1]] == "" {
				t.Errorf("%s, answer %d: %v", path, i, a.fields)
			}
		}
		if a := r.ask(path, "{", 0, 0); a.fields[names[0]] != "" {
			t.Errorf("%s, a request that asked for nothing: %v", path, a.fields)
		}
		r.end()
	}
}

// TestGrantTime: rows say when their limits were granted.
func TestGrantTime(t *testing.T) {
	r := limitedRig(t, "{meter: requests, amount: 2, window: 1m}", "")
	defer r.end()
	for range 3 {
		r.ask(chatPath, chatAsk, 1, 1)
	}
	for i := range 3 {
		row := r.row(i)
		if near := row.GrantUnixNs >= row.StartUnixNs && row.GrantUnixNs <= row.EndUnixNs; near != (row.Outcome == usage.Completed) || !near && row.GrantUnixNs != 0 {
			t.Errorf("row %d, %v: granted %d, from %d to %d", i, row.Outcome, row.GrantUnixNs, row.StartUnixNs, row.EndUnixNs)
		}
	}
}

// TestLaneSilent: whoever waits for a lane that does not answer is told.
func TestLaneSilent(t *testing.T) {
	r := newRig(t)
	defer r.end()
	r.holdLane = true
	c := r.accept()
	c.send(post(chatPath, chatAsk, narrowKey))
	r.pass(parkedMax + time.Second)
	if a := c.reply(); a.status != 503 || a.fields["retry-after"] == "" {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	r.idle()
	r.holdLane = false
	r.settle()
	if r.slots() != 0 {
		t.Error("a slot that nobody waits for any more is kept")
	}
}

// TestPanicLosesNoDecision: a panic in one request that an Op has decided does
// not cost the others theirs, whatever happens to them in between.
func TestPanicLosesNoDecision(t *testing.T) {
	r := newRig(t)
	defer r.end()
	var callers [5]*scriptSocket // two are granted, three are denied by the next Op
	r.holdLane = true
	for i := range callers {
		callers[i] = r.accept()
		callers[i].send(post(chatPath, chatAsk, ratedKey))
	}
	for range 2 { // the first, then the second
		r.runLane()
		r.callback(nil, func() { r.loop.RunMail() })
	}
	r.runLane()
	r.spool.panics = true
	func() {
		defer func() {
			if recover() != planted {
				t.Error("the planted panic did not come")
			}
		}()
		r.loop.Begin(r.nowNs, rigEpochNs+r.nowNs)
		r.loop.RunMail()
	}()
	r.panics++
	r.callback(nil, func() { r.loop.Panicked(nil) })
	if len(r.loop.decisions) != 3 {
		t.Fatalf("%d decisions, want 3", len(r.loop.decisions))
	}
	r.callback(callers[3].conn, func() { callers[3].conn.OnClosed(EOF) })
	callers[3].closed = true
	r.holdLane = false
	r.pass(time.Second)
	if len(r.loop.decisions) != 0 {
		t.Errorf("%d decisions are left", len(r.loop.decisions))
	}
	if status := callers[4].reply().status; status != 429 {
		t.Errorf("the last got %d", status)
	}
	u, v := r.open(), r.open()
	serve(u)
	serve(v)
	for i, want := range []int{200, 200} {
		if status := callers[i].reply().status; status != want {
			t.Errorf("caller %d got %d", i, status)
		}
	}
}
