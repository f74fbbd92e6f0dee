package admit

import (
	"relay/httpparse"
	"relay/upstream/wire"
)

// The fields in which a relay key may come.
const (
	relayField  = "x-wr-api-key"
	keyField    = "x-api-key"
	bearerField = "authorization"
)

// Credential finds the relay key in a request head: X-WR-API-Key, else
// x-api-key on Anthropic routes and Authorization: Bearer on OpenAI routes,
// else the other of the two. It returns a view, or nil.
//
// An empty field, and an Authorization of another scheme, count as absent. A
// field that comes twice with different values gives nil at its turn: whichever
// of the two were taken, another reader of the head could take the other.
func Credential(r *httpparse.Request, s wire.Shape) []byte {
	var relay, key, bearer shown
	for i := range r.Fields {
		f := &r.Fields[i]
		switch len(f.Name) { // most fields of a head are none of the three
		case len(relayField):
			if httpparse.EqualFold(f.Name, relayField) {
				relay.note(f.Value)
			}
		case len(keyField):
			if httpparse.EqualFold(f.Name, keyField) {
				key.note(f.Value)
			}
		case len(bearerField):
			if httpparse.EqualFold(f.Name, bearerField) {
				bearer.note(bearerToken(f.Value))
			}
		}
	}
	order := [...]*shown{&relay, &bearer, &key}
	if s == wire.Anthropic {
		order = [...]*shown{&relay, &key, &bearer}
	}
	for _, c := range order {
		switch {
		case c.conflict:
			return nil
		case c.value != nil:
			return c.value
		}
	}
	return nil
}

// shown is what a head shows in one field.
type shown struct {
	value    []byte // nil = nothing
	conflict bool   // different values
}

func (c *shown) note(value []byte) {
	switch {
	case len(value) == 0:
	case c.value == nil:
		c.value = value
	case string(c.value) != string(value):
		c.conflict = true
	}
}

// bearerToken is what follows the scheme Bearer (RFC 6750 §2.1), whose letter
// case is free (RFC 9110 §11.1), or nil.
func bearerToken(value []byte) []byte {
	const scheme = "bearer"
	if len(value) <= len(scheme) || value[len(scheme)] != ' ' || !httpparse.EqualFold(value[:len(scheme)], scheme) {
		return nil
	}
	token := value[len(scheme):]
	for len(token) > 0 && token[0] == ' ' {
		token = token[1:]
	}
	return token
}
