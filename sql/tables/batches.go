package tables

import (
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// chosen returns some columns of batches.
func chosen(all iter.Seq2[arrow.RecordBatch, error], columns []int) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for b, err := range all {
			if err != nil {
				yield(nil, err)
				return
			}
			part := pick(b, columns)
			more := yield(part, nil)
			part.Release()
			if !more {
				return
			}
		}
	}
}

func pick(b arrow.RecordBatch, columns []int) arrow.RecordBatch {
	var fields []arrow.Field
	var arrays []arrow.Array
	for _, c := range columns {
		fields, arrays = append(fields, b.Schema().Field(c)), append(arrays, b.Column(c))
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), arrays, b.NumRows())
}
