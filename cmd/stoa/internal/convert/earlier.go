package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stoa"
	"stoa/cmd/stoa/internal/catchup"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/pieces"
	"stoa/cmd/stoa/internal/rerun"
	"stoa/format"
	"stoa/region"
	"stoa/store"
	"stoa/store/remote"
)

// A disk may die between two runs. What a run has written is then the only copy of these rows: a resumed run never
// replaces it by less, and reports it even if its table is not there any more.

// earlierMark begins the name to which the output of an earlier run is moved while its table is written again.
const earlierMark = ".stoa-earlier-"

func (r *allRun) asideOf(d rerun.Table) (place, aside string) {
	place = filepath.Join(r.dir, d.Output)
	return place, filepath.Join(r.dir, earlierMark+strings.ReplaceAll(d.Output, "/", "_"))
}

// setAside keeps the output of an earlier run until its table is written again. A file keeps its name, too; an object
// is not replaced before it is known that what was read is not poorer (see conversion.earlier). What is other than that
// run wrote may be a file where a directory will be: it loses its name.
func (r *allRun) setAside(d rerun.Table, other bool) error {
	if remote.Is(r.dir) {
		return nil
	}
	place, aside := r.asideOf(d)
	if !other && os.Link(place, aside) == nil {
		return nil
	}
	return os.Rename(place, aside)
}

// putBack gives the output of an earlier run its name again.
func (r *allRun) putBack(d rerun.Table) error {
	place, aside := r.asideOf(d)
	if _, err := os.Lstat(aside); err != nil || remote.Is(r.dir) {
		return nil
	}
	if err := os.RemoveAll(place); err != nil {
		return err
	}
	return os.Rename(aside, place)
}

// poorer says why the table that was written now, or not because of err, does not replace that of an earlier run; "" if
// it does. Only rescue takes damage for granted: elsewhere, fewer rows without damage were deleted.
func (c *conversion) poorer(d rerun.Table, err error) string {
	const give = "the sources now give "
	const remove = "; without it, or with --force, --resume writes the table anew"
	var poor *rerun.PoorError
	switch {
	case errors.As(err, &poor):
		return poor.Why
	case err != nil && !errors.Is(err, cli.ErrDamage):
		return give + "less, nothing: " + cli.InFlags(cli.Line(err)) + remove
	}
	then, now := d.Read(), rerun.Read{Rows: c.rows, Reached: c.reached, Losses: c.Losses, Nulls: c.Nulls()}
	if d.Told != nil {
		now.Findings = c.noticed
	}
	if now.Unknown(then) && !c.force && !c.same {
		return "that run did not record how far it had read the sources, which have changed, so that nobody knows " +
			"which is newer; --force, or another directory, writes what they have now"
	}
	if why := now.Poorer(then, c.salvage || err != nil); why != "" && !c.force {
		return give + why + remove
	}
	return ""
}

// notPoorer returns an error, before the output appears at an address, if it is poorer than that of an earlier run.
func (c *conversion) notPoorer(ctx context.Context, t *stoa.Table) (err error) {
	c.noticed = t.Findings()
	if c.reached, err = rerun.Reached(ctx, t); err != nil || c.earlier == nil {
		return err
	}
	if why := c.poorer(*c.earlier, nil); why != "" {
		return &rerun.PoorError{Why: why}
	}
	return nil
}

// kept reports whether what an earlier run wrote stays, which was set aside while its table was written again; err says
// how that ended. It is true, too, if the run was interrupted.
func (r *allRun) kept(ctx context.Context, t oneTable, one *conversion, err error) (bool, error) {
	d := r.state.Find(t.source) // what was not set aside was forgotten
	switch {
	case d == nil && ctx.Err() != nil:
		return true, err
	case d == nil:
		return false, nil
	case ctx.Err() != nil:
		return true, errors.Join(err, r.putBack(*d))
	}
	if err != nil && !errors.Is(err, cli.ErrDamage) {
		r.state.Failed = append(r.state.Failed, rerun.Failed{Source: t.source, Failed: cli.InFlags(cli.Line(err))})
	}
	if less := one.poorer(*d, err); less != "" {
		return true, errors.Join(one.dropped(d.Place(r.dir), err), r.keep(t, *d, less, one.aside))
	}
	_, aside := r.asideOf(*d)
	r.state.Forget(t.source)
	return false, os.RemoveAll(aside)
}

// dropped removes what was begun and, if err says that it appeared, what was written beside the earlier run's place.
func (c *conversion) dropped(place string, err error) error {
	begun := os.RemoveAll(strings.TrimSuffix(c.out, c.ext) + catchup.Unfinished)
	if c.out == place || err != nil && !errors.Is(err, cli.ErrDamage) {
		return begun
	}
	return errors.Join(begun, os.RemoveAll(c.out))
}

// keep puts the output of an earlier run back if the one that was written now is less, and reports it.
func (r *allRun) keep(t oneTable, d rerun.Table, less string, aside []region.Finding) error {
	if err := r.putBack(d); err != nil {
		return err
	}
	return r.tellEarlier(t, d, fmt.Sprintf("what an earlier run wrote is kept (%s): %s", display.Count(d.Rows, "row"),
		less), aside)
}

// errOther is the error about something that is not what an earlier run has written, in place of it.
func (r *allRun) errOther(t oneTable, d rerun.Table) error {
	hint := "move it away, and --resume writes the table anew"
	if r.cmd != nil && r.cmd.Flags().Lookup("force") != nil {
		hint += "; --force replaces it"
	}
	return &cli.UseError{Message: t.source + ": " + remote.Shown(d.Place(r.dir)) + " is not what an earlier run " +
		"wrote: it was changed since, or is somebody else's", Hint: hint}
}

// tellEarlier reports a table of an earlier run that is not what the sources have now, and why. aside are findings of
// its place, as it is now, about other tables.
func (r *allRun) tellEarlier(t oneTable, d rerun.Table, what string, aside []region.Finding) error {
	why := &rerun.EarlierError{Text: remote.Shown(d.Place(r.dir)) + ": " + what}
	var back outcome
	r.unlocked(func() { back = r.readBack(context.Background(), d) })
	out := tableOutcome{again: true, kept: &d, err: why, reached: d.Reached, summary: summaryDoc{Source: t.source,
		Rows: d.Rows, Output: remote.Shown(d.Place(r.dir)), Files: back.files, Bytes: back.bytes,
		Readback: &back.readback, Pieces: d.Pieces}}
	if d.Told != nil {
		out.findings, out.aside, out.losses = d.Told.Findings, aside, d.Told.Lost()
		r.lost(out)
	}
	r.printError(why)
	r.noteTable(t, out)
	return r.add(out.summary)
}

// vanished reports the tables of earlier runs that are in places of this run, and not there any more.
func (r *allRun) vanished(tables []oneTable) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := map[string]bool{}
	for _, t := range tables {
		now[r.state.KeyOf(t.source)] = true
	}
	for _, d := range r.state.Current() {
		if now[rerun.SourceKey(d.Source, r.state.From)] {
			continue
		}
		if err := r.putBack(d); err != nil {
			return err
		}
		if _, err := r.a.Stat(context.Background(), cli.WithoutTable(d.Place(r.dir))); errors.Is(err, fs.ErrNotExist) {
			r.state.Removed(d) // it was removed on purpose
			continue
		}
		why := "an earlier run wrote it, and its sources are not there any more; remove it if that is expected"
		for _, t := range tables {
			if sharesWith(&d, t) {
				why = fmt.Sprintf("an earlier run wrote it, and its source is now read as %s, which may have less or "+
					"older rows: compare the two before one of them is removed", t.source)
			}
		}
		t := oneTable{source: d.Source, table: d.Name, id: d.ID}
		if err := r.tellEarlier(t, d, why, nil); err != nil {
			return err
		}
	}
	return nil
}

// sharesWith reports whether a table of this run is one of an earlier run under another name, or has parts of it.
func sharesWith(d *rerun.Table, t oneTable) bool {
	return t.id != "" && t.id == d.ID || slices.Contains(d.Parts, t.table) || slices.Contains(t.parts, d.Name) ||
		slices.ContainsFunc(t.parts, func(p string) bool { return slices.Contains(d.Parts, p) })
}

// leftovers removes what killed runs have begun of tables that are done: these are not written again, and nothing else
// would remove it. It reports outputs of earlier runs that were set aside and of which there is no record any more.
func (r *allRun) leftovers(tables []oneTable) error {
	if remote.Is(r.dir) {
		return nil
	}
	for _, t := range tables {
		place := filepath.Join(r.dir, t.output)
		store.Local{}.Sweep(place)
		begun := strings.TrimSuffix(place, r.c.ext) + catchup.Unfinished
		if r.state.Find(t.source) == nil || !r.begunByStoa(begun) {
			continue
		}
		if err := os.RemoveAll(begun); err != nil {
			return err
		}
	}
	all, err := os.ReadDir(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range all {
		if !strings.HasPrefix(e.Name(), earlierMark) {
			continue
		}
		name := filepath.Join(r.dir, e.Name())
		why := &rerun.EarlierError{Text: name + ": an earlier run wrote it, and a later one set it aside and was " +
			"killed; no record says of which table it is, and it may have rows that nothing else has: compare it, " +
			"and remove it or give it another name"}
		r.printError(why)
		r.noteTable(oneTable{source: name}, tableOutcome{err: why})
	}
	return err
}

// begunByStoa reports whether a directory has the journal of a run that writes a table in several files, and nothing
// besides such files.
func (r *allRun) begunByStoa(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, pieces.JournalFile)); err != nil {
		return false
	}
	all, err := os.ReadDir(dir)
	other := func(e os.DirEntry) bool {
		return !strings.HasPrefix(e.Name(), ".stoa-") && !(r.c.ext != "" && strings.HasSuffix(e.Name(), r.c.ext))
	}
	return err == nil && !slices.ContainsFunc(all, other)
}

// foreign reports whether what is in the place of a table that has rows is certainly not of the format of the run.
func (r *allRun) foreign(ctx context.Context, d rerun.Table) bool {
	f := r.a.Format(r.c.to)
	if f == nil || d.Rows == 0 || len(d.Pieces) > 0 {
		return false
	}
	if info, err := r.a.Stat(ctx, d.Place(r.dir)); err == nil && !info.Dir && f.Levels > 0 {
		return true // its tables are directories
	}
	if f.Probe == nil {
		return false
	}
	m, err := f.Probe(ctx, format.Target{Tree: store.Roots(cli.Tree{A: r.a}), Name: d.Place(r.dir)})
	return err == nil && m == format.No
}
