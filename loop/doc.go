// Package loop moves a request from a client connection to an upstream
// connection, and the response back.
//
// Ownership: a Loop is one shard. Its goroutine alone touches the connections,
// timers, pools and counters reachable from it, so nothing here is locked or
// atomic. Every other goroutine reaches a Loop through its mailbox and nothing
// else. A client connection and the upstream connections of its exchanges
// live on one loop.
// Sockets: the loop does no I/O. It is driven through Conn and acts through
// Socket, which loop/reactor implements over gnet and loop/sim over a fake
// network.
// Bytes: the slice passed to OnBytes is borrowed and dies when OnBytes
// returns.
// Clock: read once per callback by the driver and kept on the loop.
package loop
