package mockhost

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// BenchmarkChat drives one connection; the server's share is about half of
// what is shown, since client and server are one process.
func BenchmarkChat(b *testing.B) {
	for _, rest := range []string{"", `,"stream":true`} {
		b.Run(strings.Trim(rest, `,"`), func(b *testing.B) {
			s := start(b, Options{Scenario: "instant,tokens=150"})
			conn, err := net.Dial("tcp", s.Addr())
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			body := `{"model":"gpt-mock","messages":[{"role":"user","content":"` + strings.Repeat("x", 2000) + `"}]` + rest + `}`
			request := fmt.Appendf(nil, "POST /v1/chat/completions HTTP/1.1\r\nHost: mock\r\nAuthorization: Bearer k\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			r := bufio.NewReader(conn)
			before := cpu()
			b.ReportAllocs()
			for b.Loop() {
				conn.Write(request)
				response, err := http.ReadResponse(r, nil)
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, response.Body)
			}
			b.ReportMetric(float64(cpu()-before)/float64(b.N)/1000, "cpu-us/op")
		})
	}
}

func cpu() int64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}
