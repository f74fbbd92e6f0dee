package wire

import (
	"net/url"
	"strconv"
	"time"
)

// A ModelInfo is what the models list says of one model.
type ModelInfo struct {
	ID      string
	OwnedBy string // the host that serves it first
	Created int64  // unix seconds: when the catalog was loaded
}

// AppendModelList appends the answer to GET /v1/models in the shape. For
// Anthropic, query carries limit, after_id and before_id, percent-encoded as
// sent. A bad limit is a fault named by the returned parameter, else "". So is
// an id that is not in the list, and before_id beside after_id.
func AppendModelList(dst []byte, s Shape, models []ModelInfo, query []byte) (out []byte, badParam string) {
	if s == OpenAI {
		dst = append(dst, `{"object":"list","data":`...)
		return append(appendModels(dst, s, models), '}'), ""
	}
	page, more, badParam := modelPage(models, query)
	if badParam != "" {
		return dst, badParam
	}
	first, last := "", ""
	if len(page) > 0 {
		first, last = page[0].ID, page[len(page)-1].ID
	}
	dst = append(dst, `{"data":`...)
	dst = appendModels(dst, s, page)
	dst = append(dst, `,"has_more":`...)
	dst = strconv.AppendBool(dst, more)
	dst = append(dst, `,"first_id":`...)
	dst = appendQuotedOrNull(dst, first)
	dst = append(dst, `,"last_id":`...)
	dst = appendQuotedOrNull(dst, last)
	return append(dst, '}'), ""
}

// modelPage is the part of the list that the query asks for; more tells
// whether the list goes on in the direction of the query.
func modelPage(models []ModelInfo, query []byte) (page []ModelInfo, more bool, badParam string) {
	asked, err := url.ParseQuery(string(query))
	if err != nil {
		return nil, false, "query"
	}
	limit := ModelPageDefault
	if asked.Has("limit") {
		limit, err = strconv.Atoi(asked.Get("limit"))
		if err != nil || limit < 1 || limit > ModelPageMax {
			return nil, false, "limit"
		}
	}
	after, before := asked.Get("after_id"), asked.Get("before_id")
	switch {
	case after != "" && before != "":
		return nil, false, "before_id"
	case before != "":
		n := modelIndex(models, before)
		if n < 0 {
			return nil, false, "before_id"
		}
		from := max(0, n-limit)
		return models[from:n], from > 0, ""
	case after != "":
		n := modelIndex(models, after)
		if n < 0 {
			return nil, false, "after_id"
		}
		models = models[n+1:]
	}
	n := min(limit, len(models))
	return models[:n], n < len(models), ""
}

func modelIndex(models []ModelInfo, id string) int {
	for i := range models {
		if models[i].ID == id {
			return i
		}
	}
	return -1
}

func appendModels(dst []byte, s Shape, models []ModelInfo) []byte {
	dst = append(dst, '[')
	for i, m := range models {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendModel(dst, s, m)
	}
	return append(dst, ']')
}

// AppendModel appends the answer to GET /v1/models/{id} in the shape. What the
// catalog does not know of a model is null.
func AppendModel(dst []byte, s Shape, m ModelInfo) []byte {
	if s == OpenAI {
		dst = append(dst, `{"id":`...)
		dst = appendQuoted(dst, m.ID)
		dst = append(dst, `,"object":"model","created":`...)
		dst = strconv.AppendInt(dst, m.Created, 10)
		dst = append(dst, `,"owned_by":`...)
		dst = appendQuoted(dst, m.OwnedBy)
		return append(dst, '}')
	}
	dst = append(dst, `{"type":"model","id":`...)
	dst = appendQuoted(dst, m.ID)
	dst = append(dst, `,"display_name":`...)
	dst = appendQuoted(dst, m.ID)
	dst = append(dst, `,"created_at":"`...)
	dst = time.Unix(m.Created, 0).UTC().AppendFormat(dst, time.RFC3339)
	return append(dst, `","capabilities":null,"deprecated_at":null,"lifecycle":"active","line":null,`+
		`"max_input_tokens":null,"max_tokens":null,"retires_at":null}`...)
}
