package rewrite

import (
	"testing"

	"stoa/format/parquet/internal/meta"
)

// TestPartsBeginWithRows: the parts of a chunk have all of its pages, each once, and only the first part may begin with
// a page without rows.
func TestPartsBeginWithRows(t *testing.T) {
	for _, rows := range [][]int64{{3, 0, 4, 5}, {0, 3, 0, 0, 1, 0}, {1}, {0, 0, 2, 2, 0}, {2, 0}} {
		c, row := chunkPages{}, int64(0)
		for _, n := range rows {
			c.data, c.first, row = append(c.data, meta.Page{Values: n}), append(c.first, row), row+n
		}
		c.first = append(c.first, row)
		from, next := int64(0), 0
		for _, to := range begins([]chunkPages{c})[1:] {
			p := c.part(from, to)
			has := int64(0)
			for _, page := range p.pages {
				has += page.Values
			}
			if p.from != next || has != to-from || from > 0 && p.pages[0].Values == 0 {
				t.Errorf("%v: rows %d to %d are pages %d to %d, of %d values", rows, from, to, p.from,
					p.from+len(p.pages), has)
			}
			from, next = to, p.from+len(p.pages)
		}
		if next != len(rows) {
			t.Errorf("%v: only %d pages are in parts", rows, next)
		}
	}
}
