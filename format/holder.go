package format

import "github.com/apache/arrow-go/v18/arrow"

// Holder is an optional interface of a Batcher for whose rows another file of the place, such as the catalogue of a
// table, declares more than their number.
type Holder interface {
	// Held returns the damage if the rows of a row group, with all columns, contradict that declaration.
	Held(g RowGroup, rows arrow.RecordBatch) error
}
