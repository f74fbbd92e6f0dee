package admit

import (
	"relay/httpparse"
	"relay/store/catalog"
	"relay/store/state"
	"relay/upstream/wire"
)

// Credential finds the relay key in a request head: X-WR-API-Key, else
// x-api-key on Anthropic routes and Authorization: Bearer on OpenAI routes,
// else the other of the two. It returns a view, or nil.
func Credential(r *httpparse.Request, s wire.Shape) []byte { panic("BUG: not built") }

// Key finds the relay key of a credential. The error is NoError, MissingKey or
// InvalidKey (unknown, disabled, expired alike: a caller learns nothing).
func Key(t *catalog.Tables, credential []byte, nowUnix int64) (*catalog.RelayKey, wire.Error) {
	panic("BUG: not built")
}

// Model finds the model for a name as the caller sent it. The error is
// NoError, UnknownModel or ModelNotAllowed.
func Model(t *catalog.Tables, k *catalog.RelayKey, name []byte) (*catalog.Model, wire.Error) {
	panic("BUG: not built")
}

// Plan fills in the groups of a reservation that have limits: policy, relay
// key, account, host key. It reports whether there are any; without any the
// store is not asked.
func Plan(r *state.Reservation, k *catalog.RelayKey, h *catalog.HostKey) bool {
	panic("BUG: not built")
}
