package upstream

import (
	"bytes"

	"relay/httpparse"
	"relay/store/catalog"
	"relay/upstream/wire"
)

// A RequestHead is what the head of an upstream request is made from.
type RequestHead struct {
	Method []byte
	Suffix []byte            // wire.Route.Suffix: the path behind /v1
	Query  []byte            // without '?'; nil when there is none
	Fields []httpparse.Field // of the caller
	Host   *catalog.Host
	Key    *catalog.HostKey

	// Credential is the relay key that the caller showed. It is never sent on,
	// in whatever field it also stands.
	Credential    []byte
	RequestID     []byte // ours
	ContentLength int64  // bytes of the body as it is sent; -1 = no body
}

// unsent are the caller's fields that no host gets. Unknown fields are passed
// on, since vendors add their own all the time.
var unsent = newFieldSet(
	// Credentials, and what speaks to Relay alone.
	"authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "cookie2",
	"x-wr-*", "x-relay-*", "proxy-*",
	// Where the request came from.
	"forwarded", "via", "x-real-ip", "true-client-ip", "x-client-ip", "x-cluster-client-ip",
	"origin", "referer", "user-agent", "max-forwards", "x-forwarded", "x-original-*", "x-rewrite-url",
	"x-forwarded-*", "cf-*", "x-stainless-*", "sec-*", "x-amzn-*", "x-envoy-*",
	// Traces of the caller, whose spans do not continue at a host.
	"traceparent", "tracestate", "baggage", "x-b3-*", "x-request-id", "request-id",
	// Made anew, or false once the body has been edited.
	"accept-encoding", "content-encoding", "content-md5", "digest", "content-digest", "repr-digest", "expect",
	// Would make another request of it than the one that was admitted.
	"x-http-method", "x-http-method-override", "x-method-override",
	// Bound to the caller's account at the vendor, or replaced by the host's own.
	"openai-organization", "openai-project", "anthropic-version",
	"anthropic-workspace-id", "anthropic-user-profile-id", "anthropic-dangerous-direct-browser-access",
)

// foreign are the fields of the other vendor, by the shape of the host.
var foreign = [...]*fieldSet{
	wire.OpenAI:    newFieldSet("anthropic-*"),
	wire.Anthropic: newFieldSet("openai-*"),
}

// AppendRequestHead appends the whole head, with the empty line.
func AppendRequestHead(dst []byte, a *RequestHead) []byte {
	dst = append(dst, a.Method...)
	dst = append(dst, ' ')
	dst = append(dst, a.Host.BasePath...)
	if a.Host.Shape == wire.Anthropic {
		dst = append(dst, "/v1"...)
	}
	dst = append(dst, a.Suffix...)
	if a.Query != nil && !a.reveals(a.Query) {
		dst = append(dst, '?')
		dst = append(dst, a.Query...)
	}
	dst = append(dst, " HTTP/1.1\r\n"...)
	dst = appendText(dst, "Host", a.Host.HostPort)
	if a.ContentLength >= 0 {
		dst = httpparse.AppendFieldUint(dst, "Content-Length", uint64(a.ContentLength))
	}
	dst = append(dst, "User-Agent: relay\r\nAccept-Encoding: identity\r\n"...)
	dst = httpparse.AppendField(dst, "X-Request-ID", a.RequestID)
	dst = a.appendCredential(dst)
	var name [fieldNameBytesMax]byte
	for i := range a.Fields {
		f := &a.Fields[i]
		n := lower(&name, f.Name)
		if unsent.has(n) || foreign[a.Host.Shape].has(n) || a.reveals(f.Value) || httpparse.HopByHop(a.Fields, f.Name) {
			continue
		}
		dst = f.Append(dst)
	}
	return append(dst, "\r\n"...)
}

// reveals reports whether a text holds the caller's relay key.
func (a *RequestHead) reveals(text []byte) bool {
	return len(a.Credential) > 0 && bytes.Contains(text, a.Credential)
}

// appendCredential appends who we are to the host, and what version we speak.
func (a *RequestHead) appendCredential(dst []byte) []byte {
	if a.Host.Shape == wire.Anthropic {
		dst = httpparse.AppendField(dst, "x-api-key", a.Key.Value)
		if version := find(a.Fields, "anthropic-version"); len(version) > 0 && !a.reveals(version) {
			return httpparse.AppendField(dst, "anthropic-version", version)
		}
		return appendText(dst, "anthropic-version", a.Host.AnthropicVersion)
	}
	dst = append(dst, "Authorization: Bearer "...)
	dst = append(dst, a.Key.Value...)
	dst = append(dst, "\r\n"...)
	if a.Host.Organization != "" {
		dst = appendText(dst, "OpenAI-Organization", a.Host.Organization)
	}
	if a.Host.Project != "" {
		dst = appendText(dst, "OpenAI-Project", a.Host.Project)
	}
	return dst
}

func appendText(dst []byte, name, value string) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}

// find is the value of the first field of a name, which is in lower case.
func find(fields []httpparse.Field, name string) []byte {
	for i := range fields {
		if httpparse.EqualFold(fields[i].Name, name) {
			return fields[i].Value
		}
	}
	return nil
}
