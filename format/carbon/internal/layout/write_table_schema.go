package layout

import (
	"slices"
	"strings"

	"stoa/internal/thrift"
)

// NextOrdinal returns the schemaOrdinal for the next column to be added.
func (t *TableSchema) NextOrdinal() (n int32) {
	for i := range t.Columns {
		n = max(n, t.Columns[i].Ordinal+1)
	}
	return n
}

// V12SortColumns returns the names of the sort columns in formats 1 and 2: all simple dimensions, in schema order.
// Readers of release 1.0 search by the start and end keys of blocklets, which consist of all these columns.
func (t *TableSchema) V12SortColumns() (out []string) {
	for i := range t.Columns {
		if c := &t.Columns[i]; c.Dimension && c.Ordinal >= 0 && !c.Type.Complex() && !c.Invisible {
			out = append(out, c.Name)
		}
	}
	return out
}

// FindColumn returns the visible top-level column with a name, ignoring case; nil if there is none.
func (t *TableSchema) FindColumn(name string) *ColumnSchema {
	for i := range t.Columns {
		if c := &t.Columns[i]; strings.EqualFold(c.Name, name) && !c.Invisible && c.Ordinal >= 0 {
			return c
		}
	}
	return nil
}

// RenameLong renames a column in the list of long strings.
func (t *TableSchema) RenameLong(old, name string) {
	for i := range t.long {
		if strings.EqualFold(t.long[i], old) {
			t.long[i] = name
		}
	}
}

// Put writes TableInfo, which is the whole schema file.
func (t *TableSchema) Put(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.Struct(1)
	w.String(1, t.ID)
	putSchemas(w, 2, t.Columns, false)
	w.Struct(3)
	w.List(1, thrift.Struct, len(t.History))
	for i := range t.History {
		t.History[i].put(w)
	}
	w.End()
	putPairs(w, 4, t.Properties)
	if t.Buckets > 0 {
		w.Struct(5)
		putSchemas(w, 1, t.BucketBy, false)
		w.I32(2, t.Buckets)
		w.End()
	}
	if t.Partition != nil {
		w.Struct(6)
		putSchemas(w, 1, t.Partition.Columns, false)
		w.I32(2, t.Partition.Kind)
		w.End()
	}
	if t.long != nil {
		w.List(7, thrift.Bytes, len(t.long))
		for _, n := range t.long {
			w.String(thrift.Item, n)
		}
	}
	w.End()
	w.List(2, thrift.Struct, 0)
	w.End()
}

func (e *Evolution) put(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.I64(1, e.Stamp)
	putSchemas(w, 2, e.Added, false)
	putSchemas(w, 3, e.Removed, false)
	w.End()
}

// StoredColumns returns the columns that data files have: the visible ones, with simple dimensions first, then nested
// columns, then measures.
func (t *TableSchema) StoredColumns() (out []ColumnSchema) {
	var simple, nested, measures []ColumnSchema
	for i := 0; i < len(t.Columns); {
		end := i + 1
		for left := t.Columns[i].NumChild; left > 0; left-- {
			left += t.Columns[end].NumChild
			end++
		}
		c := t.Columns[i]
		switch {
		case c.Invisible:
		case c.Type.Complex():
			nested = append(nested, t.Columns[i:end]...)
		case c.Dimension:
			simple = append(simple, c)
		default:
			measures = append(measures, c)
		}
		i = end
	}
	return slices.Concat(simple, nested, measures)
}
