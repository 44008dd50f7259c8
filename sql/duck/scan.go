package duck

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"context"
	"runtime"
	"runtime/cgo"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/internal/cells"
	"stoa/internal/exported"
)

// scan reads a relation. A goroutine reads: pulling from an iterator inside of a call from C ends the process as soon
// as another thread of the host calls ("coro: OS thread locking must match").
type scan struct {
	host    *Host
	names   []string // of the columns that DuckDB requested, for messages
	texts   []bool   // of the columns that are read: which are converted to text
	stop    context.CancelFunc
	start   sync.Once
	read    func()
	batches chan arrow.RecordBatch // closed at the end
	err     error                  // why it ended early; set before batches is closed
	closed  atomic.Bool
}

// ahead is the number of finished batches that are kept for DuckDB.
const ahead = 2

func newScan(b *bound, wanted []int) *scan {
	s := &scan{host: b.host, batches: make(chan arrow.RecordBatch, ahead)}
	for _, c := range wanted {
		s.texts = append(s.texts, b.columns[c].asText != "")
	}
	ctx, stop := context.WithCancel(b.host.Context())
	s.stop = stop
	s.read = func() {
		s.err = s.send(ctx, b.relation, wanted)
		close(s.batches)
	}
	return s
}

func (s *scan) send(ctx context.Context, r *Relation, wanted []int) (err error) {
	defer guard(&err)
	for b, err := range r.Scan(ctx, wanted) {
		if err != nil {
			return err
		}
		if b.NumRows() == 0 {
			continue
		}
		select {
		case s.batches <- s.shown(b):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// shown returns a batch in which the columns without a type in DuckDB are text. The caller releases it.
func (s *scan) shown(b arrow.RecordBatch) arrow.RecordBatch {
	var columns []arrow.Array
	var fields []arrow.Field
	changed := false
	for i, c := range b.Columns() {
		f := b.Schema().Field(i)
		if s.texts[i] {
			changed = true
			t := asText(c)
			defer t.Release()
			c, f = t, arrow.Field{Name: f.Name, Type: t.DataType(), Nullable: true}
		}
		columns, fields = append(columns, c), append(fields, f)
	}
	if !changed {
		b.Retain()
		return b
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, b.NumRows())
}

// asText returns the values of an array as `stoa cat -f csv` prints them.
func asText(a arrow.Array) arrow.Array {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	var buf []byte
	for i := range a.Len() {
		if a.IsNull(i) {
			b.AppendNull()
			continue
		}
		buf = cells.AppendCSV(buf[:0], a, i)
		b.Append(string(buf))
	}
	return b.NewArray()
}

//export goNext
func goNext(h C.uintptr_t, out *C.struct_ArrowArray, pins *C.uintptr_t, message **C.char) C.int {
	s := cgo.Handle(h).Value().(*scan)
	s.start.Do(func() { go s.read() })
	b, ok := <-s.batches
	if !ok {
		if s.err != nil {
			*message = s.host.fail(s.err)
		}
		return 0
	}
	defer b.Release()
	p := &runtime.Pinner{}
	a := exported.Batch(b)
	defer a.Release()
	pin(p, a.Data())
	cdata.ExportArrowArray(a, (*cdata.CArrowArray)(unsafe.Pointer(out)), nil)
	*pins = C.uintptr_t(cgo.NewHandle(p))
	return 1
}

// pin pins the buffers of an array, whose addresses C uses while it copies.
func pin(p *runtime.Pinner, d arrow.ArrayData) {
	for _, b := range d.Buffers() {
		if b != nil && b.Len() > 0 {
			p.Pin(unsafe.SliceData(b.Bytes()))
		}
	}
	for _, c := range d.Children() {
		pin(p, c)
	}
	if dict, ok := d.Dictionary().(*array.Data); ok && dict != nil {
		pin(p, dict)
	}
}

//export goUnpin
func goUnpin(h C.uintptr_t) {
	cgo.Handle(h).Value().(*runtime.Pinner).Unpin()
	cgo.Handle(h).Delete()
}

//export goBadValue
func goBadValue(h C.uintptr_t, column C.int, row C.int64_t, why *C.char) *C.char {
	s := cgo.Handle(h).Value().(*scan)
	name := ""
	if int(column) < len(s.names) {
		name = s.names[column]
	}
	return s.host.fail(fault.Unsupportedf(fault.Span{}, "", "column %s: a value cannot be given to DuckDB: %s", name,
		C.GoString(why)))
}

//export goCloseScan
func goCloseScan(h C.uintptr_t) {
	s := cgo.Handle(h).Value().(*scan)
	cgo.Handle(h).Delete()
	s.stop()
	began := true
	s.start.Do(func() { began = false })
	if !began {
		return
	}
	for b := range s.batches { // the table may be closed next: nothing may still read it
		b.Release()
	}
}
