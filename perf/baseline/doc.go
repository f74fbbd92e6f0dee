// Package baseline is the usual design to compare with: gateways that give
// every connection a goroutine, and do the work of Relay through Relay's own
// packages. Catalog, keys, policies, limits, scanning and edits of bodies,
// choice of host key, usage, cost and spool are the same code; what differs is
// how connections are served.
//
// There are two engines over one core. nethttp is a net/http server with an
// http.Transport per host. fasthttp is a fasthttp server with a HostClient per
// host. The core decides and accounts; an engine moves bytes.
//
// # Tuning
//
// The engines are written to be fast, as far as their libraries let them.
//
// Both: requests in flight are objects from a pool, with all their buffers; a
// request body is read once into a pooled buffer, edited without decoding, and
// given back when its answer begins; limits are counted under one mutex, since
// a shard could not hold the policy that most requests share, and a decision
// takes less time than a hand-over; spool writers are one per P, each under its
// own mutex, and a request stays with one of them; which header fields go on is
// asked of package upstream once per name and remembered; no log line per
// request; GOGC is 400 unless the environment says otherwise; counters are
// plain atomics, read when they are asked for.
//
// nethttp: transport with all idle connections kept, no compression, no
// HTTP/2, no timer for the response head, write buffer large enough for the
// usual request; header values are shared and not copied; one flush per read of
// a stream; request copied from a template and not parsed from a URL; no
// goroutine but those of net/http. Full duplex is not asked for: a request
// body is read to its end before anything is answered.
//
// fasthttp: request bodies stay in the server's own buffers; a stream is a
// reader that the server asks for pieces, and not a writer, which would cost a
// goroutine and a pipe for each; headers are copied as bytes.
//
// # What is less than Relay
//
// Audio, images, moderations and the list of models are not served (404). The
// catalog is read once. A silent stream gets no keep-alive and no idle timeout,
// a host no deadline for its first byte. An encoded answer is a bad gateway. A
// refused connection is tried once more; all else is left to the transports.
// The fasthttp engine reads the body before the in-flight cap, and learns that
// a caller has left by its next write only.
//
// Handler and Serve are an older measure: a reverse proxy of net/http that
// does no authentication, limits or accounting.
package baseline
