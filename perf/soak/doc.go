// Package soak holds a slow load on a gateway for a long time, and then asks
// whether each request was answered, whether the books are exact to the last
// row of the last account, and whether the gateway is again as small as it was.
package soak
