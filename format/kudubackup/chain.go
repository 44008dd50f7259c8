package kudubackup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/sorted"
	"stoa/store"
)

// backupDir is a backup: a directory with metadata and the files of one job.
type backupDir struct {
	dir      string
	from, to int64 // milliseconds since 1970; from is 0 for a full backup
	meta     tableMetadata
	files    []store.Info // Parquet, sorted by name
}

// found are the backups below a target, by table id.
type found struct {
	tables map[string][]*backupDir
	end    *backupDir // the backup that is itself the target
}

// find looks for backups in a target: a root of many tables, the directory of a table, or a backup.
func find(ctx context.Context, tg format.Target) (f found, err error) {
	f.tables = map[string][]*backupDir{}
	if f.end, err = readBackup(ctx, tg, tg.Name); err != nil {
		return f, err
	}
	if f.end != nil { // earlier backups are beside it
		return f, f.below(ctx, tg, path.Dir(path.Clean(tg.Name)), 1)
	}
	return f, f.below(ctx, tg, tg.Name, 2)
}

// below adds the backups in the directories of dir, at most the given number of levels deep.
func (f *found) below(ctx context.Context, tg format.Target, dir string, levels int) error {
	for info, err := range tg.Tree.List(ctx, dir) {
		if err != nil {
			return err
		}
		if base := path.Base(info.Name); !info.Dir || base[0] == '.' {
			continue
		}
		b, err := readBackup(ctx, tg, info.Name)
		switch {
		case err != nil:
			return err
		case b != nil:
			f.tables[b.meta.TableID] = append(f.tables[b.meta.TableID], b)
		case levels > 1:
			if err := f.below(ctx, tg, info.Name, levels-1); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// readBackup reads a backup's metadata, and lists its files. It returns nil if the directory is not a backup.
func readBackup(ctx context.Context, tg format.Target, dir string) (*backupDir, error) {
	name := path.Join(dir, metadataFile)
	src, err := tg.Tree.Open(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer src.Close()
	at := fault.Span{Object: name, Len: src.Size()}
	if most := tg.Limits.WithDefaults().Metadata; src.Size() > int64(most) {
		return nil, fault.Limitf(at, "metadata", "it has %d bytes; at most %d are read (metadata limit)", src.Size(),
			most)
	}
	text, err := io.ReadAll(io.NewSectionReader(sourceReader{ctx, src}, 0, src.Size()))
	if err != nil {
		return nil, err
	}
	b := &backupDir{dir: dir}
	if err := json.Unmarshal(text, &b.meta); err != nil {
		return nil, fault.Corruptf(at, "", "it is not the metadata of a backup: %v", err)
	}
	if b.from, err = millis(b.meta.FromMs); err == nil {
		b.to, err = millis(b.meta.ToMs)
	}
	if err != nil || b.to <= b.from {
		return nil, fault.Corruptf(at, "fromMs, toMs", "expected two times, the first before the second; found %q and "+
			"%q", b.meta.FromMs, b.meta.ToMs)
	}
	if b.meta.DataFormat != "parquet" {
		return nil, fault.Unsupportedf(at, "dataFormat", "rows in the format %q; stoa reads backups in Parquet",
			b.meta.DataFormat)
	}
	if len(b.meta.Columns) == 0 || !b.meta.Columns[0].Key {
		return nil, fault.Corruptf(at, "columns", "expected columns, those of the primary key first")
	}
	for info, err := range tg.Tree.List(ctx, dir) {
		if err != nil {
			return nil, err
		}
		if base := path.Base(info.Name); !info.Dir && base[0] != '.' && base[0] != '_' {
			b.files = append(b.files, info)
		}
	}
	sorted.By(b.files, func(x, y store.Info) int { return cmp.Compare(x.Name, y.Name) })
	return b, nil
}

// sourceReader is a source as an io.ReaderAt.
type sourceReader struct {
	ctx context.Context
	src store.Source
}

func (r sourceReader) ReadAt(b []byte, off int64) (int, error) { return r.src.ReadAt(r.ctx, b, off) }

// millis parses a number of 64 bits in protobuf's JSON form; a missing number is 0.
func millis(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if n < 0 {
		err = strconv.ErrRange
	}
	return n, err
}

// calendar formats a time in milliseconds.
func calendar(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// pick returns the backups of the table that a target names, sorted by their ends.
func (f *found) pick(tg format.Target) ([]*backupDir, error) {
	if f.end != nil {
		return f.tables[f.end.meta.TableID], nil
	}
	var names []string
	var out [][]*backupDir
	for id, all := range f.tables {
		sorted.By(all, func(a, b *backupDir) int {
			return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.dir, b.dir))
		})
		name := all[len(all)-1].meta.TableName
		names = append(names, name)
		if tg.Table == "" || tg.Table == name || tg.Table == id {
			out = append(out, all)
		}
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return nil, fault.Unsupportedf(fault.Span{Object: tg.Name}, "", "there is no backup: no %s in it, nor one or "+
			"two directories below", metadataFile)
	case len(out) == 0:
		return nil, fault.Invalidf("there is no backup of a table %q; tables are %s", tg.Table,
			strings.Join(names, ", "))
	case len(out) > 1:
		return nil, format.Several(tg.Name, names)
	}
	return out[0], nil
}

// chainOf returns a full backup and the incremental ones that lead from it to the newest backup that is not later than
// at; if at is 0, to the newest. If there are several chains, it returns the shortest, as Kudu's restore job does.
func chainOf(all []*backupDir, at int64) ([]*backupDir, error) {
	var end *backupDir
	for _, b := range all {
		if (at == 0 || b.to <= at) && (end == nil || b.to >= end.to) {
			end = b
		}
	}
	if end == nil {
		var ends []string
		for _, b := range all {
			ends = append(ends, calendar(b.to))
		}
		return nil, fault.Invalidf("there is no backup from %s or before; there are those of %s", calendar(at),
			strings.Join(ends, ", "))
	}
	chains := chains{all: all, known: map[*backupDir][]*backupDir{}}
	var best []*backupDir
	for _, b := range all {
		if c := chains.to(b); b.to == end.to && c != nil && (best == nil || len(c) < len(best)) {
			best = c
		}
	}
	if best == nil {
		return nil, fault.Corruptf(fault.Span{Object: path.Join(end.dir, metadataFile)}, "fromMs", "the backup has "+
			"what changed since %s, and no chain of backups leads there from a full one", calendar(end.from))
	}
	return best, nil
}

// chains finds the shortest chains among backups, each once, because many backups of the same times allow many chains.
type chains struct {
	all   []*backupDir
	known map[*backupDir][]*backupDir
}

// to returns the shortest chain that leads to a backup; nil if there is none. It terminates because each backup begins
// before it ends.
func (c *chains) to(b *backupDir) []*backupDir {
	if b.from == 0 {
		return []*backupDir{b}
	}
	best, ok := c.known[b]
	if ok {
		return best
	}
	for _, before := range c.all {
		if before.to != b.from {
			continue
		}
		if x := c.to(before); x != nil && (best == nil || len(x)+1 < len(best)) {
			best = append(slices.Clone(x), b)
		}
	}
	c.known[b] = best
	return best
}

// list lists the tables of a target, each at its newest backup, or at that of option at.
func list(ctx context.Context, tg format.Target) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		f, err := find(ctx, tg)
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		var names []string
		for _, all := range f.tables {
			names = append(names, all[len(all)-1].meta.TableName)
		}
		if slices.Sort(names); len(names) < 2 || f.end != nil || tg.Table != "" {
			names = []string{tg.Table}
		}
		for _, name := range names {
			e, err := entry(ctx, tg, name)
			if !yield(e, err) || ctx.Err() != nil {
				return
			}
		}
	}
}

// entry is a table in a list.
func entry(ctx context.Context, tg format.Target, table string) (format.Entry, error) {
	e := format.Entry{Table: table, Kind: "backup", Rows: -1}
	tg.Table = table
	x, err := open(ctx, tg, tg.OpenOptions("at"))
	if err != nil {
		return e, err
	}
	defer x.Close()
	r := x.(*reader)
	e.Meta, e.Findings = r.Meta(), r.Findings()
	rows := int64(0)
	for _, f := range r.files {
		e.Bytes += f.info.Size
		groups, err := f.rowGroups(ctx, format.Query{})
		if err != nil {
			return e, err
		}
		for _, g := range groups {
			rows += g.Rows
		}
	}
	if len(r.chain) == 1 {
		e.Rows = rows
	}
	return e, nil
}
