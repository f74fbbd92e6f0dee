package upstream

import (
	"testing"
	"time"

	"relay/upstream/wire"
)

func TestRateLimits(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, clockSlack+1, time.UTC).UnixNano()
	for _, tt := range []struct {
		name   string
		limits RateLimits
		shape  wire.Shape
		want   string
	}{
		{"none", RateLimits{}, wire.OpenAI, ""},
		{"requests", RateLimits{{CountedRequests, 10, 9, int64(12 * time.Millisecond), at}}, wire.OpenAI,
			"x-ratelimit-limit-requests: 10\r\nx-ratelimit-remaining-requests: 9\r\nx-ratelimit-reset-requests: 12ms\r\n"},
		{"tokens", RateLimits{1: {CountedInputTokens, 10, 0, int64(6 * time.Minute), at}}, wire.OpenAI,
			"x-ratelimit-limit-tokens: 10\r\nx-ratelimit-remaining-tokens: 0\r\nx-ratelimit-reset-tokens: 6m0s\r\n"},
		{"both", RateLimits{{CountedRequests, 10, 9, 5, at}, {CountedOutputTokens, 3, 2, 5, at - 1}}, wire.Anthropic,
			"anthropic-ratelimit-requests-limit: 10\r\nanthropic-ratelimit-requests-remaining: 9\r\nanthropic-ratelimit-requests-reset: 2026-03-04T05:06:08Z\r\n" +
				"anthropic-ratelimit-output-tokens-limit: 3\r\nanthropic-ratelimit-output-tokens-remaining: 2\r\nanthropic-ratelimit-output-tokens-reset: 2026-03-04T05:06:07Z\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(tt.limits.append(nil, tt.shape)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAppendWait(t *testing.T) {
	for ns, want := range map[int64]string{
		-1: "0s", 0: "0s", 1: "1ms", 1e6: "1ms", 1e6 + 1: "2ms", 999e6: "999ms", 999e6 + 1: "1s", 1e9: "1s", 1e9 + 1: "2s",
		59e9 + 1: "1m0s", 60e9: "1m0s", 61e9: "1m1s", 3600e9: "1h0m0s", 90061e9: "25h1m1s",
	} {
		if got := string(appendWait(nil, ns)); got != want {
			t.Errorf("%d ns: %q, want %q", ns, got, want)
		}
	}
}
