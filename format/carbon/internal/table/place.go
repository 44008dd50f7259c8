package table

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
	"stoa/store"
)

// Look determines the kind of a place, and how certain it is. Errors are those of the store.
func Look(ctx context.Context, tg format.Target) (Kind, format.Match, error) {
	info, err := tg.Tree.Stat(ctx, tg.Name)
	if err != nil {
		return KindNone, format.No, err
	}
	if !info.Dir {
		return lookFile(ctx, tg)
	}
	if is, err := isTable(ctx, tg.Tree, tg.Name); err != nil || is {
		return KindTable, format.Certain, err
	}
	if is, err := partitioned(ctx, tg.Tree, tg.Name); err != nil || is {
		return KindTable, format.Likely, err
	}
	k := KindNone
	deep, marked := false, false
	for child, err := range tg.Tree.List(ctx, tg.Name) {
		if err != nil {
			return KindNone, format.No, err
		}
		base := path.Base(child.Name)
		switch {
		case base == "ModifiedTime.mdt":
			deep, marked = true, true
		case !child.Dir && (ByName(base) == KindFile || ByName(base) == KindIndex || ByName(base) == KindMerged):
			k = KindFiles
		case child.Dir && !deep:
			if deep, err = isTable(ctx, tg.Tree, child.Name); err == nil && !deep {
				deep, err = holdsTable(ctx, tg.Tree, child.Name)
			}
			if err != nil {
				return KindNone, format.No, err
			}
		}
	}
	switch {
	case marked, deep && k == KindFiles: // data files beside tables are none of them, whatever state they are in
		return KindStore, format.Certain, nil
	case k == KindFiles:
		return k, format.Certain, nil
	case deep: // it may be another system's directory that contains tables
		return KindStore, format.Likely, nil
	}
	return KindNone, format.No, nil
}

// lookFile recognizes a data file by its structure: a file of format 2 begins with a text; files of all formats end
// with the offset of a footer, which is recognized by its first field.
func lookFile(ctx context.Context, tg format.Target) (Kind, format.Match, error) {
	k := ByName(tg.Name)
	if k != KindNone && k != KindFile {
		return k, format.Likely, nil
	}
	src, err := tg.Tree.Open(ctx, tg.Name)
	if err != nil {
		return KindNone, format.No, err
	}
	defer src.Close()
	m := format.No
	if k == KindFile {
		m = format.Likely
	}
	if store.Unsized(src) {
		k, m := lookStream(ctx, src, k, m)
		return k, m, ctx.Err()
	}
	var head [len(layout.MagicV2)]byte
	if err := layout.ReadSome(ctx, src, head[:min(int64(len(head)), src.Size())], 0); err != nil {
		return k, m, err
	}
	if string(head[:]) == layout.MagicV2 {
		return KindFile, format.Certain, nil
	}
	if k == KindFile {
		return k, m, nil
	}
	// Without the extension both a FileHeader of version 3 and a FileFooter3 at the offset in the last bytes are
	// needed.
	if src.Size() < 64 || head[0] != 0x15 || head[1] != 0x06 || head[2] != 0x19 {
		return KindNone, format.No, nil
	}
	var end [layout.TailLen]byte
	if err := layout.ReadSome(ctx, src, end[:], src.Size()-layout.TailLen); err != nil {
		return KindNone, format.No, err
	}
	off := int64(binary.BigEndian.Uint64(end[:]))
	if off <= 0 || off >= src.Size()-layout.TailLen {
		return KindNone, format.No, nil
	}
	var first [1]byte
	if err := layout.ReadSome(ctx, src, first[:], off); err != nil || !datafile.IsFooter3(first[:]) {
		return KindNone, format.No, err
	}
	return KindFile, format.Certain, nil
}

// lookStream recognizes a data file by its beginning, because the end of a stream cannot be read yet. A file of version
// 1, which begins with data, is not recognized.
func lookStream(ctx context.Context, src store.Source, k Kind, m format.Match) (Kind, format.Match) {
	var head [len(layout.MagicV2)]byte
	n, _ := src.ReadAt(ctx, head[:], 0) // a file shorter than head is not recognized
	switch {
	case string(head[:n]) == layout.MagicV2:
		return KindFile, format.Certain
	case n == len(head) && head[0] == 0x15 && head[1] == 0x06 && head[2] == 0x19 && head[3]&0xF == 0xC:
		return KindFile, max(m, format.Likely) // FileHeader: version 3, and a list of columns
	}
	return k, m
}

// Probe implements format.Format.Probe.
func Probe(ctx context.Context, tg format.Target) (format.Match, error) {
	k, m, err := Look(ctx, tg)
	if k == KindNone {
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

// Resolve determines what a target is; for a store it returns the table that the target names; for the directory of a
// segment it returns the table, with the segment set in o. A place that is not CarbonData's is Unsupported, options
// that do not fit it are Invalid.
func Resolve(ctx context.Context, tg format.Target, o *ReadOptions) (format.Target, Kind, error) {
	k, _, err := Look(ctx, tg)
	if err == nil && k == KindNone {
		k, err = unknown(ctx, tg)
	}
	if err != nil {
		return tg, k, err
	}
	switch {
	case k == KindNone:
		return tg, k, fault.Unsupportedf(fault.Span{Object: tg.Name}, "",
			"neither a CarbonData file nor a table or store")
	case k != KindStore && tg.Table != "":
		return tg, k, fault.Invalidf("%s is not a store of tables, so it has no table #%s", tg.Name, tg.Table)
	case k == KindFiles:
		if tg, k, err = throughTable(ctx, tg, o); err == nil && k == KindFiles {
			err = o.fits(tg.Name, k)
		}
		return tg, k, err
	case k != KindStore:
		return tg, k, o.fits(tg.Name, k)
	}
	dir, err := inStore(ctx, tg)
	if err != nil {
		return tg, k, err
	}
	o.Root = tg.Name
	tg.Name, tg.Table = dir, ""
	return tg, KindTable, nil
}

// throughTable resolves a directory of data files. A segment is read through its table, whose tablestatus, deletes and
// schema apply; a partition has files of many segments, and is Invalid.
func throughTable(ctx context.Context, tg format.Target, o *ReadOptions) (format.Target, Kind, error) {
	table, segment := path.Clean(tg.Name), ""
	for hiveDir.MatchString(path.Base(table)) {
		table = path.Dir(table)
	}
	if table == path.Clean(tg.Name) {
		part := path.Dir(table)
		id, ok := strings.CutPrefix(path.Base(table), "Segment_")
		if !ok || !strings.HasPrefix(path.Base(part), "Part") || path.Base(path.Dir(part)) != "Fact" {
			return tg, KindFiles, nil
		}
		table, segment = path.Dir(path.Dir(part)), id
	}
	info, err := tg.Tree.Stat(ctx, path.Join(table, "Metadata"))
	switch {
	case store.Failing(err):
		return tg, KindFiles, err
	case err != nil || !info.Dir: // no table above: only the files exist
		return tg, KindFiles, nil
	case segment == "":
		return tg, KindNone, fault.Invalidf("%s is a partition of the CarbonData table %s, which alone knows which of "+
			"its files count: read the table, with a filter", tg.Name, table)
	case o.Segments != nil || o.allSegments:
		return tg, KindNone, fault.Invalidf("%s is a segment of the CarbonData table %s: with option segment=N name "+
			"the table",
			tg.Name, table)
	}
	o.Segments, tg.Name = []string{segment}, table
	return tg, KindTable, nil
}

// unknown accepts a file that neither its name nor its header identifies, because the user named the format and files
// of version 1 have no header. It is a data file if its last bytes are an offset within it; for a stream this is
// checked later.
func unknown(ctx context.Context, tg format.Target) (Kind, error) {
	src, err := tg.Tree.Open(ctx, tg.Name)
	if err != nil {
		return KindNone, nil // a directory
	}
	defer src.Close()
	if store.Unsized(src) {
		return KindFile, nil
	}
	var end [layout.TailLen]byte
	if src.Size() < layout.TailLen {
		return KindNone, nil
	}
	if err := layout.ReadSome(ctx, src, end[:], src.Size()-layout.TailLen); err != nil {
		return KindNone, err
	}
	if off := binary.BigEndian.Uint64(end[:]); off == 0 || off >= uint64(src.Size()-layout.TailLen) {
		return KindNone, nil
	}
	return KindFile, nil
}

// inStore returns the directory of a store's table. The table is named db.table, or table, which means default.table.
func inStore(ctx context.Context, tg format.Target) (string, error) {
	tables, err := StoreTables(ctx, tg.Tree, tg.Name)
	if err != nil {
		return "", err
	}
	if tg.Table == "" {
		if len(tables) == 1 {
			return tables[0].Dir, nil
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
			return t.Dir, nil
		}
	}
	return "", fault.Invalidf("%s has no table %s", tg.Name, want)
}

// storeTable is a table of a store.
type storeTable struct{ name, Dir string }

// StoreTables returns the tables of a store: database/table, and tables directly below the store.
func StoreTables(ctx context.Context, tree store.Tree, dir string) (out []storeTable, err error) {
	for db, err := range tree.List(ctx, dir) {
		if err != nil {
			return nil, err
		}
		if !db.Dir {
			continue
		}
		is, err := isTable(ctx, tree, db.Name)
		if err != nil {
			return nil, err
		}
		if is {
			out = append(out, storeTable{path.Base(db.Name), db.Name})
			continue
		}
		for t, err := range tree.List(ctx, db.Name) {
			if err != nil {
				return nil, err
			}
			if !t.Dir {
				continue
			}
			if is, err = isTable(ctx, tree, t.Name); err != nil {
				return nil, err
			}
			if is {
				out = append(out, storeTable{path.Base(db.Name) + "." + path.Base(t.Name), t.Name})
			}
		}
	}
	return out, nil
}

// within returns the name in the store of a location that a file of the table states as a full address, as CarbonData
// does for added segments and for partitions outside of the table. A location outside of the place that the user named
// is Unsupported unless the option external is set: the author of a table decides what is in the table, but not what
// else on the system is read. at and field are the object and the field that state the location.
func (t *Managed) within(location, at, field string) (string, error) {
	t.elsewhere.Store(true)
	dir := nameOf(location)
	root := t.O.Root
	if root == "" {
		root = t.Path
	}
	if t.O.External && store.Outside(t.Tree, dir) {
		return "", fault.Unsupportedf(fault.Span{Object: at}, field,
			"the location %q is in a bucket, or on a host, that was not named", location)
	}
	if t.O.External || inside(dir, root) {
		return dir, nil
	}
	return "", fault.Unsupportedf(fault.Span{Object: at}, field,
		"the location %q is outside of %s, and is followed only with external=true", location, root)
}

// nameOf converts a Hadoop address to a name in a store.Tree.
func nameOf(location string) string {
	if rest, ok := strings.CutPrefix(location, "file:"); ok && strings.HasPrefix(rest, "/") {
		return path.Clean(rest)
	}
	for _, scheme := range []string{"s3a:", "s3n:"} {
		if rest, ok := strings.CutPrefix(location, scheme); ok {
			return path.Clean("s3:" + rest)
		}
	}
	return path.Clean(location)
}

// address reports whether a name begins with a scheme, as the names of files in other stores do.
func address(name string) bool {
	scheme, _, ok := strings.Cut(name, ":/")
	return ok && !strings.Contains(scheme, "/")
}

// inside reports whether dir is root or is below it.
func inside(dir, root string) bool {
	if path.IsAbs(dir) && !path.IsAbs(root) && !address(root) {
		abs, err := filepath.Abs(filepath.FromSlash(root))
		if err != nil {
			return false
		}
		root = filepath.ToSlash(abs)
	}
	root = path.Clean(root)
	return dir == root || strings.HasPrefix(dir, strings.TrimSuffix(root, "/")+"/") || root == "." &&
		!path.IsAbs(dir) && !address(dir) && !strings.HasPrefix(dir, "../") && dir != ".."
}

// factPlaces returns the default directories of a segment: Fact/Part*/Segment_ID.
func (t *Managed) factPlaces(ctx context.Context, l *status.Load) (out []Place, err error) {
	for info, err := range t.Tree.List(ctx, path.Join(t.Path, "Fact")) {
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		if !info.Dir || !strings.HasPrefix(path.Base(info.Name), "Part") {
			continue
		}
		dir := path.Join(info.Name, "Segment_"+l.SegmentID())
		d, err := t.Tree.Stat(ctx, dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err == nil && d.Dir {
			out = append(out, Place{Dir: dir})
		}
	}
	return out, nil
}
