package catalog

import _ "time/tzdata" // calendars name time zones, and not every machine has them

// An Account pays.
type Account struct {
	Name  string
	Group Group
}

// compileAccounts compiles the section accounts.
func (c *compiler) compileAccounts(root *Place) {
	if !sized(c, root, "accounts", 0, &c.doc.Accounts, false, accountsMax) {
		return
	}
	section := root.Field("accounts")
	c.tables.Accounts = make([]*Account, 0, len(c.doc.Accounts.Value))
	for i := range c.doc.Accounts.Value {
		f := &c.doc.Accounts.Value[i]
		if f.State != Given {
			continue
		}
		at := section.Item(i)
		a := &Account{}
		c.tables.Accounts = append(c.tables.Accounts, a)
		a.Name = name(c, &at, i, f.Line, &f.Value.Name, c.accounts, a)
		a.Group = c.group(&at, "account", a.Name, &f.Value.Limits, a)
		c.budget(&at, &f.Value.Budget, a)
	}
}
