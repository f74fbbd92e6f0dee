//go:build integration

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

// anthropicV2 is a client that sends a bearer token and version 2026-10-21.
func (g *gateway) anthropicV2(key string) anthropic.Client {
	return anthropic.NewClient(option.WithoutEnvironmentDefaults(),
		option.WithBaseURL("http://"+g.inference), option.WithAPIKey(key), option.WithMaxRetries(0))
}

func TestWireAnthropicV2(t *testing.T) {
	g := startGateway(t)
	client := g.anthropicV2(keyWide)
	params := anthropic.MessageNewParams{
		Model: "claude-mock", MaxTokens: 256,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Hi"))},
	}
	want, err := client.Messages.New(t.Context(), params, option.WithQuery("mock", "tokens=12,in=7,unicode"))
	if err != nil || len(want.Content) != 1 || want.Content[0].Text == "" || want.Usage.InputTokens != 7 {
		t.Fatalf("%v, %+v", err, want)
	}
	requests := g.anthropic.Requests()
	fields := fieldsOf(requests[len(requests)-1].Head)
	if got := strings.Join(fields["anthropic-version"], " "); got != "2026-10-21" {
		t.Errorf("the host got version %q", got)
	}
	for _, mock := range []string{"tokens=12,in=7,unicode", "tokens=12,in=7,unicode,drip,crlf"} {
		stream := client.Messages.NewStreaming(t.Context(), params, option.WithQuery("mock", mock))
		var whole anthropic.Message
		for stream.Next() {
			if err := whole.Accumulate(stream.Current()); err != nil {
				t.Errorf("%s: %v", mock, err)
			}
		}
		if err := stream.Err(); err != nil || len(whole.Content) != 1 || whole.Content[0].Text != want.Content[0].Text {
			t.Errorf("%s: %v, %+v", mock, err, whole)
		}
	}
	count, err := client.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{Model: "claude-mock", Messages: params.Messages})
	if err != nil || count.InputTokens == 0 {
		t.Errorf("count_tokens: %v, %+v", err, count)
	}
	page, err := client.Models.List(t.Context(), anthropic.ModelListParams{})
	if err != nil || len(page.Data) != 3 {
		t.Errorf("models: %v, %+v", err, page)
	}
	unknown := g.anthropicV2("rk-unknown")
	_, err = unknown.Messages.New(t.Context(), params)
	var told *anthropic.Error
	if !errors.As(err, &told) || told.StatusCode != 401 {
		t.Errorf("unknown key: %v", err)
	}
	stream := client.Messages.NewStreaming(t.Context(), params, option.WithQuery("mock", "tokens=30,per=1,cut=9"))
	for stream.Next() {
	}
	if stream.Err() == nil {
		t.Error("the client takes a cut stream for a whole one")
	}
}
