package since

import (
	"context"
	"path"
	"strings"

	"stoa/fault"
	"stoa/format/carbon/internal/status"
	"stoa/format/carbon/internal/table"
)

// state says which rows of a data file are visible at some time.
type state struct {
	none bool          // none
	gone table.Deletes // all but these
}

// updates are the update statuses of a table: the current one, and those before it that still exist.
type updates struct {
	m    *table.Managed
	now  int64 // time of the current one; -1: there is none
	past map[int64]map[string]*status.Update
	ends map[int64]int64 // of the loads, by their beginnings
}

// used returns when an update status, delete delta or segment file of the time at came into use. An update, or an
// overwrite, begins a load with the same time, and both are used from its end on. When a delete ended is not recorded.
func (u *updates) used(at int64) int64 { return max(at, u.ends[at]) }

const updatePrefix = "tableupdatestatus-"

// newUpdates lists the update statuses. One that is newer than the current one was never used.
func newUpdates(ctx context.Context, m *table.Managed, list []*load) (*updates, error) {
	u := &updates{m: m, now: -1, past: map[int64]map[string]*status.Update{}, ends: begun(list)}
	if m.Updates == "" {
		return u, nil
	}
	stamp, _ := strings.CutPrefix(path.Base(m.Updates), updatePrefix)
	if u.now = status.ParseCount(stamp); u.now < 0 {
		return nil, fault.Unsupportedf(fault.Span{Object: m.Updates}, "", "its past: the name has no time")
	}
	for info, err := range m.Tree.List(ctx, path.Join(m.Path, "Metadata")) {
		if err != nil {
			return nil, err
		}
		stamp, ok := strings.CutPrefix(path.Base(info.Name), updatePrefix)
		if at := status.ParseCount(stamp); ok && !info.Dir && at >= 0 && at <= u.now {
			u.past[at] = nil
		}
	}
	return u, nil
}

// of returns the entries of the update status that was in use at a time; ok is false if it no longer exists, or if
// there was none.
func (u *updates) of(ctx context.Context, at int64) (list map[string]*status.Update, ok bool, err error) {
	last := int64(-1)
	for x := range u.past {
		if u.used(x) <= at {
			last = max(last, x)
		}
	}
	if last < 0 {
		return nil, u.now < 0, nil
	}
	if list := u.past[last]; list != nil {
		return list, true, nil
	}
	var entries []status.Update
	name := path.Join(u.m.Path, "Metadata", updatePrefix+status.FormatMillis(last))
	if err := status.ReadJSON(ctx, u.m.Tree, name, u.m.Opts.Limits, &entries); err != nil {
		return nil, false, err
	}
	list = map[string]*status.Update{}
	for i := range entries {
		list[entries[i].Segment+"/"+entries[i].Block] = &entries[i]
	}
	u.past[last] = list
	return list, true, nil
}

// at returns which rows of a data file of a load are visible at a time.
func (u *updates) at(ctx context.Context, l *load, name string, when int64) (state, error) {
	list, known, err := u.of(ctx, when)
	if err != nil {
		return state{}, err
	}
	key := l.Name + "/" + status.ParseFileName(name).Block
	entry := list[key]
	if first, any := status.Millis(l.UpdateFrom); !known && any && u.used(first) <= when {
		if entry, err = u.older(ctx, l, name, when); err != nil {
			return state{}, err
		}
	}
	switch {
	case entry == nil:
		return state{}, nil
	case entry.Gone():
		return state{none: true}, nil
	}
	gone, err := u.m.ReadDeletes(ctx, entry, path.Dir(name))
	return state{gone: gone}, err
}

// older returns the entry of a data file at a time whose update status no longer exists: the part of its current entry
// that is not newer. nil: no rows were deleted then.
func (u *updates) older(ctx context.Context, l *load, name string, when int64) (*status.Update, error) {
	list, _, err := u.of(ctx, forever)
	if err != nil {
		return nil, err
	}
	unknown := fault.Unsupportedf(fault.Span{Object: u.m.Status}, "", "its past: which rows of segment %s were "+
		"deleted then is not known: there is no update status of that time, as after clean", l.Name)
	entry := list[l.Name+"/"+status.ParseFileName(name).Block]
	if entry == nil {
		_, file := status.SegmentOf(l.Segment)
		if at := status.FormatMillis(file); l.Counts() || l.UpdateFrom == l.UpdateTo &&
			(l.UpdateFrom == at || l.UpdateFrom == l.Updates) { // only partitions were changed, not rows
			return nil, nil
		}
		return nil, unknown
	}
	from, ok1 := status.Millis(entry.From)
	to, ok2 := status.Millis(entry.To)
	switch {
	case !ok1 || !ok2 || u.used(from) > when: // what was before may be in a delta that was merged into a newer one
		return nil, unknown
	case u.used(to) <= when:
		return entry, nil
	}
	names, err := u.m.DeltaNames(ctx, entry, path.Dir(name))
	if err != nil {
		return nil, err
	}
	then := *entry
	then.Guessed, then.Status, then.Stamps = true, "", nil // guessed: the number of its rows is not known
	for _, n := range names {
		if _, at := status.SegmentOf(n); u.used(at) <= when {
			then.Stamps = append(then.Stamps, status.FormatMillis(at))
		}
	}
	return &then, nil
}
