package ipc

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format/ipc/flat"
)

// needs is what a record batch of a schema lists at least. The library takes the n-th node and the n-th buffer
// without asking how many there are: what stands behind the list would be taken for one.
type needs struct{ nodes, buffers, views int }

// add counts what a column of type t has. Version is the metadata's (V5 is 4).
func (n *needs) add(t arrow.DataType, version int) {
	switch x := t.(type) {
	case arrow.ExtensionType:
		n.add(x.StorageType(), version)
		return
	case *arrow.DictionaryType:
		n.add(x.IndexType, version)
		return
	case arrow.NestedType:
		for _, f := range x.Fields() {
			n.add(f.Type, version)
		}
	}
	n.nodes++
	switch id := t.ID(); id {
	case arrow.NULL, arrow.RUN_END_ENCODED:
	case arrow.STRUCT, arrow.FIXED_SIZE_LIST:
		n.buffers++
	case arrow.SPARSE_UNION, arrow.DENSE_UNION:
		n.buffers++
		if id == arrow.DENSE_UNION {
			n.buffers++
		}
		if version < 4 { // validity, gone since V5
			n.buffers++
		}
	case arrow.STRING, arrow.BINARY, arrow.LARGE_STRING, arrow.LARGE_BINARY, arrow.LIST_VIEW, arrow.LARGE_LIST_VIEW:
		n.buffers += 3
	case arrow.STRING_VIEW, arrow.BINARY_VIEW:
		n.buffers += 2
		n.views++
	default: // validity, and values or offsets
		n.buffers += 2
	}
}

// enough holds a record batch against the schema.
func (r *reader) enough(m *message) error {
	if m.Kind != flat.RecordBatch {
		return nil
	}
	var n needs
	for _, f := range r.schema.Fields() {
		n.add(f.Type, m.Version)
	}
	// older writers gave some types a buffer more, never an array
	if b := &m.Batch; len(b.Nodes) != n.nodes || len(b.Buffers) < n.buffers || b.Views < n.views {
		return fault.Corruptf(m.at, "message.buffers",
			"%d arrays, %d buffers and %d numbers of views, the schema needs %d, %d and %d",
			len(b.Nodes), len(b.Buffers), b.Views, n.nodes, n.buffers, n.views)
	}
	return nil
}

// capped is memory for the library: no piece is larger than all that the messages hold that it was lent,
// decompressed. What the library misreads is then an error (decoder.next) and not the end of the process.
type capped struct {
	memory.Allocator
	feed *feed
}

func (c capped) fits(n int) {
	const slack = 64 << 10 // padding, bitmaps of what had none
	if int64(n) > c.feed.room+slack {
		panic(fmt.Errorf("%d bytes for a buffer, the messages hold %d", n, c.feed.room))
	}
}

func (c capped) Allocate(n int) []byte {
	c.fits(n)
	return c.Allocator.Allocate(n)
}

func (c capped) Reallocate(n int, b []byte) []byte {
	c.fits(n)
	return c.Allocator.Reallocate(n, b)
}
