package wire

import "testing"

func TestFindRoute(t *testing.T) {
	for _, tt := range []struct {
		path      string
		anthropic bool // the request has anthropic-version
		id        RouteID
		shape     Shape
		suffix    string
	}{
		{"/v1/chat/completions", false, ChatCompletions, OpenAI, "/chat/completions"},
		{"/v1/chat/completions", true, ChatCompletions, OpenAI, "/chat/completions"},
		{"/openai/v1/chat/completions", true, ChatCompletions, OpenAI, "/chat/completions"},
		{"/v1/completions", false, Completions, OpenAI, "/completions"},
		{"/v1/embeddings", false, Embeddings, OpenAI, "/embeddings"},
		{"/v1/responses", false, Responses, OpenAI, "/responses"},
		{"/v1/moderations", false, Moderations, OpenAI, "/moderations"},
		{"/v1/images/generations", false, Images, OpenAI, "/images/generations"},
		{"/v1/images/edits", false, Images, OpenAI, "/images/edits"},
		{"/openai/v1/images/variations", false, Images, OpenAI, "/images/variations"},
		{"/v1/audio/speech", false, Audio, OpenAI, "/audio/speech"},
		{"/v1/audio/transcriptions", false, Audio, OpenAI, "/audio/transcriptions"},
		{"/v1/audio/translations", false, Audio, OpenAI, "/audio/translations"},
		{"/v1/messages", false, Messages, Anthropic, "/messages"},
		{"/anthropic/v1/messages", false, Messages, Anthropic, "/messages"},
		{"/v1/messages/count_tokens", false, CountTokens, Anthropic, "/messages/count_tokens"},
		{"/v1/models", false, Models, OpenAI, "/models"},
		{"/v1/models", true, Models, Anthropic, "/models"},
		{"/openai/v1/models", true, Models, OpenAI, "/models"},
		{"/anthropic/v1/models", false, Models, Anthropic, "/models"},
		{"/v1/models/gpt-4.1", false, ModelByID, OpenAI, "gpt-4.1"},
		{"/v1/models/meta%2Fllama:70b", true, ModelByID, Anthropic, "meta%2Fllama:70b"},
		{"/openai/v1/models/meta/llama:70b", false, ModelByID, OpenAI, "meta/llama:70b"},
		{"/v1/models/..a", false, ModelByID, OpenAI, "..a"},

		{"/openai/v1/messages", false, NoRoute, OpenAI, ""},
		{"/openai/v1/messages", true, NoRoute, OpenAI, ""},
		{"/anthropic/v1/chat/completions", false, NoRoute, Anthropic, ""},
		{"/v1/messagesX", false, NoRoute, OpenAI, ""},
		{"/v1/messagesX", true, NoRoute, Anthropic, ""},
		{"/v1/messages/", false, NoRoute, Anthropic, ""},
		{"/v1/messages/batches", false, NoRoute, Anthropic, ""},
		{"/v1/complete", false, NoRoute, Anthropic, ""},
		{"/v1/chat", true, NoRoute, OpenAI, ""},
		{"/v1/batches", true, NoRoute, OpenAI, ""},
		{"/v1/files", true, NoRoute, Anthropic, ""},
		{"/v1/files", false, NoRoute, OpenAI, ""},
		{"/v1//chat/completions", false, NoRoute, OpenAI, ""},
		{"//v1/chat/completions", false, NoRoute, OpenAI, ""},
		{"/v1/./chat/completions", false, NoRoute, OpenAI, ""},
		{"/v1/models/../chat/completions", false, NoRoute, OpenAI, ""},
		{"/v1/models/%2e%2E/chat", false, NoRoute, OpenAI, ""},
		{"/v1/models/.%2e", false, NoRoute, OpenAI, ""},
		{"/v1/models/", false, NoRoute, OpenAI, ""},
		{"/v1/models/a//b", false, NoRoute, OpenAI, ""},
		{"/v1/models/a/", false, NoRoute, OpenAI, ""},
		{"/v1/modelsX", false, NoRoute, OpenAI, ""},
		{"/v1/%63hat/completions", false, NoRoute, OpenAI, ""},
		{"/V1/chat/completions", false, NoRoute, OpenAI, ""},
		{"/v1/images/other", false, NoRoute, OpenAI, ""},
		{"/v1", true, NoRoute, Anthropic, ""},
		{"/v1x/messages", false, NoRoute, OpenAI, ""},
		{"/openaiX/v1/messages", true, NoRoute, Anthropic, ""},
		{"/openai/openai/v1/chat/completions", true, NoRoute, OpenAI, ""},
		{"/anthropic", false, NoRoute, Anthropic, ""},
		{"", false, NoRoute, OpenAI, ""},
		{"/", true, NoRoute, Anthropic, ""},
		{"*", false, NoRoute, OpenAI, ""},
	} {
		t.Run(tt.path, func(t *testing.T) {
			got := FindRoute([]byte(tt.path), tt.anthropic)
			if got.ID != tt.id || got.Shape != tt.shape || string(got.Suffix) != tt.suffix {
				t.Errorf("FindRoute(%q, %v) = %v %v %q, want %v %v %q", tt.path, tt.anthropic,
					got.ID, got.Shape, got.Suffix, tt.id, tt.shape, tt.suffix)
			}
		})
	}
}

func TestRouteTable(t *testing.T) {
	free := map[RouteID]bool{NoRoute: true, Moderations: true, CountTokens: true, Models: true, ModelByID: true}
	for id := NoRoute; id <= ModelByID; id++ {
		if id.Metered() == free[id] {
			t.Errorf("%v: Metered() = %v", id, id.Metered())
		}
		want := "POST"
		if id == Models || id == ModelByID {
			want = "GET"
		}
		if id.Allow() != want || !id.Allows([]byte(want)) || id.Allows([]byte("PUT")) || id.Allows([]byte("post")) {
			t.Errorf("%v: Allow() = %q, want %q", id, id.Allow(), want)
		}
		if id.String() == "" {
			t.Errorf("route %d has no name", id)
		}
	}
}

func TestAppendModelID(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		ok       bool
	}{
		{"gpt-4.1", "gpt-4.1", true},
		{"meta%2Fllama%3a70b", "meta/llama:70b", true},
		{"a+b", "a+b", true},
		{"%E4%BD%A0", "你", true},
		{"a%", "", false},
		{"a%2", "", false},
		{"a%zz", "", false},
	} {
		got, ok := AppendModelID(nil, []byte(tt.in))
		if ok != tt.ok || ok && string(got) != tt.want {
			t.Errorf("AppendModelID(%q) = %q, %v, want %q, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}
