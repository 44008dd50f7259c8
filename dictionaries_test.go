package stoa

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/kudu/kudufs"
	"stoa/format/kudubackup"
)

// coded makes a dictionary array of n random values, a quarter of them null, and the equal plain array.
func coded(t *testing.T, r *rand.Rand, values arrow.Array, n int) (dict, plain arrow.Array) {
	t.Helper()
	idx := array.NewInt16Builder(memory.DefaultAllocator)
	null := array.MakeArrayOfNull(memory.DefaultAllocator, values.DataType(), 1)
	parts := []arrow.Array{array.NewSlice(values, 0, 0)}
	for range n {
		if r.IntN(4) == 0 {
			idx.AppendNull()
			parts = append(parts, null)
			continue
		}
		i := r.IntN(values.Len())
		idx.Append(int16(i))
		parts = append(parts, array.NewSlice(values, int64(i), int64(i+1)))
	}
	plain, err := array.Concatenate(parts, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	typ := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: values.DataType()}
	return array.NewDictionaryArray(typ, idx.NewArray(), values), plain
}

// around nests an array: in structs of which some are null, in lists, in maps, and in lists of structs.
func around(a arrow.Array) map[string]arrow.Array {
	item := arrow.Field{Name: "item", Type: a.DataType(), Nullable: true}
	n := a.Len()
	bits := memory.NewBufferBytes(slices.Repeat([]byte{0xdb}, n/8+1))
	st := array.NewData(arrow.StructOf(item), n, []*memory.Buffer{bits}, []arrow.ArrayData{a.Data()},
		array.UnknownNullCount, 0)
	offsets := array.NewInt32Builder(memory.DefaultAllocator)
	keys := array.NewStringBuilder(memory.DefaultAllocator)
	for i := range n {
		keys.Append(string(rune('a' + i%20)))
		if i%3 == 0 {
			offsets.Append(int32(i))
		}
	}
	offsets.Append(int32(n))
	lists := offsets.Len() - 1
	offs := []*memory.Buffer{nil, offsets.NewArray().Data().Buffers()[1]}
	entries := arrow.StructOf(arrow.Field{Name: "key", Type: arrow.BinaryTypes.String},
		arrow.Field{Name: "value", Type: a.DataType(), Nullable: true})
	pairs := array.NewData(entries, n, []*memory.Buffer{nil},
		[]arrow.ArrayData{keys.NewArray().Data(), a.Data()}, 0, 0)
	list := func(of arrow.ArrayData) arrow.Array {
		return array.MakeFromData(array.NewData(arrow.ListOf(of.DataType()), lists, offs, []arrow.ArrayData{of}, 0, 0))
	}
	return map[string]arrow.Array{"struct": array.MakeFromData(st), "list": list(a.Data()), "list of structs": list(st),
		"map": array.MakeFromData(array.NewData(arrow.MapOf(arrow.BinaryTypes.String, a.DataType()), lists, offs,
			[]arrow.ArrayData{pairs}, 0, 0))}
}

// TestDictionariesAreTheirValues: every format writes a table with a dictionary, of values of any type, with nulls
// among them, and nested in any way, like the table with the plain values: both are read back the same, or both
// refused.
func TestDictionariesAreTheirValues(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 19))
	item := arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}
	word := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.String}
	types := append(formattest.LeafTypes(), arrow.StructOf(item), arrow.ListOf(arrow.PrimitiveTypes.Int32),
		arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), arrow.FixedSizeListOf(2, item.Type),
		arrow.StructOf(item, arrow.Field{Name: "b", Type: arrow.ListOf(word), Nullable: true}))
	formats := append(slices.Clone(Formats), kudubackup.Format, kudufs.Format)
	formats = slices.DeleteFunc(formats, func(f format.Format) bool { return f.Create == nil })
	for _, typ := range types {
		if testing.Short() && typ.ID() != arrow.STRING && typ.ID() != arrow.BOOL && typ.ID() != arrow.STRUCT &&
			r.IntN(4) > 0 {
			continue
		}
		var values arrow.Array
		for values == nil || values.Len() == 0 { // array.Concatenate does not support fixed-size binary without values
			values = formattest.RandomTable(r, formattest.TableOptions{Rows: 40, Micros: true,
				Fields: []arrow.Field{{Name: "v", Type: typ, Nullable: true}}}).Batch.Column(0)
		}
		null := array.MakeArrayOfNull(memory.DefaultAllocator, typ, 1)
		values, err := array.Concatenate([]arrow.Array{null, values}, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(typ, err)
		}
		dict, plain := coded(t, r, values, 60)
		dicts, plains := around(dict), around(plain)
		dicts["flat"], plains["flat"] = array.NewSlice(dict, 3, 57), array.NewSlice(plain, 3, 57)
		for shape, d := range dicts {
			if testing.Short() && shape != "flat" && r.IntN(3) > 0 {
				continue
			}
			for i := range formats {
				sameAsPlain(t, &formats[i], shape, d, plains[shape])
			}
		}
	}
}

// sameAsPlain writes each of two arrays as a column, and compares what is read back.
func sameAsPlain(t *testing.T, f *format.Format, shape string, dict, plain arrow.Array) {
	t.Helper()
	what := f.Name + ", " + shape + " " + dict.DataType().String()
	var got [2][]string
	var errs [2]error
	for k, a := range []arrow.Array{plain, dict} {
		got[k], errs[k] = writtenAndRead(t, f, a)
		for _, class := range []error{fault.Bug, fault.Corrupt} {
			if IsUnproven(errs[k]) || errors.Is(errs[k], class) {
				t.Errorf("%s (%d): %v", what, k, errs[k])
				return
			}
		}
	}
	if (errs[0] == nil) != (errs[1] == nil) {
		t.Errorf("%s: plain: %v, as a dictionary: %v", what, errs[0], errs[1])
	}
	if !slices.Equal(got[0], got[1]) {
		k := 0
		for k < min(len(got[0]), len(got[1])) && got[0][k] == got[1][k] {
			k++
		}
		t.Errorf("%s: %d plain cells, %d as a dictionary; from %d on\n%q\n%q", what, len(got[0]), len(got[1]), k,
			got[0][k:min(len(got[0]), k+2)], got[1][k:min(len(got[1]), k+2)])
	}
}

// writtenAndRead writes a column and returns it, read back, as text.
func writtenAndRead(t *testing.T, f *format.Format, a arrow.Array) (cells []string, err error) {
	t.Helper()
	b := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "c", Type: a.DataType(), Nullable: true}}, nil),
		[]arrow.Array{a}, int64(a.Len()))
	if f.Family == kudubackup.Format.Family {
		b = withKey(b)
	}
	name := filepath.Join(t.TempDir(), "out") + ext(f)
	s, err := written(t.Context(), name, b, CreateOptions{Formats: provable, To: f.Name, Opts: optionsOf(f)})
	if err != nil {
		return nil, err
	}
	if f.Open == nil {
		return nil, nil
	}
	if !s.Checked {
		t.Errorf("%s, %s: not checked", f.Name, a.DataType())
	}
	table, err := Open(t.Context(), name, OpenOptions{From: f.Name})
	if err != nil {
		return nil, err
	}
	defer table.Close()
	for b, err := range table.Scan(t.Context(), ScanSpec{}) {
		if err != nil {
			return nil, err
		}
		for _, c := range b.Columns() {
			for i := range c.Len() {
				cells = append(cells, plainText(c, i))
			}
		}
	}
	return cells, nil
}

// plainText is a value as text, with dictionaries resolved.
func plainText(a arrow.Array, i int) string {
	return fmt.Sprintf("%q", formattest.CellsOf(array.NewSlice(a, int64(i), int64(i+1))))
}
