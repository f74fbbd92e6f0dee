package mockhost

import "strconv"

// appendResponse appends the Response object. finished is false in the events
// before the end.
func appendResponse(dst []byte, r *reply, finished bool) []byte {
	dst = appendID(append(dst, `{"id":"`...), "resp_", r.id, 0)
	dst = appendInt(dst, `","object":"response","created_at":`, r.created)
	dst = append(append(dst, `,"status":"`...), r.responseStatus(finished)...)
	dst = append(dst, `","background":false,"error":null,"incomplete_details":`...)
	if finished && r.cutShort {
		dst = append(dst, `{"reason":"max_output_tokens"}`...)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"model":`...)
	dst = append(append(dst, r.fields.modelJSON...), `,"output":[`...)
	if finished {
		dst = appendOutput(dst, r)
	}
	dst = append(dst, `],"parallel_tool_calls":true,"previous_response_id":null,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},"safety_identifier":null,"service_tier":"default","store":true,"temperature":1.0,"text":{"format":{"type":"text"},"verbosity":"medium"},"tool_choice":"auto","tools":`...)
	if len(r.fields.tools) > 0 {
		dst = append(dst, r.fields.tools...)
	} else {
		dst = append(dst, "[]"...)
	}
	dst = append(dst, `,"top_logprobs":0,"top_p":1.0,"truncation":"disabled","usage":`...)
	if finished && !r.sc.noUsage {
		dst = appendResponseUsage(dst, r)
	} else {
		dst = append(dst, "null"...)
	}
	return append(dst, `,"user":null,"metadata":{}}`...)
}

func (r *reply) responseStatus(finished bool) string {
	switch {
	case !finished:
		return "in_progress"
	case r.cutShort:
		return "incomplete"
	}
	return "completed"
}

func appendResponseUsage(dst []byte, r *reply) []byte {
	in, out := r.inTokens(), r.outTokens()
	dst = appendInt(dst, `{"input_tokens":`, in)
	dst = appendInt(dst, `,"input_tokens_details":{"cached_tokens":`, max(r.sc.cached, 0))
	if r.sc.write >= 0 {
		dst = appendInt(dst, `,"cache_write_tokens":`, r.sc.write)
	}
	dst = appendInt(dst, `},"output_tokens":`, out)
	dst = appendInt(dst, `,"output_tokens_details":{"reasoning_tokens":`, max(r.sc.reasoning, 0))
	dst = appendInt(dst, `},"total_tokens":`, in+out)
	return append(dst, '}')
}

func appendOutput(dst []byte, r *reply) []byte {
	if len(r.tools) == 0 {
		return appendTextItem(dst, r, r.responseStatus(true), true)
	}
	for k := range r.tools {
		if k > 0 {
			dst = append(dst, ',')
		}
		dst = appendCallItem(dst, r, k, "completed", r.tools[k].wholeArguments())
	}
	return dst
}

func appendTextItem(dst []byte, r *reply, status string, content bool) []byte {
	dst = appendID(append(dst, `{"id":"`...), "msg_", r.id, 0)
	dst = append(append(dst, `","type":"message","status":"`...), status...)
	dst = append(dst, `","role":"assistant","content":[`...)
	if content {
		dst = appendTextPart(dst, r.words.text)
	}
	return append(dst, "]}"...)
}

func appendTextPart(dst []byte, text string) []byte {
	return append(appendString(append(dst, `{"type":"output_text","annotations":[],"logprobs":[],"text":`...), text), '}')
}

func appendCallItem(dst []byte, r *reply, k int, status, arguments string) []byte {
	dst = appendID(append(dst, `{"id":"`...), "fc_", r.id, k+1)
	dst = append(append(dst, `","type":"function_call","status":"`...), status...)
	dst = appendID(append(dst, `","call_id":"`...), "call_", r.id, k+1)
	dst = appendString(append(dst, `","name":`...), r.tools[k].name)
	return append(appendString(append(dst, `,"arguments":`...), arguments), '}')
}

func wholeResponse(dst []byte, r *reply) []byte { return appendResponse(dst, r, true) }

// event begins an event; the caller appends further members and "}\n\n".
// Sequence numbers count from 0 without gaps.
func (r *reply) event(dst []byte, kind string) []byte {
	dst = append(append(dst, "event: "...), kind...)
	dst = append(append(dst, "\ndata: {\"type\":\""...), kind...)
	dst = strconv.AppendInt(append(dst, `","sequence_number":`...), int64(r.sequence), 10)
	r.sequence++
	return dst
}

func openResponse(dst []byte, r *reply) []byte {
	for _, kind := range []string{"response.created", "response.in_progress"} {
		dst = append(r.event(dst, kind), `,"response":`...)
		dst = append(appendResponse(dst, r, false), "}\n\n"...)
	}
	if len(r.tools) > 0 {
		return dst
	}
	dst = append(r.event(dst, "response.output_item.added"), `,"output_index":0,"item":`...)
	dst = append(appendTextItem(dst, r, "in_progress", false), "}\n\n"...)
	dst = append(r.textPart(r.event(dst, "response.content_part.added")), `,"part":`...)
	return append(appendTextPart(dst, ""), "}\n\n"...)
}

// textPart appends the members that name the one text part.
func (r *reply) textPart(dst []byte) []byte {
	dst = appendID(append(dst, `,"item_id":"`...), "msg_", r.id, 0)
	return append(dst, `","output_index":0,"content_index":0`...)
}

func pieceResponse(dst []byte, r *reply, text string, stampUs int64) []byte {
	dst = append(r.textPart(r.event(dst, "response.output_text.delta")), `,"logprobs":[],"delta":`...)
	dst = appendString(dst, text)
	if stampUs != 0 {
		dst = appendInt(dst, `,"mock_us":`, stampUs)
	}
	return append(dst, "}\n\n"...)
}

func toolCallsResponse(dst []byte, r *reply) []byte {
	for k, c := range r.tools {
		call := func(kind string) {
			dst = appendID(append(r.event(dst, kind), `,"item_id":"`...), "fc_", r.id, k+1)
			dst = appendInt(dst, `","output_index":`, int64(k))
		}
		item := func(kind, status, arguments string) {
			dst = appendInt(r.event(dst, kind), `,"output_index":`, int64(k))
			dst = appendCallItem(append(dst, `,"item":`...), r, k, status, arguments)
			dst = append(dst, "}\n\n"...)
		}
		item("response.output_item.added", "in_progress", "")
		c.arguments = c.wholeArguments()
		for _, piece := range c.argumentPieces() {
			call("response.function_call_arguments.delta")
			dst = append(appendString(append(dst, `,"delta":`...), piece), "}\n\n"...)
		}
		call("response.function_call_arguments.done")
		dst = appendString(append(dst, `,"name":`...), c.name)
		dst = append(appendString(append(dst, `,"arguments":`...), c.arguments), "}\n\n"...)
		item("response.output_item.done", "completed", c.arguments)
	}
	return dst
}

func endResponse(dst []byte, r *reply) []byte {
	if len(r.tools) > 0 {
		return dst
	}
	dst = append(r.textPart(r.event(dst, "response.output_text.done")), `,"logprobs":[],"text":`...)
	dst = append(appendString(dst, r.words.text), "}\n\n"...)
	dst = append(r.textPart(r.event(dst, "response.content_part.done")), `,"part":`...)
	dst = append(appendTextPart(dst, r.words.text), "}\n\n"...)
	dst = append(r.event(dst, "response.output_item.done"), `,"output_index":0,"item":`...)
	return append(appendTextItem(dst, r, r.responseStatus(true), true), "}\n\n"...)
}

// doneResponse is the event that carries usage; there is no [DONE].
func doneResponse(dst []byte, r *reply) []byte {
	dst = append(r.event(dst, "response."+r.responseStatus(true)), `,"response":`...)
	return append(appendResponse(dst, r, true), "}\n\n"...)
}
