// Package duck offers stoa's tables to DuckDB: table functions and replacement scans over DuckDB's C interface. It
// neither links nor loads DuckDB: a program that links it, or that loads this as an extension, passes its functions
// first.
//
// Columns that a query does not need are not read. One goroutine per scan reads batches ahead, and as many of DuckDB's
// threads as ask for them get them.
package duck

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"runtime/cgo"
	"runtime/debug"
	"slices"
	"strings"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
)

// Call is one use of a table function in a query.
type Call struct {
	Args  []string
	Named map[string]string // the given ones that are not NULL
}

// Relation is what a table function returns to a query.
type Relation struct {
	Schema *arrow.Schema
	Rows   int64 // an estimate for the optimizer; -1: unknown
	Exact  bool  // Rows is exact
	Count  bool  // only the number of rows is needed: Scan is called with no columns, whatever DuckDB requests
	// Threads is the maximum number of DuckDB's threads that take batches at the same time; 0: one.
	Threads int
	// Scan reads columns, by their positions in Schema; without any, rows are only counted. It may be called several
	// times.
	Scan func(ctx context.Context, columns []int) iter.Seq2[arrow.RecordBatch, error]
	// Close is called when the query's plan is destroyed. May be nil.
	Close func()
}

// Function is a table function.
type Function struct {
	Name   string
	Called string   // in messages; "": Name
	Args   int      // number of arguments, all texts
	Named  []string // the names of its named arguments
	Relate func(Call) (*Relation, error)
}

// Host is what the functions of a database share.
type Host struct {
	// Context returns the context of the running query.
	Context func() context.Context
	// Failed is called with every error before DuckDB gets its text. May be nil.
	Failed func(error)
	// Text returns the text of an error for DuckDB; nil: its own text.
	Text func(error) string
	// AsText is called for columns that are converted to text, as DuckDB has no type for their values. May be nil.
	AsText func(column string, t arrow.DataType, why string)
}

func (h *Host) fail(err error) *C.char {
	if h.Failed != nil {
		h.Failed(err)
	}
	text := err.Error()
	if h.Text != nil {
		text = h.Text(err)
	}
	return C.CString(text)
}

// UseTable takes DuckDB's functions from a table at p, laid out as struct duck_api of abi.h.
func UseTable(p unsafe.Pointer) { C.duck = *(*C.struct_duck_api)(p) }

// UseSlots takes DuckDB's functions from the table that DuckDB passes to extensions.
func UseSlots(p unsafe.Pointer) { C.duck_from_slots((*unsafe.Pointer)(p)) }

// Version is DuckDB's version.
func Version() string { return C.GoString(C.duck_library_version()) }

type registered struct {
	host *Host
	f    Function
}

// Register registers a function with the database of a connection.
func (h *Host) Register(connection unsafe.Pointer, f Function) error {
	name := C.CString(f.Name)
	defer C.free(unsafe.Pointer(name))
	named := make([]*C.char, len(f.Named)+1)
	for i, n := range f.Named {
		named[i] = C.CString(n)
		defer C.free(unsafe.Pointer(named[i]))
	}
	handle := cgo.NewHandle(&registered{h, f})
	if C.duck_register(C.duck_handle(connection), name, C.uintptr_t(handle), C.int(f.Args), &named[0],
		C.int(len(f.Named)), true) != 0 {
		return fmt.Errorf("DuckDB refused the table function %s", f.Name)
	}
	return nil
}

// Replace has names of tables that a database does not know replaced with function calls: function returns the name
// of a function and its argument, or "" if it does not know the name either.
func Replace(database unsafe.Pointer, function Replacer) {
	C.duck_replace(C.duck_handle(database), C.uintptr_t(cgo.NewHandle(function)))
}

// Replacer returns a function and its argument for a name.
type Replacer func(name string) (function, argument string, err error)

//export goCloseFunction
func goCloseFunction(h C.uintptr_t) { cgo.Handle(h).Delete() }

//export goReplace
func goReplace(h C.uintptr_t, name *C.char, argument, message **C.char) *C.char {
	replacer := cgo.Handle(h).Value().(Replacer)
	out, arg, err := func() (f, a string, err error) {
		defer guard(&err)
		return replacer(C.GoString(name))
	}()
	switch {
	case err != nil:
		*message = C.CString(err.Error())
	case out != "":
		*argument = C.CString(arg)
		return C.CString(out)
	}
	return nil
}

// guard converts a panic to an error: a bug of ours must not end the host's process.
func guard(err *error) {
	if p := recover(); p != nil {
		*err = fault.Bugf("%v\n%s", p, debug.Stack())
	}
}

// bound is a relation in the plan of a query.
type bound struct {
	host     *Host
	relation *Relation
	columns  []*column
}

//export goBind
func goBind(info C.duck_handle, h C.uintptr_t) {
	r := cgo.Handle(h).Value().(*registered)
	b, err := r.bind(info)
	if err != nil {
		text := r.host.fail(err)
		defer C.free(unsafe.Pointer(text))
		C.duck_bind_set_error(info, text)
		return
	}
	for _, c := range b.columns {
		name := C.CString(c.name)
		C.duck_bind_add_result_column(info, name, c.typ)
		C.free(unsafe.Pointer(name))
	}
	if n := b.relation.Rows; n >= 0 {
		C.duck_bind_set_cardinality(info, C.duck_idx(n), C.bool(b.relation.Exact))
	}
	C.duck_set_bind(info, C.uintptr_t(cgo.NewHandle(b)))
}

func (r *registered) bind(info C.duck_handle) (b *bound, err error) {
	defer guard(&err)
	call := Call{Named: map[string]string{}}
	for i := range C.duck_bind_get_parameter_count(info) {
		if v, ok := text(C.duck_bind_get_parameter(info, i)); ok {
			call.Args = append(call.Args, v)
		}
	}
	for _, name := range r.f.Named {
		n := C.CString(name)
		if v, ok := text(C.duck_bind_get_named_parameter(info, n)); ok {
			call.Named[name] = v
		}
		C.free(unsafe.Pointer(n))
	}
	if len(call.Args) != r.f.Args {
		return nil, fault.Invalidf("%s: an argument is NULL", cmp.Or(r.f.Called, r.f.Name))
	}
	relation, err := r.f.Relate(call)
	if err != nil {
		return nil, err
	}
	fields := relation.Schema.Fields()
	if len(fields) == 0 {
		return nil, fault.Unsupportedf(fault.Span{}, "", "%s: the table has no columns, and DuckDB no such tables",
			strings.Join(call.Args, ", "))
	}
	b = &bound{host: r.host, relation: relation}
	names := Names(fields)
	for i, f := range fields {
		c := newColumn(names[i], f.Type)
		if c.asText != "" && r.host.AsText != nil {
			r.host.AsText(f.Name, f.Type, c.asText)
		}
		b.columns = append(b.columns, c)
	}
	return b, nil
}

// text returns a value that is a text; false: it is NULL or missing.
func text(v C.duck_handle) (string, bool) {
	if v == nil {
		return "", false
	}
	defer C.duck_destroy_value(v)
	if C.duck_is_null_value(v) {
		return "", false
	}
	s := C.duck_get_varchar(v)
	defer C.duck_free(unsafe.Pointer(s))
	return C.GoString(s), true
}

//export goCloseBound
func goCloseBound(h C.uintptr_t) {
	b := cgo.Handle(h).Value().(*bound)
	cgo.Handle(h).Delete()
	for _, c := range b.columns {
		c.free()
	}
	if b.relation.Close != nil {
		b.relation.Close()
	}
}

//export goInit
func goInit(info C.duck_handle, h C.uintptr_t) {
	b := cgo.Handle(h).Value().(*bound)
	var wanted []int // columns to read, each once
	n := int(C.duck_init_get_column_count(info))
	places := make([]int, n)
	for i := range n {
		at := uint64(C.duck_init_get_column_index(info, C.duck_idx(i)))
		if places[i] = -1; at >= uint64(len(b.columns)) || b.relation.Count {
			continue // the row's number, or no column at all: rows are only counted
		}
		if places[i] = slices.Index(wanted, int(at)); places[i] < 0 {
			places[i] = len(wanted)
			wanted = append(wanted, int(at))
		}
	}
	s := newScan(b, wanted)
	c := C.duck_new_scan(C.uintptr_t(cgo.NewHandle(s)), C.int(n))
	for i, place := range places {
		if place >= 0 {
			C.duck_set_column(c, C.int(i), b.columns[wanted[place]].node, C.int(place))
			s.names = append(s.names, b.columns[wanted[place]].name)
		} else {
			s.names = append(s.names, "")
		}
	}
	C.duck_init_set_max_threads(info, C.duck_idx(max(1, b.relation.Threads)))
	C.duck_set_init(info, c)
}
