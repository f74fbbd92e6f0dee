// Package usage describes what happened to one request, for billing and for
// questions later. The event is plain data; usage/spool keeps it.
package usage
