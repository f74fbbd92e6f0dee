package main

import (
	"context"
	"fmt"
	"net"
	"net/url"

	"relay/perf/baseline"
)

type baselineCommand struct {
	Addr     string `help:"Address to listen on." default:"127.0.0.1:9091"`
	Control  string `help:"Address of /metrics." default:"127.0.0.1:0"`
	Upstream string `help:"URL to proxy to." required:""`
}

// Run serves until the context ends.
func (b *baselineCommand) Run(ctx context.Context) error {
	upstream, err := url.Parse(b.Upstream)
	if err != nil || upstream.Host == "" {
		return fmt.Errorf("--upstream %q: want a URL such as http://127.0.0.1:9090", b.Upstream)
	}
	inference, err := net.Listen("tcp", b.Addr)
	if err != nil {
		return err
	}
	control, err := net.Listen("tcp", b.Control)
	if err != nil {
		return err
	}
	fmt.Printf("listening inference=%s\nlistening control=%s\n", inference.Addr(), control.Addr())
	return baseline.Serve(ctx, inference, control, upstream)
}
