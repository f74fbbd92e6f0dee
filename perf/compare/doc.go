// Package compare measures several proxies side by side: rounds are
// interleaved, and mock, generator, rate and requests are the same for all.
package compare
