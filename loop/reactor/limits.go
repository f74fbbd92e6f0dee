package reactor

import "time"

// Sockets.
const (
	// heldBytesMax is how many bytes of a paused socket may wait here before
	// its output is flushed by the tick instead of by EPOLLOUT, which is what
	// makes gnet read again. One more read of readBytesMax can come on top.
	heldBytesMax = 128 << 10
	// salvageBytes is one read of what the kernel has left of a connection
	// that ended while paused.
	salvageBytes = 4 << 10
	// readBytesMax is the size of gnet's read buffer, one per loop.
	readBytesMax = 64 << 10
	// plainBytesMax is how much decrypted text is handed over at once.
	plainBytesMax = 32 << 10
	// sealBytesMax is how much plain text is encrypted before it is flushed.
	sealBytesMax = 64 << 10
	// cipherBytesKeep is the largest buffer of encrypted text that a shard
	// keeps for the next write.
	cipherBytesKeep = 256 << 10
)

// quietGap is how long a loop must have had nothing to do before a callback for
// an answer to be awaited behind it.
const quietGap = 50 * time.Microsecond

// Lanes.
const (
	// owedEvery is how often a store that owes gets an empty batch.
	owedEvery = 100 * time.Millisecond
	// laneEndMax is how long a lane that ends lets its store tell what it owes,
	// beside one Apply, and owedPause is the wait between its tries.
	laneEndMax = time.Second
	owedPause  = 10 * time.Millisecond
)

// bellWait is how long a loop may take to answer the self-check.
const bellWait = 5 * time.Second

// Ways in.
const (
	// enrollQueueMax is how many accepted connections may wait for one loop.
	enrollQueueMax = 16384
	// enrollInflightMax is how many of them gnet registers at the same time.
	enrollInflightMax = 32
	// handshakesMax is how many inbound handshakes (TLS, PROXY before TLS) run
	// at the same time; with dialsMax it makes 1,024.
	handshakesMax = 512
	// silenceMin is how long a client may always say nothing in its handshake;
	// then it makes room when others wait. So handshakesMax clients in this time,
	// 2,500 a second, come in whatever the others do.
	silenceMin = 200 * time.Millisecond
	// roomPause is the wait between tries to find room for a handshake; the
	// kernel's queue holds what comes meanwhile.
	roomPause = 5 * time.Millisecond
	// handshakeTimeout is for one handshake, in or out.
	handshakeTimeout = 5 * time.Second
	// refusalsMax is how many refused clients are answered at the same time;
	// further ones are closed without an answer.
	refusalsMax = 256
	// refusalTimeout is for one answered refusal: handshake, write and drain.
	refusalTimeout = time.Second
	// refusalDrainBytes is how much of a refused request is read and dropped.
	refusalDrainBytes = 256 << 10
	// acceptPauseMin and acceptPauseMax bound the back-off when descriptors or
	// memory have run out.
	acceptPauseMin = 5 * time.Millisecond
	acceptPauseMax = time.Second
	// certificateLook is how often a certificate file's time is looked at.
	certificateLook = time.Second
)

// Ways out.
const (
	// dialQueueMax is how many dials may wait in the dialer's mailbox.
	dialQueueMax = 16384
	// dialsMax is how many dials run at the same time, handshakes included.
	dialsMax = 512
	// dialsPerHostMax is how many of them one host may take, so that a host
	// that does not answer leaves room for the others.
	dialsPerHostMax = 256
	// dialWaitMax is how many dials may wait for one host.
	dialWaitMax = 4096
	// yieldEvery is how often the loops are asked for an idle connection of a
	// host that is full while a dial waits.
	yieldEvery = 50 * time.Millisecond
	// endpointsMax is how many TLS configurations, each with its session
	// cache, are kept.
	endpointsMax = 1024
	// sessionsPerEndpoint is how many TLS sessions are kept per endpoint.
	sessionsPerEndpoint = 64
	// postPause is the wait between tries to post to a loop whose mailbox is
	// full.
	postPause = time.Millisecond
)
