package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"relay/perf/report"
)

type reportCommand struct {
	Files    []string `arg:"" help:"Result files of a ladder; those of one profile go together." type:"path"`
	Out      string   `help:"Page to write; its folder is made." type:"path" default:"perf/out/report.html"`
	Markdown string   `help:"File for the tables as Markdown; - is the standard output." placeholder:"FILE"`
}

// Run draws the page.
func (c *reportCommand) Run() error {
	var runs []*report.Run
	for _, path := range c.Files {
		run, err := report.ReadRun(path)
		if err != nil {
			return err
		}
		runs = append(runs, run)
	}
	run, err := report.Pool(runs...)
	if err != nil {
		return err
	}
	var page, tables bytes.Buffer
	if err := report.HTML(&page, run); err != nil {
		return err
	}
	if err := report.Markdown(&tables, run); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.Out), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(c.Out, page.Bytes(), 0o644); err != nil {
		return err
	}
	switch c.Markdown {
	case "":
	case "-":
		if _, err := os.Stdout.Write(tables.Bytes()); err != nil {
			return err
		}
	default:
		if err := os.WriteFile(c.Markdown, tables.Bytes(), 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stderr, "the report is in", c.Out)
	return nil
}
