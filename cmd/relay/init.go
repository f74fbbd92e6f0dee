package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"relay/store/source"
)

// initCommand writes a starter catalog with a fresh relay key. The key itself
// is printed once and kept nowhere.
type initCommand struct {
	Dir string `arg:"" default:"." help:"Folder for relay.yaml."`
}

// Run is the command.
func (c *initCommand) Run(s streams) error {
	key, hash := source.Mint()
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	name := filepath.Join(c.Dir, "relay.yaml")
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: it is left as it is", name)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(source.Starter(hash))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "wrote %s\nrelay key (told this once, the file holds its hash): %s\n", name, key)
	fmt.Fprintf(s.out, "next: set OPENAI_API_KEY and ANTHROPIC_API_KEY, then: relay check %s && relay serve --catalog %s\n", name, name)
	return nil
}

// keysCommands are about relay keys.
type keysCommands struct {
	Mint mintCommand `cmd:"" help:"Print a fresh relay key and the hash of it that belongs into the catalog."`
}

// mintCommand makes a key. It is kept nowhere.
type mintCommand struct{}

// Run is the command.
func (mintCommand) Run(s streams) error {
	key, hash := source.Mint()
	_, err := fmt.Fprintf(s.out, "key: %s\nsha256: %s\n", key, hash)
	return err
}
