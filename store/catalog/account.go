package catalog

import (
	"time"
	_ "time/tzdata" // budgets name time zones, and not every machine has them
)

// An Account pays.
type Account struct {
	Name  string
	Group Group
}

var periods = []option{{"day", true}, {"week", true}, {"month", true}, {"year", true}}

// compileAccounts compiles the section accounts.
func (c *compiler) compileAccounts(root *Place) {
	if !sized(c, root, "accounts", 0, &c.doc.Accounts, false, accountsMax) {
		return
	}
	section := root.Field("accounts")
	c.tables.Accounts = make([]*Account, 0, len(c.doc.Accounts.Value))
	zones := map[string]bool{} // known to exist or not, so that each is read once
	for i := range c.doc.Accounts.Value {
		f := &c.doc.Accounts.Value[i]
		if f.State != Given {
			continue
		}
		at := section.Item(i)
		a := &Account{}
		c.tables.Accounts = append(c.tables.Accounts, a)
		a.Name = name(c, &at, i, f.Line, &f.Value.Name, c.accounts, a)
		a.Group = c.group(&at, "account", a.Name, &f.Value.Limits)
		c.budget(&at, &f.Value.Budget, zones)
	}
}

// budget checks a budget, which nothing watches yet.
func (c *compiler) budget(at *Place, f *Field[BudgetEntry], zones map[string]bool) {
	if f.State != Given {
		return
	}
	place, e := at.Field("budget"), &f.Value
	c.problems.Warn(place, f.Line, "is not enforced by this version: the account can spend more")
	if required(c, &place, "usd", f.Line, &e.USD) {
		nano, wrong := parseDecimal(e.USD.Value, nanoPlaces, budgetUSDMax)
		switch {
		case wrong != "":
			c.problems.Error(place.Field("usd"), e.USD.Line, "%s", wrong)
		case nano == 0:
			c.problems.Error(place.Field("usd"), e.USD.Line, "must be above zero")
		}
	}
	required(c, &place, "period", f.Line, &e.Period)
	c.choose(&place, "period", &e.Period, periods, "")
	if e.Timezone.State != Given {
		return
	}
	zone := e.Timezone.Value
	exists, checked := zones[zone]
	if !checked {
		_, err := time.LoadLocation(zone)
		exists = err == nil && zone != "" && zone != "Local"
		zones[zone] = exists
	}
	if !exists {
		c.problems.Error(place.Field("timezone"), e.Timezone.Line, "is no time zone such as UTC or Europe/Berlin")
	}
}
