package catalog

import (
	"cmp"
	"slices"
)

// A Model is a name that callers use.
type Model struct {
	Name            string
	Aliases         []string
	Bindings        []*Binding // by priority, then order of the source
	MaxOutputTokens int64      // 0 = unknown
	Flags           []string
}

// A Binding says where a model is served and for how much.
type Binding struct {
	Model         *Model
	Host          *Host
	UpstreamModel string
	Priority      int    // lower first
	Weight        int    // ≥ 1, among equal priorities
	Price         *Price // never nil; all zero when the catalog gives none
	priced        bool   // the catalog gives one
}

// modelFlags matter to the translation between shapes.
var modelFlags = []option{{"no_sampling", false}, {"reasoning", false}, {"reasoning: adaptive", false}, {"reasoning: budget", false}}

// compileModels compiles the section models. Names come before aliases, so
// that an alias which is also a name is found whatever their order.
func (c *compiler) compileModels(root *Place) {
	if !sized(c, root, "models", 0, &c.doc.Models, true, modelsMax) {
		return
	}
	section := root.Field("models")
	entries := c.doc.Models.Value
	c.tables.Models = make([]*Model, 0, len(entries))
	c.tables.byName = make(map[string]*Model, 2*len(entries))
	c.tables.byGlob.models = make(map[glob]*Model)
	models := make([]*Model, len(entries)) // by index of the source
	for i := range entries {
		f := &entries[i]
		if f.State != Given {
			continue
		}
		at := section.Item(i)
		m := &Model{}
		models[i] = m
		c.tables.Models = append(c.tables.Models, m)
		m.Name = name(c, &at, i, f.Line, &f.Value.Name, c.models, m)
		c.tables.byName[m.Name] = m
		c.bindings(&at, f.Line, &f.Value, m)
		m.Flags = c.flags(&at, &f.Value.Flags, modelFlags)
		m.MaxOutputTokens = c.number(&at, "max_output_tokens", &f.Value.MaxOutputTokens, 0, 1, outputTokensMax)
	}
	for i := range entries {
		if f := &entries[i]; f.State == Given {
			at := section.Item(i)
			c.aliases(&at, &f.Value.Aliases, models[i])
		}
	}
	c.tables.byGlob.seal()
	if n := len(c.tables.byGlob.shapes); n > globShapesMax {
		c.problems.Error(section, c.doc.Models.Line, "the aliases with * have %d different lengths before and after it; allowed are %d", n, globShapesMax)
	}
}

// aliases makes further names lead to a model.
func (c *compiler) aliases(at *Place, list *List[string], m *Model) {
	if !sized(c, at, "aliases", 0, list, false, aliasesMax) {
		return
	}
	field := at.Field("aliases")
	for i := range list.Value {
		f := &list.Value[i]
		item := field.Item(i)
		g, star, ok := c.pattern(item, f)
		if !ok {
			continue
		}
		var old *Model
		if star {
			old = c.tables.byGlob.models[g]
			c.tables.byGlob.models[g] = m
		} else {
			old = c.tables.byName[f.Value]
			c.tables.byName[f.Value] = m
		}
		switch {
		case old == m:
			c.problems.Error(item, f.Line, "%s leads to this model already", c.quote(f.Value))
		case old != nil:
			c.problems.Error(item, f.Line, "%s leads to the model %s already", c.quote(f.Value), c.quote(old.Name))
		}
		m.Aliases = append(m.Aliases, f.Value)
	}
}

// pattern reads a name with at most one '*'.
func (c *compiler) pattern(at Place, f *Field[string]) (g glob, star, ok bool) {
	if f.State != Given {
		return g, false, false
	}
	g, star, ok = parseGlob(f.Value)
	switch {
	case f.Value == "" || len(f.Value) > nameBytesMax:
		c.problems.Error(at, f.Line, "is %d bytes long; allowed are 1 to %d", len(f.Value), nameBytesMax)
	case !plainText(f.Value):
		c.problems.Error(at, f.Line, "may hold printable ASCII only, without blanks, quotes and backslashes")
	case !ok:
		c.problems.Error(at, f.Line, `holds more than one "*"; allowed is one`)
	case c.credential(f.Value):
		c.problems.Error(at, f.Line, "looks like a credential; names are shown in logs and metrics")
	default:
		return g, star, true
	}
	return g, false, false
}

// bindings compiles where a model is served.
func (c *compiler) bindings(at *Place, line int32, e *ModelEntry, m *Model) {
	var shared *Price // of the model
	if e.Price.State == Given {
		place := at.Field("price")
		shared = c.price(&place, &e.Price)
	}
	if !sized(c, at, "bindings", line, &e.Bindings, true, bindingsMax) {
		return
	}
	list := at.Field("bindings")
	m.Bindings = make([]*Binding, 0, len(e.Bindings.Value))
	for i := range e.Bindings.Value {
		f := &e.Bindings.Value[i]
		if f.State != Given {
			continue
		}
		item := list.Item(i)
		b := &Binding{
			Model:         m,
			Host:          find(c, &item, "host", f.Line, &f.Value.Host, "host", c.hosts),
			UpstreamModel: m.Name,
			Priority:      int(c.number(&item, "priority", &f.Value.Priority, 0, 0, priorityMax)),
			Weight:        int(c.number(&item, "weight", &f.Value.Weight, 1, 1, weightMax)),
			Price:         shared,
			priced:        e.Price.State != Absent || f.Value.Price.State != Absent,
		}
		if u := &f.Value.UpstreamModel; u.State == Given && c.wellNamed(item.Field("upstream_model"), u) {
			b.UpstreamModel = u.Value
		}
		switch own := &f.Value.Price; {
		case own.State == Given:
			place := item.Field("price")
			b.Price = c.price(&place, own)
		case shared == nil && own.State == Absent && e.Price.State == Absent:
			c.problems.Warn(item, f.Line, "has no price, nor has its model: its use is counted at no cost")
		}
		if b.Price == nil {
			b.Price = &Price{}
		}
		m.Bindings = append(m.Bindings, b)
	}
	slices.SortStableFunc(m.Bindings, func(a, b *Binding) int { return cmp.Compare(a.Priority, b.Priority) })
}
