package carbon

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"iter"
	"path"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
)

// kind is what a place is.
type kind uint8

const (
	kindNone     kind = iota
	kindFile          // a data file
	kindIndex         // .carbonindex
	kindMerged        // .carbonindexmerge
	kindDict          // .dict
	kindDictMeta      // .dictmeta
	kindSort          // .sortindex
	kindTable         // a directory with Metadata/schema, or with segments
	kindFiles         // a directory of data files: a segment, or a table of the SDK
	kindStore         // a directory of databases and tables
)

// byName is what a file's name says.
func byName(name string) kind {
	for ext, k := range map[string]kind{dataExt: kindFile, indexExt: kindIndex, mergedExt: kindMerged, ".dict": kindDict, ".dictmeta": kindDictMeta, ".sortindex": kindSort} {
		if strings.HasSuffix(name, ext) {
			return k
		}
	}
	return kindNone
}

// look finds out what a place is and how sure that is.
func look(ctx context.Context, tg format.Target) (kind, format.Match, error) {
	info, err := tg.Tree.Stat(ctx, tg.Name)
	if err != nil {
		return kindNone, format.No, err
	}
	if !info.Dir {
		k, m, err := lookFile(ctx, tg)
		return k, m, err
	}
	if isTable(ctx, tg.Tree, tg.Name) {
		return kindTable, format.Certain, nil
	}
	if partitioned(ctx, tg.Tree, tg.Name) {
		return kindTable, format.Likely, nil
	}
	k := kindNone
	deep := false
	for child, err := range tg.Tree.List(ctx, tg.Name) {
		if err != nil {
			return kindNone, format.No, err
		}
		base := path.Base(child.Name)
		switch {
		case base == "ModifiedTime.mdt":
			deep = true
		case !child.Dir && strings.HasSuffix(base, dataExt):
			k = kindFiles
		case child.Dir && k == kindNone && !deep:
			deep = deep || isTable(ctx, tg.Tree, child.Name) || holdsTable(ctx, tg.Tree, child.Name)
		}
	}
	switch {
	case k == kindFiles:
		return k, format.Certain, nil
	case deep:
		return kindStore, format.Certain, nil
	}
	return kindNone, format.No, nil
}

// isTable reports whether a directory is that of a table: it has a schema, or, where that was lost, segments.
func isTable(ctx context.Context, tree store.Tree, dir string) bool {
	if info, err := tree.Stat(ctx, path.Join(dir, "Metadata", "schema")); err == nil && !info.Dir {
		return true
	}
	for _, name := range []string{"Fact/Part0", "Metadata/segments"} {
		if info, err := tree.Stat(ctx, path.Join(dir, name)); err == nil && info.Dir {
			return true
		}
	}
	return false
}

// holdsTable reports whether a directory of a table is right below.
func holdsTable(ctx context.Context, tree store.Tree, dir string) bool {
	for child, err := range tree.List(ctx, dir) {
		if err != nil {
			return false
		}
		if child.Dir && isTable(ctx, tree, child.Name) {
			return true
		}
	}
	return false
}

// lookFile tells a data file by its structure: format 2 begins with a text; all end with the offset of a footer, which begins with
// its first field.
func lookFile(ctx context.Context, tg format.Target) (kind, format.Match, error) {
	k := byName(tg.Name)
	if k != kindNone && k != kindFile {
		return k, format.Likely, nil
	}
	src, err := tg.Tree.Open(ctx, tg.Name)
	if err != nil {
		return kindNone, format.No, err
	}
	defer src.Close()
	m := format.No
	if k == kindFile {
		m = format.Likely
	}
	if store.Unsized(src) {
		return k, m, nil
	}
	var head [len(magicV2)]byte
	if err := readSome(ctx, src, head[:min(int64(len(head)), src.Size())], 0); err != nil {
		return k, m, err
	}
	if string(head[:]) == magicV2 {
		return kindFile, format.Certain, nil
	}
	if k == kindFile {
		return k, m, nil
	}
	// Without the name only what is hardly chance is believed: a FileHeader of version 3, and a FileFooter3 where the end points.
	if src.Size() < 64 || head[0] != 0x15 || head[1] != 0x06 || head[2] != 0x19 {
		return kindNone, format.No, nil
	}
	var end [tailLen]byte
	if err := readSome(ctx, src, end[:], src.Size()-tailLen); err != nil {
		return kindNone, format.No, err
	}
	off := int64(binary.BigEndian.Uint64(end[:]))
	if off <= 0 || off >= src.Size()-tailLen {
		return kindNone, format.No, nil
	}
	var first [1]byte
	if err := readSome(ctx, src, first[:], off); err != nil || !isFooter3(first[:]) {
		return kindNone, format.No, err
	}
	return kindFile, format.Certain, nil
}

func probe(ctx context.Context, tg format.Target) (format.Match, error) {
	k, m, err := look(ctx, tg)
	if k == kindNone {
		return format.No, ignoreMissing(err)
	}
	return m, err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// resolve finds the table that a target means.
func resolve(ctx context.Context, tg format.Target, o *readOptions) (format.Target, kind, error) {
	k, _, err := look(ctx, tg)
	if err != nil {
		return tg, k, err
	}
	switch {
	case k == kindNone:
		return tg, k, fault.Unsupportedf(fault.Span{Object: tg.Name}, "", "neither a CarbonData file nor a table or store")
	case k != kindStore && tg.Table != "":
		return tg, k, fault.Invalidf("%s is no store of tables, so it has no table #%s", tg.Name, tg.Table)
	case k != kindStore:
		return tg, k, nil
	}
	dir, err := inStore(ctx, tg)
	if err != nil {
		return tg, k, err
	}
	tg.Name, tg.Table = dir, ""
	return tg, kindTable, nil
}

// inStore is the directory of a store's table: db.table, or table, which means default.table.
func inStore(ctx context.Context, tg format.Target) (string, error) {
	tables, err := storeTables(ctx, tg.Tree, tg.Name)
	if err != nil {
		return "", err
	}
	if tg.Table == "" {
		if len(tables) == 1 {
			return tables[0].dir, nil
		}
		var names []string
		for _, t := range tables {
			names = append(names, tg.Name+"#"+t.name)
		}
		return "", format.Several(tg.Name, names)
	}
	want := strings.ToLower(tg.Table)
	if !strings.Contains(want, ".") {
		want = "default." + want
	}
	for _, t := range tables {
		if strings.ToLower(t.name) == want || !strings.Contains(tg.Table, ".") && strings.EqualFold(t.name, tg.Table) {
			return t.dir, nil
		}
	}
	return "", fault.Invalidf("%s has no table %s", tg.Name, want)
}

// storeTable is a table of a store.
type storeTable struct{ name, dir string }

// storeTables are the tables of a store: database/table, and tables right in it.
func storeTables(ctx context.Context, tree store.Tree, dir string) (out []storeTable, err error) {
	for db, err := range tree.List(ctx, dir) {
		if err != nil {
			return nil, err
		}
		if !db.Dir {
			continue
		}
		if isTable(ctx, tree, db.Name) {
			out = append(out, storeTable{path.Base(db.Name), db.Name})
			continue
		}
		for t, err := range tree.List(ctx, db.Name) {
			if err != nil {
				return nil, err
			}
			if t.Dir && isTable(ctx, tree, t.Name) {
				out = append(out, storeTable{path.Base(db.Name) + "." + path.Base(t.Name), t.Name})
			}
		}
	}
	return out, nil
}

// open opens whatever a target is.
func open(ctx context.Context, tg format.Target, op format.OpenOptions) (format.Reader, error) {
	o, err := parseOptions(op.Opts)
	if err != nil {
		return nil, err
	}
	if err := o.complete(ctx, tg.Tree, op.Limits); err != nil {
		return nil, err
	}
	tg, k, err := resolve(ctx, tg, &o)
	if err != nil {
		return nil, err
	}
	switch k {
	case kindFile:
		return openFiles(ctx, tg, op, o, []string{tg.Name}, nil)
	case kindFiles:
		names, err := dataFiles(ctx, tg)
		if err != nil {
			return nil, err
		}
		return openFiles(ctx, tg, op, o, names, nil)
	case kindTable:
		t, err := openManaged(ctx, tg.Tree, tg.Name, op, o, nil)
		if err != nil {
			return nil, err
		}
		return t.reader(), nil
	case kindDict, kindDictMeta, kindSort:
		return openDictionary(ctx, tg, op)
	}
	return openIndex(ctx, tg, op)
}

// dataFiles are the data files of a directory, by name.
func dataFiles(ctx context.Context, tg format.Target) (out []string, err error) {
	for info, err := range tg.Tree.List(ctx, tg.Name) {
		if err != nil {
			return nil, err
		}
		if !info.Dir && strings.HasSuffix(info.Name, dataExt) {
			out = append(out, info.Name)
		}
	}
	return out, nil
}

// list tells what a place holds.
func list(ctx context.Context, tg format.Target) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		k, _, err := look(ctx, tg)
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		if k != kindStore || tg.Table != "" {
			e, err := entry(ctx, tg, "")
			yield(e, err)
			return
		}
		tables, err := storeTables(ctx, tg.Tree, tg.Name)
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		for _, t := range tables {
			e, err := entry(ctx, format.Target{Tree: tg.Tree, Name: t.dir}, t.name)
			if err != nil { // one broken table does not hide the others
				e = format.Entry{Table: t.name, Kind: "table", Rows: -1, Bytes: -1, Meta: []format.KeyValue{{Key: "error", Value: err.Error()}}}
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// entry tells one table or file.
func entry(ctx context.Context, tg format.Target, name string) (format.Entry, error) {
	e := format.Entry{Table: name, Kind: "table", Rows: 0}
	r, err := open(ctx, tg, format.OpenOptions{})
	if err != nil {
		return e, err
	}
	defer r.Close()
	e.Meta = r.Meta()
	if k := byName(tg.Name); k != kindNone {
		e.Kind = map[kind]string{kindFile: "data file", kindIndex: "index file", kindMerged: "merged index file", kindDict: "dictionary",
			kindDictMeta: "dictionary metadata", kindSort: "sort index"}[k]
	}
	for p, err := range r.Parts(ctx, format.Query{}) {
		if err != nil {
			return e, err
		}
		if e.Bytes += p.Bytes; e.Rows >= 0 && p.Rows >= 0 {
			e.Rows += p.Rows
		} else {
			e.Rows = -1
		}
	}
	if _, ok := r.(withDeletes); ok {
		e.Rows = -1 // only reading the deletes tells
	}
	return e, nil
}
