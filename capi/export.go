package main

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/cdata"

	"stoa/internal/exported"
)

// exportBatch gives a batch to the host. It returns what is given, with a reference that the caller releases: its
// buffers must stay where they are.
func exportBatch(b arrow.RecordBatch, out *cdata.CArrowArray) arrow.ArrayData {
	a := exported.Batch(b)
	defer a.Release()
	cdata.ExportArrowArray(a, out, nil)
	d := a.Data()
	d.Retain() // a.Release drops the reference of a
	return d
}
