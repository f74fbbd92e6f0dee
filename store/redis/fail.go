package redis

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// A MismatchError says that the store is used by relays that count otherwise.
type MismatchError struct {
	Stored, Wanted string // "protocol tags"
}

// Error names both.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("redis: the store holds counters of protocol and tags %q, and this relay counts by %q: give all relays the same number of tags, or empty the store", e.Stored, e.Wanted)
}

// A settingError is one that only another setting mends.
type settingError struct{ text string }

func (e *settingError) Error() string { return e.text }

// isSetting reports whether waiting will not help: what the store says to a
// wrong password, a certificate that nobody vouches for.
func isSetting(err error) bool {
	var mismatch *MismatchError
	var setting *settingError
	var untrusted *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &mismatch), errors.As(err, &setting),
		errors.As(err, &untrusted), errors.As(err, &unknown), errors.As(err, &plain):
		return true
	}
	r := redisError(err)
	return r != nil && (slices.Contains(barred, firstWord(r)) || !mayCome(err))
}

// mayCome reports whether a call that failed so can be answered later. Replies
// of these kinds mean that the script has not run.
func mayCome(err error) bool {
	r := redisError(err)
	return r == nil || slices.Contains(notRun, firstWord(r)) || strings.Contains(r.Error(), "max number of clients")
}

// barred are the replies of a server that does not let us in.
var barred = []string{"NOAUTH", "WRONGPASS", "NOPERM"}

// notRun are the replies of a server that cannot work now.
var notRun = []string{
	"LOADING", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "MOVED", "ASK", "TRYAGAIN",
	"BUSY", "OOM", "NOAUTH", "WRONGPASS", "NOPERM", "NOREPLICAS", "MISCONF", "NOSCRIPT",
}

func firstWord(r *rueidis.RedisError) string {
	word, _, _ := strings.Cut(r.Error(), " ")
	return word
}

// redisError is the reply that an error is; nil when there was none.
func redisError(err error) *rueidis.RedisError {
	var r *rueidis.RedisError
	if !errors.As(err, &r) {
		return nil
	}
	return r
}
