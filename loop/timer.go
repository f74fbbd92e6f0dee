package loop

// A timer is a node of the wheel, part of the object that it wakes. Its zero
// value is unarmed. Owner: the loop.
type timer struct {
	next, prev *timer
	deadlineNs int64 // loop clock
	wakes      timed
}

// timed is what a timer wakes. onTimer runs when the deadline has passed; the
// timer is unarmed by then.
type timed interface{ onTimer() }

// wheel is a hashed timer wheel. A deadline beyond one turn stays in its slot
// and is looked at once a turn.
type wheel struct {
	slots [wheelSlots]timer // list heads
	due   timer             // list head: taken out of a slot, about to fire
	at    int64             // last tick worked off, in units of TickEvery
	armed int64
}

func (w *wheel) init(nowNs int64) {
	for i := range w.slots {
		w.slots[i].next, w.slots[i].prev = &w.slots[i], &w.slots[i]
	}
	w.due.next, w.due.prev = &w.due, &w.due
	w.at = nowNs / int64(TickEvery)
}

// arm sets or moves a timer. The deadline is rounded up to a tick.
func (w *wheel) arm(t *timer, deadlineNs int64) {
	if t.next != nil {
		if t.deadlineNs == deadlineNs {
			return
		}
		w.disarm(t)
	}
	tick := (deadlineNs + int64(TickEvery) - 1) / int64(TickEvery)
	if tick <= w.at {
		tick = w.at + 1
	}
	t.deadlineNs = deadlineNs
	head := &w.slots[tick%wheelSlots]
	t.prev, t.next = head.prev, head
	t.prev.next, head.prev = t, t
	w.armed++
}

// disarm is harmless on an unarmed timer.
func (w *wheel) disarm(t *timer) {
	if t.next == nil {
		return
	}
	t.prev.next, t.next.prev = t.next, t.prev
	t.next, t.prev = nil, nil
	w.armed--
}

// advance fires what is due at nowNs. A timer that is armed while firing fires
// in a later tick. firing is told what fires: when that panics, the rest of
// its slot fires in the next call.
func (w *wheel) advance(nowNs int64, firing *any) {
	w.fire(firing)
	until := nowNs / int64(TickEvery)
	if until-w.at > wheelSlots {
		w.at = until - wheelSlots // one whole turn looks at every slot
	}
	for w.at < until {
		w.at++
		w.takeSlot(&w.slots[w.at%wheelSlots], nowNs)
		w.fire(firing)
	}
}

// takeSlot moves the timers of a slot that are due to the due list: what fires
// may arm and disarm any timer, those of the list included.
func (w *wheel) takeSlot(head *timer, nowNs int64) {
	for t := head.next; t != head; {
		next := t.next
		if t.deadlineNs <= nowNs {
			t.prev.next, t.next.prev = t.next, t.prev
			t.prev, t.next = w.due.prev, &w.due
			t.prev.next, w.due.prev = t, t
		}
		t = next
	}
}

func (w *wheel) fire(firing *any) {
	for w.due.next != &w.due {
		t := w.due.next
		w.disarm(t)
		*firing = t.wakes
		t.wakes.onTimer()
	}
}
