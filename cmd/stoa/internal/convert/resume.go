package convert

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/cmd/stoa/internal/catchup"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/pieces"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/rerun"
	"stoa/cmd/stoa/internal/source"
	"stoa/fault"
	"stoa/format"
	"stoa/internal/arrowschema"
	"stoa/store/remote"
)

// A table is recorded before it appears: if the run is killed then, the next one knows what it has written, even if the
// sources have less meanwhile. What is there is never replaced unless a run has recorded that it wrote it. A table of
// Iceberg or Delta belongs to everybody as soon as it appears, and is not replaced at all.

// announce records that a table is about to appear.
func (r *allRun) announce(ctx context.Context, t oneTable, one *conversion, s format.Summary) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.vacant(ctx, t, one.out); err != nil { // others may have written there meanwhile
		return err
	}
	if one.total == nil {
		one.rows = one.sum.Sum().Rows
	}
	one.summary = summaryDoc{Altered: s.ByOption, Notes: slices.Concat(s.Notes, one.flat), retyped: s.Retyped}
	d, err := r.entry(t, one, len(one.Losses) > 0)
	if err != nil {
		return err
	}
	d.Told = reading.Tell(0, 0, slices.Concat(one.noticed, s.Altered), nil, one.Losses)
	return r.state.Announce(ctx, r.a, r.dir, d)
}

// unknownLake returns an error if there is a table of a lake that no run has recorded where one is to be written.
func (r *allRun) unknownLake(ctx context.Context, t oneTable) (err error) {
	var kinds []string
	r.unlocked(func() { kinds, err = r.kinds(ctx, t.output) })
	if err != nil || len(kinds) == 0 || r.forced() {
		return err
	}
	at := remote.Shown((&rerun.Table{Output: t.output}).Place(r.dir))
	return &cli.UseError{Message: t.source + ": " + at + " is there already, and no run has recorded that it wrote it",
		Hint: r.remedy(ctx, t.source, t.output, upToDate+" if the source is newer") +
			"; under another name it is out of the way"}
}

// kinds returns the catalogues of which there is one in a directory of the output.
func (r *allRun) kinds(ctx context.Context, output string) ([]string, error) {
	home, err := catchup.At(ctx, r.a.Remote(), (&rerun.Table{Output: output}).Place(r.dir), r.a.SingleWriter)
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
func (r *allRun) earlier(ctx context.Context, t oneTable) (d *rerun.Table, back outcome, announced bool, err error) {
	if isLake(r.c.to) {
		return r.earlierLake(ctx, t)
	}
	return r.settled(ctx, t)
}

func (r *allRun) earlierLake(ctx context.Context, t oneTable) (d *rerun.Table, back outcome, announced bool,
	err error) {
	read := func(d rerun.Table) { r.unlocked(func() { back = r.readEach(ctx, t, d) }) }
	done := r.state.Find(t.source)
	if next := r.state.Announced(t.source); next != nil {
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
	previous, back, announced, err := r.earlier(ctx, t)
	if err = cmp.Or(ctx.Err(), err); previous == nil || err != nil {
		return r.blocked(t, err)
	}
	d := *previous
	same := t.stamped(d.Stamp)
	later := isLake(r.c.to) && r.later(ctx, d)
	if announced && !isLake(r.c.to) {
		if err := r.adopt(ctx, t, &d, &back, same); err != nil {
			return false, err
		}
	}
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
		return true, r.refused(t, d, back, errLake(t, d, d.Place(r.dir), again, later, back,
			r.remedy(ctx, t.source, d.Output, upToDate)))
	}
	if again == "" {
		return true, r.tellAgain(t, d, back)
	}
	if back.Verdict == verdictDiffers && !r.forced() { // it may be somebody else's
		return true, r.refused(t, d, back, r.errOther(t, d))
	}
	r.a.Note("%s: %s: it is converted again", t.source, again)
	if back.Verdict != verdictMissing {
		return false, r.setAside(d, back.Verdict == verdictDiffers)
	}
	r.state.Forget(t.source)
	return false, nil
}

// renew records a table that has the rows of the source now, or that was only announced.
func (r *allRun) renew(ctx context.Context, t oneTable, d *rerun.Table, back *outcome, announced bool) (
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
	return r.record(ctx, d, *back)
}

// doubts adds what verifying the source of a table finds, which the run that was interrupted has not recorded.
func (r *allRun) doubts(ctx context.Context, t oneTable, d *rerun.Table) error {
	one := r.one(t)
	if d.Told == nil {
		d.Told = &reading.Told{}
	}
	src, spec, err := r.open(ctx, t)
	if err != nil {
		return err
	}
	defer src.Close()
	for _, f := range slices.Concat(src.Findings(), d.Told.Findings) { // those that were told before it appeared, too
		if !slices.Contains(one.noticed, f) {
			one.noticed = append(one.noticed, f)
		}
	}
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
func (r *allRun) damagedLake(t oneTable, d rerun.Table, back outcome) error {
	at := remote.Shown(d.Place(r.dir))
	err := &cli.UseError{Message: t.source + ": " + at + " was finished, and cannot be read any more: " +
		strings.TrimPrefix(back.Problem, at+": "), Hint: "stoa verify " + at + " finds what is damaged; --resume " +
		"writes it again where it is gone"}
	worst := r.refused(t, d, back, err)
	r.worst = cli.Worse(r.worst, cli.ErrDamage)
	return worst
}

// refused reports a table that is there, and not as the run that is resumed would have it.
func (r *allRun) refused(t oneTable, d rerun.Table, back outcome, err error) error {
	out := tableOutcome{again: true, kept: &d, err: err, reached: d.Reached, summary: summaryDoc{Source: t.source,
		Output: remote.Shown(d.Place(r.dir)), Rows: d.Rows, Files: back.files, Bytes: back.bytes,
		Readback: &back.readback}}
	if back.Rows != nil {
		out.summary.Rows = *back.Rows
	}
	r.noteTable(t, out)
	return r.failed(t.source, err)
}

// tellLater reports a table that an earlier run has finished, and that was changed since.
func (r *allRun) tellLater(ctx context.Context, t oneTable, d rerun.Table, back outcome) error {
	why := "changed after the run that wrote it, and left as it is; the source has not changed, and " +
		r.remedy(ctx, t.source, d.Output, "would take that back")
	r.a.Note("%s: %s", t.source, why)
	back.Verdict, d.Rows = verdictLater, *back.Rows
	now := rerun.Noted{}
	if d.Noted != nil {
		now = *d.Noted
	}
	now.Notes = append(slices.Clone(now.Notes), why)
	d.Noted = &now
	return r.tellAgain(t, d, back)
}

// appeared returns the catalogues of a table that an earlier run was about to publish. If that run was killed after the
// last of them, all that is missing is that the mark of an unfinished directory is removed.
func (r *allRun) appeared(ctx context.Context, d rerun.Table) ([]string, error) {
	if remote.Is(r.dir) {
		if _, err := r.a.Remote().Unmark(ctx, d.Place(r.dir)); err != nil {
			return nil, err
		}
	}
	return r.kinds(ctx, d.Output)
}

// readEach reads the output of a table back, by each of its catalogues, and writes that of Delta if it is missing.
func (r *allRun) readEach(ctx context.Context, t oneTable, d rerun.Table) outcome {
	back := r.readLake(ctx, d)
	if !isLake(r.c.to) || !strings.Contains(r.c.to, ",") || back.Verdict == verdictMissing {
		return back
	}
	kinds, err := r.kinds(ctx, d.Output)
	switch {
	case len(kinds) == 1 && err == nil:
		back.half = r.complete(ctx, t, d, kinds, back)
	case back.Verdict != verdictDiffers && err == nil:
		d.Catalogue = "delta" // the other is read first
		if other := r.readBack(ctx, d); other.Verdict != back.Verdict {
			return other
		}
	}
	return back
}

// later reports whether a table has later versions than an earlier run wrote.
func (r *allRun) later(ctx context.Context, d rerun.Table) (later bool) {
	r.unlocked(func() {
		o, err := r.lake(ctx, d)
		later = err == nil && o.Home.Later(ctx)
	})
	return later
}

// complete gives a table the catalogue of Delta if the run that wrote it was killed after that of Iceberg. It returns
// why it does not.
func (r *allRun) complete(ctx context.Context, t oneTable, d rerun.Table, kinds []string, back outcome) error {
	at := remote.Shown(d.Place(r.dir))
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
func (r *allRun) addCatalogue(ctx context.Context, d rerun.Table) error {
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
func (r *allRun) lake(ctx context.Context, d rerun.Table) (o catchup.Options, err error) {
	o.Formats = r.a.Formats
	o.Home, err = catchup.At(ctx, r.a.Remote(), d.Place(r.dir), r.a.SingleWriter)
	return o, err
}

// hasRows reports whether a table of a lake has the rows of its source, whose files have changed: it reads them. If not
// all of the source can be read, d is told what this reading has lost.
func (r *allRun) hasRows(ctx context.Context, t oneTable, d *rerun.Table, back *outcome, later bool) (
	has bool) {
	r.unlocked(func() {
		one := r.one(t)
		src, spec, err := r.open(ctx, t)
		if back.unread = err; err != nil {
			return
		}
		defer src.Close()
		if one.DamageFlags.Apply(&spec) != nil {
			return
		}
		rows := int64(0)
		defer func() { r.tellNow(ctx, src, one, rows, back) }()
		scan := func() iter.Seq2[arrow.RecordBatch, error] {
			one.Losses, rows = nil, 0
			return func(yield func(arrow.RecordBatch, error) bool) {
				for b, err := range src.Scan(ctx, spec) {
					if err == nil {
						rows += b.NumRows()
					} else {
						back.unread = err
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

// tellNow keeps what was read of a source whose files have changed.
func (r *allRun) tellNow(ctx context.Context, src *stoa.Table, one *conversion, rows int64, back *outcome) {
	reached, err := rerun.Reached(ctx, src)
	if back.unread = cmp.Or(back.unread, err); err == nil {
		back.now = &rerun.Read{Rows: rows, Reached: reached, Findings: src.Findings(), Losses: one.Losses,
			Nulls: one.Nulls()}
	}
}

// equal reports whether each catalogue of a table has the rows of the source; err says how their columns differ.
func (r *allRun) equal(ctx context.Context, d rerun.Table, sc *arrow.Schema,
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
func (r *allRun) tellAnew(ctx context.Context, t oneTable, d *rerun.Table, one *conversion, src *stoa.Table,
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

// forced reports whether --force was given: what is in the way may be replaced.
func (r *allRun) forced() bool { return r.cmd != nil && r.cmd.Flags().Changed("force") }

// vacant returns an error if something is where a table is to be written and no run has recorded that it wrote the
// table: it is of the user, or of a run whose record is gone.
func (r *allRun) vacant(ctx context.Context, t oneTable, place string) error {
	if isLake(r.c.to) || r.state.Find(t.source) != nil || r.forced() {
		return nil
	}
	taken, err := cli.Taken(ctx, place)
	if err != nil || !taken {
		return err
	}
	hint := "in another directory, both are kept"
	if r.cmd != nil && r.cmd.Flags().Lookup("force") != nil {
		hint = "--force replaces it; " + hint
	}
	return &cli.UseError{Message: t.source + ": " + remote.Shown(place) + " is there already, and no run has " +
		"recorded that it wrote it", Hint: hint}
}

// announcing returns what records that a table that was announced is about to be moved to another place in the output.
func (r *allRun) announcing(ctx context.Context, t oneTable) func(output string) error {
	return func(output string) error {
		next := r.state.Announced(t.source)
		if next == nil {
			return nil
		}
		d := *next
		d.Output = output
		return r.state.Announce(ctx, r.a, r.dir, d)
	}
}

// settled returns what an earlier run has recorded of a table, with what is there now: nil if there is nothing. If a
// run was killed around the moment at which the table appeared, that is decided here.
func (r *allRun) settled(ctx context.Context, t oneTable) (d *rerun.Table, back outcome, announced bool, err error) {
	done, next := r.state.Find(t.source), r.state.Announced(t.source)
	if next != nil {
		d := *next
		appeared := false
		if r.unlocked(func() { appeared, err = r.published(ctx, t, &d, done, &back) }); err != nil {
			return nil, back, false, err
		}
		if appeared && (done == nil || r.replaces(t, &d, done)) {
			return &d, back, true, nil
		}
		if appeared && d.Output != done.Output {
			if err := os.RemoveAll(d.Place(r.dir)); err != nil {
				return nil, back, false, err
			}
		}
		r.state.Drop(rerun.SourceKey(d.Source, r.state.From))
	}
	if done == nil {
		return nil, back, false, nil
	}
	previous := *done
	if err := r.putBack(previous); err != nil {
		return nil, back, false, err
	}
	r.unlocked(func() { back = r.readLake(ctx, previous) })
	return &previous, back, false, nil
}

// published reports whether a table that was announced has appeared; back is what is there. done is what was there
// before; nil if there was nothing.
func (r *allRun) published(ctx context.Context, t oneTable, next, done *rerun.Table, back *outcome) (bool, error) {
	if err := r.moved(t, next); err != nil {
		return false, err
	}
	if done != nil && !remote.Is(r.dir) {
		place, aside := r.asideOf(*done)
		old, err := os.Stat(aside)
		if is, none := os.Stat(place); err == nil && none == nil && os.SameFile(is, old) {
			return false, nil
		}
	}
	*back = r.readBack(ctx, *next)
	return back.Verdict != verdictMissing && back.Verdict != verdictDiffers, ctx.Err()
}

// moved gives a backup that has appeared its place in the common root, if the run was killed before.
func (r *allRun) moved(t oneTable, next *rerun.Table) error {
	if r.c.levels == 0 {
		return nil
	}
	one := &conversion{levels: r.c.levels}
	one.out = filepath.Join(r.dir, t.output)
	to := filepath.Join(r.dir, next.Output)
	if _, err := os.Lstat(to); next.Output != t.output && err == nil { // what is left is empty
		_ = os.Remove(filepath.Join(one.out, filepath.Dir(next.Output)))
		_ = os.Remove(one.out)
		return nil
	}
	if next.Output != t.output {
		if _, err := os.Lstat(filepath.Join(one.out, next.Output)); err != nil {
			return nil
		}
	} else if _, err := os.Lstat(to); err != nil {
		return nil
	}
	err := one.shareRoot(r.dir, func(output string) error { return r.beside(t, output) })
	next.Output = one.output(r.dir)
	return err
}

// replaces reports whether a table that has appeared replaces that of the run before. If the sources are still those
// that were read, it is written again instead: then all is known of it.
func (r *allRun) replaces(t oneTable, next, done *rerun.Table) bool {
	if remote.Is(r.dir) { // that was decided before it appeared
		return true
	}
	_, aside := r.asideOf(*done)
	now := next.Read()
	now.Nulls = r.c.Nulls()
	if _, err := os.Lstat(aside); err == nil && (t.stamped(next.Stamp) ||
		now.Poorer(done.Read(), r.c.salvage) != "") {
		return false
	}
	return os.RemoveAll(aside) == nil
}

// adopt records a table that was only announced, and has appeared, as done. same: its sources are those that were read.
func (r *allRun) adopt(ctx context.Context, t oneTable, d *rerun.Table, back *outcome, same bool) (err error) {
	place := d.Place(r.dir)
	if r.assembly != nil {
		if d.Table, err = r.assembly.Check(ctx, place); err != nil {
			return err
		}
	}
	if !same {
		err = r.record(ctx, d, *back)
	} else {
		err = r.renew(ctx, t, d, back, true)
	}
	if err == nil && len(d.Pieces) > 0 {
		_ = os.Remove(filepath.Join(place, pieces.JournalFile))
	}
	return err
}
