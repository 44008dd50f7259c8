package read

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"sync"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/file"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/page"
	"stoa/pred"
	"stoa/vec"
)

// pageTable holds the data pages of a column chunk found so far. All readers of the chunk share it.
type pageTable struct {
	r           *Reader
	group, leaf int
	at          fault.Span // of the chunk

	mu        sync.Mutex
	pages     []page.PageRef
	dict      *page.PageRef // nil if none has been found
	opened    bool          // the first page, which may be a dictionary, has been read
	left      fault.Span
	values    int64 // total of the pages so far
	seen      int   // pages of all types
	err       error // why there are no more pages: io.EOF or damage
	unchecked bool  // some page has no checksum
}

// tables caches the page tables of some chunks.
type tables struct {
	mu   sync.Mutex
	kept map[tableKey]*pageTable
}

type tableKey struct {
	file.ChunkKey
	indexed bool
}

// maxTables is the number of cached tables. When there are too many, earlier ones are dropped: a scan does not return
// to them.
const maxTables = 1 << 14

func (t *tables) get(k tableKey, make func() *pageTable) *pageTable {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept[k] == nil {
		if t.kept == nil || len(t.kept) >= maxTables {
			t.kept = map[tableKey]*pageTable{}
		}
		t.kept[k] = make()
	}
	return t.kept[k]
}

// Chunk returns a column of a row group. If the offset index lists its pages, each page is checked against the index
// when it is decoded.
func (r *Reader) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	if g.Index < 0 || g.Index >= len(r.Footer.RowGroups) || col < 0 || col >= len(r.Leaves) {
		return nil, fault.Bugf("parquet: there is no column %d of row group %d", col, g.Index)
	}
	flat, all := r.Leaves[col].MaxRep == 0, r.Footer.RowGroups[g.Index].NumRows
	var x *meta.OffsetIndex
	if rows.From > 0 || rows.To < all || !flat {
		if err := r.Readable(g.Index, col); err != nil {
			return nil, err
		}
		var err error
		if x, err = r.OffsetIndex(ctx, g.Index, col); err != nil && !errors.Is(err, fault.Corrupt) {
			return nil, err
		}
	}
	return r.chunk(ctx, g.Index, col, rows, x)
}

// WalkChunk returns a whole chunk whose pages are found by their headers.
func (r *Reader) WalkChunk(ctx context.Context, group, col int) (*chunk, error) {
	return r.chunk(ctx, group, col, vec.Range{To: r.Footer.RowGroups[group].NumRows}, nil)
}

// chunk returns a chunk whose pages are located by x; if x is nil, their headers are read.
func (r *Reader) chunk(ctx context.Context, group, col int, rows vec.Range, x *meta.OffsetIndex) (*chunk, error) {
	if err := r.Readable(group, col); err != nil {
		return nil, err
	}
	indexed := x != nil && len(x.Offsets) > 0
	t := r.tables.get(tableKey{file.ChunkKey{Group: group, Leaf: col}, indexed}, func() *pageTable {
		t := &pageTable{r: r, group: group, leaf: col, at: r.padded(r.ChunkSpan(group, col))}
		if t.left = t.at; indexed {
			t.useIndex(x)
		}
		return t
	})
	if err := t.open(ctx); err != nil {
		return nil, err
	}
	return &chunk{t: t, rows: rows, i: t.find(rows.From), as: r.Leaves[col]}, nil
}

// padded returns the span that a chunk may occupy: parquet-mr up to 1.2.8 did not count the header of the dictionary
// page (PARQUET-816).
func (r *Reader) padded(at fault.Span) fault.Span {
	const slack = 100
	var minor, patch int
	if n, _ := fmt.Sscanf(r.Footer.CreatedBy, "parquet-mr version 1.%d.%d", &minor, &patch); n < 1 || minor > 2 ||
		minor == 2 && patch > 8 {
		if r.Footer.CreatedBy != "parquet-mr" {
			return at
		}
	}
	at.Len = max(at.Len, min(at.Len+slack, r.FooterAt.Off-at.Off))
	return at
}

// Readable returns an error if the footer alone shows that a chunk cannot be read.
func (r *Reader) Readable(group, col int) error {
	path := fmt.Sprintf("row_groups[%d].columns[%d]", group, col)
	key := file.ChunkKey{Group: group, Leaf: col}
	if err := cmp.Or(r.Lost[key], r.Claimed[key]); err != nil {
		return err
	}
	c := r.Footer.RowGroups[group].Columns[col]
	switch {
	case c.Encrypted:
		return fault.Unsupportedf(r.FooterAt, meta.IndexPath(group, col, "crypto_metadata"),
			"the column is encrypted%s, and no key for it is given (option key-file=FILE)", meta.QuotedID(c.Crypto.ID))
	case c.FilePath != "":
		return fault.Unsupportedf(r.FooterAt, meta.IndexPath(group, col, "file_path"), "the data are in another file, "+
			"%q", c.FilePath)
	case !c.MetaData.Codec.Supported():
		return fault.Unsupportedf(r.ChunkSpan(group, col), path, "codec %s", c.MetaData.Codec)
	case r.Leaves[col].Unread != nil:
		return r.Leaves[col].Unread
	}
	rows, values := r.Footer.RowGroups[group].NumRows, c.MetaData.NumValues
	if r.Leaves[col].MaxRep == 0 && values != rows || values < rows {
		return fault.Corruptf(r.ChunkSpan(group, col), meta.IndexPath(group, col, "num_values"),
			"%d, but the row group has %s", values, fault.Count(rows, "row"))
	}
	return nil
}

// useIndex takes the pages from the offset index.
func (t *pageTable) useIndex(x *meta.OffsetIndex) {
	all := t.r.Footer.RowGroups[t.group].NumRows
	flat := t.r.Leaves[t.leaf].MaxRep == 0
	for i := range x.Offsets {
		rows := x.RowsOf(i, all)
		p := page.PageRef{At: t.r.Span(x.Offsets[i], int64(x.Sizes[i])), First: rows.From, Rows: rows.Len(),
			Values: -1, Starts: true, FromIndex: true}
		if flat {
			p.Values = p.Rows
		}
		t.pages = append(t.pages, p)
	}
	t.err, t.left = io.EOF, t.left.Sub(t.left.Len, 0)
}

// open reads the first page of the chunk, which is the dictionary if there is one.
func (t *pageTable) open(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.opened || t.at.Len == 0 {
		if t.at.Len == 0 && t.err == nil {
			t.err = io.EOF
		}
		return nil
	}
	if len(t.pages) > 0 && t.pages[0].At.Off == t.at.Off {
		t.opened = true
		return nil
	}
	h, err := t.r.PageHeader(ctx, t.at, t.path(0), meta.PageModule{Cipher: t.cipher(), First: true}, nil)
	switch {
	case errors.Is(err, fault.Corrupt): // reported with the pages that need the dictionary
		t.opened = true
		return nil
	case err != nil:
		return err
	}
	t.opened = true
	if h.Kind == meta.DictionaryPage {
		t.dict = &page.PageRef{At: h.Whole(), Values: h.Values, Raw: h.Raw, First: -1, Rows: -1}
		if t.seen++; t.err == nil {
			t.left = t.after(&h)
		}
	}
	return nil
}

// cipher returns the cipher of the pages; nil if they are not encrypted.
func (t *pageTable) cipher() *meta.Cipher {
	return t.r.Footer.RowGroups[t.group].Columns[t.leaf].Cipher
}

func (t *pageTable) path(number int) string {
	return fmt.Sprintf("row_groups[%d].columns[%d].page[%d]", t.group, t.leaf, number)
}

// after returns the rest of the chunk after a page.
func (t *pageTable) after(h *meta.Page) fault.Span {
	return t.left.Sub(h.Body.End()-t.left.Off, t.left.End()-h.Body.End())
}

// get returns page i; io.EOF after the last one. All headers are read before the first page is returned: they have no
// checksums, and only their total shows whether each has the right number of values, on which the rows of all later
// pages depend.
func (t *pageTable) get(ctx context.Context, i int) (page.PageRef, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.err == nil {
		if err := t.walk(ctx); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, fault.Corrupt) && !errors.Is(err, fault.Unsupported) {
				return page.PageRef{}, err // other errors, such as the store's, may be transient
			}
			if len(t.pages) > 0 && errors.Is(err, fault.Corrupt) { // those found so far may be another column's
				if moved := t.checkNotMoved(ctx); moved != nil && !errors.Is(moved, fault.Corrupt) {
					return page.PageRef{}, moved
				}
			}
			t.err = err
		}
	}
	if i < len(t.pages) {
		return t.pages[i], nil
	}
	return page.PageRef{}, t.err
}

// walk reads the next header and adds its page if it is a data page.
func (t *pageTable) walk(ctx context.Context) error {
	m := t.r.Footer.RowGroups[t.group].Columns[t.leaf].MetaData
	if t.left.Len == 0 || t.values >= m.NumValues && (t.values > 0 || t.at.Len > m.TotalCompressedSize) {
		return t.end(ctx)
	}
	h, err := t.r.PageHeader(ctx, t.left, t.path(t.seen),
		meta.PageModule{Cipher: t.cipher(), First: t.seen == 0, Ordinal: len(t.pages)}, nil)
	if err == nil && h.IsData() && t.values+h.Values > m.NumValues {
		return t.contradicted(ctx, fault.Corruptf(h.Header, t.path(t.seen)+".num_values",
			"%s, but the chunk has %d, and %d came before", fault.Count(h.Values, "value"), m.NumValues, t.values))
	}
	if errors.Is(err, fault.Corrupt) {
		return t.fallBackToIndex(ctx, err)
	}
	if err != nil {
		return err
	}
	t.left = t.after(&h)
	t.seen++
	if h.IsData() {
		t.addPage(&h)
	}
	return nil
}

// end is called after the last page. It compares the totals of the pages with the chunk.
func (t *pageTable) end(ctx context.Context) error {
	m := t.r.Footer.RowGroups[t.group].Columns[t.leaf].MetaData
	if t.values != m.NumValues {
		return t.contradicted(ctx, fault.Corruptf(t.at, meta.IndexPath(t.group, t.leaf, "num_values"),
			"%d, but the pages have %d", m.NumValues, t.values))
	}
	if rows, all := t.rows(), t.r.Footer.RowGroups[t.group].NumRows; rows >= 0 && rows != all {
		return t.contradicted(ctx, fault.Corruptf(t.at, meta.IndexPath(t.group, t.leaf, "num_rows"),
			"the pages say %d, the row group has %d", rows, all))
	}
	if t.left.Len > 0 && len(t.pages) > 0 {
		if err := t.fallBackToIndex(ctx, errNoIndex); err != errNoIndex {
			return err
		}
		if err := t.hides(ctx); errors.Is(err, fault.Corrupt) {
			return t.contradicted(ctx, err)
		} else if err != nil {
			return err
		}
	}
	return cmp.Or(t.checkNotMoved(ctx), io.EOF)
}

var errNoIndex = errors.New("no offset index")

// rows returns the total number of rows in the headers of the pages; -1 if not all of them state it.
func (t *pageTable) rows() (n int64) {
	for _, p := range t.pages {
		if p.Rows < 0 {
			return -1
		}
		n += p.Rows
	}
	return n
}

// addPage adds a data page by its header.
func (t *pageTable) addPage(h *meta.Page) {
	t.unchecked = t.unchecked || !h.HasCRC
	p := page.PageRef{At: h.Whole(), Values: h.Values, First: -1, Rows: -1, Raw: h.Raw,
		Coded: meta.IsDictionary(h.Encoding)}
	switch {
	case t.r.Leaves[t.leaf].MaxRep == 0:
		p.First, p.Rows, p.Starts = t.values, h.Values, true
		p.Bounds = t.r.headerBounds(t.leaf, h)
	case h.Rows >= 0: // a data page v2 begins at a row boundary
		if len(t.pages) == 0 {
			p.First = 0
		} else if last := t.pages[len(t.pages)-1]; last.First >= 0 {
			p.First = last.First + last.Rows
		}
		p.Rows, p.Starts = h.Rows, true
	}
	t.values += h.Values
	t.pages = append(t.pages, p)
}

// fallBackToIndex uses the pages of the offset index after the headers contradicted the chunk: any of the headers so
// far may be the damaged one, and all later rows would be shifted. Without an index it is unknown which one it is, and
// cause is returned.
func (t *pageTable) fallBackToIndex(ctx context.Context, cause error) error {
	x, err := t.r.OffsetIndex(ctx, t.group, t.leaf)
	switch {
	case err != nil && !errors.Is(err, fault.Corrupt):
		return err
	case err == nil && x != nil && len(x.Offsets) > 0:
		t.pages = nil
		t.useIndex(x)
		return io.EOF
	}
	return cause
}

// find returns the number of the first page to read for a row, as far as it is known.
func (t *pageTable) find(row int64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if row <= 0 || len(t.pages) == 0 || t.pages[len(t.pages)-1].First < 0 {
		return 0
	}
	i := sort.Search(len(t.pages), func(i int) bool { return t.pages[i].First > row })
	// Several pages may begin with the same row; the last of them has it.
	return max(0, i-1)
}

// chunk returns the pages of a table. It implements format.Chunk.
type chunk struct {
	t    *pageTable
	rows vec.Range
	i    int // number of the next page
	as   *page.FileColumn
}

var _ format.Lister = (*chunk)(nil)

// Listed implements format.Lister.
func (c *chunk) Listed(rows vec.Range) (format.Chunk, bool) {
	i := c.t.find(rows.From)
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	return &chunk{t: c.t, rows: rows, i: i, as: c.as}, c.t.err != nil
}

// Next returns the next page.
func (c *chunk) Next(ctx context.Context) (format.Page, error) {
	p, err := c.t.get(ctx, c.i)
	if err != nil {
		return format.Page{}, err
	}
	if p.First >= c.rows.To {
		return format.Page{}, io.EOF
	}
	out := format.Page{Ordinal: c.i, First: p.First, Rows: p.Rows, Starts: p.Starts, Entries: p.Values, Raw: p.Raw,
		Coded: p.Coded, Bounds: p.Bounds, Spans: []fault.Span{p.At}, Own: &p}
	c.i++
	return out, nil
}

// Dict returns the dictionary page, if there is one.
func (c *chunk) Dict() (format.Page, bool) {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	if c.t.dict == nil || c.as.Form.Form == page.FormNull {
		return format.Page{}, false
	}
	return c.t.dictPage(), true
}

func (t *pageTable) dictPage() format.Page {
	d := t.dict
	return format.Page{Ordinal: -1, First: -1, Rows: -1, Entries: d.Values, Raw: d.Raw, Spans: []fault.Span{d.At},
		Own: d}
}

// byCodes describes, in explanations, how entries were found to fail a filter without looking at their values.
const byCodes = "codes compared, the dictionary tested once"

// Decode appends a page to dst. After an error it appends nothing.
func (c *chunk) Decode(t *format.Task, dst *vec.Vector) error {
	p, ok := t.Page.Own.(*page.PageRef)
	if !ok || len(t.Bytes) != 1 {
		return fault.Bugf("parquet: a page that is not of this file")
	}
	d := page.PageTask{Column: c.as, Ref: p, Module: meta.PageModule{Cipher: c.t.cipher(), Ordinal: t.Page.Ordinal},
		Arena: t.Scratch, Dict: t.Dict, Hits: t.Hits,
		Codec:         c.t.r.Footer.RowGroups[c.t.group].Columns[c.t.leaf].MetaData.Codec,
		AllowTrailing: c.t.r.AllowTrailing, Limit: min(c.t.r.Limits.Page, t.Limits.WithDefaults().Page),
		Verify: !t.NoVerify && !c.t.r.NoVerify}
	before := dst.Len()
	err := d.Decode(t.Bytes[0], dst, t.Page.Ordinal < 0)
	if t.Raw = d.Raw; d.Passed != nil && c.as.Flat() {
		t.Passed, t.By = d.Passed, byCodes
	}
	if err != nil {
		dst.Truncate(before)
		number := t.Page.Ordinal
		if c.t.dict != nil {
			number++
		}
		return fault.Locate(err, d.At, d.Exact, c.t.path(number))
	}
	return nil
}

// headerBounds returns the bounds in the header of a page; nil if there are none.
func (r *Reader) headerBounds(leaf int, h *meta.Page) *pred.Bounds {
	s := h.Stats
	if s == nil || r.Leaves[leaf].MaxRep > 0 {
		return nil
	}
	b := r.boundsOf(r.LeafOf(leaf), s, h.Values)
	return &b
}
