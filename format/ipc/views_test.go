package ipc_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	lib "github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format/ipc"
)

// TestListViewsFromTheMiddle writes every slice of list views, nested and not, of which the library fails on those that
// do not begin at offset 0.
func TestListViewsFromTheMiddle(t *testing.T) {
	views := arrow.ListViewOf(arrow.PrimitiveTypes.Int64)
	for _, c := range []struct {
		typ  arrow.DataType
		rows string
	}{
		{views, `[[1, 2], null, [], [3], [4, null, 5], null, [6]]`},
		{arrow.LargeListViewOf(arrow.BinaryTypes.String), `[[], ["a"], null, ["b", "c"], ["d", null]]`},
		{arrow.StructOf(arrow.Field{Name: "v", Type: views, Nullable: true}),
			`[{"v": [1]}, {"v": null}, null, {"v": [2, 3]}, {"v": []}, {"v": [4]}]`},
		{arrow.ListOf(views), `[[[1], [2, 3]], null, [[4], null], [], [[5, 6]]]`},
		{arrow.FixedSizeListOf(2, views), `[[[1], [2, 3]], [[4], null], [[], [5]]]`},
		{arrow.ListViewOf(views), `[[[1], [2, 3]], null, [[4], null], [], [[5, 6]]]`},
		{arrow.ListViewOf(arrow.StructOf(arrow.Field{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true})),
			`[[{"s": "a"}], [{"s": null}, null], [{"s": "b"}]]`},
	} {
		all, _, err := array.FromJSON(memory.DefaultAllocator, c.typ, strings.NewReader(c.rows))
		if err != nil {
			t.Fatalf("%s: %v", c.typ, err)
		}
		var slice []arrow.Array
		var want []string
		for from := range all.Len() + 1 {
			for to := from; to <= all.Len(); to++ {
				slice = append(slice, array.NewSlice(all, int64(from), int64(to)))
				want = append(want, valueStrings(slice[len(slice)-1])...)
			}
		}
		sc := arrow.NewSchema([]arrow.Field{{Name: "c", Type: c.typ, Nullable: true}}, nil)
		var file bytes.Buffer
		w := ipc.NewFileWriter(&file, sc)
		for _, a := range slice {
			if err := w.Write(array.NewRecordBatch(sc, []arrow.Array{a}, int64(a.Len()))); err != nil {
				t.Fatalf("%s: %d rows of %s: %v", c.typ, a.Len(), c.rows, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := lib.NewFileReader(bytes.NewReader(file.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range r.NumRecords() {
			b, err := r.RecordBatchAt(i)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, valueStrings(b.Column(0))...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: expected %q, found %q", c.typ, want, got)
		}
	}
}

func valueStrings(a arrow.Array) (out []string) {
	for i := range a.Len() {
		out = append(out, a.ValueStr(i))
	}
	return out
}

// TestListViewsOfASlice: of a slice only the values that it uses are written.
func TestListViewsOfASlice(t *testing.T) {
	b := array.NewListViewBuilder(memory.DefaultAllocator, arrow.PrimitiveTypes.Int64)
	values := b.ValueBuilder().(*array.Int64Builder)
	for i := range 10_000 {
		b.AppendWithSize(true, 1)
		values.Append(int64(i))
	}
	a := b.NewArray()
	sc := arrow.NewSchema([]arrow.Field{{Name: "c", Type: a.DataType(), Nullable: true}}, nil)
	for _, from := range []int64{0, 5000} {
		var file bytes.Buffer
		w := ipc.NewFileWriter(&file, sc)
		if err := w.Write(array.NewRecordBatch(sc, []arrow.Array{array.NewSlice(a, from, from+10)}, 10)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if file.Len() > 8000 {
			t.Errorf("10 lists of one value from %d: expected less than 8,000 bytes, found %d", from, file.Len())
		}
	}
}
