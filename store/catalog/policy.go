package catalog

import (
	"slices"
	"time"
)

// A Policy governs relay keys.
type Policy struct {
	Name     string
	Group    Group
	names    []string // sorted: models allowed by exact name
	globs    []glob   // at most policyGlobsMax
	everyone bool     // "*"
}

// Allows reports whether the policy lets a model be used, by its name. It does
// not allocate.
func (p *Policy) Allows(m *Model) bool {
	if p.everyone {
		return true
	}
	if _, found := slices.BinarySearch(p.names, m.Name); found {
		return true
	}
	for i := range p.globs {
		if p.globs[i].matches(m.Name) {
			return true
		}
	}
	return false
}

var (
	pools   = []option{{"round-robin", true}, {"least-recently-used", false}, {"prioritized", false}, {"weighted", false}}
	rescues = []option{{"off", true}, {"hold", false}}
	hangUps = []option{{"cancel", true}, {"drain", false}, {"drain_until", false}}
)

// compilePolicies compiles the section policies.
func (c *compiler) compilePolicies(root *Place) {
	if !sized(c, root, "policies", 0, &c.doc.Policies, true, policiesMax) {
		return
	}
	section := root.Field("policies")
	c.tables.Policies = make([]*Policy, 0, len(c.doc.Policies.Value))
	for i := range c.doc.Policies.Value {
		f := &c.doc.Policies.Value[i]
		if f.State != Given {
			continue
		}
		at, e := section.Item(i), &f.Value
		p := new(Policy)
		c.tables.Policies = append(c.tables.Policies, p)
		p.Name = name(c, &at, i, f.Line, &e.Name, c.policies, p)
		p.Group = c.group(&at, "policy", p.Name, &e.Limits, p)
		c.allowed(&at, f.Line, e, p)
		c.choose(&at, "pool", &e.Pool, pools, "keys are taken round-robin")
		c.choose(&at, "rescue", &e.Rescue, rescues, "a stream that breaks ends in an error frame")
		c.choose(&at, "on_hangup", &e.HangUp, hangUps, "the upstream is cancelled when the caller leaves")
		c.retry(&at, e)
		c.fallback(&at, e)
	}
}

// allowed compiles the models of a policy.
func (c *compiler) allowed(at *Place, line int32, e *PolicyEntry, p *Policy) {
	if !sized(c, at, "models", line, &e.Models, true, policyModelsMax) {
		return
	}
	list := at.Field("models")
	for i := range e.Models.Value {
		f := &e.Models.Value[i]
		item := list.Item(i)
		g, star, ok := c.pattern(item, f)
		switch {
		case !ok:
		case f.Value == "*":
			p.everyone = true
		case star:
			p.globs = append(p.globs, g)
		default:
			c.knownModel(item, f)
			p.names = append(p.names, f.Value)
		}
	}
	slices.Sort(p.names)
	if len(p.globs) > policyGlobsMax {
		c.problems.Error(list, e.Models.Line, "holds %d entries with *; allowed are %d", len(p.globs), policyGlobsMax)
	}
}

// knownModel checks that a field names a model, not merely an alias of one.
func (c *compiler) knownModel(at Place, f *Field[string]) {
	if _, found := c.models[f.Value]; found || c.models == nil {
		return
	}
	if m := c.tables.Model([]byte(f.Value)); m != nil {
		c.problems.Error(at, f.Line, "%s is an alias; write the name of its model, %s", c.quote(f.Value), c.quote(m.Name))
		return
	}
	c.problems.Error(at, f.Line, "there is no model named %s", c.quote(f.Value))
}

// retry checks the rules of further attempts, which are not carried out yet.
func (c *compiler) retry(at *Place, e *PolicyEntry) {
	if e.Retry.State != Given {
		return
	}
	place, r := at.Field("retry"), &e.Retry.Value
	attempts := c.number(&place, "attempts", &r.Attempts, 1, 1, attemptsMax)
	c.duration(&place, "budget", &r.Budget, 0, time.Millisecond, retryBudgetMax)
	if attempts > 1 || r.RetrySent.Value {
		c.problems.Warn(place, e.Retry.Line, "is not enforced by this version: every request has one attempt")
	}
}

// fallback checks the models to turn to, which is not done yet.
func (c *compiler) fallback(at *Place, e *PolicyEntry) {
	if len(e.Fallback.Value) == 0 || !sized(c, at, "fallback", 0, &e.Fallback, false, fallbacksMax) {
		return
	}
	list := at.Field("fallback")
	c.problems.Warn(list, e.Fallback.Line, "is not enforced by this version: no other model is tried")
	seen := make(map[string]bool, len(e.Fallback.Value))
	for i := range e.Fallback.Value {
		f := &e.Fallback.Value[i]
		if f.State != Given {
			continue
		}
		c.knownModel(list.Item(i), f)
		if seen[f.Value] {
			c.problems.Error(list.Item(i), f.Line, "%s is listed twice", c.quote(f.Value))
		}
		seen[f.Value] = true
	}
}
