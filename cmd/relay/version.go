package main

import (
	"fmt"
	"runtime"
)

// Set by the linker: -X main.version=… -X main.commit=…
var (
	version = "unknown"
	commit  = "unknown"
)

// versionCommand says which build this is.
type versionCommand struct{}

// Run is the command.
func (versionCommand) Run(s streams) error {
	_, err := fmt.Fprintf(s.out, "relay %s (commit %s, %s, %s/%s)\n",
		version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
