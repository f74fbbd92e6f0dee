// Package cmd holds the commands, one folder each, and the test that keeps the
// shape of the whole tree: which folder may use which, who may import a
// driver, and what the code of a loop must not do.
package cmd
