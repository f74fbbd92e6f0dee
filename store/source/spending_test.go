package source

import (
	"strings"
	"testing"
	"time"

	"relay/store/catalog"
)

// spending is a catalog whose account has a budget and limits of all kinds.
const spending = `hosts:
  - {name: h, shape: openai, base_url: "http://127.0.0.1:1/v1", keys: [{name: main, value: "plain:sk-mock"}]}
models:
  - {name: priced, bindings: [{host: h}], price: {input: 1, output: 2}}
  - {name: free, bindings: [{host: h}]}
policies:
  - {name: some, models: [priced]}
accounts:
  - name: a
    budget: {usd: 9000000, period: month, timezone: Europe/Berlin, reserve: strict}
    limits:
      - {meter: cost, amount: 0.50, window: 1h, strategy: sliding-window}
      - {meter: tokens.output, amount: 10, window: 1s, reserve: posthoc}
      - {meter: requests, amount: 9, strategy: calendar, period: week, timezone: Asia/Tokyo}
relay_keys:
  - {name: k, sha256: "` + someHash + `", account: a, policy: some}
`

func TestCheckSpending(t *testing.T) {
	tables, problems := Check([]byte(spending))
	if tables == nil {
		t.Fatalf("refused: %v", problems)
	}
	got := tables.Accounts[0].Group.Limits
	want := []catalog.Limit{
		{Meter: catalog.Cost, Strategy: catalog.SlidingWindow, Amount: 500_000_000, Window: time.Hour},
		{Meter: catalog.OutputTokens, Amount: 10, Window: time.Second, Reserve: catalog.Posthoc},
		{Meter: catalog.Requests, Strategy: catalog.Calendar, Amount: 9, Period: catalog.Week},
		{Meter: catalog.Cost, Strategy: catalog.Calendar, Amount: 9_000_000e9, Period: catalog.Month, Reserve: catalog.Strict},
	}
	if len(got) != len(want) || got[2].Zone.String() != "Asia/Tokyo" || got[3].Zone.String() != "Europe/Berlin" {
		t.Fatalf("limits %+v", got)
	}
	got[2].Zone, got[3].Zone = nil, nil
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("limit %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	if tables.Accounts[0].Group.ID == 0 {
		t.Error("the group has no id")
	}
}

// TestCheckCostNeedsPrices: a limit on cost over a model without a price would
// limit nothing. The line is that of the limit.
func TestCheckCostNeedsPrices(t *testing.T) {
	for _, tt := range []struct{ name, old, new, path string }{
		{"of the account", "models: [priced]", "models: ['*']", "accounts[0].limits[0]"},
		{"of the policy", "{name: some, models: [priced]}", "{name: some, models: [priced, free], limits: [{meter: cost, amount: 1, window: 1m}]}", "policies[0].limits[0]"},
		{"of the host key", `value: "plain:sk-mock"`, `value: "plain:sk-mock", limits: [{meter: cost, amount: 1, window: 1m}]`, "hosts[0].keys[0].limits[0]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(spending, tt.old, tt.new, 1)
			tables, problems := Check([]byte(text))
			if tables != nil {
				t.Fatal("accepted")
			}
			for _, p := range problems {
				if p.Path == tt.path && strings.Contains(p.Message, `model "free" has no price`) && p.Line > 0 {
					return
				}
			}
			t.Errorf("got %v", problems)
		})
	}
}
