package hostcheck

import (
	"fmt"
	"strings"
)

// A Page is one file that Print can write.
type Page struct {
	Name string
	Doc  string // where it goes and what for
	Text string
}

// Pages lists all.
func Pages() []Page {
	return []Page{
		{"sysctl", "kernel settings, for /etc/sysctl.d/90-relay.conf", sysctlPage()},
		{"limits", "open files of logins, for /etc/security/limits.d/90-relay.conf", fmt.Sprintf(limitsPage, filesWanted)},
		{"systemd", "a hardened unit, for /etc/systemd/system/relay.service", fmt.Sprintf(systemdPage, filesWanted)},
		{"haproxy", "a balancer before several relays, for /etc/haproxy/haproxy.cfg", haproxyPage},
	}
}

func sysctlPage() string {
	var b strings.Builder
	b.WriteString("# Kernel settings for a host that runs relay.\n# Load with: sysctl --system\n")
	line := func(name, value, why string) { fmt.Fprintf(&b, "\n# %s\n%s = %s\n", why, name, value) }
	line("fs.nr_open", fmt.Sprint(filesWanted), "No process can have a higher limit of open files.")
	for _, s := range sysctls {
		name := s.name
		if s.optional { // a leading dash: no error where the kernel does not have it
			name = "-" + name
		}
		line(name, fmt.Sprint(s.least), sentence(s.why))
	}
	line("net.ipv4.ip_local_port_range", fmt.Sprintf("%d %d", portLowWanted, portHighWanted), "Each connection to the same address of a provider takes a port of its own.")
	return b.String()
}

// sentence begins with a capital and ends with a full stop.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] + "." }

const limitsPage = `# Open files of a relay that is started from a login. systemd has its own
# setting, LimitNOFILE.
*    soft nofile %[1]d
*    hard nofile %[1]d
root soft nofile %[1]d
root hard nofile %[1]d
`

const systemdPage = `[Unit]
Description=Relay, a gateway to language models
Documentation=man:systemd.service(5)
After=network-online.target
Wants=network-online.target

[Service]
Type=simple
ExecStart=/usr/local/bin/relay serve
# The catalog again, without a restart.
ExecReload=/bin/kill -HUP $MAINPID
# Settings, one NAME=VALUE a line, and the keys that relay.yaml refers to.
EnvironmentFile=-/etc/relay/relay.env
Environment=RELAY_CATALOG=/etc/relay/relay.yaml
Environment=RELAY_DATA_DIR=/var/lib/relay
Restart=on-failure
RestartSec=1s
# Requests that run may end: more than RELAY_SHUTDOWN_DEADLINE_S, which is 15.
KillSignal=SIGTERM
TimeoutStopSec=30s
LimitNOFILE=%[1]d

User=relay
Group=relay
StateDirectory=relay
StateDirectoryMode=0700
ConfigurationDirectory=relay
UMask=0077

NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service

[Install]
WantedBy=multi-user.target
`

const haproxyPage = `# Four relays behind one address. Change the addresses of the servers.
global
	# The cores that HAProxy may use. In a container give the number of the
	# quota: HAProxy counts cores, not quotas.
	# nbthread 4
	maxconn 100000

defaults
	mode http
	# Events of a stream go out as they come, not when a segment is full.
	option http-no-delay
	# Requests share kept connections to the relays.
	option http-keep-alive
	http-reuse always
	# Silence of a stream, on both sides: as RELAY_STREAM_IDLE.
	timeout connect 3s
	timeout client 600s
	timeout server 600s
	timeout http-keep-alive 60s
	timeout http-request 30s
	# A request that reached a relay may have cost money: only connections that
	# never stood are tried again.
	retry-on conn-failure
	option redispatch

frontend inference
	bind :80 backlog 4096
	default_backend relays

backend relays
	balance leastconn
	# A relay that drains is not ready, and gets no new requests. The check goes
	# to its control listener, so RELAY_CONTROL_BIND has to let HAProxy in.
	option httpchk
	http-check send meth GET uri /readyz
	http-check expect status 200
	default-server check port 8081 inter 1s fall 2 rise 1 pool-purge-delay 60s
	# With RELAY_PROXY_PROTOCOL=on add "send-proxy-v2" to each server.
	server relay1 10.0.0.1:8080
	server relay2 10.0.0.2:8080
	server relay3 10.0.0.3:8080
	server relay4 10.0.0.4:8080
`
