package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// An endpoint is where the store is and how it is entered.
type endpoint struct {
	addrs    []string // host:port
	username string
	password string
	db       int
	tls      *tls.Config
	resp2    bool
}

// schemes are the forms of an address, and whether they mean TLS.
var schemes = map[string]bool{"redis": false, "valkey": false, "rediss": true, "valkeys": true}

// CheckAddrs says what is wrong with addresses for Open.
func CheckAddrs(addrs []string) error {
	_, err := parseAddrs(addrs)
	return err
}

// parseAddrs reads addresses: host:port, or a URL such as
// redis://user:password@host:port/db?protocol=2. All must agree on everything
// but the host. No error repeats any of it: a password that is not written as
// it must be in a URL may be found in every part.
func parseAddrs(addrs []string) (endpoint, error) {
	if len(addrs) == 0 {
		return endpoint{}, errors.New("redis: no address")
	}
	var all endpoint
	for i, addr := range addrs {
		e, err := parseAddr(strings.TrimSpace(addr))
		if err != nil {
			return endpoint{}, fmt.Errorf("redis: address %d: %w", i+1, err)
		}
		if i == 0 {
			all = e
			continue
		}
		same := e.username == all.username && e.password == all.password && e.db == all.db &&
			e.resp2 == all.resp2 && (e.tls != nil) == (all.tls != nil)
		if !same {
			return endpoint{}, fmt.Errorf("redis: address %d: user, password, database, protocol and TLS must be those of address 1", i+1)
		}
		all.addrs = append(all.addrs, e.addrs...)
	}
	if len(all.addrs) > 1 {
		if all.db != 0 {
			return endpoint{}, errors.New("redis: a cluster has database 0 only")
		}
		if all.tls != nil {
			all.tls.ServerName = "" // of each node
		}
	}
	return all, nil
}

func parseAddr(addr string) (endpoint, error) {
	if !strings.Contains(addr, "://") {
		if err := checkHost(addr); err != nil {
			return endpoint{}, err
		}
		return endpoint{addrs: []string{addr}}, nil
	}
	u, err := url.Parse(addr)
	if err != nil {
		return endpoint{}, errors.New("is no URL: in a password, characters such as @ / % are written as %40 %2F %25")
	}
	if _, known := schemes[u.Scheme]; !known {
		return endpoint{}, errors.New("has a scheme that is none of redis, rediss, valkey, valkeys")
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), "6379")
	}
	if err := checkHost(u.Host); err != nil {
		return endpoint{}, err
	}
	if db := strings.TrimPrefix(u.Path, "/"); db != "" {
		if n, err := strconv.Atoi(db); err != nil || n < 0 {
			return endpoint{}, errors.New("has a database that is no number")
		}
	} else {
		u.Path = ""
	}
	for name, values := range u.Query() {
		if name != "protocol" || len(values) != 1 || values[0] != "2" && values[0] != "3" {
			return endpoint{}, errors.New("has a parameter that is none of protocol=2, protocol=3")
		}
	}
	o, err := rueidis.ParseURL(u.String())
	if err != nil {
		return endpoint{}, errors.New("is no URL of a store")
	}
	return endpoint{o.InitAddress, o.Username, o.Password, o.SelectDB, o.TLSConfig, o.AlwaysRESP2}, nil
}

// checkHost wants host:port.
func checkHost(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" || strings.ContainsAny(host, "@/") { // a password without its scheme
		return errors.New("is not of the form host:port, or redis://user:password@host:port/db")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errors.New("has a port that is no number of 1 to 65535")
	}
	return nil
}

// dial makes a client, and reaches the store. by may be nil.
func (e *endpoint) dial(name string, by dialFunc) (rueidis.Client, error) {
	o := e.option(name)
	if by != nil {
		o.DialCtxFn = by.driver
	}
	client, err := rueidis.NewClient(o)
	if err != nil {
		if client != nil { // one that would go on trying
			client.Close()
		}
		return nil, fmt.Errorf("redis: connect to %v: %w", e.addrs, err)
	}
	return client, nil
}

// A dialFunc connects to an address by the settings of d.
type dialFunc func(ctx context.Context, d *net.Dialer, addr string) (net.Conn, error)

// driver is the dial for the driver: with TLS where the address asks for it.
func (dial dialFunc) driver(ctx context.Context, addr string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
	conn, err := dial(ctx, d, addr)
	if err != nil || config == nil {
		return conn, err
	}
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(addr)
	}
	secure := tls.Client(conn, config)
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

// option is what the driver is told.
func (e *endpoint) option(name string) rueidis.ClientOption {
	o := rueidis.ClientOption{
		InitAddress: e.addrs, Username: e.username, Password: e.password,
		SelectDB: e.db, TLSConfig: e.tls, AlwaysRESP2: e.resp2, ClientName: name,
		ForceSingleClient:   len(e.addrs) == 1,
		DisableCache:        true, // nothing is cached here, and RESP2 will do
		DisableRetry:        true, // the lane sends again, under its guard
		AlwaysPipelining:    true,
		PipelineMultiplex:   -1, // one connection: calls of a lane stay in order
		RingScaleEachConn:   ringScale,
		ReadBufferEachConn:  connBuffer,
		WriteBufferEachConn: connBuffer,
		ConnWriteTimeout:    connTimeout,
	}
	o.Dialer.Timeout = dialTimeout
	o.Dialer.KeepAlive = connTimeout
	o.ClusterOption.MaxMovedRedirections = 3
	return o
}
