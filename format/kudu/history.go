package kudu

import (
	"context"
	"slices"
	"strconv"
	"time"

	"stoa/format"
	"stoa/format/kudu/internal/cluster"
	"stoa/format/kudu/internal/table"
	"stoa/region"
)

// HistoryFields are the columns of the list "history", which has a line for each event of a tablet.
var HistoryFields = []string{"table", "table-id", "tablet", "partition", "server", "event", "hybrid", "time", "what",
	"operations"}

// history lists the known events of tables, tablet by tablet.
func history(ctx context.Context, t format.Target, o format.OpenOptions, add func([]string)) ([]region.Finding,
	error) {
	until, err := table.ParseOptions(o.Opts)
	if err != nil {
		return nil, err
	}
	s, o, ro, err := openList(ctx, t, o, true)
	if err != nil {
		return nil, err
	}
	if ro.End = until.End; until.At != table.Latest {
		ro.Until = until.At
	}
	lines, err := s.History(ctx, t, o, ro)
	if err != nil {
		return nil, err
	}
	for _, l := range lines {
		hybrid, when, ops := "", "", ""
		if l.Time > 0 {
			hybrid = strconv.FormatUint(l.Time, 10)
			from := l.Time
			if l.Event == cluster.EventExact {
				from = table.Ceil(from) // --at takes this time, too, and is exact from there
			}
			when = table.Calendar(from).Format(time.RFC3339Nano)
		}
		if l.Event == cluster.EventLog && l.Ops >= 0 {
			ops = strconv.FormatInt(l.Ops, 10)
		}
		add([]string{l.Table, l.TableID, l.Tablet, l.Partition, l.Server, l.Event, hybrid, when, l.What, ops})
	}
	return slices.Clone(s.Findings), nil
}
