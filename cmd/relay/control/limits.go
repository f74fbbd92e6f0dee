package control

import "time"

// Limits of the control plane.
const (
	ScrapeTimeout     = 2 * time.Second // for a loop to answer
	connectionsMax    = 256             // at the same time; more wait to be accepted
	scrapesMax        = 4               // at the same time
	headBytesMax      = 16 << 10        // of a request
	readHeadTimeout   = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 60 * time.Second // longer than a CPU profile of 30 s
	idleTimeout       = 2 * time.Minute
	shutdownTimeout   = time.Second
	errorTextBytesMax = 4096 // of an error in /readyz
)
