package lanes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A box is a queue into one goroutine. Its owner is woken by the first put
// behind a take.
type box[T any] struct {
	mu    sync.Mutex
	items []T
	woken bool
	wake  func() // must not block
}

// put adds some items.
func (b *box[T]) put(items ...T) {
	b.mu.Lock()
	b.items = append(b.items, items...)
	wake := !b.woken
	b.woken = true
	b.mu.Unlock()
	if wake {
		b.wake()
	}
}

// take empties the box. spare is an earlier batch, whose memory is used again.
func (b *box[T]) take(spare []T) []T {
	clear(spare)
	b.mu.Lock()
	defer b.mu.Unlock()
	batch := b.items
	b.items, b.woken = spare[:0], false
	return batch
}

// A bell is an eventfd.
type bell int

func newBell() (bell, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("lanes: eventfd: %w", err)
	}
	return bell(fd), nil
}

func (b bell) ring() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	unix.Write(int(b), one[:]) // fails only when it rings already
}

// still has it ring no more.
func (b bell) still() {
	var n [8]byte
	unix.Read(int(b), n[:])
}

// await waits until a file is ready for what, at most so long.
func await(fd int, what int16, atMost time.Duration) (ready bool, err error) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: what}}
	left := unix.NsecToTimespec(max(0, int64(atMost)))
	n, err := unix.Ppoll(fds, &left, nil)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return false, fmt.Errorf("lanes: wait: %w", err)
	}
	return n > 0, nil
}
