package table

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"stoa/fault"
	"stoa/format/carbon/internal/status"
)

// readStatus reads tablestatus and the update status that it names. A table without tablestatus is empty, unless it has
// segments: which of them count is unknown then, and an empty result would be a silent loss.
func (t *Managed) readStatus(ctx context.Context) error {
	loads, err := t.readLoads(ctx)
	if err != nil {
		return err
	}
	t.Loads, t.changes = loads, map[string]*status.Update{}
	if len(loads) == 0 || loads[0].Updates == "" {
		return t.checkUpdates(ctx, nil)
	}
	t.Updates = path.Join(t.Path, "Metadata", loads[0].Updates)
	var list []status.Update
	if err := status.ReadJSON(ctx, t.Tree, t.Updates, t.Opts.Limits, &list); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fault.Corruptf(fault.Span{Object: t.Updates}, "",
				"the update status is missing that tablestatus names: deleted rows would come back")
		}
		return err
	}
	t.setUpdates(list)
	return t.checkUpdates(ctx, list)
}

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
	for i := range loads { // unknown is not "left out": that would be a silent loss
		switch l := &loads[i]; {
		case l.Name == "":
			return nil, fault.Corruptf(fault.Span{Object: t.Status}, fmt.Sprintf("[%d].loadName", i), "it is missing")
		case !status.KnownStatus(l.Status):
			return nil, fault.Corruptf(fault.Span{Object: t.Status}, fmt.Sprintf("[%d].loadStatus", i),
				"segment %s: load status %q is unknown", l.Name, l.Status)
		case l.Segment != "" && !ownSegmentFile(l):
			return nil, fault.Corruptf(fault.Span{Object: t.Status}, fmt.Sprintf("[%d].segmentFile", i),
				"segment %s: %q is not the name of one of its segment files", l.Name, l.Segment)
		}
		for _, x := range [][2]string{{"loadName", loads[i].Name}, {"segmentFile", loads[i].Segment},
			{"updateStatusFileName", loads[i].Updates}} {
			if strings.ContainsAny(x[1], "/\\\x00") || x[1] == ".." { // it would be another table's
				return nil, fault.Corruptf(fault.Span{Object: t.Status}, fmt.Sprintf("[%d].%s", i, x[0]),
					"%q is a path, where a name is wanted", x[1])
			}
		}
	}
	if err := t.checkSegmentFiles(loads); err != nil && t.saved == nil { // recovery looks at each entry by itself
		return nil, err
	}
	return loads, nil
}

// checkSegmentFiles is an error if two entries that count name the same segment file: one of them is damaged, and
// however many there are, the files are not searched again for each.
func (t *Managed) checkSegmentFiles(loads []status.Load) error {
	by := map[string]int{}
	for i := range loads {
		l := &loads[i]
		if l.Segment == "" || !l.Counts() {
			continue
		}
		if k, ok := by[l.Segment]; ok {
			return fault.Corruptf(fault.Span{Object: t.Status}, fmt.Sprintf("[%d].segmentFile", i),
				"segment %s: %s is that of segment %s, too", l.Name, l.Segment, loads[k].Name)
		}
		by[l.Segment] = i
	}
	return nil
}

// checkUpdates compares the update status with tablestatus, see checkEntries. A segment with deletes but without an
// entry would let rows come back, too. That the entries fit data files is checked with the files, see matchUpdates.
func (t *Managed) checkUpdates(ctx context.Context, list []status.Update) error {
	if err := t.checkEntries(ctx, list); err != nil {
		return err
	}
	has := map[string]bool{}
	for i := range list {
		has[list[i].Segment] = true
	}
	for i := range t.Loads {
		if l := &t.Loads[i]; l.Counts() && l.UpdateFrom != "" && !has[l.Id()] {
			return fault.Corruptf(fault.Span{Object: t.Status}, fmt.Sprintf("[%d].updateDeltaStartTimestamp", i),
				"segment %s has deleted rows, and no update status says which", l.Name)
		}
	}
	return nil
}

// checkEntries checks each entry of an update status: one that lacks members (the real writer writes all), or is about
// a segment that never existed, would let deleted rows come back.
func (t *Managed) checkEntries(ctx context.Context, list []status.Update) error {
	known := map[string]bool{}
	for i := range t.Loads {
		known[t.Loads[i].Name], known[t.Loads[i].Id()] = true, true
	}
	for i := range list {
		u := &list[i]
		if err := t.checkUpdate(u, i); err != nil {
			return err
		}
		if known[u.Segment] {
			continue
		}
		var past []status.Load // segments that were cleaned away
		if err := status.ReadJSON(ctx, t.Tree, t.Status+".history", t.Opts.Limits, &past); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for k := range past {
			known[past[k].Name] = true
		}
		if !known[u.Segment] {
			return fault.Corruptf(fault.Span{Object: t.Updates}, fmt.Sprintf("[%d].segmentName", i),
				"%q is no segment of the table", u.Segment)
		}
	}
	return nil
}

// checkUpdate checks that an entry has all it needs.
func (t *Managed) checkUpdate(u *status.Update, i int) error {
	unreadable := func(member, value string) error {
		return fault.Corruptf(fault.Span{Object: t.Updates}, fmt.Sprintf("[%d].%s", i, member),
			"%q: it is missing, or impossible", value)
	}
	n := status.Count64(u.Deleted)
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

// ownSegmentFile reports whether the name of a load's segment file is SEGMENT_TIME.segment, as every writer calls it.
func ownSegmentFile(l *status.Load) bool {
	of, stamp := status.SegmentOf(l.Segment)
	return stamp >= 0 && (of == l.Name || of == l.Id()) && strings.HasSuffix(l.Segment, ".segment")
}
