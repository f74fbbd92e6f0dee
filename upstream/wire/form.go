package wire

import (
	"bytes"
	"mime"
	"strings"
)

// formModel is the name of the only form field that is read.
const formModel = "model"

// ScanMultipart finds the form field "model" of a multipart/form-data body
// (RFC 7578). contentType is the whole Content-Type value. The span is the raw
// text of the field; it is zero when there is no such field.
//
// Hosts differ in what they make of odd forms, so whatever could be understood
// in two ways is refused: a field given twice, a model sent as a file, a
// boundary inside a part, lines that do not end in CRLF.
func ScanMultipart(body, contentType []byte) (Span, ScanFault) {
	kind, params, err := mime.ParseMediaType(string(contentType))
	boundary := params["boundary"]
	if err != nil || kind != "multipart/form-data" || len(boundary) < 1 || len(boundary) > boundaryBytesMax {
		return Span{}, faultFormType
	}
	if len(body) > bodyBytesMax {
		return Span{}, faultTooLong
	}
	delimiter := []byte("\r\n--" + boundary)
	var model Span
	found := false
	pos, last, ok := firstDelimiter(body, delimiter)
	for parts := 0; ok && !last; parts++ {
		head := bytes.Index(body[pos:], []byte("\r\n\r\n"))
		if parts == partsMax || head > partHeadBytesMax || head < 0 && len(body)-pos > partHeadBytesMax {
			return Span{}, faultFormLarge
		}
		if head < 0 || bytes.Contains(body[pos-2:pos+head], delimiter) {
			return Span{}, faultForm
		}
		isModel, fault := partIsModel(body[pos : pos+head+2])
		if fault != ScanOK {
			return Span{}, fault
		}
		from := pos + head + 4
		// The CRLF before a delimiter belongs to it, so an empty part's head
		// may end with the delimiter's own.
		n := bytes.Index(body[from-2:], delimiter)
		if n < 0 {
			return Span{}, faultForm
		}
		end := max(from-2+n, from)
		if isModel {
			switch {
			case found:
				return Span{}, faultFormModelTwice
			case end == from:
				return Span{}, faultModelEmpty
			case end-from > ModelNameBytesMax:
				return Span{}, faultModelLong
			}
			found = true
			model = Span{int32(from), int32(end - from)}
		}
		pos, last, ok = delimiterEnd(body, from-2+n+len(delimiter))
	}
	if !ok {
		return Span{}, faultForm
	}
	return model, ScanOK
}

// MultipartEdit is the edit that makes upstreamModel the text of the form
// field at model. ok is false when there is nothing to change. The text goes
// to scratch, which is returned grown; a name cannot hold line ends, so it can
// not end the part.
func MultipartEdit(scratch, body []byte, model Span, upstreamModel string) (e Edit, out []byte, ok bool) {
	off, end := int(model.Off), int(model.Off+model.Len)
	if model.Len == 0 || upstreamModel == "" || string(body[off:end]) == upstreamModel {
		return Edit{}, scratch, false
	}
	if strings.ContainsAny(upstreamModel, "\r\n") {
		panic("BUG: a model name with a line end")
	}
	from := len(scratch)
	scratch = append(scratch, upstreamModel...)
	return Edit{off, end, scratch[from:len(scratch):len(scratch)]}, scratch, true
}

// firstDelimiter finds the delimiter that begins the first part. What comes
// before it is a preamble and means nothing.
func firstDelimiter(body, delimiter []byte) (pos int, last, ok bool) {
	if bytes.HasPrefix(body, delimiter[2:]) {
		return delimiterEnd(body, len(delimiter)-2)
	}
	n := bytes.Index(body, delimiter)
	if n < 0 {
		return 0, false, false
	}
	return delimiterEnd(body, n+len(delimiter))
}

// delimiterEnd reads what follows a boundary: "--" after the last part, else
// blanks and CRLF (RFC 2046 §5.1.1).
func delimiterEnd(body []byte, pos int) (next int, last, ok bool) {
	if bytes.HasPrefix(body[pos:], []byte("--")) {
		return pos + 2, true, true
	}
	for pos < len(body) && (body[pos] == ' ' || body[pos] == '\t') {
		pos++
	}
	return pos + 2, false, bytes.HasPrefix(body[pos:], []byte("\r\n"))
}

// partIsModel reads the head of a part, whose lines all end in CRLF.
func partIsModel(head []byte) (isModel bool, fault ScanFault) {
	seen := false
	for len(head) > 0 {
		line, rest, _ := bytes.Cut(head, []byte("\r\n"))
		head = rest
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || len(name) == 0 || bytes.ContainsAny(name, " \t") || bytes.ContainsAny(value, "\r\n") {
			return false, faultForm
		}
		if !bytes.EqualFold(name, []byte("Content-Disposition")) {
			continue
		}
		kind, params, err := mime.ParseMediaType(string(value))
		if err != nil || kind != "form-data" || seen {
			return false, faultForm
		}
		seen = true
		isModel = params["name"] == formModel
		if _, file := params["filename"]; file && isModel {
			return false, faultFormModelFile
		}
	}
	if !seen {
		return false, faultForm
	}
	return isModel, ScanOK
}
