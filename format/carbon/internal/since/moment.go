package since

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
	"stoa/format/carbon/internal/table"
	"stoa/internal/sorted"
)

// load is an entry of tablestatus or its history, with the times between which its rows were visible.
type load struct {
	status.Load
	from, until int64
	sure        int64         // of a load that ended without a time: visible until then, and from until on not
	into        *load         // of a load that was compacted
	parts       []*load       // of a compaction: the loads that it merged
	files       []segmentFile // those that are there, ascending by time
}

// segmentFile is a segment file of a load. If it is doubtful, an overwrite that failed may have written it; then it was
// never in use.
type segmentFile struct {
	name     string
	at       int64
	doubtful bool
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
	over := overwrites{at: map[int64]bool{}}
	for _, l := range append(past, m.Loads...) {
		over.add(&l)
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
	if err := segmentFiles(ctx, m, list, &over); err != nil {
		return nil, nil, err
	}
	return list, ends, bounded(ctx, m, list, &over)
}

// overwrites are CarbonData's overwrites of partitions. Each writes a segment file for every entry of tablestatus with
// such a partition, also for those of loads that have ended.
type overwrites struct {
	at     map[int64]bool // the times of those that succeeded
	failed [][2]int64     // the times between which loads ran that failed or had no rows, and may have been such
}

// add adds what the entry of a load says.
func (o *overwrites) add(l *status.Load) {
	if at, ok := status.Millis(l.Updates); ok {
		o.at[at] = true
		return
	}
	began, ok := status.Millis(l.Start)
	if !ok || l.Counts() || l.Merged != "" || l.ChangedAt() != "" || timeless(l) {
		return
	}
	ended, ok := status.Millis(l.Timestamp)
	if !ok {
		ended = forever // it was killed, or still runs
	}
	o.failed = append(o.failed, [2]int64{began, ended})
}

// doubtful reports whether a segment file of the time at may have been written by an overwrite that failed. Beside it,
// others can have changed the table.
func (o *overwrites) doubtful(at int64) bool {
	return !o.at[at] && slices.ContainsFunc(o.failed, func(x [2]int64) bool { return x[0] <= at && at <= x[1] })
}

// bounded sets from when and until when the rows of loads were visible where the times of their entries do not say it.
func bounded(ctx context.Context, m *table.Managed, list []*load, over *overwrites) error {
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
		if err := bound(ctx, m, x, list, over); err != nil {
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

// segmentFiles finds the segment files of loads. A table has them from its first load on.
func segmentFiles(ctx context.Context, m *table.Managed, list []*load, over *overwrites) error {
	of := map[string]*load{}
	for _, x := range list {
		of[x.Name] = x
	}
	for info, err := range m.Tree.List(ctx, path.Join(m.Path, "Metadata", "segments")) {
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return err
		}
		base := path.Base(info.Name)
		name, at := status.SegmentOf(base)
		if x := of[name]; x != nil && strings.HasSuffix(base, ".segment") {
			own := at < x.from || status.FormatMillis(at) == x.Start // the load wrote it
			x.files = append(x.files, segmentFile{base, at, !own && base != x.Segment && over.doubtful(at)})
		}
	}
	for _, x := range list {
		sorted.By(x.files, func(a, b segmentFile) int { return cmp.Compare(a.at, b.at) })
	}
	return nil
}

// stampOf returns the time in the name of a segment file.
func stampOf(name string) int64 {
	_, at := status.SegmentOf(name)
	return at
}

// bound sets the times between which a load ended without a time. It was visible when it was loaded and, in a table
// without partitions, when it was changed last. If an overwrite or drop left it no partition, it had ended by then.
// Else all loads ended at once, and so before any load of which rows are still visible.
func bound(ctx context.Context, m *table.Managed, x *load, list []*load, over *overwrites) error {
	x.sure = x.from
	if changed, _ := status.Millis(x.UpdateTo); m.TableSchema.Partition == nil {
		x.sure = max(x.from, stampOf(x.Segment), changed)
	}
	if streamed(&x.Load) {
		x.sure = x.from - 1 // nor is it known when its rows came
	}
	perhaps := int64(0)
	if m.TableSchema.Partition != nil {
		f, last, err := emptied(ctx, m, x)
		if err != nil { // with clean: it may have been one without partitions
			return nil
		}
		if f.at > 0 {
			// A drop writes segment files for visible loads only, and an overwrite for those that have ended, too.
			if x.until = f.at; last == 0 && (!over.at[f.at] || survived(list, x.from, f.at)) {
				x.sure = f.at - 1
			}
			return nil
		}
		perhaps = last
	}
	x.until = max(time.Now().UnixMilli(), x.sure+1)
	for _, l := range list {
		if l.from > x.sure && l.counts() {
			x.until = min(x.until, l.from)
		}
	}
	x.until = max(x.until, perhaps)
	return nil
}

// emptied returns the first segment file of a load that has no partition left, and the time of the last doubtful one
// before it; 0 if there is none.
func emptied(ctx context.Context, m *table.Managed, x *load) (first segmentFile, doubtful int64, err error) {
	for _, f := range x.files {
		last := x.Load
		if last.Segment = f.name; f.at <= x.from {
			continue
		}
		left, _, err := m.Counting(ctx, &last)
		switch {
		case err != nil:
			return segmentFile{}, 0, err
		case len(left) == 0 && f.doubtful:
			doubtful = f.at
		case len(left) == 0:
			return f, doubtful, nil
		}
	}
	return segmentFile{}, doubtful, nil
}

// survived reports whether rows of an earlier load than one of the time from were still visible at a later time. Then
// the table was not truncated in between.
func survived(list []*load, from, at int64) bool {
	return slices.ContainsFunc(list, func(l *load) bool {
		return l.from <= from && (l.counts() || !timeless(&l.Load) && l.until >= at)
	})
}

// counts reports whether rows of the load are visible now, in it or in the load that it was compacted to.
func (l *load) counts() bool {
	for l.into != nil {
		l = l.into
	}
	return l.Counts()
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
