//go:build integration

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"relay/store/redis/redistest"
)

// TestWireDemo runs the three printed lines through a shell.
func TestWireDemo(t *testing.T) {
	demo := exec.Command(binary, "demo")
	demo.Env = []string{"PATH=" + os.Getenv("PATH"), "RELAY_PORT=0", "RELAY_CONTROL_PORT=0", "TMPDIR=" + t.TempDir()}
	var log logLines
	demo.Stderr = &log
	out, err := demo.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if t.Failed() {
			t.Log(log.text())
		}
	}()
	scanner := bufio.NewScanner(out)
	var listening, requests []string
	for len(requests) < 3 && scanner.Scan() {
		if line := scanner.Text(); strings.HasPrefix(line, "curl ") {
			requests = append(requests, line)
		} else if strings.HasPrefix(line, "listening ") {
			listening = append(listening, line)
		} else {
			t.Errorf("line on stdout: %q", line)
		}
	}
	if len(listening) != 2 || len(requests) != 3 {
		t.Fatalf("lines: %q %q", listening, requests)
	}
	for i, want := range []string{`"object":"chat.completion"`, `"type":"message"`, "data: [DONE]"} {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		got, err := exec.CommandContext(ctx, "sh", "-c", requests[i]).CombinedOutput()
		cancel()
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s\n%v: %s", requests[i], err, got)
		}
	}
	if !strings.Contains(requests[2], "N ") || !strings.Contains(requests[0], "rk-demo") {
		t.Errorf("lines: %q", requests)
	}
	if err := demo.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if scanner.Scan() {
		t.Errorf("another line: %q", scanner.Text())
	}
	if err := demo.Wait(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(demo.Env[len(demo.Env)-1][len("TMPDIR="):], "*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

func TestWireInitAndCheck(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new")
	out, code := runBinary(t, nil, "init", folder)
	key := regexp.MustCompile(`rk-[A-Za-z0-9_-]{40,}`).FindString(out)
	if code != 0 || key == "" || strings.Count(out, key) != 1 {
		t.Fatalf("init: %d %q", code, out)
	}
	name := filepath.Join(folder, "relay.yaml")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, fmt.Appendf(nil, "%x", sha256.Sum256([]byte(key)))) || bytes.Contains(text, []byte(key)) {
		t.Error("the file must hold the hash of the key, and not the key")
	}
	if out, code := runBinary(t, nil, "init", folder); code != 1 || !strings.Contains(out, "exists") {
		t.Errorf("init again: %d %q", code, out)
	}
	if again, err := os.ReadFile(name); err != nil || !bytes.Equal(again, text) {
		t.Errorf("init again has changed the file: %v", err)
	}
	secrets := []string{"OPENAI_API_KEY=sk-x", "ANTHROPIC_API_KEY=sk-y"}
	if out, code := runBinary(t, secrets, "check", name); code != 0 || !strings.Contains(out, "2 models") {
		t.Errorf("check: %d %q", code, out)
	}
	out, code = runBinary(t, nil, "check", name)
	if lines := strings.Count(out, "API_KEY"); code != 1 || lines != 2 {
		t.Errorf("check without secrets: %d %q", code, out)
	}
	bad := strings.NewReplacer("shape: openai ", "shape: nothing ", "window: 1m", "window: 1fortnight").Replace(string(text)) + "extra: 1\n"
	if err := os.WriteFile(name, []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
	out, code = runBinary(t, secrets, "check", name)
	numbered := regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(name)+`:\d+: `).FindAllString(out, -1)
	if code != 1 || len(numbered) != 3 || !strings.Contains(out, "extra") {
		t.Errorf("check of three mistakes: %d %s", code, out)
	}
	if out, code := runBinary(t, nil, "check", filepath.Join(folder, "none")); code != 1 || out == "" {
		t.Errorf("check of nothing: %d %q", code, out)
	}
	if out, code := runBinary(t, nil, "check", "/dev/zero"); code != 1 || !strings.Contains(out, "is longer than") {
		t.Errorf("check of a file without end: %d %q", code, out)
	}
	out, code = runBinary(t, nil, "keys", "mint")
	m := regexp.MustCompile(`^key: (\S+)\nsha256: (\S+)\n$`).FindStringSubmatch(out)
	if code != 0 || m == nil || fmt.Sprintf("%x", sha256.Sum256([]byte(m[1]))) != m[2] {
		t.Errorf("keys mint: %d %q", code, out)
	}
	if out, code := runBinary(t, nil, "version"); code != 0 || !strings.Contains(out, "go1.") {
		t.Errorf("version: %d %q", code, out)
	}
	if out, code := runBinary(t, nil, "serve", "--help"); code != 0 || !strings.Contains(out, "RELAY_SHUTDOWN_DEADLINE_S") {
		t.Errorf("serve --help: %d %q", code, out)
	}
}

// TestWireStartFails wants one line that names the setting for what stops a
// start.
func TestWireStartFails(t *testing.T) {
	g := startGateway(t)
	taken := g.inference[strings.LastIndexByte(g.inference, ':')+1:]
	file := filepath.Join(g.folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		env  []string
		code int
		want string
	}{
		{"port in use", []string{"RELAY_PORT=" + taken}, 1, "RELAY_PORT"},
		{"control port in use", []string{"RELAY_CONTROL_PORT=" + taken, "RELAY_CONTROL_BIND=127.0.0.1"}, 1, "RELAY_CONTROL_PORT"},
		{"address of another machine", []string{"RELAY_BIND=192.0.2.1"}, 1, "192.0.2.1"},
		{"no catalog", []string{"RELAY_CATALOG=" + g.folder + "/none.yaml"}, 1, "RELAY_CATALOG"},
		{"data folder is a file", []string{"RELAY_DATA_DIR=" + file}, 1, "RELAY_DATA_DIR"},
		{"no certificate", []string{"RELAY_TLS_PORT=0", "RELAY_TLS_CERT_FILE=" + file, "RELAY_TLS_KEY_FILE=" + file}, 1, "RELAY_TLS_CERT_FILE"},
		{"wrong value", []string{"RELAY_LOOPS=many"}, 2, `RELAY_LOOPS (--loops) is "many": allowed is a whole number from 1 to 1024`},
		{"redis without an address", []string{"RELAY_STATE_BACKEND=redis"}, 2, "RELAY_REDIS_ADDR (--redis-addr) is \"\": allowed is host:port"},
	} {
		env := append([]string{"RELAY_BIND=127.0.0.1", "RELAY_PORT=0", "RELAY_CONTROL_PORT=0", "RELAY_CATALOG=" + g.catalog,
			"RELAY_DATA_DIR=" + filepath.Join(g.folder, "other")}, tt.env...)
		out, code := runBinary(t, env, "serve")
		var complaints []string
		for line := range strings.Lines(out) {
			if !strings.HasPrefix(line, "{") || strings.Contains(line, `"ERROR"`) {
				complaints = append(complaints, line)
			}
		}
		if code != tt.code || len(complaints) != 1 || !strings.Contains(complaints[0], tt.want) {
			t.Errorf("%s: exit code %d, %q", tt.name, code, complaints)
		}
	}
	out, code := runBinary(t, []string{"RELAY_PROT=1", "RELAY_PORT=0", "RELAY_CATALOG=" + g.folder + "/none.yaml"}, "serve")
	if code != 1 || !strings.Contains(out, `"level":"WARN"`) || !strings.Contains(out, "RELAY_PROT") {
		t.Errorf("unknown variable: %d %s", code, out)
	}
}

// certificate writes a self-signed certificate for 127.0.0.1 and its key.
func certificate(t *testing.T, serial int64, certFile, keyFile string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "relay test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		keyFile: {Type: "EC PRIVATE KEY", Bytes: private}, certFile: {Type: "CERTIFICATE", Bytes: der},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestWireTLS(t *testing.T) {
	g := prepareGateway(t)
	certFile, keyFile := filepath.Join(g.folder, "cert.pem"), filepath.Join(g.folder, "key.pem")
	first := certificate(t, 1, certFile, keyFile)
	g.writeCatalog(catalogText(g.openai.URL(), g.anthropic.URL(), ""))
	g.start("RELAY_TLS_PORT=0", "RELAY_TLS_CERT_FILE="+certFile, "RELAY_TLS_KEY_FILE="+keyFile)
	client := func(trusted *x509.Certificate) *http.Client {
		pool := x509.NewCertPool()
		pool.AddCert(trusted)
		return &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	}
	call := func(c *http.Client, mock, body string) (string, error) {
		r, _ := http.NewRequest("POST", "https://"+g.secure+chatPath+"?mock="+mock, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+keyWide)
		a, err := c.Do(r)
		if err != nil {
			return "", err
		}
		defer a.Body.Close()
		var b bytes.Buffer
		_, err = b.ReadFrom(a.Body)
		return b.String(), err
	}
	c := client(first)
	for range 3 {
		if got, err := call(c, "", chatBody); err != nil || !strings.Contains(got, "chat.completion") {
			t.Errorf("%v: %s", err, got)
		}
	}
	big := `{"model":"gpt-mock","messages":[{"role":"user","content":"` + strings.Repeat("x", 4<<20) + `"}]}`
	if got, err := call(c, "", big); err != nil || !strings.Contains(got, "chat.completion") {
		t.Errorf("4 MiB: %v: %.100s", err, got)
	}
	if got, err := call(c, "tokens=2000,per=1", chatStreamBody); err != nil || !strings.HasSuffix(got, "data: [DONE]\n\n") {
		t.Errorf("stream: %v", err)
	}
	second := certificate(t, 2, certFile, keyFile)
	if !eventually(5*time.Second, func() bool {
		got, err := call(client(second), "", chatBody)
		return err == nil && strings.Contains(got, "chat.completion")
	}) {
		t.Error("a changed certificate is not taken")
	}
	if a := g.call("POST", chatPath, keyWide, chatBody); a.StatusCode != 200 {
		t.Errorf("the cleartext listener beside it: %d", a.StatusCode)
	}
}

// TestWireMetricsDocumented wants a row in the operating guide for every
// metric that is there, and no row for one that is not.
func TestWireMetricsDocumented(t *testing.T) {
	g := startGateway(t, onStore(redistest.Start(t).Addr())...) // which has more of them
	g.call("POST", chatPath, keyWide, chatBody)
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "operating.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := func(pattern, text string) map[string]bool {
		found := map[string]bool{}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			found[m[1]] = true
		}
		return found
	}
	rows := ""
	for line := range strings.Lines(string(guide)) {
		if strings.HasPrefix(line, "| `relay_") && !strings.HasPrefix(line, "| `relay_keys:`") {
			rows += line
		}
	}
	told := names("`(relay_[a-z0-9_]+)", rows)
	real := names(`(?m)^# TYPE (relay_[a-z0-9_]+) `, g.page("/metrics"))
	for name := range real {
		if !told[name] {
			t.Errorf("docs/operating.md has no row for %s", name)
		}
	}
	for name := range told {
		if !real[name] {
			t.Errorf("docs/operating.md tells of %s, which is no metric", name)
		}
	}
}
