package source

import (
	"fmt"
	"strings"

	"relay/store/catalog"
)

// Summary says in a few lines what a catalog holds and where its models lead.
// It shows no secret.
func Summary(t *catalog.Tables) string {
	var b strings.Builder
	hostKeys := 0
	for _, h := range t.Hosts {
		hostKeys += len(h.Keys)
	}
	for i, c := range []struct {
		count int
		noun  [2]string
	}{
		{len(t.Hosts), [2]string{"host", "hosts"}},
		{hostKeys, [2]string{"host key", "host keys"}},
		{len(t.Models), [2]string{"model", "models"}},
		{len(t.Policies), [2]string{"policy", "policies"}},
		{len(t.Accounts), [2]string{"account", "accounts"}},
		{len(t.RelayKeys), [2]string{"relay key", "relay keys"}},
	} {
		if i > 0 {
			b.WriteString(", ")
		}
		noun := c.noun[1]
		if c.count == 1 {
			noun = c.noun[0]
		}
		fmt.Fprintf(&b, "%d %s", c.count, noun)
	}
	b.WriteByte('\n')
	for i, m := range t.Models {
		if i == summaryMax {
			fmt.Fprintf(&b, "… and %d more models\n", len(t.Models)-summaryMax)
			break
		}
		b.WriteString(route(m))
	}
	return b.String()
}

// route is one line: the names of a model, and its bindings by priority.
func route(m *catalog.Model) string {
	var b strings.Builder
	b.WriteString(m.Name)
	if len(m.Aliases) > 0 {
		shown := m.Aliases[:min(len(m.Aliases), routesMax)]
		fmt.Fprintf(&b, " (also %s", strings.Join(shown, ", "))
		if more := len(m.Aliases) - len(shown); more > 0 {
			fmt.Fprintf(&b, " and %d more", more)
		}
		b.WriteByte(')')
	}
	for i, binding := range m.Bindings {
		switch {
		case i == routesMax:
			fmt.Fprintf(&b, " … and %d more", len(m.Bindings)-routesMax)
		case i == 0:
			b.WriteString(" -> ")
		case i < routesMax && binding.Priority == m.Bindings[i-1].Priority:
			b.WriteString(" | ")
		case i < routesMax:
			b.WriteString(", then ")
		}
		if i >= routesMax {
			break
		}
		fmt.Fprintf(&b, "%s:%s", binding.Host.Name, binding.UpstreamModel)
	}
	b.WriteByte('\n')
	return b.String()
}
