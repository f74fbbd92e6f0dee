package loop

import (
	"fmt"
	"strings"
	"testing"

	"relay/usage"
)

// large is a sound JSON answer of more than n bytes that ends with its usage.
func large(n int) string {
	return `{"object":"list","data":"` + strings.Repeat("0123456789abcdef", n/16+1) + `","usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}`
}

// TestHeldAnswers: a JSON answer is proved before it is passed on, however it
// is framed and cut.
func TestHeldAnswers(t *testing.T) {
	byLength := func(body string) string { return given(200, asJSON, body) }
	byChunks := func(body string) string {
		half := len(body) / 2
		return "HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n" +
			chunk(body[:half]) + chunk(body[half:]) + lastChunk
	}
	untilClose := func(body string) string {
		return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + body
	}
	for _, tt := range []struct {
		name   string
		frame  func(string) string
		body   string
		status int
	}{
		{"length", byLength, chatReply, 200},
		{"chunks", byChunks, chatReply, 200},
		{"until close", untilClose, chatReply, 200},
		{"almost too long", byLength, large(heldBytesMax - 300), 200},
		{"cut JSON", byLength, chatReply[:len(chatReply)-1], 502},
		{"cut JSON in chunks", byChunks, chatReply[:len(chatReply)-1], 502},
		{"cut JSON until close", untilClose, chatReply[:len(chatReply)-1], 502},
		{"two values", byLength, chatReply + "{}", 502},
		{"text", byLength, "hello", 502},
		{"nothing", byLength, "", 502},
		{"nothing until close", untilClose, "", 502},
	} {
		for _, step := range []int{1, 7, 1000, 1 << 20} {
			if step < 1000 && len(tt.body) > 10_000 {
				continue
			}
			t.Run(fmt.Sprintf("%s in reads of %d", tt.name, step), func(t *testing.T) {
				r := newRig(t)
				defer r.end()
				c, u := r.exchange(post(chatPath, chatAsk))
				u.sendEach(tt.frame(tt.body), step)
				u.close(EOF) // behind the answer, or its end
				a := c.reply()
				if a.status != tt.status || !a.whole || !a.keep {
					t.Fatalf("status %d, whole: %t, kept alive: %t", a.status, a.whole, a.keep)
				}
				row := r.row(0)
				if tt.status == 502 {
					if strings.Contains(a.body, "hello") || row.Outcome != usage.Failed || row.Cost.Total != 0 || row.Error != "bad_gateway" {
						t.Errorf("body %s, row %+v", a.body, row)
					}
					return
				}
				if a.body != tt.body || a.chunks || row.Tokens.Input != 100 || row.Tokens.Output != 20 || row.Source != usage.Reported {
					t.Errorf("%d bytes of %d, by chunks: %t, row %+v", len(a.body), len(tt.body), a.chunks, row)
				}
				if row.BytesOut != int64(len(tt.body)) {
					t.Errorf("row has %d bytes out, want %d", row.BytesOut, len(tt.body))
				}
			})
		}
	}
}

// TestLargeAnswers: an answer too long to be held is passed on as it comes,
// with its framing kept where it can be, and its usage read all the same.
func TestLargeAnswers(t *testing.T) {
	body := large(3 * heldBytesMax)
	for _, tt := range []struct {
		name, head, text, tail string
		chunks                 bool
	}{
		{"length", fmt.Sprintf("Content-Length: %d\r\n", len(body)), body, "", false},
		{"chunks", "Transfer-Encoding: chunked\r\n", chunk(body[:100]) + chunk(body[100:]), lastChunk, true},
		{"until close", "", body, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			c, u := r.exchange(post("/v1/embeddings", `{"model":"gpt","input":"x"}`))
			u.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + tt.head + "\r\n")
			u.sendEach(tt.text[:heldBytesMax+2000], 30<<10)
			if len(c.out) < heldBytesMax {
				t.Fatalf("%d bytes are at the client while more than the bound has come", len(c.out))
			}
			if r.loop.buffers.used > 3*heldBytesMax {
				t.Errorf("%d bytes are charged", r.loop.buffers.used)
			}
			u.sendEach(tt.text[heldBytesMax+2000:]+tt.tail, 30<<10)
			if tt.name == "until close" {
				u.close(EOF)
			}
			a := c.reply()
			if a.status != 200 || a.body != body || !a.whole || !a.keep || a.chunks != tt.chunks {
				t.Errorf("status %d, %d bytes of %d, whole: %t, kept alive: %t, by chunks: %t", a.status, len(a.body), len(body), a.whole, a.keep, a.chunks)
			}
			if row := r.row(0); row.Source != usage.Reported || row.Tokens.Input != 100 || row.Outcome != usage.Completed {
				t.Errorf("row has %+v by %s", row.Tokens, row.Source)
			}
		})
	}
}

// TestAnswerWithoutRoom: an answer for which the budget has no room is passed
// on as it comes, and an error is told in our own words.
func TestAnswerWithoutRoom(t *testing.T) {
	for _, tt := range []struct {
		name   string
		text   string
		status int
		theirs bool
	}{
		{"length", given(200, asJSON, chatReply), 200, true},
		{"chunks", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(chatReply) + lastChunk, 200, true},
		{"error", given(429, asJSON, `{"error":{"message":"theirs"}}`, "Retry-After: 9"), 429, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			c, u := r.exchange(post(chatPath, chatAsk))
			r.loop.buffers.budget = 0
			u.sendEach(tt.text, 20)
			a := c.reply()
			if a.status != tt.status || !a.whole || !a.keep || tt.theirs && a.body != chatReply || !tt.theirs && (strings.Contains(a.body, "theirs") || a.fields["retry-after"] != "9") {
				t.Errorf("status %d, whole: %t, body %s", a.status, a.whole, a.body)
			}
			if row := r.row(0); tt.theirs && row.Source != usage.Reported {
				t.Errorf("row has %+v by %s", row.Tokens, row.Source)
			}
		})
	}
}

// TestLargeAnswerCut: a cut of an answer that is at the client shows.
func TestLargeAnswerCut(t *testing.T) {
	body := large(2 * heldBytesMax)
	for _, cause := range []Cause{EOF, Reset} {
		for _, framing := range []string{fmt.Sprintf("Content-Length: %d\r\n", len(body)), "Transfer-Encoding: chunked\r\n"} {
			r := newRig(t)
			c, u := r.exchange(post(chatPath, chatAsk))
			u.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + framing + "\r\n")
			if strings.HasPrefix(framing, "T") {
				u.send(chunk(body[:heldBytesMax+9000]))
			} else {
				u.send(body[:heldBytesMax-1000])
				u.send(body[heldBytesMax-1000 : heldBytesMax+9000])
			}
			u.close(cause)
			r.pass(failureDelay + 2*TickEvery)
			if a := c.reply(); a.status != 200 || a.whole || len(a.body) < heldBytesMax || !c.fin || strings.HasSuffix(c.out, lastChunk) {
				t.Errorf("status %d, whole: %t, %d bytes, FIN: %t", a.status, a.whole, len(a.body), c.fin)
			}
			if row := r.row(0); row.Outcome != usage.Cut || row.Error != "upstream_cut" || row.Source != usage.Estimated || row.Cost.Total == 0 {
				t.Errorf("row %+v", row)
			}
			r.end()
		}
	}
}

// TestErrorAnswers: what a caller gets of a host's error.
func TestErrorAnswers(t *testing.T) {
	const openAI, anthropic = `{"error":{"message":"theirs","type":"t"}}`, `{"type":"error","error":{"type":"t","message":"theirs"}}`
	for _, tt := range []struct {
		name           string
		path           string
		status         int
		kind, body     string
		more           string
		want           int
		theirs         bool
		retry          string
		fault          string
		upstreamStatus int
	}{
		{"400", chatPath, 400, asJSON, openAI, "", 400, true, "", "", 400},
		{"404", messagePath, 404, asJSON, anthropic, "", 404, true, "", "", 404},
		{"422", chatPath, 422, asJSON, openAI, "", 422, true, "", "", 422},
		{"429", chatPath, 429, asJSON, openAI, "Retry-After: 17", 429, true, "17", "", 429},
		{"429 without a time", chatPath, 429, asJSON, openAI, "X: y", 429, true, "1", "", 429},
		{"429 without a body", chatPath, 429, asJSON, "", "Retry-After: 17", 429, false, "17", "rate_limited", 429},
		{"429 of HTML", messagePath, 429, "text/html", "<html>theirs</html>", "Retry-After: 17", 429, false, "17", "rate_limited", 429},
		{"429 of HTML without a time", messagePath, 429, "text/html", "<html>theirs</html>", "", 429, false, "1", "rate_limited", 429},
		{"500", chatPath, 500, asJSON, openAI, "", 500, true, "", "", 500},
		{"500 of HTML", chatPath, 500, "text/html", "<html>theirs</html>", "", 502, false, "", "bad_gateway", 500},
		{"500 of broken JSON", chatPath, 500, asJSON, `{"error":{"theirs"`, "", 502, false, "", "bad_gateway", 500},
		{"500 of other JSON", chatPath, 500, asJSON, `{"theirs":1}`, "", 502, false, "", "bad_gateway", 500},
		{"503", chatPath, 503, asJSON, openAI, "", 503, true, "1", "", 503},
		{"503 of HTML", chatPath, 503, "text/html", "<html>theirs</html>", "Retry-After: 4", 503, false, "4", "overloaded", 503},
		{"529", messagePath, 529, asJSON, anthropic, "Retry-After: 3", 529, true, "3", "", 529},
		{"529 without a body", messagePath, 529, asJSON, "", "", 529, false, "1", "overloaded", 529},
		{"504 of HTML", chatPath, 504, "text/html", "theirs", "", 504, false, "", "upstream_timeout", 504},
		{"401", chatPath, 401, asJSON, openAI, "", 502, false, "", "upstream_credential", 401},
		{"402", messagePath, 402, asJSON, anthropic, "", 502, false, "", "upstream_credential", 402},
		{"403", chatPath, 403, asJSON, openAI, "", 502, false, "", "upstream_credential", 403},
		{"407", chatPath, 407, asJSON, openAI, "", 502, false, "", "bad_gateway", 407},
		{"301", chatPath, 301, asJSON, openAI, "Location: http://elsewhere.test/theirs", 502, false, "", "bad_gateway", 301},
		{"307", messagePath, 307, asJSON, "", "Location: http://elsewhere.test/theirs", 502, false, "", "bad_gateway", 307},
		{"304", chatPath, 304, asJSON, "", "", 502, false, "", "bad_gateway", 304},
		{"200 of HTML", chatPath, 200, "text/html; charset=utf-8", "<html>theirs</html>", "", 502, false, "", "bad_gateway", 200},
		{"large error of HTML", chatPath, 500, "text/html", strings.Repeat("<p>theirs</p>", 30_000), "", 502, false, "", "bad_gateway", 500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			defer r.end()
			ask := chatAsk
			if tt.path == messagePath {
				ask = messageAsk
			}
			c, u := r.exchange(post(tt.path, ask))
			text := given(tt.status, tt.kind, tt.body, "Set-Cookie: a=b")
			if tt.more != "" {
				text = given(tt.status, tt.kind, tt.body, tt.more)
			}
			u.sendEach(text, 100_000)
			a := c.reply()
			if a.status != tt.want || !a.whole || !a.keep || strings.Contains(c.out, "theirs") != tt.theirs || a.fields["retry-after"] != tt.retry {
				t.Errorf("status %d, whole: %t, kept alive: %t, retry-after %q, body %.200s", a.status, a.whole, a.keep, a.fields["retry-after"], a.body)
			}
			if tt.theirs && a.body != tt.body || !tt.theirs && !strings.Contains(a.body, `"error":{"`) {
				t.Errorf("body %.200s", a.body)
			}
			if a.fields["content-type"] != asJSON || a.fields["location"] != "" || a.fields["set-cookie"] != "" {
				t.Errorf("fields %v", a.fields)
			}
			row := r.row(0)
			if row.Outcome != usage.Failed || row.Cost.Total != 0 || row.Tokens != (usage.Tokens{}) || row.Error != tt.fault ||
				row.UpstreamStatus != tt.upstreamStatus || row.Status != tt.want {
				t.Errorf("row %+v", row)
			}
		})
	}
}
