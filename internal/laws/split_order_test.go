package laws_test

import (
	"cmp"
	"math/big"
	"os"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
)

// TestOrderOfSplits: where the plan keeps tablets apart, the rows of each split are in the order of the primary key.
// The tables were written by Kudu's servers: with overlapping rowsets, several tablets, and keys of several columns.
func TestOrderOfSplits(t *testing.T) {
	whole := os.Getenv("STOA_CORPUS")
	if whole == "" {
		t.Skip("needs the whole corpus")
	}
	tables, parted := 0, 0
	for _, dir := range []string{whole + "/kudu/fs_log", whole + "/kudu/fs_file"} {
		for e, err := range stoa.List(t.Context(), dir, stoa.OpenOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			name, o := stoa.Named(e, stoa.OpenOptions{})
			table, err := stoa.Open(t.Context(), name, o)
			if err != nil {
				continue // other tests open all
			}
			defer table.Close()
			order, splits := table.Layout().Order, 0
			if len(order) == 0 {
				t.Errorf("%s has no order", name)
			}
			by := stoa.PlanOptions{Target: 1 << 40, Sorted: true}
			for s, err := range table.PlanBy(t.Context(), stoa.ScanSpec{}, by) {
				if err != nil {
					t.Fatal(name, err)
				}
				splits++
				checkOrder(t, name, table, s, order)
			}
			if tables++; splits > 1 {
				parted++
			}
		}
	}
	if tables < 10 || parted < 2 {
		t.Errorf("%d tables, %d with several tablets", tables, parted)
	}
}

func checkOrder(t *testing.T, name string, table *stoa.Table, s stoa.Split, order []string) {
	t.Helper()
	if table.Schema().FieldIndices(order[0]) == nil {
		t.Fatalf("%s has no column %s", name, order[0])
	}
	var last []any
	for b, err := range table.ScanSplit(t.Context(), s, stoa.ScanSpec{}) {
		if err != nil {
			t.Fatal(name, err)
		}
		for i := range int(b.NumRows()) {
			var now []any
			for _, c := range order {
				now = append(now, keyValue(b.Column(b.Schema().FieldIndices(c)[0]), i))
			}
			if last != nil && slices.CompareFunc(last, now, compareKeys) >= 0 {
				t.Fatalf("%s, split %d: %v comes after %v", name, s.N, now, last)
			}
			last = now
		}
	}
}

// keyValue is a whole number as int64, a decimal as a fraction, and all else as its bytes.
func keyValue(a arrow.Array, i int) any {
	switch a := a.(type) {
	case *array.Int8:
		return int64(a.Value(i))
	case *array.Int16:
		return int64(a.Value(i))
	case *array.Int32:
		return int64(a.Value(i))
	case *array.Int64:
		return a.Value(i)
	case *array.Timestamp:
		return int64(a.Value(i))
	case *array.Date32:
		return int64(a.Value(i))
	case *array.Binary:
		return string(a.Value(i))
	}
	if arrow.IsDecimal(a.DataType().ID()) {
		x, _ := new(big.Rat).SetString(a.ValueStr(i))
		return x
	}
	return a.ValueStr(i)
}

func compareKeys(a, b any) int {
	switch x := a.(type) {
	case int64:
		return cmp.Compare(x, b.(int64))
	case *big.Rat:
		return x.Cmp(b.(*big.Rat))
	}
	return cmp.Compare(a.(string), b.(string))
}
