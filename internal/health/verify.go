// Package health verifies and describes formats that have only a reader: a format that supplies parsers and a page
// decoder gets both from here. Recovery needs nothing in addition: it reads with a damage policy, which reports losses.
package health

import (
	"context"
	"errors"
	"io"
	"math"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/check"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/vec"
)

// Damaged is the code of all findings: more specific ones are up to a format.
const Damaged = "file.unreadable"

// Verify walks every part, row group, column and page. It reports everything that cannot be read, with the rows that
// are lost, and counts that contradict each other. With format.Quick no page is decoded. A returned error is not
// damage: it means that the walk failed.
func Verify(ctx context.Context, src scan.Source, depth format.Depth, r *check.Reporter) error {
	v := &verifier{Reporter: r, ctx: ctx, src: src, depth: depth, columns: src.Reader.Columns()}
	for p, err := range src.Reader.Parts(ctx, allOf(src.Reader)) {
		if err == nil {
			err = v.part(p)
		}
		if err = v.reportDamage(err, [2]int64{-1, -1}); err != nil || v.Stopped() {
			return errors.Join(err, ctx.Err())
		}
	}
	return nil
}

// allOf returns a query for all columns.
func allOf(r format.Reader) (q format.Query) {
	for i := range r.Columns() {
		q.Cols = append(q.Cols, i)
	}
	return q
}

type verifier struct {
	*check.Reporter
	ctx     context.Context
	src     scan.Source
	depth   format.Depth
	columns []format.Column
	first   int64 // first row of the row group within the part; -1 if unknown
}

// reportDamage reports damage in rows of the row group, and returns other errors.
func (v *verifier) reportDamage(err error, rows [2]int64) error {
	if !errors.Is(err, fault.Corrupt) {
		return err
	}
	if v.first < 0 || rows[0] < 0 || rows[1] < 0 {
		rows = [2]int64{-1, -1}
	} else {
		rows[0], rows[1] = rows[0]+v.first, rows[1]+v.first
	}
	v.Blame(Damaged, err, rows[0], rows[1])
	return nil
}

func (v *verifier) part(p format.Part) error {
	v.Part, v.Column, v.first = p.Ref, "", 0
	groups, err := v.src.Reader.RowGroups(v.ctx, p, allOf(v.src.Reader))
	if err != nil {
		return v.reportDamage(err, [2]int64{0, p.Rows})
	}
	for _, g := range groups {
		if err := v.group(g); err != nil || v.Stopped() {
			return err
		}
		if v.Column = ""; g.Rows < 0 || v.first < 0 {
			v.first = -1
		} else {
			v.first += g.Rows
		}
	}
	if p.Rows >= 0 && v.first >= 0 && v.first != p.Rows {
		v.Report(Damaged, fault.Span{Object: p.Ref}, "rows", "%d, its row groups have %d", p.Rows, v.first)
	}
	return nil
}

func (v *verifier) group(g format.RowGroup) error {
	if b, ok := v.src.Reader.(format.Batcher); ok {
		return v.batches(b, g)
	}
	for col := range v.columns {
		v.Column = v.columns[col].Name
		pages := v.decode
		if v.depth == format.Quick {
			pages = v.walk
		}
		rows, err := pages(g, col)
		if err != nil || v.Stopped() {
			return err
		}
		if g.Rows >= 0 && rows >= 0 && rows != g.Rows {
			v.Report(Damaged, fault.Span{Object: g.Part}, "", "row group %d: %s, its pages have %d", g.Index,
				fault.Count(g.Rows, "row"), rows)
		}
	}
	return nil
}

// batches reads the record batches of a row group.
func (v *verifier) batches(b format.Batcher, g format.RowGroup) error {
	if v.depth == format.Quick {
		return nil
	}
	holder, _ := b.(format.Holder)
	rows := vec.Range{To: max(g.Rows, 0)}
	for rec, err := range b.Batches(v.ctx, g, allOf(v.src.Reader), rows, nil) {
		if err == nil && holder != nil && v.depth == format.Deep {
			if err = holder.Held(g, rec); err != nil {
				holder = nil // one finding per row group suffices
			}
		}
		rows := [2]int64{0, g.Rows}
		if known := (interface{ LostRows() (from, to int64) })(nil); errors.As(err, &known) {
			rows[0], rows[1] = known.LostRows()
		}
		if err := v.reportDamage(err, rows); err != nil || v.Stopped() {
			return err
		}
	}
	return nil
}

// decode decodes the pages of a column and returns the number of their rows; -1 if unknown or damaged.
func (v *verifier) decode(g format.RowGroup, col int) (rows int64, err error) {
	counted := v.columns[col].Parent < 0 // a child's entries are counted by its parent
	err = scan.Pages(v.ctx, v.src, g, col, func(p scan.PageInfo) error {
		switch {
		case p.Dict || rows < 0:
		case p.Page.Rows < 0 || !counted:
			rows = -1
		default:
			rows += p.Page.Rows
		}
		return nil
	}, func(l region.Loss) error {
		rows = -1
		if !l.Exact {
			l.Rows[1] = -1
		}
		return v.reportDamage(l.Err, l.Rows)
	})
	return rows, err
}

// walk iterates over the pages of a column without reading their values.
func (v *verifier) walk(g format.RowGroup, col int) (rows int64, err error) {
	err = pagesOf(v.ctx, v.src.Reader, g, col, func(p format.Page, dict bool) bool {
		switch {
		case dict || rows < 0:
		case p.Rows < 0 || v.columns[col].Parent >= 0:
			rows = -1
		default:
			rows += p.Rows
		}
		return true
	})
	if err != nil {
		return -1, v.reportDamage(err, [2]int64{max(rows, 0), g.Rows})
	}
	return rows, nil
}

// pagesOf calls f with the dictionary and the pages of a column until it returns false.
func pagesOf(ctx context.Context, r format.Reader, g format.RowGroup, col int,
	f func(p format.Page, dict bool) bool) error {
	c, err := r.Chunk(ctx, g, col, vec.Range{To: math.MaxInt64})
	if err != nil {
		return err
	}
	if d, ok := c.Dict(); ok && !f(d, true) {
		return nil
	}
	for {
		p, err := c.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = p.Lost
		}
		if err != nil || !f(p, false) {
			return err
		}
	}
}
