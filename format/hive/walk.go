package hive

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/hive"
	"stoa/internal/parts"
	"stoa/region"
	"stoa/store"
)

// file is a file of the table, or a directory that its format reads as one.
type file struct {
	name   string
	bytes  int64
	stamp  string
	format *format.Format
	values []hive.Value // of its directories, from the outermost
}

// walk finds the files of a table.
type walk struct {
	*hiveFormat
	tree    store.Tree
	first   bool // only the first file is looked for
	salvage bool // files are opened by recovery
	files   []file
	left    []region.Finding // files that are not read
	found   []region.Finding // by recovery
	marked  bool             // stoa wrote a schema beside the partitions
}

// errFound ends a walk that looks for the first file.
var errFound = errors.New("found")

// maxDepth is how many levels of directories are followed.
const maxDepth = 40

// walk returns all files of a table, which must be in the same partition columns and of one format.
func (h *hiveFormat) walk(ctx context.Context, tg format.Target) (*walk, error) {
	w := &walk{hiveFormat: h, tree: tg.Tree}
	if err := w.dir(ctx, tg.Name, nil, 0); err != nil {
		return nil, err
	}
	for i := range w.files {
		f, a := &w.files[i], &w.files[0]
		if columns(f.values) != columns(a.values) {
			return nil, fault.Invalidf("%s is in the partitions %q, %s in %q: they are not one table", f.name,
				columns(f.values), a.name, columns(a.values))
		}
		if f.format.Name != a.format.Name {
			return nil, fault.Invalidf("%s is %s, %s is %s: they are not one table", f.name, f.format.Name, a.name,
				a.format.Name)
		}
	}
	return w, nil
}

// columns returns the names of partition columns as one text.
func columns(values []hive.Value) string {
	var out []string
	for _, v := range values {
		out = append(out, v.Column)
	}
	return strings.Join(out, "/")
}

// dir visits a directory. Names that begin with . or _ are skipped, as by Hive and Spark.
func (w *walk) dir(ctx context.Context, name string, values []hive.Value, depth int) error {
	if depth > maxDepth {
		return fault.Unsupportedf(fault.Span{Object: name}, "", "more than %d directories deep", maxDepth)
	}
	var names []string
	for info, err := range w.tree.List(ctx, name) {
		base := path.Base(info.Name)
		if err != nil && (info.Name == "" || !ignored(base)) {
			return err
		}
		if depth == 0 && base == hive.SchemaFile {
			w.marked = true
		}
		if ignored(base) {
			continue
		}
		if err := w.child(ctx, info, values, depth); err != nil {
			return err
		}
		if !info.Dir {
			names = append(names, info.Name)
		}
	}
	if w.first {
		return ctx.Err()
	}
	for irregular := range store.IrregularIn(ctx, w.tree, name) {
		if !ignored(path.Base(irregular.Name)) {
			w.leave(irregular.Name, irregular.What)
		}
	}
	w.left = append(w.left, parts.Wrong(ctx, w.tree, names, w.formats)...)
	return ctx.Err()
}

func ignored(base string) bool { return base[0] == '.' || base[0] == '_' }

// child visits a file or a directory.
func (w *walk) child(ctx context.Context, info store.Info, values []hive.Value, depth int) error {
	v, part := hive.Split(info.Name)
	if info.Dir && part {
		return w.dir(ctx, info.Name, append(values[:len(values):len(values)], v), depth+1)
	}
	if w.first && len(values) == 0 { // beside the partitions
		return nil
	}
	f, err := w.probe(ctx, format.Target{Tree: w.tree, Name: info.Name})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && holdsRows(f):
		w.files = append(w.files, file{info.Name, info.Size, info.Stamp, f, values})
		if w.first {
			return errFound
		}
		return nil
	case err == nil && w.first: // a table of a system
		return fault.Unsupportedf(fault.Span{Object: info.Name}, "", "a table of %s", f.Name)
	case err == nil:
		return fault.Invalidf("%s is %s, which is not read as part of a table with partitions", info.Name, f.Name)
	case store.Failing(err):
		return err
	case info.Dir:
		return w.dir(ctx, info.Name, values, depth+1)
	}
	w.leave(info.Name, reasonOf(err))
	return nil
}

// leave reports a file that is not read.
func (w *walk) leave(name, why string) {
	w.left = append(w.left, region.Finding{Code: "hive.file.left.out", Severity: region.Warning,
		At: fault.Span{Object: name}, Part: name, Rows: [2]int64{-1, -1}, Message: why})
}

func reasonOf(err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return fmt.Sprint(err)
}
