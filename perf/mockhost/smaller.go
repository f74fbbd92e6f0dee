package mockhost

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
)

// The endpoints here answer with the least that is whole.

func wholeEmbeddings(dst []byte, r *reply) []byte {
	dimensions := r.fields.dimensions
	if dimensions <= 0 || dimensions > dimensionsMax {
		dimensions = 256
	}
	dst = append(dst, `{"object":"list","data":[`...)
	for i := range countInputs(r.fields.prompt) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendInt(dst, `{"object":"embedding","index":`, int64(i))
		dst = append(appendVector(append(dst, `,"embedding":`...), dimensions, r.fields.base64), '}')
	}
	dst = append(append(dst, `],"model":`...), r.fields.modelJSON...)
	if !r.sc.noUsage {
		dst = appendInt(dst, `,"usage":{"prompt_tokens":`, r.inTokens())
		dst = append(appendInt(dst, `,"total_tokens":`, r.inTokens()), '}')
	}
	return append(dst, '}')
}

// countInputs is 1 for a text or a list of token numbers.
func countInputs(input []byte) int {
	var many []json.RawMessage
	if json.Unmarshal(input, &many) != nil || len(many) == 0 || many[0][0] != '"' && many[0][0] != '[' {
		return 1
	}
	return min(len(many), embeddingsMax)
}

func appendVector(dst []byte, dimensions int, coded bool) []byte {
	if coded {
		raw := make([]byte, 0, 4*dimensions)
		for i := range dimensions {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(component(i, dimensions)))
		}
		dst = base64.StdEncoding.AppendEncode(append(dst, '"'), raw)
		return append(dst, '"')
	}
	dst = append(dst, '[')
	for i := range dimensions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendFloat(dst, float64(component(i, dimensions)), 'g', -1, 32)
	}
	return append(dst, ']')
}

// component makes a vector of about unit length.
func component(i, dimensions int) float32 {
	return float32(math.Sin(float64(i+1)) * math.Sqrt(2/float64(dimensions)))
}

var moderationCategories = []string{"harassment", "harassment/threatening", "hate", "hate/threatening", "illicit",
	"illicit/violent", "self-harm", "self-harm/instructions", "self-harm/intent", "sexual", "sexual/minors",
	"violence", "violence/graphic"}

func wholeModeration(dst []byte, r *reply) []byte {
	dst = appendID(append(dst, `{"id":"`...), "modr-", r.id, 0)
	dst = append(append(dst, `","model":`...), r.fields.modelJSON...)
	dst = append(dst, `,"results":[{"flagged":false`...)
	for _, member := range []struct{ name, value string }{
		{"categories", "false"}, {"category_scores", "0.00001"}, {"category_applied_input_types", `["text"]`},
	} {
		dst = append(append(dst, `,"`...), member.name...)
		dst = append(dst, `":{`...)
		for i, c := range moderationCategories {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(appendString(dst, c), ':'), member.value...)
		}
		dst = append(dst, '}')
	}
	return append(dst, "}]}"...)
}

// pixel is a PNG of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

func wholeImage(dst []byte, r *reply) []byte {
	dst = appendInt(dst, `{"created":`, r.created)
	dst = append(dst, `,"background":"opaque","output_format":"png","quality":"low","size":"1024x1024","data":[`...)
	for i := range r.choices {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"b64_json":"`+pixel+`"}`...)
	}
	dst = append(dst, ']')
	if !r.sc.noUsage {
		in, out := r.inTokens(), max(r.sc.out, 0)
		if r.sc.out < 0 {
			out = 272 * int64(r.choices)
		}
		dst = appendInt(dst, `,"usage":{"input_tokens":`, in)
		dst = appendInt(dst, `,"input_tokens_details":{"image_tokens":0,"text_tokens":`, in)
		dst = appendInt(dst, `},"output_tokens":`, out)
		dst = append(appendInt(dst, `,"total_tokens":`, in+out), '}')
	}
	return append(dst, '}')
}

// wholeSpeech is a short silence: MPEG frame heads with empty bodies.
func wholeSpeech(dst []byte, _ *reply) []byte {
	for range 8 {
		dst = append(dst, 0xFF, 0xFB, 0x90, 0x64)
		dst = append(dst, make([]byte, 413)...)
	}
	return dst
}

func wholeTranscript(dst []byte, r *reply) []byte {
	dst = append(dst, `{"text":"Hello from the mock provider."`...)
	if !r.sc.noUsage {
		in, out := max(r.sc.in, 0), r.sc.out
		if r.sc.in < 0 {
			in = 14
		}
		if out < 0 {
			out = 7
		}
		dst = appendInt(dst, `,"usage":{"type":"tokens","input_tokens":`, in)
		dst = appendInt(dst, `,"input_token_details":{"text_tokens":0,"audio_tokens":`, in)
		dst = appendInt(dst, `},"output_tokens":`, out)
		dst = append(appendInt(dst, `,"total_tokens":`, in+out), '}')
	}
	return append(dst, '}')
}

// modelNames are listed by GET /v1/models in both shapes.
var modelNames = []string{"gpt-mock", "claude-mock"}

func appendModels(dst []byte, s shape) []byte {
	if s == openaiShape {
		dst = append(dst, `{"object":"list","data":[`...)
	} else {
		dst = append(dst, `{"data":[`...)
	}
	for i, name := range modelNames {
		if i > 0 {
			dst = append(dst, ',')
		}
		if s == openaiShape {
			dst = append(dst, `{"id":"`+name+`","object":"model","created":1735689600,"owned_by":"mock"}`...)
		} else {
			dst = append(dst, `{"type":"model","id":"`+name+`","display_name":"`+name+`","created_at":"2025-01-01T00:00:00Z","lifecycle":"active","capabilities":null,"deprecated_at":null,"line":null,"max_input_tokens":200000,"max_tokens":64000,"retires_at":null}`...)
		}
	}
	if s == openaiShape {
		return append(dst, "]}"...)
	}
	return append(dst, `],"has_more":false,"first_id":"`+modelNames[0]+`","last_id":"`+modelNames[len(modelNames)-1]+`"}`...)
}
