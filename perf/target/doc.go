// Package target starts what a measurement points at, each as a process of its
// own on loopback: Relay, gateways of the usual design, the mock provider, plain
// nginx and HAProxy. A target ends with Close, with its context, and with the
// process that started it.
package target
