// Package machine reads what processes cost and what host they run on, from
// /proc.
package machine
