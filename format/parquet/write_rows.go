package parquet

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"stoa/fault"
	"stoa/internal/nest"
)

// sliceRows is how many rows are shredded at a time at most.
const sliceRows = 16 << 10

// leafWriter is what is known of a leaf, and the memory in which its values are prepared.
type leafWriter struct {
	nest.Leaf
	value    leafValue
	nullable bool // its own field can be null
	scratch  denseScratch
	def, rep []int16
	fixed    []parquet.FixedLenByteArray
	bytes    []parquet.ByteArray
}

// plan finds the leaves of the schema, and holds their levels against those of Parquet's.
func (w *Writer) plan(pq *schema.Schema) error {
	for _, f := range w.sc.Fields() {
		leaves, err := nest.Leaves(f)
		if err != nil {
			return err
		}
		w.first = append(w.first, len(w.cols))
		for _, l := range leaves {
			v, ok := planLeaf(l.Type)
			if !ok {
				return fault.Unsupportedf(fault.Span{}, l.Name, "type %s cannot be written as Parquet", l.Type)
			}
			w.cols = append(w.cols, &leafWriter{Leaf: l, value: v, nullable: fieldAt(f, l.Path).Nullable})
		}
	}
	if pq.NumColumns() != len(w.cols) {
		return fault.Bugf("parquet: %d leaves, the file's schema has %d", len(w.cols), pq.NumColumns())
	}
	for i, c := range w.cols {
		if p := pq.Column(i); int(p.MaxDefinitionLevel()) != int(c.MaxDef) || int(p.MaxRepetitionLevel()) != int(c.MaxRep) ||
			p.PhysicalType() == parquet.Types.FixedLenByteArray && p.TypeLength() != c.value.to {
			return fault.Bugf("parquet: leaf %s has levels %d and %d, the file's schema says %s, %d and %d", c.Name, c.MaxDef, c.MaxRep, p.Path(), p.MaxDefinitionLevel(), p.MaxRepetitionLevel())
		}
	}
	return nil
}

// fieldAt is the field at path below f.
func fieldAt(f arrow.Field, path []int) arrow.Field {
	for _, i := range path {
		switch t := f.Type.(type) {
		case *arrow.MapType:
			key := t.KeyField()
			key.Nullable = false
			f = arrow.Field{Type: arrow.StructOf(key, t.ItemField())}
		case arrow.NestedType:
			f = t.Fields()[i]
		}
	}
	return f
}

// batch writes rows to row groups.
func (w *Writer) batch(b arrow.RecordBatch) error {
	for from := int64(0); from < b.NumRows(); {
		if w.group == nil {
			w.group = w.lib.AppendBufferedRowGroup()
		}
		to := min(b.NumRows(), from+sliceRows, from+w.most-w.filled)
		part := b.NewSlice(from, to)
		err := w.slice(part)
		part.Release()
		if err != nil {
			return err
		}
		w.rows += to - from
		if w.filled += to - from; w.filled == w.most {
			if err := w.endGroup(); err != nil {
				return err
			}
		}
		from = to
	}
	return nil
}

func (w *Writer) endGroup() error {
	if w.group == nil {
		return nil
	}
	err := w.group.Close()
	w.group, w.filled = nil, 0
	return err
}

// slice adds a few rows to all columns.
func (w *Writer) slice(b arrow.RecordBatch) error {
	for i, f := range w.sc.Fields() {
		parts, err := nest.Shred(f, b.Column(i))
		if err != nil {
			return err
		}
		for k := range parts {
			n := w.first[i] + k
			to, err := w.group.Column(n)
			if err != nil {
				return err
			}
			if err := w.leaf(w.cols[n], &parts[k], to); err != nil {
				return err
			}
		}
	}
	return nil
}

// leaf gives levels and values of one leaf to its chunk.
func (w *Writer) leaf(c *leafWriter, s *nest.Shredded, to file.ColumnChunkWriter) error {
	if s.Entries == 0 {
		return nil
	}
	a, err := presentValues(s, c.nullable, w.mem)
	if err != nil {
		return err
	}
	defer a.Release()
	var d dense
	if c.value.form != formNone {
		if d, err = c.value.of(a, &c.scratch); err != nil {
			return fault.Locate(err, fault.Span{}, false, c.Name)
		}
	}
	return c.write(d, levels16(&c.def, s.Def), levels16(&c.rep, s.Rep), to)
}

// levels16 is levels as the library takes them.
func levels16(to *[]int16, levels []byte) []int16 {
	if levels == nil {
		return nil
	}
	*to = slices.Grow((*to)[:0], len(levels))[:len(levels)]
	for i, l := range levels {
		(*to)[i] = int16(l)
	}
	return *to
}

func (c *leafWriter) write(d dense, def, rep []int16, to file.ColumnChunkWriter) (err error) {
	switch to := to.(type) {
	case *file.BooleanColumnChunkWriter:
		_, err = to.WriteBatch(wordsOf[bool](d.fixed), def, rep)
	case *file.Int32ColumnChunkWriter:
		_, err = to.WriteBatch(wordsOf[int32](d.fixed), def, rep)
	case *file.Int64ColumnChunkWriter:
		_, err = to.WriteBatch(wordsOf[int64](d.fixed), def, rep)
	case *file.Float32ColumnChunkWriter:
		_, err = to.WriteBatch(wordsOf[float32](d.fixed), def, rep)
	case *file.Float64ColumnChunkWriter:
		_, err = to.WriteBatch(wordsOf[float64](d.fixed), def, rep)
	case *file.FixedLenByteArrayColumnChunkWriter:
		c.fixed = c.fixed[:0]
		for i := range d.n {
			c.fixed = append(c.fixed, d.fixed[i*c.value.to:(i+1)*c.value.to])
		}
		_, err = to.WriteBatch(c.fixed, def, rep)
	case *file.ByteArrayColumnChunkWriter:
		c.bytes = c.bytes[:0]
		for i := range d.n {
			if b := d.data[d.offs[i]:d.offs[i+1]]; len(b) > 0 {
				c.bytes = append(c.bytes, b)
			} else { // of nil the library takes the empty value for none: the least value that it writes would be too great
				c.bytes = append(c.bytes, []byte{})
			}
		}
		_, err = to.WriteBatch(c.bytes, def, rep)
	default:
		err = fault.Bugf("parquet: column %s has a writer of type %T", c.Name, to)
	}
	return err
}
