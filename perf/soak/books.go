package soak

import (
	"fmt"
	"maps"
	"slices"

	"relay/perf/money"
	"relay/usage"
	"relay/usage/spool"
)

// variants is after how many requests of each kind the generator sends the same
// ones again, with the same keys.
const variants = 512

// shares adds how many of the first n requests of a load have each key: the
// kinds take turns, and within each the keys, from the first on after every
// variants requests.
func shares(sent []int64, n int64) {
	const kinds = 2
	for kind := range int64(kinds) {
		of := (n + kinds - 1 - kind) / kinds // requests of the kind
		for i := range int64(variants) {
			sent[i%int64(len(sent))] += (of + variants - 1 - i) / variants
		}
	}
}

func sum(counts []int64) (all int64) {
	for _, n := range counts {
		all += n
	}
	return all
}

// A book is what the rows of one account say.
type book struct {
	rows, cost int64
	due        int64 // what the rows cost if the mock's usage is charged once at the prices of the catalog
}

// books reads the rows of all accounts.
type books struct {
	accounts map[string]*book
	prices   map[string]usage.Cost // of the usage that the mock reports, by model
	wrong    int64                 // whole answers with another usage than the mock's
	repriced int64                 // rows with another price than the first of their model
}

func (b *books) add(r *spool.Record) {
	e := &r.Event
	a := b.accounts[e.Account]
	if a == nil {
		a = &book{}
		b.accounts[e.Account] = a
	}
	a.rows++
	a.cost += e.Cost.Total
	if e.Outcome != usage.Completed || e.Status != 200 {
		a.due += e.Cost.Total // by the row's own tokens, which money.Read charges anew
		return
	}
	if e.Source != usage.Reported || e.Tokens.Input != tokensIn || e.Tokens.Output != tokensOut {
		b.wrong++
	}
	price, known := b.prices[e.Model]
	if !known {
		price = usage.Charge(&usage.Tokens{Input: tokensIn, Output: tokensOut}, &e.Price)
		b.prices[e.Model] = price
	}
	if price.Total == 0 || usage.Charge(&usage.Tokens{Input: tokensIn, Output: tokensOut}, &e.Price) != price {
		b.repriced++
	}
	a.due += price.Total
}

// judgeMoney reads the spool of the target, which has ended, and asks whether
// there is a row for each request, in its account, at its cost.
func (s *soak) judgeMoney() error {
	r := s.result
	b := books{accounts: make(map[string]*book), prices: make(map[string]usage.Cost)}
	count, err := money.ReadRows(s.t.DataDir, b.add)
	if err != nil {
		return fmt.Errorf("soak: %w", err)
	}
	r.Count, r.Accounts = &count, len(b.accounts)
	if count.Unsealed > 0 {
		r.problem("end", "the target was killed, or closed none of its books, when it was asked to end")
	}
	if what := money.Check(count, r.Seen); what != "" {
		r.problem("rows", "%s", what)
	}
	s.judgeAccounts(&b)
	if b.wrong > 0 {
		r.problem("usage", "%d rows of whole answers do not have the usage that was reported for them", b.wrong)
	}
	if b.repriced > 0 {
		r.problem("cost", "%d rows have no price, or another one than the rest of their model", b.repriced)
	}
	return nil
}

// judgeAccounts compares each account with what was sent for it. They are equal
// but for requests that were lost, or refused before their key was known: an
// account may lack as many.
func (s *soak) judgeAccounts(b *books) {
	r := s.result
	lacking := r.Seen.Lost
	for status, n := range r.Seen.ByStatus {
		if status >= 300 {
			lacking += max(n-r.Count.ByStatus[status], 0)
		}
	}
	if all := sum(s.sent); lacking == 0 && r.Count.Rows != all {
		r.problem("rows", "%d requests have %d rows", all, r.Count.Rows)
	}
	named, last := 0, ""
	problem := func(check, format string, args ...any) {
		last = check
		if named++; named <= problemsMax {
			r.problem(check, format, args...)
		}
	}
	for i, sent := range s.sent {
		name := fmt.Sprintf("team-%d", i)
		a := b.accounts[name]
		if a == nil {
			a = &book{}
		}
		delete(b.accounts, name)
		if a.rows < sent {
			r.Missing += sent - a.rows
		}
		if a.rows > sent || a.rows < sent-lacking {
			problem("accounts", "%s has %d rows of %d requests", name, a.rows, sent)
		}
		if a.cost != a.due || r.Count.CostByAccount[name] != a.cost {
			problem("cost", "%s owes %s USD, its rows cost %s", name, usage.FormatUSD(a.due), usage.FormatUSD(a.cost))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.accounts)) {
		problem("accounts", "%q has %d rows and no key", name, b.accounts[name].rows)
	}
	if r.Missing > lacking {
		problem("accounts", "%d rows are missing over all accounts, %d requests were lost or refused without one", r.Missing, lacking)
	}
	if named > problemsMax {
		r.problem(last, "%d more differences of this kind", named-problemsMax)
	}
}
