package catalog

import "time"

// A Host is a provider's API surface.
type Host struct {
	Name  string
	ID    int // dense index in Tables.Hosts of this generation
	Shape Shape

	// Address of base_url. BasePath ends without '/', and for an Anthropic
	// host ends without "/v1": path of a request = BasePath + "/v1" + suffix.
	// For an OpenAI host, BasePath includes the version: BasePath + suffix.
	TLS      bool
	Hostname string // for DNS, SNI and certificates; an IPv6 address has no brackets
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

const noStreamOptions = "no_stream_options"

var (
	shapes    = []option{{OpenAI.String(), true}, {Anthropic.String(), true}}
	hostFlags = []option{{noStreamOptions, true}}
)

// compileHosts compiles the section hosts.
func (c *compiler) compileHosts(root *Place) {
	if !sized(c, root, "hosts", 0, &c.doc.Hosts, true, hostsMax) {
		return
	}
	section := root.Field("hosts")
	c.tables.Hosts = make([]*Host, 0, len(c.doc.Hosts.Value))
	for i := range c.doc.Hosts.Value {
		f := &c.doc.Hosts.Value[i]
		if f.State != Given {
			continue
		}
		at := section.Item(i)
		h := &Host{ID: len(c.tables.Hosts)}
		c.tables.Hosts = append(c.tables.Hosts, h)
		h.Name = name(c, &at, i, f.Line, &f.Value.Name, c.hosts, h)
		c.host(&at, f.Line, &f.Value, h)
	}
}

// host compiles all of a host but its name.
func (c *compiler) host(at *Place, line int32, e *HostEntry, h *Host) {
	// Groups of host keys are named host/key: a slash in the first part would
	// let two of them be one.
	for i := range len(h.Name) {
		if h.Name[i] == '/' {
			c.problems.Error(at.Field("name"), e.Name.Line, `may not hold "/"`)
			break
		}
	}
	shapeKnown := required(c, at, "shape", line, &e.Shape)
	c.choose(at, "shape", &e.Shape, shapes, "")
	if e.Shape.Value == Anthropic.String() {
		h.Shape = Anthropic
	}
	if required(c, at, "base_url", line, &e.URL) {
		c.address(at.Field("base_url"), &e.URL, h)
	}
	timeouts := at.Field("timeouts")
	t := &e.Timeouts.Value
	h.Timeouts = Timeouts{
		Connect:    c.duration(&timeouts, "connect", &t.Connect, connectDefault, timeoutMin, connectTimeoutMax),
		FirstByte:  c.duration(&timeouts, "first_byte", &t.FirstByte, firstByteDefault, timeoutMin, timeoutMax),
		FirstToken: c.duration(&timeouts, "first_token", &t.FirstToken, firstTokenDefault, timeoutMin, timeoutMax),
		Idle:       c.duration(&timeouts, "idle", &t.Idle, idleDefault, timeoutMin, timeoutMax),
	}
	h.MaxConnections = int(c.number(at, "max_connections", &e.MaxConnections, 0, 0, connectionsMax))
	for _, flag := range c.flags(at, &e.Flags, hostFlags) {
		h.NoStreamOptions = h.NoStreamOptions || flag == noStreamOptions
	}
	h.AnthropicVersion = c.headerText(at, "anthropic_version", &e.AnthropicVersion, anthropicVersionDefault)
	h.Organization = c.headerText(at, "organization", &e.Organization, "")
	h.Project = c.headerText(at, "project", &e.Project, "")
	if shapeKnown && h.Shape == Anthropic {
		for _, f := range []struct {
			name  string
			field *Field[string]
		}{{"organization", &e.Organization}, {"project", &e.Project}} {
			if f.field.State == Given {
				c.problems.Error(at.Field(f.name), f.field.Line, "is for hosts of shape openai")
			}
		}
	}
	c.hostKeys(at, line, e, h)
}
