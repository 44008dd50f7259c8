package cluster

import (
	"context"
	"fmt"

	"stoa/fault"
	"stoa/format/kudu/internal/table"
	"stoa/format/kudu/internal/wal"
	"stoa/region"
)

// A snapshot must lie within the time that the directories cover. Before the first operation of a table the result
// would look like an empty table. After the last operation the latest state is right only if the directories were
// copied at the time of the snapshot or later, which is certain only if some tablet in them has an operation at least
// that late. Both kinds of snapshots are refused or, with partial=true, read and reported. A moment may be named by a
// calendar time, so the end is that of a microsecond.

// moment returns an Unsupported error if option at is before the first operation of a table, or after the last
// operation in the directories; with option partial it returns a finding instead.
func (s *Servers) moment(ctx context.Context, t *table.Table) (*region.Finding, error) {
	if t.Opts.At == table.Latest {
		return nil, nil
	}
	first, last, err := ends(ctx, t)
	if err != nil {
		return nil, err
	}
	why := ""
	switch {
	case last == 0: // no operations are known
		return nil, nil
	case t.Opts.At <= first && first != table.Latest:
		why = "is before all of them: there were no rows"
	case t.Opts.At > table.Ceil(last+1):
		newest, err := s.newest(ctx, t)
		if err != nil || t.Opts.At <= table.Ceil(newest+1) {
			return nil, err
		}
		why = "is after all operations here: later ones are unknown, and the latest state here would be read"
	default:
		return nil, nil
	}
	span := "up to " + table.TimeText(last)
	if first != table.Latest {
		span = "from " + table.TimeText(first) + " to " + table.TimeText(last)
	}
	why = fmt.Sprintf("table %s has operations %s; the snapshot at %s %s", t.Name(), span,
		table.TimeText(t.Opts.At), why)
	at := fault.Span{Object: t.Tablets[0].Object}
	if !t.Opts.Partial {
		return nil, fault.New(fault.Unsupported, at, "", "%s; partial=true reads it nevertheless", why)
	}
	x := t.Tablets[0].Note("kudu.snapshot.outside", at, why)
	x.Part = t.Name()
	return &x, nil
}

// ends returns the hybrid times of the first and the last operation on a table; table.Latest and 0 if they are unknown.
func ends(ctx context.Context, t *table.Table) (first, last uint64, err error) {
	first = table.Latest
	for _, tb := range t.Tablets {
		from, to, err := t.Moments(ctx, tb)
		if err != nil {
			return 0, 0, err
		}
		first, last = min(first, from), max(last, to)
	}
	return first, last, nil
}

// endOf returns the hybrid time of the snapshot right after a table's first or last operation.
func endOf(ctx context.Context, t *table.Table, end table.Moment) (uint64, error) {
	first, last, err := ends(ctx, t)
	switch {
	case err != nil:
		return 0, err
	case end == table.Last && last > 0:
		return last + 1, nil
	case end == table.First && first != table.Latest:
		return first + 1, nil
	}
	return 0, fault.New(fault.Unsupported, fault.Span{Object: t.Tablets[0].Object}, "",
		"the time of the %s operation on table %s is unknown", end, t.Name())
}

// newest returns the hybrid time of the last operation of any tablet in the directories. It stops early at an operation
// that is not before the snapshot of t. Of large logs only the ends are read.
func (s *Servers) newest(ctx context.Context, t *table.Table) (last uint64, err error) {
	for _, tb := range s.Tablets {
		for _, r := range tb.Replicas() {
			if !r.HasData() {
				continue
			}
			flushed, err := t.Flushed(ctx, &table.Tablet{Replica: r}, r.RowSets)
			if err != nil {
				return 0, err
			}
			if last = max(last, flushed); t.Opts.NoWAL {
				continue
			}
			log, err := wal.QuickCheck(ctx, r.FS, r.Tablet)
			if err != nil {
				return 0, err
			}
			if last = max(last, log.LastTime); t.Opts.At <= table.Ceil(last+1) {
				return last, nil
			}
		}
	}
	return last, nil
}
