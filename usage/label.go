package usage

import "strconv"

// outcomes and sources name the members of the closed sets, as they appear in
// JSON, metrics and SQL.
var (
	outcomes = [...]string{
		Completed: "completed", Refused: "refused", Failed: "failed",
		Cancelled: "cancelled", Cut: "cut", Interrupted: "interrupted",
	}
	sources = [...]string{
		NoTokens: "none", Reported: "reported", Estimated: "estimated", Partial: "partial",
	}
)

// The sizes of the closed sets: values from 0 to below these are members.
const (
	Outcomes = len(outcomes)
	Sources  = len(sources)
)

// String is the outcome's label.
func (o Outcome) String() string {
	if int(o) >= Outcomes {
		return "outcome " + strconv.Itoa(int(o))
	}
	return outcomes[o]
}

// String is the source's label.
func (s Source) String() string {
	if int(s) >= Sources {
		return "source " + strconv.Itoa(int(s))
	}
	return sources[s]
}

// FormatUSD writes nano-USD as an exact decimal of USD, without a sign of
// currency and without trailing zeros: 54440000 is "0.05444".
func FormatUSD(nano int64) string {
	const places = 9
	digits := strconv.FormatUint(magnitude(nano), 10)
	for len(digits) <= places {
		digits = "0" + digits
	}
	point := len(digits) - places
	end := len(digits)
	for end > point && digits[end-1] == '0' {
		end--
	}
	text := digits[:point]
	if end > point {
		text += "." + digits[point:end]
	}
	if nano < 0 {
		text = "-" + text
	}
	return text
}

// magnitude is |n|, also of the smallest int64.
func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}
