package ipc

import (
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format/ipc/flat"
	"stoa/internal/codec"
)

// batchNeeds is the minimum number of nodes and buffers that a record batch of a schema must list. The library takes
// the n-th node and the n-th buffer without checking the number, and would read past the list.
type batchNeeds struct {
	nodes, buffers, views int
	valid                 [][2]int // node and validity buffer of each array that may have nulls
}

// add counts a column of type t. version is that of the metadata; V5 is 4.
func (n *batchNeeds) add(t arrow.DataType, version int) {
	switch x := t.(type) {
	case arrow.ExtensionType:
		n.add(x.StorageType(), version)
		return
	case *arrow.DictionaryType:
		n.add(x.IndexType, version)
		return
	}
	n.addOwn(t, version)
	if x, ok := t.(arrow.NestedType); ok { // parents come before their children
		for _, f := range x.Fields() {
			n.add(f.Type, version)
		}
	}
}

// addOwn adds the nodes and buffers of an array without its children.
func (n *batchNeeds) addOwn(t arrow.DataType, version int) {
	switch t.ID() {
	case arrow.NULL, arrow.RUN_END_ENCODED, arrow.SPARSE_UNION, arrow.DENSE_UNION:
	default:
		n.valid = append(n.valid, [2]int{n.nodes, n.buffers})
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
		if version < 4 { // validity, which V5 removed
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

// checkBatch compares a record batch with the schema. At most limit bytes of a buffer are decompressed.
func checkBatch(sc *arrow.Schema, m *message, limit int64) error {
	if m.Kind != flat.RecordBatch {
		return nil
	}
	b := &m.Batch
	var n batchNeeds
	var tops []int
	for _, f := range sc.Fields() {
		tops = append(tops, n.nodes)
		n.add(f.Type, m.Version)
	}
	// Older writers wrote one more buffer for some types, but never one more array.
	if len(b.Nodes) != n.nodes || len(b.Buffers) < n.buffers || b.Views < n.views {
		return fault.Corruptf(m.at, "message.buffers",
			"%d arrays, %d buffers and %d numbers of views, the schema needs %d, %d and %d",
			len(b.Nodes), len(b.Buffers), b.Views, n.nodes, n.buffers, n.views)
	}
	for i, k := range tops {
		if b.Nodes[k].Rows != b.Rows {
			return fault.Corruptf(m.at, fmt.Sprintf("message.nodes[%d]", k), "column %q has %d of %s",
				sc.Field(i).Name, b.Nodes[k].Rows, fault.Count(b.Rows, "row"))
		}
	}
	if b.Views > 0 || len(b.Buffers) > n.buffers { // the indices of validity buffers are unknown
		return nil
	}
	for _, v := range n.valid {
		if err := m.noNulls(v[0], v[1], limit); err != nil {
			return err
		}
	}
	return nil
}

// noNulls compares an array that declares no nulls with its validity bitmap, which is ignored afterwards: the bytes
// under a null would become a value. If nulls are declared, their number is compared with the bitmap later.
func (m *message) noNulls(node, buffer int, limit int64) error {
	x, at := m.Batch.Nodes[node], m.Batch.Buffers[buffer]
	if x.Nulls > 0 || x.Rows == 0 || at.Len == 0 || m.body == nil {
		return nil
	}
	path := fmt.Sprintf("message.nodes[%d]", node)
	bits, err := m.expand(m.body.Bytes()[at.Off:at.Off+at.Len], limit)
	if err != nil {
		return fault.Locate(err, m.at, false, fmt.Sprintf("message.buffers[%d]", buffer))
	}
	if int64(len(bits)) < (x.Rows+7)/8 {
		return fault.Corruptf(m.at, path, "a validity bitmap of %d bytes for %s", len(bits),
			fault.Count(x.Rows, "value"))
	}
	if k := x.Rows - int64(bitutil.CountSetBits(bits, 0, int(x.Rows))); k > 0 {
		return fault.Corruptf(m.at, path, "expected no nulls, the validity bitmap has %d", k)
	}
	return nil
}

// expand returns the decompressed bytes of a buffer.
func (m *message) expand(b []byte, limit int64) ([]byte, error) {
	stored := int64(-1) // not compressed
	if m.Batch.Codec != flat.None && len(b) >= 8 {
		stored, b = int64(binary.LittleEndian.Uint64(b)), b[8:]
	}
	if stored < 0 {
		return b, nil
	}
	return codec.Expand(map[int]string{flat.LZ4: "lz4-frame", flat.Zstd: "zstd"}[m.Batch.Codec], b, limit,
		func(n int) []byte { return make([]byte, n) })
}

// limitedAllocator is an allocator for the library. An allocation beyond the decompressed size of all messages passed
// to it panics: so a reading mistake of the library becomes an error (decoder.next) and does not end the process.
type limitedAllocator struct {
	memory.Allocator
	room *int64 // remaining decompressed bytes of the messages
}

func (c limitedAllocator) check(n int) {
	const slack = 64 << 10 // for padding, and for bitmaps that are not in the message
	if int64(n) > *c.room+slack {
		panic(fmt.Errorf("%d bytes for a buffer, the messages hold %d", n, *c.room))
	}
}

func (c limitedAllocator) Allocate(n int) []byte {
	c.check(n)
	return c.Allocator.Allocate(n)
}

func (c limitedAllocator) Reallocate(n int, b []byte) []byte {
	c.check(n)
	return c.Allocator.Reallocate(n, b)
}
