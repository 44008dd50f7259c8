// Command duckdb is an extension for DuckDB, of any version with the stable C interface 1.2: tables at addresses,
// as in from 'dir#orders', the function stoa with options, and functions over the output of verbs. It is built as
// a C library (-buildmode=c-shared), to which command footer appends the metadata.
package main

// #include <stdbool.h>
// #include <stdlib.h>
// #include "entry.h"
import "C"

import (
	"context"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"stoa/cmd/stoa/verbs"
	"stoa/sql/duck"
	"stoa/sql/tables"
)

func main() {}

//export goLoad
func goLoad(api, database, connection unsafe.Pointer) *C.char {
	duck.UseSlots(api)
	ctx := context.Background
	host := &duck.Host{Context: ctx, Text: verbs.Line}
	set := &tables.Settings{Threads: runtime.GOMAXPROCS(0)}
	functions := append(tables.Functions(ctx, set), duck.Function{Name: "stoa", Args: 1, Named: tables.Named,
		Relate: func(c duck.Call) (*duck.Relation, error) {
			s, err := tables.Open(ctx(), tables.AskOf(c), set)
			if err != nil {
				return nil, err
			}
			r, err := s.Relation(ctx(), nil, false)
			if err != nil {
				s.Close()
				return nil, err
			}
			r.Close = s.Close
			return r, nil
		}})
	for _, f := range functions {
		if err := host.Register(connection, f); err != nil {
			return C.CString(err.Error())
		}
	}
	duck.Replace(database, replace)
	return nil
}

// replace handles names that are places: files that DuckDB reads itself, and names that do not exist, are left to it.
func replace(name string) (function, argument string, err error) {
	place, _, table := strings.Cut(name, "#")
	if strings.Contains(place, "://") {
		if !table && slices.Contains(duckdbs, strings.ToLower(path.Ext(place))) {
			return "", "", nil
		}
		return "stoa", name, nil
	}
	if _, err := os.Stat(name); err == nil {
		return "stoa", name, nil
	}
	if _, err := os.Stat(place); table && err == nil {
		return "stoa", name, nil
	}
	return "", "", nil
}

// duckdbs are the files that DuckDB reads itself.
var duckdbs = []string{".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson"}
