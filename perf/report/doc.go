// Package report prints results as Markdown and keeps them as JSON.
package report
