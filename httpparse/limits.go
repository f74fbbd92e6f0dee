package httpparse

// Limits of a message head and of chunk framing, in bytes unless said.
const (
	RequestLineBytesMax = 8 << 10  // longer: 414
	FieldBytesMax       = 16 << 10 // one field line; longer: 431
	FieldsMax           = 100      // field lines in a head; more: 431
	HeadBytesMax        = 64 << 10 // whole head; longer: 431
	ChunkLineBytesMax   = 256      // chunk size with its extension
	TrailerBytesMax     = 8 << 10  // trailer section
	ChunkBytesMax       = 1 << 40  // one chunk
)
