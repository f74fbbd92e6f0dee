//go:build integration

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

// anthropicV1 is a client that sends x-api-key and version 2023-06-01.
func (g *gateway) anthropicV1(key string) anthropic.Client {
	return anthropic.NewClient(option.WithBaseURL("http://"+g.inference), option.WithAPIKey(key), option.WithMaxRetries(0))
}

func messageParams(text string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: "claude-mock", MaxTokens: 256,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))},
	}
}

func TestWireAnthropicV1(t *testing.T) {
	g := startGateway(t)
	client := g.anthropicV1(keyWide)
	want, err := client.Messages.New(t.Context(), messageParams("Hi"), option.WithQuery("mock", "tokens=12,in=7,unicode"))
	if err != nil || len(want.Content) != 1 || want.Content[0].Text == "" || want.Usage.InputTokens != 7 || want.StopReason != "end_turn" {
		t.Fatalf("%v, %+v", err, want)
	}
	for _, mock := range []string{"tokens=12,in=7,unicode", "tokens=12,in=7,unicode,drip", "tokens=12,in=7,unicode,crlf", "tokens=12,in=7,unicode,comments", "tokens=12,in=7,unicode,gzip"} {
		stream := client.Messages.NewStreaming(t.Context(), messageParams("Hi"), option.WithQuery("mock", mock))
		var whole anthropic.Message
		for stream.Next() {
			if err := whole.Accumulate(stream.Current()); err != nil {
				t.Errorf("%s: %v", mock, err)
			}
		}
		if err := stream.Err(); err != nil || len(whole.Content) != 1 || whole.Content[0].Text != want.Content[0].Text ||
			whole.StopReason != "end_turn" || whole.Usage.OutputTokens != want.Usage.OutputTokens {
			t.Errorf("%s: %v, %+v", mock, err, whole)
		}
	}
	if _, err := client.Messages.New(t.Context(), messageParams(strings.Repeat("long words ", 200_000))); err != nil {
		t.Errorf("2 MB body: %v", err)
	}
	count, err := client.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{
		Model: "claude-mock", Messages: messageParams("How many tokens are these?").Messages,
	})
	if err != nil || count.InputTokens == 0 {
		t.Errorf("count_tokens: %v, %+v", err, count)
	}
}

func TestWireAnthropicV1Tools(t *testing.T) {
	g := startGateway(t)
	client := g.anthropicV1(keyWide)
	params := messageParams("What is the weather in Paris?")
	params.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
		Name: "weather", InputSchema: anthropic.ToolInputSchemaParam{Properties: map[string]any{"place": map[string]string{"type": "string"}}},
	}}}
	stream := client.Messages.NewStreaming(t.Context(), params)
	var whole anthropic.Message
	for stream.Next() {
		if err := whole.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil || whole.StopReason != "tool_use" {
		t.Fatalf("%v, %+v", err, whole)
	}
	call := whole.Content[len(whole.Content)-1]
	if call.Name != "weather" || !strings.Contains(string(call.Input), "{") {
		t.Fatalf("%+v", call)
	}
	params.Messages = append(params.Messages, whole.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock(call.ID, "21 degrees", false)))
	if got, err := client.Messages.New(t.Context(), params); err != nil || got.StopReason != "end_turn" {
		t.Errorf("with the tool's answer: %v, %+v", err, got)
	}
}

func TestWireAnthropicV1Errors(t *testing.T) {
	g := startGateway(t)
	for _, tt := range []struct {
		name, key, model, mock string
		status                 int
		kind                   string
	}{
		{"unknown key", "rk-unknown", "claude-mock", "", 401, "authentication_error"},
		{"unknown model", keyWide, "claude-unknown", "", 404, "not_found_error"},
		{"forbidden model", keyNarrow, "claude-mock", "", 403, "permission_error"},
		{"host says 400", keyWide, "claude-mock", "context-length", 400, "invalid_request_error"},
		{"host is overloaded", keyWide, "claude-mock", "status=529", 529, "overloaded_error"},
		{"host is away", keyWide, "claude-mock", "reset", 502, "api_error"},
		{"host is slow", keyWide, "claude-mock", "silent", 504, "timeout_error"},
	} {
		client := g.anthropicV1(tt.key)
		params := messageParams("Hi")
		params.Model = anthropic.Model(tt.model)
		_, err := client.Messages.New(t.Context(), params, option.WithQuery("mock", tt.mock))
		var told *anthropic.Error
		if !errors.As(err, &told) || told.StatusCode != tt.status || !strings.Contains(told.RawJSON(), tt.kind) || told.RequestID == "" {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	client := g.anthropicV1(keyWide)
	for _, mock := range []string{"tokens=30,per=1,cut=9", "tokens=30,per=1,cut-rst=9", "tokens=30,per=1,error-frame=9"} {
		stream := client.Messages.NewStreaming(t.Context(), messageParams("Hi"), option.WithQuery("mock", mock))
		for stream.Next() {
		}
		if stream.Err() == nil {
			t.Errorf("%s: the client takes a cut stream for a whole one", mock)
		}
	}
}

func TestWireAnthropicV1Models(t *testing.T) {
	g := startGateway(t)
	client := g.anthropicV1(keyWide)
	pager := client.Models.ListAutoPaging(t.Context(), anthropic.ModelListParams{Limit: anthropic.Int(2)})
	var ids []string
	for pager.Next() {
		ids = append(ids, pager.Current().ID)
	}
	if err := pager.Err(); err != nil || strings.Join(ids, " ") != "gpt-mock claude-mock dead-mock" {
		t.Errorf("%v, %q", err, ids)
	}
	one, err := client.Models.Get(t.Context(), "claude-mock", anthropic.ModelGetParams{})
	if err != nil || one.ID != "claude-mock" || one.CreatedAt.IsZero() {
		t.Errorf("%v, %+v", err, one)
	}
}
