package reactor

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// serverConfig makes the TLS settings of a listener, or nil for cleartext.
func serverConfig(o ListenOptions) (*tls.Config, error) {
	if o.TLS == nil && o.CertFile == "" && o.KeyFile == "" {
		return nil, nil
	}
	config := &tls.Config{}
	if o.TLS != nil {
		config = o.TLS.Clone()
	}
	if config.MinVersion == 0 {
		config.MinVersion = tls.VersionTLS12
	}
	if config.NextProtos == nil {
		config.NextProtos = []string{"http/1.1"}
	}
	config.GetConfigForClient = tellHello(config.GetConfigForClient)
	if o.CertFile == "" && o.KeyFile == "" {
		return config, nil
	}
	k := &certificate{certFile: o.CertFile, keyFile: o.KeyFile}
	if err := k.load(); err != nil {
		return nil, err
	}
	config.Certificates = nil
	config.GetCertificate = k.get
	return config, nil
}

// tellHello makes a tls.Config.GetConfigForClient that tells the lobby of each
// ClientHello, and then does what next does.
func tellHello(next func(*tls.ClientHelloInfo) (*tls.Config, error)) func(*tls.ClientHelloInfo) (*tls.Config, error) {
	return func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		hello.Conn.(*wire).guest.heard()
		if next == nil {
			return nil, nil
		}
		return next(hello)
	}
}

// A certificate follows a pair of files. It is looked at by handshakes, so
// never on a loop. The tls.Config stays, and with it the ticket keys: clients
// resume over a change.
type certificate struct {
	certFile, keyFile string

	mu       sync.Mutex
	lookedAt time.Time
	certTime time.Time // modification times of what is loaded
	keyTime  time.Time
	pair     *tls.Certificate
}

// get implements tls.Config.GetCertificate. A pair that cannot be read leaves
// the one before it in use: it may be half written.
func (k *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.lookedAt) >= certificateLook {
		_ = k.load()
	}
	return k.pair, nil
}

// load reads the files if they are not those of the last time. k.mu is held,
// or k is not shared yet.
func (k *certificate) load() error {
	k.lookedAt = time.Now()
	certTime, err := modified(k.certFile)
	if err != nil {
		return err
	}
	keyTime, err := modified(k.keyFile)
	if err != nil {
		return err
	}
	if k.pair != nil && certTime.Equal(k.certTime) && keyTime.Equal(k.keyTime) {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(k.certFile, k.keyFile)
	if err != nil {
		return fmt.Errorf("reactor: certificate %s with key %s: %w", k.certFile, k.keyFile, err)
	}
	k.pair, k.certTime, k.keyTime = &pair, certTime, keyTime
	return nil
}

func modified(name string) (time.Time, error) {
	st, err := os.Stat(name)
	if err != nil {
		return time.Time{}, fmt.Errorf("reactor: certificate: %w", err)
	}
	return st.ModTime(), nil
}
