package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"sync"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
	"stoa/region"
	"stoa/store"
)

// Recovering finds the blocklets of a data file of format 3 whose header or footer is damaged: as an index file
// beside it knows them, or one column chunk after the other from the header on (each says how long its pages
// are). Of a table it also gets over a status that cannot be read (every segment that has a directory is
// taken), an update status (the newest one that is whole is taken, with the delete deltas that are newer), a
// delete delta (the older ones of its block hold, and what they lack comes back), and a schema (the data files say
// their columns). Formats 1 and 2 have everything in the footer: without it nothing is found.

// RecoverTable opens what a target is as well as it goes.
func RecoverTable(ctx context.Context, tg format.Target, op format.OpenOptions) (format.Reader, []region.Finding,
	error) {
	var mu sync.Mutex
	var all []region.Finding
	saved := func(f []region.Finding) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, f...)
	}
	r, err := reopen(ctx, tg, op, saved)
	mu.Lock()
	defer mu.Unlock()
	return r, slices.Clone(all), err
}

func reopen(ctx context.Context, tg format.Target, op format.OpenOptions,
	saved func([]region.Finding)) (format.Reader, error) {
	o, err := ParseOptions(op.Opts)
	if err == nil {
		err = o.Complete(ctx, tg.Tree, op.Limits)
	}
	if err != nil {
		return nil, err
	}
	at := tg
	tg, k, err := Resolve(ctx, at, &o)
	// who says that it is a table is believed
	if err != nil && k == KindNone && at.Table == "" && !store.Failing(err) {
		if is, failed := holdsPartitions(ctx, at.Tree, at.Name); failed != nil || is {
			k, err = KindTable, failed
		}
	}
	if err != nil {
		return nil, err
	}
	switch k {
	case kindFile:
		return OpenFiles(ctx, tg, op, o, []string{tg.Name}, saved)
	case KindFiles:
		t, err := openFolder(ctx, tg, op, o, saved)
		if err != nil {
			return nil, err
		}
		return t, t.eachFits(ctx)
	case KindTable:
		t, err := OpenManaged(ctx, tg.Tree, tg.Name, op, o, saved)
		if err != nil {
			return withoutSchema(ctx, tg, op, o, saved, err)
		}
		if list, err := t.all(ctx); err == nil {
			for _, p := range list { // so that what is lost is told now, and not while rows are read
				if err := t.fits(ctx, p); err != nil {
					return nil, err
				}
				if p.Update != nil {
					if _, err := t.ReadDeletes(ctx, p.Update, path.Dir(p.Name)); err != nil {
						return nil, err
					}
				}
			}
		}
		return t.reader(), nil
	}
	return Open(ctx, tg, op)
}

// withoutSchema opens the data files of a table whose schema cannot be read, and whose segments cannot be found.
func withoutSchema(ctx context.Context, tg format.Target, op format.OpenOptions, o ReadOptions,
	saved func([]region.Finding), why error) (format.Reader, error) {
	var e *fault.Error
	if !errors.As(why, &e) || e.Class != fault.Corrupt || path.Base(e.At.Object) != "schema" {
		return nil, why
	}
	names, err := FilesBelow(ctx, tg.Tree, tg.Name, 8)
	if err == nil && len(names) == 0 {
		err = why // nothing is left of the table
	}
	if err != nil {
		return nil, err
	}
	saved([]region.Finding{layout.Saying("carbon.schema.damaged", e.At, tg.Name, "%v: all data files are read "+
		"by the columns that they say; partitions, deletes and the status are not looked at", why)})
	return OpenFiles(ctx, tg, op, o, names, saved)
}

// guessSchema takes the columns of the newest data file that can be opened; the ids are those of all files, so
// that columns that came later are null in older ones. Partition columns of the directories are in no file.
func (t *Managed) guessSchema(ctx context.Context, why error) error {
	list, err := t.all(ctx)
	if err != nil {
		return err
	}
	var newest *datafile.DataFile
	ids, latest := map[string]bool{}, int64(-2)
	for _, p := range list {
		f, err := t.open(ctx, p.Name)
		if err != nil && !errors.Is(err, fault.Corrupt) {
			return err
		}
		if err != nil {
			continue
		}
		for _, r := range f.Roots {
			ids[r.Id] = true
		}
		if at := status.ParseFileName(p.Name).Time; at > latest {
			newest, latest = f, at
		}
	}
	if newest == nil {
		return why
	}
	var e *fault.Error
	errors.As(why, &e)
	t.Ids = ids
	t.saved([]region.Finding{layout.Saying("carbon.schema.damaged", e.At, t.Path,
		"%v: the columns are those of %s; partition columns, which only directories tell, are lost", why,
		path.Base(newest.At.Object))})
	return t.AllColumns(newest.Roots, newest.ColumnsAt(), newest.ColumnsPath())
}

// FilesBelow are the data files below a directory.
func FilesBelow(ctx context.Context, tree store.Tree, dir string, depth int) (out []string, err error) {
	for info, err := range tree.List(ctx, dir) {
		if err != nil {
			return nil, err
		}
		switch {
		case info.Dir && depth > 0:
			more, err := FilesBelow(ctx, tree, info.Name, depth-1)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		case !info.Dir && strings.HasSuffix(info.Name, layout.DataExt):
			out = append(out, info.Name)
		}
	}
	return out, nil
}

// guessStatus gets over a tablestatus, or an update status, that cannot be read. Without tablestatus every
// segment counts that has a directory or a segment file.
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
	t.saved([]region.Finding{layout.Saying("carbon.status.damaged", e.At, t.Path, "%v: %s%s", why, how, deletes)})
	return nil
}

// compactions says which segments have the rows of others once more: N.1 is what N and others, which no name
// says, were compacted to.
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
	return fmt.Sprintf("%s came of compacting (%s of %s and others), and the rows of what was compacted are "+
		"there twice if it is there still (--source-opt segments=N,N,… reads only what it names); ",
		strings.Join(all, ", "), all[0], first)
}

// updatesPrefix is with what the names of update statuses begin; their time follows.
const updatesPrefix = "tableupdatestatus-"

// guessedDeletes is by which rule delete deltas hold that no update status names: those that are younger than
// the one that is there.
type guessedDeletes struct {
	after, until int64           // times of deltas
	bare         map[string]bool // segments that have deletes, and no entry in the update status
}

// guessDeletes takes the newest update status that is whole for the one that holds, and lets deltas that are
// newer hold, too: they have their block and their time in their names. It says what it did.
func (t *Managed) guessDeletes(ctx context.Context) (string, error) {
	g := &guessedDeletes{after: -1, until: math.MaxInt64, bare: map[string]bool{}}
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
			continue // of a change that never was
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
		t.take(list)
		for i := range t.Loads {
			l := &t.Loads[i]
			g.bare[l.Id()] = l.UpdateFrom != "" &&
				!slices.ContainsFunc(list, func(u status.Update) bool { return u.Segment == l.Id() })
		}
		return fmt.Sprintf("rows are deleted as %s says, and the delete deltas beside their blocks that are newer",
			path.Base(name)), nil
	}
	t.Updates = ""
	return "rows are deleted as all delete deltas say that lie beside their blocks", nil
}

// updateStatuses are the names of the update statuses, the newest first.
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
	slices.SortFunc(out, func(a, b string) int { return cmp.Compare(at(b), at(a)) })
	return out, nil
}

// entry is what holds for a block: u is what the update status says of it, nil if nothing, deltas are the names
// of the delete deltas beside it.
func (g *guessedDeletes) entry(u *status.Update, l *status.Load, block string, deltas []string) *status.Update {
	if u != nil && u.Gone() {
		return u
	}
	out := &status.Update{Segment: l.Id(), Block: block, Guessed: true}
	var from, to int64 = math.MaxInt64, -1
	if u != nil {
		out.Actual, out.Stamps = u.Actual, slices.Clone(u.Stamps) // also those that are not there: that is told
		if from, to = span64(u); status.Count64(u.Deleted) > 0 && from == to {
			out.Stamps = []string{u.From}
		}
	}
	after := g.after
	if g.bare[l.Id()] {
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

// span64 are the times of the first and the last delta of an entry; none, if it has none.
func span64(u *status.Update) (from, to int64) {
	from, ok1 := status.Millis(u.From)
	to, ok2 := status.Millis(u.To)
	if !ok1 || !ok2 || status.Count64(u.Deleted) == 0 {
		return math.MaxInt64, -1
	}
	return from, to
}

// getOver tells, when recovering, of a delete delta that cannot be used, once for each name, and lets the rows
// come back. Else the error stays.
func (t *Managed) getOver(name string, err error) error {
	if err == nil || t.saved == nil || !errors.Is(err, fault.Corrupt) {
		return err
	}
	if e := (*fault.Error)(nil); errors.As(err, &e) {
		t.sayOnce(name, layout.Saying("carbon.delete.damaged", e.At, t.Path,
			"%v: it is left out, and rows that it deletes come back", err))
	}
	return nil
}

// sayOnce tells, when recovering, what was done about the file name, which may be asked for again.
func (t *Managed) sayOnce(name string, f region.Finding) {
	t.noting.Lock()
	told := t.told[name]
	if t.told == nil {
		t.told = map[string]bool{}
	}
	t.told[name] = true
	t.noting.Unlock()
	if !told {
		t.saved([]region.Finding{f})
	}
}

// guessLoads are the segments that have a directory below Fact or, as those of partitioned tables, a segment
// file (N_TIME.segment; the latest one holds) or data files in the directories of partitions.
func (t *Managed) guessLoads(ctx context.Context) ([]status.Load, error) {
	found := map[string]*status.Load{}
	add := func(name string) *status.Load {
		if found[name] == nil {
			found[name] = &status.Load{Name: name, Status: status.StatusSuccess}
		}
		return found[name]
	}
	list := func(dir string, give func(info store.Info)) error {
		for info, err := range t.Tree.List(ctx, dir) {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			give(info)
		}
		return nil
	}
	var parts []string
	err := list(path.Join(t.Path, "Fact"), func(info store.Info) { parts = append(parts, info.Name) })
	for _, p := range parts {
		err = errors.Join(err, list(p, func(info store.Info) {
			if name, ok := strings.CutPrefix(path.Base(info.Name), "Segment_"); ok && info.Dir {
				add(name)
			}
		}))
	}
	err = errors.Join(err, list(path.Join(t.Path, "Metadata", "segments"), func(info store.Info) {
		base := path.Base(info.Name)
		if name, _, ok := strings.Cut(base, "_"); ok && strings.HasSuffix(base, ".segment") && !info.Dir {
			if l := add(name); base > l.Segment {
				l.Segment = base
			}
		}
	}))
	err = errors.Join(err, partitionFiles(ctx, t.Tree, t.Path, func(_ string, _, files []string) bool {
		for _, f := range files {
			if of, _ := status.SegmentOf(f); of != "" && strings.HasSuffix(f, layout.DataExt) {
				add(of)
			}
		}
		return true
	}))
	var out []status.Load
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, *found[name])
	}
	return out, err
}
