// Package spool keeps usage events on disk until every sink has them. One
// writer per loop appends checksummed frames with one write each; a goroutine
// per writer syncs them in groups; readers see only what is synced.
//
// # Layout
//
//	spool/<run uuid>/LOCK              flocked by the owner of the run, or by whoever closes it
//	spool/<run uuid>/run.json          who the run is: format, instance, loops, start
//	spool/<run uuid>/SEALED            exists once every loop of the run ends in a sealed frame
//	spool/<run uuid>/<loop>/%016x.seg  segments, numbered upwards
//	spool/<run uuid>/<loop>/carry      what deleted segments leave behind, see below
//	spool/<run uuid>/<loop>/*.bad      quarantined segments, kept for people
//
// A process is one run, new at every start; nothing is ever appended to the
// run of another. Run ids are UUIDv7, so their order is the order of starts.
//
// # Positions
//
// The frames of one (run, loop) are one stream of bytes. A position counts
// the bytes of that stream, headers not included, and is where a frame starts
// or ends. It never changes and is never used twice, so that a sink can keep
// one position per (run, loop) as its watermark. A segment is a window on the
// stream, from the position in its header. Windows overlap after a failed
// fsync, when the bytes not yet safe are written again, at their old
// positions, into a new segment: where several segments hold a position, the
// one with the highest number that has a whole frame there wins.
//
// # Format
//
// All fixed-size integers are little-endian. A segment starts with 64 bytes:
//
//	 0  magic "RLYSPOOL"
//	 8  format version, u16 = 1
//	10  kind, u16: 0 segment, 1 carry
//	12  loop, u32
//	16  run, 16 bytes
//	32  segment number, u64
//	40  start position, i64
//	48  carry: row_seq of the last row before the start position, u64; else 0
//	56  zero, u32
//	60  crc32c of bytes 0 to 59, u32
//
// and goes on with frames to its end:
//
//	length u32 | crc32c u32 | type u8 | payload
//
// The length and the checksum are those of type and payload together. Types
// are 1 admitted, 2 row, 3 sealed; a reader skips others. The payload is a
// protobuf message, Event for the first two and Seal for the third, as
// event.proto says. Rows carry a dense row_seq, from 1, per (run, loop).
//
// A carry file has the header above and one admitted frame for every exchange
// that was admitted in a deleted segment and had no row there.
//
// # Promises
//
// A record whose Admitted or Row returned true survives the death of the
// process, and a loss of power once it is synced. An exchange that was
// admitted and has no row when its run ends gets one row, interrupted, with
// the estimate that it was admitted with. A frame that cannot be read though
// others behind it can is reported as a gap, never skipped in silence.
//
// A process killed between the write of a row and the last bytes of its
// response leaves a row for a response whose client saw a cut.
package spool
