package mockhost

// A voice turns a reply into the JSON and the events of one endpoint. Each
// function appends to dst. Frames are complete SSE events with LF line ends.
type voice struct {
	whole func(dst []byte, r *reply) []byte
	// open is everything before the first content event.
	open func(dst []byte, r *reply) []byte
	// piece is one content event; stampUs is 0 unless a time is wanted.
	piece func(dst []byte, r *reply, text string, stampUs int64) []byte
	// toolCalls are the events of all tool calls.
	toolCalls func(dst []byte, r *reply) []byte
	// end is everything behind the last content event, without the last frame.
	end func(dst []byte, r *reply) []byte
	// done is the last frame.
	done func(dst []byte, r *reply) []byte
}

var voices = [...]voice{
	chat:         {wholeChat, openChat, pieceChat, toolCallsChat, endChat, doneOpenAI},
	completions:  {wholeCompletion, openCompletion, pieceCompletion, nil, endCompletion, doneOpenAI},
	responsesAPI: {wholeResponse, openResponse, pieceResponse, toolCallsResponse, endResponse, doneResponse},
	messages:     {wholeMessage, openMessage, pieceMessage, toolCallsMessage, endMessage, doneMessage},
	countTokens:  {whole: wholeCount},
	embeddings:   {whole: wholeEmbeddings},
	moderations:  {whole: wholeModeration},
	images:       {whole: wholeImage},
	speechAudio:  {whole: wholeSpeech},
	transcripts:  {whole: wholeTranscript},
}

// spoken says whether an endpoint can stream.
func (e endpoint) spoken() bool { return int(e) < len(voices) && voices[e].open != nil }

func doneOpenAI(dst []byte, _ *reply) []byte { return append(dst, "data: [DONE]\n\n"...) }
