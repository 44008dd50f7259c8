package serve

import (
	"context"
	"slices"
	"strings"
	"time"

	"stoa"
	"stoa/pred"
	"stoa/vec"
)

// The limits of a search for values, and of files whose pages bound the bands of a column.
const (
	maxFound    = 100     // rows
	findWindow  = 1 << 16 // rows at a time
	findTime    = 10 * time.Second
	maxPaged    = 1 << 28 // bytes of a file
	maxPageEnds = 1000
)

// valueSearch returns the predicate that a search is, or nil: a name may look like one, so a comparison is needed.
func valueSearch(what string) *pred.Expr {
	low := strings.ToLower(what)
	compares := strings.ContainsAny(what, "=<>~")
	for _, w := range []string{" is ", " in ", " like ", " ilike ", " between "} {
		compares = compares || strings.Contains(low, w)
	}
	if !compares {
		return nil
	}
	e, err := pred.Parse(what)
	if err != nil {
		return nil
	}
	return e
}

// mentions reports whether a predicate is about a column, or about a part of it or what it is a part of.
func mentions(where *pred.Expr, column string) bool {
	within := func(name, in string) bool {
		return len(name) >= len(in) && strings.EqualFold(name[:len(in)], in) &&
			(len(name) == len(in) || name[len(in)] == '.')
	}
	return slices.ContainsFunc(where.Columns(), func(c string) bool {
		c = strings.Join(pred.SplitPath(c), ".")
		return within(c, column) || within(column, c)
	})
}

// findRows returns the first of total rows that pass a filter; cut: there may be more. A window with some is halved
// until each is found. What is lost of the rows that were looked through is added to lost.
func findRows(ctx context.Context, t *stoa.Table, total int64, where *pred.Expr, lost *losses) (rows []int64, cut bool,
	err error) {
	rows = []int64{}
	end := time.Now().Add(findTime)
	var find func(from, to int64) error
	find = func(from, to int64) error {
		if cut = cut || len(rows) == maxFound || time.Now().After(end); cut {
			return nil
		}
		n := int64(0)
		spec := stoa.ScanSpec{Columns: []string{}, Filter: where, Rows: vec.Range{From: from, To: to},
			Damaged: stoa.NullCells, Memory: 64 << 20}
		if to-from == findWindow || from%findWindow == 0 && to == total {
			spec.Lost = lost.add // once, not again for the halves
		}
		for b, err := range t.Scan(ctx, spec) {
			if err != nil {
				return err
			}
			n += b.NumRows()
		}
		if n == 0 {
			return nil
		}
		if to-from == 1 {
			rows = append(rows, from)
			return nil
		}
		half := from + (to-from)/2
		if err := find(from, half); err != nil {
			return err
		}
		return find(half, to)
	}
	total = max(1, total) // a table without rows may have changed since it was opened
	for from := int64(0); from < total && !cut; from += findWindow {
		if err := find(from, min(from+findWindow, total)); err != nil {
			return nil, false, err
		}
	}
	return rows, cut, nil
}

// pageEnds returns the ends of the pages of a column, the only one or of that name, of all rows; nil: the structure
// does not say which rows they have, or there are too many to be shown.
func (a *Anatomy) pageEnds(column string, only bool, rows int64) (ends []int64) {
	for i := range a.nodes {
		d := &a.nodes[i]
		if d.Role != Page || d.From == nil || d.To == nil || d.Column != column && !(only && d.Column == "") {
			continue
		}
		if d.Parent >= 0 && a.nodes[d.Parent].Role == Page { // a part of a page
			continue
		}
		at := int64(0)
		if len(ends) > 0 {
			at = ends[len(ends)-1]
		}
		if *d.From != at || *d.To <= at || len(ends) == maxPageEnds {
			return nil
		}
		ends = append(ends, *d.To)
	}
	if len(ends) == 0 || ends[len(ends)-1] != rows {
		return nil
	}
	return ends
}
