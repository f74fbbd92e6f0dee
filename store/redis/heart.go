package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// heartText enters a relay in the set of those that live, and checks that all
// count by the same protocol. KEYS[1] is the set; ARGV: protocol and tags, the
// relay and its loops (empty: only look), whether it leaves.
const heartText = `
local unpack = unpack or table.unpack
local now = redis.call('TIME')[1]
local meta = string.sub(KEYS[1], 1, string.find(KEYS[1], '}', 1, true)) .. 'meta'
local stored = redis.call('GET', meta)
if not stored then
  stored = ARGV[1]
  redis.call('SET', meta, stored)
end
if stored ~= ARGV[1] then return {stored} end
if ARGV[3] == 'leave' then
  redis.call('ZREM', KEYS[1], ARGV[2])
else
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%d', now - ARGV[4]))
  redis.call('ZADD', KEYS[1], string.format('%d', now), ARGV[2])
  redis.call('EXPIRE', KEYS[1], ARGV[4] * 10)
end
return {stored, unpack(redis.call('ZRANGE', KEYS[1], 0, -1))}`

// beat says every second that this process lives. Until the store was reached
// for the first time it tries more often.
func (s *Store) beat() {
	for {
		wait := heartEvery
		if !s.joined.Load() {
			wait = probeAfter
		}
		select {
		case <-s.life.Done():
			return
		case <-time.After(wait):
		}
		ctx, cancel := context.WithTimeout(s.life, s.options.Deadline)
		var err error
		if s.joined.Load() {
			err = s.pulse(ctx, true)
		} else {
			err = s.join(ctx)
		}
		cancel()
		if s.life.Err() == nil {
			s.note(err)
		}
	}
}

// pulse enters or leaves the set, and learns who else lives. When the store
// cannot be asked, what was known last stays.
func (s *Store) pulse(ctx context.Context, stay bool) error {
	want := fmt.Sprint(protocol, " ", s.options.Tags)
	self := fmt.Sprintf("%016x:%d", s.options.Process, s.options.Loops)
	leave := ""
	if !stay {
		leave = "leave"
	}
	ttl := strconv.Itoa(int(heartTTL.Seconds()))
	cmd := s.client.B().Eval().Script(heartText).Numkeys(1).Key(tagName(0)+"relays").Arg(want, self, leave, ttl).Build()
	reply, err := s.client.Do(ctx, cmd).AsStrSlice()
	if err != nil {
		s.heardAt = time.Time{}
		return fmt.Errorf("redis: say that this relay lives: %w", err)
	}
	if len(reply) == 0 {
		return errors.New("redis: say that this relay lives: empty reply")
	}
	if reply[0] != want {
		m := &MismatchError{Stored: reply[0], Wanted: want}
		s.refuse.Store(&fault{m})
		return m
	}
	s.refuse.Store(nil)
	if s.heardAt.IsZero() {
		s.heardAt = time.Now()
	}
	relays, loops := int64(0), int64(0)
	for _, r := range reply[1:] {
		_, count, _ := strings.Cut(r, ":")
		if n, err := strconv.ParseInt(count, 10, 32); err == nil && n > 0 {
			relays++
			loops += n
		}
	}
	s.count(max(relays, 1), max(loops, int64(s.options.Loops)))
	return nil
}

// count takes in who lives. After an outage the others have to be heard of
// first: until then there are not fewer than before, or each relay would take
// itself for the only one when the store goes again.
func (s *Store) count(relays, loops int64) {
	if relays < s.relays.Load() && time.Since(s.heardAt) < heartTTL {
		return
	}
	s.relays.Store(relays)
	s.loops.Store(loops)
}

// leave takes this process out of the set, so that the others need not wait
// until it is forgotten.
func (s *Store) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), s.options.Deadline)
	defer cancel()
	s.note(s.pulse(ctx, false))
}
