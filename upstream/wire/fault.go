package wire

// A ScanFault is why a body was refused; ScanOK is zero. Each has a message, the
// field it names ("" if none), and is answered by 400.
type ScanFault uint8

// ScanOK is a body without fault so far.
const ScanOK ScanFault = 0

const (
	faultEmpty ScanFault = iota + 1
	faultSyntax
	faultCut
	faultDepth
	faultNotObject
	faultTooLong
	faultModelMissing
	faultModelType
	faultModelEmpty
	faultModelLong
	faultStream
	faultStreamOptions
	faultIncludeUsage
	faultFormType
	faultForm
	faultFormLarge
	faultFormModelTwice
	faultFormModelFile

	faultModelTwice // from here on in the order of the fields: see field.twice
	faultStreamTwice
	faultOptionsTwice
	faultIncludeTwice
	faultMaxTwice
	faultMaxPreferredTwice
	faultMaxOutputTwice
	faultNTwice
	faultBestOfTwice
)

// scanFaults is the one table of what a caller is told.
var scanFaults = [...]struct{ message, param string }{
	ScanOK:              {"", ""},
	faultEmpty:          {"The request body is empty. Send a JSON object.", ""},
	faultSyntax:         {"The request body is not valid JSON.", ""},
	faultCut:            {"The request body ends in the middle of its JSON.", ""},
	faultDepth:          {"The request body nests more than 200 arrays and objects.", ""},
	faultNotObject:      {"The request body must be one JSON object.", ""},
	faultTooLong:        {"The request body is longer than 2 GiB.", ""},
	faultModelMissing:   {"The field 'model' is required.", "model"},
	faultModelType:      {"The field 'model' must be a string.", "model"},
	faultModelEmpty:     {"The field 'model' must not be empty.", "model"},
	faultModelLong:      {"The field 'model' is longer than 256 bytes.", "model"},
	faultStream:         {"The field 'stream' must be true or false.", "stream"},
	faultStreamOptions:  {"The field 'stream_options' must be an object.", "stream_options"},
	faultIncludeUsage:   {"The field 'stream_options.include_usage' must be true or false.", "stream_options.include_usage"},
	faultFormType:       {"The content type must be multipart/form-data with a boundary of 1 to 70 bytes.", ""},
	faultForm:           {"The request body is not a valid multipart form.", ""},
	faultFormLarge:      {"The request form has more than 256 parts, or a part with more than 4 KiB of header fields.", ""},
	faultFormModelTwice: {"The form field 'model' must be given once.", "model"},
	faultFormModelFile:  {"The form field 'model' must be text, not a file.", "model"},

	faultModelTwice:        {"The field 'model' must be given once.", "model"},
	faultStreamTwice:       {"The field 'stream' must be given once.", "stream"},
	faultOptionsTwice:      {"The field 'stream_options' must be given once.", "stream_options"},
	faultIncludeTwice:      {"The field 'stream_options.include_usage' must be given once.", "stream_options.include_usage"},
	faultMaxTwice:          {"The field 'max_tokens' must be given once.", "max_tokens"},
	faultMaxPreferredTwice: {"The field 'max_completion_tokens' must be given once.", "max_completion_tokens"},
	faultMaxOutputTwice:    {"The field 'max_output_tokens' must be given once.", "max_output_tokens"},
	faultNTwice:            {"The field 'n' must be given once.", "n"},
	faultBestOfTwice:       {"The field 'best_of' must be given once.", "best_of"},
}

// Message is the sentence for the caller.
func (f ScanFault) Message() string { return scanFaults[f].message }

// Param is the field that the fault is about, or "".
func (f ScanFault) Param() string { return scanFaults[f].param }
