package sdk

import (
	"context"
	"errors"
	"strings"
	"testing"

	v1 "github.com/anthropics/anthropic-sdk-go"
	v1option "github.com/anthropics/anthropic-sdk-go/option"
	v2 "github.com/anthropics/anthropic-sdk-go/v2"
	v2option "github.com/anthropics/anthropic-sdk-go/v2/option"

	"relay/perf/mockhost"
)

func TestAnthropicV1(t *testing.T) {
	s := start(t, mockhost.Options{Key: "k", Scenario: "instant"})
	client := v1.NewClient(v1option.WithBaseURL(s.URL()), v1option.WithAPIKey("k"), v1option.WithMaxRetries(0))
	ctx := context.Background()
	params := v1.MessageNewParams{
		Model: "claude-mock:in=3,out=550,cached=9,write=12304,write1h=2", MaxTokens: 1000,
		Messages: []v1.MessageParam{v1.NewUserMessage(v1.NewTextBlock("hi"))},
	}
	got, err := client.Messages.New(ctx, params)
	if err != nil {
		t.Fatal(err)
	}
	u := got.Usage
	if got.Content[0].Text != mockhost.Text(16) || got.StopReason != "end_turn" || u.InputTokens != 3 || u.OutputTokens != 550 ||
		u.CacheReadInputTokens != 9 || u.CacheCreationInputTokens != 12306 || u.CacheCreation.Ephemeral1hInputTokens != 2 {
		t.Errorf("message %s", got.RawJSON())
	}
	stream := client.Messages.NewStreaming(ctx, params)
	var all v1.Message
	for stream.Next() {
		if err := all.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if all.Content[0].Text != mockhost.Text(16) || all.Usage.OutputTokens != 550 || all.Usage.InputTokens != 3 || all.StopReason != "end_turn" {
		t.Errorf("streamed %+v", all)
	}
	count, err := client.Messages.CountTokens(ctx, v1.MessageCountTokensParams{Model: "claude-mock:in=5", Messages: params.Messages})
	if err != nil || count.InputTokens != 5 {
		t.Errorf("count: %v %+v", err, count)
	}
	params.Model = "claude-mock:status=529"
	_, err = client.Messages.New(ctx, params)
	var refusal *v1.Error
	if !errors.As(err, &refusal) || refusal.StatusCode != 529 || !strings.Contains(refusal.RawJSON(), "overloaded_error") {
		t.Errorf("error %v", err)
	}
}

func TestAnthropicV2(t *testing.T) {
	s := start(t, mockhost.Options{Key: "k", Scenario: "instant"})
	client := v2.NewClient(v2option.WithBaseURL(s.URL()), v2option.WithAPIKey("k"), v2option.WithMaxRetries(0))
	ctx := context.Background()
	params := v2.MessageNewParams{
		Model: "claude-mock:thinking", MaxTokens: 1000,
		Messages: []v2.MessageParam{v2.NewUserMessage(v2.NewTextBlock("the weather, please"))},
		Tools: []v2.ToolUnionParam{{OfTool: &v2.ToolParam{Name: "get_weather", InputSchema: v2.ToolInputSchemaParam{
			Properties: map[string]any{"location": map[string]any{"type": "string"}}, Required: []string{"location"},
		}}}},
	}
	got, err := client.Messages.New(ctx, params)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Content) != 2 || got.Content[0].Type != "thinking" || got.Content[1].Type != "tool_use" || string(got.Content[1].Input) != `{"location":"Paris"}` || got.StopReason != "tool_use" {
		t.Fatalf("message %s", got.RawJSON())
	}
	stream := client.Messages.NewStreaming(ctx, params)
	var all v2.Message
	for stream.Next() {
		if err := all.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if len(all.Content) != 2 || all.Content[0].Signature != "bW9jay1zaWduYXR1cmU=" || string(all.Content[1].Input) != `{"location":"Paris"}` {
		t.Fatalf("streamed %+v", all.Content)
	}
	params.Messages = append(params.Messages, got.ToParam(), v2.NewUserMessage(v2.NewToolResultBlock(got.Content[1].ID, "sunny", false)))
	if got, err = client.Messages.New(ctx, params); err != nil {
		t.Fatal(err)
	}
	if last := got.Content[len(got.Content)-1]; !strings.Contains(last.Text, "sunny") {
		t.Errorf("answer after the result: %s", got.RawJSON())
	}
	page, err := client.Models.List(ctx, v2.ModelListParams{})
	if err != nil || len(page.Data) != 2 || page.Data[1].ID != "claude-mock" {
		t.Errorf("models: %v %+v", err, page)
	}
}
