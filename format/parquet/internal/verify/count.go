package verify

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/format/parquet/internal/meta"
	"stoa/vec"
)

// counter counts the levels of the pages of a flat column, and the bytes of its strings, from the values that were
// decoded anyway, so that checking size statistics does not need to decode them again.
type counter struct {
	w           *chunkWalk
	rows        []vec.Range // the rows of each page
	page        int         // the first page that has not been counted completely
	of          []tally
	sizeUnknown bool // the arrays do not show the bytes of strings
	def         int  // the definition level of a value
	text        bool
}

// counterOf returns nil if only the levels can tell: in lists and structs, and if the rows of pages are unknown.
func (v *verifier) counterOf(w *chunkWalk) *counter {
	leaf := v.r.Leaves[w.leaf]
	rows := w.pageRows()
	if !leaf.Flat() || leaf.MaxRep > 0 || leaf.MaxDef > 1 || rows == nil || w.damaged {
		return nil
	}
	c := &counter{w: w, rows: rows, of: make([]tally, len(rows)), def: int(leaf.MaxDef),
		text: leaf.Typ == meta.TypeBytes}
	for i := range c.of {
		c.of[i] = tally{make([]int64, 1), make([]int64, c.def+1), make([]int64, 1)}
	}
	return c
}

// count counts a batch, which begins at row at of the row group.
func (c *counter) count(a arrow.Array, at int64) {
	all := vec.Range{From: at, To: at + int64(a.Len())}
	for k := c.page; k < len(c.rows) && c.rows[k].From < all.To; k++ {
		if c.rows[k].To <= all.From {
			c.page = k + 1
			continue
		}
		part := c.rows[k].Intersect(all)
		rows := array.NewSlice(a, part.From-at, part.To-at)
		n, nulls := int64(rows.Len()), int64(rows.NullN())
		size, ok := textSize(rows)
		rows.Release()
		page := c.of[k]
		page[repLevels][0] += n
		page[defLevels][c.def] += n - nulls
		if c.def > 0 {
			page[defLevels][0] += nulls
		} else if nulls > 0 {
			c.sizeUnknown = true
		}
		if c.text {
			page[textBytes][0] += size
			c.sizeUnknown = c.sizeUnknown || !ok
		}
	}
}

// done keeps the counts if everything was counted.
func (c *counter) done() {
	for k, p := range c.of {
		if c.sizeUnknown || p[repLevels][0] != c.w.data[k].Values {
			return
		}
	}
	c.w.counted = c.of
}

// textSize returns the total length of strings in bytes; ok is false if it is unknown. Decoded nulls have length 0.
func textSize(a arrow.Array) (n int64, ok bool) {
	switch a := a.(type) {
	case *array.String:
		return span(a.ValueOffsets()), true
	case *array.Binary:
		return span(a.ValueOffsets()), true
	case *array.LargeString:
		return span(a.ValueOffsets()), true
	case *array.LargeBinary:
		return span(a.ValueOffsets()), true
	}
	return 0, false
}

func span[O int32 | int64](offsets []O) int64 {
	if len(offsets) == 0 {
		return 0
	}
	return int64(offsets[len(offsets)-1] - offsets[0])
}
