package catalog

// A Shape is one family of JSON: how requests, answers and errors look.
type Shape uint8

// The two shapes.
const (
	OpenAI Shape = iota
	Anthropic
)

// String is the name used in the catalog and in metrics.
func (s Shape) String() string { return [...]string{"openai", "anthropic"}[s] }

// Tables is one generation of the catalog. Everything reachable from it is
// read-only.
type Tables struct {
	Generation uint64 // counts accepted catalogs of this process, from 1
	Revision   string // hex digest of the source, for people
	LoadedUnix int64  // seconds

	Hosts     []*Host
	Models    []*Model // order of the source
	Policies  []*Policy
	Accounts  []*Account
	RelayKeys []*RelayKey

	byHash map[[32]byte]*RelayKey
	byName map[string]*Model // names and aliases without '*'
	byGlob globIndex         // aliases with '*'
}

// Accept makes the tables one generation of a process, before anybody else sees
// them.
func (t *Tables) Accept(generation uint64) {
	t.Generation = generation
	for _, h := range t.Hosts {
		for _, k := range h.Keys {
			k.Group.Generation = generation
		}
	}
	for _, p := range t.Policies {
		p.Group.Generation = generation
	}
	for _, a := range t.Accounts {
		a.Group.Generation = generation
	}
	for _, k := range t.RelayKeys {
		k.Group.Generation = generation
	}
}

// RelayKey finds a relay key by the SHA-256 of its text, or nil. Whether it is
// enabled and not expired is the caller's to check.
func (t *Tables) RelayKey(hash *[32]byte) *RelayKey { return t.byHash[*hash] }

// Model finds a model by name, then by exact alias, then by the alias glob
// with the most literal bytes (of two with equally many, the longer prefix),
// or nil. It does not allocate. Names over 256 bytes find nothing.
func (t *Tables) Model(name []byte) *Model {
	if len(name) > nameBytesMax {
		return nil
	}
	if m := t.byName[string(name)]; m != nil {
		return m
	}
	return t.byGlob.find(name)
}
