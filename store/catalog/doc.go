// Package catalog holds what an operator configured, compiled into immutable
// tables: hosts, host keys, models, policies, accounts, relay keys.
//
// Ownership: Tables are built off the loops and never change afterwards, so
// every loop reads them without a lock. An exchange keeps pointers into the
// generation that it started under.
package catalog
