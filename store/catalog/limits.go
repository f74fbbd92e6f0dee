package catalog

import "time"

// What a catalog may hold. The bounds are far above any sound use: they keep
// a slip of the pen, or a file that is not a catalog, from becoming load.
const (
	nameBytesMax       = 256   // of a name, alias, glob or upstream model name
	quotedBytesMax     = 64    // of a value repeated in a problem
	credentialBytesMin = 16    // of a name that begins as credentials do
	headerBytesMax     = 128   // of a value that goes into a header
	secretBytesMax     = 8192  // of a host key's value
	keyBytesMin        = 4     // of a relay key written in full
	keyBytesMax        = 512   // of a relay key written in full
	pathBytesMax       = 1024  // of a base_url
	globShapesMax      = 256   // distinct (prefix length, suffix length) pairs of alias globs: map probes of a failed Model
	problemsMax        = 10000 // errors listed, and warnings listed; the rest is counted in one line
	limitsMax          = 8     // per counter group
	hostsMax           = 10_000
	hostKeysMax        = 10_000 // per host
	modelsMax          = 100_000
	aliasesMax         = 10_000 // per model
	bindingsMax        = 1_000  // per model
	policiesMax        = 1_000_000
	policyModelsMax    = 10_000 // per policy, exact names
	policyGlobsMax     = 256    // per policy: Allows walks them
	fallbacksMax       = 16     // per policy
	accountsMax        = 1_000_000
	relayKeysMax       = 1_000_000
)

// Ranges of numbers. All are inclusive.
const (
	amountMax         = 1 << 53 // of a limit: what a double holds exactly
	weightMax         = 1_000_000
	tierMax           = 1_000
	priorityMax       = 1_000_000
	connectionsMax    = 1_000_000
	outputTokensMax   = 1_000_000_000
	attemptsMax       = 10
	priceUSDMax       = 100_000 // USD per million tokens
	priceCallUSDMax   = 1_000   // USD per request or web search
	budgetUSDMax      = 9_000_000
	tokenPricePlaces  = 6 // decimals of USD per million tokens: 1 = a pico-USD per token
	nanoPlaces        = 9 // decimals of USD: 1 = a nano-USD
	expiryYearMin     = 2000
	windowMin         = time.Millisecond
	windowMax         = 366 * 24 * time.Hour
	connectTimeoutMax = time.Minute
	timeoutMin        = time.Millisecond
	timeoutMax        = time.Hour
	retryBudgetMax    = 10 * time.Minute
)

// What an absent field means.
const (
	connectDefault          = 3 * time.Second
	firstByteDefault        = 600 * time.Second
	firstTokenDefault       = 600 * time.Second
	idleDefault             = 600 * time.Second
	anthropicVersionDefault = "2023-06-01"
)
