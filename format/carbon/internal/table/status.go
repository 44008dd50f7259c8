package table

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
	"stoa/store"
)

// readStatus reads tablestatus and the update status that it names. A table without tablestatus is empty; if it has
// segments nevertheless, the error is Corrupt, because an empty result would be a silent loss.
func (t *Managed) readStatus(ctx context.Context) error {
	loads, err := t.readLoads(ctx)
	if err != nil {
		return err
	}
	t.read = slices.Clone(loads)
	t.Loads, t.changes = loads, map[string]*status.Update{}
	if len(loads) == 0 || loads[0].Updates == "" {
		return t.checkUpdates(ctx, nil)
	}
	t.Updates = path.Join(t.Path, "Metadata", loads[0].Updates)
	var list []status.Update
	if err := status.ReadJSON(ctx, t.Tree, t.Updates, t.Opts.Limits, &list); err != nil {
		if errors.Is(err, fs.ErrNotExist) && (t.TableSchema.IsIndexTable() || t.overwritten(ctx)) {
			t.Updates = "" // that of the main table, or none
			return t.checkUpdates(ctx, nil)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return fault.Corruptf(fault.Span{Object: t.Updates}, "",
				"tablestatus names this update status, and it is missing: deleted rows would come back")
		}
		return err
	}
	t.UpdatesNull = list == nil
	t.setUpdates(list)
	return t.checkUpdates(ctx, list)
}

// overwritten reports whether the update status that tablestatus names, and that is missing, is one that CarbonData did
// not write: overwriting a partition records its time in place of a name, without the prefix that names have. The table
// has no delete delta of that time or before; a later one is of a delete that has not ended. Segments at locations that
// are not followed have their rows refused, so that theirs do not matter.
func (t *Managed) overwritten(ctx context.Context) bool {
	when, ok := status.Millis(path.Base(t.Updates))
	if !ok || t.TableSchema.Partition == nil {
		return false
	}
	for i := range t.Loads {
		places, err := t.Folders(ctx, &t.Loads[i])
		for _, p := range places {
			for info, err := range t.Tree.List(ctx, p.Dir) {
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					return false
				}
				_, at := status.SegmentOf(path.Base(info.Name))
				if strings.HasSuffix(info.Name, layout.DeltaExt) && at <= when {
					return false
				}
			}
		}
		if err != nil && t.Loads[i].Counts() && !errors.Is(err, fault.Unsupported) {
			return false
		}
	}
	return true
}

// readAgain reads tablestatus again if somebody changed it since it was read, and reports whether it did. Loads begin,
// and clean removes files, while the table is being listed.
func (t *Managed) readAgain(ctx context.Context) (changed bool, err error) {
	now, versioned, err := CurrentStatus(ctx, t.Tree, t.Path)
	if err != nil {
		return false, err
	}
	store.Forget(t.Tree, now)
	same := now == t.Status
	t.Status, t.Versioned = now, versioned
	if loads, err := t.readLoads(ctx); err != nil || same && slices.Equal(loads, t.read) {
		return false, err
	}
	return true, t.readStatus(ctx)
}

// CurrentStatus returns the name of the tablestatus of the table in dir. Since release 2.3.1 CarbonData may keep
// several versions of it (carbon.enable.multi.version.table.status), each a separate file with its time in the name.
// Hive's metastore names the current version; without the metastore CarbonData uses the newest (refresh table), and so
// does stoa.
func CurrentStatus(ctx context.Context, tree store.Tree, dir string) (name string, versioned bool, err error) {
	name = path.Join(dir, "Metadata", "tablestatus")
	if _, err := tree.Stat(ctx, name); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return name, false, err
	}
	last, plain := int64(-1), name
	for info, err := range tree.List(ctx, path.Dir(plain)) {
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return name, false, err
		}
		stamp, ok := strings.CutPrefix(path.Base(info.Name), path.Base(plain)+"_")
		if at := status.ParseCount(stamp); ok && !info.Dir && at > last {
			name, versioned, last = info.Name, true, at
		}
	}
	return name, versioned, nil
}

// history returns the name of the file with the entries that clean removed.
func (t *Managed) history() string { return path.Join(t.Path, "Metadata", "tablestatus.history") }

// setUpdates makes list the update status of the table.
func (t *Managed) setUpdates(list []status.Update) {
	t.changes = map[string]*status.Update{}
	for i := range list {
		u := &list[i]
		t.changes[u.Segment+"/"+u.Block] = u
	}
}

// readLoads reads tablestatus itself.
func (t *Managed) readLoads(ctx context.Context) (loads []status.Load, err error) {
	err = status.ReadJSON(ctx, t.Tree, t.Status, t.Opts.Limits, &loads)
	if errors.Is(err, fs.ErrNotExist) {
		if found, err := t.guessLoads(ctx); err != nil || len(found) == 0 {
			return nil, err
		}
		return nil, fault.Corruptf(fault.Span{Object: t.Status}, "",
			"the table has segments, but no tablestatus that says which of them count")
	}
	if err != nil {
		return nil, err
	}
	for i := range loads { // an entry with an unknown state must not be skipped: that would be a silent loss
		switch l := &loads[i]; {
		case l.Name == "":
			return nil, fault.Corruptf(fault.Span{Object: t.Status}, fmt.Sprintf("[%d].loadName", i), "missing")
		case !status.KnownStatus(l.Status):
			return nil, fault.Corruptf(fault.Span{Object: t.Status}, fmt.Sprintf("[%d].loadStatus", i),
				"segment %s: load status %q is unknown", l.Name, l.Status)
		case l.Segment != "" && !ownSegmentFile(l):
			return nil, fault.Corruptf(fault.Span{Object: t.Status}, fmt.Sprintf("[%d].segmentFile", i),
				"segment %s: %q is not the name of one of its segment files", l.Name, l.Segment)
		}
		for _, x := range [][2]string{{"loadName", loads[i].Name}, {"segmentFile", loads[i].Segment},
			{"updateStatusFileName", loads[i].Updates}} {
			if strings.ContainsAny(x[1], "/\\\x00") || x[1] == ".." { // it would be a file of another table
				return nil, fault.Corruptf(fault.Span{Object: t.Status}, fmt.Sprintf("[%d].%s", i, x[0]),
					"expected a name, found the path %q", x[1])
			}
		}
	}
	if err := t.checkSegmentFiles(loads); err != nil && t.saved == nil { // recovery reads each entry separately
		return nil, err
	}
	return loads, nil
}

// checkSegmentFiles returns Corrupt if two entries that count name the same segment file, because then one of them is
// damaged. It also bounds the work for a tablestatus with very many such entries.
func (t *Managed) checkSegmentFiles(loads []status.Load) error {
	by := map[string]int{}
	for i := range loads {
		l := &loads[i]
		if l.Segment == "" || !l.Counts() {
			continue
		}
		if k, ok := by[l.Segment]; ok {
			return fault.Corruptf(fault.Span{Object: t.Status}, fmt.Sprintf("[%d].segmentFile", i),
				"segment %s: %s is the segment file of segment %s, too", l.Name, l.Segment, loads[k].Name)
		}
		by[l.Segment] = i
	}
	return nil
}

// checkUpdates compares the update status with tablestatus, see checkEntries, and returns Corrupt if a segment with
// deletes has no entry, because its deleted rows would reappear. Entries are compared with data files when those are
// listed, see matchUpdates.
func (t *Managed) checkUpdates(ctx context.Context, list []status.Update) error {
	if err := t.checkEntries(ctx, list); err != nil {
		return err
	}
	has := map[string]bool{}
	for i := range list {
		has[list[i].Segment] = true
	}
	for i := range t.Loads {
		l := &t.Loads[i]
		if !l.Counts() || l.UpdateFrom == "" || has[l.SegmentID()] {
			continue
		}
		if without, err := t.withoutDeletes(ctx, l); err != nil || without {
			if err != nil {
				return err
			}
			continue
		}
		return fault.Corruptf(fault.Span{Object: t.Status}, fmt.Sprintf("[%d].updateDeltaStartTimestamp", i),
			"segment %s has deleted rows, and no entry in an update status", l.Name)
	}
	return nil
}

// withoutDeletes reports whether a changed load has no delete deltas from these changes. Dropping or overwriting a
// partition also records its time as that of an update in the entries of all segments; and after a delete in a table,
// the entries of its secondary index tables are the same as in its own tablestatus, though nothing is deleted there.
func (t *Managed) withoutDeletes(ctx context.Context, l *status.Load) (bool, error) {
	if t.TableSchema.Partition == nil && !t.TableSchema.IsIndexTable() {
		return false, nil
	}
	from, ok1 := status.Millis(l.UpdateFrom)
	to, ok2 := status.Millis(l.UpdateTo)
	places, err := t.Folders(ctx, l)
	if !ok1 || !ok2 || errors.Is(err, fault.Corrupt) {
		return false, nil
	}
	for _, p := range places {
		for info, err := range t.Tree.List(ctx, p.Dir) {
			if errors.Is(err, fs.ErrNotExist) {
				break
			}
			if err != nil {
				return false, err
			}
			of, at := status.SegmentOf(path.Base(info.Name))
			if strings.HasSuffix(info.Name, layout.DeltaExt) && of == l.SegmentID() && at >= from && at <= to {
				return false, nil
			}
		}
	}
	return err == nil, err
}

// checkEntries checks each entry of an update status. An entry must have all members, which CarbonData always writes,
// and name a segment that exists or existed; otherwise deleted rows would reappear.
func (t *Managed) checkEntries(ctx context.Context, list []status.Update) error {
	known := map[string]bool{}
	for i := range t.Loads {
		known[t.Loads[i].Name], known[t.Loads[i].SegmentID()] = true, true
	}
	for i := range list {
		u := &list[i]
		if err := t.checkUpdate(u, i); err != nil {
			return err
		}
		if known[u.Segment] {
			continue
		}
		var past []status.Load // segments that clean removed
		if err := status.ReadJSON(ctx, t.Tree, t.history(), t.Opts.Limits, &past); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for k := range past {
			known[past[k].Name] = true
		}
		if !known[u.Segment] {
			return fault.Corruptf(fault.Span{Object: t.Updates}, fmt.Sprintf("[%d].segmentName", i),
				"the table has no segment %q", u.Segment)
		}
	}
	return nil
}

// checkUpdate checks the members of entry i.
func (t *Managed) checkUpdate(u *status.Update, i int) error {
	unreadable := func(member, value string) error {
		return fault.Corruptf(fault.Span{Object: t.Updates}, fmt.Sprintf("[%d].%s", i, member),
			"missing or invalid: %q", value)
	}
	n := status.ParseCount(u.Deleted)
	_, from := status.Millis(u.From)
	_, to := status.Millis(u.To)
	switch {
	case u.Segment == "":
		return unreadable("segmentName", u.Segment)
	case u.Block == "":
		return unreadable("blockName", u.Block)
	case u.Status != "" && !status.KnownStatus(u.Status):
		return unreadable("segmentStatus", u.Status)
	case u.Gone():
	case n < 0:
		return unreadable("deletedRowsInBlock", u.Deleted)
	case n == 0 && (u.From != "" && u.From != "0" || u.To != "" && u.To != "0"):
		return unreadable("deletedRowsInBlock", u.Deleted)
	case n > 0 && !from:
		return unreadable("deleteDeltaStartTimestamp", u.From)
	case n > 0 && !to:
		return unreadable("deleteDeltaEndTimestamp", u.To)
	}
	return nil
}

// ownSegmentFile reports whether the name of a load's segment file is SEGMENT_TIME.segment, the form that all writers
// use.
func ownSegmentFile(l *status.Load) bool {
	of, stamp := status.SegmentOf(l.Segment)
	return stamp >= 0 && (of == l.Name || of == l.SegmentID()) && strings.HasSuffix(l.Segment, ".segment")
}

// Deleted reports whether rows of a segment were deleted. CarbonData records no time of that in its entry if they were
// all rows of their files.
func (t *Managed) Deleted(l *status.Load) bool {
	for _, u := range t.changes {
		if u.Segment == l.SegmentID() {
			return true
		}
	}
	return false
}
