package format

import (
	"github.com/apache/arrow-go/v18/arrow"

	"stoa/vec"
)

// Holder is an optional interface of a Batcher for whose rows another file of the place, such as the catalogue of a
// table, declares more than their number.
type Holder interface {
	// Held returns the damage if the rows of a row group, with all columns, contradict that declaration.
	Held(g RowGroup, rows arrow.RecordBatch) error
}

// Lister is an optional interface of a Chunk whose pages may have to be found by reading their headers.
type Lister interface {
	// Listed returns the chunk from the page that holds rows.From on; false if not all of its pages have been found.
	Listed(rows vec.Range) (Chunk, bool)
}
