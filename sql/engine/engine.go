// Package engine runs SQL in a DuckDB that is linked into the program.
package engine

// #include <stdlib.h>
// #include "duckdb.h"
import "C"

import (
	"context"
	"errors"
	"strings"
	"sync"
	"unsafe"

	"stoa/sql/duck"
)

// Error is an error of DuckDB about a statement.
type Error struct {
	Kind string // "Parser", "Binder", "Conversion", …; "": unknown
	Text string // the whole text
}

func (e *Error) Error() string { return e.Text }

// Wrong reports whether the statement is at fault, not the data or the machine.
func (e *Error) Wrong() bool {
	switch e.Kind {
	case "Parser", "Binder", "Catalog", "Syntax", "Not implemented", "Invalid Input", "Parameter Not Resolved":
		return true
	}
	return false
}

func newError(text string) *Error {
	text, _, _ = strings.Cut(text, "\n\nStack Trace:")
	kind, _, ok := strings.Cut(text, " Error: ")
	if !ok || len(kind) > 30 {
		kind = ""
	}
	return &Error{kind, text}
}

// Database is an in-memory database with one connection.
type Database struct {
	db, con C.duck_handle
}

var functions sync.Once

// Open makes a database with settings of DuckDB's, such as "threads".
func Open(settings map[string]string) (*Database, error) {
	functions.Do(func() { duck.UseTable(unsafe.Pointer(C.engine_functions())) })
	var config C.duck_handle
	if C.duckdb_create_config(&config) != 0 {
		return nil, errors.New("DuckDB has no memory for its settings")
	}
	defer C.duckdb_destroy_config(&config)
	for k, v := range settings {
		name, value := C.CString(k), C.CString(v)
		state := C.duckdb_set_config(config, name, value)
		C.free(unsafe.Pointer(name))
		C.free(unsafe.Pointer(value))
		if state != 0 {
			return nil, errors.New("DuckDB does not take the setting " + k + "=" + v)
		}
	}
	d := &Database{}
	var message *C.char
	if C.duckdb_open_ext(nil, &d.db, config, &message) != 0 {
		defer C.duckdb_free(unsafe.Pointer(message))
		return nil, newError(C.GoString(message))
	}
	if C.duckdb_connect(d.db, &d.con) != 0 {
		C.duckdb_close(&d.db)
		return nil, errors.New("DuckDB gave no connection")
	}
	return d, nil
}

// Close ends the database.
func (d *Database) Close() {
	C.duckdb_disconnect(&d.con)
	C.duckdb_close(&d.db)
}

// Connection returns the handle with which the shim registers functions.
func (d *Database) Connection() unsafe.Pointer { return unsafe.Pointer(d.con) }

// Handle returns the handle of the database, with which the shim registers replacements.
func (d *Database) Handle() unsafe.Pointer { return unsafe.Pointer(d.db) }

// Statement is a prepared statement.
type Statement struct {
	d *Database
	s C.duck_handle
}

// Prepare prepares a statement. If DuckDB makes several of it (of a PIVOT without values), all but the last are run.
func (d *Database) Prepare(ctx context.Context, text string) (*Statement, error) {
	t := C.CString(text)
	defer C.free(unsafe.Pointer(t))
	var all C.duck_handle
	n := C.duckdb_extract_statements(d.con, t, &all)
	defer C.duckdb_destroy_extracted(&all)
	if n == 0 {
		if m := C.duckdb_extract_statements_error(all); m != nil {
			return nil, newError(C.GoString(m))
		}
		return nil, newError("Parser Error: there is no statement")
	}
	for i := range n - 1 {
		s, err := d.prepared(all, i)
		if err != nil {
			return nil, err
		}
		err = s.drain(ctx)
		s.Close()
		if err != nil {
			return nil, err
		}
	}
	return d.prepared(all, n-1)
}

// prepared prepares one of several statements.
func (d *Database) prepared(all C.duck_handle, i C.duck_idx) (*Statement, error) {
	s := &Statement{d: d}
	if C.duckdb_prepare_extracted_statement(d.con, all, i, &s.s) != 0 {
		err := newError(C.GoString(C.duckdb_prepare_error(s.s)))
		s.Close()
		return nil, err
	}
	return s, nil
}

// drain runs the statement to its end.
func (s *Statement) drain(ctx context.Context) error {
	r, err := s.Run(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	return r.Drain()
}

// Close frees the statement.
func (s *Statement) Close() { C.duckdb_destroy_prepare(&s.s) }

// Run runs the statement until its first rows are available. The result ends with the statement, and with ctx.
func (s *Statement) Run(ctx context.Context) (*Result, error) {
	var pending C.duck_handle
	stop := context.AfterFunc(ctx, func() { C.duckdb_interrupt(s.d.con) })
	state := C.duckdb_pending_prepared_streaming(s.s, &pending)
	defer C.duckdb_destroy_pending(&pending)
	if state != 0 {
		stop()
		return nil, newError(C.GoString(C.duckdb_pending_error(pending)))
	}
	r := &Result{stop: stop}
	if C.duckdb_execute_pending(pending, &r.r) != 0 {
		err := newError(C.GoString(C.duckdb_result_error(&r.r)))
		r.Close()
		return nil, err
	}
	return r, nil
}

// Do prepares and runs a statement and discards its rows.
func (d *Database) Do(ctx context.Context, text string) error {
	s, err := d.Prepare(ctx, text)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.drain(ctx)
}
