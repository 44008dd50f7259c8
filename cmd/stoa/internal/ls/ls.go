package ls

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/schemafmt"
	"stoa/cmd/stoa/internal/source"
	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// entryDoc is what -f json prints for each entry; null means not known.
type entryDoc struct {
	Name    string          `json:"name"`
	Format  string          `json:"format,omitempty"`
	Kind    string          `json:"kind,omitempty"`
	Rows    *int64          `json:"rows"`
	Bytes   *int64          `json:"bytes"`
	Columns *int64          `json:"columns"`
	Facts   schemafmt.Pairs `json:"facts,omitempty"`
	Problem string          `json:"problem,omitempty"`

	Parts []entryDoc `json:"parts,omitempty"`

	why error // the error behind Problem
}

func LsCmd(a *cli.App) *cobra.Command {
	var src source.SourceFlags
	var out output.OutputFlags
	var blocks, unnamed, segments bool
	cmd := &cobra.Command{
		Use:   "ls [PATH...]",
		Short: "List what a place holds",
		Long: `List the tables in a place, at any depth, and the other files there: name, format, kind,
rows, size, number of columns, and what is wrong with those that cannot be read. With -v, the tablets of a
Kudu table follow it. Without a path: the working directory.

Only the metadata that opening a table needs is read: catalogues, superblocks, footers, schemas, and which
files exist. The status is 3 if any of that is damaged or missing. Damage in indexes and pages does not
change it; stoa verify finds that. The rows of a Kudu table are those that were flushed; stoa count also
counts those that are only in the log. -f json prints an array with an object per entry.

--blocks lists the blocks of Kudu directories instead: the 20 fields of Kudu's own "kudu fs list", and the
file and offset of each block.
--unnamed lists only the blocks that no superblock names, including those found in containers whose
metadata is lost.
--segments lists the segments of CarbonData tables: status, times, sizes, rows, and what was merged into
what; of data files without a table, what each writer wrote. With --carbon-properties and without a path,
the store that the file names is listed.`,
		Example: "  stoa ls data/\n  stoa ls --segments store#sales.orders",
		Args:    func(_ *cobra.Command, args []string) error { return cli.OnceDash(args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && src.OptionValue("carbon-properties") != "" {
				args = []string{source.StorePath}
			}
			if len(args) == 0 {
				args = []string{"."}
			}
			switch {
			case blocks && unnamed, segments && (blocks || unnamed):
				return cli.WrongUse("--blocks, --unnamed and --segments do not go together")
			case src.OptionValue("at") != "":
				return cli.WrongUse("ls says what is stored, not what a table held at a time: --at is for reading " +
					"it (stoa count --at TIME)")
			case unnamed && src.OptionValue("tablet") != "":
				return cli.WrongUse("--unnamed and --tablet do not go together: nothing says to which tablet these " +
					"blocks belong")
			case segments:
				return lsSegments(a, cmd, args, &src, &out)
			case blocks:
				return lsBlocks(a, cmd, args, &src, &out, "blocks")
			case unnamed:
				return lsBlocks(a, cmd, args, &src, &out, "unnamed")
			}
			return listPaths(a, cmd, args, &src, &out)
		},
	}
	cmd.Flags().BoolVar(&unnamed, "unnamed", false, "list the blocks of Kudu directories that no superblock names")
	cmd.Flags().BoolVar(&segments, "segments", false, "list the segments of CarbonData tables")
	cmd.Flags().BoolVar(&blocks, "blocks", false, "list the blocks of Kudu directories, or of one table: DIR#TABLE")
	out.Register(cmd, output.ReportForms, "default text")
	out.RegisterRaw(cmd)
	src.Register(a, cmd)
	return cli.First(cli.Hide(cmd, "at"), "blocks", "segments", "format")
}

func listPaths(a *cli.App, cmd *cobra.Command, args []string, src *source.SourceFlags, out *output.OutputFlags) error {
	ctx := cmd.Context()
	if err := out.Check(output.ReportForms); err != nil {
		return err
	}
	o, err := src.Options(ctx, a, args)
	if err != nil {
		return err
	}
	if args, o, err = source.Together(a, ctx, args, o); err != nil {
		return err
	}
	var docs []entryDoc
	failed := source.EachPath(a, ctx, cmd, args, func(p string) error {
		some, err := listPlace(a, ctx, p, o)
		docs = append(docs, some...)
		return err
	})
	if failed != nil && len(docs) == 0 {
		return failed
	}
	text := out.Form == "" || out.Form == "text"
	last := "problem"
	if text {
		last = "remarks" // of parts, what they are
	}
	// A heading would be the line that makes 24 tables one too many for a terminal of 24 lines.
	r := &output.Report{One: true, Bare: text && !out.Raw, Cols: []output.ReportColumn{{Name: "name"},
		{Name: "format"}, {Name: "kind"}, {Name: "rows", Unit: "row", Right: true}, {Name: "size", Right: true},
		{Name: "columns", Unit: "column", Right: true}, {Name: last, Below: true}}}
	cells := func(d entryDoc, remarks string) []string {
		cols := ""
		if d.Columns != nil {
			cols = strconv.FormatInt(*d.Columns, 10)
		}
		return []string{d.Name, d.Format, d.Kind, out.Number(Number(d.Rows)), out.Bytes(Number(d.Bytes)), cols,
			remarks}
	}
	for _, d := range docs {
		r.Add(d, cells(d, cmp.Or(d.Problem, d.dependents(out.Form)))...)
		if !a.Verbose || !text {
			continue // parts are in the document; a list shows only tables
		}
		for _, p := range d.Parts {
			p.Name = display.Indent(1) + p.Name
			r.Add(nil, cells(p, p.Facts.Text())...)
		}
	}
	if err := r.Write(ctx, a, out); err != nil {
		return err
	}
	if failed == nil {
		return reportedIn(docs)
	}
	return failed
}

// dependents returns what depends on the table, as a remark.
func (d entryDoc) dependents(form string) string {
	for _, f := range d.Facts {
		if f[0] == format.Dependents && (form == "" || form == "text") {
			return "with " + f[1]
		}
	}
	return ""
}

// reportedIn returns the error that sets the status for the problems of entries, which have been reported. Entries that
// stoa does not support are only listed.
func reportedIn(docs []entryDoc) error {
	for _, d := range docs {
		if errors.Is(d.why, fs.ErrPermission) {
			return cli.ErrRefused
		}
	}
	for _, d := range docs {
		if errors.Is(d.why, fault.Corrupt) {
			return cli.ErrDamage
		}
	}
	for _, d := range docs {
		if errors.Is(d.why, fault.Invalid) {
			return cli.ErrUse
		}
	}
	for _, d := range docs {
		if p := new(fs.PathError); errors.As(d.why, &p) || store.Failing(d.why) || fault.OverBudget(d.why) {
			return cli.ErrFailed
		}
	}
	return nil
}

// Number is the inverse of reading.Known.
func Number(p *int64) int64 {
	if p == nil {
		return -1
	}
	return *p
}

// listPlace returns the entries of one path: those that stoa.List yields, at any depth, what it leaves out, and the
// directories directly in it that belong to no table.
func listPlace(a *cli.App, ctx context.Context, p string, o stoa.OpenOptions) ([]entryDoc, error) {
	var failed error
	out := []entryDoc{}
	for e, err := range stoa.List(ctx, p, o) {
		switch {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case err == nil:
			out = append(out, entryOf(a, ctx, e, o))
		case e.Place == "":
			failed = err
		default:
			out = append(out, leftDoc(a, ctx, e.Place, err))
		}
	}
	tr := o.Tree
	info, err := tr.Stat(ctx, p)
	if err != nil || !info.Dir || o.From != "" {
		return out, failed
	}
	_, err = stoa.Probe(ctx, format.Target{Tree: tr, Name: p}, o)
	if out = withDirectories(ctx, tr, p, err != nil, out); err != nil && alreadyReported(out, failed) {
		if len(out) == 0 {
			a.Note("stoa: %s", Problem(failed))
		}
		failed = nil
	}
	return out, failed
}

// alreadyReported reports whether the error of a directory in which nothing can be read only repeats those of its
// entries.
func alreadyReported(docs []entryDoc, err error) bool {
	return errors.Is(err, fault.Invalid) ||
		slices.ContainsFunc(docs, func(d entryDoc) bool { return errors.Is(err, d.why) })
}

// leftDoc returns an entry for something that cannot be read.
func leftDoc(a *cli.App, ctx context.Context, name string, err error) entryDoc {
	d := entryDoc{Name: name, Problem: Problem(err), why: err}
	if irregular := new(store.Irregular); errors.As(err, &irregular) {
		d.Problem = irregular.What
	} else if info, err := store.Roots(cli.Tree{A: a}).Stat(ctx, name); err == nil && !info.Dir {
		d.Bytes = reading.Known(info.Size)
	}
	return d
}

// withDirectories inserts the directories directly in dir before their contents; with all, including those without a
// table.
func withDirectories(ctx context.Context, tr store.Tree, dir string, all bool, docs []entryDoc) []entryDoc {
	for info, err := range tr.List(ctx, dir) {
		if err != nil || !info.Dir || path.Base(info.Name)[0] == '.' {
			continue
		}
		is := func(d entryDoc) bool { return d.Name == info.Name || strings.HasPrefix(d.Name, info.Name+"#") }
		in := func(d entryDoc) bool { return strings.HasPrefix(d.Name, info.Name+"/") }
		k := slices.IndexFunc(docs, in)
		if slices.ContainsFunc(docs, is) || k < 0 && !all {
			continue
		}
		if k < 0 {
			k = len(docs)
		}
		docs = slices.Insert(docs, k, entryDoc{Name: info.Name + "/", Kind: "directory"})
	}
	return docs
}

// Problem returns an error without its place, which the entry names.
func Problem(err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		if e.Class == fault.Unsupported {
			return cli.InFlags(e.Reason)
		}
		c := *e
		c.At = fault.Span{}
		return cli.InFlags(c.Error())
	}
	return cli.InFlags(cli.Line(err))
}

// entryOf opens a table to obtain what its listing did not say.
func entryOf(a *cli.App, ctx context.Context, e format.Entry, o stoa.OpenOptions) entryDoc {
	name, o := stoa.Named(e, o)
	if e.Bytes < 0 && e.Table == "" {
		e.Bytes = a.Size(ctx, e.Place)
	}
	d := entryDoc{Name: name, Format: e.Format, Kind: e.Kind, Rows: reading.Known(e.Rows),
		Bytes: reading.Known(e.Bytes)}
	for _, m := range e.Meta {
		if m.Key == "error" { // one table of many that cannot be read
			d.Problem = m.Value
			if t, err := stoa.Open(ctx, name, o); err == nil {
				t.Close()
			} else if !errors.Is(err, fault.Unsupported) {
				d.why = err
			}
			damagesOf(a, &d, e.Table, e)
			return d
		}
		d.Facts = append(d.Facts, [2]string{m.Key, m.Value})
	}
	for _, p := range e.Parts {
		x := entryDoc{Name: p.Table, Kind: p.Kind, Rows: reading.Known(p.Rows), Bytes: reading.Known(p.Bytes)}
		for _, m := range p.Meta {
			x.Facts = append(x.Facts, [2]string{m.Key, m.Value})
		}
		d.Parts = append(d.Parts, x)
	}
	damagesOf(a, &d, e.Table, e)
	t, err := stoa.Open(ctx, name, o)
	if err != nil {
		if !errors.Is(err, fault.Unsupported) {
			d.Problem, d.why = Problem(err), err
		}
		return d
	}
	defer t.Close()
	d.Columns = reading.Known(int64(t.Schema().NumFields()))
	var rows int64
	if d.Rows == nil || len(e.Parts) == 0 { // the listing counts this, too, unless it looked into tablets
		rows, err = t.Rows(ctx)
	}
	damagesOf(a, &d, e.Place, format.Entry{Findings: t.Findings()})
	if errors.Is(err, fault.Corrupt) {
		d.Rows, d.why = nil, err
		if d.Problem == "" {
			d.Problem = Problem(err)
		}
	} else if d.Rows == nil {
		d.Rows = reading.Known(rows)
	}
	return d
}

// damagesOf reports damage that was noticed. The first error about the part of this name, or about a part of it,
// becomes the problem of the entry.
func damagesOf(a *cli.App, d *entryDoc, part string, e format.Entry) {
	for _, f := range e.Findings {
		if f.Severity < region.Error {
			continue
		}
		if d.why == nil {
			d.why = fault.Corrupt
		}
		own := f.Part == part || slices.ContainsFunc(e.Parts, func(p format.Entry) bool { return p.Table == f.Part })
		if d.Problem == "" && own {
			d.Problem = cli.InFlags(f.Message)
		}
	}
	reading.ReportFindings(a, e.Findings)
}
