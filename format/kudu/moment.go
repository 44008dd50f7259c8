package kudu

import (
	"context"
	"fmt"

	"stoa/fault"
	"stoa/region"
)

// A snapshot is of a moment that the directories know. Before the first operation of a table there is nothing to show: no rows would look like a table
// that is empty. After the last one the rows are those of the latest state only if the directories are of that moment or later: that is certain if any
// tablet in them has an operation that is not before it, and unknown otherwise. Both are refused, or, with partial=true, read and told.

// moment is an error if option at is before the first operation of a table, or behind the last that the directories know; with partial=true it is a finding.
func (s *servers) moment(ctx context.Context, t *table) (*region.Finding, error) {
	if t.o.at == latest {
		return nil, nil
	}
	first, last := uint64(latest), uint64(0)
	for _, tb := range t.tablets {
		from, to, err := t.moments(ctx, tb)
		if err != nil {
			return nil, err
		}
		first, last = min(first, from), max(last, to)
	}
	why := ""
	switch {
	case last == 0: // nothing was ever done to it, as far as anything tells
		return nil, nil
	case t.o.at <= first && first != latest:
		why = "is before all of them: no row was there"
	case t.o.at > last+1:
		newest, err := s.newest(ctx, t)
		if err != nil || t.o.at <= newest+1 {
			return nil, err
		}
		why = "is behind all that is known here: what came between is not known, and the latest state would be shown"
	default:
		return nil, nil
	}
	span := "up to " + timeText(last)
	if first != latest {
		span = "from " + timeText(first) + " to " + timeText(last)
	}
	why = fmt.Sprintf("table %s has operations %s; the snapshot at %s %s", t.name(), span, timeText(t.o.at), why)
	at := fault.Span{Object: t.tablets[0].Object}
	if !t.o.partial {
		return nil, fault.New(fault.Unsupported, at, "", "%s; partial=true reads it all the same", why)
	}
	x := t.tablets[0].note("kudu.snapshot.outside", at, why)
	x.Part = t.name()
	return &x, nil
}

// newest is the hybrid time of the last operation of any tablet in the directories; logs that are large are read at their ends only.
func (s *servers) newest(ctx context.Context, t *table) (last uint64, err error) {
	for _, tb := range s.tablets {
		for _, r := range append([]replica{tb.replica}, tb.others...) {
			if !r.HasData() {
				continue
			}
			flushed, err := t.flushed(ctx, &tablet{replica: r}, r.RowSets)
			if err != nil {
				return 0, err
			}
			if last = max(last, flushed); t.o.noWAL {
				continue
			}
			log, err := glanceLog(ctx, r.fs, r.Tablet)
			if err != nil {
				return 0, err
			}
			if last = max(last, log.LastTime); t.o.at <= last+1 {
				return last, nil
			}
		}
	}
	return last, nil
}
