package wire

import (
	"bytes"
)

// A Span is part of a body by offset, in bytes. Len 0 means absent.
type Span struct {
	Off, Len int32
}

// A Scan finds the top-level values of a request body that decide routing,
// limits and edits (depth 1 only, escapes understood). It is resumable: Advance
// is called as the body grows and looks at each byte once. It is ready after
// Reset and keeps offsets only. The exported fields hold from the Advance that
// was told of the end and returned ScanOK.
//
// A field that is given twice is a fault: some hosts take the first, others the
// last, and what is admitted and charged must be what runs.
//
// Numbers that a host would refuse (negative, with a fraction) count as absent:
// the host says so better.
type Scan struct {
	Model         Span  // the JSON string of "model" with its quotes
	StreamOptions Span  // the whole value of "stream_options": object or null
	MaxTokens     int64 // output tokens asked for, at most TokensMax; 0 when absent
	N             int64 // "n" or, if larger, "best_of", at most ChoicesMax; 1 when absent
	Stream        bool
	IncludeUsage  bool // stream_options.include_usage is true
	HasMaxTokens  bool // tells a MaxTokens of 0 from an absent one

	faults       [4]ScanFault // told at the end, the first of them
	fault        ScanFault    // final
	route        RouteID
	field        field  // what the value being read is for
	seen         uint16 // the fields that came, one bit each
	bom          bool
	members      bool // the object has at least one member
	hasPreferred bool
	preferred    int64 // "max_completion_tokens", which wins over "max_tokens"
	pos          int32 // bytes of the body seen
	closeOff     int32 // the last '}' of the body
	include      Span  // value of stream_options.include_usage
	lex          lexer
}

// Places in Scan.faults, in the order in which they are told.
const (
	faultOfRepeat = iota
	faultOfModel
	faultOfStream
	faultOfOptions
)

// A field is a value that a Scan reads.
type field uint8

const (
	noField field = iota
	fieldModel
	fieldStream
	fieldOptions
	fieldInclude // inside stream_options
	fieldMax
	fieldMaxPreferred
	fieldMaxOutput
	fieldN
	fieldBestOf
)

// twice is the fault of a field that is given more than once.
func (f field) twice() ScanFault { return faultModelTwice + ScanFault(f-fieldModel) }

// fieldNames are the names by field.
var fieldNames = [...]string{
	noField:           "",
	fieldModel:        "model",
	fieldStream:       "stream",
	fieldOptions:      "stream_options",
	fieldInclude:      "stream_options.include_usage",
	fieldMax:          "max_tokens",
	fieldMaxPreferred: "max_completion_tokens",
	fieldMaxOutput:    "max_output_tokens",
	fieldN:            "n",
	fieldBestOf:       "best_of",
}

// scanFields holds which fields a route reads, one bit each. What is not read
// passes unseen and is left to the host.
var scanFields = [...]uint16{
	ChatCompletions: 1<<fieldModel | 1<<fieldStream | 1<<fieldOptions | 1<<fieldMax | 1<<fieldMaxPreferred | 1<<fieldN,
	Completions:     1<<fieldModel | 1<<fieldStream | 1<<fieldOptions | 1<<fieldMax | 1<<fieldN | 1<<fieldBestOf,
	Embeddings:      1 << fieldModel,
	Responses:       1<<fieldModel | 1<<fieldStream | 1<<fieldMaxOutput,
	Moderations:     1 << fieldModel,
	Images:          1<<fieldModel | 1<<fieldStream | 1<<fieldN,
	Audio:           1<<fieldModel | 1<<fieldStream,
	Messages:        1<<fieldModel | 1<<fieldStream | 1<<fieldMax,
	CountTokens:     1 << fieldModel,
	ModelByID:       0,
}

// byteOrderMark is U+FEFF. JSON forbids it at the start, hosts differ.
const byteOrderMark = "\xef\xbb\xbf"

// Reset makes s ready for a body of the route.
func (s *Scan) Reset(id RouteID) {
	*s = Scan{route: id, N: 1}
	s.lex.watch = 1
	if !id.modelOptional() {
		s.faults[faultOfModel] = faultModelMissing
	}
}

// Advance looks at the bytes of body that came since the last call; body holds
// all from the start and may have moved. end says that no more will come. A
// fault is final.
func (s *Scan) Advance(body []byte, end bool) ScanFault {
	if s.fault != ScanOK {
		return s.fault
	}
	if len(body) > bodyBytesMax {
		s.fault = faultTooLong
		return s.fault
	}
	if s.pos == 0 {
		mark := min(len(body), len(byteOrderMark))
		if mark < len(byteOrderMark) && !end && string(body) == byteOrderMark[:mark] {
			return ScanOK // three bytes decide
		}
		if bytes.HasPrefix(body, []byte(byteOrderMark)) {
			s.bom = true
			s.pos = int32(len(byteOrderMark))
		}
	}
	i := int(s.pos)
	for {
		var tok token
		tok, i = s.lex.next(body, i)
		if tok == tokMore {
			break
		}
		if s.take(tok, i); s.fault != ScanOK {
			return s.fault
		}
	}
	s.pos = int32(i)
	if end {
		s.finish()
	}
	return s.fault
}

// take deals with one token that ends at offset end.
func (s *Scan) take(tok token, end int) {
	depth := s.lex.depth
	switch tok {
	case tokBroken:
		s.fault = faultSyntax
		if s.lex.state == tooDeep {
			s.fault = faultDepth
		}
	case tokKey:
		s.members = true
		s.field = s.fieldOf(s.lex.name(), depth)
		s.noteField(s.field)
	case tokObject, tokArray:
		switch {
		case depth == 1 && tok == tokArray:
			s.fault = faultNotObject
		case depth == 2 && tok == tokObject && s.field == fieldOptions:
			s.lex.watch = 2
			s.StreamOptions.Off = int32(s.lex.start)
		case depth > 1:
			s.takeValue(tok, Span{})
		}
	case tokClose:
		switch {
		case depth == 0:
			s.closeOff = int32(end) - 1
		case depth == 1 && s.lex.watch == 2:
			s.lex.watch = 1
			s.StreamOptions.Len = int32(end) - s.StreamOptions.Off
		}
	default:
		if depth == 0 {
			s.fault = faultNotObject
			return
		}
		s.takeValue(tok, Span{int32(s.lex.start), int32(end) - int32(s.lex.start)})
	}
}

// fieldOf is the field that a name at the depth stands for on this route.
func (s *Scan) fieldOf(name []byte, depth uint8) field {
	if depth == 2 {
		if string(name) == "include_usage" {
			return fieldInclude
		}
		return noField
	}
	f := noField
	switch string(name) {
	case fieldNames[fieldModel]:
		f = fieldModel
	case fieldNames[fieldStream]:
		f = fieldStream
	case fieldNames[fieldOptions]:
		f = fieldOptions
	case fieldNames[fieldMax]:
		f = fieldMax
	case fieldNames[fieldMaxPreferred]:
		f = fieldMaxPreferred
	case fieldNames[fieldMaxOutput]:
		f = fieldMaxOutput
	case fieldNames[fieldN]:
		f = fieldN
	case fieldNames[fieldBestOf]:
		f = fieldBestOf
	}
	if scanFields[s.route]>>f&1 == 0 {
		return noField
	}
	return f
}

// noteField notes that a field came, and the first one that came before.
func (s *Scan) noteField(f field) {
	if f == noField {
		return
	}
	if s.seen>>f&1 != 0 && s.faults[faultOfRepeat] == ScanOK {
		s.faults[faultOfRepeat] = f.twice()
	}
	s.seen |= 1 << f
}

// takeValue reads one value. span is where a scalar lies; a container's kind
// is enough.
func (s *Scan) takeValue(tok token, span Span) {
	f := s.field
	s.field = noField
	switch f {
	case fieldModel:
		s.faults[faultOfModel] = s.modelFault(tok)
		if s.faults[faultOfModel] == ScanOK && tok == tokString {
			s.Model = span
		}
	case fieldStream:
		s.Stream = tok == tokTrue
		if tok != tokTrue && tok != tokFalse && (tok != tokNull || s.route.shape() == Anthropic) {
			s.faults[faultOfStream] = faultStream
		}
	case fieldOptions:
		if tok == tokNull {
			s.StreamOptions = span
		} else {
			s.faults[faultOfOptions] = faultStreamOptions
		}
	case fieldInclude:
		s.IncludeUsage, s.include = tok == tokTrue, span
		if tok != tokTrue && tok != tokFalse && tok != tokNull {
			s.faults[faultOfOptions] = faultIncludeUsage
		}
	case fieldMax, fieldMaxOutput:
		s.MaxTokens, s.HasMaxTokens = s.count(tok)
	case fieldMaxPreferred:
		s.preferred, s.hasPreferred = s.count(tok)
	case fieldN, fieldBestOf:
		n, ok := s.count(tok)
		if !ok && tok != tokNull { // a host may read it as one
			n = choicesUnclear
		}
		s.N = max(s.N, n)
	}
}

func (s *Scan) modelFault(tok token) ScanFault {
	switch {
	case tok == tokNull && s.route.modelOptional():
		return ScanOK
	case tok != tokString:
		return faultModelType
	case s.lex.length == 0:
		return faultModelEmpty
	case s.lex.length > ModelNameBytesMax:
		return faultModelLong
	}
	return ScanOK
}

// count is the number read last, if it is one that counts something.
func (s *Scan) count(tok token) (n int64, ok bool) {
	if tok != tokNumber || s.lex.form != 0 {
		return 0, false
	}
	return s.lex.num, true
}

// finish settles the exported fields at the end of the body.
func (s *Scan) finish() {
	if s.lex.state != whole {
		switch {
		case s.lex.depth > 0 || !s.lex.ended() && s.lex.state != wantValue:
			s.fault = faultCut
		case s.lex.state == wantValue:
			s.fault = faultEmpty
		default:
			s.fault = faultNotObject // a number, which only the end of the body ends
		}
		return
	}
	for _, fault := range s.faults {
		if fault != ScanOK {
			s.fault = fault
			return
		}
	}
	if s.hasPreferred {
		s.MaxTokens, s.HasMaxTokens = s.preferred, true
	}
	s.N = min(s.N, ChoicesMax)
}
