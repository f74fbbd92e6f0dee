package loop

import (
	"slices"
	"sync"
	"testing"
)

func TestMailboxOneWakePerBatch(t *testing.T) {
	wakes := 0
	b := NewMailbox[int](10, func() { wakes++ })
	var spare []int
	for round := range 3 {
		for i := range 3 {
			if !b.Put(i) {
				t.Fatal("not taken")
			}
		}
		if wakes != round+1 || b.Len() != 3 {
			t.Fatalf("%d wakes for %d batches, %d wait", wakes, round+1, b.Len())
		}
		batch := b.Take(spare)
		if !slices.Equal(batch, []int{0, 1, 2}) || b.Len() != 0 {
			t.Fatalf("batch is %v, %d wait", batch, b.Len())
		}
		spare = batch
	}
	if batch := b.Take(spare); len(batch) != 0 || wakes != 3 {
		t.Errorf("an empty box gives %v, %d wakes", batch, wakes)
	}
}

func TestMailboxFull(t *testing.T) {
	b := NewMailbox[int](2, func() {})
	for i, want := range []bool{true, true, false, false} {
		if b.Put(i) != want {
			t.Errorf("put %d is %t, want %t", i, !want, want)
		}
	}
	if batch := b.Take(nil); !slices.Equal(batch, []int{0, 1}) {
		t.Errorf("batch is %v", batch)
	}
	if !b.Put(9) {
		t.Error("an emptied box takes nothing")
	}
}

// TestMailboxSpareIsCleared: the box does not keep alive what was delivered.
func TestMailboxSpareIsCleared(t *testing.T) {
	b := NewMailbox[*int](4, func() {})
	b.Put(new(int))
	first := b.Take(nil)
	b.Take(first)
	if first[0] != nil {
		t.Error("a delivered message is kept")
	}
}

func TestMailboxAllocs(t *testing.T) {
	b := NewMailbox[int](100, func() {})
	var spare []int
	if n := testing.AllocsPerRun(1000, func() {
		for i := range 50 {
			b.Put(i)
		}
		spare = b.Take(spare)
	}); n != 0 {
		t.Errorf("%v allocations per batch", n)
	}
}

// TestMailboxRace: every item that was taken arrives once and in its sender's
// order, and the owner sleeps only while the box is empty.
func TestMailboxRace(t *testing.T) {
	const senders, items = 8, 5000
	wake := make(chan struct{}, senders*items)
	b := NewMailbox[[2]int](64, func() { wake <- struct{}{} })
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := range items {
				for !b.Put([2]int{s, i}) {
				}
			}
		})
	}
	var next [senders]int
	var spare [][2]int
	for got := 0; got < senders*items; {
		<-wake
		batch := b.Take(spare)
		if len(batch) == 0 {
			t.Fatal("woken for nothing")
		}
		for _, item := range batch {
			if next[item[0]] != item[1] {
				t.Fatalf("sender %d: item %d came, %d is next", item[0], item[1], next[item[0]])
			}
			next[item[0]]++
		}
		got += len(batch)
		spare = batch
	}
	wg.Wait()
	if b.Len() != 0 || len(wake) != 0 {
		t.Errorf("%d items and %d wakes are left", b.Len(), len(wake))
	}
}
