package rewrite

import (
	"context"
	"fmt"
	"slices"

	"stoa/format/parquet/internal/meta"
	"stoa/internal/nest"
	"stoa/vec"
)

// part is the rows of a row group that become one row group of the output: all of them, or those between two rows.
// Pages with rows of two parts are cut, all others are copied.
type part struct {
	group  int
	rows   vec.Range
	chunks []chunkPart // by kept leaf; nil if the row group is copied whole
}

// chunkPart holds the pages of a column chunk that belong to a part.
type chunkPart struct {
	dict     *meta.Page // nil if no page of the part uses it
	pages    []meta.Page
	from, of int            // number of the first page among the chunk's data pages, and their total number
	cut      map[int]*slice // by index in pages: the pages of which the part has only a slice
	at       []written      // where pages were written
}

// written is the location of a page in the output.
type written struct{ at, size int64 }

// chunkPages are the pages of a column chunk. first holds, for each data page, the first row that begins in it or after
// it, and ends with an entry for the end.
type chunkPages struct {
	leaf   int
	dict   *meta.Page
	data   []meta.Page
	first  []int64
	inside []bool // by page: it begins inside a row; nil if none does
}

// cut divides the row groups of a file into those of the output, none of which exceeds the rows or bytes in the
// options. why explains why that would need decoding.
func (j *Job) cut(ctx context.Context, s *source) (why string, err error) {
	for g, x := range s.r.Footer.RowGroups {
		stored := int64(0)
		for _, leaf := range s.leaves {
			stored += x.Columns[leaf].MetaData.TotalCompressedSize
		}
		if j.fits(x.NumRows, stored) {
			s.parts = append(s.parts, part{group: g, rows: vec.Range{To: x.NumRows}})
			continue
		}
		parts, why, err := j.cutGroup(ctx, s, g)
		if why != "" || err != nil {
			return why, err
		}
		s.parts = append(s.parts, parts...)
	}
	return "", nil
}

func (j *Job) fits(rows, stored int64) bool {
	return (j.o.GroupRows <= 0 || rows <= j.o.GroupRows) && (j.o.GroupSize <= 0 || stored <= j.o.GroupSize)
}

// cutGroup cuts a row group, each time at the last row that keeps a part small enough and at which a page of every
// column begins; if there is no such row, at the row that cuts the fewest bytes of pages.
func (j *Job) cutGroup(ctx context.Context, s *source, g int) (parts []part, why string, err error) {
	var all []chunkPages
	rows := s.r.Footer.RowGroups[g].NumRows
	for _, leaf := range s.leaves {
		c, why, err := s.pages(ctx, g, leaf)
		if why != "" || err != nil {
			return nil, why, err
		}
		all = append(all, c)
	}
	at := begins(all)
	for from := int64(0); from < rows; {
		to := j.cutAt(all, at, from, rows)
		if to == from {
			return nil, fmt.Sprintf("row group %d is larger than row-group-size says, and after its row %d already "+
				"the next page is", g, from), nil
		}
		p := part{group: g, rows: vec.Range{From: from, To: to}}
		for i := range all {
			x := all[i].part(from, to)
			for _, cut := range x.cut {
				if cut.from < 0 { // count the page once, in the part where it begins
					j.cutPages++
				}
			}
			p.chunks = append(p.chunks, x)
		}
		parts, from = append(parts, p), to
	}
	return parts, "", nil
}

// begins returns the rows at which pages begin, and the end, ascending.
func begins(all []chunkPages) (at []int64) {
	for i := range all {
		at = append(at, all[i].first...)
	}
	slices.Sort(at)
	return slices.Compact(at)
}

// cutAt returns the row at which a part that begins at from ends; from if no end fits. at holds the rows that are
// preferred.
func (j *Job) cutAt(all []chunkPages, at []int64, from, rows int64) int64 {
	fits := func(to int64) bool {
		stored := int64(0)
		for i := range all {
			stored += all[i].stored(from, to)
		}
		return j.fits(to-from, stored)
	}
	var can []int64
	for next, _ := slices.BinarySearch(at, from+1); next < len(at) && fits(at[next]); next++ {
		can = append(can, at[next])
	}
	if to := from + j.o.GroupRows; j.o.GroupRows > 0 && to < rows && fits(to) && !slices.Contains(can, to) {
		can = append(can, to)
	}
	best, least := from, int64(-1)
	for _, to := range slices.Backward(can) {
		cost := int64(0)
		for i := range all {
			cost += all[i].cost(to)
		}
		nearEnd := to-from > (can[len(can)-1]-from)/2 // parts must not become small just to cut fewer bytes
		if cost == 0 {
			return to
		}
		if nearEnd && (least < 0 || cost < least) {
			best, least = to, cost
		}
	}
	return best
}

// pages finds the pages of a column chunk and the rows at which they begin.
func (s *source) pages(ctx context.Context, g, leaf int) (c chunkPages, why string, err error) {
	d, rows := s.r.Footer.Schema.Column(leaf), s.r.Footer.RowGroups[g].NumRows
	c.leaf = leaf
	for p, err := range s.r.Pages(ctx, g, leaf) {
		switch {
		case err != nil:
			return c, "", err
		case p.IsData():
			c.data = append(c.data, p)
		case p.Kind == meta.DictionaryPage && c.dict == nil && len(c.data) == 0:
			c.dict = &p
		default:
			return c, fmt.Sprintf("row group %d, %s: it has pages of other kinds", g, d.Path()), nil
		}
	}
	each := make([]int64, len(c.data)) // rows that begin in each page
	for i, p := range c.data {
		each[i] = p.Values
	}
	if d.MaxRepetitionLevel() > 0 {
		if err := s.countRows(ctx, g, &c, each); err != nil {
			return c, "", err
		}
	}
	row := int64(0)
	for _, n := range each {
		c.first, row = append(c.first, row), row+n
	}
	if c.first = append(c.first, row); row != rows {
		return c, fmt.Sprintf("row group %d, %s: its pages have %d rows instead of %d", g, d.Path(), row, rows), nil
	}
	return c, "", nil
}

// countRows counts the rows that begin in each page of a list's leaf. Files without an offset index do not record these
// numbers, and a page may begin inside a row.
func (s *source) countRows(ctx context.Context, g int, c *chunkPages, each []int64) error {
	i := 0
	return s.r.EachStored(ctx, g, c.leaf, func(v *vec.Vector) error {
		if rep := v.Rep(); i < len(each) {
			each[i] = int64(nest.CountRows(rep))
			c.inside = append(c.inside, len(rep) > 0 && rep[0] > 0)
		}
		i++
		return nil
	})
}

// span returns the range of pages that contain the rows [from, to). Pages without rows, which pyarrow sometimes writes,
// belong to the rows before them: pyarrow reads nothing from a chunk that begins with such a page.
func (c *chunkPages) span(from, to int64) (i, k int) {
	i, _ = c.page(from)
	k, inside := c.page(to)
	if inside {
		k++
	}
	return i, k
}

// page returns the number of the page in which a row begins, or the number of pages if there is none. inside reports
// whether the row begins after the page's first entry.
func (c *chunkPages) page(row int64) (i int, inside bool) {
	switch pages := len(c.data); row {
	case 0:
		return 0, false
	case c.first[pages]:
		return pages, false
	}
	following, _ := slices.BinarySearch(c.first, row+1)
	i = following - 1
	return i, c.first[i] < row || c.inside != nil && c.inside[i]
}

// cost returns how many bytes of pages must be decoded and encoded if the chunk is cut at a row.
func (c *chunkPages) cost(row int64) int64 {
	if i, inside := c.page(row); inside {
		return c.data[i].Whole().Len
	}
	return 0
}

// stored returns an upper bound of the bytes of the pages with some rows, assuming that all need the dictionary.
func (c *chunkPages) stored(from, to int64) (n int64) {
	if c.dict != nil {
		n = c.dict.Whole().Len
	}
	i, k := c.span(from, to)
	return n + c.data[k-1].Body.End() - c.data[i].Header.Off
}

// part returns the pages with the rows [from, to), and slices of pages that also have other rows.
func (c *chunkPages) part(from, to int64) chunkPart {
	i, k := c.span(from, to)
	p := chunkPart{pages: c.data[i:k], from: i, of: len(c.data)}
	if slices.ContainsFunc(p.pages, func(p meta.Page) bool { return meta.IsDictionary(p.Encoding) }) {
		p.dict = c.dict
	}
	cut := func(row int64, set func(x *slice, at int64)) {
		if page, inside := c.page(row); inside {
			if p.cut == nil {
				p.cut = map[int]*slice{}
			}
			if p.cut[page-i] == nil {
				p.cut[page-i] = &slice{from: -1, to: -1}
			}
			set(p.cut[page-i], row-c.first[page])
		}
	}
	cut(from, func(x *slice, at int64) { x.from = at })
	cut(to, func(x *slice, at int64) { x.to = at })
	return p
}
