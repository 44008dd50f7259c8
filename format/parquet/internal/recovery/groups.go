package recovery

import (
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/file"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/thrift"
	"stoa/wire"
)

// Pages do not record which column they belong to, nor where a chunk ends. The division into chunks follows from these
// rules: chunks follow one another in schema order, row group by row group; a dictionary page begins a chunk; all
// columns of a row group have the same number of rows; and the contents of a page must fit the type of its column. If
// more than one division is possible, none is used.

// pageWalk holds consecutive pages of a file and the row groups made from them.
type pageWalk struct {
	s     *recoverer
	pages []loosePage
	cols  []leafKind
	cut   bool // the last page is incomplete
	end   int64
	fits  map[[2]int]fit
	codec meta.Compression // of the page that was decompressed last

	group  int // number of the first row group that is made
	groups []madeGroup
	lost   map[file.ChunkKey]error
}

type loosePage struct {
	meta.Page
	gapBefore bool // no page ends where this walk begins
}

// walk collects the pages between from and to, up to the first bytes that are not a page.
func (w *pageWalk) walk(from, to int64) error {
	r := w.s.r
	at := r.Span(from, to-from)
	gap := true
	for at.Len > 0 {
		p, err := r.PlainPageHeader(w.s.ctx, at, "page", nil)
		if err != nil && !isDamage(err) {
			return err
		}
		if err != nil || !p.Plausible() {
			n, err := w.chunkMeta(at)
			if err != nil {
				return err
			}
			if n == 0 {
				w.cut, err = p.Header.Len > 0 && p.Plausible(), nil // its body extends past the end
				if p.Header.Len == 0 {
					w.cut, err = w.shortHeader(at)
				}
				if err != nil {
					return err
				}
				break
			}
			at, gap = at.Sub(n, at.Len-n), true
			continue
		}
		w.pages = append(w.pages, loosePage{p, gap})
		gap = false
		at = at.Sub(p.Body.End()-at.Off, at.End()-p.Body.End())
	}
	w.end = at.Off - r.Base
	return nil
}

// shortHeader reports whether the bytes at at, up to their end, are the beginning of a page header.
func (w *pageWalk) shortHeader(at fault.Span) (bool, error) {
	b := make([]byte, min(at.Len, meta.MaxHeader))
	if err := format.ReadFull(w.s.ctx, w.s.r.Src, at.Sub(0, int64(len(b))), "page", b); err != nil {
		return false, err
	}
	c := wire.NewCursor(b, at.Sub(0, int64(len(b))), "page")
	t := thrift.NewReader(c, thrift.Compact)
	meta.ParsePageHeader(t)
	return len(b) > 0 && b[0] == i32Field && c.Err() != nil && t.Short() && int64(len(b)) == at.Len, nil
}

func isDamage(err error) bool { return classOf(err) == fault.Corrupt }

// chunkMeta returns the length of a ColumnMetaData, which some writers put after each chunk; 0 if there is none.
func (w *pageWalk) chunkMeta(at fault.Span) (int64, error) {
	b := make([]byte, min(at.Len, 64<<10))
	if err := format.ReadFull(w.s.ctx, w.s.r.Src, at.Sub(0, int64(len(b))), "", b); err != nil {
		return 0, err
	}
	if len(b) < 3 || b[0] != i32Field || b[2] != listField {
		return 0, nil
	}
	c := wire.NewCursor(b, at.Sub(0, int64(len(b))), "")
	if meta.Walk(thrift.NewReader(c, thrift.Compact), "", meta.ColumnMetaData); c.Err() != nil {
		return 0, nil
	}
	return int64(c.Pos()), nil
}

// division is a way to divide pages into row groups: the number of rows of each, the first page of each chunk, and the
// first page that is left over. The last row group may be cut short, and then has fewer chunks.
type division struct {
	rows   []int64
	starts [][]int
	next   int
}

// divide divides the pages into row groups. rows is their total number of rows, -1 if unknown.
func (w *pageWalk) divide(rows int64) error {
	r := w.s.r
	w.fits = map[[2]int]fit{}
	for k := range r.Footer.Schema.NumColumns() {
		w.cols = append(w.cols, kindOf(r.Footer.Schema.Column(k)))
	}
	if len(w.pages) == 0 || len(w.cols) == 0 {
		w.reportLeftover(0)
		return nil
	}
	found, err := w.divisions(rows)
	if err != nil {
		return err
	}
	switch len(found) {
	case 0:
		w.s.Rows("parquet.rows.lost", r.Span(w.pages[0].Header.Off-r.Base, w.end-(w.pages[0].Header.Off-r.Base)),
			[2]int64{-1, -1}, -1,
			"%d pages that cannot be the columns of the schema, with its types and nulls and in its order: they are "+
				"given up", len(w.pages))
		return nil
	case 1:
		return w.make(&found[0])
	}
	return fault.Corruptf(r.Span(w.pages[0].Header.Off-r.Base, 0), "pages",
		"they can be row groups of %s or of %d: option row-group-rows=N decides",
		fault.Count(found[0].rows[0], "row"), found[1].rows[0])
}

// divisions returns all ways to divide the pages into row groups with equal numbers of rows, except for the last group;
// if there are none, the only way to divide them into unequal ones.
func (w *pageWalk) divisions(rows int64) (out []division, err error) {
	if len(w.cols) == 1 { // the grouping does not affect the rows
		return w.singleColumn()
	}
	counts, err := w.counts(0)
	if err != nil {
		return nil, err
	}
	for _, n := range counts {
		if want := w.s.r.GroupRows; want > 0 && n != want {
			continue
		}
		d, ok, err := w.even(n)
		if err != nil {
			return nil, err
		}
		if ok && (rows < 0 || w.cut || d.total() == rows) {
			out = append(out, d)
		}
	}
	if len(out) == 0 {
		d, ok, err := w.uneven()
		if ok && err == nil {
			out = append(out, d)
		}
		return out, err
	}
	return out, nil
}

func (d *division) total() (n int64) {
	for _, k := range d.rows {
		n += k
	}
	return n
}

// counts returns the running totals of the first column's rows, page by page from page i: one of these is the number of
// rows of the row group.
func (w *pageWalk) counts(i int) (out []int64, err error) {
	n := int64(0)
	for k := i; k < len(w.pages); k++ {
		p := &w.pages[k]
		if p.Kind == meta.DictionaryPage || k > i && p.gapBefore {
			if k > i {
				break
			}
			continue
		}
		f, err := w.fit(k, 0)
		if err != nil {
			return nil, err
		}
		if !f.ok {
			break
		}
		// without this, row groups of no rows would continue forever
		if n += f.rows; n > 0 && (len(out) == 0 || out[len(out)-1] != n) {
			out = append(out, n)
		}
	}
	return out, nil
}

// singleColumn makes one row group of each chunk of the only column.
func (w *pageWalk) singleColumn() (out []division, err error) {
	d := division{}
	for i := 0; i < len(w.pages); {
		counts, err := w.counts(i)
		if err != nil || len(counts) == 0 {
			break
		}
		n := counts[len(counts)-1]
		next, _, err := w.chunk(i, 0, n)
		if err != nil || next == i {
			return nil, err
		}
		d.rows, d.starts, d.next = append(d.rows, n), append(d.starts, []int{i}), next
		i = next
	}
	if len(d.rows) == 0 {
		return nil, nil
	}
	return []division{d}, nil
}

// even divides the pages into row groups of n rows each, except for the last.
func (w *pageWalk) even(n int64) (d division, ok bool, err error) {
	for d.next < len(w.pages) {
		starts, next, whole, fits, err := w.rowGroup(d.next, n)
		if err != nil {
			return d, false, err
		}
		if fits && len(starts) == 0 {
			return w.begun(d)
		}
		if !fits { // the last one, with fewer rows
			return w.last(d, n)
		}
		d.rows, d.starts, d.next = append(d.rows, n), append(d.starts, starts), next
		if !whole {
			break
		}
	}
	return d, true, nil
}

// begun adds a row group whose first column is cut short, with as many rows as its pages have.
func (w *pageWalk) begun(d division) (division, bool, error) {
	counts, err := w.counts(d.next)
	if err != nil || len(counts) == 0 {
		return d, err == nil, err
	}
	n := counts[len(counts)-1]
	next, status, err := w.chunk(d.next, 0, n)
	if err != nil || status != complete {
		return d, err == nil, err
	}
	return division{append(d.rows, n), append(d.starts, []int{d.next}), next}, true, nil
}

// last adds a row group of fewer than n rows that ends with the last page. If several numbers of rows are possible, the
// row group is given up.
func (w *pageWalk) last(d division, n int64) (division, bool, error) {
	counts, err := w.counts(d.next)
	if err != nil || len(d.rows) == 0 {
		return d, false, err
	}
	var out []division
	for _, k := range counts {
		if k >= n {
			break
		}
		starts, next, whole, fits, err := w.rowGroup(d.next, k)
		if err != nil {
			return d, false, err
		}
		if fits && (next == len(w.pages) || !whole) {
			out = append(out, division{append(slices.Clone(d.rows), k), append(slices.Clone(d.starts), starts), next})
		}
	}
	switch len(out) {
	case 0:
		return d, false, nil
	case 1:
		return out[0], true, nil
	}
	return d, true, nil // the preceding row groups are certain
}

// uneven divides the pages into row groups, each of which allows only one number of rows.
func (w *pageWalk) uneven() (d division, ok bool, err error) {
	for d.next < len(w.pages) {
		counts, err := w.counts(d.next)
		if err != nil {
			return d, false, err
		}
		var rows int64
		var starts []int
		next, ways, last := 0, 0, false
		for _, n := range counts {
			s, to, whole, fits, err := w.rowGroup(d.next, n)
			if err != nil {
				return d, false, err
			}
			if fits {
				ways++
				rows, starts, next, last = n, s, to, !whole
			}
		}
		if ways != 1 { // the preceding row groups are certain
			return d, len(d.rows) > 0, nil
		}
		d.rows, d.starts, d.next = append(d.rows, rows), append(d.starts, starts), next
		if last {
			break
		}
	}
	return d, len(d.rows) > 0, nil
}

// rowGroup collects the pages of a row group of n rows from page i on. whole reports whether all columns are there;
// fits whether the pages that are there can belong to them.
func (w *pageWalk) rowGroup(i int, n int64) (starts []int, next int, whole, fits bool, err error) {
	for col := range w.cols {
		if i == len(w.pages) {
			return starts, i, false, true, nil
		}
		to, st, err := w.chunk(i, col, n)
		switch {
		case err != nil || st == mismatch:
			return nil, i, false, false, err
		case st == ranOut:
			return starts, i, false, true, nil
		}
		starts, i = append(starts, i), to
	}
	return starts, i, true, true, nil
}

// The outcomes of collecting the pages of a chunk.
const (
	complete = iota
	ranOut   // the pages end before the rows do
	mismatch // the pages belong to something else
)

// chunk collects the pages of n rows of a column from page i on.
func (w *pageWalk) chunk(i, col int, n int64) (next, status int, err error) {
	begin, rows, dict := i, int64(0), false
	codec := meta.Compression(-1)
	for ; i < len(w.pages); i++ {
		p := &w.pages[i]
		if rows >= n && (p.Values != 0 || p.gapBefore || !p.IsData()) {
			break
		}
		if i > begin && (p.gapBefore || p.Kind == meta.DictionaryPage) {
			return i, mismatch, nil
		}
		f, err := w.fit(i, col)
		if err != nil {
			return i, mismatch, err
		}
		if dict = dict || p.Kind == meta.DictionaryPage; !f.ok || rows+f.rows > n || p.IsData() &&
			meta.IsDictionary(p.Encoding) && !dict {
			return i, mismatch, nil
		}
		if f.codec >= 0 && codec >= 0 && f.codec != codec {
			return i, mismatch, nil
		}
		rows, codec = rows+f.rows, max(codec, f.codec)
	}
	if rows < n {
		return i, ranOut, nil
	}
	return i, complete, nil
}

// make builds the row groups of a division.
func (w *pageWalk) make(d *division) error {
	r := w.s.r
	for g, starts := range d.starts {
		whole := len(starts) == len(w.cols)
		if !whole && len(starts) == 0 {
			break
		}
		if !whole && !w.sound(starts, d.rows[g]) {
			w.s.Rows("parquet.rows.lost", r.Span(w.end, r.Size-w.end), [2]int64{-1, -1}, -1, "the last row group is "+
				"cut, and what is left of it is damaged: it is given up, and how many rows it had is not known")
			break
		}
		made := madeGroup{rows: d.rows[g]}
		for col := range w.cols {
			if col >= len(starts) {
				made.chunks = append(made.chunks, w.missing(len(w.groups), col))
				continue
			}
			end, _, err := w.chunk(starts[col], col, d.rows[g])
			if err != nil {
				return err
			}
			c, err := w.madeChunk(starts[col], end, col)
			if err != nil {
				return err
			}
			made.chunks = append(made.chunks, c)
		}
		w.groups = append(w.groups, made)
		if !whole {
			w.s.Rows("parquet.rows.lost", r.Span(w.end, r.Size-w.end), [2]int64{-1, -1}, made.rows,
				"the last row group is cut: %d of %d columns are there; null in place of the others' cells "+
					"keeps its rows", len(starts), len(w.cols))
		}
	}
	w.reportLeftover(d.next)
	return nil
}

// sound reports whether any of the chunks that begin with the given pages has only pages with correct checksums, or
// without any. Otherwise n, the number of rows of these chunks, is from the headers of pages of which it is not known
// whether the header or the body is damaged.
func (w *pageWalk) sound(starts []int, n int64) bool {
	for col, from := range starts {
		end, _, err := w.chunk(from, col, n)
		damaged := err != nil
		for i := from; i < end && !damaged; i++ {
			damaged = w.fits[[2]int{i, col}].damaged
		}
		if !damaged {
			return true
		}
	}
	return false
}

// reportLeftover reports the pages from number next on, which belong to no row group.
func (w *pageWalk) reportLeftover(next int) {
	r := w.s.r
	if next < len(w.pages) && len(w.lost) == 0 {
		at := w.pages[next].Header.Off
		w.s.Rows("parquet.rows.lost", r.Span(at-r.Base, w.end-(at-r.Base)), [2]int64{-1, -1}, -1,
			"%s after the last whole row group: they are given up", fault.Count(len(w.pages)-next, "page"))
		return
	}
	if w.cut && len(w.lost) == 0 {
		w.s.Rows("parquet.rows.lost", r.Span(w.end, r.Size-w.end), [2]int64{-1, -1}, -1,
			"the next row group is cut within its first column")
	}
}

// missing returns a placeholder for a chunk that is not in the file.
func (w *pageWalk) missing(group, col int) madeChunk {
	r := w.s.r
	key := file.ChunkKey{Group: w.group + group, Leaf: col}
	w.lost[key] = fault.Corruptf(r.Span(r.Size, 0), fmt.Sprintf("row_groups[%d].columns[%d]", key.Group, col),
		"the column chunk is not in the file, which is cut before it")
	return madeChunk{typ: w.cols[col].typ, path: r.Footer.Schema.Column(col).ColumnPath(),
		encodings: []int32{meta.PlainValues}, data: r.Size, dict: -1}
}

// madeChunk returns the chunk made of the pages [from, to).
func (w *pageWalk) madeChunk(from, to, col int) (madeChunk, error) {
	r := w.s.r
	first := &w.pages[from]
	c := madeChunk{typ: w.cols[col].typ, path: r.Footer.Schema.Column(col).ColumnPath(),
		encodings: []int32{meta.RleLevels}, data: math.MaxInt64, dict: -1}
	for i := from; i < to; i++ {
		p := &w.pages[i]
		f, err := w.fit(i, col)
		if err != nil {
			return c, err
		}
		if c.codec = max(c.codec, int32(f.codec)); !slices.Contains(c.encodings, p.Encoding) {
			c.encodings = append(c.encodings, p.Encoding)
		}
		c.raw += p.Header.Len + p.Raw
		if off := p.Header.Off - r.Base; p.IsData() {
			c.values += p.Values
			c.data = min(c.data, off)
		} else {
			c.dict = off
		}
	}
	c.stored = w.pages[to-1].Body.End() - first.Header.Off
	return c, nil
}

// badSum reports whether the checksum of a page does not match its bytes.
func badSum(p *meta.Page, b []byte) bool { return p.HasCRC && crc32.ChecksumIEEE(b) != p.CRC }
