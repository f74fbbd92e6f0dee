package target

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"relay/perf/machine"
)

// Plain proxies: no authentication, limits or accounting.

const nginxConfig = `daemon off;
user root;
worker_processes %[1]d;
worker_rlimit_nofile %[4]d;
pid nginx.pid;
error_log stderr error;
events { worker_connections %[4]d; }
http {
	access_log off;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
	client_max_body_size 64m;
	client_body_buffer_size 256k;
	keepalive_requests 100000000;
	keepalive_timeout 600s;
	tcp_nodelay on;
	upstream mock { server %[2]s; keepalive 4096; keepalive_requests 100000000; keepalive_timeout 600s; }
	server {
		listen %[3]s backlog=4096;
		location / {
			proxy_pass http://mock;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_buffering off;
			proxy_read_timeout 600s;
			proxy_send_timeout 600s;
		}
	}
}
`

// Nginx starts nginx before the mock.
func Nginx(ctx context.Context, workers int, mock string) (*Target, error) {
	path, err := lookPath("nginx")
	if err != nil {
		return nil, err
	}
	return plain(ctx, "nginx", "nginx.conf", func(addr string, files uint64) string {
		return fmt.Sprintf(nginxConfig, workers, mock, addr, files)
	}, func(dir, file string) *exec.Cmd {
		return exec.Command(path, "-p", dir, "-c", file, "-e", "stderr")
	})
}

// filesOwn are files of HAProxy that are no connections.
const filesOwn = 200

const haproxyConfig = `global
	nbthread %[1]d
	maxconn %[4]d
defaults
	mode http
	option http-no-delay
	option http-keep-alive
	http-reuse always
	timeout connect 3s
	timeout client 600s
	timeout server 600s
	timeout http-keep-alive 600s
	timeout http-request 60s
frontend in
	bind %[3]s backlog 4096
	default_backend out
backend out
	balance leastconn
%[2]s`

// HAProxy starts HAProxy before one or more addresses.
func HAProxy(ctx context.Context, threads int, behind ...string) (*Target, error) {
	path, err := lookPath("haproxy")
	if err != nil {
		return nil, err
	}
	return plain(ctx, "haproxy", "haproxy.cfg", func(addr string, files uint64) string {
		servers := ""
		for i, at := range behind {
			servers += fmt.Sprintf("\tserver s%d %s pool-purge-delay 600s\n", i, at)
		}
		return fmt.Sprintf(haproxyConfig, threads, servers, addr, (files-filesOwn)/2)
	}, func(_, file string) *exec.Cmd {
		return exec.Command(path, "-db", "-f", file)
	})
}

// plain writes a configuration into a folder of its own and starts the proxy.
func plain(ctx context.Context, name, file string, config func(addr string, files uint64) string, command func(dir, file string) *exec.Cmd) (*Target, error) {
	files, err := machine.RaiseDescriptors()
	if err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "relay-perf-"+name+"-")
	if err != nil {
		return nil, fmt.Errorf("target: folder of %s: %w", name, err)
	}
	path := filepath.Join(dir, file)
	if err := os.WriteFile(path, []byte(config(addr, files)), 0o600); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("target: configuration of %s: %w", name, err)
	}
	t, pipe, err := start(ctx, name, command(dir, path))
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	t.Addr, t.dir = addr, dir
	go io.Copy(t.output, pipe)
	return t, t.awaitConnect()
}
