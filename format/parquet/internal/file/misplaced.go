package file

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
)

// Misplaced tells where the footer contradicts itself about which chunk is whose: cells would be those of other
// rows or columns, and every page of them is sound.
func (r *File) Misplaced(tell func(error)) {
	type place struct {
		at            fault.Span
		group, column int
	}
	var all []place
	for g, rg := range r.Footer.RowGroups {
		if o := rg.Ordinal; o != nil && g <= math.MaxInt16 && int(*o) != g {
			tell(fault.Corruptf(r.FooterAt, fmt.Sprintf("row_groups[%d].ordinal", g),
				"%d: the row group was another one", *o))
		}
		for k := range rg.Columns {
			if err := r.pathAgrees(g, k); err != nil {
				tell(err)
			}
			if at := r.ChunkSpan(g, k); at.Len > 0 {
				all = append(all, place{at, g, k})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Compare(a.at.Off, b.at.Off) })
	ended := map[int]bool{} // row groups behind which another one began
	for i := 1; i < len(all); i++ {
		x, last := all[i], all[i-1]
		if x.at.Off < last.at.End() {
			tell(fault.Corruptf(x.at, meta.IndexPath(x.group, x.column, "data_page_offset"),
				"the bytes are those of row_groups[%d].columns[%d], too", last.group, last.column))
		}
		if x.group != last.group {
			ended[last.group] = true
		}
		if ended[x.group] {
			tell(fault.Corruptf(x.at, meta.IndexPath(x.group, x.column, "data_page_offset"),
				"the column chunk does not lie with the others of its row group, but behind one of row group %d",
				last.group))
			return // the next ones would say the same
		}
	}
}

// pathAgrees holds the path that a column chunk gives against that of its column in the schema.
func (r *File) pathAgrees(group, column int) error {
	want := r.Footer.Schema.Column(column).Path()
	have := strings.Join(r.Footer.RowGroups[group].Columns[column].MetaData.PathInSchema, ".")
	if have == want {
		return nil
	}
	return fault.Corruptf(r.FooterAt, meta.IndexPath(group, column, "path_in_schema"), "%q, the column there is %q",
		have, want)
}

// namesAgree holds the paths of all chunks against the schema: where they contradict each other, nobody knows under
// which name a column's cells are to be given.
func (r *File) namesAgree() error {
	for g, rg := range r.Footer.RowGroups {
		for k := range rg.Columns {
			if err := r.pathAgrees(g, k); err != nil {
				return err
			}
		}
	}
	return nil
}
