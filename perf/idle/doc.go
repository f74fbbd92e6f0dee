// Package idle holds many idle connections against a target and sees what each
// costs and whether others notice.
package idle
