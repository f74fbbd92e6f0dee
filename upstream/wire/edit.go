package wire

import (
	"slices"
	"unicode/utf8"
)

// An Edit replaces body[Off:End] by Text.
type Edit struct {
	Off, End int
	Text     []byte
}

const includeUsage = `"include_usage":true`

// AppendModel appends the unescaped model name to dst.
func (s *Scan) AppendModel(dst, body []byte) []byte {
	if s.Model.Len == 0 {
		return dst
	}
	return appendUnescaped(dst, body[s.Model.Off+1:s.Model.Off+s.Model.Len-1])
}

// AppendEdits appends the edits that a same-shape request needs, in order of
// offset, to edits: the model value when upstreamModel differs from what was
// sent, and stream_options.include_usage when inject is true, the request
// streams and the caller did not ask. scratch is used for the texts and
// returned grown; the texts live as long as its bytes are left alone. A BOM is
// cut off by an edit too. An empty upstreamModel leaves the model as it is, and
// a model that the caller left out stays out.
func (s *Scan) AppendEdits(edits []Edit, scratch, body []byte, upstreamModel string, inject bool) ([]Edit, []byte) {
	first := len(edits)
	if s.bom {
		edits = append(edits, Edit{Off: 0, End: len(byteOrderMark)})
	}
	if s.Model.Len > 0 && upstreamModel != "" {
		from := len(scratch)
		scratch = s.AppendModel(scratch, body)
		differs := string(scratch[from:]) != upstreamModel
		scratch = scratch[:from]
		if differs {
			scratch = appendQuoted(scratch, upstreamModel)
			off := int(s.Model.Off)
			edits = append(edits, Edit{off, off + int(s.Model.Len), scratch[from:len(scratch):len(scratch)]})
		}
	}
	if inject && s.Stream && !s.IncludeUsage && scanFields[s.route]>>fieldOptions&1 != 0 {
		from := len(scratch)
		var off, end int
		scratch, off, end = s.appendUsageOption(scratch, body)
		edits = append(edits, Edit{off, end, scratch[from:len(scratch):len(scratch)]})
	}
	slices.SortFunc(edits[first:], func(a, b Edit) int { return a.Off - b.Off })
	return edits, scratch
}

// appendUsageOption appends the text that makes the body ask for usage, and
// returns which bytes it replaces. A missing stream_options goes to the end of
// the object, so that the body begins with the same bytes as without Relay.
func (s *Scan) appendUsageOption(dst, body []byte) (out []byte, off, end int) {
	if s.include.Len > 0 {
		off = int(s.include.Off)
		return append(dst, "true"...), off, off + int(s.include.Len)
	}
	if s.StreamOptions.Len == 0 {
		if s.members {
			dst = append(dst, ',')
		}
		dst = append(dst, `"stream_options":{`+includeUsage+`}`...)
		return dst, int(s.closeOff), int(s.closeOff)
	}
	off = int(s.StreamOptions.Off)
	end = off + int(s.StreamOptions.Len)
	if body[off] == 'n' {
		return append(dst, `{`+includeUsage+`}`...), off, end
	}
	dst = append(dst, includeUsage...)
	next := off + 1
	for isBlank(body[next]) {
		next++
	}
	if body[next] != '}' {
		dst = append(dst, ',')
	}
	return dst, off + 1, off + 1
}

// EditedLen is the length of the body after the edits, in bytes.
func EditedLen(body []byte, edits []Edit) int {
	n := len(body)
	for _, e := range edits {
		n += len(e.Text) - (e.End - e.Off)
	}
	return n
}

// AppendEdited appends the body with its edits, which are in order of offset.
func AppendEdited(dst, body []byte, edits []Edit) []byte {
	from := 0
	for _, e := range edits {
		dst = append(dst, body[from:e.Off]...)
		dst = append(dst, e.Text...)
		from = e.End
	}
	return append(dst, body[from:]...)
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends s as a JSON string. What is not UTF-8 becomes U+FFFD;
// U+2028 and U+2029 are escaped, since some readers take them for line ends.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' && c != 0x7f {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if c >= utf8.RuneSelf && (r != utf8.RuneError || n > 1) && r != '\u2028' && r != '\u2029' {
			i += n
			continue
		}
		dst = append(dst, s[from:i]...)
		i += n
		from = i
		if c == '"' || c == '\\' {
			dst = append(dst, '\\', c)
			continue
		}
		dst = append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// appendUnescaped appends what the inside of a valid JSON string stands for.
// Half of a surrogate pair becomes U+FFFD; bytes that are not UTF-8 stay.
func appendUnescaped(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			dst = append(dst, raw[i])
			i++
			continue
		}
		if raw[i+1] != 'u' {
			dst = append(dst, escaped[raw[i+1]])
			i += 2
			continue
		}
		r := hexRune(raw[i+2:])
		i += 6
		if r&0xfc00 == 0xd800 && i+6 <= len(raw) && raw[i] == '\\' && raw[i+1] == 'u' {
			if low := hexRune(raw[i+2:]); low&0xfc00 == 0xdc00 {
				r = 0x10000 + (r&0x3ff)<<10 + low&0x3ff
				i += 6
			}
		}
		dst = utf8.AppendRune(dst, r) // a lone half is U+FFFD there
	}
	return dst
}

// hexRune is the value of four hex digits.
func hexRune(p []byte) rune {
	var r rune
	for _, c := range p[:4] {
		r = r<<4 | rune(hexDigit(c))
	}
	return r
}
