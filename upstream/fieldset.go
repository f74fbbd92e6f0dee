package upstream

// A fieldSet is a set of field names and of prefixes of names, in lower case.
// Both are kept by first letter, since most fields of a head are in no set.
type fieldSet struct {
	names    ['z' - 'a' + 1][]string
	prefixes ['z' - 'a' + 1][]string
}

// newFieldSet makes a set; an entry that ends in '*' is a prefix.
func newFieldSet(entries ...string) *fieldSet {
	s := &fieldSet{}
	for _, e := range entries {
		if len(e) >= fieldNameBytesMax {
			panic("BUG: a field name that is longer than what is looked at")
		}
		first := e[0] - 'a'
		if last := len(e) - 1; e[last] == '*' {
			s.prefixes[first] = append(s.prefixes[first], e[:last])
			continue
		}
		s.names[first] = append(s.names[first], e)
	}
	return s
}

// has reports whether a name, in lower case, is in the set.
func (s *fieldSet) has(name []byte) bool {
	if len(name) == 0 || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	first := name[0] - 'a'
	for _, e := range s.names[first] {
		if string(name) == e { // compares the lengths first
			return true
		}
	}
	for _, p := range s.prefixes[first] {
		if len(name) >= len(p) && string(name[:len(p)]) == p {
			return true
		}
	}
	return false
}

// lower writes the start of a name in lower case into buf.
func lower(buf *[fieldNameBytesMax]byte, name []byte) []byte {
	n := copy(buf[:], name)
	for i, c := range buf[:n] {
		if 'A' <= c && c <= 'Z' {
			buf[i] = c + ('a' - 'A')
		}
	}
	return buf[:n]
}
