package money

import (
	"fmt"
	"maps"
	"slices"
)

// A Count is what the spool of a gateway that has ended says.
type Count struct {
	Rows       int64
	ByStatus   map[int]int64 // status sent to the caller; 0 = none
	ByAccount  map[string]int64
	Cost       int64 // nano-USD, all rows
	Duplicates int64 // rows with the request id of an earlier row
	// Unended are admitted records of exchanges whose end the gateway did not
	// record: without a row, or with the interrupted one that the closing of
	// their run has written, which is in Rows too.
	Unended int64

	Interrupted   int64            // rows that the closing of a run has written
	CostByAccount map[string]int64 // nano-USD
	Mispriced     int64            // rows whose cost is not that of their tokens at their price
	Unsealed      int              // runs that were not closed: their gateway was killed, or still lives
}

// Seen is what the generators saw, warm-up and drain included. It holds only
// requests to a known route with a known relay key that were sent to the
// gateway whose spool is read.
type Seen struct {
	ByStatus map[int]int64 // whole answers
	Lost     int64         // requests whose end they did not see
}

// rowless are the statuses of answers that Relay may give before it knows the
// relay key, and then without a row: to a head that it cannot read, a wrong
// path, method or length, no or a wrong key, and at its limits of requests in
// flight (503, on Anthropic routes 529) and of connections (503).
var rowless = map[int]bool{
	400: true, 401: true, 404: true, 405: true, 408: true, 413: true, 414: true, 417: true,
	431: true, 501: true, 503: true, 505: true, 529: true,
}

// Check compares the spool with what was seen. It returns the first difference
// as a sentence; "" = the money adds up.
//
// Relay writes one row for each request whose relay key it knows, whatever
// becomes of it, before the last byte of the answer leaves. The row has the
// status that was sent, or 0 when the caller left before any. So:
//
//   - no two rows have one request id, no admitted exchange is without an end,
//     and each row costs what its tokens cost;
//   - for each status there are at least as many rows as whole answers. Only
//     for the statuses that are given before the key is known there may be
//     fewer;
//   - what rows there are beyond the answers, over all statuses and with those
//     that have none, belongs to requests that were lost: there are no more of
//     them. With none lost, the numbers of each status are equal.
func Check(c Count, s Seen) string {
	switch {
	case c.Duplicates > 0:
		return fmt.Sprintf("%d rows have the request id of an earlier row", c.Duplicates)
	case c.Unended > 0:
		return fmt.Sprintf("%d admitted requests have no row of their end (%d of them one written by the closing of the run)", c.Unended, c.Interrupted)
	case c.Mispriced > 0:
		return fmt.Sprintf("%d rows do not cost what their tokens cost at their price", c.Mispriced)
	}
	all := maps.Clone(s.ByStatus)
	if all == nil {
		all = make(map[int]int64)
	}
	for status := range c.ByStatus {
		all[status] += 0
	}
	var beyond, most int64
	mostOf := 0
	for _, status := range slices.Sorted(maps.Keys(all)) {
		rows, answers := c.ByStatus[status], s.ByStatus[status]
		if rows < answers && !rowless[status] {
			return fmt.Sprintf("%d answers with status %d have %d rows: %d are missing", answers, status, rows, answers-rows)
		}
		if more := rows - answers; more > 0 {
			beyond += more
			if more > most {
				most, mostOf = more, status
			}
		}
	}
	if beyond > s.Lost {
		return fmt.Sprintf("%d rows are of no answer and %d requests were lost: %d are too many; status %d has %d rows and %d answers",
			beyond, s.Lost, beyond-s.Lost, mostOf, c.ByStatus[mostOf], s.ByStatus[mostOf])
	}
	return ""
}
