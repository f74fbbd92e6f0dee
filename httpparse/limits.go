package httpparse

// Limits of a message head and of chunk framing, in bytes unless said. A line
// is counted with its line end.
const (
	RequestLineBytesMax = 8 << 10  // request line or status line; longer: 414
	FieldBytesMax       = 16 << 10 // one field line; longer: 431
	FieldsMax           = 100      // field lines in a head; more: 431
	HeadBytesMax        = 64 << 10 // whole head, leading empty lines included; longer: 431
	LeadingLinesMax     = 4        // empty lines in front of a request line; more: 400
	LengthDigitsMax     = 19       // digits of a Content-Length, as many as the largest int64 has
	ChunkLineBytesMax   = 256      // chunk size with its extension
	ChunkDigitsMax      = 16       // hex digits of a chunk size, leading zeros included
	ChunkWasteBytesMax  = 16 << 10 // chunk lines of one body beyond what its data earns
	TrailerBytesMax     = 8 << 10  // trailer section
	ChunkBytesMax       = 1 << 40  // one chunk
)

// A body in tiny chunks with long extensions could be hundreds of times its
// data. Each chunk earns its line chunkLineFree bytes plus chunkLineEarned per
// byte of data; what lines take beyond that adds up to ChunkWasteBytesMax.
const (
	chunkLineFree   = 16
	chunkLineEarned = 2
)
