package admit

const (
	// RequestBudgetBytes is the memory that one request in flight is taken to
	// need: its client and upstream connection with their buffers, a body of
	// usual size and the state between. It is a stated assumption until a
	// measurement of the whole process replaces it.
	RequestBudgetBytes = 64 << 10

	// InflightMin is the least hard cap that a memory limit gives, in requests:
	// below it a small machine would refuse what it can carry, since most
	// requests wait for a model and hold little.
	InflightMin = 2048
)
