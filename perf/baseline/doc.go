// Package baseline is the usual design to compare with: a reverse proxy of
// net/http, a goroutine per connection, written and tuned as a good engineer
// would. It does no authentication, limits or accounting.
package baseline
