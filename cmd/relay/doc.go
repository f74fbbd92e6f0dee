// Command relay is an LLM gateway: one static binary that takes requests in
// OpenAI or Anthropic shape, applies the policy of the caller's relay key, and
// passes them on to a provider.
//
// This package assembles. It reads the settings, derives the limits of the
// process and of each loop from them, starts the parts in the order in which
// they depend on each other, and ends them in the opposite order. It decides
// nothing about a request.
//
// Stdout belongs to programs: serve and demo print one line per listener there
// and nothing else but what a command is asked for. Everything that is for
// people goes to stderr as JSON lines.
package main
