package main

import (
	"context"
	"fmt"
	"strings"

	"relay/perf/mockhost"
)

type mockCommand struct {
	Addr     string `help:"Address to listen on." default:"127.0.0.1:9090"`
	Key      string `help:"The only provider key accepted; any when empty."`
	Scenario string `help:"Scenario words that precede those of each request."`
	Record   bool   `help:"Keep the last requests for GET /_mock/last."`
	List     bool   `help:"List the scenario words and exit."`
}

// Run serves until the context ends.
func (m *mockCommand) Run(ctx context.Context) error {
	if m.List {
		fmt.Println(strings.Join(mockhost.Knobs(), "\n"))
		return nil
	}
	server, err := mockhost.Start(mockhost.Options{Addr: m.Addr, Key: m.Key, Scenario: m.Scenario, Record: m.Record, Loop: !m.Record})
	if err != nil {
		return err
	}
	fmt.Printf("listening mock=%s\n", server.Addr())
	<-ctx.Done()
	return server.Close()
}
