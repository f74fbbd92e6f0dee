package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"relay/perf/openloop"
	"relay/perf/report"
)

type genCommand struct {
	Addr          string        `help:"host:port of the target." required:""`
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
	BodyBytes     int           `help:"Exact length of request bodies; 0 = log-normal."`
	JSON          string        `help:"File to keep the result in." type:"path" placeholder:"FILE"`
}

// Run sends the load and prints the result as JSON.
func (g *genCommand) Run(ctx context.Context) error {
	o := openloop.Options{
		Addr: g.Addr, Rate: g.Rate, WarmUp: g.WarmUp, Hold: g.Hold, Drain: g.Drain,
		Connections: g.Connections, ConnectionsMax: g.Max,
		Mix: openloop.Mix{
			Host: g.Addr, Keys: g.Key, ChatModel: g.ChatModel, MessagesModel: g.MessagesModel,
			ChatPath: g.ChatPath, MessagesPath: g.MessagesPath, Stream: g.Stream, BodyBytesExact: g.BodyBytes,
		},
	}
	result, err := openloop.Run(ctx, o)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	if err := out.Encode(result); err != nil {
		return err
	}
	if result.Late {
		fmt.Fprintf(os.Stderr, "the generator was late (p99 %.1f ms): this run is void\n", result.Lag.P99)
	}
	return report.Write(g.JSON, "gen", g, result)
}
