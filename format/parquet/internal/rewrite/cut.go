package rewrite

import (
	"context"
	"fmt"
	"slices"

	"stoa/format/parquet/internal/meta"
	"stoa/vec"
)

// part is rows of a row group that become one of their own: all of them, or those between two rows at which a page of
// every column begins, so that no page has to be decoded.
type part struct {
	group  int
	rows   vec.Range
	chunks []chunkPart // by kept leaf; nil: the row group as it lies there
}

// chunkPart is the pages of a column chunk that a part has.
type chunkPart struct {
	dict     *meta.Page // nil: no page of the part needs it
	pages    []meta.Page
	from, of int // the number of the first one among all data pages, and how many there are
}

// chunkPages are the pages of a column chunk, and the row with which each data page begins; behind them that of the
// end.
type chunkPages struct {
	leaf  int
	dict  *meta.Page
	data  []meta.Page
	first []int64
}

// cut says of which parts the row groups of a file become row groups, so that none has more rows or bytes than options
// say; why: that cannot be done without decoding.
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

// cutGroup cuts a row group, each time at the last row that leaves a part not too large.
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
			return nil, fmt.Sprintf("row group %d is larger than row-group-rows or row-group-size say, and behind its "+
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

// pages finds the pages of a column chunk, and the rows with which they begin.
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

// common are the rows but the first at which a page of every column begins.
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

// span is the numbers of the pages that have the rows between two at which pages begin.
func (c *chunkPages) span(from, to int64) (i, k int) {
	i, _ = slices.BinarySearch(c.first, from)
	if k, _ = slices.BinarySearch(c.first, to); to == c.first[len(c.data)] { // pages without rows at the end, too
		k = len(c.data)
	}
	return i, k
}

// stored is how many bytes the pages with some rows have, at most: all of them may need the dictionary.
func (c *chunkPages) stored(from, to int64) (n int64) {
	if c.dict != nil {
		n = c.dict.Whole().Len
	}
	i, k := c.span(from, to)
	return n + c.data[k-1].Body.End() - c.data[i].Header.Off
}

// part is the pages that have the rows between two at which pages begin.
func (c *chunkPages) part(from, to int64) chunkPart {
	i, k := c.span(from, to)
	p := chunkPart{pages: c.data[i:k], from: i, of: len(c.data)}
	if slices.ContainsFunc(p.pages, func(p meta.Page) bool { return meta.IsDictionary(p.Encoding) }) {
		p.dict = c.dict
	}
	return p
}

// begins reports whether the entries of the pages with which parts begin are the first ones of rows, and of those that
// the parts begin with: an index of a column in lists may say what it will, and old writers cut rows.
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
