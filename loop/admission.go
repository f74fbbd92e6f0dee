package loop

import (
	"bytes"

	"relay/admit"
	"relay/store/catalog"
	"relay/upstream"
	"relay/upstream/wire"
	"relay/usage"
)

// The models that the vendor's API takes when the caller names none (OpenAI
// API reference, moderations and images).
const (
	moderationModel = "omni-moderation-latest"
	imageModel      = "dall-e-2"
)

// admit decides whether the request, whose body is whole, may go on: model and
// policy, a host that serves it, limits.
func (x *exchange) admit() {
	l := x.loop
	name, ok := x.modelAsked()
	if !ok {
		x.refuse(wire.BadRequest, "the model name is too long", "model", 0)
		return
	}
	if len(name) == 0 {
		x.refuse(wire.BadRequest, "model is required: name a model of this gateway", "model", 0)
		return
	}
	model, e := admit.Model(x.tables, x.key, name)
	if e == wire.UnknownModel {
		x.refuse(e, x.unknownModel(name), "model", 0)
		return
	}
	if e != wire.NoError {
		x.refuse(e, "", "model", 0)
		return
	}
	x.model = model
	var tried upstream.Tried
	var found bool
	x.binding, x.hostKey, found = upstream.Pick(model, x.route.Shape, l.rotation, &tried)
	if !found {
		x.refuse(wire.BadRequest, "no host of this route's shape serves the model: use a route of the other shape", "model", 0)
		return
	}
	x.describe()
	x.demand()
}

// unknownModel says which model does not exist, unless its name is where the
// caller put its key by mistake.
func (x *exchange) unknownModel(name []byte) string {
	if bytes.Contains(name, admit.Credential(x.parsedHead(), x.route.Shape)) {
		return ""
	}
	return "The model '" + string(name) + "' does not exist."
}

// modelAsked copies the model name out of the body, or takes the vendor's
// default where the route has one. It reports false for a name that is too
// long for any model.
func (x *exchange) modelAsked() ([]byte, bool) {
	l := x.loop
	switch {
	case x.scan.Model.Len == 0 && x.route.ID == wire.Moderations:
		l.scratch = append(l.scratch[:0], moderationModel...)
	case x.scan.Model.Len == 0 && x.route.ID == wire.Images:
		l.scratch = append(l.scratch[:0], imageModel...)
	case x.scan.Model.Len == 0:
		return nil, true
	case x.multipart:
		l.scratch = append(l.scratch[:0], cut(x.body, x.scan.Model)...)
	default:
		l.scratch = x.scan.AppendModel(l.scratch[:0], x.body)
	}
	if len(l.scratch) > modelNameMax {
		return nil, false
	}
	x.nameLen = int16(copy(x.name[:], l.scratch))
	x.event.ModelAsked = viewString(x.name[:x.nameLen])
	return x.name[:x.nameLen], true
}

// proceed records that a billable attempt starts and makes it.
func (x *exchange) proceed() {
	l := x.loop
	if x.route.ID.Metered() {
		x.event.Tokens = usage.Tokens{Input: usage.EstimateTokens(int64(len(x.body))), Output: max(x.scan.MaxTokens, 0)}
		x.event.Source = usage.Estimated
		x.event.Cost = usage.Charge(&x.event.Tokens, &x.event.Price)
		if !l.ports.Spool.Admitted(&x.event) {
			l.metrics.Shed[ShedSpool]++
			x.refuse(wire.SpoolFull, "", "", 0)
			return
		}
	}
	x.prepareBody()
	x.enter(waiting)
	x.attempt.open()
}

// describe fills in what the usage row says about who asked for what.
func (x *exchange) describe() {
	e := &x.event
	e.Generation = x.tables.Generation
	e.StartUnixNs = x.startWall
	e.Key = x.key.Name
	e.Account = accountName(x.key)
	e.Policy = x.key.Policy.Name
	e.Route = x.route.ID.String()
	e.ShapeIn = x.route.Shape.String()
	e.Stream = x.scan.Stream
	if x.model != nil {
		e.Model = x.model.Name
	}
	if x.binding != nil {
		e.UpstreamModel = x.binding.UpstreamModel
		e.Host, e.HostKey = x.binding.Host.Name, x.hostKey.Name
		e.ShapeOut = x.binding.Host.Shape.String()
		if x.binding.Price != nil {
			e.Price = *x.binding.Price
		}
	}
}

func accountName(k *catalog.RelayKey) string {
	if k.Account == nil {
		return ""
	}
	return k.Account.Name
}
