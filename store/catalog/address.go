package catalog

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// address takes a base_url apart. The text is never repeated in a problem: it
// may hold a credential.
func (c *compiler) address(at Place, f *Field[string], h *Host) {
	u, wrong := parseBase(f.Value)
	if wrong != "" {
		c.problems.Error(at, f.Line, "%s", wrong)
		return
	}
	h.TLS = u.Scheme == "https"
	h.Hostname = strings.ToLower(u.Hostname())
	if ip, err := netip.ParseAddr(h.Hostname); err == nil {
		h.Hostname = ip.String()
	}
	own, port := uint16(80), u.Port()
	if h.TLS {
		own = 443
	}
	h.Port = own
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			c.problems.Error(at, f.Line, "has a wrong port; allowed are 1 to 65535")
			return
		}
		h.Port = uint16(n)
	}
	h.HostPort = h.Hostname
	if strings.Contains(h.Hostname, ":") {
		h.HostPort = "[" + h.Hostname + "]"
	}
	if h.Port != own {
		h.HostPort += ":" + strconv.Itoa(int(h.Port))
	}
	h.BasePath = strings.TrimRight(u.EscapedPath(), "/")
	if h.Shape == Anthropic {
		h.BasePath = strings.TrimRight(strings.TrimSuffix(h.BasePath, "/v1"), "/")
	}
	h.Endpoint = stableHash(u.Scheme + "|" + h.Hostname + "|" + strconv.Itoa(int(h.Port)))
}

// parseBase checks the form of a base_url.
func parseBase(text string) (u *url.URL, wrong string) {
	if len(text) > pathBytesMax {
		return nil, "is longer than " + strconv.Itoa(pathBytesMax) + " bytes"
	}
	if !plainText(text) {
		return nil, "may hold printable ASCII only, without blanks, quotes and backslashes"
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, "is not a URL such as https://api.openai.com/v1"
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, "must begin with http:// or https://"
	case u.User != nil:
		return nil, "may not hold a user or password"
	case u.RawQuery != "" || u.ForceQuery:
		return nil, "may not hold a query"
	case u.Fragment != "" || strings.Contains(text, "#"):
		return nil, "may not hold a fragment"
	case !soundHostname(u):
		return nil, "has no sound host name; allowed are DNS names (of ASCII, without a dot at the end) and IP addresses (IPv6 in brackets, without a zone)"
	case strings.HasSuffix(u.Host, ":"):
		return nil, "has a colon without a port"
	}
	for _, segment := range strings.Split(u.Path, "/") {
		if segment == "." || segment == ".." {
			return nil, "may not hold . or .. as a part of its path"
		}
	}
	return u, ""
}

// soundHostname checks labels as RFC 1123 §2.1 does, and allows underscores,
// which container networks use.
func soundHostname(u *url.URL) bool {
	hostname := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		ip, err := netip.ParseAddr(hostname)
		return err == nil && ip.Is6() && ip.Zone() == ""
	}
	if len(hostname) > 253 {
		return false
	}
	for _, label := range strings.Split(hostname, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if b := label[i]; !alphanumeric(b) && b != '-' && b != '_' {
				return false
			}
		}
	}
	return true
}
