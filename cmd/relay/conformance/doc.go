// Package conformance judges the built binary from outside: raw bytes on real
// sockets, on the client's side and on the upstream's, against RFC 9110, RFC
// 9112 and the strict reading of them that Relay promises. It holds tests only,
// built with the tag integration:
//
//	go test -tags integration ./cmd/relay/conformance
//
// One relay serves all cases, which run in parallel; a second one is besieged.
// Cases are rows of tables, one file per topic. A well-behaved upstream, the
// echo, keeps what reaches it by the name of the case, so that a request that
// must not be forwarded is seen when it is. Cases about the upstream's side
// have an origin of their own, a listener whose every byte is scripted.
package conformance
