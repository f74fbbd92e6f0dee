// Package reactor puts gnet under package loop: it owns the sockets, the
// threads and the goroutines; the loops own everything else.
//
// Ownership: a shard is one gnet event loop with one Core on it. A socket
// belongs to its shard from the moment it opens; before that it belongs to the
// goroutine that accepted or dialed it. What several goroutines share (slots,
// dial queues, counters) is locked or atomic and never touched per request.
// Re-entrance: gnet may close a connection inside our own write to it. Nothing
// of that reaches a loop.Conn from inside a Socket method: it is noted in the
// shard's due list and told after the current callback.
// Pause: gnet cannot stop reading. The interest of a paused descriptor is
// switched off on gnet's own epoll descriptor, which is checked at the start.
// Bytes: gnet's inbound buffer is emptied at every event, so that it never
// grows; what a paused socket gets all the same is held here, bounded.
// Build tags: poll_opt changes what gnet keeps in an epoll event and must not
// be used.
package reactor
