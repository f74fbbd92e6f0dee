// Package hostcheck holds a host against what a relay at work needs of it, and
// prints the files that make it so. It reads /proc, /sys and the limits of its
// own process, and changes nothing.
package hostcheck
