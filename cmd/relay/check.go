package main

import (
	"fmt"

	"relay/store/catalog"
	"relay/store/source"
)

// checkCommand tells everything that is wrong with a catalog file. It makes
// nothing live.
type checkCommand struct {
	File string `arg:"" help:"The catalog file."`
}

// Run is the command.
func (c *checkCommand) Run(s streams) error {
	text, err := source.ReadFile(c.File)
	if err != nil {
		return err
	}
	tables, problems := source.Check(text)
	for _, p := range problems {
		fmt.Fprintln(s.out, p.Text(c.File))
	}
	if errors := catalog.Errors(problems); tables == nil {
		fmt.Fprintf(s.out, "%s: %s, %s: a relay refuses it\n", c.File,
			counted(errors, "error"), counted(len(problems)-errors, "warning"))
		return errTold
	}
	fmt.Fprintf(s.out, "%s: good\n%s", c.File, source.Summary(tables))
	return nil
}

// counted is a number and its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
