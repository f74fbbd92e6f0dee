package catalog

import "time"

// A Shape is one family of JSON: how requests, answers and errors look.
type Shape uint8

// The two shapes.
const (
	OpenAI Shape = iota
	Anthropic
)

// String is the name used in the catalog and in metrics.
func (s Shape) String() string { return [...]string{"openai", "anthropic"}[s] }

// Tables is one generation of the catalog. Everything reachable from it is
// read-only.
type Tables struct {
	Generation uint64 // counts accepted catalogs of this process, from 1
	Revision   string // hex digest of the source, for people
	LoadedUnix int64  // seconds

	Hosts     []*Host
	Models    []*Model // order of the source
	Policies  []*Policy
	Accounts  []*Account
	RelayKeys []*RelayKey

	byHash map[[32]byte]*RelayKey
	byName map[string]*Model // names and aliases without '*'
	byGlob []aliasGlob       // aliases with '*', most literal bytes first
}

type aliasGlob struct {
	prefix, suffix string
	model          *Model
}

// RelayKey finds a relay key by the SHA-256 of its text, or nil. Whether it is
// enabled and not expired is the caller's to check.
func (t *Tables) RelayKey(hash *[32]byte) *RelayKey { return t.byHash[*hash] }

// Model finds a model by name, then by exact alias, then by the alias glob
// with the most literal bytes, or nil. It does not allocate.
func (t *Tables) Model(name []byte) *Model { panic("BUG: not built") }

// A Host is a provider's API surface.
type Host struct {
	Name  string
	ID    int // dense index in Tables.Hosts of this generation
	Shape Shape

	// Address of base_url. BasePath ends without '/', and for an Anthropic
	// host ends without "/v1": path of a request = BasePath + "/v1" + suffix.
	// For an OpenAI host, BasePath includes the version: BasePath + suffix.
	TLS      bool
	Hostname string // for DNS, SNI and certificates
	Port     uint16
	HostPort string // value of the Host field: port left out when it is the scheme's own
	BasePath string
	Endpoint uint64 // hash of scheme, hostname, port and TLS settings: connections of equal Endpoint are interchangeable over generations

	Keys             []*HostKey
	Timeouts         Timeouts
	MaxConnections   int // 0 = no limit
	NoStreamOptions  bool
	AnthropicVersion string
	Organization     string // sent as OpenAI-Organization when set
	Project          string // sent as OpenAI-Project when set
}

// Timeouts are of a host; zero in none of them.
type Timeouts struct {
	Connect    time.Duration
	FirstByte  time.Duration // from the last request byte to the response head
	FirstToken time.Duration // from the last request byte to the first output
	Idle       time.Duration // between bytes of a body
}

// A HostKey is one upstream credential.
type HostKey struct {
	Name   string
	Host   *Host
	Value  []byte // secret; never logged
	Tier   int    // lower is preferred by pool: prioritized
	Weight int    // ≥ 1
	Group  Group
}

// A Model is a name that callers use.
type Model struct {
	Name            string
	Aliases         []string
	Bindings        []*Binding // by priority, then order of the source
	MaxOutputTokens int64      // 0 = unknown
	Flags           []string
}

// A Binding says where a model is served and for how much.
type Binding struct {
	Model         *Model
	Host          *Host
	UpstreamModel string
	Priority      int // lower first
	Weight        int // ≥ 1, among equal priorities
	Price         *Price
}

// A Price is in pico-USD per token (USD per million tokens × 10^6), per
// request and per web search in nano-USD.
type Price struct {
	Input, CachedInput, CacheWrite5m, CacheWrite1h, Output, Audio int64
	RequestNano, WebSearchNano                                    int64
}

// A Policy governs relay keys.
type Policy struct {
	Name     string
	Group    Group
	HangUp   HangUp
	models   []nameGlob
	everyone bool // "*"
}

type nameGlob struct {
	prefix, suffix string
	star           bool
}

// Allows reports whether the policy lets a model be used, by its name.
func (p *Policy) Allows(m *Model) bool { panic("BUG: not built") }

// A HangUp says what happens to the upstream when the caller leaves.
type HangUp uint8

// Cancel is the only rule so far: the upstream is cancelled at once.
const Cancel HangUp = 0

// A RelayKey is a caller's bearer token.
type RelayKey struct {
	Name        string
	Hash        [32]byte
	Prefix      string // first characters, for people; "" when only the hash is known
	Account     *Account
	Policy      *Policy
	Group       Group
	ExpiresUnix int64 // seconds; 0 = never
	Enabled     bool
}

// An Account pays.
type Account struct {
	Name  string
	Group Group
}

// A Group is a counter group: the limits that are counted together. ID is a
// hash of the kind and name of its owner, stable over generations and
// processes; it is zero when there are no limits.
type Group struct {
	ID     uint64
	Name   string // "policy/default", for people
	Limits []Limit
}

// A Meter is what a limit counts.
type Meter uint8

// The meters.
const (
	Requests Meter = iota
	Tokens
	InputTokens
	OutputTokens
	Cost
	Concurrency
)

// String is the name in the catalog.
func (m Meter) String() string {
	return [...]string{"requests", "tokens", "tokens.input", "tokens.output", "cost", "concurrency"}[m]
}

// A Strategy is how a limit counts over time.
type Strategy uint8

// TokenBucket is a bucket of Amount that refills evenly over Window.
const TokenBucket Strategy = 0

// A Limit is one rule of a group.
type Limit struct {
	Meter    Meter
	Strategy Strategy
	Amount   int64
	Window   time.Duration // 0 for concurrency
}
