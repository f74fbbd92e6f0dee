package mockhost

func (r *reply) stopReason() string {
	switch {
	case len(r.tools) > 0:
		return "tool_use"
	case r.cutShort:
		return "max_tokens"
	}
	return "end_turn"
}

// thinkingBlock is what the thinking word puts first. The signature is base64.
const (
	thinkingText      = "The caller asks, and I know the answer by heart."
	thinkingSignature = "bW9jay1zaWduYXR1cmU="
)

func appendMessageStart(dst []byte, r *reply) []byte {
	dst = appendID(append(dst, `{"id":"`...), "msg_", r.id, 0)
	dst = append(dst, `","type":"message","role":"assistant","model":`...)
	return append(dst, r.fields.modelJSON...)
}

// appendMessageUsage appends the whole usage object.
func appendMessageUsage(dst []byte, r *reply, out int64) []byte {
	write, write1h := max(r.sc.write, 0), max(r.sc.write1h, 0)
	dst = appendInt(dst, `{"input_tokens":`, r.inTokens())
	dst = appendInt(dst, `,"cache_creation_input_tokens":`, write+write1h)
	dst = appendInt(dst, `,"cache_read_input_tokens":`, max(r.sc.cached, 0))
	dst = appendInt(dst, `,"cache_creation":{"ephemeral_5m_input_tokens":`, write)
	dst = appendInt(dst, `,"ephemeral_1h_input_tokens":`, write1h)
	dst = appendInt(dst, `},"output_tokens":`, out)
	dst = appendInt(dst, `,"output_tokens_details":{"thinking_tokens":`, max(r.sc.reasoning, 0))
	return append(dst, `},"server_tool_use":null,"service_tier":"standard","inference_geo":null,"speed":null}`...)
}

func wholeMessage(dst []byte, r *reply) []byte {
	dst = append(appendMessageStart(dst, r), `,"content":[`...)
	comma := false
	block := func() {
		if comma {
			dst = append(dst, ',')
		}
		comma = true
	}
	if r.sc.thinking {
		block()
		dst = append(dst, `{"type":"thinking","thinking":"`+thinkingText+`","signature":"`+thinkingSignature+`"}`...)
	}
	if r.words.text != "" {
		block()
		dst = appendString(append(dst, `{"type":"text","text":`...), r.words.text)
		dst = append(dst, `,"citations":null}`...)
	}
	for k, c := range r.tools {
		block()
		dst = appendID(append(dst, `{"type":"tool_use","id":"`...), "toolu_", r.id, k+1)
		dst = appendString(append(dst, `","name":`...), c.name)
		dst = append(append(dst, `,"input":`...), c.wholeArguments()...)
		dst = append(dst, `,"caller":{"type":"direct"}}`...)
	}
	dst = append(append(dst, `],"stop_reason":"`...), r.stopReason()...)
	dst = append(dst, `","stop_sequence":null,"stop_details":null,"container":null,"diagnostics":null`...)
	if !r.sc.noUsage {
		dst = appendMessageUsage(append(dst, `,"usage":`...), r, r.outTokens())
	}
	return append(dst, '}')
}

// textIndex is the index of the text block, which comes behind thinking.
func (r *reply) textIndex() int64 {
	if r.sc.thinking {
		return 1
	}
	return 0
}

func openMessage(dst []byte, r *reply) []byte {
	dst = append(dst, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":"...)
	dst = appendMessageStart(dst, r)
	dst = append(dst, `,"content":[],"stop_reason":null,"stop_sequence":null,"stop_details":null,"container":null,"diagnostics":null`...)
	if !r.sc.noUsage {
		dst = appendMessageUsage(append(dst, `,"usage":`...), r, min(r.outTokens(), 1))
	}
	dst = append(dst, "}}\n\n"...)
	if r.sc.thinking {
		dst = append(dst, "event: content_block_start\n"+`data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`+"\n\n"+
			"event: content_block_delta\n"+`data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"`+thinkingText+`"}}`+"\n\n"+
			"event: content_block_delta\n"+`data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"`+thinkingSignature+`"}}`+"\n\n"+
			"event: content_block_stop\n"+`data: {"type":"content_block_stop","index":0}`+"\n\n"...)
	}
	if len(r.tools) == 0 && (len(r.words.ends) > 0 || r.patterned()) {
		dst = appendInt(append(dst, "event: content_block_start\n"...), `data: {"type":"content_block_start","index":`, r.textIndex())
		dst = append(dst, `,"content_block":{"type":"text","text":"","citations":null}}`+"\n\n"...)
	}
	return append(dst, "event: ping\ndata: {\"type\":\"ping\"}\n\n"...)
}

// patterned says that the content is the pattern and not the reply's words,
// which only a stream can be.
func (r *reply) patterned() bool { return r.fields.stream && (r.sc.tick > 0 || r.sc.pour > 0) }

func pieceMessage(dst []byte, r *reply, text string, stampUs int64) []byte {
	dst = append(dst, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\""...)
	dst = appendInt(dst, `,"index":`, r.textIndex())
	dst = appendString(append(dst, `,"delta":{"type":"text_delta","text":`...), text)
	dst = append(dst, '}')
	if stampUs != 0 {
		dst = appendInt(dst, `,"mock_us":`, stampUs)
	}
	return append(dst, "}\n\n"...)
}

func appendBlockStop(dst []byte, index int64) []byte {
	dst = appendInt(append(dst, "event: content_block_stop\n"...), `data: {"type":"content_block_stop","index":`, index)
	return append(dst, "}\n\n"...)
}

func toolCallsMessage(dst []byte, r *reply) []byte {
	for k, c := range r.tools {
		index := r.textIndex() + int64(k)
		dst = appendInt(append(dst, "event: content_block_start\n"...), `data: {"type":"content_block_start","index":`, index)
		dst = appendID(append(dst, `,"content_block":{"type":"tool_use","id":"`...), "toolu_", r.id, k+1)
		dst = appendString(append(dst, `","name":`...), c.name)
		dst = append(dst, `,"input":{},"caller":{"type":"direct"}}}`+"\n\n"...)
		for _, piece := range c.argumentPieces() {
			dst = appendInt(append(dst, "event: content_block_delta\n"...), `data: {"type":"content_block_delta","index":`, index)
			dst = appendString(append(dst, `,"delta":{"type":"input_json_delta","partial_json":`...), piece)
			dst = append(dst, "}}\n\n"...)
		}
		dst = appendBlockStop(dst, index)
	}
	return dst
}

func endMessage(dst []byte, r *reply) []byte {
	if len(r.tools) == 0 && (len(r.words.ends) > 0 || r.patterned()) {
		dst = appendBlockStop(dst, r.textIndex())
	}
	dst = append(dst, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\""...)
	dst = append(dst, r.stopReason()...)
	dst = append(dst, `","stop_sequence":null,"stop_details":null,"container":null}`...)
	if !r.sc.noUsage {
		dst = appendInt(dst, `,"usage":{"input_tokens":`, r.inTokens())
		dst = appendInt(dst, `,"cache_creation_input_tokens":`, max(r.sc.write, 0)+max(r.sc.write1h, 0))
		dst = appendInt(dst, `,"cache_read_input_tokens":`, max(r.sc.cached, 0))
		dst = appendInt(dst, `,"output_tokens":`, r.outTokens())
		dst = appendInt(dst, `,"output_tokens_details":{"thinking_tokens":`, max(r.sc.reasoning, 0))
		dst = append(dst, `},"server_tool_use":null}`...)
	}
	return append(dst, "}\n\n"...)
}

func doneMessage(dst []byte, _ *reply) []byte {
	return append(dst, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"...)
}

func wholeCount(dst []byte, r *reply) []byte {
	return append(appendInt(dst, `{"input_tokens":`, r.inTokens()), '}')
}
