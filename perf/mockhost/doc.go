// Package mockhost is a provider of both shapes that answers from memory: for
// tests, for the demo and for benchmarks. Its latency and its faults are chosen
// per request, by a scenario in the model name ("gpt-mock:status=503,times=1"),
// in the query ("?mock=reset"), in the credential ("sk-mock:status=401") or for
// the whole server (Options.Scenario). Knobs lists every word of a scenario.
//
// Ownership: one goroutine per connection owns its buffers and answers its
// requests in order. Streams in tick mode are written by one goroutine per
// server instead, which never blocks on a socket; their connection's goroutine
// only watches for the peer to leave. The server speaks HTTP/1.1 over plain TCP
// by hand, because it has to be cheaper than what it measures and has to be
// able to answer wrongly.
//
// Token counts are made up but repeatable: a prompt counts one token for every
// four bytes of its raw JSON, an answer counts its words. A scenario can set
// every count exactly.
package mockhost
