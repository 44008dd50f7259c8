package convert

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/look"
	"stoa/cmd/stoa/internal/pieces"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/report"
	"stoa/cmd/stoa/internal/rerun"
	"stoa/fault"
	"stoa/format"
	"stoa/internal/seal"
	"stoa/region"
	"stoa/store"
	"stoa/store/remote"
)

func RescueCmd(a *cli.App) *cobra.Command {
	var c conversion
	var resume bool
	var k inKindFlags
	cmd := &cobra.Command{
		Use:   "rescue ROOT... -o OUT",
		Short: "Write whatever can still be read of a place, and a report",
		Long: `Write every table of the ROOTs, healthy or damaged, to the directory OUT, as Parquet unless
--to says otherwise, and a report of what was saved and what was not: OUT/report.html, OUT/report.json and
OUT/report.txt, which is also printed. All ROOTs together are one place, as for stoa census: the disks of
all servers of a Kudu cluster, at any depth. The replicas of a tablet are read as one: what is damaged in
one is read from another.

Each table is read as by stoa recover; the output is read back and compared. Where superblocks are gone,
the schema comes from the log or the master's catalogue, and the rows from blocks that nothing claims, as
they were flushed. For each table, the report has the rows written and the rows lost, with the reasons and
the tablets; the result of the comparison; the known range of its history (stoa history); and the number
of operations that were only in logs. Then it lists what belongs to no table, and every file of the ROOTs
with its size and checksum (as in stoa seal).

The status is 0 only if OUT has everything of which there is any sign (catalogue, superblock, log,
consensus metadata, blocks that nothing claims), and 3 if not. --resume continues a run that was
killed: finished tables are read back, the others are written again. With --file-size each table is a
directory of files, each within a tablet and in the order of its keys; several are written at a time
(--parallel), and --resume continues after the last file of each tablet. What is in OUT and no run has
recorded is replaced only with --force.

--in-kind writes no tables: it mends Kudu servers. OUT gets a directory for each damaged server (or the
one that --server names), on which the server starts: each tablet as it was, with intact blocks from
copies of its replica in place of damaged ones, or as a copy of another server's replica, with its log.`,
		Example: "  stoa rescue kudu -o out/\n  stoa rescue kudu/wal kudu/data -o tables/ --to jsonl\n" +
			"  stoa rescue --in-kind kudu -o mended/",
		Args: a.Paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			r := &rescue{c: &c, a: a, cmd: cmd, roots: args, resume: resume, began: time.Now()}
			if k.on || k.server != "" {
				return r.inKind(cmd.Context(), k)
			}
			return r.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&resume, "resume", false, "continue an earlier run with the same OUT")
	k.register(cmd)
	c.writeFlags.register(a, cmd)
	c.writeFlags.registerPieces(cmd)
	c.RegisterParallel(cmd)
	for name, usage := range map[string]string{
		"output":    "write to the directory `OUT` (required)",
		"to":        "write tables as `FORMAT` (default parquet)",
		"format":    "print the report as `FORM`: text or json",
		"file-size": "write each table as a directory of files of about `SIZE`, such as 1GiB, by tablet and key",
	} {
		cmd.Flags().Lookup(name).Usage = usage
	}
	c.DamageFlags.Register(cmd, "skip-rows")
	c.SourceFlags.Register(a, cmd)
	return cli.First(cli.Hide(cmd, "manifest", "schema"), "output", "to", "resume")
}

// rescue is a run of the verb.
type rescue struct {
	c      *conversion
	a      *cli.App
	cmd    *cobra.Command
	roots  []string
	dir    string
	resume bool
	began  time.Time
	doc    rescueDoc

	history struct {
		tables []*look.TableHistory
		found  []region.Finding
		err    error
	}
}

func (r *rescue) run(ctx context.Context) error {
	oo, wo, err := r.prepare(ctx)
	if err != nil {
		return err
	}
	oo.Tree, r.doc.place, err = store.Joined(oo.Tree, r.roots)
	if err != nil {
		return fault.Invalidf("%v", err)
	}
	stamps := &pieces.Stamper{Tree: oo.Tree}
	tables, left, none := tablesOf(r.a, ctx, []string{r.doc.place}, oo, r.a.Format(wo.To), stamps)
	tables, left = unopened(ctx, tables, left, oo, r.a.Format(wo.To), stamps)
	if none != nil && ctx.Err() != nil {
		return none
	}
	keepFree(tables, r.a.Format(wo.To), report.Names...)
	st, err := rerun.OpenState(ctx, r.a, r.dir, r.resume, r.c.settings(), r.roots...)
	if err != nil {
		return err
	}
	if !st.Kept && !r.cmd.Flags().Changed("force") {
		if err := report.Taken(r.dir); err != nil {
			return err
		}
	}
	if r.c.levels == 0 {
		keepNames(st, tables, r.c.ext)
	}
	all := &allRun{c: r.c, a: r.a, cmd: r.cmd, dir: r.dir, state: st, began: r.began, converted: r.doc.add,
		moments: r.past(ctx, oo)}
	_, ended := all.tables(ctx, tables, left)
	if ctx.Err() != nil {
		return ended
	}
	if ended != nil {
		r.doc.miss(cli.InFlags(cli.Line(ended)))
	}
	if len(tables) == 0 {
		r.doc.miss("no table: " + cli.InFlags(cli.Line(none)))
	}
	r.doc.Whole = r.doc.Whole && all.worst == nil
	refused := all.worst == cli.ErrRefused
	for _, l := range append(left, all.left...) {
		refused = refused || errors.Is(l.err, fs.ErrPermission)
		r.doc.Left = append(r.doc.Left, leftDoc{l.source, cli.Line(l.err)})
	}
	return r.tell(ctx, oo, refused, ended)
}

// tell writes the reports, whatever ended the run, and returns the error that it ends with. refused: files could not be
// read for want of permission.
func (r *rescue) tell(ctx context.Context, oo stoa.OpenOptions, refused bool, ended error) error {
	r.signs(ctx, oo)
	err := r.sources(ctx)
	r.doc.Seconds = time.Since(r.began).Seconds()
	if err == nil {
		err = r.write(ctx)
	}
	switch {
	case err != nil || ended != nil:
		return errors.Join(ended, err)
	case refused:
		return cli.ErrRefused
	case !r.doc.Whole:
		return cli.ErrDamage
	}
	return nil
}

// prepare derives from the flags how to read and to write, and refuses what is impossible.
func (r *rescue) prepare(ctx context.Context) (oo stoa.OpenOptions, wo stoa.CreateOptions, err error) {
	c := r.c
	if c.to == "" {
		c.to = "parquet"
	}
	if wo, err = c.options(r.a); err != nil {
		return oo, wo, err
	}
	c.levels, c.ext = r.a.Format(wo.To).Levels, extOf(r.a.Format(wo.To))
	c.salvage, c.goOn = true, r.resume
	if c.target, err = c.piecesTarget(r.a.Format(wo.To)); err != nil {
		return oo, wo, err
	}
	form := c.form
	if c.form = "text"; c.out == cli.Dash {
		return oo, wo, cli.WrongUse("rescue writes a directory, not standard output")
	}
	if c.Manifest != "" {
		return oo, wo, cli.WrongUse("rescue has no --manifest: %s has all losses", report.JSON)
	}
	r.dir = strings.TrimRight(c.out, "/")
	if remote.Is(r.dir) {
		return oo, wo, cli.WrongUse("rescue writes a directory of this machine, and no address: recover and " +
			"convert --all do")
	}
	if err := cli.CheckOutput(r.dir, cli.PlacesOf(r.roots)); err != nil {
		return oo, wo, err
	}
	for _, root := range r.roots {
		if cli.WithoutTable(root) != root {
			return oo, wo, cli.WrongUse("rescue takes all tables of a place: %s names one (stoa recover)", root)
		}
		if root == cli.Dash {
			return oo, wo, cli.WrongUse("rescue reads directories, not standard input")
		}
	}
	if oo, err = c.SourceFlags.Options(ctx, r.a, r.roots); err != nil {
		return oo, wo, err
	}
	oo.Recover = true
	if oo.Opts["schema"] != "" {
		return oo, wo, &cli.UseError{Message: "rescue reads tables that have names; what --schema reads has none",
			Hint: cli.BySchema(r.roots[0])}
	}
	for _, root := range r.roots {
		if _, err := oo.Tree.Stat(ctx, root); err != nil {
			return oo, wo, &cli.OpenError{Err: err}
		}
		if err := stoa.InUse(ctx, root, oo); err != nil {
			return oo, wo, &cli.OpenError{Err: err}
		}
	}
	r.doc = rescueDoc{Stoa: "rescue", Roots: r.roots, Output: r.dir, To: c.to, At: oo.Opts["at"], Damaged: c.Damaged,
		Began: r.began.UTC().Truncate(time.Second), Whole: true, Exact: true,
		Tables: []*rescuedTable{}, Left: []leftDoc{},
		Unnamed: []unnamedDoc{}, Sources: []sourceDoc{}, Findings: []reading.FindingDoc{}, form: form}
	return oo, wo, nil
}

// signs reads the census and the history of the place, if its format has them. Whatever they mention without a table in
// the output was not rescued.
func (r *rescue) signs(ctx context.Context, oo stoa.OpenOptions) {
	f, err := stoa.Probe(ctx, format.Target{Tree: oo.Tree, Name: r.doc.place}, oo)
	if err != nil || !hasList(f, "census") {
		return
	}
	latest := oo
	latest.Opts = maps.Clone(oo.Opts)
	delete(latest.Opts, "at")
	census, found, err := look.CensusOf(ctx, []string{r.doc.place}, latest)
	if err != nil {
		r.doc.miss("the census failed: " + cli.Line(err))
	}
	r.doc.addFindings(found)
	r.doc.addCensus(census)
	if r.history.err != nil {
		r.doc.miss("the history failed: " + cli.Line(r.history.err))
	}
	r.doc.addFindings(r.history.found)
	for _, h := range r.history.tables {
		if t := r.doc.table(h.Table, h.ID); t != nil && !t.kept {
			t.tell(momentsOf(h))
		}
	}
}

// past reads the history of the place, if its format has one, and returns a function that finds the moments of a table.
func (r *rescue) past(ctx context.Context, oo stoa.OpenOptions) func(table, id string) *rerun.Moments {
	h := &r.history
	f, err := stoa.Probe(ctx, format.Target{Tree: oo.Tree, Name: r.doc.place}, oo)
	if err != nil || !hasList(f, "census") {
		return nil
	}
	h.tables, h.found, h.err = look.HistoryOf(ctx, []string{r.doc.place}, oo)
	return func(table, id string) *rerun.Moments {
		for _, x := range h.tables {
			if x.Table == table && (x.ID == id || x.ID == "" || id == "") {
				return momentsOf(x)
			}
		}
		return nil
	}
}

func momentsOf(h *look.TableHistory) *rerun.Moments {
	return &rerun.Moments{First: h.First, Exact: h.Exact, Last: h.Last, Logged: h.Logged}
}

func hasList(f *format.Format, name string) bool {
	for _, l := range f.Listings {
		if l.Name == name {
			return true
		}
	}
	return false
}

// sources lists every file of the roots, and of what symbolic links in them lead to, with its size and checksum. Files
// that cannot be read are reported.
func (r *rescue) sources(ctx context.Context) error {
	roots := r.roots
	if len(roots) == 1 {
		if set, err := store.RootsOf(ctx, store.Roots(cli.Tree{A: r.a}), roots[0]); err == nil && len(set) > 0 {
			roots = set
		}
	}
	var seen []string
	for _, root := range roots {
		behind(root, &seen)
	}
	for len(roots) > 0 {
		links, err := r.sourcesOf(ctx, roots, &seen)
		if err != nil {
			return err
		}
		roots = links
	}
	return nil
}

// sourcesOf lists the files of roots. It returns the links that lead elsewhere.
func (r *rescue) sourcesOf(ctx context.Context, roots []string, seen *[]string) (links []string, err error) {
	places := r.a.Sealed(roots)
	files, err := places.Walk(ctx)
	if err != nil {
		r.doc.miss("not all of the files can be listed: " + err.Error())
		return nil, nil
	}
	for i := range files {
		f := &files[i]
		d := sourceDoc{File: f.Label(roots), Kind: f.Kind, Bytes: f.Size, Link: f.Link}
		if f.Kind == seal.Link && behind(filepath.Join(roots[f.Root], f.Name), seen) {
			links = append(links, filepath.Join(roots[f.Root], f.Name))
		}
		if f.Kind == seal.Regular {
			d.Checksum, err = places.Digest(ctx, f)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				d.Problem = err.Error()
				r.doc.miss("a file cannot be read: " + err.Error())
			}
		}
		r.doc.Sources = append(r.doc.Sources, d)
	}
	return links, nil
}

// behind reports whether a name leads to a place on this machine that is not in, nor around, those that were seen. It
// adds the place to them.
func behind(name string, seen *[]string) bool {
	real, err := filepath.EvalSymlinks(name)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil || remote.Is(name) {
		return false
	}
	for _, s := range *seen {
		if strings.HasPrefix(real+"/", s+"/") || strings.HasPrefix(s+"/", real+"/") {
			return false
		}
	}
	*seen = append(*seen, real)
	return true
}

// write writes the reports, and prints one of them.
func (r *rescue) write(ctx context.Context) error {
	r.doc.settle()
	err := report.Write(ctx, r.a, r.dir, &r.doc, r.doc.form)
	r.a.Note("%s/: %s, %s, %s", r.dir, display.Count(int64(len(r.doc.Tables)), "table"), r.doc.verdict(),
		display.Seconds(time.Since(r.began)))
	return err
}
