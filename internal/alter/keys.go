package alter

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
)

// Keys collects the keys of the rows that are merged into a table.
type Keys struct {
	Columns []string
	Seen    map[string]bool // keys; true if a row of the table has it
	Found   int64           // number of keys that are true
}

// CheckMerge returns an error if rows lack a column of the table, or if a column cannot be used as a key.
func CheckMerge(own, sc *arrow.Schema, key []string, name string) error {
	if len(key) == 0 {
		return fault.Invalidf("the key columns are missing")
	}
	for _, f := range own.Fields() {
		if _, computed := f.Metadata.GetValue(format.MetaComputed); Named(sc, f.Name) < 0 && !computed {
			return fault.Invalidf("expected every column of %s, found none called %s: its values would be lost", name,
				f.Name)
		}
	}
	for _, k := range key {
		at := Named(own, k)
		if at < 0 {
			return fault.Invalidf("%s has no column %q", name, k)
		}
		want, have := keyKind(own.Field(at).Type), keyKind(sc.Field(Named(sc, k)).Type)
		if want == "" {
			return fault.Invalidf("key column %s is of type %s: expected one of whole numbers, decimals, texts, "+
				"booleans, dates or times", k, own.Field(at).Type)
		}
		if want != have {
			return fault.Invalidf("key column %s: expected values that compare with the table's type %s, found %s", k,
				own.Field(at).Type, sc.Field(Named(sc, k)).Type)
		}
	}
	return nil
}

// keyKind returns the group of types that key columns of type t can be compared with; "" if there is none.
func keyKind(t arrow.DataType) string {
	if d, ok := t.(*arrow.DictionaryType); ok {
		t = d.ValueType
	}
	switch id := t.ID(); {
	case arrow.IsInteger(id):
		return "number"
	case id == arrow.STRING || id == arrow.LARGE_STRING || id == arrow.STRING_VIEW:
		return "text"
	case id == arrow.BOOL || id == arrow.DATE32:
		return t.Name()
	case id == arrow.TIMESTAMP:
		return "timestamp"
	case arrow.IsDecimal(id):
		return "decimal"
	}
	return ""
}

// Of passes rows on and records their keys. A repeated key is an error of class Invalid.
func (k *Keys) Of(rows iter.Seq2[arrow.RecordBatch, error]) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		row := int64(0)
		for b, err := range rows {
			for i := 0; err == nil && i < int(b.NumRows()); i++ {
				key, ok := k.Key(b, i)
				if _, duplicate := k.Seen[key]; ok && duplicate {
					err = fault.Invalidf("row %d has a key that another row has: which of the two counts is not known",
						row+int64(i))
				}
				if ok {
					k.Seen[key] = false
				}
			}
			if err == nil {
				row += b.NumRows()
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// Key returns the key of a row; ok is false if the key contains a null.
func (k *Keys) Key(b arrow.RecordBatch, i int) (key string, ok bool) {
	var s strings.Builder
	for _, name := range k.Columns {
		text, ok := keyText(b.Column(Named(b.Schema(), name)), i)
		if !ok {
			return "", false
		}
		s.WriteString(strconv.Itoa(len(text)) + ":" + text)
	}
	return s.String(), true
}

// keyText returns a value as text that is the same for equal values of all types of a kind.
func keyText(a arrow.Array, i int) (string, bool) {
	if d, ok := a.(*array.Dictionary); ok && a.IsValid(i) {
		return keyText(d.Dictionary(), d.GetValueIndex(i))
	}
	if a.IsNull(i) {
		return "", false
	}
	switch a := a.(type) {
	case *array.Timestamp:
		at := a.Value(i).ToTime(a.DataType().(*arrow.TimestampType).Unit)
		return fmt.Sprintf("%d.%09d", at.Unix(), at.Nanosecond()), true
	case *array.Date32:
		return strconv.Itoa(int(a.Value(i))), true
	case *array.Decimal32, *array.Decimal64, *array.Decimal128, *array.Decimal256:
		s := a.ValueStr(i)
		if strings.Contains(s, ".") {
			s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
		}
		return s, true
	}
	return a.ValueStr(i), true
}

// Named returns the index of the field with the given name, ignoring case; -1 if there is none.
func Named(sc *arrow.Schema, name string) int {
	return slices.IndexFunc(sc.Fields(), func(f arrow.Field) bool { return strings.EqualFold(f.Name, name) })
}

// Find appends the rows whose keys are in k to those of their files. A batch has the file and the position of each row,
// and then the key columns.
func (k *Keys) Find(out []format.RowsOfFile, b arrow.RecordBatch) []format.RowsOfFile {
	files, rows := b.Column(0).(*array.String), b.Column(1).(*array.Int64)
	for i := range int(b.NumRows()) {
		key, ok := k.Key(b, i)
		hit, has := k.Seen[key]
		if !ok || !has {
			continue
		}
		if !hit {
			k.Seen[key] = true
			k.Found++
		}
		if n := len(out); n == 0 || out[n-1].File != files.Value(i) {
			out = append(out, format.RowsOfFile{File: strings.Clone(files.Value(i))})
		}
		out[len(out)-1].Rows = append(out[len(out)-1].Rows, rows.Value(i))
	}
	return out
}

// Constant returns an array with the value of a text, or null, n times.
func Constant(mem memory.Allocator, t arrow.DataType, v *string, n int) arrow.Array {
	if mem == nil {
		mem = memory.DefaultAllocator
	}
	b := array.NewBuilder(mem, t)
	defer b.Release()
	text, _ := b.(*array.StringBuilder)
	for range n {
		switch {
		case v == nil:
			b.AppendNull()
		case text != nil: // verbatim, because the builder's parser takes some texts for null
			text.Append(*v)
		case b.AppendValueFromString(*v) != nil:
			b.AppendNull()
		}
	}
	return b.NewArray()
}
