package main

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/catalogue"
	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// entryDoc is what -f json has for each entry; null is not known.
type entryDoc struct {
	Name    string `json:"name"`
	Format  string `json:"format,omitempty"`
	Kind    string `json:"kind,omitempty"`
	Rows    *int64 `json:"rows"`
	Bytes   *int64 `json:"bytes"`
	Columns *int64 `json:"columns"`
	Facts   pairs  `json:"facts,omitempty"`
	Problem string `json:"problem,omitempty"`

	Parts []entryDoc `json:"parts,omitempty"`

	why error // the problem
}

func (a *app) lsCmd() *cobra.Command {
	var src sourceFlags
	var out outputFlags
	var blocks, unnamed, segments bool
	cmd := &cobra.Command{
		Use:   "ls [PATH...]",
		Short: "List what a place holds",
		Long: `List the tables in a place, or the files of a directory: name, format, kind, rows, size, number of columns, and what
is wrong with those that cannot be read; of tables that have parts with names, also these. Without a path: the working
directory. -f json is an array with an object an entry. It answers from metadata, as opening reads it (catalogues,
superblocks, footers, schemas, the files that they name): the status is 3 if something of that is damaged or missing,
and 0 where only indexes or pages are damaged, which stoa verify reads. Rows of Kudu tables are those that were
flushed: what only the log has, which would have to be replayed, is counted by stoa count.
--blocks lists the blocks of Kudu directories instead, with the 20 fields of Kudu's own "kudu fs list"; --unnamed those that
no superblock names, and what is found in containers whose metadata is lost.
--segments lists the segments of CarbonData tables: status, times, sizes, rows, and what was merged into what.
With --carbon-properties and without a path, the store that the file names is listed.`,
		Example: "  stoa ls data/\n  stoa ls --segments store#sales.orders",
		Args:    func(_ *cobra.Command, args []string) error { return onceDash(args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && src.word("carbon-properties") != "" {
				args = []string{storePath}
			}
			if len(args) == 0 {
				args = []string{"."}
			}
			switch {
			case blocks && unnamed, segments && (blocks || unnamed):
				return wrongUse("--blocks, --unnamed and --segments do not go together")
			case src.word("at") != "":
				return wrongUse("ls tells what is stored, not what a table held at a time: --at is for reading " +
					"it (stoa count --at TIME)")
			case unnamed && src.word("tablet") != "":
				return wrongUse("--unnamed and --tablet do not go together: nothing says to which tablet these " +
					"blocks belong")
			case segments:
				return a.lsSegments(cmd, args, &src, &out)
			case blocks:
				return a.lsBlocks(cmd, args, &src, &out, "blocks")
			case unnamed:
				return a.lsBlocks(cmd, args, &src, &out, "unnamed")
			}
			return a.ls(cmd, args, &src, &out)
		},
	}
	cmd.Flags().BoolVar(&unnamed, "unnamed", false, "list the blocks of Kudu directories that no superblock names")
	cmd.Flags().BoolVar(&segments, "segments", false, "list the segments of CarbonData tables")
	cmd.Flags().BoolVar(&blocks, "blocks", false, "list the blocks of Kudu directories, or of the table in DIR#TABLE")
	out.register(cmd, reportForms, "default text")
	src.register(a, cmd)
	return cmd
}

func (a *app) ls(cmd *cobra.Command, args []string, src *sourceFlags, out *outputFlags) error {
	ctx := cmd.Context()
	if err := out.check(reportForms); err != nil {
		return err
	}
	o, err := src.options(ctx, a, args)
	if err != nil {
		return err
	}
	var docs []entryDoc
	failed := a.eachPath(ctx, cmd, args, func(p string) error {
		some, err := a.list(ctx, p, o)
		docs = append(docs, some...)
		return err
	})
	if failed != nil && len(docs) == 0 {
		return failed
	}
	last := "problem"
	if out.form == "" || out.form == "text" {
		last = "remarks" // of parts, what they are
	}
	r := &report{cols: []reportColumn{{name: "name"}, {name: "format"}, {name: "kind"}, {"rows", true},
		{"size", true}, {"columns", true}, {name: last}}}
	for _, d := range docs {
		cols := ""
		if d.Columns != nil {
			cols = strconv.FormatInt(*d.Columns, 10)
		}
		r.add(d, d.Name, d.Format, d.Kind, maybe(number(d.Rows)), bytesText(number(d.Bytes)), cols, d.Problem)
		if out.form != "" && out.form != "text" {
			continue // the parts are in the document; a list is of tables
		}
		for _, p := range d.Parts {
			r.add(nil, indent(1)+p.Name, "", p.Kind, maybe(number(p.Rows)), bytesText(number(p.Bytes)), "",
				p.Facts.text())
		}
	}
	if err := r.write(ctx, a, out); err != nil {
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
			return errDamage
		}
	}
	for _, d := range docs {
		if errors.Is(d.why, fault.Invalid) {
			return errUse
		}
	}
	for _, d := range docs {
		if p := new(fs.PathError); errors.As(d.why, &p) || store.Failing(d.why) || errors.Is(d.why, fault.Limit) {
			return errFailed
		}
	}
	return nil
}

// number is the inverse of known.
func number(p *int64) int64 {
	if p == nil {
		return -1
	}
	return *p
}

// list is the entries of one path. The files of a directory that is no format's own are listed one by one, so that
// a foreign file among them is no obstacle.
func (a *app) list(ctx context.Context, p string, o stoa.OpenOptions) ([]entryDoc, error) {
	tr := tree{a: a}
	info, err := tr.Stat(ctx, p)
	var owner *format.Format
	if err == nil && info.Dir {
		if owner, err = stoa.Probe(ctx, format.Target{Tree: tr, Name: p}, o); err != nil {
			return a.listDir(ctx, p, o)
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
		out = append(out, a.entry(ctx, e, o))
	}
	if owner == nil || o.From != "" {
		return out, nil
	}
	more, err := a.beside(ctx, p, owner.System(), o)
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

// beside are the entries of other formats in a directory that is one's: tables are looked for in directories
// below it, and what else lies there is to be seen, too.
func (a *app) beside(ctx context.Context, dir, owner string, o stoa.OpenOptions) ([]entryDoc, error) {
	var out []entryDoc
	tr := tree{a: a}
	out = append(out, odds(ctx, tr, dir, o)...)
	for info, err := range tr.List(ctx, dir) {
		if err != nil && info.Name == "" {
			return out, err
		}
		if err != nil {
			out = append(out, entryDoc{Name: info.Name, Problem: problem(err), why: err})
			continue
		}
		f, err := stoa.Probe(ctx, format.Target{Tree: tr, Name: info.Name}, o)
		switch {
		case err == nil && f.System() == owner:
		case err == nil:
			some, err := a.list(ctx, info.Name, o)
			out = append(out, some...)
			if err != nil {
				out = append(out, entryDoc{Name: info.Name, Bytes: known(info.Size), Problem: problem(err), why: err})
			}
		case store.Failing(err):
			out = append(out, entryDoc{Name: info.Name, Bytes: known(info.Size), Problem: problem(err), why: err})
		case info.Dir && a.holdsOthers(ctx, info.Name, owner, o):
			out = append(out, entryDoc{Name: info.Name + "/", Kind: "directory"})
		}
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
	}
	return out, nil
}

// holdsOthers reports whether one of the first files in dir is of another format than owner's.
func (a *app) holdsOthers(ctx context.Context, dir, owner string, o stoa.OpenOptions) bool {
	n := 0
	tr := tree{a: a}
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

func (a *app) listDir(ctx context.Context, dir string, o stoa.OpenOptions) ([]entryDoc, error) {
	out := []entryDoc{}
	tr := tree{a: a}
	for info, err := range tr.List(ctx, dir) {
		if err != nil && info.Name == "" {
			return out, err
		}
		if path.Base(info.Name)[0] == '.' {
			continue
		}
		if err != nil {
			out = append(out, entryDoc{Name: info.Name, Problem: problem(err), why: err})
			continue
		}
		if info.Dir {
			out = append(out, a.subdirectory(ctx, info.Name, o)...)
			continue
		}
		some, err := a.list(ctx, info.Name, o)
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		out = append(out, some...)
		if err != nil {
			out = append(out, entryDoc{Name: info.Name, Bytes: known(info.Size), Problem: problem(err), why: err})
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
func (a *app) subdirectory(ctx context.Context, name string, o stoa.OpenOptions) []entryDoc {
	_, err := stoa.Probe(ctx, format.Target{Tree: tree{a: a}, Name: name}, o)
	if err == nil {
		some, err := a.list(ctx, name, o)
		if err != nil {
			some = append(some, entryDoc{Name: name + "/", Problem: problem(err), why: err})
		}
		return some
	}
	d := entryDoc{Name: name + "/", Kind: "directory"}
	if store.Failing(err) {
		d.Problem, d.why = problem(err), err
	}
	return []entryDoc{d}
}

// problem is an error without its place, which stands beside it.
func problem(err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		if e.Class == fault.Unsupported {
			return e.Reason
		}
		c := *e
		c.At = fault.Span{}
		return inFlags(c.Error())
	}
	return inFlags(line(err))
}

// entry makes what the format did not say known by opening the table.
func (a *app) entry(ctx context.Context, e format.Entry, o stoa.OpenOptions) entryDoc {
	name := e.Place
	if e.Table != "" {
		name += "#" + e.Table
	}
	if e.Bytes < 0 && e.Table == "" {
		e.Bytes = a.size(ctx, e.Place)
	}
	d := entryDoc{Name: name, Format: e.Format, Kind: e.Kind, Rows: known(e.Rows), Bytes: known(e.Bytes)}
	for _, m := range e.Meta {
		if m.Key == "error" { // one table of many that cannot be read
			d.Problem = m.Value
			if t, err := stoa.Open(ctx, name, o); err == nil {
				t.Close()
			} else if !errors.Is(err, fault.Unsupported) {
				d.why = err
			}
			return d
		}
		d.Facts = append(d.Facts, [2]string{m.Key, m.Value})
	}
	for _, p := range e.Parts {
		x := entryDoc{Name: p.Table, Kind: p.Kind, Rows: known(p.Rows), Bytes: known(p.Bytes)}
		for _, m := range p.Meta {
			x.Facts = append(x.Facts, [2]string{m.Key, m.Value})
		}
		d.Parts = append(d.Parts, x)
	}
	a.damages(&d, e)
	t, err := stoa.Open(ctx, name, o)
	if err != nil {
		if !errors.Is(err, fault.Unsupported) {
			d.Problem, d.why = problem(err), err
		}
		return d
	}
	defer t.Close()
	d.Columns = known(int64(t.Schema().NumFields()))
	if d.Rows == nil {
		if rows, err := t.Rows(ctx); err == nil {
			d.Rows = known(rows)
		}
	}
	return d
}

// damages tells what the format noticed of damage. What is about the entry, or a part of it, is its problem.
func (a *app) damages(d *entryDoc, e format.Entry) {
	for _, f := range e.Findings {
		if f.Severity < region.Error {
			continue
		}
		d.why = fault.Corrupt
		its := f.Part == e.Table || slices.ContainsFunc(e.Parts, func(p format.Entry) bool { return p.Table == f.Part })
		if d.Problem == "" && its {
			d.Problem = inFlags(f.Message)
		}
	}
	a.tellFindings(e.Findings)
}

// text is all facts on a line.
func (p pairs) text() string {
	var parts []string
	for _, kv := range p {
		parts = append(parts, kv[0]+" "+kv[1])
	}
	return strings.Join(parts, ", ")
}
