package since

import (
	"context"
	"errors"
	"maps"
	"slices"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
	"stoa/format/carbon/internal/table"
)

// part is a data file with changes: the rows that were visible before and are not after, or the other way round.
type part struct {
	before, after state
}

// plan finds the data files with changes since a moment.
type plan struct {
	m     *table.Managed // reads all segments, with deleted rows
	at    int64
	u     *updates
	used  []status.Load // loads with data files in parts
	parts map[string]part
}

// newPlan compares a table with that of the time at.
func newPlan(ctx context.Context, m *table.Managed, list []*load, at int64) (*plan, error) {
	u, err := newUpdates(ctx, m, list)
	if err != nil {
		return nil, err
	}
	p := &plan{m: m, at: at, u: u, parts: map[string]part{}}
	for _, l := range list {
		if err := l.arriving(m, at); err != nil {
			return nil, err
		}
		switch {
		case l.Counts():
			err = p.changed(ctx, l, forever)
		case !l.compacted() && l.until > at:
			if _, err = l.visible(m, at); err == nil {
				err = p.erased(ctx, l)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// planOf finds the data files with rows that were visible at the time at.
func planOf(ctx context.Context, m *table.Managed, list []*load, at int64) (*plan, error) {
	u, err := newUpdates(ctx, m, list)
	if err != nil {
		return nil, err
	}
	p := &plan{m: m, at: at, u: u, parts: map[string]part{}}
	for _, l := range list {
		seen, err := l.visible(m, at)
		if err == nil && seen {
			err = p.compare(ctx, l, -1, at)
		}
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// changed adds what differs between the moment and the time now in a load that is visible then.
func (p *plan) changed(ctx context.Context, l *load, now int64) error {
	if l.from <= p.at {
		return p.compare(ctx, l, p.at, now)
	}
	all, some := l.old(p.at)
	if !some {
		return p.compare(ctx, l, -1, now)
	}
	// A compaction of loads that were visible. Its rows are theirs, less those deleted in between: only these changed,
	// if the deletes after the compaction are none, or all of old rows.
	later, err := p.sinceBegun(ctx, l, now)
	if err != nil {
		return err
	}
	if len(later) > 0 && !all {
		for _, x := range l.parts {
			if err := p.erased(ctx, x); err != nil {
				return err
			}
		}
		return p.compare(ctx, l, -1, now)
	}
	began, ok := status.Millis(l.Start)
	if !ok {
		return fault.Unsupportedf(fault.Span{Object: p.m.Status}, "", "its past: it is not known when the "+
			"compaction to segment %s began", l.Name)
	}
	for _, x := range l.parts {
		if err := p.changed(ctx, x, began); err != nil {
			return err
		}
	}
	for name, after := range later {
		p.add(name, part{state{}, after})
	}
	return nil
}

// sinceBegun returns the data files of a load of which not all rows are visible at a time: some were deleted, or all of
// them with their partition.
func (p *plan) sinceBegun(ctx context.Context, l *load, when int64) (map[string]state, error) {
	first, err := p.filesAt(ctx, l, l.from)
	if err != nil {
		return nil, err
	}
	still, err := p.filesAt(ctx, l, when)
	if err != nil {
		return nil, err
	}
	out := map[string]state{}
	for name := range first {
		s := state{none: true}
		if still[name] {
			if s, err = p.u.at(ctx, l, name, when); err != nil {
				return nil, err
			}
		}
		if s.none || len(s.gone) > 0 {
			out[name] = s
		}
	}
	return out, nil
}

// erased adds the rows of a load, or of those that were compacted to it, that were visible at the moment, as deleted.
func (p *plan) erased(ctx context.Context, l *load) error {
	if l.from <= p.at {
		return p.compare(ctx, l, p.at, -1)
	}
	for _, x := range l.parts {
		if err := p.erased(ctx, x); err != nil {
			return err
		}
	}
	return nil
}

// compare adds what differs between two times in a load that was not compacted in between; -1 stands for a time at
// which it was not visible.
func (p *plan) compare(ctx context.Context, l *load, before, after int64) error {
	if l.Foreign() {
		if before >= 0 && after >= 0 {
			return nil // no rows of it can be deleted
		}
		return fault.Unsupportedf(fault.Span{Object: p.m.Status}, "", "its past: segment %s has files of format %s",
			l.Name, l.FileFormat)
	}
	if l.Cleaned() && before >= 0 && after >= 0 && p.untouched(l, before) {
		return nil // its files need not exist
	}
	files := [2]map[string]bool{}
	for i, when := range []int64{before, after} {
		if when < 0 {
			continue
		}
		var err error
		if files[i], err = p.filesAt(ctx, l, when); err != nil {
			return err
		}
	}
	all := maps.Clone(files[0])
	if all == nil {
		all = map[string]bool{}
	}
	maps.Copy(all, files[1])
	for _, name := range layout.SortedKeys(all) {
		x := part{state{none: true}, state{none: true}}
		var err error
		if files[0][name] {
			x.before, err = p.u.at(ctx, l, name, before)
		}
		if err == nil && files[1][name] {
			x.after, err = p.u.at(ctx, l, name, after)
		}
		if err != nil {
			return err
		}
		p.add(name, x)
	}
	return nil
}

// untouched reports whether nothing was deleted in a load after a time.
func (p *plan) untouched(l *load, when int64) bool {
	updated, ok := status.Millis(l.UpdateTo)
	_, file := status.SegmentOf(l.Segment)
	return (!ok || p.u.used(updated) <= when) && (p.m.TableSchema.Partition == nil ||
		p.u.used(file) <= max(when, l.from))
}

// add adds a data file, unless both states are the same.
func (p *plan) add(name string, x part) {
	if x.before.none && x.after.none || !x.before.none && !x.after.none &&
		maps.EqualFunc(x.before.gone, x.after.gone, slices.Equal) {
		return
	}
	p.parts[name] = x
}

// filesAt returns the data files of a load at a time.
func (p *plan) filesAt(ctx context.Context, l *load, when int64) (map[string]bool, error) {
	then := l.Load
	var err error
	if then.Segment, err = p.segmentFile(ctx, l, when); err != nil {
		return nil, err
	}
	parts, found, err := p.m.SegmentContents(ctx, &then)
	switch {
	case err == nil && (l.Counts() || !found.Unknown):
	case err != nil && (!errors.Is(err, fault.Corrupt) || l.Counts() && then.Segment == l.Segment):
		return nil, err
	case p.m.TableSchema.Partition != nil && !l.Cleaned():
		return nil, fault.Unsupportedf(fault.Span{Object: p.m.Status}, "", "its past: segment %s had partitions then "+
			"that were dropped or overwritten later, and their files, which have what changed, were removed, at once "+
			"or by clean", l.Name)
	default:
		return nil, fault.Unsupportedf(fault.Span{Object: p.m.Status}, "", "its past: segment %s is %s, and its "+
			"files, which have what changed, were removed by clean", l.Name, l.Status)
	}
	p.used = append(p.used, then)
	names := map[string]bool{}
	for i := range parts {
		names[parts[i].Name] = true
	}
	return names, nil
}

// segmentFile returns the segment file of a load at a time. Each change of its partitions, and merge-index, writes
// another one.
func (p *plan) segmentFile(ctx context.Context, l *load, when int64) (string, error) {
	_, current := status.SegmentOf(l.Segment)
	if l.Segment == "" || p.u.used(current) <= when || current <= l.from {
		return l.Segment, nil
	}
	best := ""
	var doubtful []segmentFile // after the best
	for _, f := range l.files {
		switch {
		case p.u.used(f.at) > max(when, l.from):
		case f.doubtful:
			doubtful = append(doubtful, f)
		default:
			best, doubtful = f.name, nil
		}
	}
	if best == "" && p.m.Drops(ctx, &l.Load) {
		return "", fault.Unsupportedf(fault.Span{Object: p.m.Status}, "", "its past: which partitions segment %s "+
			"had then is not known: its segment file of that time was removed by clean", l.Name)
	}
	if best == "" {
		best = l.Segment
	}
	for _, f := range doubtful {
		if err := p.certain(ctx, l, best, f); err != nil {
			return "", err
		}
	}
	return best, nil
}

// certain returns an error unless a doubtful segment file makes no difference to an earlier one: it has the same
// partitions, or it was never in use, as the next one, which was, has a partition that it lacks. No change brings a
// partition back.
func (p *plan) certain(ctx context.Context, l *load, before string, f segmentFile) error {
	next := l.Segment
	for _, x := range l.files {
		if x.at > f.at && !x.doubtful {
			next = x.name
			break
		}
	}
	var counting [3]map[string]bool
	for i, name := range []string{before, f.name, next} {
		then := l.Load
		then.Segment = name
		var err error
		if counting[i], _, err = p.m.Counting(ctx, &then); err != nil {
			return err
		}
	}
	for dir := range counting[2] {
		if !counting[1][dir] {
			return nil
		}
	}
	if maps.Equal(counting[0], counting[1]) {
		return nil
	}
	return fault.Unsupportedf(fault.Span{Object: p.m.Status}, "", "its past: which partitions segment %s had then is "+
		"not known: %s may be of an overwrite that failed", l.Name, f.name)
}
