package format

import "github.com/apache/arrow-go/v18/arrow"

// Holder is an optional interface of a Batcher of whose rows something else in the place says more than their number,
// such as the catalogue of a table does.
type Holder interface {
	// Held is damage if rows of a row group, with all columns, contradict that.
	Held(g RowGroup, rows arrow.RecordBatch) error
}
