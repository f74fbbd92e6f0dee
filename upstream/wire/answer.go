package wire

// An Answer watches one JSON answer that is not streamed: it finds the usage
// object at depth 1, in one pass, cut at any byte, and tells whether the JSON
// was whole and valid. It keeps no bytes of the answer. Ready after Reset.
type Answer struct {
	Usage  Usage
	Failed bool // the answer holds an error, whatever its status said

	read  reader
	tally tally
	mark  uint8 // bytes of a BOM seen; markPast once the text has begun
}

// Reset makes a ready for an answer of the route.
func (a *Answer) Reset(id RouteID) {
	*a = Answer{}
	a.read.setRoute(id, false)
}

// Feed takes the next bytes; p is borrowed.
func (a *Answer) Feed(p []byte) {
	skip, undone := skipMark(&a.mark, p)
	if undone > 0 {
		a.read.read([]byte(byteOrderMark[:undone]), 0, 0, nil)
	}
	a.read.read(p, skip, 0, nil)
}

// End tells that the body ended, and reports whether it was one whole JSON
// value. Usage holds from here on; that of a broken body is what came.
func (a *Answer) End() (valid bool) {
	a.Usage = a.tally.take(&a.read)
	a.Failed = a.read.failed
	return a.read.ended()
}

// markPast says that the first bytes that are no BOM have come.
const markPast = 255

// skipMark skips a BOM at the start of a text that comes in pieces. undone is
// how many bytes of earlier pieces were skipped although no BOM came of them.
func skipMark(mark *uint8, p []byte) (skip, undone int) {
	if *mark == markPast {
		return 0, 0
	}
	for skip < len(p) && int(*mark) < len(byteOrderMark) {
		if p[skip] != byteOrderMark[*mark] {
			undone = int(*mark)
			*mark = markPast
			// What of it lies in p is read from p.
			return 0, undone - skip
		}
		*mark++
		skip++
	}
	if int(*mark) == len(byteOrderMark) {
		*mark = markPast
	}
	return skip, 0
}
