package mockhost

import (
	"fmt"
	"time"
)

// knobs is the vocabulary of scenarios.
var knobs = []knob{
	// Pace.
	{"instant", "", "16 tokens at once", usePace("instant")},
	{"fast", "", "first token 20 ms, 5,000 tokens/s, 150 tokens at the median", usePace("fast")},
	{"stream", "", "first event 300 ms, 80 tokens/s, 144 tokens at the median, 1,176 at p99", usePace("stream")},
	{"slow", "", "3 s and up to 1.5 s more, then everything", usePace("slow")},
	{"first", "DURATION", "time to the first token", duration(func(s *scenario) *time.Duration { return &s.first }, 0, holdMax)},
	{"opening", "DURATION", "time to the head and opening events of a stream, when earlier than the first token", duration(func(s *scenario) *time.Duration { return &s.opening }, 0, holdMax)},
	{"tps", "N", "tokens per second behind the first; 0 = at once", number(func(s *scenario) *int { return &s.tokensPerSecond }, 0, 1e9)},
	{"tokens", "N", "exact length of the answer", setTokens},
	{"per", "N", "tokens per event", number(func(s *scenario) *int { return &s.tokensPerEvent }, 1, tokensMax)},
	{"tick", "DURATION", "stream of patterned events at this interval, written by one shared ticker, with mock_us in each", duration(func(s *scenario) *time.Duration { return &s.tick }, tickMin, tickMax)},
	{"events", "N", "events of a tick stream (100)", number(func(s *scenario) *int { return &s.events }, 1, eventsMax)},
	{"bytes", "N", "content bytes of each event of a tick stream (32)", number(func(s *scenario) *int { return &s.eventBytes }, 1, 1<<20)},
	{"pour", "BYTES", "stream patterned events as fast as the socket takes them", number(func(s *scenario) *int64 { return &s.pour }, 1, pourBytesMax)},
	{"stamp", "", "every content event carries mock_us, the time it was sent", flag(func(s *scenario) *bool { return &s.stamp })},
	{"unicode", "", "the answer has characters of two to four bytes", flag(func(s *scenario) *bool { return &s.unicode })},

	// Counts.
	{"in", "N", "prompt_tokens or input_tokens, as reported", number(func(s *scenario) *int64 { return &s.in }, 0, 1e12)},
	{"out", "N", "completion_tokens or output_tokens, as reported", number(func(s *scenario) *int64 { return &s.out }, 0, 1e12)},
	{"cached", "N", "cached input tokens", number(func(s *scenario) *int64 { return &s.cached }, 0, 1e12)},
	{"write", "N", "tokens written to the cache (5 minutes on messages)", number(func(s *scenario) *int64 { return &s.write }, 0, 1e12)},
	{"write1h", "N", "tokens written to the cache for 1 hour (messages)", number(func(s *scenario) *int64 { return &s.write1h }, 0, 1e12)},
	{"reasoning", "N", "reasoning or thinking tokens within the output", number(func(s *scenario) *int64 { return &s.reasoning }, 0, 1e12)},
	{"nousage", "", "no usage anywhere", flag(func(s *scenario) *bool { return &s.noUsage })},
	{"usage-in-finish", "", "usage in the chunk that carries finish_reason", flag(func(s *scenario) *bool { return &s.usageInFinish })},
	{"usage-running", "", "usage so far in every chunk", flag(func(s *scenario) *bool { return &s.usageRunning })},
	{"calls", "N", "tool calls when a tool is called", number(func(s *scenario) *int { return &s.calls }, 1, 16)},
	{"thinking", "", "messages: a thinking block first", flag(func(s *scenario) *bool { return &s.thinking })},

	// Refusals.
	{"status", "N", "answer with this status and an error body", number(func(s *scenario) *int { return &s.status }, 200, 599)},
	{"retry-after", "TEXT", "Retry-After, as it stands", func(s *scenario, v string) error { s.retryAfter = v; return nil }},
	{"retry-after-date", "SECONDS", "Retry-After as an HTTP date so far ahead", setRetryDate},
	{"context-length", "", "400, the prompt is too long", setRefusal(contextLength)},
	{"content-filter", "", "400, the prompt was filtered", setRefusal(contentFilter)},
	{"prefill-refused", "", "400 when the last message is the assistant's", flag(func(s *scenario) *bool { return &s.prefillRefused })},
	{"html", "", "an HTML page in place of JSON (502 unless status is given)", flag(func(s *scenario) *bool { return &s.html })},
	{"times", "N", "what goes wrong goes wrong for the first N requests of equal scenario, then all is well", number(func(s *scenario) *int { return &s.times }, 1, 1e6)},
	{"flap", "N", "what goes wrong goes wrong for N requests of equal scenario, then N are well, and so on", setFlap},
	{"fault", "PERCENT", "so many of 100 requests (5) get a fault of the menu in turn; /_mock/stats counts them: " + faultMenuText, setMenu},
	{"tag", "TEXT", "makes a scenario differ from others, for times", func(*scenario, string) error { return nil }},

	// Before the answer.
	{"reset", "", "RST instead of an answer", setTransport(reset)},
	{"close", "", "FIN instead of an answer", setTransport(hangUp)},
	{"silent", "", "no answer until the peer leaves", setTransport(silent)},
	{"early", "", "refuse with 413 before the body is read (?mock= or credential; in the model name for large bodies)", flag(func(s *scenario) *bool { return &s.early })},

	// Heads.
	{"head", "KIND", "a wrong head: " + headFaultNames, setHead},
	{"1xx", "N", "so many 103 heads before the answer", number(func(s *scenario) *int { return &s.interim }, 1, interimMax)},
	{"close-delimited", "", "no length and no chunks: the body ends with the connection", flag(func(s *scenario) *bool { return &s.closeDelimited })},
	{"connection-close", "", "Connection: close", flag(func(s *scenario) *bool { return &s.connectionClose })},
	{"gzip", "", "gzip, asked for or not", flag(func(s *scenario) *bool { return &s.gzip })},
	{"chunk-ext", "", "chunk extensions", flag(func(s *scenario) *bool { return &s.chunkExtension })},
	{"trailers", "", "trailer fields behind a stream", flag(func(s *scenario) *bool { return &s.trailers })},

	// Bodies.
	{"json-broken", "", "the JSON body stops in the middle, with a correct length", flag(func(s *scenario) *bool { return &s.jsonBroken })},
	{"json-on-stream", "", "a whole JSON answer though a stream was asked for", flag(func(s *scenario) *bool { return &s.jsonOnStream })},
	{"empty", "", "200 with an empty body or an empty stream", flag(func(s *scenario) *bool { return &s.emptyBody })},
	{"cut", "N", "FIN behind N content events (JSON: in the middle of the body)", optional(func(s *scenario) *int { return &s.cut })},
	{"cut-rst", "N", "RST behind N content events", optional(func(s *scenario) *int { return &s.cutReset })},
	{"stall", "N", "silence behind N content events until the peer leaves", optional(func(s *scenario) *int { return &s.stall })},
	{"malformed", "N", "content event N is not JSON", optional(func(s *scenario) *int { return &s.malformed })},
	{"error-frame", "N", "an error event in place of content event N, and the end; 0 = the first frame of the stream", optional(func(s *scenario) *int { return &s.errorFrame })},
	{"nodone", "", "no [DONE] or message_stop", flag(func(s *scenario) *bool { return &s.noDone })},

	// Framing of events.
	{"crlf", "", "lines end in CR LF", flag(func(s *scenario) *bool { return &s.crlf })},
	{"cr", "", "lines end in CR", flag(func(s *scenario) *bool { return &s.cr })},
	{"nospace", "", "no space behind the colon of a field", flag(func(s *scenario) *bool { return &s.noSpace })},
	{"comments", "", "comment lines first and between", flag(func(s *scenario) *bool { return &s.comments })},
	{"bom", "", "a byte order mark first", flag(func(s *scenario) *bool { return &s.bom })},
	{"drip", "", "one byte per chunk and write", flag(func(s *scenario) *bool { return &s.drip })},
	{"pause", "DURATION", "wait between the writes of drip and split", duration(func(s *scenario) *time.Duration { return &s.pause }, 0, time.Second)},
	{"split", "N", "the chunk and write that hold byte N of the body are cut before it", optional(func(s *scenario) *int { return &s.split })},

	// Behind the answer, on the idle connection.
	{"idle-close", "DURATION", "FIN on the idle connection", duration(func(s *scenario) *time.Duration { return &s.idleClose }, 0, holdMax)},
	{"idle-rst", "DURATION", "RST on the idle connection", duration(func(s *scenario) *time.Duration { return &s.idleReset }, 0, holdMax)},
	{"idle-408", "DURATION", "408 and FIN on the idle connection", duration(func(s *scenario) *time.Duration { return &s.idleTimeoutNote }, 0, holdMax)},
	{"idle-junk", "DURATION", "bytes that nobody asked for on the idle connection", duration(func(s *scenario) *time.Duration { return &s.idleJunk }, 0, holdMax)},
}

func usePace(name string) func(*scenario, string) error {
	return func(s *scenario, v string) error {
		if v != "" {
			return fmt.Errorf("takes no value")
		}
		kept := s.pace
		s.pace = paces[name]
		s.unicode, s.pour = kept.unicode, kept.pour
		return nil
	}
}

func setTokens(s *scenario, v string) error {
	n := 0
	if err := number(func(*scenario) *int { return &n }, 0, tokensMax)(s, v); err != nil {
		return err
	}
	s.tokensMedian, s.tokensSigma = n, 0
	return nil
}

func setRetryDate(s *scenario, v string) error {
	n := 0
	if err := number(func(*scenario) *int { return &n }, -1e6, 1e6)(s, v); err != nil {
		return err
	}
	s.retryAfter = fmt.Sprintf("%s%d", retryDateMark, n)
	return nil
}

// retryDateMark marks a Retry-After that becomes a date when it is sent.
const retryDateMark = "date+"

func setRefusal(code refusalCode) func(*scenario, string) error {
	return func(s *scenario, _ string) error {
		s.status, s.code = 400, code
		return nil
	}
}

func setTransport(f transportFault) func(*scenario, string) error {
	return func(s *scenario, _ string) error {
		s.transport = f
		return nil
	}
}

func setFlap(s *scenario, v string) error {
	s.flap = true
	return number(func(s *scenario) *int { return &s.times }, 1, 1e6)(s, v)
}

func setMenu(s *scenario, v string) error {
	if v == "" {
		v = "5"
	}
	return number(func(s *scenario) *int { return &s.menu }, 1, 100)(s, v)
}
