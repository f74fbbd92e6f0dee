package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"relay/perf/openloop"
	"relay/perf/report"
)

type genCommand struct {
	Addr          string        `help:"host:port of the target."`
	Key           []string      `json:"-" help:"Credentials, used in turn."`
	ChatModel     string        `help:"Model of chat requests." default:"gpt-mock"`
	MessagesModel string        `help:"Model of messages requests." default:"claude-mock"`
	ChatPath      string        `help:"Path of chat requests." default:"/openai/v1/chat/completions"`
	MessagesPath  string        `help:"Path of messages requests." default:"/anthropic/v1/messages"`
	Rate          float64       `help:"Requests per second." default:"500"`
	WarmUp        time.Duration `help:"Load before the measurement." default:"2s"`
	Hold          time.Duration `help:"Length of the measurement." default:"8s"`
	Drain         time.Duration `help:"How long late answers are awaited." default:"10s"`
	Connections   int           `help:"Connections at the start." default:"64"`
	Max           int           `help:"Most connections." default:"4096"`
	Stream        bool          `help:"Ask for streams."`
	StreamShare   float64       `help:"Share of the requests that ask for streams, 0 to 1."`
	BodyBytes     int           `help:"Exact length of request bodies; 0 = log-normal."`
	Processes     int           `help:"Generator processes that share one schedule." default:"1"`
	Merge         []string      `help:"Merge result files of generators that ran at the same time, and send nothing." type:"existingfile" placeholder:"FILE"`
	JSON          string        `help:"File to keep the result in." type:"path" placeholder:"FILE"`
	Worker        bool          `json:"-" hidden:"" help:"Take the options as JSON from stdin."`
}

// optionsBytesMax bounds what a worker reads from stdin.
const optionsBytesMax = 64 << 20

// Run sends the load, or merges results, and prints the result as JSON.
func (g *genCommand) Run(ctx context.Context) error {
	if g.Worker {
		return work(ctx)
	}
	result, err := g.measure(ctx)
	if err != nil {
		return err
	}
	if err := report.Write(g.JSON, "gen", g, result); err != nil {
		return err
	}
	if err := printResult(result.Plain()); err != nil {
		return err
	}
	if result.Late {
		return fmt.Errorf("the generator was late (p99 %.1f ms behind its schedule): this run is void", result.Lag.P99)
	}
	return nil
}

func (g *genCommand) measure(ctx context.Context) (*openloop.Result, error) {
	if len(g.Merge) > 0 {
		return mergeFiles(g.Merge)
	}
	if g.Addr == "" {
		return nil, errors.New("--addr is missing: give the host:port of the target, or files to --merge")
	}
	o := openloop.Options{
		Addr: g.Addr, Rate: g.Rate, WarmUp: g.WarmUp, Hold: g.Hold, Drain: g.Drain,
		Connections: g.Connections, ConnectionsMax: g.Max,
		Mix: openloop.Mix{
			Host: g.Addr, Keys: g.Key, ChatModel: g.ChatModel, MessagesModel: g.MessagesModel,
			ChatPath: g.ChatPath, MessagesPath: g.MessagesPath, Stream: g.Stream, StreamShare: g.StreamShare, BodyBytesExact: g.BodyBytes,
		},
	}
	if g.Processes == 1 {
		return openloop.Run(ctx, o)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("path of this program: %w", err)
	}
	return openloop.RunProcesses(ctx, program, g.Processes, o)
}

// work is one generator process of several.
func work(ctx context.Context) error {
	var o openloop.Options
	if err := json.NewDecoder(io.LimitReader(os.Stdin, optionsBytesMax)).Decode(&o); err != nil {
		return fmt.Errorf("options on stdin: %w", err)
	}
	result, err := openloop.Run(ctx, o)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// mergeFiles merges files that gen has kept with --json.
func mergeFiles(paths []string) (*openloop.Result, error) {
	var results []*openloop.Result
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var file struct {
			Command string
			Results *openloop.Result
		}
		if err := json.Unmarshal(text, &file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if file.Command != "gen" || file.Results == nil {
			return nil, fmt.Errorf("%s is no result of gen", path)
		}
		results = append(results, file.Results)
	}
	return openloop.Merge(results...)
}

func printResult(r *openloop.Result) error {
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(r)
}
