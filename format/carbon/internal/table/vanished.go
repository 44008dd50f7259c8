package table

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
)

// Unnamed are segments with data files that tablestatus and its history do not name. Of those that vanished
// tablestatus must have had an entry: bytes between two entries were lost, or it is of an earlier time. A load gets the
// number after the highest that has an entry. Since 1.3 it has its entry before its first file; before, what a killed
// load had left was removed by the next one, which got that number. So whole numbers up to the highest were given, and
// so were those before one that is there; only the next one may be that of a load that did not end. A compaction (N.M)
// gets its entry last: what a killed one leaves has none, and no other entry says that it was merged into it.
func (t *Managed) Unnamed(ctx context.Context) (vanished, left []status.Load, err error) {
	there, err := t.segmentsThere(ctx)
	if err != nil {
		return nil, nil, err
	}
	known, merged := map[string]bool{}, map[string]bool{}
	name := func(loads []status.Load) {
		for i := range loads {
			known[loads[i].Name], known[loads[i].Id()], merged[loads[i].Merged] = true, true, true
		}
	}
	named := func(l status.Load) bool { return known[l.Name] }
	name(t.Loads)
	if there = slices.DeleteFunc(there, named); len(there) == 0 {
		return nil, nil, nil
	}
	for _, file := range []string{t.Status, t.Status + ".history"} { // it may be a load that began since, or be past
		var loads []status.Load
		err := status.ReadJSON(ctx, t.Tree, file, t.Opts.Limits, &loads)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fault.Corrupt) {
			return nil, nil, err
		}
		name(loads)
	}
	highest := -1
	for _, s := range layout.Sorted(known) {
		if n, ok := wholeNumber(s); ok {
			highest = max(highest, n)
		}
	}
	for _, l := range slices.DeleteFunc(there, named) {
		if has, err := t.hasData(ctx, &l); err != nil {
			return nil, nil, err
		} else if !has {
			continue
		}
		if n, whole := wholeNumber(l.Name); whole && n != highest+1 || merged[l.Name] {
			vanished = append(vanished, l)
		} else {
			left = append(left, l)
		}
	}
	return vanished, left, nil
}

// hasData reports whether a segment that nothing names has data files, of which none says that it is another's.
func (t *Managed) hasData(ctx context.Context, l *status.Load) (bool, error) {
	parts, err := t.segmentParts(ctx, l)
	if err != nil && !errors.Is(err, fault.Corrupt) && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return slices.ContainsFunc(parts, func(p Part) bool {
		_, err := t.Tree.Stat(ctx, p.Name)
		of := status.ParseFileName(p.Name).Segment
		return err == nil && (of == "" || of == l.Name)
	}), nil
}

// Lack is the error that a segment vanished.
func (t *Managed) Lack(ctx context.Context, l *status.Load) error {
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
		how = fmt.Sprintf(" with %d rows", rows)
	}
	return fault.Corruptf(fault.Span{Object: t.Status}, "", "segment %s has data files%s, and tablestatus, which must "+
		"have named it, does not: its rows are not read, as nobody knows whether they count (--segment %s reads them)",
		l.Name, how, l.Name)
}

// askedFor adds segments that options name, that are there, and that tablestatus does not name.
func (t *Managed) askedFor(ctx context.Context) error {
	for _, s := range t.O.Segments {
		if slices.ContainsFunc(t.Loads, func(l status.Load) bool { return l.Name == s || l.Id() == s }) {
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

func wholeNumber(segment string) (int, bool) {
	n, err := strconv.Atoi(segment)
	return n, err == nil && n >= 0
}
