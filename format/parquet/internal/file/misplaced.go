package file

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/sorted"
)

// Misplaced reports contradictions in the footer about which chunk belongs where: cells would come from other rows or
// columns although every page is intact.
func (r *File) Misplaced(report func(error)) {
	type place struct {
		at            fault.Span
		group, column int
	}
	var all []place
	for g, rg := range r.Footer.RowGroups {
		if o := rg.Ordinal; o != nil && g <= math.MaxInt16 && int(*o) != g {
			report(fault.Corruptf(r.FooterAt, fmt.Sprintf("row_groups[%d].ordinal", g),
				"%d: this is the row group of another position", *o))
		}
		for k := range rg.Columns {
			if err := r.checkPath(g, k); err != nil {
				report(err)
			}
			if at := r.ChunkSpan(g, k); at.Len > 0 {
				all = append(all, place{at, g, k})
			}
		}
	}
	sorted.StablyBy(all, func(a, b place) int { return cmp.Compare(a.at.Off, b.at.Off) })
	ended := map[int]bool{} // row groups after which another one began
	for i := 1; i < len(all); i++ {
		x, last := all[i], all[i-1]
		if x.at.Off < last.at.End() {
			report(fault.Corruptf(x.at, meta.IndexPath(x.group, x.column, "data_page_offset"),
				"the bytes also belong to row_groups[%d].columns[%d]", last.group, last.column))
		}
		if x.group != last.group {
			ended[last.group] = true
		}
		if ended[x.group] {
			report(fault.Corruptf(x.at, meta.IndexPath(x.group, x.column, "data_page_offset"),
				"the column chunk is not with the others of its row group, but after one of row group %d",
				last.group))
			return // the errors that follow would be the same
		}
	}
}

// checkPath compares the path in a column chunk with that of its column in the schema.
func (r *File) checkPath(group, column int) error {
	want := r.Footer.Schema.Column(column).Path()
	have := strings.Join(r.Footer.RowGroups[group].Columns[column].MetaData.PathInSchema, ".")
	if have == want {
		return nil
	}
	return fault.Corruptf(r.FooterAt, meta.IndexPath(group, column, "path_in_schema"), "%q, but the column there is %q",
		have, want)
}

// checkPaths calls checkPath for all chunks: where the paths disagree, the name of the column is in doubt.
func (r *File) checkPaths() error {
	for g, rg := range r.Footer.RowGroups {
		for k := range rg.Columns {
			if err := r.checkPath(g, k); err != nil {
				return err
			}
		}
	}
	return nil
}
