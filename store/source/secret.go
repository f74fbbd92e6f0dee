package source

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"strings"
)

// secrets reads what references of one catalog lead to, and keeps a digest of
// it, so that a reload notices a secret that changed although the catalog did
// not. Its errors name references and never values.
type secrets struct{ sum hash.Hash }

func newSecrets() *secrets { return &secrets{sum: sha256.New()} }

func (s *secrets) resolve(ref string) (value []byte, err error) {
	scheme, rest, _ := strings.Cut(ref, ":")
	switch scheme {
	case "env":
		value, err = readEnv(rest)
	case "file":
		value, err = readSecretFile(rest)
	case "plain":
		value = []byte(rest)
	default:
		err = errors.New("is a reference of an unknown kind")
	}
	s.add([]byte(ref))
	s.add(value)
	return value, err
}

// add puts the length before the text, so that no two lists of texts have one
// digest.
func (s *secrets) add(text []byte) {
	s.sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
	s.sum.Write(text)
}

func (s *secrets) digest() (sum [32]byte) {
	s.sum.Sum(sum[:0])
	return sum
}

func readEnv(name string) ([]byte, error) {
	for i := range len(name) {
		b := name[i]
		if b != '_' && (b < 'A' || b > 'Z') && (b < 'a' || b > 'z') && (i == 0 || b < '0' || b > '9') {
			return nil, errors.New("env: is not followed by the name of a variable: allowed are letters, digits and _")
		}
	}
	value, set := os.LookupEnv(name)
	if !set {
		return nil, fmt.Errorf("env:%s is not set", name)
	}
	return []byte(value), nil
}

// readSecretFile reads a file named relative to the working directory. Only
// regular files are read: a pipe could block for ever.
func readSecretFile(path string) ([]byte, error) {
	stat, err := os.Stat(path)
	if err == nil && !stat.Mode().IsRegular() {
		err = errors.New("is not a regular file")
	}
	if err == nil && stat.Size() > secretFileMax {
		err = fmt.Errorf("is %d bytes long; allowed are %d", stat.Size(), secretFileMax)
	}
	if err != nil {
		return nil, fmt.Errorf("file:%s: %w", path, cause(err))
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("file:%s: %w", path, cause(err))
	}
	defer func() { _ = file.Close() }() // nothing was written
	value, err := io.ReadAll(io.LimitReader(file, secretFileMax))
	if err != nil {
		return nil, fmt.Errorf("file:%s: %w", path, cause(err))
	}
	return value, nil
}

// cause takes the operation and the path off an error that will name the path.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
