package convert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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
	"stoa/store/remote"
	"stoa/vec"
)

// Kudu's restore job requires one root path for all its tables. A backup is written as ROOT/ID-NAME/TIME. convert --all
// writes each table to a place of its own, so that it appears only when it is complete, and then moves it to the common
// root.

// sinceBackup makes --since an option of the writer, if its format has it: what is written then depends on an earlier
// output, and the source is read as it is.
func (c *conversion) sinceBackup(a *cli.App) {
	const since = "since"
	to, earlier := a.Format(c.to), c.OptionValue(since)
	if earlier == "" || to == nil || !slices.ContainsFunc(to.WriteKeys,
		func(k format.OptionKey) bool { return k.Name == since }) {
		return
	}
	c.writeFlags.opts = append(c.writeFlags.opts, since+"="+earlier)
	changed := c.SourceFlags.Changed
	c.SourceFlags.Changed = func(flag string) bool { return flag != since && changed(flag) }
}

// shareRoot moves the backup that was written at dir/NAME, as a root of its own, to the root dir, and records its new
// place. Before, it calls announce, if that is not nil, with the new place in dir. If something is in its way, it
// returns an inTheWay, and the backup is where it was.
func (c *conversion) shareRoot(dir string, announce func(output string) error) error {
	if c.levels == 0 {
		return nil
	}
	rel := ""
	for range c.levels { // ID-NAME/TIME
		all, err := os.ReadDir(filepath.Join(c.out, rel))
		if err != nil || len(all) != 1 {
			return errors.Join(fmt.Errorf("%s: %d backups are there instead of one", c.out, len(all)), err)
		}
		rel = filepath.Join(rel, all[0].Name())
	}
	to := filepath.Join(dir, rel)
	for place := filepath.Dir(to); len(place) > len(dir); place = filepath.Dir(place) {
		if is, err := os.Stat(place); err == nil && !is.IsDir() {
			return &inTheWay{place: place}
		}
	}
	if _, err := os.Lstat(to); err == nil {
		return &inTheWay{place: to}
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	if announce != nil {
		if err := announce(rel); err != nil {
			return err
		}
	}
	if err := os.Rename(filepath.Join(c.out, rel), to); err != nil {
		return err
	}
	if err := os.RemoveAll(c.out); err != nil {
		return err
	}
	c.out, c.summary.Output = to, to
	return nil
}

// inTheWay is the error about something that is where a table is to be moved, or a backup beside it.
type inTheWay struct{ place, hint, from string } // from: the other source of which it is

func (e *inTheWay) Error() string {
	if e.from != "" {
		return e.place + " is a backup of the same table, as " + e.from + " has it: the newer one would count, and " +
			"what the other one has would be lost; " + e.hint + "in another directory, both are kept"
	}
	return e.place + " is there already, and no run has recorded that it wrote it; " + e.hint +
		"in another directory, both are kept"
}

// share calls shareRoot. A table in whose way something is fails alone. What was written of it is removed, unless it is
// known: an earlier run has written it, and the sources may have less now.
func (r *allRun) share(ctx context.Context, t oneTable, one *conversion, out tableOutcome, known bool) (ended bool,
	err error) {
	record := r.announcing(ctx, t)
	err = one.shareRoot(r.dir, func(output string) error {
		if err := r.beside(t, output); err != nil {
			return err
		}
		return record(output)
	})
	if !errors.As(err, new(*inTheWay)) {
		return err != nil, err
	}
	if !known {
		if err := os.RemoveAll(one.out); err != nil {
			return true, err
		}
		if next := r.state.Announced(t.source); next != nil {
			r.state.Drop(rerun.SourceKey(next.Source, r.state.From))
		}
	}
	out.err = err
	r.noteTable(t, out)
	return true, r.failed(t.source, err)
}

// blocked ends a table in whose way something is, as err says; other errors end the run.
func (r *allRun) blocked(t oneTable, err error) (ended bool, _ error) {
	if !errors.As(err, new(*inTheWay)) {
		return false, err
	}
	r.noteTable(t, tableOutcome{err: err})
	return true, r.failed(t.source, err)
}

// beside returns an error if there are backups of a table beside the output, of which no run has recorded that it wrote
// them from the same source: the newest one counts, and what is written now may be older than they are.
func (r *allRun) beside(t oneTable, output string) error {
	since := func(s string) bool { return strings.HasPrefix(s, "since=") }
	if r.forced() || slices.ContainsFunc(r.c.writeFlags.opts, since) { // it is made to follow them
		return nil
	}
	all, err := os.ReadDir(filepath.Join(r.dir, filepath.Dir(output)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range all {
		name := filepath.Join(filepath.Dir(output), e.Name())
		all := append(r.state.Current(), r.state.Next...)
		i := slices.IndexFunc(all, func(d rerun.Table) bool { return d.Output == name })
		way := &inTheWay{place: filepath.Join(r.dir, name), hint: "--force writes another backup beside it; "}
		switch {
		case e.IsDir() && i < 0:
			return way
		case e.IsDir() && rerun.SourceKey(all[i].Source, r.state.From) != r.state.KeyOf(t.source):
			way.from = all[i].Source
			return way
		}
	}
	return err
}

// Some formats have many tables in one place. convert --all and rescue write each table to a place of its own, so that
// it appears only when it is complete, and in the end make these one: see format.Assembly.

// beginAssembly begins to make dir one place, if the format has many tables in one.
func (r *allRun) beginAssembly(ctx context.Context, tables []oneTable) (err error) {
	to := r.a.Format(r.c.to)
	if to == nil || to.Assemble == nil {
		return nil
	}
	if err := r.unshared(ctx, to.Assembled); err != nil {
		return err
	}
	if r.assembly, err = to.Assemble(ctx, r.dir); err != nil {
		return err
	}
	r.gone(to.Assembled)
	if err := r.ours(ctx, to.Assembled); err != nil {
		return err
	}
	if r.state.Assembling { // a run was killed then
		err = r.assemble(ctx)
	}
	return err
}

// taken reports whether there is something under a name in the directory of the run, other than an empty directory.
func (r *allRun) taken(name string) bool {
	all, err := os.ReadDir(filepath.Join(r.dir, name))
	return len(all) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist)
}

// gone makes the run write again what an earlier one has made and somebody has removed: all tables, if nothing of their
// place is left, or what they have in common.
func (r *allRun) gone(names []string) {
	left := 0
	for _, name := range names {
		if r.taken(name) {
			left++
		}
	}
	for _, d := range r.state.Current() {
		switch {
		case !d.Taken:
		case left == 0:
			r.state.Forget(d.Source)
		case left < len(names):
			r.state.Assembling = true
		}
	}
}

// unshared returns an error if any of the directories that a place consists of is there, and no run has recorded that
// it began to make the place: tables would be added to what is somebody else's, or replace it.
func (r *allRun) unshared(ctx context.Context, names []string) error {
	taken := func(d rerun.Table) bool { return d.Taken }
	if r.forced() || r.state.Assembling || slices.ContainsFunc(r.state.Done, taken) {
		return nil
	}
	for _, name := range names {
		if place := filepath.Join(r.dir, name); r.taken(name) {
			return &cli.UseError{Message: place + " is there already, and no run has recorded that it wrote it",
				Hint: "in another directory, both are kept; if it is of a run whose record is gone, move " +
					strings.Join(r.parts(names), " and ") + " away and run this again; --force adds the " +
					"tables to a tablet server that is there, if it has none of these names, and replaces the master"}
		}
	}
	return nil
}

// ours returns an error if any of these directories is there, and is not what an earlier run has made: it may have been
// put there since that run recorded that it began, or in place of what was there.
func (r *allRun) ours(ctx context.Context, names []string) error {
	var tables []string
	for _, d := range r.state.Current() {
		if d.Taken && d.Table != "" {
			tables = append(tables, d.Table)
		}
	}
	for _, name := range slices.Backward(names) { // without the tables, nothing is known of what they have in common
		if err := r.assembly.Own(ctx, name, tables); err != nil && !r.forced() {
			return &cli.UseError{Message: filepath.Join(r.dir, name) + " is not what an earlier run made: " +
				cli.Line(err), Hint: "put back what was there, or move it away, and this goes on, with a new master " +
				"if that is gone; in another directory, both are kept; --force adds to it, and replaces the master"}
		}
	}
	return nil
}

// parts returns those of the directories that a place consists of which are there.
func (r *allRun) parts(names []string) (out []string) {
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(r.dir, name)); err == nil {
			out = append(out, filepath.Join(r.dir, name))
		}
	}
	return out
}

// keepFree gives tables other names than those of the directories that a place consists of, and than others.
func keepFree(tables []oneTable, to *format.Format, others ...string) {
	taken := map[string]bool{}
	for _, name := range others {
		taken[name] = true
	}
	if to != nil {
		for _, name := range to.Assembled {
			taken[name] = true
		}
	}
	if len(taken) == 0 {
		return
	}
	for i := range tables {
		was := tables[i].output
		if tables[i].output = free(was, taken); tables[i].output != was {
			tables[i].wanted = cmp.Or(tables[i].wanted, was)
		}
	}
}

// assembled adds the options with which a table fits in with the others.
func (r *allRun) assembled(c *conversion, t oneTable) {
	if r.assembly == nil {
		return
	}
	o := r.assembly.Options(cmp.Or(t.table, t.output))
	var opts []string
	for _, k := range slices.Sorted(maps.Keys(o)) {
		given := func(s string) bool { return strings.HasPrefix(s, k+"=") }
		if !slices.ContainsFunc(c.writeFlags.opts, given) {
			opts = append(opts, k+"="+o[k])
		}
	}
	c.writeFlags.opts = append(slices.Clone(c.writeFlags.opts), opts...)
}

// fits looks at a table that was written: one that does not fit in with the others is removed.
func (r *allRun) fits(ctx context.Context, t oneTable, c *conversion, out tableOutcome, d *rerun.Table) error {
	if r.assembly == nil {
		return nil
	}
	name, err := r.assembly.Check(ctx, c.out)
	if err != nil {
		err = &cli.UseError{Message: t.source + ": " + cli.Line(err), Hint: "in another directory, both are kept; if " +
			"what is there is of a run whose record is gone, move " +
			strings.Join(r.parts(r.a.Format(r.c.to).Assembled), " and ") + " away and run this again"}
		out.err = err
		r.noteTable(t, out)
		return errors.Join(err, os.RemoveAll(c.out))
	}
	d.Table, c.summary.Output = name, r.dir+"#"+name
	return nil
}

// assemble makes one place of the tables that are done.
func (r *allRun) assemble(ctx context.Context) error {
	st := r.state
	own := func(d rerun.Table) bool { return d.Table != "" && !d.Taken }
	if r.assembly == nil || !st.Assembling && !slices.ContainsFunc(st.Done, own) {
		return nil
	}
	// others may have written there meanwhile
	names := r.a.Format(r.c.to).Assembled
	if err := cmp.Or(r.unshared(ctx, names), r.ours(ctx, names)); err != nil {
		return err
	}
	st.Assembling = true
	if err := st.Save(ctx, r.a, r.dir); err != nil {
		return err
	}
	for _, d := range st.Done {
		if own(d) {
			if err := r.assembly.Take(ctx, filepath.Join(r.dir, d.Output)); err != nil {
				return err
			}
		}
	}
	if err := r.assembly.Finish(ctx); err != nil {
		return err
	}
	for i := range st.Done {
		st.Done[i].Taken = st.Done[i].Table != ""
	}
	st.Assembling = false
	return st.Save(ctx, r.a, r.dir)
}

// errTaken is the error about a table that would have to be converted again, and is part of the common place.
func errTaken(d rerun.Table, why string) error {
	return &cli.UseError{Message: fmt.Sprintf("%s: %s, and the output, which all tables share, has it already",
		d.Source, why), Hint: "choose another directory"}
}

// errLake is the error about a table of Iceberg or Delta that would have to be converted again: others may read it.
// back says how its columns differ from those of the source, and what the source has now; remedy what brings it up to
// date.
func errLake(t oneTable, d rerun.Table, at, why string, later bool, back outcome, remedy string) error {
	what := "is left as it is"
	if later {
		what = "was changed after that run"
	}
	at = remote.Shown(at)
	if back.columns != nil {
		remedy = fmt.Sprintf("%s; stoa convert %s -o OTHER writes another one", cli.Line(back.columns), t.source)
		what += ":"
	} else {
		remedy = catchUp(t, d, at, later, back, remedy)
		what += ";"
	}
	return &cli.UseError{Message: fmt.Sprintf("%s: %s, and %s %s %s", t.source, why, at, what, remedy)}
}

// catchUp says what a catch-up of a finished table of a lake does: remedy, if the source is newer, as far as that is
// known.
func catchUp(t oneTable, d rerun.Table, at string, later bool, back outcome, remedy string) string {
	then, now := d.Read(), back.now
	dry := "stoa convert --catch-up " + t.source + " -o " + at + " --dry-run says what would change before its rows " +
		"replace those that are there"
	if strings.HasPrefix(remedy, noRemedy) {
		dry = remedy
	}
	switch {
	case back.unread != nil:
		return "the source cannot be read whole now: " + cli.InFlags(cli.Line(back.unread))
	case now == nil:
	case now.Older(then) != "":
		return "the source has less now than that run has read (" + now.Older(then) + "), and a catch-up would take " +
			"that back"
	case now.Hurt(then) != "":
		return "the source has damage now that was not there (" + now.Hurt(then) + ")"
	case now.Unknown(then):
		return "that run did not record how far it had read the source: " + dry
	case later:
		return "whether the source is newer than that change is not known: " + dry
	case len(then.Reached) > 0 && !now.Newer(then):
		return "the source has other rows, and no later operations: " + dry
	}
	return remedy
}

const (
	upToDate = "brings it up to date"
	noRemedy = "stoa convert --catch-up does not bring it up to date"
)

// remedy says how a table of a lake gets the rows of a source, and what that does.
func (r *allRun) remedy(ctx context.Context, source, output, does string) (text string) {
	r.unlocked(func() {
		at := (&rerun.Table{Output: output}).Place(r.dir)
		home, err := catchup.At(ctx, r.a.Remote(), at, r.a.SingleWriter)
		if err == nil {
			text = remedy(ctx, catchup.Options{Home: home, Formats: r.a.Formats}, source, remote.Shown(at), does)
		}
	})
	return text
}

// remedy says how the table at a place gets the rows of a source, and what that does.
func remedy(ctx context.Context, o catchup.Options, source, at, does string) string {
	if err := catchup.Refused(ctx, o); err != nil {
		return fmt.Sprintf(noRemedy+" (%s); stoa convert %s -o OTHER writes another one", cli.InFlags(cli.Line(err)),
			source)
	}
	return "stoa convert --catch-up " + source + " -o " + at + " " + does
}

// session returns a context in which the place of all tables is opened once.
func (r *allRun) session(ctx context.Context) context.Context {
	if r.assembly == nil {
		return ctx
	}
	return stoa.Session(ctx)
}

const (
	lakeFile = 512 << 20 // the default size of a file
	// perPartition: files end where a run may be resumed, and a table with partitions would have many small ones.
	perPartition = 8
)

// long begins a large table of Iceberg or Delta such that the run can be resumed, or goes on with one; nil for others.
func (c *conversion) long(ctx context.Context, a *cli.App, t *stoa.Table, spec stoa.ScanSpec, wo stoa.CreateOptions,
) (*pieces.Long, error) {
	if !isLake(wo.To) || spec.Limit > 0 || spec.Rows != (vec.Range{}) || len(c.by) > 0 || c.out == cli.Dash {
		return nil, nil
	}
	o := pieces.Options{Out: c.out, Create: wo, Target: lakeFile, Resume: c.goOn, Of: append(c.settings(), c.source,
		c.stamp, fmt.Sprint(wo.NoCheck))}
	if size := wo.Opts["file-size"]; size != "" {
		n, err := cli.ParseSize("file-size", size)
		if err != nil {
			return nil, err
		}
		o.Target = max(1, n)
	}
	if wo.Opts["partition-by"] != "" {
		o.Target *= perPartition
	}
	if !remote.Is(c.out) {
		if real, err := filepath.EvalSymlinks(c.out); err == nil {
			o.Out = real
		}
	}
	l, err := pieces.Begin(ctx, a, t, spec, c.sum, o)
	if l == nil || err != nil {
		return nil, err
	}
	if l.Before() > 0 {
		a.Note("%s: %s were written by an earlier run", c.out, display.Count(l.Before(), "row"))
	}
	if c.seen != nil && c.seen.Any() {
		for b, err := range l.Written(ctx) {
			if err != nil {
				return nil, errors.Join(err, l.Abort(ctx))
			}
			c.seen.Add(b)
		}
	}
	return l, nil
}
