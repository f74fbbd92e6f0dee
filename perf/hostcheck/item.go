package hostcheck

// A State says how an item stands.
type State string

// The states.
const (
	Good    State = "ok"
	Short   State = "SHORT"   // a relay under load runs into it
	Hint    State = "hint"    // worth a look; may be meant
	Unknown State = "unknown" // cannot be read here
)

// An Item is one thing that was looked at.
type Item struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Is    string `json:"is"`
	Want  string `json:"want"`
	Why   string `json:"why"`
}

// A Process is what the process itself knows.
type Process struct {
	FilesSoft, FilesHard uint64 // open files
	GOMAXPROCS           int
	CPUs                 int   // that the process may run on
	GOMEMLIMIT           int64 // bytes; 0 = unset
	MemoryBytes          int64 // of the machine
}

// Check looks at a host. root is "/" but in tests.
func Check(root string, p Process) []Item {
	h := host{root: root}
	items := []Item{h.files(p), h.openable(), h.fileMax()}
	for _, s := range sysctls {
		if item, there := h.sysctl(s); there {
			items = append(items, item)
		}
	}
	return append(items, h.ports(), h.cores(p), h.memory(p), h.governor(), h.balancer(), h.clock())
}

// IsShort reports whether something is short.
func IsShort(items []Item) bool {
	for _, i := range items {
		if i.State == Short {
			return true
		}
	}
	return false
}
