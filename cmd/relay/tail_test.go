package main

import (
	"bytes"
	"strings"
	"testing"

	"relay/usage"
	"relay/usage/spool"
)

func TestTailRow(t *testing.T) {
	for _, tt := range []struct {
		event usage.Event
		want  string
	}{
		{usage.Event{Status: 404, ModelAsked: "x\ny"}, " host=- in=0 "},
		{usage.Event{Status: 404, ModelAsked: "x\ny"}, ` "x\ny" `},
		{usage.Event{Status: 200, Model: "m", Host: "openai", HostKey: "main"}, " host=openai/main in=0 "},
	} {
		var out bytes.Buffer
		if err := writeRow(&out, &spool.Record{Event: tt.event}); err != nil {
			t.Fatal(err)
		}
		if line := out.String(); !strings.Contains(line, tt.want) || strings.Count(line, "\n") != 1 {
			t.Errorf("%q, want %q", line, tt.want)
		}
	}
}
