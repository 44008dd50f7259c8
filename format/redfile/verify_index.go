package redfile

import (
	"bytes"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/internal/nest"
	"stoa/vec"
)

// index reads the index page of a chunk, nil if there is none that can be used.
func (v *verifier) index(t *pageTable) []indexEntry {
	if t.meta.index < 0 {
		return nil
	}
	entries, _, err := t.readIndex(v.ctx)
	if err != nil {
		v.Blame("redfile.index.damaged", err, -1, -1)
		return nil
	}
	return entries
}

// takeBounds works out the bounds of decoded values as the writer does: it stores them again.
func takeBounds(e *indexEntry, l *leaf, dst *vec.Vector) {
	if l.maxRep > 0 || dst.Len() == 0 {
		return
	}
	a, err := dst.Emit(dst.Len())
	if err != nil {
		return
	}
	defer a.Release()
	f := l.column
	parts, err := nest.Shred(arrow.Field{Name: f.Name, Type: f.Type, Nullable: true}, a)
	if err != nil || len(parts) != 1 {
		return
	}
	dense, err := parts[0].Dense(memory.DefaultAllocator)
	if err != nil {
		return
	}
	defer dense.Release()
	boundsOf(e, l, dense)
}

// placed holds the entry of the index page against the header of its page, as reading does.
func (v *verifier) placed(index []indexEntry, t *pageTable, p *page, i int) bool {
	if i >= len(index) {
		return true
	}
	e := &index[i]
	first, err := t.f.firstPage(v.ctx, t.group, t.col, t.meta)
	if err != nil || first+e.offset == p.off && int64(e.size) == p.size && int64(e.values) == p.values {
		return err == nil
	}
	v.Report("redfile.index.damaged", t.at.Sub(p.off, p.size), indexPath(t, i),
		"a page of %d bytes at %d with %d values; the page has %d bytes at %d, %d values", e.size, first+e.offset,
		e.values, p.size, p.off, p.values)
	return false
}

func indexPath(t *pageTable, i int) string {
	return fmt.Sprintf("%s.index_page.pages[%d]", chunkPath(t.group, t.col), i)
}

// compare holds an entry of the index page against the values of its page.
func (v *verifier) compare(index []indexEntry, t *pageTable, p *page, i int, rows, nulls int64, real *indexEntry) {
	if !v.placed(index, t, p, i) {
		return
	}
	e := &index[i]
	path, at := indexPath(t, i), t.at.Sub(p.off, p.size)
	if int64(e.rows) != rows || int64(e.nulls) != nulls {
		v.Report("redfile.index.damaged", at, path, "%d values, %d of them null, and %d rows; the page has %d values, "+
			"%d null, %d rows", e.values, e.nulls, e.rows, p.values, nulls, rows)
		return
	}
	if !e.hasMin || !e.hasMax || !real.hasMin {
		return
	}
	if !bytes.Equal(e.min, real.min) || !bytes.Equal(e.max, real.max) || e.minCut != real.minCut ||
		e.maxCut != real.maxCut || e.noNaN && !real.noNaN {
		v.Report("redfile.index.bounds", at, path, "the values lie from %x to %x, the index says from %x to %x",
			real.min, real.max, e.min, e.max)
	}
}
