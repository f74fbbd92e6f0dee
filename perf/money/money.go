package money

// A Count is what the spool of a gateway that has ended says.
type Count struct {
	Rows       int64
	ByStatus   map[int]int64 // status sent to the caller; 0 = none
	ByAccount  map[string]int64
	Cost       int64 // nano-USD, all rows
	Duplicates int64 // rows with a request id that another row has
	Unended    int64 // admitted records without a row
}

// Read counts the rows of a data folder. The gateway must have ended.
func Read(dataDir string) (Count, error) { panic("BUG: not built") }

// Seen is what the generators saw, warm-up and drain included.
type Seen struct {
	ByStatus map[int]int64 // whole answers
	Lost     int64         // requests whose end they did not see
}

// Check compares: for each good answer there is one row, and there are no more
// rows than answers and requests lost. It returns the first difference as a
// sentence; "" = the money adds up.
func Check(c Count, s Seen) string { panic("BUG: not built") }
