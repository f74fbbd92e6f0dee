package redistest

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

const slotCount = 1 << 14

// StartCluster runs a cluster of so many nodes that share the slots evenly.
func StartCluster(tb testing.TB, nodes int) []*Server {
	tb.Helper()
	list := make([]*Server, nodes)
	for i := range list {
		list[i] = Start(tb, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no",
			"--cluster-port", strconv.Itoa(FreePort(tb)), "--cluster-config-file", "nodes.conf")
		list[i].Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		args := []string{"CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i * slotCount / nodes), strconv.Itoa((i+1)*slotCount/nodes - 1)}
		list[i].Do(args...)
	}
	for _, s := range list[1:] {
		bus := s.argument("--cluster-port")
		list[0].Do("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(s.port), bus)
	}
	for end := time.Now().Add(startMax); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		agreed := true
		for _, s := range list {
			info := s.Do("CLUSTER", "INFO").(string)
			agreed = agreed && strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, "cluster_slots_ok:"+strconv.Itoa(slotCount)) &&
				strings.Contains(info, "cluster_known_nodes:"+strconv.Itoa(nodes))
		}
		if agreed {
			return list
		}
	}
	tb.Fatalf("the cluster was not ready within %v", startMax)
	return nil
}

// argument is what the server was given for a flag.
func (s *Server) argument(flag string) string {
	for i, a := range s.args {
		if a == flag {
			return s.args[i+1]
		}
	}
	return ""
}
