package since

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"path"
	"strconv"
	"time"

	"stoa/fault"
	"stoa/format/carbon/internal/status"
	"stoa/format/carbon/internal/table"
)

// load is an entry of tablestatus or its history, with the times between which its rows were visible.
type load struct {
	status.Load
	from, until int64
	parts       []*load // of a compaction: the loads that it merged
}

const forever = math.MaxInt64

// loads returns all loads that were ever visible, in the order of their entries: the history first. ends has the end of
// those that were not, because they had no rows or failed.
func loads(ctx context.Context, m *table.Managed) (list []*load, ends map[string]int64, err error) {
	var past []status.Load
	name := path.Join(m.Path, "Metadata", "tablestatus.history")
	err = status.ReadJSON(ctx, m.Tree, name, m.Opts.Limits, &past)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	by := map[string]*load{}
	ends = map[string]int64{}
	for _, l := range append(past, m.Loads...) {
		x := &load{Load: l, until: forever}
		switch {
		case l.Counts() && (l.Status == status.StatusStreaming || l.SegmentID() != l.Name):
			return nil, nil, fault.Unsupportedf(fault.Span{Object: m.Status}, "", "its past: segment %s is %s, in "+
				"which rows change without a time", l.Name, l.Status)
		case l.Counts():
		case l.Status == status.StatusDeleted, l.Status == status.StatusCompacted:
			if x.until, _ = status.Millis(l.ChangedAt()); x.until == 0 {
				if end, ok := status.Millis(l.Timestamp); ok { // never visible
					ends[l.Name] = end
				}
				continue
			}
		default:
			continue
		}
		var ok bool
		if x.from, ok = status.Millis(l.Timestamp); !ok && l.Counts() {
			return nil, nil, fault.Unsupportedf(fault.Span{Object: m.Status}, "", "its past: it is not known when the "+
				"load of segment %s ended", l.Name)
		}
		if ok && x.from < x.until {
			list, by[l.Name] = append(list, x), x
		}
	}
	for _, x := range list {
		if x.Status != status.StatusCompacted {
			continue
		}
		into := by[x.Merged]
		if into == nil {
			return nil, nil, fault.Unsupportedf(fault.Span{Object: m.Status}, "", "its past: segment %s was compacted "+
				"to segment %q, which tablestatus does not have", x.Name, x.Merged)
		}
		x.until, into.parts = into.from, append(into.parts, x)
	}
	return list, ends, nil
}

// moment returns the time that an option names: the end of a load, or a time. Without a zone it is one of zone.
func moment(option, text string, list []*load, ends map[string]int64, zone *time.Location) (int64, error) {
	for _, l := range list {
		if l.Name == text {
			return l.from, nil
		}
	}
	if end, ok := ends[text]; ok {
		return end, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateTime, time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, zone); err == nil {
			return at.UnixMilli(), nil
		}
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return 0, fault.Invalidf("carbon: option %s=%s: the table has had no segment %s", option, text, text)
	}
	return 0, fault.Invalidf("carbon: option %s=%s: expected a segment, or a time as 2006-01-02T15:04:05Z or "+
		"2006-01-02", option, text)
}

// old reports how many of the loads below l, which are l itself or those that were compacted to it, were visible at the
// time at: all, some or none.
func (l *load) old(at int64) (all, some bool) {
	if l.from <= at {
		return true, true
	}
	if len(l.parts) == 0 {
		return false, false
	}
	all = true
	for _, x := range l.parts {
		a, s := x.old(at)
		all, some = all && a, some || s
	}
	return all, some
}
