package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"relay/usage"
	"relay/usage/spool"
)

// usageCommands are about usage records.
type usageCommands struct {
	Tail tailCommand `cmd:"" help:"Print the usage rows of a data folder, oldest first."`
}

// tailCommand prints usage rows from the spool, of all runs that are still
// there.
type tailCommand struct {
	DataDir path `env:"RELAY_DATA_DIR" default:"./relay-data" help:"Folder of the spool."`
	Follow  bool `short:"f" help:"Go on with rows as they come, until a signal."`
	JSON    bool `name:"json" help:"One JSON object per row."`
}

// Run is the command.
func (c *tailCommand) Run(s streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	dir := filepath.Join(string(c.DataDir), "spool")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && !c.Follow {
		return failed("RELAY_DATA_DIR (--data-dir)", string(c.DataDir), errors.New("holds no spool"))
	}
	out := bufio.NewWriter(s.out)
	write := writeRow
	if c.JSON {
		write = writeJSON
	}
	err := spool.Tail(ctx, dir, c.Follow, func(r spool.Record) error {
		err := write(out, &r)
		if c.Follow {
			err = errors.Join(err, out.Flush())
		}
		return err
	})
	if err = errors.Join(err, out.Flush()); errors.Is(err, syscall.EPIPE) {
		return nil // the reader has seen enough
	}
	return err
}

func writeJSON(out io.Writer, r *spool.Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = out.Write(append(line, '\n'))
	return err
}

// writeRow prints what people look for, in columns.
func writeRow(out io.Writer, r *spool.Record) error {
	e := &r.Event
	kind := ""
	if e.Stream {
		kind = " stream"
	}
	failure := ""
	if e.Error != "" {
		failure = " error=" + e.Error
	}
	_, err := fmt.Fprintf(out, "%s %3d %-11s %-24s key=%s account=%s host=%s in=%d cached=%d out=%d source=%s cost=%s USD total=%s own=%s%s%s\n",
		time.Unix(0, e.EndUnixNs).UTC().Format("2006-01-02T15:04:05.000Z"),
		e.Status, e.Outcome, model(e), e.Key, e.Account, reached(e),
		e.Tokens.Input, e.Tokens.CachedInput, e.Tokens.Output, e.Source, usage.FormatUSD(e.Cost.Total),
		time.Duration(e.EndUnixNs-e.StartUnixNs).Round(100*time.Microsecond),
		time.Duration(e.OverheadNs).Round(time.Microsecond), kind, failure)
	return err
}

// reached is the host and the key of the last attempt.
func reached(e *usage.Event) string {
	if e.Host == "" {
		return "-"
	}
	return e.Host + "/" + e.HostKey
}

// model is the catalog's name, or what was asked for when there is none. The
// latter is the caller's text: it is quoted.
func model(e *usage.Event) string {
	switch {
	case e.Model != "":
		return e.Model
	case e.ModelAsked != "":
		return fmt.Sprintf("%q", e.ModelAsked)
	}
	return "-"
}
