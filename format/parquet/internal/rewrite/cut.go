package rewrite

import (
	"context"
	"fmt"
	"slices"

	"stoa/format/parquet/internal/meta"
	"stoa/vec"
)

// part is rows of a row group that become a row group of the output: all of them, or those between two rows at which a
// page of every column begins, so that no page has to be decoded.
type part struct {
	group  int
	rows   vec.Range
	chunks []chunkPart // by kept leaf; nil: the row group as it is
}

// chunkPart is the pages of a column chunk in a part.
type chunkPart struct {
	dict     *meta.Page // nil: no page of the part uses it
	pages    []meta.Page
	from, of int // number of the first page among the chunk's data pages, and how many these are
}

// chunkPages are the pages of a column chunk, and the first row of each data page; the last entry of first is the end.
type chunkPages struct {
	leaf  int
	dict  *meta.Page
	data  []meta.Page
	first []int64
}

// cut divides the row groups of a file into those of the output so that none has more rows or bytes than the options
// allow; why says that this needs decoding.
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

// cutGroup cuts a row group, each time at the last row that keeps a part small enough.
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
	at := append(common(all), rows)
	for from, next := int64(0), 0; from < rows; {
		p := part{group: g, rows: vec.Range{From: from, To: from}}
		for ; next < len(at); next++ {
			stored := int64(0)
			for i := range all {
				stored += all[i].stored(from, at[next])
			}
			if !j.fits(at[next]-from, stored) {
				break
			}
			p.rows.To = at[next]
		}
		if p.rows.To == from {
			return nil, fmt.Sprintf("row group %d is larger than row-group-rows or row-group-size say, and after its "+
				"row %d there is no row near enough at which a page of every column begins", g, from), nil
		}
		for i := range all {
			p.chunks = append(p.chunks, all[i].part(from, p.rows.To))
		}
		parts, from = append(parts, p), p.rows.To
	}
	for i := range all {
		if ok, err := s.begins(ctx, g, &all[i], parts); err != nil || !ok {
			return nil, fmt.Sprintf("the pages of row group %d, %s, do not begin with rows", g,
				s.r.Footer.Schema.Column(all[i].leaf).Path()), err
		}
	}
	return parts, "", nil
}

// pages finds the pages of a column chunk, and the rows they begin with.
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
	x, err := s.r.OffsetIndex(ctx, g, leaf)
	if err != nil {
		return c, "", err
	}
	row := int64(0)
	for i, p := range c.data {
		c.first = append(c.first, row)
		switch {
		case d.MaxRepetitionLevel() == 0:
			row += p.Values
		case x != nil && len(x.FirstRow) == len(c.data):
			row = x.RowsOf(i, rows).To
		case p.Rows >= 0:
			row += p.Rows
		default:
			return c, fmt.Sprintf("row group %d is larger than row-group-rows or row-group-size say, and it is not "+
				"known with which rows the pages of %s begin", g, d.Path()), nil
		}
	}
	if c.first = append(c.first, row); row != rows {
		return c, fmt.Sprintf("row group %d, %s: its pages have %d rows instead of %d", g, d.Path(), row, rows), nil
	}
	return c, "", nil
}

// common are the rows, except the first, at which a page of every column begins.
func common(all []chunkPages) (rows []int64) {
	for i, c := range all {
		begin := slices.Compact(slices.Clone(c.first[:len(c.first)-1]))
		if i == 0 {
			rows = begin
			continue
		}
		rows = slices.DeleteFunc(rows, func(row int64) bool {
			_, ok := slices.BinarySearch(begin, row)
			return !ok
		})
	}
	end := all[0].first[len(all[0].first)-1]
	return slices.DeleteFunc(rows, func(row int64) bool { return row <= 0 || row >= end })
}

// span is the range of pages with the rows [from, to), at both of which pages begin. Pages without rows, as pyarrow
// writes some, go with the rows before them: pyarrow reads nothing of a chunk that begins with one.
func (c *chunkPages) span(from, to int64) (i, k int) {
	return c.page(from), c.page(to)
}

// page is the number of the page that has a row with which one begins, or of pages if there is none.
func (c *chunkPages) page(row int64) int {
	switch pages := len(c.data); row {
	case 0:
		return 0
	case c.first[pages]:
		return pages
	}
	behind, _ := slices.BinarySearch(c.first, row+1)
	return behind - 1
}

// stored is an upper bound of the bytes of the pages with some rows: all may need the dictionary.
func (c *chunkPages) stored(from, to int64) (n int64) {
	if c.dict != nil {
		n = c.dict.Whole().Len
	}
	i, k := c.span(from, to)
	return n + c.data[k-1].Body.End() - c.data[i].Header.Off
}

// part is the pages with the rows [from, to), at both of which pages begin.
func (c *chunkPages) part(from, to int64) chunkPart {
	i, k := c.span(from, to)
	p := chunkPart{pages: c.data[i:k], from: i, of: len(c.data)}
	if slices.ContainsFunc(p.pages, func(p meta.Page) bool { return meta.IsDictionary(p.Encoding) }) {
		p.dict = c.dict
	}
	return p
}

// begins reports whether the pages that parts begin with begin with the first entry of the right row: the index of a
// column in lists may be wrong, and old writers split rows across pages.
func (s *source) begins(ctx context.Context, g int, c *chunkPages, parts []part) (bool, error) {
	if s.r.Footer.Schema.Column(c.leaf).MaxRepetitionLevel() == 0 {
		return true, nil
	}
	due := map[int64]int64{} // entry → row
	entry, row := int64(0), int64(0)
	for _, x := range parts {
		due[entry] = x.rows.From
		for _, p := range x.chunks[slices.Index(s.leaves, c.leaf)].pages {
			entry += p.Values
		}
	}
	entry = 0
	err := s.r.EachStored(ctx, g, c.leaf, func(v *vec.Vector) error {
		for _, rep := range v.Rep() {
			if want, ok := due[entry]; ok && rep == 0 && row == want {
				delete(due, entry)
			}
			if entry++; rep == 0 {
				row++
			}
		}
		return nil
	})
	return len(due) == 0, err
}
