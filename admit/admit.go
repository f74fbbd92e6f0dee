package admit

import (
	"crypto/sha256"

	"relay/store/catalog"
	"relay/store/state"
	"relay/upstream/wire"
)

// Key finds the relay key of a credential. The error is NoError, MissingKey or
// InvalidKey (unknown, disabled, expired alike: a caller learns nothing).
// Keys are found by their hash, so the time that a search takes says nothing
// about a key that is nearly right.
func Key(t *catalog.Tables, credential []byte, nowUnix int64) (*catalog.RelayKey, wire.Error) {
	if len(credential) == 0 {
		return nil, wire.MissingKey
	}
	hash := sha256.Sum256(credential)
	k := t.RelayKey(&hash)
	if k == nil || !k.Enabled || k.ExpiresUnix != 0 && nowUnix >= k.ExpiresUnix {
		return nil, wire.InvalidKey
	}
	return k, wire.NoError
}

// Model finds the model for a name as the caller sent it. The error is
// NoError, UnknownModel or ModelNotAllowed.
func Model(t *catalog.Tables, k *catalog.RelayKey, name []byte) (*catalog.Model, wire.Error) {
	m := t.Model(name)
	switch {
	case m == nil:
		return nil, wire.UnknownModel
	case !k.Policy.Allows(m):
		return nil, wire.ModelNotAllowed
	}
	return m, wire.NoError
}

// Plan makes r a Reserve of the groups that have limits: policy, relay key,
// account, host key. It reports whether there are any; without any the store
// is not asked. h may be nil. r must hold nothing.
func Plan(r *state.Reservation, k *catalog.RelayKey, h *catalog.HostKey) bool {
	if r.Holds() {
		panic("BUG: a reservation that holds slots is planned anew")
	}
	r.Verb, r.Count = state.Reserve, 0
	r.Groups = [state.GroupsMax]*catalog.Group{} // an older catalog is let go
	add(r, &k.Policy.Group)
	add(r, &k.Group)
	add(r, &k.Account.Group)
	if h != nil {
		add(r, &h.Group)
	}
	return r.Count > 0
}

func add(r *state.Reservation, g *catalog.Group) {
	if g.ID != 0 {
		r.Groups[r.Count] = g
		r.Count++
	}
}
