package main

import (
	"fmt"
	"log/slog"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// Settings are what an operator tells a relay. Each is a variable and a flag;
// the flag wins. An empty variable counts as unset.
type Settings struct {
	Port           port    `env:"RELAY_PORT" default:"8080" help:"Port of the inference listener; 0 = a free one."`
	Bind           address `env:"RELAY_BIND" help:"Address of the inference listeners; unset = all addresses."`
	ControlPort    port    `env:"RELAY_CONTROL_PORT" default:"8081" off:"off" help:"Port of the control listener; 0 = a free one, off = none."`
	ControlBind    address `env:"RELAY_CONTROL_BIND" default:"127.0.0.1" help:"Address of the control listener."`
	TLSPort        port    `env:"RELAY_TLS_PORT" default:"off" off:"off" help:"Port of the TLS inference listener; off = none."`
	TLSCertFile    path    `env:"RELAY_TLS_CERT_FILE" name:"tls-cert-file" help:"Certificate chain of the TLS listener, PEM; read again when it changes."`
	TLSKeyFile     path    `env:"RELAY_TLS_KEY_FILE" name:"tls-key-file" help:"Private key of the TLS listener, PEM."`
	ProxyProtocol  choice  `env:"RELAY_PROXY_PROTOCOL" default:"off" choices:"off,on" help:"Expect a PROXY header (v1 or v2) on inference connections: off or on."`
	TrustedProxies subnets `env:"RELAY_TRUSTED_PROXIES" help:"Addresses or networks that may send a PROXY header, comma list; unset: any."`

	Loops     number `env:"RELAY_LOOPS" min:"1" max:"1024" help:"Event loops; unset = GOMAXPROCS."`
	Catalog   path   `env:"RELAY_CATALOG" default:"relay.yaml" help:"The catalog file."`
	DataDir   path   `env:"RELAY_DATA_DIR" help:"Folder of the spool; unset = ./relay-data."`
	SpoolSync span   `env:"RELAY_SPOOL_SYNC" default:"20" unit:"ms" min:"0" max:"10s" help:"Time between fsyncs of the spool, in ms; 0 = every answer waits for its own."`
	SpoolFull choice `env:"RELAY_SPOOL_FULL" default:"refuse" choices:"refuse,serve" help:"When the spool cannot take records: refuse requests, or serve them unrecorded."`

	StateBackend    choice     `env:"RELAY_STATE_BACKEND" default:"memory" choices:"memory,redis" help:"Where limits are counted: memory, of this process alone, or redis, together with other relays."`
	RedisAddr       storeAddrs `env:"RELAY_REDIS_ADDR" help:"The store of redis, host:port or redis://user:password@host:port/db (rediss for TLS); several nodes of a cluster as a comma list."`
	RedisLanes      number     `env:"RELAY_REDIS_LANES" min:"1" max:"16" help:"Lanes per node of the store: goroutines, each with a connection; unset = 1."`
	RedisTags       number     `env:"RELAY_REDIS_TAGS" min:"1" max:"1024" help:"Hash tags that counters are spread over, the same at all relays; unset = 1, of a cluster 64."`
	RedisMaxPending number     `env:"RELAY_REDIS_MAX_PENDING" min:"1" max:"10000000" help:"Group operations that may wait for a lane; past it requests are refused as overloaded; unset = 65536."`
	StoreOutage     choice     `env:"RELAY_STORE_OUTAGE" default:"refuse" choices:"refuse,local" help:"While the store is lost: refuse requests with limits, or count a share of the limits locally."`

	MaxInflight            number `env:"RELAY_MAX_INFLIGHT" min:"1" max:"10000000" help:"Requests in flight in the process; unset = what fits in 40 % of the memory limit."`
	MaxConns               number `env:"RELAY_MAX_CONNS" min:"1" max:"10000000" help:"Client connections; unset = what fits in 40 % of the memory limit and 80 % of the descriptors."`
	ConnQueue              number `env:"RELAY_CONN_QUEUE" default:"128" min:"0" max:"65536" help:"Connections past the limit that may wait for room."`
	ConnQueueTimeout       span   `env:"RELAY_CONN_QUEUE_TIMEOUT" default:"1s" unit:"s" min:"0" max:"1m" help:"How long they may wait."`
	UpstreamMaxIdlePerHost number `env:"RELAY_UPSTREAM_MAX_IDLE_PER_HOST" min:"1" max:"10000000" help:"Idle connections kept per host; unset = the in-flight cap."`
	MaxRequestBytes        size   `env:"RELAY_MAX_REQUEST_BYTES" default:"32MiB" min:"1KiB" max:"1GiB" help:"Largest request body, in bytes or with KiB, MiB."`
	StreamIdle             span   `env:"RELAY_STREAM_IDLE" default:"600s" unit:"s" min:"1s" max:"24h" help:"Silence after which a stream or a reader is given up."`
	KeepAlive              span   `env:"RELAY_KEEPALIVE" name:"keepalive" default:"15s" unit:"s" min:"1s" max:"1h" help:"Silence after which a stream gets a keep-alive."`
	ShutdownDeadline       span   `env:"RELAY_SHUTDOWN_DEADLINE_S" name:"shutdown-deadline-s" default:"15" unit:"s" min:"0" max:"24h" help:"How long running requests may take to end at a shutdown, in seconds."`

	AdminToken secret `env:"RELAY_ADMIN_TOKEN" help:"Bearer token for /debug/pprof; unset = no such page."`
	InstanceID label  `env:"RELAY_INSTANCE_ID" name:"instance-id" help:"Name of this relay in its records; unset = the host name."`
	LogLevel   choice `env:"RELAY_LOG_LEVEL" default:"info" choices:"debug,info,warn,error" help:"Least level that is logged: debug, info, warn, error."`
}

// check looks at what the values say together.
func (s *Settings) check() error {
	secure := s.TLSPort != portOff
	for _, f := range []struct {
		name  string
		value path
	}{
		{"RELAY_TLS_CERT_FILE (--tls-cert-file)", s.TLSCertFile},
		{"RELAY_TLS_KEY_FILE (--tls-key-file)", s.TLSKeyFile},
	} {
		switch {
		case secure && f.value == "":
			return &wrongValue{f.name, "", "a PEM file, since RELAY_TLS_PORT is set"}
		case !secure && f.value != "":
			return &wrongValue{f.name, string(f.value), "nothing while RELAY_TLS_PORT is off: nobody would be served by TLS"}
		}
	}
	if len(s.TrustedProxies) > 0 && s.ProxyProtocol != "on" {
		return &wrongValue{"RELAY_TRUSTED_PROXIES (--trusted-proxies)", s.TrustedProxies.String(),
			"nothing while RELAY_PROXY_PROTOCOL is off: no connection would be checked"}
	}
	return s.checkStore()
}

// checkStore looks at what the settings of the shared store say together.
func (s *Settings) checkStore() error {
	const addr = "RELAY_REDIS_ADDR (--redis-addr)"
	if s.StateBackend == "redis" {
		if len(s.RedisAddr) == 0 {
			return &wrongValue{addr, "", "host:port of the store, since RELAY_STATE_BACKEND is redis"}
		}
		return nil
	}
	for _, f := range []struct {
		name, value string
		given       bool
	}{
		{addr, s.RedisAddr.String(), len(s.RedisAddr) > 0},
		{"RELAY_REDIS_LANES (--redis-lanes)", fmt.Sprint(s.RedisLanes), s.RedisLanes != 0},
		{"RELAY_REDIS_TAGS (--redis-tags)", fmt.Sprint(s.RedisTags), s.RedisTags != 0},
		{"RELAY_REDIS_MAX_PENDING (--redis-max-pending)", fmt.Sprint(s.RedisMaxPending), s.RedisMaxPending != 0},
		{"RELAY_STORE_OUTAGE (--store-outage)", string(s.StoreOutage), s.StoreOutage == "local"},
	} {
		if f.given {
			return &wrongValue{f.name, f.value, "nothing while RELAY_STATE_BACKEND is memory: each relay would still count by itself"}
		}
	}
	return nil
}

// runtimeSettings are variables of the Go runtime, which takes a wrong value
// for an unset one and says nothing. GOMEMLIMIT is not among them: with a wrong
// one the runtime ends the process before any of this runs.
var runtimeSettings = []struct {
	name, allowed string
	word          string // that is no number and allowed
	least         int
}{
	{"GOGC", "off or a whole number, 0 or more", "off", 0},
	{"GOMAXPROCS", "a whole number, 1 or more", "", 1},
}

// checkRuntime looks at the variables of the Go runtime.
func checkRuntime(environ func(string) string) error {
	for _, r := range runtimeSettings {
		text := environ(r.name)
		if n, err := strconv.Atoi(text); text != r.word && text != "" && (err != nil || n < r.least) {
			return &wrongValue{r.name, text, r.allowed}
		}
	}
	return nil
}

// dataDirUsual is the folder of the spool when none is set.
const dataDirUsual path = "./relay-data"

// dataDir is the folder of the spool.
func (s *Settings) dataDir() path {
	if s.DataDir == "" {
		return dataDirUsual
	}
	return s.DataDir
}

// level is the log level.
func (s *Settings) level() slog.Level {
	return map[choice]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}[s.LogLevel]
}

// logger writes JSON lines for people.
func (s *Settings) logger(out streams) *slog.Logger {
	return slog.New(slog.NewJSONHandler(out.err, &slog.HandlerOptions{Level: s.level()}))
}

// duration is the value off the command line.
func (s span) duration() time.Duration { return time.Duration(s) }

// variables are RELAY_ variables that no setting has: mostly typing errors.
type variables []string

// unknownVariables finds them in an environment.
func unknownVariables(model *kong.Application, environ []string) variables {
	known := map[string]bool{}
	_ = kong.Visit(model, func(node kong.Visitable, next kong.Next) error {
		if f, ok := node.(*kong.Flag); ok {
			for _, name := range f.Envs {
				known[name] = true
			}
		}
		return next(nil)
	})
	var unknown variables
	for _, line := range environ {
		name, _, _ := strings.Cut(line, "=")
		if strings.HasPrefix(name, "RELAY_") && !known[name] {
			unknown = append(unknown, name)
		}
	}
	sort.Strings(unknown)
	return unknown
}

// warn logs each of them.
func (v variables) warn(log *slog.Logger) {
	for _, name := range v {
		log.Warn("unknown setting: no such RELAY_ variable in this version", "variable", name)
	}
}
