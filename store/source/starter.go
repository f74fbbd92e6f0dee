package source

import (
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// tokenBytes is the entropy of a minted relay key.
const tokenBytes = 32

//go:embed starter.yaml
var starter string

// Starter is a commented first catalog whose one relay key has the given hash,
// as Mint returns it. It needs OPENAI_API_KEY and ANTHROPIC_API_KEY in the
// environment.
func Starter(mintedHash string) []byte {
	return []byte(strings.Replace(starter, "MINTED_HASH", mintedHash, 1))
}

// Mint makes a relay key and the hash of it that a catalog holds.
func Mint() (key string, sha256hex string) {
	var random [tokenBytes]byte
	_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the process instead
	key = "rk-" + base64.RawURLEncoding.EncodeToString(random[:])
	sum := sha256.Sum256([]byte(key))
	return key, hex.EncodeToString(sum[:])
}
