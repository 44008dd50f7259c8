package redfile

import (
	"bytes"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/page"
	"stoa/format/redfile/internal/schema"
	"stoa/format/redfile/internal/write"
	"stoa/internal/nest"
	"stoa/vec"
)

// index reads the index page of a chunk; nil if there is none or it cannot be used.
func (v *verifier) index(t *page.Table) []layout.IndexEntry {
	if t.Meta.Index < 0 {
		return nil
	}
	entries, _, err := t.ReadIndex(v.ctx)
	if err != nil {
		v.Blame("redfile.index.damaged", err, -1, -1)
		return nil
	}
	return entries
}

// takeBounds computes the bounds of decoded values like the writer, by encoding them again.
func takeBounds(e *layout.IndexEntry, l *schema.Leaf, dst *vec.Vector) {
	if l.MaxRep > 0 || dst.Len() == 0 {
		return
	}
	a, err := dst.Emit(dst.Len())
	if err != nil {
		return
	}
	defer a.Release()
	f := l.Column
	parts, err := nest.Shred(arrow.Field{Name: f.Name, Type: f.Type, Nullable: true}, a)
	if err != nil || len(parts) != 1 {
		return
	}
	dense, err := parts[0].Dense(memory.DefaultAllocator)
	if err != nil {
		return
	}
	defer dense.Release()
	write.BoundsOf(e, l, dense)
}

// checkPlacement compares offset, size and number of values of an index entry with its page, and reports a difference.
func (v *verifier) checkPlacement(index []layout.IndexEntry, t *page.Table, p *page.Page, i int) bool {
	if i >= len(index) {
		return true
	}
	e := &index[i]
	first, err := t.File.FirstPage(v.ctx, t.Group, t.Col, t.Meta)
	if err != nil || first+e.Offset == p.Off && int64(e.Size) == p.Size && int64(e.Values) == p.Values {
		return err == nil
	}
	v.Report("redfile.index.damaged", t.At.Sub(p.Off, p.Size), indexPath(t, i),
		"expected a page of %d bytes at %d with %d values, found %d bytes at %d with %d values", e.Size,
		first+e.Offset, e.Values, p.Size, p.Off, p.Values)
	return false
}

func indexPath(t *page.Table, i int) string {
	return fmt.Sprintf("%s.index_page.pages[%d]", layout.ChunkPath(t.Group, t.Col), i)
}

// checkEntry compares an entry of the index page with the values of its page.
func (v *verifier) checkEntry(index []layout.IndexEntry, t *page.Table, p *page.Page, i int, rows, nulls int64,
	real *layout.IndexEntry) {
	if !v.checkPlacement(index, t, p, i) {
		return
	}
	e := &index[i]
	path, at := indexPath(t, i), t.At.Sub(p.Off, p.Size)
	if int64(e.Rows) != rows || int64(e.Nulls) != nulls {
		v.Report("redfile.index.damaged", at, path, "expected %d nulls and %d rows, counted %d and %d among %d values",
			e.Nulls, e.Rows, nulls, rows, p.Values)
		return
	}
	if !e.HasMin || !e.HasMax || !real.HasMin {
		return
	}
	if !bytes.Equal(e.Min, real.Min) || !bytes.Equal(e.Max, real.Max) || e.MinCut != real.MinCut ||
		e.MaxCut != real.MaxCut || e.NoNaN && !real.NoNaN {
		v.Report("redfile.index.bounds", at, path, "expected min %x and max %x, computed %x and %x", e.Min, e.Max,
			real.Min, real.Max)
	}
}
