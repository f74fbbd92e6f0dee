package reactor

import (
	"context"
	"os"
	"os/exec"
)

// childCommand runs one test of this binary in a process of its own.
func childCommand(ctx context.Context, test, variable string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"=1")
	return cmd
}
