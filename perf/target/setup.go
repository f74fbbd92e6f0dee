package target

import (
	"context"
	"fmt"
	"strings"

	"relay/perf/openloop"
)

// A Setup says how targets are started.
type Setup struct {
	Program   string   // path of relay-perf
	RelayPath string   // of the relay binary; "" leaves Relay out
	RelayEnv  []string // settings of the gateways: Relay, nethttp and fasthttp
	RelayKeys int      // 1 when 0
	Policies  int      // that the keys take turns in; 1 when 0
	Limits    string   // of every policy, in YAML; "" = LimitsUsual
	Workers   int      // threads or workers of the plain proxies
	Mock      *Target
	Upstream  string // URL by which the gateways reach the mock; that of its listener when empty
}

// Names of what Start starts. Direct is no proxy at all: the mock itself, as
// the floor of what can be measured.
const (
	NameRelay    = "relay"
	NameNetHTTP  = "nethttp"  // a gateway of the usual design on net/http
	NameFastHTTP = "fasthttp" // the same on fasthttp
	NameHAProxy  = "haproxy"
	NameNginx    = "nginx"
	NameDirect   = "direct"
)

// Names lists all, in the order of reports.
func Names() []string {
	return []string{NameRelay, NameNetHTTP, NameFastHTTP, NameHAProxy, NameNginx, NameDirect}
}

// Start starts a target by its name.
func (s Setup) Start(ctx context.Context, name string) (*Target, error) {
	switch name {
	case NameRelay:
		if s.RelayPath == "" {
			return nil, &Missing{"relay (--relay PATH)"}
		}
		return s.gateway(ctx, name, s.RelayPath, "serve")
	case NameNetHTTP, NameFastHTTP:
		return s.gateway(ctx, name, s.Program, "baseline", "--engine="+name)
	case NameHAProxy:
		return HAProxy(ctx, s.Workers, s.Mock.Addr)
	case NameNginx:
		return Nginx(ctx, s.Workers, s.Mock.Addr)
	case NameDirect:
		t := Remote(NameDirect, s.Mock.Addr, "") // the mock outlives its measurement
		t.Tree = s.Mock.Tree
		return t, nil
	}
	return nil, fmt.Errorf("target: no target %q: want one of %s", name, strings.Join(Names(), ", "))
}

// StartBehindHAProxy starts n of a target, and HAProxy in front of them.
func (s Setup) StartBehindHAProxy(ctx context.Context, name string, n int) (front *Target, behind []*Target, err error) {
	defer func() {
		if err != nil {
			for _, t := range behind {
				t.Close()
			}
		}
	}()
	var addrs []string
	for range n {
		t, err := s.Start(ctx, name)
		if err != nil {
			return nil, behind, err
		}
		behind, addrs = append(behind, t), append(addrs, t.Addr)
	}
	front, err = HAProxy(ctx, s.Workers, addrs...)
	return front, behind, err
}

func (s Setup) gateway(ctx context.Context, name string, command ...string) (*Target, error) {
	upstream := s.Upstream
	if upstream == "" {
		upstream = "http://" + s.Mock.Addr
	}
	return Gateway(ctx, GatewayOptions{
		Name: name, Command: command, Env: s.RelayEnv,
		Catalog: Catalog{Mock: upstream, Keys: s.RelayKeys, Policies: s.Policies, Limits: s.Limits},
	})
}

// Keys are the credentials for a target's requests.
func (s Setup) Keys() []string {
	keys := make([]string, max(s.RelayKeys, 1))
	for i := range keys {
		keys[i] = RelayKey(i)
	}
	return keys
}

// Mix is the usual load on a target of the setup: both request types, over all
// relay keys.
func (s Setup) Mix(t *Target) openloop.Mix {
	return openloop.Mix{Host: t.Addr, Keys: s.Keys(), ChatModel: "gpt-mock", MessagesModel: "claude-mock"}
}
