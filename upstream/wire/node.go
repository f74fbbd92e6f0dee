package wire

// A node is a place in an answer, as far as this package cares: a container
// whose members are followed, or a leaf whose value is read. Everything else
// is none, and is skipped unread.
type node uint8

const (
	none node = iota

	// The top object, by kind of answer.
	nodeAnswer    // not streamed, any route
	nodeChunk     // streamed chat/completions or completions
	nodeResponses // streamed responses
	nodeMessages  // streamed messages
	nodeMedia     // streamed images or audio

	nodeChoices // array
	nodeChoice
	nodeDelta
	nodeCalls // array
	nodeCall
	nodeFunction
	nodeSpoken   // delta.audio
	nodeResponse // response of a Responses event
	nodeMessage  // message of message_start
	nodeBlock    // content_block and delta of Messages

	nodeUsage       // stands for the usage object of the route, see reader.usageNode
	nodeUsagePrompt // usage that counts prompt_tokens
	nodeUsageInput  // usage that counts input_tokens, OpenAI
	nodeUsageCache  // usage that counts cache_read_input_tokens, Anthropic
	nodeDetailsIn
	nodeDetailsOut
	nodeCacheSplit
	nodeServerTools
	nodeRows // array
	nodeRow  // one turn of nodeRows, with counts of its own

	leafText   // generated text
	leafFinish // anything but null ends the answer
	leafType   // type of an event
	leafError  // an object or a string that is not empty is an error
	leafKeeper // anything but null keeps a chunk from being left out

	leafCount // leafCount+k is the count k
)

// element is the node of an element of the array n.
func element(n node) node {
	switch n {
	case nodeChoices:
		return nodeChoice
	case nodeCalls:
		return nodeCall
	case nodeRows:
		return nodeRow
	}
	return none
}

// isArray reports whether n must be an array; other containers are objects.
func isArray(n node) bool { return n == nodeChoices || n == nodeCalls || n == nodeRows }

// member is the node of the member called name of the object n.
func member(n node, name []byte) node {
	switch n {
	case nodeAnswer, nodeChunk, nodeResponses, nodeMessages, nodeMedia:
		return topMember(n, name)
	case nodeChoice:
		switch string(name) {
		case "delta":
			return nodeDelta
		case "text":
			return leafText
		case "finish_reason":
			return leafFinish
		}
	case nodeDelta:
		return deltaMember(name)
	case nodeCall:
		if string(name) == "function" {
			return nodeFunction
		}
	case nodeFunction:
		if string(name) == "arguments" || string(name) == "name" {
			return leafText
		}
	case nodeSpoken:
		if string(name) == "transcript" {
			return leafText
		}
	case nodeResponse, nodeMessage:
		if string(name) == "usage" {
			return nodeUsage
		}
	case nodeBlock:
		switch string(name) {
		case "text", "partial_json", "thinking":
			return leafText
		case "stop_reason":
			return leafFinish
		}
	default:
		return countMember(n, name)
	}
	return none
}

func topMember(n node, name []byte) node {
	switch string(name) {
	case "usage":
		return nodeUsage
	case "error":
		return leafError
	}
	switch n {
	case nodeChunk:
		switch string(name) {
		case "choices":
			return nodeChoices
		case "moderation", "prompt_filter_results":
			return leafKeeper
		}
	case nodeResponses:
		switch string(name) {
		case "type":
			return leafType
		case "delta":
			return leafText
		case "response":
			return nodeResponse
		}
	case nodeMessages:
		switch string(name) {
		case "type":
			return leafType
		case "message":
			return nodeMessage
		case "delta", "content_block":
			return nodeBlock
		}
	case nodeMedia:
		if string(name) == "type" {
			return leafType
		}
	}
	return none
}

// deltaMember is a member of the delta of a chat chunk. Reasoning text has no
// settled name; both that hosts use count as output.
func deltaMember(name []byte) node {
	switch string(name) {
	case "content", "refusal", "reasoning_content", "reasoning":
		return leafText
	case "tool_calls":
		return nodeCalls
	case "function_call":
		return nodeFunction
	case "audio":
		return nodeSpoken
	}
	return none
}

// countMember is a member of a usage object or of what lies in it. Hosts that
// send the names of both OpenAI APIs leave those of the other one at 0, so
// each usage node knows only its own.
func countMember(n node, name []byte) node {
	switch n {
	case nodeUsagePrompt:
		switch string(name) {
		case "prompt_tokens":
			return leafCount + node(countInput)
		case "completion_tokens":
			return leafCount + node(countOutput)
		case "prompt_tokens_details":
			return nodeDetailsIn
		case "completion_tokens_details":
			return nodeDetailsOut
		}
	case nodeUsageInput:
		switch string(name) {
		case "input_tokens":
			return leafCount + node(countInput)
		case "output_tokens":
			return leafCount + node(countOutput)
		case "input_tokens_details", "input_token_details": // responses and images, transcriptions
			return nodeDetailsIn
		case "output_tokens_details", "output_token_details":
			return nodeDetailsOut
		}
	case nodeUsageCache, nodeRow:
		return cacheMember(n, name)
	case nodeDetailsIn:
		switch string(name) {
		case "cached_tokens":
			return leafCount + node(countCached)
		case "cache_write_tokens":
			return leafCount + node(countWritten)
		case "audio_tokens":
			return leafCount + node(countAudioIn)
		}
	case nodeDetailsOut:
		switch string(name) {
		case "reasoning_tokens", "thinking_tokens":
			return leafCount + node(countReasoning)
		case "audio_tokens":
			return leafCount + node(countAudioOut)
		}
	case nodeCacheSplit:
		switch string(name) {
		case "ephemeral_5m_input_tokens":
			return leafCount + node(countWritten5m)
		case "ephemeral_1h_input_tokens":
			return leafCount + node(countWritten1h)
		}
	case nodeServerTools:
		if string(name) == "web_search_requests" {
			return leafCount + node(countSearches)
		}
	}
	return none
}

// cacheMember is a member of Anthropic's usage, or of one of its rows.
func cacheMember(n node, name []byte) node {
	switch string(name) {
	case "input_tokens":
		return leafCount + node(countInput)
	case "output_tokens":
		return leafCount + node(countOutput)
	case "cache_creation_input_tokens":
		return leafCount + node(countWritten)
	case "cache_read_input_tokens":
		return leafCount + node(countCached)
	case "cache_creation":
		return nodeCacheSplit
	case "output_tokens_details":
		return nodeDetailsOut
	case "server_tool_use":
		return nodeServerTools
	case "iterations":
		if n == nodeUsageCache {
			return nodeRows
		}
	}
	return none
}
