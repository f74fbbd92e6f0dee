package loop

import (
	"relay/httpparse"
	"relay/store/catalog"
	"relay/upstream/wire"
	"relay/usage"
)

// answerModels answers the model routes from the catalog: only what the key
// may use is told.
func (x *exchange) answerModels(r *httpparse.Request) {
	l, c := x.loop, x.client
	x.readNs = l.nowNs
	body, e, param := x.modelsBody(r.Query)
	if e != wire.NoError {
		x.refuse(e, "", param, 0)
		return
	}
	l.scratch = body
	if l.draining {
		c.lastAnswer = true
	}
	x.event.Status = 200
	x.answer.bodyOut = int64(len(body))
	x.account(usage.Completed, wire.NoError)
	out := x.appendLocalHead(c.room(512+len(body)), len(body))
	c.put(append(out, body...))
	x.detach()
}

// modelsBody builds the answer in the loop's scratch.
func (x *exchange) modelsBody(query []byte) (body []byte, e wire.Error, param string) {
	l := x.loop
	if x.route.ID == wire.ModelByID {
		name, ok := wire.AppendModelID(l.scratch[:0], x.route.Suffix)
		l.scratch = name
		if !ok {
			return nil, wire.UnknownModel, "model"
		}
		model := x.tables.Model(name)
		if model == nil || !x.key.Policy.Allows(model) {
			return nil, wire.UnknownModel, "model"
		}
		return wire.AppendModel(l.scratch[:0], x.route.Shape, modelInfo(model, x.tables.LoadedUnix)), wire.NoError, ""
	}
	l.infos = l.infos[:0]
	for _, m := range x.tables.Models {
		if x.key.Policy.Allows(m) {
			l.infos = append(l.infos, modelInfo(m, x.tables.LoadedUnix))
		}
	}
	body, param = wire.AppendModelList(l.scratch[:0], x.route.Shape, l.infos, query)
	if param != "" {
		return nil, wire.BadRequest, param
	}
	return body, wire.NoError, ""
}

func modelInfo(m *catalog.Model, loadedUnix int64) wire.ModelInfo {
	info := wire.ModelInfo{ID: m.Name, OwnedBy: "relay", Created: loadedUnix}
	if len(m.Bindings) > 0 {
		info.OwnedBy = m.Bindings[0].Host.Name
	}
	return info
}
