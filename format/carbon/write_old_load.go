package carbon

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stoa/fault"
)

// code prepares the dictionaries of the columns that have one, and says whether a format can have the columns.
func (l *Load) code(ctx context.Context, roots []*column) (err error) {
	if l.wo.version < 3 {
		if l.schema.partition != nil {
			return fault.Unsupportedf(fault.Span{Object: l.dir}, "", "partitions that are directories are written in format 3 only")
		}
		if err := checkOld(l.list, l.wo.version); err != nil {
			return err
		}
	}
	l.coded = l.sc
	if l.coder, err = newCoder(ctx, l, roots); err != nil || l.coder == nil {
		return err
	}
	l.coded, err = l.coder.schema(l.sc)
	return err
}

// oldTime is a time as tablestatus had it up to 1.2; later releases read both kinds.
func oldTime(ms int64) string { return time.UnixMilli(ms).UTC().Format("02-01-2006 15:04:05:000") }

// closeOld ends a load of data files of formats 1 and 2: each task has an index of its own, and there is no segment file.
func (l *Load) closeOld(ctx context.Context, sum *LoadSummary) error {
	data := sum.Files[:0]
	for _, t := range l.order {
		for name, n := range t.files.sizes {
			if strings.HasSuffix(name, indexExt) {
				sum.IndexBytes += n
				sum.DataBytes -= n
			}
		}
	}
	for _, name := range sum.Files {
		if !strings.HasSuffix(name, indexExt) {
			data = append(data, name)
		}
	}
	slices.Sort(data)
	sum.Files = data
	dirs := map[string]bool{}
	for _, t := range l.order {
		for full := filepath.Join(l.dir, t.dir); len(full) > len(filepath.Clean(l.dir)); full = filepath.Dir(full) {
			dirs[full] = true
		}
	}
	for _, d := range sorted(dirs) { // new names must last before the segment is told
		if err := syncDir(d); err != nil {
			return err
		}
	}
	return l.enter(ctx, sum, "", oldTime)
}

// oldSortColumns are the sort columns of a table of 1.0, which has no property sort_columns: all simple dimensions.
func (t *tableSchema) oldSortColumns() (out []string) {
	if _, ok := t.properties["sort_columns"]; ok {
		return nil
	}
	for i := range t.columns {
		if c := &t.columns[i]; c.dimension && c.ordinal >= 0 && !c.typ.complex() && !c.invisible {
			out = append(out, c.name)
		}
	}
	return out
}
