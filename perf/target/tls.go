package target

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const tlsConfig = `global
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
frontend in
	bind %[3]s ssl crt %[5]s alpn http/1.1 backlog 4096
	default_backend out
backend out
	server mock %[2]s pool-purge-delay 600s
`

// TLS puts HAProxy before the mock, with a certificate of its own, for systems
// that are to reach their provider by TLS. It gives the file with the
// certificate, which they have to trust.
func TLS(ctx context.Context, threads int, mock string) (t *Target, trusted string, err error) {
	path, err := lookPath("haproxy")
	if err != nil {
		return nil, "", err
	}
	pair, certificate, err := newCertificate()
	if err != nil {
		return nil, "", fmt.Errorf("target: certificate: %w", err)
	}
	var written error
	t, err = plain(ctx, "tls", "haproxy.cfg", func(addr string, files uint64) string {
		return fmt.Sprintf(tlsConfig, threads, mock, addr, (files-filesOwn)/2, pairName)
	}, func(dir, file string) *exec.Cmd {
		trusted = filepath.Join(dir, "trusted.pem")
		os.WriteFile(filepath.Join(dir, pairName), pair, 0o600) // HAProxy names what it lacks
		written = os.WriteFile(trusted, certificate, 0o600)
		cmd := exec.Command(path, "-db", "-f", file)
		cmd.Dir = dir
		return cmd
	})
	if err == nil && written != nil {
		t.Close()
		err = fmt.Errorf("target: certificate: %w", written)
	}
	return t, trusted, err
}

const pairName = "pair.pem" // certificate and key, as HAProxy reads them

// newCertificate makes a certificate for loopback that signs itself, with its
// key and without.
func newCertificate() (pair, certificate []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "relay-perf"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(48 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return bytes.Join([][]byte{certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})}, nil), certificate, nil
}
