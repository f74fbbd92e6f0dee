package mockhost

import "time"

const (
	headBytesMax     = 64 << 10 // request line and fields
	bodyBytesMax     = 64 << 20
	readBytes        = 8 << 10 // first size of a connection's read buffer
	bufferBytesKept  = 64 << 10
	recordsMax       = 64   // requests kept when Options.Record is set
	scenariosMax     = 4096 // parsed scenarios remembered, and scenarios counted for times=
	embeddingsMax    = 2048 // inputs of one embeddings request
	dimensionsMax    = 4096
	choicesMax       = 128
	tokensMax        = 1 << 16 // of one answer
	eventsMax        = 1 << 20 // of one tick stream
	tickMin          = 10 * time.Millisecond
	tickMax          = 10 * time.Second
	tickSlots        = 10               // a tick is walked in this many parts, to spread the writes
	wheelsMax        = 64               // different intervals of tick streams
	holdMax          = 10 * time.Minute // longest silence of silent and stall
	writeTimeMax     = 10 * time.Minute // a peer that reads nothing for so long is given up
	pourEventBytes   = 4096             // content bytes of one event of a pour
	pourBytesMax     = 64 << 30
	interimMax       = 10000 // 1xx heads in a row
	hugeHeadBytes    = 8 << 20
	unwatchedMax     = 200 * time.Millisecond // longest wait without watching the peer
	sleepGrain       = time.Millisecond
	drainRequestTime = time.Second // how long an early answer waits for the peer to close
)
