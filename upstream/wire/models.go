package wire

// A ModelInfo is what the models list says of one model.
type ModelInfo struct {
	ID      string
	OwnedBy string // the host that serves it first
	Created int64  // unix seconds: when the catalog was loaded
}

// AppendModelList appends the answer to GET /v1/models in the shape. For
// Anthropic, query carries limit, after_id and before_id, percent-encoded as
// sent. A bad limit is a fault named by the returned parameter, else "".
func AppendModelList(dst []byte, s Shape, models []ModelInfo, query []byte) (out []byte, badParam string) {
	panic("BUG: not built")
}

// AppendModel appends the answer to GET /v1/models/{id} in the shape.
func AppendModel(dst []byte, s Shape, m ModelInfo) []byte { panic("BUG: not built") }
