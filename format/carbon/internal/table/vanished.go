package table

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"stoa/fault"
	"stoa/format/carbon/internal/status"
	"stoa/store"
)

// Unnamed returns segments with data files that neither tablestatus nor its history names. For the vanished ones
// tablestatus must have had an entry: bytes of entries were lost, or the file is an earlier version. A load gets the
// number after the highest in tablestatus. Since release 1.3 it writes its entry before its first file; in earlier
// releases the next load removed the files of a killed load and reused its number. So every whole number up to the
// highest had an entry, and only the next number can be left over from a load that was killed, if the table has no
// segment files, which later releases write, and if the load did not reach its end: an index file is its last. A
// compaction (N.M) writes its entry last: if it is killed, it leaves files without an entry, and no other entry names
// it as its mergedLoadName.
func (t *Managed) Unnamed(ctx context.Context) (vanished, left []status.Load, err error) {
	there, err := t.segmentsThere(ctx)
	if err != nil {
		return nil, nil, err
	}
	known, merged := map[string]bool{}, map[string]bool{}
	segmentFiles := slices.ContainsFunc(there, func(l status.Load) bool { return l.Segment != "" })
	name := func(loads []status.Load) {
		for i := range loads {
			known[loads[i].Name], known[loads[i].SegmentID()], merged[loads[i].Merged] = true, true, true
			segmentFiles = segmentFiles || loads[i].Segment != ""
		}
	}
	named := func(l status.Load) bool { return known[l.Name] }
	name(t.Loads)
	if there = slices.DeleteFunc(there, named); len(there) == 0 {
		return nil, nil, nil
	}
	for _, file := range []string{t.Status, t.history()} { // a load may have begun or been cleaned since
		store.Forget(t.Tree, file)
		var loads []status.Load
		err := status.ReadJSON(ctx, t.Tree, file, t.Opts.Limits, &loads)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fault.Corrupt) {
			return nil, nil, err
		}
		name(loads)
	}
	next := 0
	for s := range known {
		if n, ok := wholeNumber(s); ok {
			next = max(next, n+1)
		}
	}
	for _, l := range slices.DeleteFunc(there, named) {
		has, complete, err := t.dataOf(ctx, &l)
		if err != nil {
			return nil, nil, err
		} else if !has {
			continue
		}
		n, whole := wholeNumber(l.Name)
		if merged[l.Name] || whole && (n != next || segmentFiles || complete) {
			vanished = append(vanished, l)
		} else {
			left = append(left, l)
		}
	}
	return vanished, left, nil
}

// dataOf reports whether a segment without an entry has a data file whose name is not another segment's, and whether
// index files name all its data files.
func (t *Managed) dataOf(ctx context.Context, l *status.Load) (has, complete bool, err error) {
	parts, err := t.segmentParts(ctx, l)
	if err != nil && !errors.Is(err, fault.Corrupt) && !errors.Is(err, fs.ErrNotExist) {
		return false, false, err
	}
	complete = err == nil
	for i := range parts {
		p := &parts[i]
		_, err := t.Tree.Stat(ctx, p.Name)
		of := status.ParseFileName(p.Name).Segment
		has = has || err == nil && (of == "" || of == l.Name)
		complete = complete && err == nil && len(p.blocks) > 0
	}
	return has, complete, nil
}

// VanishedError returns the error for a segment whose entry in tablestatus has vanished, with its number of rows if
// known. It is Corrupt, or the error of ctx.
func (t *Managed) VanishedError(ctx context.Context, l *status.Load) error {
	parts, err := t.segmentParts(ctx, l)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	rows, how := int64(0), ""
	for i := range parts {
		if parts[i].rows < 0 || err != nil {
			rows = -1
			break
		}
		rows += parts[i].rows
	}
	if rows >= 0 {
		how = fmt.Sprintf(" with %s", fault.Count(rows, "row"))
	}
	return fault.Corruptf(fault.Span{Object: t.Status}, "", "segment %s has data files%s, and tablestatus, which must "+
		"have named it, does not: whether its rows count is unknown, so they are not read "+
		"(option segment=%s reads them)",
		l.Name, how, l.Name)
}

// askedFor adds the segments that options name and that have files but no entry in tablestatus.
func (t *Managed) askedFor(ctx context.Context) error {
	for _, s := range t.O.Segments {
		if slices.ContainsFunc(t.Loads, func(l status.Load) bool { return l.Name == s || l.SegmentID() == s }) {
			continue
		}
		there, err := t.segmentsThere(ctx)
		if err != nil {
			return err
		}
		for _, l := range there {
			if l.Name == s {
				l.Status = "not in tablestatus"
				t.Loads = append(t.Loads, l)
			}
		}
	}
	return nil
}

// wholeNumber parses the name of a segment that is not the result of a compaction.
func wholeNumber(segment string) (int, bool) {
	n, err := strconv.Atoi(segment)
	return n, err == nil && n >= 0
}
