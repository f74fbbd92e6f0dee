package main

import (
	"context"
	"runtime"
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

// TestTidyGivesBack sees memory that a collection freed and kept.
func TestTidyGivesBack(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100_000))
	keep = make([]byte, 64<<20)
	for i := 0; i < len(keep); i += 4096 {
		keep[i] = 1 // has to be there to be given back
	}
	runtime.GC() // while it lives
	keep = nil
	runtime.GC()
	if !littered() {
		t.Fatal("64 MiB that were freed and not given back are not seen")
	}
	debug.FreeOSMemory()
	if littered() {
		t.Error("littered although all was given back")
	}
}
