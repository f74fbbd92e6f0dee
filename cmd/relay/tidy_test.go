package main

import (
	"context"
	"runtime/debug"
	"testing"
	"time"
)

// keep stops the compiler from leaving allocations out.
var keep []byte

// TestTidy sees garbage that a high GOGC lets lie go away in a quiet process.
func TestTidy(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100_000))
	debug.FreeOSMemory()
	if littered() {
		t.Fatal("littered behind a collection")
	}
	for range 64 {
		keep = make([]byte, 1<<20)
	}
	keep = nil
	if !littered() {
		t.Fatal("64 MiB of garbage are not seen")
	}
	ctx, end := context.WithCancel(context.Background())
	defer end()
	go tidy(ctx)
	for deadline := time.Now().Add(time.Minute); littered(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the garbage still lies there")
		}
	}
}
