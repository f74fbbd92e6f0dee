package redistest

import "time"

const (
	startMax = 10 * time.Second // until a server answers
	replyMax = 5 * time.Second  // of one command
	startTry = 3                // ports that are tried: another may take one first
)
