package main

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/cdata"

	"stoa/internal/exported"
)

// exportBatch exports a batch to the host. It returns the exported data, with a reference that the caller releases: its
// buffers must not move.
func exportBatch(b arrow.RecordBatch, out *cdata.CArrowArray) arrow.ArrayData {
	a := exported.Batch(b)
	defer a.Release()
	cdata.ExportArrowArray(a, out, nil)
	d := a.Data()
	d.Retain() // a.Release drops the reference of a
	return d
}
