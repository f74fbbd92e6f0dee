package catalog

import (
	"fmt"
	"io"
	"log/slog"
)

// A Document is the catalog as an operator writes it, before anything but its
// form was checked: store/source decodes YAML into it and Compile checks it.
// Field names in tags are the catalog's own.
type Document struct {
	Hosts     List[HostEntry]     `field:"hosts"`
	Models    List[ModelEntry]    `field:"models"`
	Policies  List[PolicyEntry]   `field:"policies"`
	Accounts  List[AccountEntry]  `field:"accounts"`
	RelayKeys List[RelayKeyEntry] `field:"relay_keys"`
}

// A Field is one value of a document and where it stood.
type Field[T any] struct {
	Value T
	Line  int32 // of the source; 0 = unknown
	State FieldState
}

// A List is a field that holds several.
type List[T any] = Field[[]Field[T]]

// Give makes a field as if it had been written in a source without lines.
func Give[T any](value T) Field[T] { return Field[T]{Value: value, State: Given} }

// A FieldState says whether a field can be used.
type FieldState uint8

// The states of a field.
const (
	Absent FieldState = iota // not written
	Given                    // written and of the right form
	Broken                   // written in the wrong form, which was reported already
)

// A HostEntry describes a Host.
type HostEntry struct {
	Name             Field[string]        `field:"name"`
	Shape            Field[string]        `field:"shape"`
	URL              Field[string]        `field:"base_url"`
	Keys             List[HostKeyEntry]   `field:"keys"`
	Timeouts         Field[TimeoutsEntry] `field:"timeouts"`
	MaxConnections   Field[int64]         `field:"max_connections"`
	Flags            List[string]         `field:"flags"`
	AnthropicVersion Field[string]        `field:"anthropic_version"`
	Organization     Field[string]        `field:"organization"`
	Project          Field[string]        `field:"project"`
}

// A HostKeyEntry describes a HostKey.
type HostKeyEntry struct {
	Name   Field[string]    `field:"name"`
	Value  Field[Secret]    `field:"value"` // a reference, or plain:TEXT
	Tier   Field[int64]     `field:"tier"`
	Weight Field[int64]     `field:"weight"`
	Limits List[LimitEntry] `field:"limits"`
}

// A TimeoutsEntry holds Go durations.
type TimeoutsEntry struct {
	Connect    Field[string] `field:"connect"`
	FirstByte  Field[string] `field:"first_byte"`
	FirstToken Field[string] `field:"first_token"`
	Idle       Field[string] `field:"idle"`
}

// A ModelEntry describes a Model.
type ModelEntry struct {
	Name            Field[string]      `field:"name"`
	Aliases         List[string]       `field:"aliases"`
	Bindings        List[BindingEntry] `field:"bindings"`
	Price           Field[PriceEntry]  `field:"price"` // of bindings without their own
	Flags           List[string]       `field:"flags"`
	MaxOutputTokens Field[int64]       `field:"max_output_tokens"`
}

// A BindingEntry describes a Binding.
type BindingEntry struct {
	Host          Field[string]     `field:"host"`
	UpstreamModel Field[string]     `field:"upstream_model"`
	Priority      Field[int64]      `field:"priority"`
	Weight        Field[int64]      `field:"weight"`
	Price         Field[PriceEntry] `field:"price"`
}

// A PriceEntry holds decimals as they were written: USD per million tokens,
// the last two USD per call.
type PriceEntry struct {
	Input        Field[string] `field:"input"`
	CachedInput  Field[string] `field:"cached_input"`
	CacheWrite5m Field[string] `field:"cache_write_5m"`
	CacheWrite1h Field[string] `field:"cache_write_1h"`
	Output       Field[string] `field:"output"`
	Audio        Field[string] `field:"audio"`
	WebSearch    Field[string] `field:"web_search"`
	Request      Field[string] `field:"request"`
}

// A PolicyEntry describes a Policy.
type PolicyEntry struct {
	Name     Field[string]     `field:"name"`
	Models   List[string]      `field:"models"`
	Limits   List[LimitEntry]  `field:"limits"`
	Pool     Field[string]     `field:"pool"`
	Retry    Field[RetryEntry] `field:"retry"`
	Fallback List[string]      `field:"fallback"`
	Rescue   Field[string]     `field:"rescue"`
	HangUp   Field[string]     `field:"on_hangup"`
}

// A RetryEntry says how often and how long a request may be tried.
type RetryEntry struct {
	Attempts  Field[int64]  `field:"attempts"`
	Budget    Field[string] `field:"budget"` // Go duration
	RetrySent Field[bool]   `field:"retry_sent"`
}

// A LimitEntry describes a Limit.
type LimitEntry struct {
	Meter    Field[string] `field:"meter"`
	Amount   Field[string] `field:"amount"` // a whole number; of cost a decimal of USD
	Window   Field[string] `field:"window"` // Go duration
	Strategy Field[string] `field:"strategy"`
	Period   Field[string] `field:"period"`   // of calendars, in place of a window
	Timezone Field[string] `field:"timezone"` // of calendars
	Reserve  Field[string] `field:"reserve"`
}

// An AccountEntry describes an Account.
type AccountEntry struct {
	Name   Field[string]      `field:"name"`
	Budget Field[BudgetEntry] `field:"budget"`
	Limits List[LimitEntry]   `field:"limits"`
}

// A BudgetEntry says what an account may spend in a calendar period.
type BudgetEntry struct {
	USD      Field[string] `field:"usd"` // decimal
	Period   Field[string] `field:"period"`
	Timezone Field[string] `field:"timezone"`
	Reserve  Field[string] `field:"reserve"`
}

// A RelayKeyEntry describes a RelayKey. Exactly one of SHA256 and Key is given.
type RelayKeyEntry struct {
	Name    Field[string]    `field:"name"`
	SHA256  Field[string]    `field:"sha256"` // hex
	Key     Field[Secret]    `field:"key"`
	Account Field[string]    `field:"account"`
	Policy  Field[string]    `field:"policy"`
	Limits  List[LimitEntry] `field:"limits"`
	Expires Field[string]    `field:"expires"` // RFC 3339
	Enabled Field[bool]      `field:"enabled"`
}

// A Secret is text that prints as a placeholder, whatever the verb.
type Secret string

const redacted = "[redacted]"

// Format writes the placeholder.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue is the placeholder.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText is the placeholder: a document is never written back.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
