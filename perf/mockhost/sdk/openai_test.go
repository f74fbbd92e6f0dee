package sdk

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"relay/perf/mockhost"
)

func start(t *testing.T, o mockhost.Options) *mockhost.Server {
	t.Helper()
	s, err := mockhost.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func openaiClient(s *mockhost.Server) openai.Client {
	return openai.NewClient(option.WithBaseURL(s.URL()+"/v1"), option.WithAPIKey("k"), option.WithMaxRetries(0))
}

func weatherTool() openai.ChatCompletionToolUnionParam {
	return openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
		Name: "get_weather",
		Parameters: openai.FunctionParameters{
			"type": "object", "properties": map[string]any{"location": map[string]any{"type": "string"}}, "required": []string{"location"},
		},
	})
}

func TestOpenAIChat(t *testing.T) {
	s := start(t, mockhost.Options{Scenario: "instant"})
	client := openaiClient(s)
	got, err := client.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{
		Model: "gpt-mock:in=100,out=20,cached=40,write=7,reasoning=3", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Choices[0].Message.Content != mockhost.Text(16) || got.Choices[0].FinishReason != "stop" {
		t.Errorf("answer %+v", got.Choices[0])
	}
	u := got.Usage
	if u.PromptTokens != 100 || u.CompletionTokens != 20 || u.TotalTokens != 120 || u.PromptTokensDetails.CachedTokens != 40 || u.CompletionTokensDetails.ReasoningTokens != 3 {
		t.Errorf("usage %+v", u)
	}
}

func TestOpenAIChatStream(t *testing.T) {
	s := start(t, mockhost.Options{Scenario: "instant"})
	client := openaiClient(s)
	for _, asked := range []bool{true, false} {
		params := openai.ChatCompletionNewParams{
			Model: "gpt-mock:in=100,out=20", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")},
		}
		if asked {
			params.StreamOptions.IncludeUsage = openai.Bool(true)
		}
		stream := client.Chat.Completions.NewStreaming(context.Background(), params)
		var all openai.ChatCompletionAccumulator
		usageChunks := 0
		for stream.Next() {
			chunk := stream.Current()
			if !all.AddChunk(chunk) {
				t.Fatalf("chunk does not fit: %s", chunk.RawJSON())
			}
			if len(chunk.Choices) == 0 {
				usageChunks++
			}
			if strings.Contains(chunk.RawJSON(), `"usage":null`) != (asked && len(chunk.Choices) > 0) {
				t.Errorf("usage null in %s, asked %v", chunk.RawJSON(), asked)
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		want := map[bool]int{true: 1}[asked]
		if usageChunks != want || all.Usage.TotalTokens != int64(120*want) {
			t.Errorf("asked %v: %d usage chunks, %+v", asked, usageChunks, all.Usage)
		}
		if all.Choices[0].Message.Content != mockhost.Text(16) || all.Choices[0].FinishReason != "stop" {
			t.Errorf("answer %+v", all.Choices[0])
		}
	}
}

func TestOpenAITools(t *testing.T) {
	s := start(t, mockhost.Options{Scenario: "instant"})
	client := openaiClient(s)
	ctx := context.Background()
	params := openai.ChatCompletionNewParams{
		Model: "gpt-mock", Tools: []openai.ChatCompletionToolUnionParam{weatherTool()},
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("How is the weather?")},
	}
	got, err := client.Chat.Completions.New(ctx, params)
	if err != nil {
		t.Fatal(err)
	}
	calls := got.Choices[0].Message.ToolCalls
	if len(calls) != 1 || calls[0].Function.Name != "get_weather" || calls[0].Function.Arguments != `{"location":"Paris"}` || got.Choices[0].FinishReason != "tool_calls" {
		t.Fatalf("calls %+v", got.Choices[0])
	}
	stream := client.Chat.Completions.NewStreaming(ctx, params)
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		all.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if c := all.Choices[0].Message.ToolCalls; len(c) != 1 || c[0].Function.Arguments != `{"location":"Paris"}` || c[0].ID == "" {
		t.Fatalf("streamed calls %+v", all.Choices[0])
	}
	params.Messages = append(params.Messages, got.Choices[0].Message.ToParam(), openai.ToolMessage("sunny", calls[0].ID))
	if got, err = client.Chat.Completions.New(ctx, params); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got.Choices[0].Message.Content, "sunny") {
		t.Errorf("answer after the result: %q", got.Choices[0].Message.Content)
	}
	params.Messages = params.Messages[:0:0]
	params.Messages = append(params.Messages, openai.UserMessage("hi"))
	params.ToolChoice.OfAuto = openai.String("required")
	if got, err = client.Chat.Completions.New(ctx, params); err != nil || len(got.Choices[0].Message.ToolCalls) != 1 {
		t.Errorf("a required call: %v %+v", err, got)
	}
}

func TestOpenAIError(t *testing.T) {
	s := start(t, mockhost.Options{Scenario: "instant"})
	client := openaiClient(s)
	_, err := client.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{
		Model: "gpt-mock:context-length", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")},
	})
	var refusal *openai.Error
	if !errors.As(err, &refusal) || refusal.StatusCode != 400 || refusal.Code != "context_length_exceeded" {
		t.Fatalf("error %v", err)
	}
	stream := client.Chat.Completions.NewStreaming(context.Background(), openai.ChatCompletionNewParams{
		Model: "gpt-mock:error-frame=1", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")},
	})
	for stream.Next() {
	}
	if err := stream.Err(); err == nil || !strings.Contains(err.Error(), "Overloaded") {
		t.Errorf("error in a stream: %v", err)
	}
}

func TestOpenAIResponses(t *testing.T) {
	s := start(t, mockhost.Options{Scenario: "instant"})
	client := openaiClient(s)
	ctx := context.Background()
	params := responses.ResponseNewParams{
		Model: "gpt-mock:in=9,out=8,cached=4", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hi")},
	}
	got, err := client.Responses.New(ctx, params)
	if err != nil {
		t.Fatal(err)
	}
	if got.OutputText() != mockhost.Text(16) || got.Status != "completed" || got.Usage.InputTokensDetails.CachedTokens != 4 || got.Usage.TotalTokens != 17 {
		t.Errorf("response %s", got.RawJSON())
	}
	params.Tools = []responses.ToolUnionParam{responses.ToolParamOfFunction("get_weather", map[string]any{
		"type": "object", "properties": map[string]any{"location": map[string]any{"type": "string"}}, "required": []string{"location"},
	}, true)}
	for _, prompt := range []string{"hi", "the weather?"} {
		params.Input.OfString = openai.String(prompt)
		stream := client.Responses.NewStreaming(ctx, params)
		var text, arguments string
		var last responses.Response
		for next := int64(0); stream.Next(); next++ {
			event := stream.Current()
			if event.SequenceNumber != next {
				t.Errorf("sequence number %d, want %d", event.SequenceNumber, next)
			}
			switch event.Type {
			case "response.output_text.delta":
				text += event.Delta
			case "response.function_call_arguments.delta":
				arguments += event.Delta
			case "response.completed":
				last = event.Response
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		if last.Usage.TotalTokens != 17 {
			t.Errorf("usage %+v", last.Usage)
		}
		if prompt == "hi" && text != mockhost.Text(16) || prompt != "hi" && arguments != `{"location":"Paris"}` {
			t.Errorf("%s: text %q arguments %q", prompt, text, arguments)
		}
	}
}

func TestOpenAIOthers(t *testing.T) {
	s := start(t, mockhost.Options{Scenario: "instant"})
	client := openaiClient(s)
	ctx := context.Background()
	vectors, err := client.Embeddings.New(ctx, openai.EmbeddingNewParams{
		Model: "gpt-mock", Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a", "b"}},
	})
	if err != nil || len(vectors.Data) != 2 || len(vectors.Data[1].Embedding) != 256 || vectors.Usage.PromptTokens == 0 {
		t.Errorf("embeddings: %v", err)
	}
	legacy, err := client.Completions.New(ctx, openai.CompletionNewParams{Model: "gpt-mock", Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("hi")}})
	if err != nil || legacy.Choices[0].Text != mockhost.Text(16) || legacy.Usage.CompletionTokens != 16 {
		t.Errorf("completion: %v %+v", err, legacy)
	}
	stream := client.Completions.NewStreaming(ctx, openai.CompletionNewParams{Model: "gpt-mock", Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("hi")}})
	text := ""
	for stream.Next() {
		text += stream.Current().Choices[0].Text
	}
	if stream.Err() != nil || text != mockhost.Text(16) {
		t.Errorf("streamed completion: %v %q", stream.Err(), text)
	}
	verdict, err := client.Moderations.New(ctx, openai.ModerationNewParams{Input: openai.ModerationNewParamsInputUnion{OfString: openai.String("hi")}})
	if err != nil || len(verdict.Results) != 1 || verdict.Results[0].Flagged {
		t.Errorf("moderation: %v", err)
	}
	picture, err := client.Images.Generate(ctx, openai.ImageGenerateParams{Model: "gpt-mock", Prompt: "a"})
	if err != nil || len(picture.Data) != 1 || picture.Data[0].B64JSON == "" || picture.Usage.OutputTokens == 0 {
		t.Errorf("image: %v", err)
	}
	list, err := client.Models.List(ctx)
	if err != nil || len(list.Data) != 2 {
		t.Errorf("models: %v", err)
	}
	words, err := client.Audio.Transcriptions.New(ctx, openai.AudioTranscriptionNewParams{Model: "gpt-mock", File: strings.NewReader("sound")})
	if err != nil || words.Text == "" || words.Usage.InputTokens == 0 {
		t.Errorf("transcript: %v", err)
	}
}
