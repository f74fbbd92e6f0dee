package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// A RelayKey is a caller's bearer token.
type RelayKey struct {
	Name        string
	Hash        [32]byte // SHA-256 of the whole token
	Prefix      string   // first characters, for people; "" when only the hash is known
	Account     *Account
	Policy      *Policy
	Group       Group
	ExpiresUnix int64 // seconds; 0 = never
	Enabled     bool
}

// compileRelayKeys compiles the section relay_keys.
func (c *compiler) compileRelayKeys(root *Place) {
	if !sized(c, root, "relay_keys", 0, &c.doc.RelayKeys, false, relayKeysMax) {
		return
	}
	section := root.Field("relay_keys")
	entries := c.doc.RelayKeys.Value
	if len(entries) == 0 {
		c.problems.Warn(section, c.doc.RelayKeys.Line, "there are none: every call will be refused")
	}
	c.tables.RelayKeys = make([]*RelayKey, 0, len(entries))
	c.tables.byHash = make(map[[32]byte]*RelayKey, len(entries))
	names := newRegistry[RelayKey](&c.doc.RelayKeys)
	for i := range entries {
		f := &entries[i]
		if f.State != Given {
			continue
		}
		at, e := section.Item(i), &f.Value
		k := &RelayKey{Enabled: e.Enabled.State != Given || e.Enabled.Value}
		c.tables.RelayKeys = append(c.tables.RelayKeys, k)
		k.Name = name(c, &at, i, f.Line, &e.Name, names, k)
		k.Account = find(c, &at, "account", f.Line, &e.Account, "account", c.accounts)
		k.Policy = find(c, &at, "policy", f.Line, &e.Policy, "policy", c.policies)
		k.Group = c.group(&at, "relay_key", k.Name, &e.Limits, k)
		k.ExpiresUnix = c.expiry(&at, &e.Expires)
		if !c.token(&at, f.Line, e, k) {
			continue
		}
		if old := c.tables.byHash[k.Hash]; old != nil {
			c.problems.Error(at, f.Line, "is the same key as %s", c.quote(old.Name))
			continue
		}
		c.tables.byHash[k.Hash] = k
	}
}

// token reads the hash of a key, or computes it.
func (c *compiler) token(at *Place, line int32, e *RelayKeyEntry, k *RelayKey) bool {
	switch {
	case e.Key.State != Absent && e.SHA256.State != Absent:
		c.problems.Error(*at, line, "has both sha256 and key; allowed is one of them")
		return false
	case e.Key.State == Absent && e.SHA256.State == Absent:
		c.problems.Error(*at, line, "has neither sha256 nor key; one of them is needed")
		return false
	case e.Key.State == Given:
		return c.tokenText(at.Field("key"), &e.Key, k)
	case e.SHA256.State == Given:
		n, err := hex.Decode(k.Hash[:], []byte(e.SHA256.Value[:min(len(e.SHA256.Value), 64)]))
		if err != nil || n != len(k.Hash) || len(e.SHA256.Value) != 64 {
			c.problems.Error(at.Field("sha256"), e.SHA256.Line, "is not a SHA-256: allowed are 64 hexadecimal digits")
			return false
		}
		if k.Hash == sha256.Sum256(nil) {
			c.problems.Error(at.Field("sha256"), e.SHA256.Line, "is the SHA-256 of an empty text")
			return false
		}
		return true
	}
	return false
}

// tokenText takes a key that is written in full.
func (c *compiler) tokenText(at Place, f *Field[Secret], k *RelayKey) bool {
	text := string(f.Value)
	if len(text) < keyBytesMin || len(text) > keyBytesMax || !plainText(text) {
		c.problems.Error(at, f.Line, "allowed are %d to %d bytes of printable ASCII without blanks, quotes and backslashes", keyBytesMin, keyBytesMax)
		return false
	}
	c.problems.Warn(at, f.Line, "the key stands in the file in clear; sha256 keeps it out")
	k.Hash = sha256.Sum256([]byte(text))
	// What is shown of a key must not give much of it away: a short key shows
	// less than the usual eight characters.
	k.Prefix = text[:min(8, len(text)/3)]
	return true
}

// expiry reads when a key ends. Years of long ago are slips, and zero seconds
// would read as never.
func (c *compiler) expiry(at *Place, f *Field[string]) int64 {
	if f.State != Given {
		return 0
	}
	moment, err := time.Parse(time.RFC3339, f.Value)
	switch {
	case err != nil:
		c.problems.Error(at.Field("expires"), f.Line, "is not a time of RFC 3339 such as 2030-01-31T00:00:00Z")
	case moment.Year() < expiryYearMin:
		c.problems.Error(at.Field("expires"), f.Line, "is before the year %d", expiryYearMin)
	default:
		return moment.Unix()
	}
	return 0
}
