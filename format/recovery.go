package format

import "context"

// Declarer is an optional interface of a Reader that Recover returned. A place that cannot be opened, because one of
// its files is missing, may still have metadata that says how many rows there were.
type Declarer interface {
	// Declared is the number of rows; -1: nothing says it that can be trusted.
	Declared() int64
}

// Adder is an optional interface of a Reader that Recover returned, which may have found rows that the place, opened
// plainly, knows nothing of: of parts whose metadata is gone.
type Adder interface {
	Added(ctx context.Context) (rows int64, err error)
}
