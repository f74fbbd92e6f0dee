// Package spool keeps usage events on disk until every sink has them. One
// writer per loop appends checksummed frames with one write each; a goroutine
// syncs them in groups; readers see only what is synced.
package spool
