package verify

import (
	"fmt"
	"slices"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/read"
	"stoa/vec"
)

// chunkWalk walks the pages of a chunk.
type chunkWalk struct {
	x           *meta.OffsetIndex // nil if there is none
	group, leaf int
	rows        int64 // of the row group
	flat        bool

	at      fault.Span // the rest of the chunk
	n       int        // number of preceding pages of all types
	data    []meta.Page
	dict    *meta.Page // nil if there is none
	values  int64
	raw     int64 // uncompressed bytes of all pages including headers
	damaged bool  // pages were skipped

	counted []tally // of each data page, from its decoded values; nil if not counted there
}

func (w *chunkWalk) take(p *meta.Page) {
	w.at = w.at.Sub(p.Body.End()-w.at.Off, w.at.End()-p.Body.End())
	w.raw += p.Header.Len + p.Raw
	if w.n++; p.IsData() {
		w.data = append(w.data, *p)
		w.values += p.Values
	}
	if p.Kind == meta.DictionaryPage {
		d := *p
		w.dict = &d
	}
}

// module identifies the next page.
func (w *chunkWalk) module(r *read.Reader) meta.PageModule {
	return meta.PageModule{Cipher: r.Footer.RowGroups[w.group].Columns[w.leaf].Cipher, First: w.n == 0,
		Ordinal: len(w.data)}
}

// skipDamaged continues after a damaged header, as readers do, at the next page in the offset index. It returns the
// skipped rows: without an index, all rows that follow.
func (w *chunkWalk) skipDamaged(base int64) (from, to int64) {
	w.damaged = true
	at, n := w.at.Off-base, len(w.data)
	if from = 0; w.flat {
		from = w.values
	}
	if w.x == nil || len(w.x.Offsets) == 0 {
		w.at = w.at.Sub(w.at.Len, 0)
		return from, w.rows
	}
	next, same := slices.BinarySearch(w.x.Offsets, at)
	switch {
	case at < w.x.Offsets[0]: // a dictionary was skipped
		from, to = 0, w.rows
	case same:
		from = w.x.FirstRow[next]
		next++
	default: // the header of the previous page pointed to a wrong place
		from = w.x.FirstRow[min(max(n-1, 0), next-1)]
	}
	end := w.at.End()
	if next == len(w.x.Offsets) {
		w.at, to = w.at.Sub(w.at.Len, 0), w.rows
		return from, to
	}
	off := base + w.x.Offsets[next]
	w.at = w.at.Sub(off-w.at.Off, end-off)
	if w.values = w.x.FirstRow[next]; to == 0 {
		to = w.x.FirstRow[next]
	}
	w.data = make([]meta.Page, next)
	return from, to
}

// checkRows compares the numbers of rows in the headers of data pages v2 with the row group.
func (w *chunkWalk) checkRows(at fault.Span) error {
	rows, all := int64(0), true
	for i, p := range w.data {
		if all = all && p.Rows >= 0; p.Rows < 0 {
			continue
		}
		if rows += p.Rows; w.flat && p.Rows != p.Values {
			return fault.Corruptf(p.Header, meta.IndexPath(w.group, w.leaf, fmt.Sprintf("page[%d].header.num_rows", i)),
				"%d, but num_values is %d", p.Rows, p.Values)
		}
	}
	if all && len(w.data) > 0 && rows != w.rows {
		return fault.Corruptf(at, meta.IndexPath(w.group, w.leaf, "num_rows"), "the pages say %d, the row group has %d",
			rows, w.rows)
	}
	return nil
}

// pageRows returns the rows of the row group in each data page; nil if they are unknown.
func (w *chunkWalk) pageRows() []vec.Range {
	out, row := make([]vec.Range, len(w.data)), int64(0)
	for i, p := range w.data {
		n := p.Rows
		switch {
		case w.damaged:
			return nil
		case w.flat:
			n = p.Values
		case w.x != nil && i+1 < len(w.data):
			n = w.x.FirstRow[i+1] - row
		case w.x != nil:
			n = w.rows - row
		case n < 0:
			return nil
		}
		out[i] = vec.Range{From: row, To: row + n}
		row += n
	}
	if row != w.rows {
		return nil // reported elsewhere
	}
	return out
}

// compare compares the offset index with the pages. Rows are known for flat columns and for data pages v2.
func (w *chunkWalk) compare(base int64) error {
	x, path := w.x, meta.IndexPath(w.group, w.leaf, "offset_index")
	if len(x.Offsets) != len(w.data) {
		return fault.Corruptf(x.At, path, "%s, the column chunk has %d", fault.Count(len(x.Offsets), "page"),
			len(w.data))
	}
	row := int64(0)
	for i, p := range w.data {
		if x.Offsets[i] != p.Header.Off-base || int64(x.Sizes[i]) != p.Header.Len+p.Body.Len || row >= 0 &&
			x.FirstRow[i] != row {
			return fault.Corruptf(x.At, fmt.Sprintf("%s.page_locations[%d]", path, i),
				"%d bytes at %d from row %d on; the page has %d bytes at %d", x.Sizes[i], x.Offsets[i],
				x.FirstRow[i], p.Header.Len+p.Body.Len, p.Header.Off-base)
		}
		if row += p.Values; !w.flat {
			row = -1
			if p.Rows >= 0 {
				row = x.FirstRow[i] + p.Rows
			}
		}
	}
	return nil
}
