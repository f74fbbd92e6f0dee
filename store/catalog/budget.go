package catalog

import "time"

// budget compiles a budget into one more limit of the account's group.
func (c *compiler) budget(at *Place, f *Field[BudgetEntry], a *Account) {
	if f.State != Given {
		return
	}
	place, e := at.Field("budget"), &f.Value
	limit := Limit{Meter: Cost, Strategy: Calendar}
	if required(c, &place, "usd", f.Line, &e.USD) {
		nano, wrong := parseDecimal(e.USD.Value, nanoPlaces, budgetUSDMax)
		switch {
		case wrong != "":
			c.problems.Error(place.Field("usd"), e.USD.Line, "%s", wrong)
		case nano == 0:
			c.problems.Error(place.Field("usd"), e.USD.Line, "must be above zero")
		}
		limit.Amount = nano
	}
	required(c, &place, "period", f.Line, &e.Period)
	dated := c.calendar(&place, &e.Period, &e.Timezone, &limit)
	reserve := c.index(&place, "reserve", &e.Reserve, reserves)
	if limit.Amount == 0 || !dated || reserve < 0 {
		return
	}
	if len(a.Group.Limits) == limitsMax {
		c.problems.Error(place, f.Line, "is one limit too many: an account may have %d, its budget among them", limitsMax)
		return
	}
	limit.Reserve = Reserve(reserve)
	c.priced(place, f.Line, a)
	a.Group.Name = "account/" + a.Name
	a.Group.ID = stableHash(a.Group.Name)
	a.Group.Limits = append(a.Group.Limits, limit)
}

// zone finds a time zone; nil when there is none of that name. Each is read once.
func (c *compiler) zone(at *Place, f *Field[string]) *time.Location {
	zone, checked := c.zones[f.Value]
	if !checked {
		var err error
		if zone, err = time.LoadLocation(f.Value); err != nil || f.Value == "" || f.Value == "Local" {
			zone = nil
		}
		if c.zones == nil {
			c.zones = make(map[string]*time.Location)
		}
		c.zones[f.Value] = zone
	}
	if zone == nil {
		c.problems.Error(at.Field("timezone"), f.Line, "is no time zone such as UTC or Europe/Berlin")
	}
	return zone
}

// A spender is where a limit on cost stands.
type spender struct {
	at   Place
	line int32
}

// priced notes that a limit on cost of this owner needs prices.
func (c *compiler) priced(at Place, line int32, owner any) {
	if c.spenders == nil {
		c.spenders = make(map[any]spender)
	}
	if _, noted := c.spenders[owner]; !noted {
		c.spenders[owner] = spender{at, line}
	}
}

// checkPrices refuses limits on cost over models that have no price: they
// would limit nothing.
func (c *compiler) checkPrices() {
	if len(c.spenders) == 0 {
		return
	}
	needs := make(map[*Policy]spender)
	for owner, s := range c.spenders {
		if p, ok := owner.(*Policy); ok {
			needs[p] = s
		}
	}
	for _, k := range c.tables.RelayKeys {
		if k.Policy == nil {
			continue
		}
		for _, owner := range []any{k, k.Account} {
			s, limited := c.spenders[owner]
			if _, known := needs[k.Policy]; limited && !known {
				needs[k.Policy] = s
			}
		}
	}
	for _, m := range c.tables.Models {
		for _, b := range m.Bindings {
			if b.priced || b.Host == nil {
				continue
			}
			for p, s := range needs {
				if p.Allows(m) {
					c.problems.Error(s.at, s.line, "limits cost, and model %s has no price at host %s", c.quote(m.Name), c.quote(b.Host.Name))
				}
			}
			if s, ok := c.spenders[b.Host]; ok {
				c.problems.Error(s.at, s.line, "limits cost, and model %s has no price at host %s", c.quote(m.Name), c.quote(b.Host.Name))
			}
		}
	}
}
