package mockhost

func (r *reply) finishReason() string {
	switch {
	case len(r.tools) > 0:
		return "tool_calls"
	case r.cutShort:
		return "length"
	}
	return "stop"
}

func appendChatStart(dst []byte, r *reply, prefix, object string) []byte {
	dst = append(dst, `{"id":"`...)
	dst = appendID(dst, prefix, r.id, 0)
	dst = append(dst, `","object":"`...)
	dst = append(dst, object...)
	dst = appendInt(dst, `","created":`, r.created)
	dst = append(dst, `,"model":`...)
	return append(dst, r.fields.modelJSON...)
}

// appendUsage appends the usage object of chat and completions.
func appendUsage(dst []byte, r *reply, out int64) []byte {
	in := r.inTokens()
	dst = appendInt(dst, `{"prompt_tokens":`, in)
	dst = appendInt(dst, `,"completion_tokens":`, out)
	dst = appendInt(dst, `,"total_tokens":`, in+out)
	dst = appendInt(dst, `,"prompt_tokens_details":{"cached_tokens":`, max(r.sc.cached, 0))
	if r.sc.write >= 0 {
		dst = appendInt(dst, `,"cache_write_tokens":`, r.sc.write)
	}
	dst = appendInt(dst, `,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":`, max(r.sc.reasoning, 0))
	return append(dst, `,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`...)
}

func wholeChat(dst []byte, r *reply) []byte {
	dst = appendChatStart(dst, r, "chatcmpl-", "chat.completion")
	dst = append(dst, `,"choices":[`...)
	for i := range r.choices {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendInt(dst, `{"index":`, int64(i))
		dst = append(dst, `,"message":{"role":"assistant","content":`...)
		if len(r.tools) > 0 {
			dst = append(dst, `null,"tool_calls":[`...)
			for k, c := range r.tools {
				if k > 0 {
					dst = append(dst, ',')
				}
				dst = appendID(append(dst, `{"id":"`...), "call_", r.id, k+1)
				dst = appendString(append(dst, `","type":"function","function":{"name":`...), c.name)
				dst = appendString(append(dst, `,"arguments":`...), c.wholeArguments())
				dst = append(dst, "}}"...)
			}
			dst = append(dst, ']')
		} else {
			dst = appendString(dst, r.words.text)
		}
		dst = append(dst, `,"refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"`...)
		dst = append(dst, r.finishReason()...)
		dst = append(dst, `"}`...)
	}
	dst = append(dst, ']')
	if !r.sc.noUsage {
		dst = appendUsage(append(dst, `,"usage":`...), r, r.outTokens())
	}
	return append(dst, `,"service_tier":"default","system_fingerprint":"fp_mock"}`...)
}

// appendChunk appends the event of one chunk; delta is a JSON object. Normal
// chunks carry usage null only when usage was asked for.
func appendChunk(dst []byte, r *reply, choice int, delta, finish string, stampUs int64) []byte {
	dst = appendChunkStart(dst, r)
	dst = appendInt(dst, `[{"index":`, int64(choice))
	dst = append(append(dst, `,"delta":`...), delta...)
	return appendChunkEnd(dst, r, finish, stampUs)
}

func appendChunkStart(dst []byte, r *reply) []byte {
	dst = appendChatStart(append(dst, "data: "...), r, "chatcmpl-", "chat.completion.chunk")
	return append(dst, `,"service_tier":"default","system_fingerprint":"fp_mock","choices":`...)
}

func appendChunkEnd(dst []byte, r *reply, finish string, stampUs int64) []byte {
	if finish == "" {
		dst = append(dst, `,"logprobs":null,"finish_reason":null}]`...)
	} else {
		dst = append(append(dst, `,"logprobs":null,"finish_reason":"`...), finish...)
		dst = append(dst, `"}]`...)
	}
	switch {
	case r.sc.usageRunning || finish != "" && r.sc.usageInFinish:
		dst = appendUsage(append(dst, `,"usage":`...), r, r.outTokens())
	case r.fields.includeUsage && !r.sc.noUsage:
		dst = append(dst, `,"usage":null`...)
	}
	if stampUs != 0 {
		dst = appendInt(dst, `,"mock_us":`, stampUs)
	}
	return append(dst, "}\n\n"...)
}

func openChat(dst []byte, r *reply) []byte {
	for i := range r.choices {
		dst = appendChunk(dst, r, i, `{"role":"assistant","content":"","refusal":null}`, "", 0)
	}
	return dst
}

func pieceChat(dst []byte, r *reply, text string, stampUs int64) []byte {
	for i := range r.choices {
		dst = appendChunkStart(dst, r)
		dst = appendInt(dst, `[{"index":`, int64(i))
		dst = appendString(append(dst, `,"delta":{"content":`...), text)
		dst = appendChunkEnd(append(dst, '}'), r, "", stampUs)
	}
	return dst
}

func toolCallsChat(dst []byte, r *reply) []byte {
	for k, c := range r.tools {
		delta := appendInt(nil, `{"tool_calls":[{"index":`, int64(k))
		delta = appendID(append(delta, `,"id":"`...), "call_", r.id, k+1)
		delta = appendString(append(delta, `","type":"function","function":{"name":`...), c.name)
		delta = append(delta, `,"arguments":""}}]}`...)
		dst = appendChunk(dst, r, 0, string(delta), "", 0)
		if c.arguments == "" {
			c.arguments = "{}"
		}
		for _, piece := range c.argumentPieces() {
			delta = appendInt(delta[:0], `{"tool_calls":[{"index":`, int64(k))
			delta = appendString(append(delta, `,"function":{"arguments":`...), piece)
			dst = appendChunk(dst, r, 0, string(append(delta, "}}]}"...)), "", 0)
		}
	}
	return dst
}

func endChat(dst []byte, r *reply) []byte {
	for i := range r.choices {
		dst = appendChunk(dst, r, i, "{}", r.finishReason(), 0)
	}
	if r.fields.includeUsage && !r.sc.noUsage && !r.sc.usageInFinish {
		dst = appendChatStart(append(dst, "data: "...), r, "chatcmpl-", "chat.completion.chunk")
		dst = append(dst, `,"service_tier":"default","system_fingerprint":"fp_mock","choices":[],"usage":`...)
		dst = append(appendUsage(dst, r, r.outTokens()), "}\n\n"...)
	}
	return dst
}

// The legacy endpoint has text where chat has messages.

func wholeCompletion(dst []byte, r *reply) []byte {
	dst = appendChatStart(dst, r, "cmpl-", "text_completion")
	dst = append(dst, `,"choices":[`...)
	for i := range r.choices {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(append(dst, `{"text":`...), r.words.text)
		dst = appendInt(dst, `,"index":`, int64(i))
		dst = append(append(dst, `,"logprobs":null,"finish_reason":"`...), r.finishReason()...)
		dst = append(dst, `"}`...)
	}
	dst = append(dst, ']')
	if !r.sc.noUsage {
		dst = appendUsage(append(dst, `,"usage":`...), r, r.outTokens())
	}
	return append(dst, `,"system_fingerprint":"fp_mock"}`...)
}

func openCompletion(dst []byte, _ *reply) []byte { return dst }

func pieceCompletion(dst []byte, r *reply, text string, stampUs int64) []byte {
	for i := range r.choices {
		dst = appendCompletionChunk(dst, r, i, text, "", stampUs)
	}
	return dst
}

func appendCompletionChunk(dst []byte, r *reply, choice int, text, finish string, stampUs int64) []byte {
	dst = appendChatStart(append(dst, "data: "...), r, "cmpl-", "text_completion")
	dst = appendString(append(dst, `,"choices":[{"text":`...), text)
	dst = appendInt(dst, `,"index":`, int64(choice))
	return appendChunkEnd(dst, r, finish, stampUs)
}

func endCompletion(dst []byte, r *reply) []byte {
	for i := range r.choices {
		dst = appendCompletionChunk(dst, r, i, "", r.finishReason(), 0)
	}
	if r.fields.includeUsage && !r.sc.noUsage && !r.sc.usageInFinish {
		dst = appendChatStart(append(dst, "data: "...), r, "cmpl-", "text_completion")
		dst = appendUsage(append(dst, `,"choices":[],"usage":`...), r, r.outTokens())
		dst = append(dst, "}\n\n"...)
	}
	return dst
}
