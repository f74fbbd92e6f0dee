package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"
)

// Exit codes of the binary.
const (
	exitOK      = 0
	exitFailure = 1 // the command could not do what it was asked
	exitUsage   = 2 // a setting or an argument is wrong
)

// commands is the command line: each field is a command, and its Run method
// what it does.
type commands struct {
	Serve   serveCommand   `cmd:"" help:"Run the gateway."`
	Demo    demoCommand    `cmd:"" help:"Run the gateway over built-in mock providers and print requests to try."`
	Init    initCommand    `cmd:"" help:"Write a starter relay.yaml with a fresh relay key."`
	Check   checkCommand   `cmd:"" help:"Check a catalog file and tell everything that is wrong with it."`
	Keys    keysCommands   `cmd:"" help:"Relay keys."`
	Usage   usageCommands  `cmd:"" help:"Usage records."`
	Host    hostCommands   `cmd:"" help:"The host that relay runs on."`
	Version versionCommand `cmd:"" help:"Print version, commit and Go version, as relay --version does."`
}

// streams are where a command writes.
type streams struct {
	out io.Writer // what was asked for, and the lines that programs read
	err io.Writer // logs and complaints
}

func main() {
	os.Exit(run(os.Args[1:], streams{out: os.Stdout, err: os.Stderr}))
}

// run parses the arguments, runs the command and returns the exit code.
func run(args []string, s streams) int {
	if len(args) == 1 && args[0] == "--version" {
		args = []string{"version"}
	}
	var c commands
	values := &valueReader{}
	parser, err := newParser(&c, values, s)
	if err != nil {
		panic("BUG: " + err.Error()) // a tag of commands is wrong
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		if values.wrong != nil {
			err = values.wrong
		}
		fmt.Fprintf(s.err, "relay: %s\n", oneLine(err))
		return exitUsage
	}
	parsed.Bind(s)
	parsed.Bind(unknownVariables(parser.Model, os.Environ()))
	if err := parsed.Run(); err != nil {
		if !errors.Is(err, errTold) { // a catalog's problems are a line each
			fmt.Fprintf(s.err, "relay: %s\n", err)
		}
		if wrong := (*wrongValue)(nil); errors.As(err, &wrong) {
			return exitUsage
		}
		return exitFailure
	}
	return exitOK
}

// errTold is the failure of a command that has told why already.
var errTold = errors.New("told already")

// newParser makes the parser of the command line.
func newParser(c *commands, values *valueReader, s streams) (*kong.Kong, error) {
	options := []kong.Option{
		kong.Name("relay"),
		kong.Description("An LLM gateway: OpenAI and Anthropic shapes, limits and accounting on per-core event loops."),
		kong.Writers(s.out, s.err),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true}),
	}
	return kong.New(c, append(options, values.mappers()...)...)
}

// oneLine makes sure that a complaint is one line, whatever it quotes.
func oneLine(err error) string {
	b := []byte(err.Error())
	for i, c := range b {
		if c < ' ' {
			b[i] = ' '
		}
	}
	return string(b)
}
