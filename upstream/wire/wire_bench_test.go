package wire

import (
	"strings"
	"syscall"
	"testing"
)

// cpuNs is the CPU time of this process: on a shared machine it says more than
// the time on the wall.
func cpuNs(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// A chunk as OpenAI sends it, 230 bytes.
const benchChunk = `data: {"id":"chatcmpl-Bz3kWmZ0aXq1","object":"chat.completion.chunk","created":1764500000,"model":"gpt-5-mini","service_tier":"default","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}` + "\n\n"

const benchDelta = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" token\"}}\n\n"

func benchmarkFeed(b *testing.B, id RouteID, event string, perRead int) {
	var s Stream
	s.Reset(id, true)
	p := []byte(strings.Repeat(event, perRead))
	dst := make([]byte, 0, len(p))
	b.SetBytes(int64(len(p)))
	b.ReportAllocs() // budget 0, enforced by TestFeedAllocs
	begin := cpuNs(b)
	for b.Loop() {
		dst = s.Feed(dst[:0], p)
	}
	b.ReportMetric(float64(cpuNs(b)-begin)/float64(b.N*perRead), "cpu-ns/event")
}

func BenchmarkFeedChat(b *testing.B)     { benchmarkFeed(b, ChatCompletions, benchChunk, 1) }
func BenchmarkFeedChat8(b *testing.B)    { benchmarkFeed(b, ChatCompletions, benchChunk, 8) }
func BenchmarkFeedMessages(b *testing.B) { benchmarkFeed(b, Messages, benchDelta, 1) }

func benchmarkScan(b *testing.B, body string) {
	p := []byte(body)
	var s Scan
	b.SetBytes(int64(len(p)))
	b.ReportAllocs() // budget 0, enforced by TestScanAllocs
	for b.Loop() {
		s.Reset(ChatCompletions)
		if s.Advance(p, true) != ScanOK {
			b.Fatal("refused")
		}
	}
}

func BenchmarkScanText(b *testing.B) {
	turn := `{"role":"user","content":"A sentence of some words, \"quoted\" once.\nAnd a second line."},`
	benchmarkScan(b, `{"model":"gpt-5","stream":true,"messages":[`+strings.Repeat(turn, 20)+`{"role":"user","content":"x"}]}`)
}

func BenchmarkScanPicture(b *testing.B) {
	benchmarkScan(b, `{"messages":[{"role":"user","content":"`+strings.Repeat("iVBORw0KGgoAAAAN", 1<<16)+`"}],"model":"gpt-5"}`)
}

func BenchmarkAnswer(b *testing.B) {
	p := []byte(`{"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("Some words of an answer. ", 40) + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"completion_tokens":200,"total_tokens":212}}`)
	var a Answer
	b.SetBytes(int64(len(p)))
	b.ReportAllocs() // budget 0, enforced by TestAnswerAllocs
	for b.Loop() {
		a.Reset(ChatCompletions)
		a.Feed(p)
		if !a.End() {
			b.Fatal("not valid")
		}
	}
}
