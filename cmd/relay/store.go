package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"relay/cmd/relay/control"
	"relay/loop/reactor"
	"relay/store/redis"
	"relay/store/state"
)

// A sharedStore is where this relay counts limits together with others, and
// what it does while that is lost.
type sharedStore struct {
	store    *redis.Store
	fallback []*state.Outage // by lane
	local    bool            // RELAY_STORE_OUTAGE
	log      *slog.Logger
	standing atomic.Pointer[standing] // written by watch
}

// openShared opens the store, whose lanes connect by way of the loops. It may be
// out of reach; one that other relays use in another way is an error.
func openShared(s *Settings, by *reactor.Reactor, loops int, log *slog.Logger) (*sharedStore, error) {
	store, err := redis.Open(redis.Options{
		Addrs: s.RedisAddr,
		Loops: loops,
		Tags:  int(s.RedisTags),
		Lanes: int(s.RedisLanes),
		Dial: func(ctx context.Context, lane int, d *net.Dialer, addr string) (net.Conn, error) {
			return by.DialLine(ctx, lane, d, addr)
		},
	})
	if other := (*redis.MismatchError)(nil); errors.As(err, &other) {
		err = fmt.Errorf("%w (RELAY_REDIS_TAGS)", err)
	}
	if err != nil {
		return nil, failed("RELAY_REDIS_ADDR (--redis-addr)", s.RedisAddr.String(), err)
	}
	h := &sharedStore{store: store, local: s.StoreOutage == "local", log: log}
	for i := range store.Lanes() {
		h.fallback = append(h.fallback, state.NewOutage(store.Lane(i), h.local, loops, store.Live))
	}
	h.standing.Store(&standing{reached: store.Err() == nil})
	log.Info("limits are shared with other relays", "store", s.RedisAddr.String(), "lanes", store.Lanes(),
		"relays", store.Live(), "outage", string(s.StoreOutage))
	h.see(time.Now(), store.Err())
	return h, nil
}

// stores are one for each lane.
func (h *sharedStore) stores() []state.Store {
	list := make([]state.Store, len(h.fallback))
	for i, f := range h.fallback {
		list[i] = f
	}
	return list
}

// close leaves the store. Lanes must be at rest.
func (h *sharedStore) close() { h.store.Close() }

// A standing is whether the store is there. It does not change.
type standing struct {
	lostAt  time.Time // zero: it is there
	calmAt  time.Time // lost, and without a failure since then; zero: it fails
	err     error     // why it was lost
	reached bool      // since the start
}

// next is the standing after a look that found err. A store counts as back when
// it has been without a failure for storeCalm: one of several lanes may fail
// while others do not.
func (s *standing) next(now time.Time, err error) *standing {
	switch lost := !s.lostAt.IsZero(); {
	case !lost && err == nil:
		return s
	case !lost:
		return &standing{lostAt: now, err: err, reached: s.reached}
	case err != nil:
		return &standing{lostAt: s.lostAt, err: err, reached: s.reached}
	case s.calmAt.IsZero():
		return &standing{lostAt: s.lostAt, calmAt: now, err: s.err, reached: s.reached}
	case now.Sub(s.calmAt) < storeCalm:
		return s
	}
	return &standing{reached: true}
}

// refuses reports whether a relay that refuses while the store is lost should
// get no new connections: not at once, since another address may answer soon,
// unless it has not been able to serve yet.
func (s *standing) refuses(now time.Time) bool {
	return !s.lostAt.IsZero() && (!s.reached || now.Sub(s.lostAt) >= storeGrace)
}

// watch looks at the store until ctx ends.
func (h *sharedStore) watch(ctx context.Context) {
	ticker := time.NewTicker(storeLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			h.see(now, h.store.Err())
		}
	}
}

// see takes in one look at the store, and tells when it was lost or is back.
func (h *sharedStore) see(now time.Time, err error) {
	was := h.standing.Load()
	is := was.next(now, err)
	if is == was {
		return
	}
	h.standing.Store(is)
	switch {
	case is.lostAt.IsZero():
		h.log.Info("the store is back", "lost_for", was.calmAt.Sub(was.lostAt).Round(time.Millisecond).String())
	case was.lostAt.IsZero() || isMismatch(is.err) && !isMismatch(was.err): // which does not pass by itself
		h.log.Error(h.lostText(), "error", is.err.Error())
	}
}

func isMismatch(err error) bool { return errors.As(err, new(*redis.MismatchError)) }

// lostText says what a lost store means.
func (h *sharedStore) lostText() string {
	if h.local {
		return "the store is lost: this relay counts its share of the limits by itself"
	}
	return "the store is lost: requests with limits are refused"
}

// state is what the control plane tells of the store.
func (h *sharedStore) state() control.Store {
	s := h.standing.Load()
	if s.lostAt.IsZero() {
		return control.Store{Backend: "redis"}
	}
	return control.Store{
		Backend: "redis",
		LostAt:  s.lostAt,
		Error:   s.err.Error(),
		Note:    h.lostText(),
		Refuses: !h.local && s.refuses(time.Now()),
	}
}
