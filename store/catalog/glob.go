package catalog

import (
	"cmp"
	"slices"
	"strings"
)

// A glob is a pattern with one '*', which stands for any bytes, also none.
type glob struct{ prefix, suffix string }

// parseGlob splits a pattern; star is false when it is an exact text, which is
// then the prefix. ok is false when there is more than one '*'.
func parseGlob(pattern string) (g glob, star, ok bool) {
	g.prefix, g.suffix, star = strings.Cut(pattern, "*")
	return g, star, !strings.Contains(g.suffix, "*")
}

func (g glob) matches(text string) bool {
	return len(text) >= len(g.prefix)+len(g.suffix) &&
		strings.HasPrefix(text, g.prefix) && strings.HasSuffix(text, g.suffix)
}

// A globIndex finds the glob with the most literal bytes that matches. It does
// one map probe for each distinct pair of lengths, whatever the number of
// globs: real catalogs have a few dozen pairs, and there are at most
// globShapesMax.
type globIndex struct {
	models map[glob]*Model
	shapes []globShape // most literal bytes first, then the longer prefix
}

// A globShape is the lengths of the two parts of a glob, in bytes.
type globShape struct{ prefix, suffix uint16 }

func (s globShape) literal() int { return int(s.prefix) + int(s.suffix) }

// seal orders the shapes once all globs are in.
func (x *globIndex) seal() {
	seen := make(map[globShape]struct{})
	for g := range x.models {
		seen[globShape{uint16(len(g.prefix)), uint16(len(g.suffix))}] = struct{}{}
	}
	for s := range seen {
		x.shapes = append(x.shapes, s)
	}
	slices.SortFunc(x.shapes, func(a, b globShape) int {
		return cmp.Or(cmp.Compare(b.literal(), a.literal()), cmp.Compare(b.prefix, a.prefix))
	})
}

// find does not allocate: the conversions inside an index expression borrow.
func (x *globIndex) find(name []byte) *Model {
	for _, s := range x.shapes {
		if s.literal() > len(name) {
			continue
		}
		if m := x.models[glob{string(name[:s.prefix]), string(name[len(name)-int(s.suffix):])}]; m != nil {
			return m
		}
	}
	return nil
}
