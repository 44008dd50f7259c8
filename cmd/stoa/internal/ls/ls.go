package ls

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/catalogue"
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

// entryDoc is what -f json has for each entry; null is not known.
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

	why error // the problem
}

func LsCmd(a *cli.App) *cobra.Command {
	var src source.SourceFlags
	var out output.OutputFlags
	var blocks, unnamed, segments bool
	cmd := &cobra.Command{
		Use:   "ls [PATH...]",
		Short: "List what a place holds",
		Long: `List the tables in a place, or the files of a directory: name, format, kind, rows, size, number
of columns, and what
is wrong with those that cannot be read; of tables that have parts with names, also these. Without a path: the
working
directory. -f json is an array with an object an entry. It answers from metadata, as opening reads it (catalogues,
superblocks, footers, schemas, the files that they name): the status is 3 if something of that is damaged or
missing,
and 0 where only indexes or pages are damaged, which stoa verify reads. Rows of Kudu tables are those that were
flushed: what only the log has, which would have to be replayed, is counted by stoa count.
--blocks lists the blocks of Kudu directories instead, with the 20 fields of Kudu's own "kudu fs list";
--unnamed those that
no superblock names, and what is found in containers whose metadata is lost.
--segments lists the segments of CarbonData tables: status, times, sizes, rows, and what was merged into what.
With --carbon-properties and without a path, the store that the file names is listed.`,
		Example: "  stoa ls data/\n  stoa ls --segments store#sales.orders",
		Args:    func(_ *cobra.Command, args []string) error { return cli.OnceDash(args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && src.Word("carbon-properties") != "" {
				args = []string{source.StorePath}
			}
			if len(args) == 0 {
				args = []string{"."}
			}
			switch {
			case blocks && unnamed, segments && (blocks || unnamed):
				return cli.WrongUse("--blocks, --unnamed and --segments do not go together")
			case src.Word("at") != "":
				return cli.WrongUse("ls tells what is stored, not what a table held at a time: --at is for reading " +
					"it (stoa count --at TIME)")
			case unnamed && src.Word("tablet") != "":
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
	cmd.Flags().BoolVar(&blocks, "blocks", false, "list the blocks of Kudu directories, or of the table in DIR#TABLE")
	out.Register(cmd, output.ReportForms, "default text")
	src.Register(a, cmd)
	return cmd
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
	var docs []entryDoc
	failed := source.EachPath(a, ctx, cmd, args, func(p string) error {
		some, err := listPlace(a, ctx, p, o)
		docs = append(docs, some...)
		return err
	})
	if failed != nil && len(docs) == 0 {
		return failed
	}
	last := "problem"
	if out.Form == "" || out.Form == "text" {
		last = "remarks" // of parts, what they are
	}
	r := &output.Report{Cols: []output.ReportColumn{{Name: "name"}, {Name: "format"}, {Name: "kind"},
		{Name: "rows", Right: true},
		{Name: "size", Right: true}, {Name: "columns", Right: true}, {Name: last}}}
	for _, d := range docs {
		cols := ""
		if d.Columns != nil {
			cols = strconv.FormatInt(*d.Columns, 10)
		}
		r.Add(d, d.Name, d.Format, d.Kind, display.Maybe(Number(d.Rows)), display.BytesText(Number(d.Bytes)), cols,
			d.Problem)
		if out.Form != "" && out.Form != "text" {
			continue // the parts are in the document; a list is of tables
		}
		for _, p := range d.Parts {
			r.Add(nil, display.Indent(1)+p.Name, "", p.Kind, display.Maybe(Number(p.Rows)),
				display.BytesText(Number(p.Bytes)), "",
				p.Facts.Text())
		}
	}
	if err := r.Write(ctx, a, out); err != nil {
		return err
	}
	if failed == nil {
		return toldIn(docs)
	}
	return failed
}

// toldIn is the error that the problems of entries, which were told, mean for the status: what cannot be read
// at all is only listed.
func toldIn(docs []entryDoc) error {
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
		if p := new(fs.PathError); errors.As(d.why, &p) || store.Failing(d.why) || errors.Is(d.why, fault.Limit) {
			return cli.ErrFailed
		}
	}
	return nil
}

// Number is the inverse of known.
func Number(p *int64) int64 {
	if p == nil {
		return -1
	}
	return *p
}

// listPlace is the entries of one path. The files of a directory that is no format's own are listed one by one, so that
// a foreign file among them is no obstacle.
func listPlace(a *cli.App, ctx context.Context, p string, o stoa.OpenOptions) ([]entryDoc, error) {
	tr := cli.Tree{A: a}
	info, err := tr.Stat(ctx, p)
	var owner *format.Format
	if err == nil && info.Dir {
		if owner, err = stoa.Probe(ctx, format.Target{Tree: tr, Name: p}, o); err != nil {
			return listDir(a, ctx, p, o)
		}
	}
	var out []entryDoc
	for e, err := range stoa.List(ctx, p, o) {
		if err != nil && e.Place != "" {
			continue // it is listed by itself
		}
		if err != nil {
			return out, err
		}
		if owner != nil && system(e.Format) != owner.System() { // beside goes deeper, and tells what cannot be read
			continue
		}
		out = append(out, entryOf(a, ctx, e, o))
	}
	if owner == nil || o.From != "" {
		return out, nil
	}
	more, err := besidePlace(a, ctx, p, owner.System(), o)
	return append(out, more...), err
}

// system is whose files the format of a name reads.
func system(name string) string {
	for _, f := range catalogue.Formats() {
		if f.Name == name {
			return f.System()
		}
	}
	return name
}

// besidePlace are the entries of other formats in a directory that is one's: tables are looked for in directories
// below it, and what else lies there is to be seen, too.
func besidePlace(a *cli.App, ctx context.Context, dir, owner string, o stoa.OpenOptions) ([]entryDoc, error) {
	var out []entryDoc
	tr := cli.Tree{A: a}
	out = append(out, odds(ctx, tr, dir, o)...)
	for info, err := range tr.List(ctx, dir) {
		if err != nil && info.Name == "" {
			return out, err
		}
		if err != nil {
			out = append(out, entryDoc{Name: info.Name, Problem: Problem(err), why: err})
			continue
		}
		f, err := stoa.Probe(ctx, format.Target{Tree: tr, Name: info.Name}, o)
		switch {
		case err == nil && f.System() == owner:
		case err == nil:
			some, err := listPlace(a, ctx, info.Name, o)
			out = append(out, some...)
			if err != nil {
				out = append(out, entryDoc{Name: info.Name, Bytes: reading.Known(info.Size), Problem: Problem(err),
					why: err})
			}
		case store.Failing(err):
			out = append(out, entryDoc{Name: info.Name, Bytes: reading.Known(info.Size), Problem: Problem(err),
				why: err})
		case info.Dir && holdsOthers(a, ctx, info.Name, owner, o):
			out = append(out, entryDoc{Name: info.Name + "/", Kind: "directory"})
		}
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
	}
	return out, nil
}

// holdsOthers reports whether one of the first files in dir is of another format than owner's.
func holdsOthers(a *cli.App, ctx context.Context, dir, owner string, o stoa.OpenOptions) bool {
	n := 0
	tr := cli.Tree{A: a}
	for info, err := range tr.List(ctx, dir) {
		if err != nil || n == 20 {
			return false
		}
		n++
		if f, err := stoa.Probe(ctx, format.Target{Tree: tr, Name: info.Name}, o); err == nil && f.System() != owner {
			return true
		}
	}
	return false
}

func listDir(a *cli.App, ctx context.Context, dir string, o stoa.OpenOptions) ([]entryDoc, error) {
	out := []entryDoc{}
	tr := cli.Tree{A: a}
	for info, err := range tr.List(ctx, dir) {
		if err != nil && info.Name == "" {
			return out, err
		}
		if path.Base(info.Name)[0] == '.' {
			continue
		}
		if err != nil {
			out = append(out, entryDoc{Name: info.Name, Problem: Problem(err), why: err})
			continue
		}
		if info.Dir {
			out = append(out, subdirectory(a, ctx, info.Name, o)...)
			continue
		}
		some, err := listPlace(a, ctx, info.Name, o)
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		out = append(out, some...)
		if err != nil {
			out = append(out, entryDoc{Name: info.Name, Bytes: reading.Known(info.Size), Problem: Problem(err),
				why: err})
		}
	}
	return append(out, odds(ctx, tr, dir, o)...), nil
}

// odds are the entries of a directory that are no files.
func odds(ctx context.Context, tr store.Tree, dir string, o stoa.OpenOptions) (out []entryDoc) {
	for odd := range store.OddOf(ctx, tr, dir) {
		if path.Base(odd.Name)[0] != '.' {
			err := stoa.OddError(odd, o)
			out = append(out, entryDoc{Name: odd.Name, Problem: odd.What, why: err})
		}
	}
	return out
}

// subdirectory is an entry, or what is in it if the directory is a format's own.
func subdirectory(a *cli.App, ctx context.Context, name string, o stoa.OpenOptions) []entryDoc {
	_, err := stoa.Probe(ctx, format.Target{Tree: cli.Tree{A: a}, Name: name}, o)
	if err == nil {
		some, err := listPlace(a, ctx, name, o)
		if err != nil {
			some = append(some, entryDoc{Name: name + "/", Problem: Problem(err), why: err})
		}
		return some
	}
	d := entryDoc{Name: name + "/", Kind: "directory"}
	if store.Failing(err) {
		d.Problem, d.why = Problem(err), err
	}
	return []entryDoc{d}
}

// Problem is an error without its place, which stands beside it.
func Problem(err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		if e.Class == fault.Unsupported {
			return e.Reason
		}
		c := *e
		c.At = fault.Span{}
		return cli.InFlags(c.Error())
	}
	return cli.InFlags(cli.Line(err))
}

// entryOf makes what the format did not say known by opening the table.
func entryOf(a *cli.App, ctx context.Context, e format.Entry, o stoa.OpenOptions) entryDoc {
	name := e.Place
	if e.Table != "" {
		name += "#" + e.Table
	}
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
	damagesOf(a, &d, e.Place, format.Entry{Findings: t.Findings()})
	if d.Rows == nil {
		rows, err := t.Rows(ctx)
		if d.Rows = reading.Known(rows); errors.Is(err, fault.Corrupt) {
			d.Rows, d.why = nil, err
			if d.Problem == "" {
				d.Problem = Problem(err)
			}
		}
	}
	return d
}

// damagesOf tells what was noticed of damage. What is about the entry, whose part has this name, or a part of it, is
// its problem.
func damagesOf(a *cli.App, d *entryDoc, its string, e format.Entry) {
	for _, f := range e.Findings {
		if f.Severity < region.Error {
			continue
		}
		if d.why == nil {
			d.why = fault.Corrupt
		}
		its := f.Part == its || slices.ContainsFunc(e.Parts, func(p format.Entry) bool { return p.Table == f.Part })
		if d.Problem == "" && its {
			d.Problem = cli.InFlags(f.Message)
		}
	}
	reading.TellFindings(a, e.Findings)
}
