// Package reader pours a large stream through a target to one client that reads
// slowly, stops for a while, or never reads again, and watches the target's
// memory and its other callers.
package reader
