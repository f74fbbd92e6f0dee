package target

import (
	"context"
	"io"
	"os/exec"
)

// Mock starts the mock provider as a process: program is relay-perf itself,
// more are further arguments of its mock command.
func Mock(ctx context.Context, program, scenario string, more ...string) (*Target, error) {
	args := append([]string{"mock", "--addr=127.0.0.1:0", "--scenario=" + scenario}, more...)
	t, pipe, err := start(ctx, "mock", exec.Command(program, args...))
	if err != nil {
		return nil, err
	}
	addrs, err := t.awaitLines(pipe, "mock")
	if err != nil {
		return nil, err
	}
	t.Addr = addrs["mock"]
	return t, nil
}

// awaitAddrs takes the addresses of both listeners from the output.
func (t *Target) awaitAddrs(pipe io.Reader) error {
	addrs, err := t.awaitLines(pipe, "inference", "control")
	if err != nil {
		return err
	}
	t.Addr, t.Control = addrs["inference"], addrs["control"]
	return nil
}
