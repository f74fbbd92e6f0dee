package main

import (
	"os"

	"relay/perf/target"
)

type catalogCommand struct {
	Mock     string `help:"host:port of the mock, as the gateway reaches it." required:""`
	Keys     int    `help:"Relay keys, each with an account of its own." default:"60"`
	Policies int    `help:"Policies that the keys take turns in." default:"1"`
}

// Run prints the catalog of a gateway that a ladder finds running.
func (c *catalogCommand) Run() error {
	text, err := target.Catalog{Mock: "http://" + c.Mock, Keys: c.Keys, Policies: c.Policies}.Text()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}
