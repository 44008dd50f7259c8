package write

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/store"
)

// FileFacts are the facts that table catalogues keep about a written file.
type FileFacts struct {
	Rows    int64
	Groups  []int64       // offsets of the row groups
	Columns []ColumnFacts // the leaves, in order
}

// ColumnFacts are the facts of a leaf. Min and Max are in PLAIN encoding, without a length (nil if unknown). Long ones
// are truncated, the maximum so that it remains greater than all values.
type ColumnFacts struct {
	Path     []string // in the file's schema, with the names of the groups of lists and maps
	FieldID  int      // -1 if none
	Repeated bool     // in a list or a map
	Stored   int64    // bytes
	Values   int64    // entries, nulls and empty lists included
	Nulls    int64
	NaNs     int64 // of floats
	Min, Max []byte
}

// Facts returns the facts, which are known once the writer has been closed.
func (w *Writer) Facts() FileFacts {
	f := FileFacts{Rows: w.rows}
	for _, g := range w.groups {
		f.Groups = append(f.Groups, g.at)
	}
	for k, c := range w.cols {
		facts := ColumnFacts{Path: c.path, FieldID: c.id, Repeated: c.MaxRep > 0, NaNs: c.nans}
		var all LeafBounds
		known := true
		for _, g := range w.groups {
			n := g.chunks[k]
			facts.Stored, facts.Values, facts.Nulls = facts.Stored+n.stored, facts.Values+n.values, facts.Nulls+n.nulls
			b := LeafBounds{Min: n.bounds.Min, Max: n.bounds.Max}
			if n.nulls < n.values && (b.Min == nil || b.Max == nil) {
				known = known && n.c.order == orderFloat // a column of only NaN is known by their count
				continue
			}
			all.widen(b, c.order, c.width())
		}
		if known {
			facts.Min, facts.Max = all.Min, all.Max
		}
		f.Columns = append(f.Columns, facts)
	}
	return f
}

// CreateWithFacts is like Create, but also returns a function that returns the facts once the writer has been closed.
func CreateWithFacts(ctx context.Context, s store.Sink, sc *arrow.Schema, o format.WriteOptions) (format.Writer,
	func() FileFacts, error) {
	out, enc, err := create(ctx, s, sc, o)
	if err != nil {
		return nil, nil, err
	}
	return out, enc.Facts, nil
}
