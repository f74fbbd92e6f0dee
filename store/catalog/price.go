package catalog

import (
	"fmt"
	"strings"
)

// A Price is in pico-USD per token (USD per million tokens × 10^6), per
// request and per web search in nano-USD.
//
// Kinds that the catalog leaves out: cached input and cache writes cost what
// input costs (a one-hour write what a five-minute write costs), so that
// nothing is free by oversight. Audio is zero, which counts it as ordinary
// input and output. The others are zero.
type Price struct {
	Input, CachedInput, CacheWrite5m, CacheWrite1h, Output, Audio int64
	RequestNano, WebSearchNano                                    int64
}

// price compiles a price.
func (c *compiler) price(at *Place, f *Field[PriceEntry]) *Price {
	e, p := &f.Value, &Price{}
	given := false
	for _, kind := range []struct {
		name   string
		field  *Field[string]
		value  *int64
		places int
		most   int64 // USD
	}{
		{"input", &e.Input, &p.Input, tokenPricePlaces, priceUSDMax},
		{"cached_input", &e.CachedInput, &p.CachedInput, tokenPricePlaces, priceUSDMax},
		{"cache_write_5m", &e.CacheWrite5m, &p.CacheWrite5m, tokenPricePlaces, priceUSDMax},
		{"cache_write_1h", &e.CacheWrite1h, &p.CacheWrite1h, tokenPricePlaces, priceUSDMax},
		{"output", &e.Output, &p.Output, tokenPricePlaces, priceUSDMax},
		{"audio", &e.Audio, &p.Audio, tokenPricePlaces, priceUSDMax},
		{"request", &e.Request, &p.RequestNano, nanoPlaces, priceCallUSDMax},
		{"web_search", &e.WebSearch, &p.WebSearchNano, nanoPlaces, priceCallUSDMax},
	} {
		given = given || kind.field.State != Absent
		if kind.field.State != Given {
			continue
		}
		value, wrong := parseDecimal(kind.field.Value, kind.places, kind.most)
		if wrong != "" {
			c.problems.Error(at.Field(kind.name), kind.field.Line, "%s", wrong)
		}
		*kind.value = value
	}
	if !given {
		c.problems.Error(*at, f.Line, "must hold at least one kind of price")
	}
	if e.CachedInput.State == Absent {
		p.CachedInput = p.Input
	}
	if e.CacheWrite5m.State == Absent {
		p.CacheWrite5m = p.Input
	}
	if e.CacheWrite1h.State == Absent {
		p.CacheWrite1h = p.CacheWrite5m
	}
	return p
}

// parseDecimal reads a plain decimal of USD as a count of 10^-places USD,
// exactly: no float is involved. most is the largest whole part allowed.
// wrong says what is wrong, and is "" when nothing is.
func parseDecimal(text string, places int, most int64) (value int64, wrong string) {
	if strings.HasPrefix(text, "-") {
		return 0, "must not be negative"
	}
	whole, fraction, point := strings.Cut(text, ".")
	if !digits(whole) || point && !digits(fraction) {
		return 0, "is not a plain decimal such as 1.25"
	}
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > places {
		return 0, fmt.Sprintf("has %d decimals; allowed are %d", len(fraction), places)
	}
	for i := range len(whole) {
		if value = value*10 + int64(whole[i]-'0'); value > most {
			break // no overflow, however many digits there are
		}
	}
	if value > most || value == most && fraction != "" {
		return 0, fmt.Sprintf("is above %d USD, the most allowed", most)
	}
	for i := range places {
		value *= 10
		if i < len(fraction) {
			value += int64(fraction[i] - '0')
		}
	}
	return value, ""
}

func digits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}
