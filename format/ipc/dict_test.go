package ipc_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	arrowipc "github.com/apache/arrow-go/v18/arrow/ipc"

	"stoa/fault"
	"stoa/format/formattest"
	"stoa/format/ipc"
)

// twoTables returns two tables with the same schema, each with its own dictionaries, which may be anywhere in the
// schema.
func twoTables(seed uint64) (tables [2]formattest.Table) {
	o := formattest.TableOptions{Rows: 40, Columns: 4, Depth: 1 + int(seed%4),
		Leaves: formattest.LeafTypes()}
	tables[0] = formattest.RandomTable(rand.New(rand.NewPCG(seed, 5)), o)
	o.Fields = tables[0].Schema.Fields()
	tables[1] = formattest.RandomTable(rand.New(rand.NewPCG(seed, 6)), o)
	return tables
}

// TestEveryBatchHasItsDictionary: a field of a file has one dictionary, which may only grow; each written batch has its
// own dictionary, with arbitrary indices under nulls.
func TestEveryBatchHasItsDictionary(t *testing.T) {
	nested := 0
	for seed := range uint64(200) {
		tables := twoTables(seed)
		var file bytes.Buffer
		w := ipc.NewFileWriter(&file, tables[0].Schema)
		var refused error
		for _, table := range tables {
			if refused = w.Write(table.Batch); refused != nil {
				break
			}
		}
		if errors.Is(refused, fault.Unsupported) {
			continue // values that the library cannot concatenate
		}
		if refused != nil {
			t.Fatalf("seed %d: %v", seed, refused)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := arrowipc.NewFileReader(bytes.NewReader(file.Bytes()))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i, table := range tables {
			b, err := r.RecordBatchAt(i)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for k, c := range b.Columns() {
				if got := formattest.CellsOf(c); !reflect.DeepEqual(got, table.Cells[k]) {
					t.Fatalf("seed %d, batch %d, column %s: %q, written %q", seed, i, c.DataType(), got, table.Cells[k])
				}
				if _, ok := c.DataType().(arrow.NestedType); ok && strings.Contains(c.DataType().String(),
					"dictionary") {
					nested++
				}
			}
		}
	}
	if nested < 40 {
		t.Errorf("only %d nested columns with dictionaries", nested)
	}
}
