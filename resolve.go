package stoa

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/glob"
	"stoa/internal/parts"
	"stoa/internal/share"
	"stoa/internal/watched"
	"stoa/region"
	"stoa/store"
)

// found is a target and the format that reads it.
type found struct {
	format.Target
	format *format.Format
	set    string    // the directory, owned by no format, in which it was found
	dir    bool      // it is a directory in set
	below  []string  // directories of files next to it, which are not read; in the first target of a set
	left   []leftOut // files next to it that are not part of the table; in the first target of a set
	share  share.Share
}

// leftOut is an entry of a directory of files that is not read, with the reason.
type leftOut struct {
	name  string
	err   error
	known *region.Finding // set for an entry that is not a file, or whose name is that of a format; else nil
}

// finding returns what verify and the reading verbs report. A file that cannot be opened, or a dangling link, may have
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

// passed returns findings about the directories and files that are not read.
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

// cut returns an error if reading a file of a directory failed before it was known whether the file is part of the
// table.
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

// resolveAll returns the targets that the URIs name, with their formats.
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
		if i := store.TableIn(ctx, tree, uri); i >= 0 {
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
	name = glob.DotDot(tree, name)
	tg := format.Target{Tree: tree, Name: name, Table: table}
	f, err := Probe(ctx, tg, o)
	if err == nil {
		return []found{{Target: tg, format: f, share: o.Share}}, nil
	}
	// its contents may be reported even if not all of them can be read
	if info.Dir && o.From == "" && (!store.Failing(err) || watched.Denied(err)) {
		if err := glob.Unfinished(ctx, tg.Tree, tg.Name); err != nil {
			return nil, err
		}
		out, again := resolveDir(ctx, tg, o)
		if watched.Denied(err) && slices.ContainsFunc(out, func(f found) bool { return f.dir }) {
			return nil, err // a table in it may be part of a larger one, of which the rest is not to be seen
		}
		return out, again
	}
	return nil, err
}

func isPattern(name string) bool { return strings.ContainsAny(name, "*?[") }

func resolveGlob(ctx context.Context, pattern, table string, o OpenOptions) ([]found, error) {
	names, err := globNames(ctx, pattern, o.tree())
	if err != nil {
		return nil, err
	}
	var out []found
	missing := missingParts(ctx, o.tree(), names, o)
	names, o.Share = share.Some(o.Share, names)
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
	if len(out) > 0 {
		out[0].left = append(out[0].left, missing...)
	}
	return out, nil
}

// globNames returns the names that match a pattern, at least one.
func globNames(ctx context.Context, pattern string, tree store.Tree) ([]string, error) {
	return glob.Names(ctx, tree, pattern, glob.MaxDepth, func(dir string) string { return glob.DotDot(tree, dir) })
}

// resolveDir returns the files of a directory that no format owns, and the directories in it that a format owns. Names
// that begin with . or _ are skipped, as by every system that keeps tables in directories.
func resolveDir(ctx context.Context, tg format.Target, o OpenOptions) ([]found, error) {
	var out []found
	var below, names []string
	var left []leftOut
	entries := share.EntriesOf(ctx, tg.Tree, tg.Name, o.Share, glob.Ignored)
	for info, err := range tg.Tree.List(ctx, tg.Name) {
		if err != nil && info.Name == "" {
			return nil, err
		}
		if glob.Ignored(info.Name) {
			continue
		}
		if err != nil {
			left = append(left, leftOut{name: info.Name, err: err})
			continue
		}
		if names = append(names, info.Name); entries.Skips() {
			continue
		}
		in := format.Target{Tree: tg.Tree, Name: info.Name, Table: tg.Table}
		f, err := Probe(ctx, in, o)
		if err != nil && info.Dir && (!store.Failing(err) || watched.Denied(err)) {
			if glob.HoldsFile(ctx, tg.Tree, info.Name, 0) {
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
		out = append(out, found{Target: in, format: f, set: tg.Name, dir: info.Dir, share: entries.Each})
	}
	for irregular := range store.IrregularIn(ctx, tg.Tree, tg.Name) {
		if !glob.Ignored(irregular.Name) {
			left = append(left, leftOut{irregular.Name, IrregularError(irregular, o), irregularFinding(irregular, o)})
		}
	}
	m, wrong, err := listed(ctx, tg, names, o)
	if err != nil {
		return nil, err
	}
	left = append(left, wrong...)
	if out = slices.DeleteFunc(out, func(f found) bool { return !m.Lists(f.Name) }); len(out) == 0 {
		return nil, nothingReadable(ctx, tg, left)
	}
	for i := range out {
		out[i].dir = out[i].dir && m == nil // else a part, and not one of several tables
	}
	out[0].below, out[0].left = below, left
	return out, nil
}

// nothingReadable returns the error for a directory in which nothing can be read: the reason for the first file, if
// there is one.
func nothingReadable(ctx context.Context, tg format.Target, left []leftOut) error {
	for _, l := range left {
		if !errors.Is(l.err, fault.Unsupported) {
			return l.err
		}
	}
	return fault.New(fault.Invalid, fault.Span{Object: tg.Name}, "", "%s", glob.Nothing(ctx, tg.Tree, tg.Name))
}

// irregularFinding reports an entry that is not a file. A dangling link that is named like a file of a format stands
// for a lost file.
func irregularFinding(irregular store.Irregular, o OpenOptions) *region.Finding {
	f := &region.Finding{Code: "dir.odd", Severity: region.Warning, At: fault.Span{Object: irregular.Name},
		Part: irregular.Name, Rows: [2]int64{-1, -1}, Message: irregular.What}
	if by := byName(format.Target{Name: irregular.Name}, o.formats()); irregular.Link && by != nil {
		f.Code, f.Severity, f.Lost = "file.unreadable", region.Error, -1
		f.Message = fmt.Sprintf("by its name it is %s, but: %s", by.Name, irregular.What)
	}
	return f
}

// IrregularError returns why an entry of a directory is skipped. The error is of class Corrupt if a file of the table
// should be there.
func IrregularError(irregular store.Irregular, o OpenOptions) error {
	if f := irregularFinding(irregular, o); f.Severity == region.Error {
		return fault.Corruptf(f.At, "", "%s", f.Message)
	}
	return &irregular
}

// misnamed returns a finding about a file that no format recognizes although its name has a format's extension: if a
// disk returned nothing, or zeros, the file must not pass for an unknown one. It returns nil if the name has no such
// extension.
func misnamed(ctx context.Context, name string, o OpenOptions, err error) *region.Finding {
	if o.From != "" || !errors.Is(err, fault.Unsupported) {
		return nil
	}
	base := strings.ToLower(path.Base(name))
	for _, f := range o.formats() {
		for _, ext := range f.Extensions {
			// a text file has no magic by which to recognize it
			if !strings.HasSuffix(base, ext) || f.Describe == nil && !f.ByPages() && !glob.Zeros(ctx, o.tree(), name) {
				continue
			}
			return &region.Finding{Code: "file.unreadable", Severity: region.Error, At: fault.Span{Object: name},
				Part: name, Rows: [2]int64{-1, -1}, Lost: -1,
				Message: fmt.Sprintf("by its name it is %s, but: %s", f.Name, reasonOf(err))}
		}
	}
	return nil
}

func reasonOf(err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return err.Error()
}

// listed returns the manifest of a directory, nil if there is none, and what is wrong with the files of these names. A
// damaged manifest is; then all files are read.
func listed(ctx context.Context, dir format.Target, names []string, o OpenOptions) (*parts.Manifest, []leftOut, error) {
	m, err := parts.ReadManifest(ctx, dir.Tree, dir.Name)
	if errors.Is(err, fault.Corrupt) {
		m = nil
	} else if err != nil {
		return nil, nil, err
	}
	if m != nil || err != nil { // it may list files when none is there
		names = append(names, path.Join(dir.Name, parts.ManifestName))
	}
	return m, missingParts(ctx, dir.Tree, names, o), nil
}

// missingParts returns the files that internal/parts reports as missing or duplicate.
func missingParts(ctx context.Context, tree store.Tree, names []string, o OpenOptions) (out []leftOut) {
	for _, f := range parts.Wrong(ctx, tree, names, o.formats()) {
		why := fault.Corruptf
		if f.Severity < region.Error {
			why = fault.Unsupportedf
		}
		out = append(out, leftOut{f.Part, why(f.At, "", "%s", f.Message), &f})
	}
	return out
}
