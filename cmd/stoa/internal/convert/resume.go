package convert

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"stoa"
	"stoa/cmd/stoa/internal/catchup"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/source"
	"stoa/format"
	"stoa/internal/content"
	"stoa/store/remote"
)

// A table of Iceberg or Delta belongs to everybody as soon as it appears: other engines may add rows to it before the
// run that wrote it has recorded that. So it is recorded before, and a table that is there is never replaced unless a
// run has recorded that it wrote it, and what is there is that.

// announce records that a table is about to appear.
func (r *allRun) announce(ctx context.Context, t oneTable, one *conversion, s format.Summary) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := *one
	c.rows = one.sum.Sum().Rows
	c.summary = summaryDoc{Altered: s.ByOption, Notes: slices.Concat(s.Notes, one.flat), retyped: s.Retyped}
	d, err := r.entry(t, &c, len(one.Losses) > 0)
	if err != nil {
		return err
	}
	d.Told = tell(0, 0, s.Altered, nil, one.Losses)
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
		Hint: "stoa convert --catch-up " + t.source + " -o " + at + " gives it the rows of the source; under another " +
			"name it is out of the way"}
}

// kinds returns the catalogues of which there is one in a directory of the output.
func (r *allRun) kinds(ctx context.Context, output string) ([]string, error) {
	home, err := catchup.At(ctx, r.a.Remote(), (&doneTable{Output: output}).place(r.dir), r.a.SingleWriter)
	if err != nil {
		return nil, err
	}
	return home.Kinds(ctx)
}

// earlier returns what an earlier run has recorded of a table, as it is now: nil if there is nothing. A table that was
// only announced counts if it is there.
func (r *allRun) earlier(ctx context.Context, t oneTable) (d *doneTable, back outcome, announced bool, err error) {
	read := func(d doneTable) { r.unlocked(func() { back = readBack(r.a, ctx, r.dir, d) }) }
	done := r.state.find(t)
	if next := r.state.next(t); next != nil {
		d := *next
		var kinds []string
		if r.unlocked(func() { kinds, err = r.kinds(ctx, d.Output) }); err != nil {
			return nil, back, false, err
		}
		if len(kinds) > 0 { // else it did not appear
			read(d)
			if n := strings.Count(r.c.to, ",") + 1; len(kinds) < n {
				back.Verdict = verdictDiffers
				back.Problem = "it has one catalogue of two: the run was killed between them"
			}
			if done == nil || back.Verdict != verdictDiffers { // else it is what was there before
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
		return false, err
	}
	d := *previous
	same := t.stamped(d.Stamp)
	later := isLake(r.c.to) && laterLake(d.place(r.dir))
	if isLake(r.c.to) && back.Verdict != verdictMissing {
		if back.Problem != "" {
			return true, r.damagedLake(t, d, back)
		}
		if announced && same && back.Verdict != verdictDiffers || !same && r.hasRows(ctx, t, d, back, later) {
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
		err := errTaken(d, again)
		r.noteTable(t, tableOutcome{err: err})
		return true, r.failed(t.source, err)
	}
	if again != "" && back.Verdict != verdictMissing && isLake(r.c.to) {
		at := d.place(r.dir)
		if later && same && back.Rows != nil {
			return true, r.tellLater(t, d, back)
		}
		err := errLake(t, at, again, later)
		r.noteTable(t, tableOutcome{err: err})
		return true, r.failed(t.source, err)
	}
	if again == "" {
		return true, r.tellAgain(t, d, back)
	}
	r.a.Note("%s: %s: it is converted again", t.source, again)
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
	one := *r.c
	one.Manifest, one.Losses, one.Later, one.all = "", nil, true, true
	if r.converted != nil {
		one.about = t.about
	}
	if d.Told == nil {
		d.Told = &told{}
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

// hasRows reports whether a table of a lake has the rows of its source, whose files have changed: it reads them.
func (r *allRun) hasRows(ctx context.Context, t oneTable, d doneTable, back outcome, later bool) (has bool) {
	want := back.ReadChecksum
	if want == "" && !later {
		want = d.Checksum // its types allow no other
	}
	if want == "" || d.Damaged || r.c.salvage {
		return false
	}
	r.unlocked(func() {
		src, spec, err := r.open(ctx, t)
		if err != nil {
			return
		}
		defer src.Close()
		sc, err := src.ScanSchema(spec)
		if err != nil {
			return
		}
		spec.Unordered = true
		sum := content.Same(sc).Summer(0)
		for b, err := range src.Scan(ctx, spec) {
			if err != nil {
				return
			}
			sum.Add(b)
		}
		has = sum.Sum().String() == want
	})
	return has
}

// damagedLake reports a table that an earlier run has finished, and that cannot be read any more.
func (r *allRun) damagedLake(t oneTable, d doneTable, back outcome) error {
	at := remote.Shown(d.place(r.dir))
	err := &cli.UseError{Message: t.source + ": " + at + " was finished, and cannot be read any more: " +
		strings.TrimPrefix(back.Problem, at+": "), Hint: "stoa verify " + at + " finds what is damaged; --resume " +
		"writes it again where it is gone"}
	r.noteTable(t, tableOutcome{err: err})
	worst := r.failed(t.source, err)
	r.worst = cli.Worse(r.worst, cli.ErrDamage)
	return worst
}

// tellLater reports a table that an earlier run has finished, and that was changed since.
func (r *allRun) tellLater(t oneTable, d doneTable, back outcome) error {
	at := remote.Shown(d.place(r.dir))
	why := "changed after the run that wrote it, and left as it is; stoa convert --catch-up " + t.source + " -o " + at +
		" brings it up to date"
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
