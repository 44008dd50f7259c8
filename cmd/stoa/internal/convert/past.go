package convert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/catchup"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/moments"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/register"
	"stoa/cmd/stoa/internal/source"
	"stoa/format"
	"stoa/region"
	"stoa/store"
	"stoa/store/remote"
)

// pastFlags are the flags of convert for tables of Iceberg and Delta with several snapshots.
type pastFlags struct {
	catchUp bool
	dry     bool
	moments []string
	every   string
}

func (f *pastFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.BoolVar(&f.catchUp, "catch-up", false, "change the table OUT of Iceberg or Delta, which an earlier run wrote, "+
		"to have the rows of PATH")
	fl.BoolVar(&f.dry, "dry-run", false, "with --catch-up: change nothing, and say what would be changed")
	fl.StringSliceVar(&f.moments, "snapshots", nil, "write a snapshot for each `MOMENT`, as in --at; for Iceberg, "+
		"Delta")
	fl.StringVar(&f.every, "every", "", "write a snapshot for every `DURATION`, such as 1d or 6h, of the known "+
		"history, and one of its end; segment: for every load of a CarbonData table")
}

func (f *pastFlags) on() bool { return f.catchUp || f.dry || len(f.moments) > 0 || f.every != "" }

// check returns an error if the flags contradict each other.
func (f pastFlags) check(c *conversion, all allFlags) error {
	switch {
	case f.dry && !f.catchUp:
		return cli.WrongUse("--dry-run goes with --catch-up, which changes a table: convert only writes new ones")
	case all.all || c.fileSize != "":
		return cli.WrongUse("--catch-up, --snapshots and --every are for one table")
	case all.resume && f.catchUp:
		return cli.WrongUse("--catch-up goes on by itself: the same command without --resume")
	case f.catchUp && (len(f.moments) > 0 || f.every != "") || len(f.moments) > 0 && f.every != "":
		return cli.WrongUse("--catch-up, --snapshots and --every exclude each other")
	case c.to != "" && !isLake(c.to):
		return cli.WrongUse("--catch-up, --snapshots and --every are for --to iceberg or delta")
	case c.Damaged != "fail" || c.Manifest != "":
		return cli.WrongUse("--catch-up, --snapshots and --every need a source that can be read as a whole")
	case c.out == cli.Dash:
		return cli.WrongUse("--catch-up, --snapshots and --every write a directory")
	}
	return cli.CheckWritable(c.out)
}

// runPast writes or changes a table of Iceberg or Delta with several snapshots.
func (c *conversion) runPast(ctx context.Context, a *cli.App, paths []string, f pastFlags, all allFlags) error {
	began := time.Now()
	if err := f.check(c, all); err != nil {
		return err
	}
	if err := a.CheckOutputs(cli.PlacesOf(paths), c.out); err != nil {
		return err
	}
	p := &past{c: c, a: a, paths: paths, dry: f.dry, dir: strings.TrimRight(c.out, "/")}
	home, err := p.home(ctx, p.dir)
	if err != nil {
		return err
	}
	kinds, err := home.Kinds(ctx)
	if err != nil && !(all.resume && remote.IsUnfinished(err)) {
		return c.unfinished(err)
	}
	c.to = cmp.Or(c.to, strings.Join(kinds, ","), "iceberg")
	p.wo, err = c.options(a)
	if err != nil {
		return err
	}
	if p.oo, err = c.SourceFlags.Options(ctx, a, paths); err != nil {
		return err
	}
	if c.goOn = all.resume; c.goOn {
		if done, err := c.appeared(ctx, a, paths); done || err != nil {
			return err
		}
	}
	if f.catchUp {
		if len(p.wo.Opts) > 0 {
			return cli.WrongUse("--catch-up keeps the options of the table: --opt and --partition-by have no meaning")
		}
		err = p.advance(ctx, home, "", 0)
	} else {
		err = p.snapshots(ctx, f)
	}
	if err != nil {
		return c.unfinished(err)
	}
	p.sum.Output, p.sum.Seconds = p.shown(), time.Since(began).Seconds()
	if c.form == "json" {
		err = output.WriteSummary(a, p.sum)
	} else {
		p.tell(f, time.Since(began))
	}
	return reading.NoticedIn(a, p.altered, err)
}

// tell says what was done.
func (p *past) tell(f pastFlags, took time.Duration) {
	text := fmt.Sprintf("%s: %s", p.shown(), display.Count(p.sum.Rows, "row"))
	if f.catchUp {
		text += p.changes(f.dry)
	}
	if f.dry {
		p.a.Note("%s", text)
		return
	}
	if !f.catchUp {
		text += ", " + display.Count(int64(p.sum.Moments), "snapshot")
	}
	p.a.Note("%s, %s", text, display.Seconds(took))
}

// alter keeps findings about values that were written in changed form, wherever the table is built.
func (p *past) alter(findings []region.Finding) {
	for _, x := range findings {
		x.Part, x.At.Object = p.shown(), p.shown()
		p.altered = append(p.altered, x)
	}
}

// changes says what was changed: for each catalogue, if there are two, as others may have changed one of them.
func (p *past) changes(dry bool) (text string) {
	would := ""
	if dry {
		would = "would be "
	}
	say := func(of string, added, deleted int64) {
		text += fmt.Sprintf(", %s%s %sadded, %s deleted", of, display.Thousands(added), would,
			display.Thousands(deleted))
	}
	for _, c := range p.sum.Catalogues {
		say(c.Catalogue+": ", c.Added, c.Deleted)
	}
	if len(p.sum.Catalogues) == 0 {
		say("", p.sum.Added, p.sum.Deleted)
	}
	return text
}

// past writes snapshots of a table.
type past struct {
	c     *conversion
	a     *cli.App
	paths []string
	wo    stoa.CreateOptions
	oo    stoa.OpenOptions
	dir   string
	dry   bool
	sum   summaryDoc

	altered []region.Finding // strings that were written in changed form
}

// open opens the source as it was at a moment; "" is the present, or what --at says.
func (p *past) open(ctx context.Context, at string) (*stoa.Table, stoa.ScanSpec, error) {
	spec, err := p.c.SelectFlags.Spec()
	if err != nil {
		return nil, spec, err
	}
	oo := p.oo
	if at != "" {
		oo.Opts = map[string]string{"at": at}
		for k, v := range p.oo.Opts {
			if k != "at" {
				oo.Opts[k] = v
			}
		}
	}
	t, err := source.OpenAll(p.a, ctx, p.paths, oo)
	if err != nil {
		return nil, spec, err
	}
	if err := reading.NoticedIn(p.a, t.Findings(), nil); err != nil {
		return nil, spec, errors.Join(err, t.Close())
	}
	spec.Columns, err = source.ExpandColumns(t.Schema().Fields(), spec.Columns)
	return t, spec, err
}

// advance makes the table in a directory have the rows of the source at a moment. ms is the time of the
// snapshot; 0: now.
func (p *past) advance(ctx context.Context, home catchup.Home, at string, ms int64) error {
	answered := p.a.Answered()
	t, spec, err := p.open(ctx, at)
	if err != nil {
		return err
	}
	defer t.Close()
	sc, err := t.ScanSchema(spec)
	if err != nil {
		return err
	}
	memory := int64(2 << 30)
	if p.c.mem != "" {
		if memory, err = cli.ParseSize("--memory", p.c.mem); err != nil {
			return err
		}
	}
	kinds := strings.Split(p.c.to, ",")
	p.sum.Catalogues = nil
	for i, kind := range kinds {
		r, err := catchup.Run(ctx, catchup.Options{Home: home, Delta: kind == "delta", Formats: p.a.Formats, Schema: sc,
			Time: ms, Rows: func() iter.Seq2[arrow.RecordBatch, error] { return t.Scan(ctx, spec) },
			Write: format.WriteOptions{Mem: cli.Pool}, NoCheck: p.c.unchecked, MaxBytes: memory, DryRun: p.dry,
			Answered: answered})
		p.sum.Bytes, p.sum.Files = p.sum.Bytes+r.Bytes, p.sum.Files+r.Files
		p.alter(r.Altered)
		if err != nil && i > 0 && !p.dry {
			return fmt.Errorf("the catalogue of Iceberg has the rows of the source now, and that of Delta has not: %w",
				err)
		}
		if err != nil && len(kinds) > 1 && i == 0 {
			return fmt.Errorf("the catalogue of Iceberg cannot be changed, and that of Delta, over the same files, is "+
				"left as it is: %w", err)
		}
		if err != nil {
			return err
		}
		p.widened(r.Widened)
		if len(kinds) > 1 {
			p.sum.Catalogues = append(p.sum.Catalogues, catalogueDoc{kind, r.Added, r.Deleted})
		}
		if i > 0 { // the other catalogue of the same table
			continue
		}
		p.sum.Rows, p.sum.Checked = r.Rows, r.Checked
		if r.Added+r.Deleted > 0 {
			p.sum.Moments++
		}
		p.sum.Added, p.sum.Deleted = p.sum.Added+r.Added, p.sum.Deleted+r.Deleted
	}
	return nil
}

// widened tells which columns of the table get wider types.
func (p *past) widened(columns []string) {
	for _, text := range columns {
		if text += " now"; p.dry {
			text = strings.TrimSuffix(text, " now") + " afterwards"
		}
		p.sum.Notes = append(p.sum.Notes, text)
		if p.c.form != "json" {
			p.a.Note("%s: %s", p.shown(), text)
		}
	}
}

// goesOn converts one table, which an earlier run may have begun.
func (c *conversion) goesOn(ctx context.Context, a *cli.App, paths []string) error {
	if done, err := c.appeared(ctx, a, paths); done || err != nil {
		return err
	}
	return c.unfinished(c.run(ctx, a, paths, false))
}

// unfinished names the commands with which a table goes on, if err is about one at an address that an earlier run has
// begun.
func (c *conversion) unfinished(err error) error {
	if !remote.IsUnfinished(err) || !remote.Is(c.out) {
		return err
	}
	at, resume := cli.ShownAddress(strings.TrimRight(c.out, "/")), ""
	if isLake(c.to) && !c.goOn {
		resume = "with --resume, this command finishes a table that can be read already; "
	}
	return fmt.Errorf("%s is being written, or its writing was interrupted; if no other run is writing there: %s"+
		"stoa clean %s --older-than 1s removes what was left of another one, and this command then writes it", at,
		resume, at)
}

// appeared finishes a table at an address that is to be resumed, and whose run was killed when it could be read
// already: the mark of an unfinished directory or what the run has recorded is left, or the catalogue of Delta is
// missing. It reports whether there is one. A run that has ended well leaves the same as one that was then killed.
func (c *conversion) appeared(ctx context.Context, a *cli.App, paths []string) (bool, error) {
	if !c.goOn || !remote.Is(c.out) {
		return false, nil // a local table appears as a whole
	}
	p := &past{c: c, a: a, paths: paths, dir: strings.TrimRight(c.out, "/")}
	if _, err := a.Remote().Unmark(ctx, p.dir); err != nil {
		return false, err
	}
	home, err := p.home(ctx, p.dir)
	if err != nil {
		return false, err
	}
	kinds, err := home.Kinds(ctx)
	half := c.to == "iceberg,delta" && len(kinds) == 1 && kinds[0] == "iceberg"
	if err != nil || !half && strings.Join(kinds, ",") != c.to {
		return false, nil // writing it will tell
	}
	if p.oo, err = c.SourceFlags.Options(ctx, a, paths); err != nil {
		return false, err
	}
	t, spec, err := p.open(ctx, "")
	if err != nil {
		return false, err
	}
	defer t.Close()
	o := catchup.Options{Home: home, Formats: a.Formats,
		Rows: func() iter.Seq2[arrow.RecordBatch, error] { return t.Scan(ctx, spec) }}
	if o.Schema, err = t.ScanSchema(spec); err != nil {
		return false, err
	}
	if err := p.finish(ctx, o, kinds); err != nil {
		return true, err
	}
	a.Note("%s: an earlier run has written it, with the rows of the source", p.shown())
	return true, nil
}

// finish finishes a table that can be read already, if each of its catalogues has the rows of the source.
func (p *past) finish(ctx context.Context, o catchup.Options, kinds []string) error {
	for _, kind := range kinds {
		o.Delta = kind == "delta"
		if same, err := catchup.Same(ctx, o); err != nil {
			return err
		} else if !same {
			return &cli.UseError{Message: p.shown() + " is there, and does not have the rows of the source; " +
				remedy(ctx, o, strings.Join(p.paths, " "), p.shown(), upToDate)}
		}
	}
	if strings.Join(kinds, ",") != p.c.to {
		return catchup.Complete(ctx, o, "")
	}
	return o.Home.Forget(ctx)
}

// home returns the directory with a name: a path, or an address.
func (p *past) home(ctx context.Context, name string) (catchup.Home, error) {
	return catchup.At(ctx, p.a.Remote(), name, p.a.SingleWriter)
}

// shown returns where the table is, without what may be secret.
func (p *past) shown() string {
	if remote.Is(p.dir) {
		return cli.ShownAddress(p.dir)
	}
	return p.c.out
}

// snapshots writes a new table with a snapshot for each moment. The table appears when it has all of them; one at an
// address is built in a temporary directory.
func (p *past) snapshots(ctx context.Context, f pastFlags) error {
	all, err := p.moments(ctx, f)
	if err != nil {
		return err
	}
	finish, building, remove, err := p.building(ctx)
	if err != nil {
		return err
	}
	defer remove()
	if err := p.first(ctx, building, all[0]); err != nil {
		return err
	}
	home, err := p.home(ctx, building)
	if err != nil {
		return err
	}
	p.sum.Moments = 1
	for _, m := range all[1:] {
		if err := p.advance(ctx, home, m.At, m.MS); err != nil {
			return fmt.Errorf("at %s: %w", cmp.Or(m.At, "present"), err)
		}
	}
	p.sum.Added, p.sum.Deleted = 0, 0
	return finish(building)
}

// building returns where a new table is built, and what then makes it appear.
func (p *past) building(ctx context.Context) (finish func(dir string) error, dir string, remove func() error,
	err error) {
	if remote.Is(p.dir) {
		sink, _, err := p.a.Sink(ctx, p.dir)
		if err != nil {
			return nil, "", nil, err
		}
		tmp, err := os.MkdirTemp("", store.TempPrefix+"*")
		return func(dir string) error { return catchup.Upload(ctx, dir, sink) }, filepath.Join(tmp, path.Base(p.dir)),
			func() error { return os.RemoveAll(tmp) }, err
	}
	if _, err := os.Lstat(p.dir); !errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil, errors.Join(&cli.UseError{Message: p.dir + " is there already",
			Hint: "choose another name"}, err)
	}
	tmp, remove, err := store.Local{}.TempDir(p.dir)
	rename := func(dir string) error { return os.Rename(dir, p.dir) }
	return rename, filepath.Join(tmp, filepath.Base(p.dir)), remove, err
}

// first writes the first snapshot.
func (p *past) first(ctx context.Context, dir string, m moments.Moment) error {
	t, spec, err := p.open(ctx, m.At)
	if err != nil {
		return err
	}
	defer t.Close()
	sc, err := t.ScanSchema(spec)
	if err != nil {
		return err
	}
	wo := p.wo
	opts := map[string]string{"snapshot-time": strconv.FormatInt(m.MS, 10)}
	for k, v := range wo.Opts {
		opts[k] = v
	}
	if opts["location"] == "" && isIceberg(p.c.to) {
		opts["location"] = register.Location(p.shown())
	}
	if opts, err = p.c.fromSource(t, sc, opts, false); err != nil {
		return err
	}
	wo.Opts, wo.Rows = opts, -1
	w, err := stoa.Create(ctx, dir, sc, wo)
	if err != nil {
		return err
	}
	if err := reading.CopyRows(ctx, t.Scan(ctx, spec), w); err != nil {
		return errors.Join(err, w.Abort(ctx))
	}
	s, err := w.Close(ctx)
	p.sum.Rows, p.sum.Bytes, p.sum.Files, p.sum.Checked = s.Rows, s.Bytes, len(s.Files), s.Checked
	if err == nil {
		p.alter(s.Altered)
		reportUnchecked(p.a, p.shown(), s)
	}
	return err
}

// moments returns the moments of --snapshots or --every, in order. It tells which loads cannot be read any more.
func (p *past) moments(ctx context.Context, f pastFlags) ([]moments.Moment, error) {
	open := func(ctx context.Context, at string) (*stoa.Table, error) {
		t, _, err := p.open(ctx, at)
		return t, err
	}
	src := moments.Source{Paths: p.paths, Options: p.oo, Open: open}
	if f.every == "" {
		return src.Named(ctx, f.moments)
	}
	all, left, err := src.Every(ctx, f.every)
	if text := left.String(); text != "" {
		p.sum.Notes = append(p.sum.Notes, text)
		p.a.Warn("%s: %s", p.shown(), text)
	}
	return all, err
}
