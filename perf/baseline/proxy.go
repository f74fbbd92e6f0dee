package baseline

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	idlePerHostMax = 20_000 // upstream connections kept
	bufferBytes    = 32 << 10
	bufferStream   = 4 << 10 // net/http's own buffers, read and write
	idleTimeout    = 10 * time.Minute
	dialTimeout    = 3 * time.Second
	stopTimeout    = 2 * time.Second
)

// buffers lends the copy buffers of the proxy.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte  { return *b.pool.Get().(*[]byte) }
func (b *buffers) Put(p []byte) { b.pool.Put(&p) }

// Handler proxies to an upstream, streams included.
func Handler(upstream *url.URL) http.Handler {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport: &http.Transport{
			DialContext: dialer.DialContext, DisableCompression: true,
			MaxIdleConns: idlePerHostMax, MaxIdleConnsPerHost: idlePerHostMax, IdleConnTimeout: idleTimeout,
			ReadBufferSize: bufferStream, WriteBufferSize: bufferStream,
		},
		FlushInterval: -1,
		BufferPool:    &buffers{sync.Pool{New: func() any { b := make([]byte, bufferBytes); return &b }}},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Without it the server closes the request body when the answer begins, and a
		// transport that has not yet read its end gives up the upstream connection: about
		// one stream in fifty breaks when the upstream is quick.
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			http.Error(w, err.Error(), http.StatusHTTPVersionNotSupported)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// Serve proxies on one listener and serves /metrics on another until the
// context ends.
func Serve(ctx context.Context, inference, control net.Listener, upstream *url.URL) error {
	metrics := http.NewServeMux()
	metrics.Handle("/metrics", promhttp.Handler())
	ended := make(chan error, 2)
	servers := []*http.Server{{Handler: Handler(upstream), IdleTimeout: idleTimeout, ReadHeaderTimeout: time.Minute}, {Handler: metrics}}
	for i, l := range []net.Listener{inference, control} {
		go func() { ended <- servers[i].Serve(l) }()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	stop, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	for _, s := range servers {
		if s.Shutdown(stop) != nil {
			s.Close()
		}
	}
	return err
}
