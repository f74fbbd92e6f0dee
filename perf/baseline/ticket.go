package baseline

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
	"unsafe"

	"relay/admit"
	"relay/httpparse"
	"relay/store/catalog"
	"relay/store/state"
	"relay/upstream"
	"relay/upstream/wire"
	"relay/usage"
)

// A ticket is one request on its way through the gateway, up to its usage row.
// Owner: the goroutine that serves the request. It is used again after done.
type ticket struct {
	core   *core
	lane   *lane
	caller context.Context // ends when the caller leaves; nil = the engine cannot tell

	route   wire.Route        // Suffix is a view into path
	path    []byte            // without the query
	shown   httpparse.Request // the fields in which a credential may come
	texts   []byte            // of them
	id      string            // told to the caller and to the upstream
	ids     []string          // the same as the value of a field of net/http
	key     *catalog.RelayKey
	model   *catalog.Model
	binding *catalog.Binding
	hostKey *catalog.HostKey
	body    *body // nil before it is read and once it is not needed

	scan      wire.Scan
	name      []byte        // model as the caller wrote it
	decided   chan struct{} // closed when a parked demand is decided; nil = nobody waits
	demand    admit.Demand
	verdict   admit.Verdict // on it
	slot      bool          // holds a slot of the in-flight cap
	strip     bool          // the usage chunk is ours and not passed on
	accounted bool
	answer    answer

	start  time.Time // head read
	readAt time.Time // body read
	sentAt time.Time // handed to the transport; zero = not yet
	event  usage.Event
	idText [36]byte
	hostID [upstreamIDMax]byte
}

// A refusal is an error of the gateway's own, in the words of the shared
// tables. Its zero value lets the request go on.
type refusal struct {
	e              wire.Error
	message, param string
	retryNs        int64 // until the caller may come again; 0 = the error's usual time; state.NeverNs: never
}

func newTicket(c *core) *ticket { return &ticket{core: c} }

// ticket lends a ticket, with its clock started.
func (c *core) ticket() *ticket {
	t := c.tickets.Get().(*ticket)
	t.lane, t.start = c.lane(), time.Now()
	return t
}

// done gives back all that the request held, and the ticket itself. A request
// that nobody accounted for failed by a fault of ours.
func (t *ticket) done() {
	if !t.accounted {
		t.settle(usage.Failed, wire.InternalError)
	}
	t.dropBody()
	a := &t.answer
	*t = ticket{
		core: t.core, path: t.path[:0], shown: httpparse.Request{Fields: t.shown.Fields[:0]}, texts: t.texts[:0], name: t.name[:0],
		answer: answer{stream: a.stream, json: a.json, buffer: a.buffer, out: a.out[:0]},
	}
	if cap(t.answer.out) > keptBytesMax {
		t.answer.out = nil
	}
	if s := t.answer.stream; s != nil && s.Held() > keptBytesMax {
		t.answer.stream = nil
	}
	t.core.tickets.Put(t)
}

// dropBody lets the request body go.
func (t *ticket) dropBody() {
	if t.body != nil {
		t.event.BytesIn = int64(len(t.body.bytes))
		t.body.drop()
		t.body = nil
	}
}

// The fields in which a credential may come.
var (
	relayField  = []byte("X-WR-API-Key")
	keyField    = []byte("x-api-key")
	bearerField = []byte("Authorization")
)

// show notes a field in which a credential may stand.
func show[T string | []byte](t *ticket, name []byte, value T) {
	from := len(t.texts)
	t.texts = append(t.texts, value...)
	t.shown.Fields = append(t.shown.Fields, httpparse.Field{Name: name, Value: t.texts[from:len(t.texts):len(t.texts)]})
}

// A head is what decides before the body.
type head struct {
	method   string
	version  bool   // there is an anthropic-version
	id       string // X-Request-ID
	encoding string // Content-Encoding
	media    string // Content-Type
	announce int64  // length of the body; -1 = not told
}

// served are the routes of this gateway.
var served = map[wire.RouteID]bool{
	wire.ChatCompletions: true, wire.Completions: true, wire.Embeddings: true, wire.Responses: true,
	wire.Messages: true, wire.CountTokens: true,
}

// enter decides what can be decided before the body: path and method, announced
// length, in-flight cap, relay key, in this order. path and shown are set.
func (t *ticket) enter(h *head) refusal {
	c := t.core
	t.route = wire.FindRoute(t.path, h.version)
	t.takeIDs(h.id)
	if !served[t.route.ID] {
		return refusal{e: wire.UnknownPath}
	}
	if h.method != t.route.ID.Allow() {
		return refusal{e: wire.MethodNotAllowed}
	}
	if h.announce > c.options.RequestBytesMax {
		return refusal{e: wire.BodyTooLarge}
	}
	if !c.inflight.Acquire() {
		return refusal{e: wire.Overloaded}
	}
	t.slot = true
	key, e := admit.Key(c.tables, admit.Credential(&t.shown, t.route.Shape), t.start.Unix())
	if e != wire.NoError {
		return refusal{e: e}
	}
	t.key = key
	if h.encoding != "" && !strings.EqualFold(h.encoding, "identity") || hasPrefixFold(h.media, "multipart/") {
		return refusal{e: wire.UnsupportedMedia}
	}
	return refusal{}
}

func hasPrefixFold(s, lower string) bool {
	return len(s) >= len(lower) && strings.EqualFold(s[:len(lower)], lower)
}

// credential is what the caller showed, to be kept from hosts.
func (t *ticket) credential() []byte { return admit.Credential(&t.shown, t.route.Shape) }

// takeIDs makes a UUIDv7 for the row, and takes the caller's own id, if it is
// printable and not too long, for what is told.
func (t *ticket) takeIDs(sent string) {
	id := &t.event.RequestID
	binary.BigEndian.PutUint64(id[0:], uint64(t.start.UnixMilli())<<16|rand.Uint64()&0x0fff|0x7000)
	binary.BigEndian.PutUint64(id[8:], rand.Uint64()&0x3fffffffffffffff|0x8000000000000000)
	if len(sent) > 0 && len(sent) <= requestIDMax && strings.IndexFunc(sent, func(r rune) bool { return r < ' ' || r > '~' }) < 0 {
		t.id, t.event.CallerID = sent, sent
		return
	}
	b := &t.idText
	hex.Encode(b[0:8], id[0:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:36], id[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	t.id = string(b[:]) // engines send it after the ticket is done
}

// readBody reads the body.
func (t *ticket) readBody(r io.Reader, announced int64) refusal {
	t.body = t.core.body()
	fits, err := t.body.read(r, announced, t.core.options.RequestBytesMax)
	switch {
	case err != nil:
		return refusal{e: wire.BadRequest, message: "the request body could not be read to its end"}
	case !fits:
		return refusal{e: wire.BodyTooLarge}
	}
	return refusal{}
}

// admit decides whether a request whose body is whole goes on: model and
// policy, a host that serves it, limits, and that its attempt is on paper.
func (t *ticket) admit() refusal {
	c := t.core
	t.readAt = time.Now()
	t.scan.Reset(t.route.ID)
	if fault := t.scan.Advance(t.body.bytes, true); fault != wire.ScanOK {
		return refusal{e: wire.BadRequest, message: fault.Message(), param: fault.Param()}
	}
	t.name = t.scan.AppendModel(t.name[:0], t.body.bytes)
	t.event.ModelAsked = viewString(t.name)
	model, e := admit.Model(c.tables, t.key, t.name)
	if e == wire.UnknownModel && !strings.Contains(t.event.ModelAsked, viewString(t.credential())) {
		return refusal{e: e, message: "The model '" + string(t.name) + "' does not exist.", param: "model"}
	}
	if e != wire.NoError {
		return refusal{e: e, param: "model"}
	}
	t.model = model
	var found bool
	t.binding, t.hostKey, found = t.lane.pick(model, t.route.Shape)
	if !found {
		return refusal{e: wire.BadRequest, message: "no host of this route's shape serves the model: use a route of the other shape", param: "model"}
	}
	t.describe()
	if refused := t.reserve(); refused.e != wire.NoError {
		return refused
	}
	if t.route.ID.Metered() {
		t.event.Tokens = usage.Tokens{Input: usage.EstimateTokens(int64(len(t.body.bytes))), Output: max(t.scan.MaxTokens, 0)}
		t.event.Source = usage.Estimated
		t.event.Cost = usage.Charge(&t.event.Tokens, &t.event.Price)
		if !t.lane.admitted(&t.event) {
			return refusal{e: wire.SpoolFull}
		}
	}
	t.edit()
	return refusal{}
}

// edit works out what changes in the body on its way to the host.
func (t *ticket) edit() {
	b := t.body
	t.strip = t.scan.Stream && !t.scan.IncludeUsage && !t.binding.Host.NoStreamOptions &&
		(t.route.ID == wire.ChatCompletions || t.route.ID == wire.Completions)
	b.edits, b.texts = t.scan.AppendEdits(b.edits, b.texts, b.bytes, t.binding.UpstreamModel, t.strip)
	b.length = wire.EditedLen(b.bytes, b.edits)
}

// attempt notes that the request is handed to a transport.
func (t *ticket) attempt() {
	t.event.Attempts++
	t.sentAt = time.Now()
}

// failed says what a caller who has nothing yet is told of a failed attempt.
func (t *ticket) failed(f upstream.Fault) refusal {
	v := upstream.Next(f, upstream.Evidence{Sent: f != upstream.Refused}, t.event.Attempts)
	return refusal{e: v.Error}
}

// retryAfterNs is what a caller is told with a status that asks for another
// try; 0 = nothing.
func retryAfterNs(status int, ns int64) int64 {
	switch {
	case ns == state.NeverNs:
		return 0
	case ns == 0 && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == 529):
		return int64(time.Second)
	}
	return ns
}

// viewString is p as a string without a copy, for strings of an event, which
// is encoded before p changes.
func viewString(p []byte) string { return unsafe.String(unsafe.SliceData(p), len(p)) }
