package engine

// #include <stdlib.h>
// #include "duckdb.h"
import "C"

import (
	"fmt"
	"iter"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/cdata"
)

// Result is the result of a statement, which is still being computed.
type Result struct {
	r    C.struct_duck_result
	stop func() bool
}

// The kinds of results.
const (
	changes = 1 // a number of changed rows
	rows    = 3
)

// HasRows reports whether the statement returns rows.
func (r *Result) HasRows() bool { return C.duckdb_result_return_type(r.r) == rows }

// Changed is the number of rows that the statement changed; -1: it does not change rows.
func (r *Result) Changed() int64 {
	if C.duckdb_result_return_type(r.r) != changes {
		return -1
	}
	return int64(C.duckdb_rows_changed(&r.r))
}

// Close ends the result, even before its last row.
func (r *Result) Close() {
	r.stop()
	C.duckdb_destroy_result(&r.r)
}

// taken returns the error in a C error of DuckDB, which it frees.
func taken(e C.duck_handle) error {
	if e == nil {
		return nil
	}
	defer C.duckdb_destroy_error_data(&e)
	if !C.duckdb_error_data_has_error(e) {
		return nil
	}
	return newError(C.GoString(C.duckdb_error_data_message(e)))
}

// Schema is the schema of the rows. Of columns with the same name the later ones get a number: most output formats
// cannot have two.
func (r *Result) Schema() (*arrow.Schema, error) {
	n := int(C.duckdb_column_count(&r.r))
	types, names := make([]C.duck_handle, n+1), make([]*C.char, n+1)
	for i := range n {
		types[i] = C.duckdb_column_logical_type(&r.r, C.duck_idx(i))
		names[i] = C.duckdb_column_name(&r.r, C.duck_idx(i))
	}
	defer func() {
		for i := range n {
			C.duckdb_destroy_logical_type(&types[i])
		}
	}()
	options := C.duckdb_result_get_arrow_options(&r.r)
	defer C.duckdb_destroy_arrow_options(&options)
	var out cdata.CArrowSchema
	err := taken(C.duckdb_to_arrow_schema(options, &types[0], &names[0], C.duck_idx(n),
		(*C.struct_ArrowSchema)(unsafe.Pointer(&out))))
	if err != nil {
		return nil, err
	}
	sc, err := cdata.ImportCArrowSchema(&out)
	if err != nil {
		return nil, err
	}
	return distinct(sc), nil
}

// Batches returns the rows, one chunk per batch, which is valid until the next one. An error comes last, at most one.
func (r *Result) Batches(sc *arrow.Schema) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		options := C.duckdb_result_get_arrow_options(&r.r)
		defer C.duckdb_destroy_arrow_options(&options)
		for {
			chunk := C.duckdb_fetch_chunk(r.r)
			if chunk == nil {
				if err := r.err(); err != nil {
					yield(nil, err)
				}
				return
			}
			b, err := batchOf(options, chunk, sc)
			C.duckdb_destroy_data_chunk(&chunk)
			if err == nil {
				err = tooWide(b)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			more := yield(b, nil)
			b.Release()
			if !more {
				return
			}
		}
	}
}

func batchOf(options, chunk C.duck_handle, sc *arrow.Schema) (arrow.RecordBatch, error) {
	out := (*cdata.CArrowArray)(C.calloc(1, C.size_t(unsafe.Sizeof(cdata.CArrowArray{}))))
	defer C.free(unsafe.Pointer(out))
	err := taken(C.duckdb_data_chunk_to_arrow(options, chunk, (*C.struct_ArrowArray)(unsafe.Pointer(out))))
	if err != nil {
		return nil, err
	}
	return cdata.ImportCRecordBatchWithSchema(out, sc)
}

func (r *Result) err() error {
	if m := C.duckdb_result_error(&r.r); m != nil && C.GoString(m) != "" {
		return newError(C.GoString(m))
	}
	return nil
}

// Drain runs the statement to its end.
func (r *Result) Drain() error {
	for {
		chunk := C.duckdb_fetch_chunk(r.r)
		if chunk == nil {
			return r.err()
		}
		C.duckdb_destroy_data_chunk(&chunk)
	}
}

// distinct appends numbers to repeated names of columns.
func distinct(sc *arrow.Schema) *arrow.Schema {
	fields := sc.Fields()
	taken := map[string]bool{}
	for _, f := range fields {
		taken[f.Name] = false
	}
	for i, f := range fields {
		name := f.Name
		for k := 1; taken[name]; k++ {
			name = fmt.Sprintf("%s_%d", f.Name, k)
		}
		taken[name], fields[i].Name = true, name
	}
	meta := sc.Metadata()
	return arrow.NewSchema(fields, &meta)
}
