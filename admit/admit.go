package admit

import (
	"crypto/sha256"

	"relay/store/catalog"
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
