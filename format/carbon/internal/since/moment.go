package since

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
	"stoa/format/carbon/internal/table"
)

// load is an entry of tablestatus or its history, with the times between which its rows were visible.
type load struct {
	status.Load
	from, until int64
	sure        int64   // of a load that ended without a time: it was visible until then, and from until on it was not
	into        *load   // of a load that was compacted
	parts       []*load // of a compaction: the loads that it merged
}

const forever = math.MaxInt64

// timeless reports whether the load ended without a time: CarbonData's INSERT OVERWRITE and TRUNCATE TABLE mark all
// loads as deleted and record none. A load without rows, or one that failed, is marked in the same way and has no data.
func timeless(l *status.Load) bool {
	return l.Status == status.StatusDeleted && l.Merged == "" && l.ChangedAt() == "" &&
		(status.ParseCount(l.DataSize) > 0 || streamed(l))
}

// streamed reports whether the rows of a load were appended one after the other. Its size is not recorded.
func streamed(l *status.Load) bool { return strings.EqualFold(l.FileFormat, "row_v1") }

// compacted reports whether the load was merged into another one. An overwrite marks also such a load as deleted.
func (l *load) compacted() bool {
	return l.Status == status.StatusCompacted || l.Status == status.StatusDeleted && l.Merged != ""
}

// loads returns all loads that were ever visible, in the order of their entries: the history first. ends has the end of
// those that were not, because they had no rows or failed.
func loads(ctx context.Context, m *table.Managed) (list []*load, ends map[string]int64, err error) {
	var past []status.Load
	name := path.Join(m.Path, "Metadata", "tablestatus.history")
	err = status.ReadJSON(ctx, m.Tree, name, m.Opts.Limits, &past)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	ends = map[string]int64{}
	for _, l := range append(past, m.Loads...) {
		x := &load{Load: l, until: forever}
		switch {
		case l.Counts() && (l.Status == status.StatusStreaming || l.SegmentID() != l.Name):
			return nil, nil, fault.Unsupportedf(fault.Span{Object: m.Status}, "", "its past: segment %s is %s, in "+
				"which rows change without a time", l.Name, l.Status)
		case l.Counts(), timeless(&l):
		case l.Merged != "" && l.ChangedAt() == "": // CarbonData's hand-off of a stream: see bounded
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
		began := l.Timestamp
		if timeless(&l) && streamed(&l) {
			began = l.Start
		}
		var ok bool
		if x.from, ok = status.Millis(began); !ok && (l.Counts() || x.until == forever) {
			return nil, nil, fault.Unsupportedf(fault.Span{Object: m.Status}, "", "its past: it is not known when the "+
				"load of segment %s ended", l.Name)
		}
		if ok && x.from < x.until {
			list = append(list, x)
		}
	}
	return list, ends, bounded(ctx, m, list)
}

// bounded sets from when and until when the rows of loads were visible where the times of their entries do not say it.
func bounded(ctx context.Context, m *table.Managed, list []*load) error {
	by := map[string]*load{}
	for _, x := range list {
		by[x.Name] = x
		// A load of CarbonData that overwrites partitions becomes visible, and they end, after its recorded end. It has
		// the time of that as the name of an update status.
		if at, ok := status.Millis(x.Updates); ok {
			x.from = max(x.from, at)
		}
	}
	ended := begun(list)
	for _, x := range list {
		switch into := by[x.Merged]; {
		case !x.compacted():
			x.until = max(x.until, ended[x.until]) // a load that overwrites begins with the time of the deletion
		case into == nil:
			return fault.Unsupportedf(fault.Span{Object: m.Status}, "", "its past: segment %s was compacted "+
				"to segment %q, which tablestatus does not have", x.Name, x.Merged)
		default:
			x.until, x.into, into.parts = into.from, into, append(into.parts, x)
		}
	}
	for _, x := range list {
		if !timeless(&x.Load) {
			continue
		}
		if err := bound(ctx, m, x, list); err != nil {
			return err
		}
	}
	return nil
}

// begun returns the ends of loads by their beginnings.
func begun(list []*load) map[int64]int64 {
	ends := map[int64]int64{}
	for _, l := range list {
		if began, ok := status.Millis(l.Start); ok {
			ends[began] = max(ends[began], l.from)
		}
	}
	return ends
}

// segmentFiles returns the names of a table's segment files, which it has from its first load on, by segment.
func segmentFiles(ctx context.Context, m *table.Managed) (map[string][]string, error) {
	out := map[string][]string{}
	for info, err := range m.Tree.List(ctx, path.Join(m.Path, "Metadata", "segments")) {
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		base := path.Base(info.Name)
		if of, _ := status.SegmentOf(base); strings.HasSuffix(base, ".segment") {
			out[of] = append(out[of], base)
		}
	}
	return out, nil
}

// bound sets the times between which a load ended without a time. It was visible when it was loaded, and when it was
// changed last. If its newest segment file has no partition left, it ended with that. Else all loads ended at once, and
// so before any load of which rows are still visible.
func bound(ctx context.Context, m *table.Managed, x *load, list []*load) error {
	_, own := status.SegmentOf(x.Segment)
	changed, _ := status.Millis(x.UpdateTo)
	x.sure = max(x.from, own, changed)
	if streamed(&x.Load) {
		x.sure = x.from - 1 // nor is it known when its rows came
	}
	if m.TableSchema.Partition != nil {
		files, err := segmentFiles(ctx, m)
		if err != nil {
			return err
		}
		at, last := int64(0), x.Load
		for _, name := range files[x.Name] {
			_, stamp := status.SegmentOf(name)
			at = max(at, stamp)
		}
		last.Segment = x.Name + "_" + status.FormatMillis(at) + ".segment"
		switch left, _, err := m.Left(ctx, &last); {
		case err != nil: // with clean: it may have been one without partitions
			return nil
		case left == 0:
			x.sure, x.until = at-1, at
			return nil
		}
	}
	x.until = max(time.Now().UnixMilli(), x.sure+1)
	for _, l := range list {
		last := l
		for last.into != nil {
			last = last.into
		}
		if last.Counts() && l.from > x.sure {
			x.until = min(x.until, l.from)
		}
	}
	return nil
}

// arriving is the error about a time at which the rows of a stream came one after the other.
func (l *load) arriving(m *table.Managed, at int64) error {
	if began, ok := status.Millis(l.Start); !streamed(&l.Load) || !ok || at < began || at >= l.from {
		return nil
	}
	return fault.Unsupportedf(fault.Span{Object: m.Status}, "", "its past: the rows of segment %s were streamed one "+
		"after the other, without a time, until %s", l.Name, layout.FormatTime(l.from))
}

// visible reports whether the rows of the load were visible at a time, as far as that is known.
func (l *load) visible(m *table.Managed, at int64) (bool, error) {
	if err := l.arriving(m, at); err != nil {
		return false, err
	}
	if at < l.from || at >= l.until || at <= l.sure || !timeless(&l.Load) {
		return l.from <= at && at < l.until, nil
	}
	until := ""
	if l.until < forever {
		until = " and from " + layout.FormatTime(l.until) + " on"
	}
	return false, fault.Unsupportedf(fault.Span{Object: m.Status}, "", "its past: segment %s was overwritten or "+
		"truncated, for which CarbonData records no time: the rows are known up to %s%s", l.Name,
		layout.FormatTime(l.sure), until)
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
