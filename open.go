package stoa

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// metaCache is how many bytes of footers and indexes a source keeps.
const metaCache = 64 << 20

// pageCache is how many bytes of decoded pages a table keeps for look-ups.
const pageCache = 256 << 20

// openFiles is how many files a source holds open at a time; a process may often have 1024.
const openFiles = 256

func (o OpenOptions) formats() []format.Format {
	if o.Formats == nil {
		return Formats
	}
	return o.Formats
}

func (o OpenOptions) tree() store.Tree {
	if o.Tree == nil {
		return store.Local{}
	}
	return o.Tree
}

func (o OpenOptions) internal() format.OpenOptions {
	return format.OpenOptions{Limits: o.Limits.WithDefaults(), NoVerify: o.NoVerify, Depth: o.Depth, Opts: o.Opts}
}

// Open opens one source: PATH, or PATH#TABLE where one place holds several tables.
// PATH may be a file, a glob, or a directory: of a format's own, or of files that together are one table.
func Open(ctx context.Context, uri string, o OpenOptions) (*Table, error) {
	return OpenAll(ctx, []string{uri}, o)
}

// OpenAll opens several sources with the same schema as one table, their rows one after the other.
func OpenAll(ctx context.Context, uris []string, o OpenOptions) (*Table, error) {
	var targets []found
	for _, uri := range uris {
		some, err := resolveURI(ctx, uri, o)
		if err == nil && !o.Recover {
			err = cut(some)
		}
		if err == nil {
			err = single(ctx, some, o)
		}
		if err != nil {
			return nil, err
		}
		targets = append(targets, some...)
	}
	if len(targets) == 0 {
		return nil, fault.Invalidf("nothing to open")
	}
	t := &Table{opened: o}
	pages := pagesOf(o)
	for _, tg := range targets {
		s, findings, err := openAlone(ctx, tg, o)
		if err != nil {
			t.Close()
			return nil, err
		}
		s.scan.Pages = pages
		t.sources = append(t.sources, s)
		t.findings = append(append(t.findings, tg.passed()...), findings...)
		if err := t.join(s); err != nil {
			t.Close()
			return nil, err
		}
	}
	return t, nil
}

// found is a target and the format that reads it.
type found struct {
	format.Target
	format *format.Format
	set    string    // the directory that is no format's own and in which it was found
	dir    bool      // it is a directory in that
	below  []string  // directories of files beside it, which are not read; of the first of a set
	left   []leftOut // files beside it that are none of the table; of the first of a set
}

// leftOut is what a directory of files holds besides them, and why it is not read.
type leftOut struct {
	name  string
	err   error
	known *region.Finding // of what is no file, or should be one of a format by its name; else nil
}

// finding is how verify and the reading verbs tell it. What cannot be opened, or led to what is gone, may have
// been part of the table.
func (l *leftOut) finding() region.Finding {
	if l.known != nil {
		return *l.known
	}
	f := region.Finding{Code: "dir.left.out", Severity: region.Warning, At: fault.Span{Object: l.name},
		Part: l.name, Rows: [2]int64{-1, -1}, Message: reasonOf(l.err)}
	if !errors.Is(l.err, fault.Unsupported) {
		f.Code, f.Severity, f.Lost = "file.unreadable", region.Error, -1
	}
	return f
}

// passed tells of the directories and files that are not read.
func (f *found) passed() (out []region.Finding) {
	for _, l := range f.left {
		out = append(out, l.finding())
	}
	for _, name := range f.below {
		out = append(out, region.Finding{Code: "dir.below", Severity: region.Warning, At: fault.Span{Object: name},
			Part: name, Rows: [2]int64{-1, -1},
			Message: fmt.Sprintf("the files beside it in %s are read, and what lies in this directory is not", f.set)})
	}
	return out
}

// cut is an error if a file of a directory could not be read so far that anybody knows whether it is one of the
// table's.
func cut(targets []found) error {
	for _, tg := range targets {
		for _, l := range tg.left {
			if store.Failing(l.err) {
				return l.err
			}
		}
	}
	return nil
}

// join makes s's schema fit the table's: same names and types; a column is nullable if it is in one source.
func (t *Table) join(s *source) error {
	sc := s.reader.Schema()
	if t.schema == nil {
		t.schema = sc
		return nil
	}
	first := t.sources[0].name
	if len(sc.Fields()) != len(t.schema.Fields()) {
		return fault.Invalidf("%s has %d columns, %s has %d: they are not one table", s.name, len(sc.Fields()),
			first, len(t.schema.Fields()))
	}
	fields := slices.Clone(t.schema.Fields())
	for i, f := range sc.Fields() {
		have := &fields[i]
		if f.Name != have.Name || !arrow.TypeEqual(f.Type, have.Type) {
			return fault.Invalidf("column %d of %s is %s %s, in %s it is %s %s: they are not one table", i+1,
				s.name, f.Name, f.Type, first, have.Name, have.Type)
		}
		have.Nullable = have.Nullable || f.Nullable
	}
	meta := t.schema.Metadata()
	t.schema = arrow.NewSchema(fields, &meta)
	return nil
}

// openAlone opens a target. That of a directory there is no other table than the one that is opened is part of it.
func openAlone(ctx context.Context, tg found, o OpenOptions) (*source, []region.Finding, error) {
	switch holds, err := mayHold(ctx, tg, o); {
	case err != nil:
		return nil, nil, err
	case !holds:
		return openOne(ctx, tg, o)
	}
	seen := newOpened(tg.Tree)
	tg.Tree = seen
	s, findings, err := openOne(ctx, tg, o)
	if !unnamed(err) {
		return nil, nil, err
	}
	if several := alone(ctx, tg, seen, o); several != nil {
		if s != nil {
			several = errors.Join(several, s.close())
		}
		return nil, nil, several
	}
	return s, findings, err
}

// Unrecovered is why recovery gave up, with what it had found by then.
type Unrecovered struct {
	Findings []region.Finding
	Err      error
}

func (e *Unrecovered) Error() string { return e.Err.Error() }
func (e *Unrecovered) Unwrap() error { return e.Err }

func openOne(ctx context.Context, tg found, o OpenOptions) (*source, []region.Finding, error) {
	data := store.NewFew(tg.Tree, openFiles)
	stamp := data.Stamp(ctx, tg.Name) // before anything is read: what changes later shows
	meta := store.NewCache(data, metaCache)
	inner := tg.Target
	inner.Tree = meta
	var r format.Reader
	var findings []region.Finding
	var err error
	switch {
	case o.Recover && tg.format.Recover != nil:
		r, findings, err = tg.format.Recover(ctx, inner, o.internal())
	case tg.format.Open == nil:
		err = fault.Unsupportedf(fault.Span{Object: tg.Name}, "", "%s files cannot be opened as a table",
			tg.format.Name)
	default:
		r, err = tg.format.Open(ctx, inner, o.internal())
	}
	if err != nil {
		if len(findings) > 0 {
			err = &Unrecovered{findings, err}
		}
		return nil, nil, errors.Join(err, meta.Close())
	}
	name := tg.Name
	if tg.Table != "" {
		name += "#" + tg.Table
	}
	return &source{name: name, file: tg.Name, stamp: stamp, format: tg.format, target: tg, reader: r, meta: meta,
		data: data,
		scan: scan.Source{Reader: r, Objects: scan.NewObjects(data), Dicts: scan.NewDicts(),
			Limits: o.Limits.WithDefaults(), NoVerify: o.NoVerify}}, findings, nil
}

// pagesOf is where the sources of a table keep decoded pages.
func pagesOf(o OpenOptions) *vec.Cache {
	switch {
	case o.KeepPages < 0:
		return nil
	case o.KeepPages == 0:
		return vec.NewCache(pageCache)
	}
	return vec.NewCache(o.KeepPages)
}

// resolveAll finds the targets that the URIs name, and their formats.
func resolveAll(ctx context.Context, uris []string, o OpenOptions) ([]found, error) {
	var out []found
	for _, uri := range uris {
		some, err := resolveURI(ctx, uri, o)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	if len(out) == 0 {
		return nil, fault.Invalidf("nothing to open")
	}
	return out, nil
}

func resolveURI(ctx context.Context, uri string, o OpenOptions) ([]found, error) {
	tree := o.tree()
	name, table := uri, ""
	info, err := tree.Stat(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		if i := strings.LastIndexByte(uri, '#'); i >= 0 {
			name, table = uri[:i], uri[i+1:]
			info, err = tree.Stat(ctx, name)
		}
	}
	if errors.Is(err, fs.ErrNotExist) && isPattern(name) {
		return resolveGlob(ctx, name, table, o)
	}
	if err != nil {
		return nil, err
	}
	name = straight(tree, name)
	tg := format.Target{Tree: tree, Name: name, Table: table}
	f, err := Probe(ctx, tg, o)
	if err == nil {
		return []found{{Target: tg, format: f}}, nil
	}
	// what lies in it may be told even if not all can be looked at
	if info.Dir && o.From == "" && (!store.Failing(err) || denied(err)) {
		return resolveDir(ctx, tg, o)
	}
	return nil, err
}

// straight is name as the system means it, where .. follows a symbolic link.
func straight(tree store.Tree, name string) string {
	if local, ok := tree.(interface{ Straight(string) string }); ok {
		return local.Straight(name)
	}
	return name
}

func isPattern(name string) bool { return strings.ContainsAny(name, "*?[") }

func resolveGlob(ctx context.Context, pattern, table string, o OpenOptions) ([]found, error) {
	names, err := glob(ctx, pattern, o.tree())
	if err != nil {
		return nil, err
	}
	var out []found
	for _, uri := range names {
		if table != "" {
			uri += "#" + table
		}
		some, err := resolveURI(ctx, uri, o)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// glob is what a pattern matches, one at least. Names that begin with a dot are matched by patterns that do, as
// in a shell.
func glob(ctx context.Context, pattern string, tree store.Tree) (names []string, err error) {
	first := strings.IndexAny(pattern, "*?[")
	k := strings.LastIndexByte(pattern[:first], '/') + 1
	dir, rest := pattern[:k], pattern[k:]
	// of which directory it is the one above differs from match to match
	if slices.Contains(strings.Split(rest, "/"), "..") {
		return nil, fault.Invalidf("%s: .. does not go behind a pattern", pattern)
	}
	if dir != "" {
		dir = strings.TrimSuffix(straight(tree, dir), "/") + "/"
	}
	var walk func(dir string, parts []string) error
	walk = func(dir string, parts []string) error {
		for info, err := range tree.List(ctx, dir) {
			if err != nil {
				return err
			}
			base := path.Base(info.Name)
			if base[0] == '.' && parts[0][0] != '.' {
				continue
			}
			switch ok, err := path.Match(parts[0], base); {
			case err != nil:
				return fault.Invalidf("%s: %v", pattern, err)
			case ok && len(parts) == 1:
				names = append(names, info.Name)
			case ok && info.Dir:
				if err := walk(info.Name, parts[1:]); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if dir != "/" {
		dir = strings.TrimSuffix(dir, "/")
	}
	if err := walk(dir, strings.Split(path.Clean(rest), "/")); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, &fs.PathError{Op: "open", Path: pattern, Err: errors.New("no file matches")}
	}
	return names, nil
}

// resolveDir takes the files of a directory that is no format's own, and the directories in it that are one's.
// Names that begin with . or _ are passed over, as every system does that keeps tables in directories.
func resolveDir(ctx context.Context, tg format.Target, o OpenOptions) ([]found, error) {
	var out []found
	var below []string
	var left []leftOut
	for info, err := range tg.Tree.List(ctx, tg.Name) {
		if err != nil && info.Name == "" {
			return nil, err
		}
		if passedOver(info.Name) {
			continue
		}
		if err != nil {
			left = append(left, leftOut{name: info.Name, err: err})
			continue
		}
		in := format.Target{Tree: tg.Tree, Name: info.Name, Table: tg.Table}
		f, err := Probe(ctx, in, o)
		if err != nil && info.Dir && (!store.Failing(err) || denied(err)) {
			if holdsFile(ctx, tg.Tree, info.Name, 0) {
				below = append(below, info.Name)
			}
			continue
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			l := leftOut{info.Name, err, misnamed(ctx, info.Name, o, err)}
			if l.known != nil {
				l.err = fault.Corruptf(l.known.At, "", "%s", l.known.Message)
			}
			left = append(left, l)
			continue
		}
		out = append(out, found{Target: in, format: f, set: tg.Name, dir: info.Dir})
	}
	for odd := range store.OddOf(ctx, tg.Tree, tg.Name) {
		if !passedOver(odd.Name) {
			left = append(left, leftOut{odd.Name, OddError(odd, o), oddFinding(odd, o)})
		}
	}
	if len(out) == 0 {
		return nil, nothingIn(tg.Name, left)
	}
	out[0].below, out[0].left = below, left
	return out, nil
}

// passedOver reports whether what has the name is no part of a directory of files.
func passedOver(name string) bool {
	base := path.Base(name)
	return base[0] == '.' || base[0] == '_'
}

// nothingIn is the error of a directory of which nothing can be read: why its first file cannot, if there is one.
func nothingIn(name string, left []leftOut) error {
	for _, l := range left {
		if !errors.Is(l.err, fault.Unsupported) {
			return l.err
		}
	}
	return fault.New(fault.Invalid, fault.Span{Object: name}, "", "the directory holds no files that stoa knows")
}

// holdsFile reports whether a file lies in or below a directory, but for those that begin with . or _. What
// cannot be listed counts as one.
func holdsFile(ctx context.Context, tree store.Tree, name string, depth int) bool {
	for info, err := range tree.List(ctx, name) {
		if err != nil {
			return true
		}
		base := path.Base(info.Name)
		if base[0] == '.' || base[0] == '_' {
			continue
		}
		if !info.Dir || depth > deepest || holdsFile(ctx, tree, info.Name, depth+1) {
			return true
		}
	}
	return false
}

// List gives what a place holds: tables, or the file itself. An error with an entry that has a Place is about
// that file of a directory alone, which is left out of what Open makes of it, and the listing goes on.
func List(ctx context.Context, uri string, o OpenOptions) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		targets, err := resolveAll(ctx, []string{uri}, o)
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		for _, tg := range targets {
			if !listTarget(ctx, tg, o, yield) {
				return
			}
		}
	}
}

// listTarget gives what a target holds, and the tables of other formats in it. It reports whether to go on.
func listTarget(ctx context.Context, tg found, o OpenOptions, yield func(format.Entry, error) bool) bool {
	for _, l := range tg.left {
		if !yield(format.Entry{Place: l.name, Rows: -1, Bytes: -1}, l.err) {
			return false
		}
	}
	all := []found{tg}
	for i := 0; i < len(all); i++ {
		one, seen := all[i], newOpened(all[i].Tree)
		holds, err := mayHold(ctx, one, o)
		if err != nil {
			return yield(format.Entry{Place: one.Name, Rows: -1, Bytes: -1}, err)
		}
		if holds {
			one.Tree = seen
		}
		for e, err := range listOne(ctx, one, o) {
			if err != nil && tg.set == "" && i == 0 {
				e.Place = "" // of the place itself
			}
			if !yield(e, err) || err != nil && e.Place == "" {
				return false
			}
		}
		if !holds {
			continue
		}
		more, left, err := others(ctx, seen, one.format, one.Name, o)
		if err != nil {
			yield(format.Entry{}, err)
			return false
		}
		for _, l := range left {
			if !yield(format.Entry{Place: l.name, Rows: -1, Bytes: -1}, l.err) {
				return false
			}
		}
		all = append(all, more...)
	}
	return true
}

// listOne is what one target holds.
func listOne(ctx context.Context, tg found, o OpenOptions) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		if tg.format.List == nil {
			yield(format.Entry{Kind: tg.format.Title, Rows: -1, Bytes: -1, Place: tg.Name, Format: tg.format.Name}, nil)
			return
		}
		tg.Opts = o.Opts
		for e, err := range tg.format.List(ctx, tg.Target) {
			e.Place, e.Format = tg.Name, tg.format.Name
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
