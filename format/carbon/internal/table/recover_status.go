package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
	"stoa/internal/sorted"
)

// entry returns the effective entry of a block of load l; nil if none of its rows are deleted. u is the block's entry
// in the update status, nil if there is none; deltas are the names of the delete deltas in its directory.
func (g *guessedDeletes) entry(u *status.Update, l *status.Load, block string, deltas []string) *status.Update {
	if u != nil && u.Gone() {
		return u
	}
	out := &status.Update{Segment: l.SegmentID(), Block: block, Guessed: true}
	var from, to int64 = math.MaxInt64, -1
	if u != nil {
		out.Actual, out.Stamps = u.Actual, slices.Clone(u.Stamps) // including missing deltas, which are reported
		if from, to = span64(u); status.ParseCount(u.Deleted) > 0 && from == to {
			out.Stamps = []string{u.From}
		}
	}
	after := g.after
	if g.unlisted[l.SegmentID()] {
		after = -1
	}
	for _, name := range deltas {
		stamp, ok := strings.CutPrefix(strings.TrimSuffix(name, layout.DeltaExt), block+"-")
		at, isTime := status.Millis(stamp)
		named := at >= from && at <= to && (u == nil || len(u.Stamps) == 0)
		if ok && isTime && (named || at > after && at <= g.until) && !slices.Contains(out.Stamps, stamp) {
			out.Stamps = append(out.Stamps, stamp)
		}
	}
	if u == nil && len(out.Stamps) == 0 {
		return nil
	}
	return out
}

// span64 returns the times of the first and the last delta of an entry, in milliseconds since 1970; from > to if it has
// none.
func span64(u *status.Update) (from, to int64) {
	from, ok1 := status.Millis(u.From)
	to, ok2 := status.Millis(u.To)
	if !ok1 || !ok2 || status.ParseCount(u.Deleted) == 0 {
		return math.MaxInt64, -1
	}
	return from, to
}

// updatesPrefix is the beginning of the names of update statuses; a time follows.
const updatesPrefix = "tableupdatestatus-"

// guessStatus reconstructs a tablestatus or update status that cannot be read; why is the reason. Without tablestatus,
// every segment that has a directory or a segment file counts.
func (t *Managed) guessStatus(ctx context.Context, why error) error {
	var e *fault.Error
	errors.As(why, &e)
	how := ""
	loads, err := t.readLoads(ctx)
	if err != nil && !errors.Is(err, fault.Corrupt) {
		return err
	}
	if err != nil {
		if loads, err = t.guessLoads(ctx); err != nil || len(loads) == 0 {
			return why
		}
		how = fmt.Sprintf("all %d segments that have a directory or a segment file are read, also those that "+
			"were compacted or deleted; %s", len(loads), compactions(loads))
	}
	t.Loads = loads
	deletes, err := t.guessDeletes(ctx)
	if err != nil {
		return err
	}
	t.saved.Emit(layout.Findingf("carbon.status.damaged", e.At, t.Path, "%v: %s%s", why, how, deletes))
	return nil
}

// compactions returns a text that names the segments whose rows other segments may have, too: N.1 is the result of
// compacting N and others, and the names do not tell which others.
func compactions(loads []status.Load) string {
	var all []string
	for i := range loads {
		if name := loads[i].Name; segmentNumber.MatchString(name) && strings.Contains(name, ".") {
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		return ""
	}
	first, _, _ := strings.Cut(all[0], ".")
	return fmt.Sprintf("%s were made by compaction (%s from %s and others), so rows are there twice if the "+
		"compacted segments still exist (option segments=N,N,… reads only those that it names); ",
		strings.Join(all, ", "), all[0], first)
}

// guessDeletes makes the newest intact update status the current one, and also applies the newer delete deltas, whose
// names contain block and time. It returns a description of this for the finding.
func (t *Managed) guessDeletes(ctx context.Context) (string, error) {
	g := &guessedDeletes{after: -1, until: math.MaxInt64, unlisted: map[string]bool{}}
	t.Guessed, t.changes, t.Updates = g, map[string]*status.Update{}, ""
	if len(t.Loads) > 0 && t.Loads[0].Updates != "" {
		if ms, ok := status.Millis(strings.TrimPrefix(t.Loads[0].Updates, updatesPrefix)); ok {
			g.until = ms
		}
	}
	names, err := t.updateStatuses(ctx)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		ms, _ := status.Millis(strings.TrimPrefix(path.Base(name), updatesPrefix))
		if ms > g.until {
			continue // it belongs to a change that was not committed
		}
		var list []status.Update
		t.Updates = name
		err := status.ReadJSON(ctx, t.Tree, name, t.Opts.Limits, &list)
		if err == nil {
			err = t.checkEntries(ctx, list)
		}
		if err != nil && !errors.Is(err, fault.Corrupt) {
			return "", err
		}
		if err != nil {
			continue
		}
		g.after = ms
		t.setUpdates(list)
		for i := range t.Loads {
			l := &t.Loads[i]
			g.unlisted[l.SegmentID()] = l.UpdateFrom != "" &&
				!slices.ContainsFunc(list, func(u status.Update) bool { return u.Segment == l.SegmentID() })
		}
		return fmt.Sprintf("the deletes of %s and of newer delete deltas are applied", path.Base(name)), nil
	}
	t.Updates = ""
	return "the deletes of all delete deltas are applied", nil
}

// updateStatuses returns the names of the update statuses, newest first.
func (t *Managed) updateStatuses(ctx context.Context) (out []string, err error) {
	for info, err := range t.Tree.List(ctx, path.Join(t.Path, "Metadata")) {
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		if stamp, ok := strings.CutPrefix(path.Base(info.Name), updatesPrefix); ok && !info.Dir {
			if _, ok := status.Millis(stamp); ok {
				out = append(out, info.Name)
			}
		}
	}
	at := func(name string) int64 {
		ms, _ := status.Millis(strings.TrimPrefix(path.Base(name), updatesPrefix))
		return ms
	}
	sorted.By(out, func(a, b string) int { return cmp.Compare(at(b), at(a)) })
	return out, nil
}
