//go:build integration

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

// openAI is a client as an application makes it.
func (g *gateway) openAI(key string, more ...option.RequestOption) openai.Client {
	return openai.NewClient(append([]option.RequestOption{
		option.WithBaseURL("http://" + g.inference + "/v1"), option.WithAPIKey(key), option.WithMaxRetries(0),
	}, more...)...)
}

func hello(text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:    "gpt-mock",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)},
	}
}

func TestWireOpenAIChat(t *testing.T) {
	g := startGateway(t)
	client := g.openAI(keyWide)
	got, err := client.Chat.Completions.New(t.Context(), hello("Hi"), option.WithQuery("mock", "tokens=12,in=7"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Choices) != 1 || got.Choices[0].Message.Content == "" || got.Usage.CompletionTokens != 12 || got.Usage.PromptTokens != 7 {
		t.Errorf("%+v", got)
	}
	big, err := client.Chat.Completions.New(t.Context(), hello(strings.Repeat("long words ", 200_000)))
	if err != nil || big.Usage.PromptTokens < 500_000 {
		t.Errorf("2 MB body: %v", err)
	}
}

func TestWireOpenAIStream(t *testing.T) {
	g := startGateway(t)
	client := g.openAI(keyWide)
	want, err := client.Chat.Completions.New(t.Context(), hello("Hi"), option.WithQuery("mock", "tokens=40,unicode"))
	if err != nil {
		t.Fatal(err)
	}
	for _, mock := range []string{"tokens=40,unicode", "tokens=40,unicode,drip", "tokens=40,unicode,comments", "tokens=40,unicode,crlf", "tokens=40,unicode,gzip"} {
		params := hello("Hi")
		params.StreamOptions.IncludeUsage = openai.Bool(true)
		stream := client.Chat.Completions.NewStreaming(t.Context(), params, option.WithQuery("mock", mock))
		var whole openai.ChatCompletionAccumulator
		for stream.Next() {
			if !whole.AddChunk(stream.Current()) {
				t.Errorf("%s: chunk does not fit", mock)
			}
		}
		if err := stream.Err(); err != nil {
			t.Errorf("%s: %v", mock, err)
		}
		if len(whole.Choices) != 1 || whole.Choices[0].Message.Content != want.Choices[0].Message.Content ||
			whole.Choices[0].FinishReason != "stop" || whole.Usage.CompletionTokens != want.Usage.CompletionTokens {
			t.Errorf("%s: %+v", mock, whole.ChatCompletion)
		}
	}
}

func TestWireOpenAIUnicodeSplits(t *testing.T) {
	g := startGateway(t)
	client := g.openAI(keyWide)
	want := ""
	for at := 200; at < 1400; at += 7 {
		stream := client.Chat.Completions.NewStreaming(t.Context(), hello("Hi"),
			option.WithQuery("mock", fmt.Sprintf("unicode,tokens=10,per=3,split=%d", at)))
		got := ""
		for stream.Next() {
			for _, c := range stream.Current().Choices {
				got += c.Delta.Content
			}
		}
		if want == "" {
			want = got
		}
		if err := stream.Err(); err != nil || got != want || got == "" {
			t.Fatalf("split at %d: %v, %q", at, err, got)
		}
	}
}

func weatherTool() openai.ChatCompletionToolUnionParam {
	return openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
		Name:        "weather",
		Description: openai.String("Weather at a place"),
		Parameters: openai.FunctionParameters{
			"type": "object", "properties": map[string]any{"place": map[string]string{"type": "string"}}, "required": []string{"place"},
		},
	})
}

func TestWireOpenAITools(t *testing.T) {
	g := startGateway(t)
	client := g.openAI(keyWide)
	params := hello("What is the weather in Paris?")
	params.Tools = []openai.ChatCompletionToolUnionParam{weatherTool()}
	got, err := client.Chat.Completions.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	calls := got.Choices[0].Message.ToolCalls
	if got.Choices[0].FinishReason != "tool_calls" || len(calls) != 1 || calls[0].Function.Name != "weather" {
		t.Fatalf("%+v", got.Choices[0])
	}
	stream := client.Chat.Completions.NewStreaming(t.Context(), params, option.WithQuery("mock", "calls=2"))
	var whole openai.ChatCompletionAccumulator
	for stream.Next() {
		whole.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil || len(whole.Choices[0].Message.ToolCalls) != 2 || whole.Choices[0].Message.ToolCalls[1].Function.Arguments == "" {
		t.Errorf("stream: %v, %+v", err, whole.Choices)
	}
	params.Messages = append(params.Messages, got.Choices[0].Message.ToParam(), openai.ToolMessage("21 degrees", calls[0].ID))
	if got, err = client.Chat.Completions.New(t.Context(), params); err != nil || got.Choices[0].FinishReason != "stop" {
		t.Errorf("with the tool's answer: %v, %+v", err, got)
	}
}

func TestWireOpenAIErrors(t *testing.T) {
	g := startGateway(t)
	for _, tt := range []struct {
		name, key, model, mock string
		status                 int
		code                   string
	}{
		{"unknown key", "rk-unknown", "gpt-mock", "", 401, "invalid_api_key"},
		{"unknown model", keyWide, "gpt-unknown", "", 404, "model_not_found"},
		{"forbidden model", keyNarrow, "claude-mock", "", 403, "model_not_allowed"},
		{"host says 400", keyWide, "gpt-mock", "context-length", 400, "context_length_exceeded"},
		{"host is away", keyWide, "gpt-mock", "reset", 502, "bad_gateway"},
		{"host is slow", keyWide, "gpt-mock", "silent", 504, "timeout"},
	} {
		params := hello("Hi")
		params.Model = tt.model
		client := g.openAI(tt.key)
		_, err := client.Chat.Completions.New(t.Context(), params, option.WithQuery("mock", tt.mock))
		var told *openai.Error
		if !errors.As(err, &told) || told.StatusCode != tt.status || told.Code != tt.code || told.Message == "" {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	client := g.openAI(keyWide)
	_, err := client.Chat.Completions.New(t.Context(), hello("Hi"), option.WithJSONSet("stream", "yes"))
	var told *openai.Error
	if !errors.As(err, &told) || told.StatusCode != 400 || told.Param != "stream" {
		t.Errorf("bad field: %v", err)
	}
	for _, mock := range []string{"tokens=30,per=1,cut=9", "tokens=30,per=1,error-frame=9"} {
		stream := client.Chat.Completions.NewStreaming(t.Context(), hello("Hi"), option.WithQuery("mock", mock))
		for stream.Next() {
		}
		if stream.Err() == nil {
			t.Errorf("%s: the client takes a cut stream for a whole one", mock)
		}
	}
}

// TestWireOpenAIRetries has the client's own retries meet a host that fails
// once: both the status and Retry-After must make it try again.
func TestWireOpenAIRetries(t *testing.T) {
	g := startGateway(t)
	client := g.openAI(keyWide, option.WithMaxRetries(2))
	for i, mock := range []string{"status=429,retry-after=1,times=1", "status=503,times=1", "status=500,times=1"} {
		if _, err := client.Chat.Completions.New(t.Context(), hello("Hi"), option.WithQuery("mock", fmt.Sprintf("%s,tag=retry%d", mock, i))); err != nil {
			t.Errorf("%s: %v", mock, err)
		}
	}
}

func TestWireOpenAIAbort(t *testing.T) {
	g := startGateway(t)
	client := g.openAI(keyWide)
	ctx, cancel := context.WithCancel(t.Context())
	stream := client.Chat.Completions.NewStreaming(ctx, hello("Hi"), option.WithQuery("mock", "tokens=1000,per=1,tps=20"))
	for range 3 {
		if !stream.Next() {
			t.Fatal(stream.Err())
		}
	}
	gone := g.openai.Stats().PeersGone
	cancel()
	stream.Close()
	if !eventually(3*time.Second, func() bool { return g.openai.Stats().PeersGone > gone }) {
		t.Error("the host goes on after the caller left")
	}
}

func TestWireOpenAIOthers(t *testing.T) {
	g := startGateway(t)
	client := g.openAI(keyWide)
	page, err := client.Models.List(t.Context())
	if err != nil || len(page.Data) != 3 || page.Data[0].ID != "gpt-mock" {
		t.Errorf("models: %v, %+v", err, page)
	}
	one, err := client.Models.Get(t.Context(), "gpt-mock")
	if err != nil || one.ID != "gpt-mock" || one.OwnedBy == "" || one.Created == 0 {
		t.Errorf("model: %v, %+v", err, one)
	}
	var told *openai.Error
	if _, err := client.Models.Get(t.Context(), "nothing"); !errors.As(err, &told) || told.StatusCode != http.StatusNotFound {
		t.Errorf("unknown model: %v", err)
	}
	embedded, err := client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{
		Model: "gpt-mock", Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a", "b"}},
	})
	if err != nil || len(embedded.Data) != 2 {
		t.Errorf("embeddings: %v, %+v", err, embedded)
	}
	if _, err := client.Moderations.New(t.Context(), openai.ModerationNewParams{
		Model: "gpt-mock", Input: openai.ModerationNewParamsInputUnion{OfString: openai.String("x")},
	}); err != nil {
		t.Errorf("moderations: %v", err)
	}
	params := responses.ResponseNewParams{Model: "gpt-mock", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Hi")}}
	answer, err := client.Responses.New(t.Context(), params)
	if err != nil || answer.OutputText() == "" {
		t.Errorf("responses: %v", err)
	}
	stream := client.Responses.NewStreaming(t.Context(), params)
	completed, number := false, int64(-1)
	for stream.Next() {
		e := stream.Current()
		if e.SequenceNumber != number+1 {
			t.Errorf("sequence number %d after %d", e.SequenceNumber, number)
		}
		number = e.SequenceNumber
		completed = completed || e.Type == "response.completed"
	}
	if err := stream.Err(); err != nil || !completed {
		t.Errorf("responses stream: %v, completed %v", err, completed)
	}
	for _, r := range g.rows() {
		if r.Source != "reported" && r.Source != "none" {
			t.Errorf("row %+v", r)
		}
	}
}
