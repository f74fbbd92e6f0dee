// Package sdk holds the tests of the mock provider with the official SDKs.
// They stand apart because compiling the SDKs takes minutes.
package sdk
