package target

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// GatewayOptions say how a gateway is started: Relay, or another that takes
// the settings and the catalog of relay serve.
type GatewayOptions struct {
	Name    string
	Command []string // program and arguments
	Catalog Catalog
	Env     []string // further settings, NAME=VALUE; they win
}

// variableDataDir names the folder that holds what a gateway keeps.
const variableDataDir = "RELAY_DATA_DIR"

// Gateway starts a gateway before the mock. Its folder lasts until Close.
func Gateway(ctx context.Context, o GatewayOptions) (*Target, error) {
	text, err := o.Catalog.Text()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "relay-perf-"+o.Name+"-")
	if err != nil {
		return nil, fmt.Errorf("target: folder of %s: %w", o.Name, err)
	}
	catalog := filepath.Join(dir, "relay.yaml")
	if err := os.WriteFile(catalog, text, 0o600); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("target: catalog of %s: %w", o.Name, err)
	}
	env := append([]string{"RELAY_BIND=127.0.0.1", "RELAY_PORT=0", "RELAY_CONTROL_PORT=0", "RELAY_CATALOG=" + catalog,
		variableDataDir + "=" + filepath.Join(dir, "state"), "RELAY_MAX_INFLIGHT=20000", "RELAY_LOG_LEVEL=warn"}, o.Env...)
	cmd := exec.Command(o.Command[0], o.Command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	t, pipe, err := start(ctx, o.Name, cmd)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	t.dir = dir
	for _, setting := range env {
		if value, ok := strings.CutPrefix(setting, variableDataDir+"="); ok {
			t.DataDir = value
		}
	}
	return t, t.awaitAddrs(pipe)
}
