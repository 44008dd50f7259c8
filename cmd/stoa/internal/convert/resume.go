package convert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/cmd/stoa/internal/catchup"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/rerun"
	"stoa/cmd/stoa/internal/source"
	"stoa/fault"
	"stoa/format"
	"stoa/internal/arrowschema"
	"stoa/store/remote"
)

// A table of Iceberg or Delta belongs to everybody as soon as it appears: other engines may add rows to it before the
// run that wrote it has recorded that. So it is recorded before, and a table that is there is never replaced unless a
// run has recorded that it wrote it, and what is there is that.

// announce records that a table is about to appear.
func (r *allRun) announce(ctx context.Context, t oneTable, one *conversion, s format.Summary) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	one.rows = one.sum.Sum().Rows
	one.summary = summaryDoc{Altered: s.ByOption, Notes: slices.Concat(s.Notes, one.flat), retyped: s.Retyped}
	d, err := r.entry(t, one, len(one.Losses) > 0)
	if err != nil {
		return err
	}
	d.Told = reading.Tell(0, 0, s.Altered, nil, one.Losses)
	return r.state.announce(ctx, r.a, r.dir, d)
}

// unknownLake returns an error if there is a table of a lake that no run has recorded where one is to be written.
func (r *allRun) unknownLake(ctx context.Context, t oneTable) (err error) {
	var kinds []string
	r.unlocked(func() { kinds, err = r.kinds(ctx, t.output) })
	if err != nil || len(kinds) == 0 || r.cmd != nil && r.cmd.Flags().Changed("force") {
		return err
	}
	at := remote.Shown((&doneTable{Output: t.output}).place(r.dir))
	return &cli.UseError{Message: t.source + ": " + at + " is there already, and no run has recorded that it wrote it",
		Hint: r.remedy(ctx, t.source, t.output) + "; under another name it is out of the way"}
}

// kinds returns the catalogues of which there is one in a directory of the output.
func (r *allRun) kinds(ctx context.Context, output string) ([]string, error) {
	home, err := catchup.At(ctx, r.a.Remote(), (&doneTable{Output: output}).place(r.dir), r.a.SingleWriter)
	if err != nil {
		return nil, err
	}
	kinds, err := home.Kinds(ctx)
	if remote.IsUnfinished(err) { // it has not appeared
		return nil, nil
	}
	return kinds, err
}

// earlier returns what an earlier run has recorded of a table, as it is now: nil if there is nothing. A table that was
// only announced counts if it is there.
func (r *allRun) earlier(ctx context.Context, t oneTable) (d *doneTable, back outcome, announced bool, err error) {
	read := func(d doneTable) { r.unlocked(func() { back = r.readEach(ctx, t, d) }) }
	done := r.state.find(t)
	if next := r.state.next(t); next != nil {
		d := *next
		var kinds []string
		if r.unlocked(func() { kinds, err = r.appeared(ctx, d) }); err != nil {
			return nil, back, false, err
		}
		if len(kinds) > 0 { // else it did not appear
			read(d)
			if done == nil || back.Verdict != verdictDiffers && back.half == nil { // else it is what was there before
				return &d, back, true, nil
			}
		}
	}
	if done == nil {
		return nil, back, false, nil
	}
	previous := *done
	read(previous)
	return &previous, back, false, nil
}

// doneBefore reports whether an earlier run has finished the table and its output is unchanged since. Otherwise it
// removes the earlier run's output.
func (r *allRun) doneBefore(ctx context.Context, t oneTable) (done bool, err error) {
	if d := r.state.find(t); d != nil {
		if err := r.putBack(*d); err != nil { // a run was killed
			return false, err
		}
	}
	previous, back, announced, err := r.earlier(ctx, t)
	if err = cmp.Or(ctx.Err(), err); previous == nil || err != nil {
		return false, err
	}
	d := *previous
	same := t.stamped(d.Stamp)
	later := isLake(r.c.to) && r.later(ctx, d)
	if (isLake(r.c.to) || d.Taken) && back.Verdict != verdictMissing {
		if back.Problem != "" && !d.Taken {
			return true, r.damagedLake(t, d, back)
		}
		if back.half != nil {
			return true, r.refused(t, d, back, back.half)
		}
		if announced && same && back.Verdict != verdictDiffers || !same && r.hasRows(ctx, t, &d, &back, later) {
			if err := r.renew(ctx, t, &d, &back, announced); err != nil {
				return false, err
			}
			same, later = true, false
		}
	}
	again := map[string]string{verdictDiffers: "what an earlier run wrote differs",
		verdictMissing: "what an earlier run wrote is gone"}[back.Verdict]
	if !same {
		of := cmp.Or(append(t.entry.Dirs, t.entry.Place, t.source)...)
		again = "the files of " + of + " are not those that an earlier run has read"
	}
	if d.Damaged && !(d.Told != nil && (d.Taken || isLake(r.c.to))) { // what others may read is not tried again
		again = "an earlier run could not read all of it"
	}
	if again != "" && d.Taken {
		return true, r.refused(t, d, back, errTaken(d, again))
	}
	if again != "" && back.Verdict != verdictMissing && isLake(r.c.to) {
		if later && same && back.Rows != nil {
			return true, r.tellLater(ctx, t, d, back)
		}
		return true, r.refused(t, d, back, errLake(t, d.place(r.dir), again, later, back.columns,
			r.remedy(ctx, t.source, d.Output)))
	}
	if again == "" {
		return true, r.tellAgain(t, d, back)
	}
	r.a.Note("%s: %s: it is converted again", t.source, again)
	if back.Verdict != verdictDiffers && back.Verdict != verdictMissing {
		return false, r.setAside(d)
	}
	if err := r.c.discard(d.Output); err != nil {
		return false, err
	}
	r.state.forget(t)
	return false, nil
}

// renew records a table that has the rows of the source now, or that was only announced.
func (r *allRun) renew(ctx context.Context, t oneTable, d *doneTable, back *outcome, announced bool) (
	err error) {
	d.Source, d.Stamp = t.source, t.stamp
	if back.ReadChecksum != "" {
		d.Rows, d.Checksum = *back.Rows, back.ReadChecksum
		back.Checksum, back.Verdict = back.ReadChecksum, verdictEqual
	}
	if announced {
		if r.unlocked(func() { err = r.doubts(ctx, t, d) }); err != nil {
			return err
		}
	}
	return r.state.record(ctx, r.a, r.dir, *d)
}

// doubts adds what verifying the source of a table finds, which the run that was interrupted has not recorded.
func (r *allRun) doubts(ctx context.Context, t oneTable, d *doneTable) error {
	one := r.one(t)
	if d.Told == nil {
		d.Told = &reading.Told{}
	}
	src, spec, err := r.open(ctx, t)
	if err != nil {
		return err
	}
	defer src.Close()
	one.noticed = slices.Concat(src.Findings(), d.Told.Findings)
	err = one.verifySources(r.a, ctx, src, []string{t.source}, t.opening, spec)
	err = one.DamageFlags.Report(ctx, r.a, []string{t.source}, one.noticed, err)
	d.Told.Findings, d.Told.Aside = one.noticed, slices.Concat(d.Told.Aside, one.aside)
	if errors.Is(err, cli.ErrDamage) {
		d.Damaged, err = true, nil
	}
	return err
}

// open opens the source of a table.
func (r *allRun) open(ctx context.Context, t oneTable) (*stoa.Table, stoa.ScanSpec, error) {
	spec, err := r.c.SelectFlags.Spec()
	if err != nil {
		return nil, spec, err
	}
	oo := t.opening
	oo.Recover = r.c.salvage
	src, err := source.OpenAll(r.a, ctx, []string{t.source}, oo)
	if err != nil {
		return nil, spec, err
	}
	spec.Columns, err = source.ExpandColumns(src.Schema().Fields(), spec.Columns)
	return src, spec, err
}

// damagedLake reports a table that an earlier run has finished, and that cannot be read any more.
func (r *allRun) damagedLake(t oneTable, d doneTable, back outcome) error {
	at := remote.Shown(d.place(r.dir))
	err := &cli.UseError{Message: t.source + ": " + at + " was finished, and cannot be read any more: " +
		strings.TrimPrefix(back.Problem, at+": "), Hint: "stoa verify " + at + " finds what is damaged; --resume " +
		"writes it again where it is gone"}
	worst := r.refused(t, d, back, err)
	r.worst = cli.Worse(r.worst, cli.ErrDamage)
	return worst
}

// refused reports a table that is there, and not as the run that is resumed would have it.
func (r *allRun) refused(t oneTable, d doneTable, back outcome, err error) error {
	out := tableOutcome{again: true, err: err, reached: d.Reached, summary: summaryDoc{Source: t.source,
		Output: remote.Shown(d.place(r.dir)), Rows: d.Rows, Files: back.files, Bytes: back.bytes,
		Readback: &back.readback}}
	if back.Rows != nil {
		out.summary.Rows = *back.Rows
	}
	r.noteTable(t, out)
	return r.failed(t.source, err)
}

// tellLater reports a table that an earlier run has finished, and that was changed since.
func (r *allRun) tellLater(ctx context.Context, t oneTable, d doneTable, back outcome) error {
	why := "changed after the run that wrote it, and left as it is; " + r.remedy(ctx, t.source, d.Output)
	r.a.Note("%s: %s", t.source, why)
	back.Verdict, d.Rows = verdictLater, *back.Rows
	now := noted{}
	if d.Noted != nil {
		now = *d.Noted
	}
	now.Notes = append(slices.Clone(now.Notes), why)
	d.Noted = &now
	return r.tellAgain(t, d, back)
}

// appeared returns the catalogues of a table that an earlier run was about to publish. If that run was killed after the
// last of them, all that is missing is that the mark of an unfinished directory is removed.
func (r *allRun) appeared(ctx context.Context, d doneTable) ([]string, error) {
	if remote.Is(r.dir) {
		if _, err := r.a.Remote().Unmark(ctx, d.place(r.dir)); err != nil {
			return nil, err
		}
	}
	return r.kinds(ctx, d.Output)
}

// readEach reads the output of a table back, by each of its catalogues, and writes that of Delta if it is missing.
func (r *allRun) readEach(ctx context.Context, t oneTable, d doneTable) outcome {
	back := readBack(r.a, ctx, r.dir, d)
	if !isLake(r.c.to) || !strings.Contains(r.c.to, ",") || back.Verdict == verdictMissing {
		return back
	}
	kinds, err := r.kinds(ctx, d.Output)
	switch {
	case len(kinds) == 1 && err == nil:
		back.half = r.complete(ctx, t, d, kinds, back)
	case back.Verdict != verdictDiffers && err == nil:
		d.from = "delta" // the other is read first
		if other := readBack(r.a, ctx, r.dir, d); other.Verdict != back.Verdict {
			return other
		}
	}
	return back
}

// later reports whether a table has later versions than an earlier run wrote.
func (r *allRun) later(ctx context.Context, d doneTable) (later bool) {
	r.unlocked(func() {
		o, err := r.lake(ctx, d)
		later = err == nil && o.Home.Later(ctx)
	})
	return later
}

// complete gives a table the catalogue of Delta if the run that wrote it was killed after that of Iceberg. It returns
// why it does not.
func (r *allRun) complete(ctx context.Context, t oneTable, d doneTable, kinds []string, back outcome) error {
	at := remote.Shown(d.place(r.dir))
	if back.Problem != "" {
		return nil // that is worse
	}
	var err error = fault.Invalidf("it has no catalogue of Iceberg")
	if kinds[0] == "iceberg" && (back.Verdict == verdictEqual || back.Verdict == verdictRows) {
		if err = r.addCatalogue(ctx, d); err == nil {
			r.a.Note("%s: %s had the catalogue of Iceberg alone: that of Delta is written over the same files",
				t.source, at)
			return nil
		}
	} else if kinds[0] == "iceberg" {
		err = fault.Invalidf("its rows are not those that were written")
	}
	if !errors.Is(err, fault.Invalid) {
		return err
	}
	return &cli.UseError{Message: t.source + ": " + at + " has the catalogue of " + kinds[0] + " alone, as a run was " +
		"killed between the two, and the other one is not added, as it was changed since (" + cli.Line(err) + "); " +
		"stoa convert " + t.source + " --to " + r.c.to + " -o OTHER writes it with both under another name, and " +
		"so does --resume under this one after the table was moved"}
}

// addCatalogue writes the second catalogue of a table.
func (r *allRun) addCatalogue(ctx context.Context, d doneTable) error {
	o, err := r.lake(ctx, d)
	if err != nil {
		return err
	}
	if o.Schema, err = arrowschema.Decode(d.Arrow); err != nil {
		return err
	}
	return catchup.Complete(ctx, o, d.Checksum)
}

// lake returns the options by which the output of a table is read as a lake.
func (r *allRun) lake(ctx context.Context, d doneTable) (o catchup.Options, err error) {
	o.Formats = r.a.Formats
	o.Home, err = catchup.At(ctx, r.a.Remote(), d.place(r.dir), r.a.SingleWriter)
	return o, err
}

// hasRows reports whether a table of a lake has the rows of its source, whose files have changed: it reads them. If not
// all of the source can be read, d is told what this reading has lost.
func (r *allRun) hasRows(ctx context.Context, t oneTable, d *doneTable, back *outcome, later bool) (
	has bool) {
	r.unlocked(func() {
		one := r.one(t)
		src, spec, err := r.open(ctx, t)
		if err != nil {
			return
		}
		defer src.Close()
		if one.DamageFlags.Apply(&spec) != nil {
			return
		}
		rows := int64(0)
		scan := func() iter.Seq2[arrow.RecordBatch, error] {
			one.Losses, rows = nil, 0
			return func(yield func(arrow.RecordBatch, error) bool) {
				for b, err := range src.Scan(ctx, spec) {
					if err == nil {
						rows += b.NumRows()
					}
					if !yield(b, err) {
						return
					}
				}
			}
		}
		sc, err := src.ScanSchema(spec)
		if err != nil {
			return
		}
		if d.Taken || back.ReadChecksum == "" && !later { // its types allow no other comparison
			was, err := arrowschema.Decode(d.Arrow)
			has = err == nil && catchup.Reread(was, d.Checksum, sc, scan())
		} else {
			has, back.columns = r.equal(ctx, *d, sc, scan)
		}
		if has && (r.c.salvage || d.Damaged || len(one.Losses) > 0) {
			has = r.tellAnew(ctx, t, d, one, src, spec, rows) == nil
		}
	})
	return has
}

// equal reports whether each catalogue of a table has the rows of the source; err says how their columns differ.
func (r *allRun) equal(ctx context.Context, d doneTable, sc *arrow.Schema,
	scan func() iter.Seq2[arrow.RecordBatch, error]) (has bool, err error) {
	o, err := r.lake(ctx, d)
	o.Schema, o.Rows = sc, scan
	for _, kind := range strings.Split(r.c.to, ",") {
		same := false
		if o.Delta = kind == "delta"; err == nil {
			same, err = catchup.Same(ctx, o)
		}
		if errors.Is(err, fault.Invalid) {
			return false, err
		}
		if !same || err != nil {
			return false, nil
		}
	}
	return true, nil
}

// tellAnew records what reading and verifying a source finds now, of which rows have been read.
func (r *allRun) tellAnew(ctx context.Context, t oneTable, d *doneTable, one *conversion, src *stoa.Table,
	spec stoa.ScanSpec, rows int64) (err error) {
	if one.salvage {
		err = one.account(ctx, r.a, src, spec, rows)
	}
	one.noticed = slices.Concat(src.Findings(), one.altered)
	if err == nil {
		err = one.verifySources(r.a, ctx, src, []string{t.source}, t.opening, spec)
	}
	err = one.DamageFlags.Report(ctx, r.a, []string{t.source}, one.noticed, err)
	if d.Damaged = errors.Is(err, cli.ErrDamage); err != nil && !d.Damaged {
		return err
	}
	was := reading.Told{}
	if d.Told != nil {
		was = *d.Told
	}
	d.Told = reading.Tell(was.Files, was.Bytes, one.noticed, one.aside, one.Losses)
	return nil
}

// errUnfinished is the error about a table that cannot be written where an interrupted run has left a part of it.
func errUnfinished(t oneTable, at string) error {
	return &cli.UseError{Message: t.source + ": " + at + " is being written, or its writing was interrupted; " +
		"if no other run is writing there, stoa clean " + at + " --older-than 1s removes what was left, and --resume " +
		"then writes the table"}
}

// A disk may die between two runs. What a run has written is then the only copy of these rows: a resumed run never
// replaces it by less, and reports it even if its table is not there any more.

// earlierMark begins the name to which the output of an earlier run is moved while its table is written again.
const earlierMark = ".stoa-earlier-"

func (r *allRun) asideOf(d doneTable) (place, aside string) {
	place = filepath.Join(r.dir, d.Output)
	return place, filepath.Join(r.dir, earlierMark+strings.ReplaceAll(d.Output, "/", "_"))
}

// setAside keeps the output of an earlier run until its table is written again. A file keeps its name, too; an object
// is not replaced before it is known that what was read is not poorer (see conversion.earlier).
func (r *allRun) setAside(d doneTable) error {
	if remote.Is(r.dir) {
		return nil
	}
	place, aside := r.asideOf(d)
	if os.Link(place, aside) == nil {
		return nil
	}
	return os.Rename(place, aside)
}

// putBack gives the output of an earlier run its name again.
func (r *allRun) putBack(d doneTable) error {
	place, aside := r.asideOf(d)
	if _, err := os.Lstat(aside); err != nil || remote.Is(r.dir) {
		return nil
	}
	if err := os.RemoveAll(place); err != nil {
		return err
	}
	return os.Rename(aside, place)
}

// poorer says in what the table that was written now, or not because of err, is poorer than that of an earlier run; ""
// if it is not. Only rescue takes damage for granted: elsewhere, fewer rows without damage were deleted.
func (c *conversion) poorer(d doneTable, err error) string {
	var poor *rerun.PoorError
	switch {
	case errors.As(err, &poor):
		return poor.Why
	case err != nil && !errors.Is(err, cli.ErrDamage):
		return "nothing: " + cli.InFlags(cli.Line(err))
	}
	then := rerun.Read{Rows: d.Rows, Reached: d.Reached, Losses: d.Told.Lost()}
	now := rerun.Read{Rows: c.rows, Reached: c.reached, Losses: c.Losses}
	if d.Told != nil {
		then.Findings, now.Findings = d.Told.Findings, c.noticed
	}
	return now.Poorer(&then, c.salvage || err != nil)
}

// notPoorer returns an error, before the output appears at an address, if it is poorer than that of an earlier run.
func (c *conversion) notPoorer(ctx context.Context, t *stoa.Table) (err error) {
	if c.reached, err = rerun.Reached(ctx, t); err != nil || c.earlier == nil {
		return err
	}
	c.noticed = t.Findings()
	if why := c.poorer(*c.earlier, nil); why != "" {
		return &rerun.PoorError{Why: why}
	}
	return nil
}

// kept reports whether what an earlier run wrote stays, which was set aside while its table was written again; err says
// how that ended. It is true, too, if the run was interrupted.
func (r *allRun) kept(ctx context.Context, t oneTable, one *conversion, err error) (bool, error) {
	d := r.state.find(t) // what was not set aside was forgotten
	switch {
	case d == nil && ctx.Err() != nil:
		return true, err
	case d == nil:
		return false, nil
	case ctx.Err() != nil:
		return true, errors.Join(err, r.putBack(*d))
	}
	if err != nil && !errors.Is(err, cli.ErrDamage) {
		r.state.Failed = append(r.state.Failed, failedTable{Source: t.source, Failed: cli.InFlags(cli.Line(err))})
	}
	if less := one.poorer(*d, err); less != "" {
		return true, errors.Join(one.dropped(d.place(r.dir), err), r.keep(t, *d, less))
	}
	_, aside := r.asideOf(*d)
	r.state.forget(t)
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
func (r *allRun) keep(t oneTable, d doneTable, less string) error {
	if err := r.putBack(d); err != nil {
		return err
	}
	return r.tellEarlier(t, d, fmt.Sprintf("what an earlier run wrote is kept (%s): the sources now give less, %s; "+
		"without it --resume writes the table anew", display.Count(d.Rows, "row"), less))
}

// tellEarlier reports a table of an earlier run that is not what the sources have now, and why.
func (r *allRun) tellEarlier(t oneTable, d doneTable, what string) error {
	why := &rerun.EarlierError{Text: remote.Shown(d.place(r.dir)) + ": " + what}
	var back outcome
	r.unlocked(func() { back = readBack(r.a, context.Background(), r.dir, d) })
	out := tableOutcome{again: true, err: why, reached: d.Reached, summary: summaryDoc{Source: t.source, Rows: d.Rows,
		Output: remote.Shown(d.place(r.dir)), Files: back.files, Bytes: back.bytes, Readback: &back.readback,
		Pieces: d.Pieces}}
	if d.Told != nil {
		out.findings, out.aside, out.losses = d.Told.Findings, d.Told.Aside, d.Told.Lost()
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
		now[r.state.keyOf(t.source)] = true
	}
	for i, d := range slices.Clone(r.state.Done) {
		key := rerun.SourceKey(d.Source, r.state.From)
		if at, ok := r.state.at[key]; !ok || at != i || now[key] {
			continue
		}
		if err := r.putBack(d); err != nil {
			return err
		}
		if _, err := r.a.Stat(context.Background(), cli.WithoutTable(d.place(r.dir))); errors.Is(err, fs.ErrNotExist) {
			delete(r.state.at, key) // it was removed on purpose
			continue
		}
		why := "an earlier run wrote it, and its sources are not there any more; remove it if that is expected"
		for _, t := range tables {
			if d.sharesWith(t) {
				why = fmt.Sprintf("an earlier run wrote it, and its source is now read as %s, which may have less or "+
					"older rows: compare the two before one of them is removed", t.source)
			}
		}
		t := oneTable{source: d.Source, table: d.Name, id: d.ID}
		if err := r.tellEarlier(t, d, why); err != nil {
			return err
		}
	}
	return nil
}

// sharesWith reports whether a table of this run is one of an earlier run under another name, or has parts of it.
func (d *doneTable) sharesWith(t oneTable) bool {
	return t.id != "" && t.id == d.ID || slices.Contains(d.Parts, t.table) ||
		slices.ContainsFunc(t.parts, func(p string) bool { return slices.Contains(d.Parts, p) })
}
