package source

import "time"

// The parser of YAML takes most of a reading: about 60 ms of CPU and 24 MiB of
// short-lived memory per MiB of file. BenchmarkCheck, 24 MB with 100,000 relay
// keys: 1.5 s in the parser, 0.35 s in all else.
const (
	fileBytesMax   = 64 << 20  // of a catalog
	secretFileMax  = 16 << 10  // bytes of a file that a secret is read from; catalog allows less
	aliasNodesMax  = 1_000_000 // values reached through YAML aliases: a few lines could stand for billions
	entriesMax     = 1_000_000 // of a list before it is looked at; catalog allows no list more
	fieldBytesMax  = 32        // of an unknown field name repeated in a problem
	openLinesMax   = 100       // problems in the error of Open
	statusLinesMax = 20        // problems in Status.LastError and in one log line
	summaryMax     = 50        // models listed by Summary
	routesMax      = 8         // bindings listed per model by Summary
)

const (
	settle    = 50 * time.Millisecond  // quiet time after a change before the file is read
	settleMax = 500 * time.Millisecond // a directory that never rests is read all the same
	pollEvery = 2 * time.Second        // for changes that no event tells of: targets of symlinks, network mounts
)
