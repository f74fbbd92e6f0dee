package baseline

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
)

// BenchmarkExchange sends one request after the other on one connection. The
// allocations are those of the whole process: the gateway's, and few of the
// mock. CPU per request under load is measured on processes, not here.
func BenchmarkExchange(b *testing.B) {
	for _, engine := range Engines() {
		for _, tt := range []struct{ name, path, body string }{
			{"chat", chatPath, chatBody}, {"chat-stream", chatPath, chatStream},
			{"message", messagePath, messageBody}, {"message-stream", messagePath, messageStream},
		} {
			b.Run(engine+"/"+tt.name, func(b *testing.B) {
				r := startRig(b, engine, nil)
				nc, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
				if err != nil {
					b.Fatal(err)
				}
				defer nc.Close()
				body := tt.body[:len(tt.body)-1] + `,"padding":"` + strings.Repeat("x", 2000) + `"}`
				request := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nUser-Agent: bench\r\nAccept: */*\r\nContent-Length: %d\r\n\r\n%s",
					tt.path, keyWide, len(body), body)
				in := bufio.NewReader(nc)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := nc.Write(request); err != nil {
						b.Fatal(err)
					}
					if err := skipAnswer(in); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// skipAnswer reads one answer of status 200 and forgets it.
func skipAnswer(in *bufio.Reader) error {
	length := -1
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
			return fmt.Errorf("status line %q", line)
		}
		if name := []byte("content-length: "); len(line) > len(name) && bytes.EqualFold(line[:len(name)], name) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(name):]))); err != nil {
				return err
			}
		}
		if len(line) == 2 {
			break
		}
	}
	if length >= 0 {
		_, err := in.Discard(length)
		return err
	}
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		size, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 31)
		if err != nil {
			return err
		}
		if _, err := in.Discard(int(size) + 2); err != nil || size == 0 {
			return err
		}
	}
}
