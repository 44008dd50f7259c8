package kudu

import (
	"context"
	"path"
	"slices"
	"strconv"
	"time"

	"stoa/format"
	"stoa/format/kudu/internal/cluster"
	"stoa/format/kudu/internal/table"
	"stoa/region"
)

// RowSetFields are the columns of the list "rowsets": one line per rowset, one per log, and one for the deleted blocks
// of each data directory with log containers. Times are those from which snapshots are exact.
var RowSetFields = []string{"table", "table-id", "tablet", "server", "rowset", "rows", "live", "columns-bytes",
	"keys-bytes", "redo-files", "redo-bytes", "undo-files", "undo-bytes", "updated-cells", "deletes", "reinserts",
	"exact-from", "lost-blocks", "log-bytes", "dead-blocks", "dead-bytes"}

// rowSets lists the statistics of the rowsets of tables.
func rowSets(ctx context.Context, t format.Target, o format.OpenOptions, add func([]string)) ([]region.Finding,
	error) {
	s, o, ro, err := openList(ctx, t, o, false)
	if err != nil {
		return nil, err
	}
	err = s.Stats(ctx, t, o, ro, func(x cluster.TabletStats) {
		who := []string{x.Table, x.Tablet.TableID, x.Tablet.ID, x.Tablet.FS.UUID}
		for i := range x.Sets {
			add(append(slices.Clone(who), setFields(&x.Sets[i])...))
		}
		if x.Log > 0 {
			v := append(slices.Clone(who), make([]string, len(RowSetFields)-len(who))...)
			v[4], v[18] = "the log", number(x.Log)
			add(v)
		}
	})
	if err != nil {
		return nil, err
	}
	if t.Table == "" && ro.Tablet == "" {
		deadBlocks(s, add)
	}
	return slices.Clone(s.Findings), nil
}

// setFields returns the fields of a rowset, from its id on.
func setFields(x *table.SetStats) []string {
	exact := ""
	switch {
	case x.Exact == table.Latest:
		exact = "now"
	case x.Exact > 0:
		exact = table.Calendar(x.Exact).Format(time.RFC3339Nano)
	}
	return []string{strconv.FormatUint(x.ID, 10), number(x.Rows), number(x.Live), number(x.Columns), number(x.Keys),
		strconv.Itoa(x.RedoFiles), number(x.Redo), strconv.Itoa(x.UndoFiles), number(x.Undo), number(x.Updated),
		number(x.Deletes), number(x.Reinsert), exact, strconv.Itoa(x.Lost), "", "", ""}
}

// number formats a known number; "" if it is unknown.
func number(n int64) string {
	if n < 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// deadBlocks lists, for each data directory, the blocks of its containers that were deleted. Those that the file system
// turned into holes take no space on disk.
func deadBlocks(s *cluster.Servers, add func([]string)) {
	for _, f := range s.All {
		for i, d := range f.DataDirs {
			var blocks, bytes int64
			for _, c := range f.Containers {
				if c.Dir != i {
					continue
				}
				blocks += int64(len(c.Dead))
				for _, e := range c.Dead {
					bytes += e.Len
				}
			}
			if blocks == 0 {
				continue
			}
			v := make([]string, len(RowSetFields))
			v[3], v[4], v[19], v[20] = f.UUID, "deleted in "+path.Clean(d.Dir), number(blocks), number(bytes)
			add(v)
		}
	}
}
