package table

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/dict"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"
	"stoa/internal/check"
	"stoa/internal/sorted"
)

// OpenFiles opens data files as one table with the columns of the first file. saved receives the findings of recovery;
// if it is nil, damage is an error.
func OpenFiles(ctx context.Context, tg format.Target, op format.OpenOptions, o ReadOptions, names []string,
	saved *check.Reporter) (*Table, error) {
	t := &Table{saved: saved, Tree: tg.Tree, Name: tg.Name, Opts: op, Files: map[string]*datafile.DataFile{},
		Zone: o.Zone, Blocklet: o.Blocklet, Calendar: o.Calendar}
	t.Opts.Tracer = nil
	var err error
	if t.Dates, err = o.Rule(); err != nil {
		return nil, err
	}
	for _, name := range names {
		if n := status.ParseFileName(name); o.Bucket >= 0 && n.Bucket != o.Bucket {
			continue
		}
		info, err := tg.Tree.Stat(ctx, name)
		if err != nil {
			return nil, err
		}
		p := Part{Name: name, stamp: info.Stamp, rows: -1, bytes: info.Size}
		if t.sc == nil {
			f, err := t.open(ctx, name)
			if err != nil {
				return nil, err
			}
			if t.Blocklet > 0 {
				f.Widths.Learn(int(t.Blocklet))
			}
			f.Hybrid = t.Hybrid(f)
			t.Keep(f)
			p.rows = f.Footer.Rows
			t.meta = f.Facts()
			if err := t.AllColumns(f.Roots, f.ColumnsAt(), f.ColumnsPath()); err != nil {
				return nil, err
			}
			if t.Dicts, err = dict.DictionariesAbove(ctx, tg.Tree, path.Dir(name), f.Columns, op); err != nil {
				return nil, err
			}
		}
		t.parts = append(t.parts, p)
	}
	if t.sc == nil {
		return nil, fault.Invalidf("%s has no data file of bucket %d", tg.Name, o.Bucket)
	}
	return t, nil
}

// Folder is a directory of data files that is not a managed table, and the contents of its index files.
type Folder struct {
	Data       []string                     // paths of the data files
	Indexes    []string                     // paths of the index files, merged ones first
	Named      map[string]*datafile.Indexed // by name of the data file, without directory
	Unreadable map[string]error             // damaged index files, by path
	here       map[string]bool              // names of the data files, without directory
}

// ReadFolder lists a directory and reads its index files.
func ReadFolder(ctx context.Context, tg format.Target, l format.Limits) (*Folder, error) {
	d := &Folder{Named: map[string]*datafile.Indexed{}, Unreadable: map[string]error{}, here: map[string]bool{}}
	for info, err := range tg.Tree.List(ctx, tg.Name) {
		if err != nil {
			return nil, err
		}
		switch k := ByName(info.Name); {
		case info.Dir:
		case k == KindFile:
			d.Data = append(d.Data, info.Name)
			d.here[path.Base(info.Name)] = true
		case k == KindIndex, k == KindMerged:
			d.Indexes = append(d.Indexes, info.Name)
		}
	}
	sorted.By(d.Data, status.CompareNames)
	sorted.StablyBy(d.Indexes, func(a, b string) int { // a merged index replaces others: its entries win
		return strings.Compare(path.Ext(b), path.Ext(a))
	})
	for _, name := range d.Indexes {
		o, err := layout.OpenObject(ctx, tg.Tree, name, l)
		if err != nil {
			return nil, err
		}
		files, err := o.ReadIndex(ctx, ByName(name) == KindMerged, nil)
		if err == nil && !slices.ContainsFunc(files, func(f layout.IndexFile) bool { return len(f.Blocks) > 0 }) {
			err = fault.Corruptf(o.At, "", "the index names no data file")
		}
		if err != nil && !errors.Is(err, fault.Corrupt) {
			return nil, err
		}
		if err != nil {
			d.Unreadable[name] = err
			continue
		}
		stated := map[string]*datafile.Indexed{}
		datafile.Collect(stated, files)
		for file, x := range stated {
			if d.Named[file] == nil {
				d.Named[file] = x
			}
		}
	}
	return d, nil
}

// Missing returns the data files that an index names but that do not exist.
func (d *Folder) Missing() (out []string) {
	for _, name := range layout.SortedKeys(d.Named) {
		if !d.here[name] {
			out = append(out, name)
		}
	}
	return out
}

// Unnamed returns the data files that no index names; none if there is no index at all.
func (d *Folder) Unnamed() (out []string) {
	for _, name := range d.Data {
		if len(d.Indexes) > 0 && d.Named[path.Base(name)] == nil {
			out = append(out, name)
		}
	}
	return out
}

// MissingError returns the error for a missing data file in directory dir that an index names.
func (d *Folder) MissingError(dir, name string) error {
	return fault.Corruptf(fault.Span{Object: path.Join(dir, name)}, "", "the index names this file, and it is missing")
}

// openFolder opens a directory of data files as one table. A missing file that an index names becomes a part that
// cannot be read.
func openFolder(ctx context.Context, tg format.Target, op format.OpenOptions, o ReadOptions,
	saved *check.Reporter) (*Table, error) {
	d, err := ReadFolder(ctx, tg, op.Limits)
	if err != nil {
		return nil, err
	}
	t, err := openNamed(ctx, tg, op, o, d, saved)
	if err != nil {
		return nil, err
	}
	t.gone = map[string]lost{}
	unnamed := d.Unnamed()
	for _, name := range d.Missing() {
		x := lost{rows: d.Named[name].Rows(), err: d.MissingError(tg.Name, name)}
		if len(unnamed) > 0 { // one of them may be the missing file under another name
			x.rows = -1
		}
		if o.Bucket < 0 || status.ParseFileName(name).Bucket == o.Bucket {
			t.gone[path.Join(tg.Name, name)] = x
		}
	}
	for name, err := range d.Unreadable {
		t.gone[name] = lost{-1, err}
	}
	if saved != nil {
		t.reportFolder(d, unnamed)
	}
	return t, nil
}

// openNamed opens the data files of a directory; if there are none, it opens an empty table with the columns of an
// index.
func openNamed(ctx context.Context, tg format.Target, op format.OpenOptions, o ReadOptions, d *Folder,
	saved *check.Reporter) (*Table, error) {
	if len(d.Data) > 0 {
		t, err := OpenFiles(ctx, tg, op, o, d.Data, saved)
		if err != nil {
			return nil, err
		}
		for i := range t.parts {
			p := &t.parts[i]
			x := d.Named[path.Base(p.Name)]
			if x == nil {
				continue
			}
			p.blocks, p.columns = x.Blocks, x.Columns
			switch {
			case p.rows < 0: // the data file was not opened
				p.rows = x.Rows()
			case p.rows != x.Rows(): // the index is for another file
				p.rows = -1
			}
		}
		return t, nil
	}
	for _, name := range layout.SortedKeys(d.Unreadable) {
		return nil, d.Unreadable[name]
	}
	t := &Table{saved: saved, Tree: tg.Tree, Name: tg.Name, Opts: op, Files: map[string]*datafile.DataFile{},
		Zone: o.Zone}
	at := fault.Span{Object: d.Indexes[0]}
	names := layout.SortedKeys(d.Named)
	if len(names) == 0 {
		return nil, fault.Corruptf(at, "", "the index names no data file")
	}
	roots, _, err := schema.ColumnTree(d.Named[names[0]].Columns, at, "table_columns")
	if err == nil {
		err = schema.CheckLimits(roots, op.Limits, at, "table_columns")
	}
	if err == nil {
		err = t.AllColumns(roots, at, "table_columns")
	}
	return t, err
}

// reportFolder reports, in recovery, damaged index files and data files that no index names. Missing data files are
// reported as losses when they are read.
func (t *Table) reportFolder(d *Folder, unnamed []string) {
	for _, name := range layout.SortedKeys(d.Unreadable) {
		t.saved.Emit(layout.Findingf("carbon.index.damaged", fault.Span{Object: name}, t.Name,
			"%v: the data files of the directory are read; the index may have named others", d.Unreadable[name]))
		delete(t.gone, name)
	}
	for _, name := range unnamed {
		t.saved.Emit(layout.Findingf("carbon.index.missing", fault.Span{Object: name}, t.Name,
			"no index of the directory names this data file: it is read nevertheless"))
	}
}
