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
// shards could not hold the policy that most requests share, and a decision
// takes less time than a hand-over: leases and store are of one goroutine at a
// time, so what the leases ask is answered on the spot, and nobody waits; spool writers are one per P, each under its
// own mutex, and a request stays with one of them; which header fields go on is
// asked of package upstream once per name and remembered; no log line per
// request; GOGC is 400 unless the environment says otherwise; counters are
// plain atomics, read when they are asked for.
//
// nethttp: a transport per host with all idle connections kept, no compression,
// no HTTP/2, no timer for the response head; head and body of a usual request
// go out in one write, which takes a reader that the transport knows and a
// buffer that holds both; header values are shared and not copied; requests are
// copied from a template and not parsed from a URL; one flush per read of a
// stream; no goroutine but those of net/http. Full duplex is not asked for: a
// request body is read to its end before anything but a refusal is answered.
// Of some 95 allocations per request, ten are not net/http's own.
//
// fasthttp: a client per host with all idle connections kept; heads are copied
// as bytes between pooled objects; a stream is an io.WriterTo that the server
// drains, and not a SetBodyStreamWriter, which would cost a goroutine and a
// pipe for each. It allocates some seven times per request.
//
// # What is less than Relay
//
// Audio, images, moderations and the list of models are not served (404). The
// catalog is read once. Limits are counted in memory, a stream that outgrows its
// estimate is charged at its end only, and callers are not told how limits
// stand. A silent stream gets no keep-alive and no idle timeout, a host no
// deadline for its first byte. An encoded answer is a bad gateway. A refused
// connection is tried once more; all else is left to the transports. The
// fasthttp engine learns that a caller has left by its next write only, and
// reads up to 8 KiB of a body before the in-flight cap.
package baseline
