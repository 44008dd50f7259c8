package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
	"stoa/internal/sorted"
	"stoa/store"
)

// segmentParts returns the data files of a load.
func (t *Managed) segmentParts(ctx context.Context, l *status.Load) ([]Part, error) {
	out, _, err := t.SegmentContents(ctx, l)
	return out, err
}

// SegmentContents finds the data files of a load and its other files. With an error it still returns what was found.
func (t *Managed) SegmentContents(ctx context.Context, l *status.Load) ([]Part, *Contents, error) {
	h := &Contents{names: map[string]bool{}}
	if l.Parquet() {
		files, err := t.ForeignFiles(ctx, l)
		for _, f := range files {
			h.Bytes += f.Bytes
		}
		h.fail(err)
		return nil, h, err
	}
	if l.Foreign() {
		return nil, h, fault.Unsupportedf(fault.Span{Object: t.Status}, "",
			"segment %s has files of format %s, not CarbonData's; option segments can leave it out", l.Name,
			l.FileFormat)
	}
	var out []Part
	folders, err := t.Folders(ctx, l)
	if err != nil {
		return nil, h, err
	}
	for _, f := range folders {
		some, err := t.folderParts(ctx, l, f, h)
		if err != nil && !errors.Is(err, fault.Corrupt) {
			return nil, h, err
		}
		h.fail(err)
		if !f.dropped { // h still has its files, because tablestatus counts their bytes
			out = append(out, some...)
		}
	}
	h.fail(t.checkSize(ctx, l, h))
	if err := t.matchUpdates(ctx, l, h.names); err != nil {
		return out, h, &unmatchedError{cmp.Or(h.err, err)}
	}
	return out, h, h.err
}

// unmatchedError is an error about a segment whose deleted rows are unknown because the update status has entries
// without a data file, or whose data files are not those that were loaded.
type unmatchedError struct{ error }

func (m *unmatchedError) Unwrap() error { return m.error }

// Contents has the files of a segment.
type Contents struct {
	names        map[string]bool // of the data files of all buckets
	Bytes        int64           // total size of the data files
	IndexBytes   int64           // size of the index files
	Deltas       []string        // paths of the delete deltas
	IndexFiles   []string        // paths of the index files
	Unknown      bool            // an index file is missing or damaged, so there may have been more data files
	guessed      bool            // the directories were found by searching, so there may have been more
	missingIndex string          // path of a missing index file that the segment file names
	err          error           // the first error
}

func (h *Contents) fail(err error) {
	if h.err == nil {
		h.err = err
	}
}

// checkSize compares the data files of a segment with their size in tablestatus if no index names all of them. They may
// be larger, because updates before release 2.0 added files without changing the size. Those of a segment that does not
// count may be gone, with clean, unless it is asked for.
func (t *Managed) checkSize(ctx context.Context, l *status.Load, h *Contents) error {
	want := status.ParseCount(l.DataSize)
	switch {
	case !l.Counts() && !t.O.Wants(l), !h.Unknown && (len(h.names) > 0 || t.Drops(ctx, l)):
	case want > h.Bytes && !l.Counts():
		return fault.Corruptf(fault.Span{Object: t.Status}, "dataSize", "segment %s (%s): expected %d bytes of data "+
			"files, found %d: clean removes them", l.Name, l.Status, want, h.Bytes)
	case want > h.Bytes:
		return fault.Corruptf(fault.Span{Object: t.Status}, "dataSize", "segment %s: expected %d bytes of data files, "+
			"found %d; its index files or its segment file are missing or damaged", l.Name, want, h.Bytes)
	case want < 0 && h.guessed:
		return fault.Corruptf(fault.Span{Object: t.Status}, "dataSize",
			"segment %s: without its segment file the directories of its partitions are unknown", l.Name)
	case want < 0 && h.missingIndex != "":
		return fault.Corruptf(fault.Span{Object: h.missingIndex}, "", "segment %s: its segment file names this "+
			"index, which is missing, so its data files are unknown", l.Name)
	}
	return nil
}

// written returns the name of a data file without the codec. In the update status CarbonData always writes its default
// codec, whichever the file has.
func written(name string) string {
	n := status.ParseFileName(name)
	return fmt.Sprint(n.Block, "-", n.Time)
}

// matchUpdates checks that each entry of the update status has its data file in the segment. Entries of dropped
// partitions stay in the update status.
func (t *Managed) matchUpdates(ctx context.Context, l *status.Load, files map[string]bool) error {
	blocks, actual := map[string]bool{}, map[string]bool{}
	for f := range files {
		blocks[status.ParseFileName(f).Block], actual[written(f)] = true, true
	}
	for _, k := range layout.SortedKeys(t.changes) {
		u := t.changes[k]
		if !l.Counts() || u.Segment != l.SegmentID() || u.Gone() {
			continue
		}
		if (!blocks[u.Block] || u.Actual != "" && !actual[written(u.Actual)]) && !t.Drops(ctx, l) {
			return fault.Corruptf(fault.Span{Object: t.Updates}, "blockName",
				"%s (%s) has deleted rows, but is not a data file of segment %s", u.Block, u.Actual, l.Name)
		}
	}
	return nil
}

// Folders returns the directories of a segment: those in its segment file or, without one, Fact/Part*/Segment_ID; in
// recovery also partition directories with files of the segment.
func (t *Managed) Folders(ctx context.Context, l *status.Load) ([]Place, error) {
	if l.Path != "" {
		return t.addedPlaces(ctx, l)
	}
	if l.Segment == "" && !l.Counts() { // a load writes its segment file before tablestatus names it
		if name := t.pendingSegmentFile(ctx, l); name != "" {
			named := *l
			named.Segment, l = name, &named
		}
	}
	var why error // why the segment file cannot be used
	if l.Segment != "" {
		places, named, err := t.segmentFilePlaces(ctx, l)
		if named {
			return places, nil
		}
		why = err
		switch name := t.segmentFileOf(l); {
		case errors.Is(why, fault.Corrupt) && t.saved != nil && l.Counts():
		case why != nil && !errors.Is(why, fs.ErrNotExist):
			return nil, why
		case why != nil && l.Counts():
			t.note("carbon.segment.file", fault.Span{Object: name},
				"segment %s: its segment file is missing: Fact/Part*/Segment_%s is read", l.Name, l.SegmentID())
		}
	}
	out, err := t.factPlaces(ctx, l)
	if err != nil {
		return nil, err
	}
	if len(out) == 0 && t.saved != nil {
		if out, err := t.partitionPlaces(ctx, l, why); err != nil || len(out) > 0 {
			return out, err
		}
	}
	if errors.Is(why, fault.Corrupt) && l.Counts() {
		name := t.segmentFileOf(l)
		t.reportOnce(name, layout.Findingf("carbon.segment.damaged", placeOf(why, name), t.Path,
			"%v: the directory of segment %s is read", why, l.Name))
	}
	if len(out) == 0 && l.DataSize != "0" {
		return nil, fault.Corruptf(fault.Span{Object: t.Status}, "", "segment %s (%s) has no directory", l.Name,
			l.Status)
	}
	return out, nil
}

// addedPlaces returns the directories of a segment that was added from elsewhere. Its segment file names the indexes:
// later loads may have put theirs into the same directory.
func (t *Managed) addedPlaces(ctx context.Context, l *status.Load) ([]Place, error) {
	if l.Segment != "" {
		places, named, err := t.segmentFilePlaces(ctx, l)
		if named || err != nil && !errors.Is(err, fs.ErrNotExist) && t.saved == nil {
			return places, err
		}
		if err != nil && l.Counts() {
			t.note("carbon.segment.file", fault.Span{Object: t.segmentFileOf(l)},
				"segment %s: its segment file cannot be used (%v): all indexes in %s are read", l.Name, err, l.Path)
		}
	}
	dir, err := t.within(l.Path, t.Status, "path")
	return []Place{{Dir: dir}}, err
}

// segmentFilePlaces returns the directories in l's segment file that count. named reports whether it has any
// directories, including those that do not count.
func (t *Managed) segmentFilePlaces(ctx context.Context, l *status.Load) (places []Place, named bool, err error) {
	var s status.SegmentFile
	name := t.segmentFileOf(l)
	if err := status.ReadJSON(ctx, t.Tree, name, t.Opts.Limits, &s); err != nil {
		return nil, false, err
	}
	if s.Locations == nil {
		return nil, false, fault.Corruptf(fault.Span{Object: name}, "locationMap",
			"missing: it has the directories of segment %s", l.Name)
	}
	places, err = t.Located(name, s, l.SegmentID())
	return places, err == nil && len(s.Locations) > 0, err
}

// Drops reports whether l's segment file has partitions that were dropped or overwritten since it was loaded.
func (t *Managed) Drops(ctx context.Context, l *status.Load) bool {
	left, all, err := t.Counting(ctx, l)
	return err == nil && len(left) < all
}

// Counting returns the locations in l's segment file that count, and how many there are in all.
func (t *Managed) Counting(ctx context.Context, l *status.Load) (counting map[string]bool, all int, err error) {
	var s status.SegmentFile
	if l.Segment == "" {
		return nil, 0, fs.ErrNotExist
	}
	err = status.ReadJSON(ctx, t.Tree, t.segmentFileOf(l), t.Opts.Limits, &s)
	counting = map[string]bool{}
	for k, f := range s.Locations {
		if f.Status == status.StatusSuccess {
			counting[k] = true
		}
	}
	return counting, len(s.Locations), err
}

// pendingSegmentFile returns the segment file of a load in progress, which tablestatus does not name yet; "" if there
// is none.
func (t *Managed) pendingSegmentFile(ctx context.Context, l *status.Load) string {
	named := status.Load{Segment: l.Name + "_" + l.Start + ".segment"}
	if strings.ContainsAny(named.Segment, "/\\\x00") {
		return ""
	}
	if info, err := t.Tree.Stat(ctx, t.segmentFileOf(&named)); err != nil || info.Dir {
		return ""
	}
	return named.Segment
}

// Located returns the directories in the segment file name that count. They and their index files must belong to
// segment; otherwise another segment's rows would be read twice, and this segment's not at all.
func (t *Managed) Located(name string, s status.SegmentFile, segment string) (out []Place, err error) {
	for _, k := range layout.SortedKeys(s.Locations) {
		f := s.Locations[k]
		if !status.KnownStatus(f.Status) {
			return nil, fault.Corruptf(fault.Span{Object: name}, "locationMap."+k+".status",
				"location status %q is unknown", f.Status)
		}
		if f.Status != status.StatusSuccess {
			continue
		}
		p := Place{Dir: k, values: f.Partitions, Indexes: slices.Clone(f.Files)}
		if f.Relative {
			if !fs.ValidPath(path.Clean(strings.TrimLeft(k, "/"))) { // with .. it may be a directory of another table
				return nil, fault.Corruptf(fault.Span{Object: name}, "locationMap",
					"the relative location %q is outside of the table", k)
			}
			p.Dir = path.Join(t.Path, k)
		} else if p.Dir, err = t.within(k, name, "locationMap"); err != nil {
			return nil, err
		}
		if f.Merge != "" {
			p.Indexes = append(p.Indexes, f.Merge)
		}
		if i := slices.IndexFunc(p.Indexes,
			func(n string) bool { return strings.ContainsAny(n, "/") || n == ".." }); i >= 0 {
			return nil, fault.Corruptf(fault.Span{Object: name}, "locationMap."+k,
				"expected the name of an index file, found the path %q", p.Indexes[i])
		}
		of, ok := strings.CutPrefix(path.Base(k), "Segment_")
		for i := 0; !ok && i < len(p.Indexes); i++ { // the name of a partition directory does not contain the segment
			of, _ = status.SegmentOf(p.Indexes[i])
			ok = of != "" && of != segment
		}
		// files added from elsewhere keep the names from where they were written
		if ok && f.Relative && of != segment {
			return nil, fault.Corruptf(fault.Span{Object: name}, "locationMap."+k,
				"expected a location of segment %s, found one of segment %s", segment, of)
		}
		if v := otherPartition(k, f.Partitions); f.Relative && v != "" {
			return nil, fault.Corruptf(fault.Span{Object: name}, "locationMap."+k+".partitions",
				"the directory is not that of partition %s", v)
		}
		slices.Sort(p.Indexes)
		out = append(out, p)
	}
	return out, nil
}

// folderParts returns the data files of a load in a directory: those that its index files name or, without a readable
// index, those with the segment in their names. With a Corrupt error it returns the files that exist. All files are
// added to h.
func (t *Managed) folderParts(ctx context.Context, l *status.Load, p Place, h *Contents) ([]Part, error) {
	files, err := t.listFolder(ctx, p.Dir, h)
	if err != nil {
		return nil, err
	}
	indexes := p.Indexes
	if indexes == nil {
		indexes = currentIndexes(layout.SortedKeys(files.indexes))
	}
	for _, n := range indexes {
		h.IndexBytes += files.indexes[n]
		h.IndexFiles = append(h.IndexFiles, path.Join(p.Dir, n))
	}
	blocks, whole, err := t.indexed(ctx, l, p.Dir, indexes)
	if err != nil {
		return nil, err
	}
	own := t.ownUnindexed(l, p.Dir, indexes, blocks, files.data)
	h.Unknown = h.Unknown || len(own) > 0 || !whole || p.guessed
	h.guessed = h.guessed || p.guessed
	if !whole && len(p.Indexes) > 0 {
		h.missingIndex = path.Join(p.Dir, p.Indexes[0])
	}
	var out []Part
	names := slices.Collect(maps.Keys(files.data))
	sorted.By(names, status.CompareNames)
	for _, name := range names {
		n := status.ParseFileName(name)
		mine := blocks[name] != nil || own[name] || !whole && (n.Segment == "" || n.Segment == l.SegmentID())
		if mine {
			h.names[name] = true
			h.Bytes += files.data[name].Size
		} else if n.Segment == l.SegmentID() || path.Base(p.Dir) == "Segment_"+l.SegmentID() {
			t.note("carbon.file.leftover", fault.Span{Object: path.Join(p.Dir, name)},
				"no index of segment %s names the file: it is not read", l.Name)
		}
		if !mine || t.O.Bucket >= 0 && n.Bucket != t.O.Bucket {
			continue
		}
		if x, ok := t.dataPart(l, p, files.data[name], blocks[name], files.deltas); ok {
			out = append(out, x)
		}
	}
	for _, name := range layout.SortedKeys(blocks) {
		if _, ok := files.data[name]; !ok {
			return out, fault.Corruptf(fault.Span{Object: path.Join(p.Dir, name)}, "",
				"segment %s: the index names this file, and it is missing", l.Name)
		}
	}
	return out, nil
}

// folderFiles has the files of a segment's directory, by name without the directory.
type folderFiles struct {
	data    map[string]store.Info
	indexes map[string]int64 // bytes of each index file
	deltas  []string         // delete deltas
}

// listFolder lists the files of a directory by kind, and adds the delete deltas to h; a missing directory is empty.
func (t *Managed) listFolder(ctx context.Context, dir string, h *Contents) (folderFiles, error) {
	files := folderFiles{data: map[string]store.Info{}, indexes: map[string]int64{}}
	for info, err := range t.Tree.List(ctx, dir) {
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return files, err
		}
		base := path.Base(info.Name)
		switch {
		case info.Dir:
		case strings.HasSuffix(base, layout.DataExt):
			files.data[base] = info
		case strings.HasSuffix(base, layout.IndexExt), strings.HasSuffix(base, layout.MergedExt):
			files.indexes[base] = info.Size
		case strings.HasSuffix(base, layout.DeltaExt):
			files.deltas = append(files.deltas, base)
			h.Deltas = append(h.Deltas, info.Name)
		}
	}
	return files, nil
}

// dataPart returns the part for a data file of a load; ok is false if the update status records the file as removed.
func (t *Managed) dataPart(l *status.Load, p Place, info store.Info, indexed *datafile.Indexed,
	deltas []string) (x Part, ok bool) {
	x = Part{Name: path.Join(p.Dir, path.Base(info.Name)), stamp: info.Stamp, rows: -1, bytes: info.Size,
		Segment: l.SegmentID(), values: p.values}
	if indexed != nil {
		x.blocks, x.columns = indexed.Blocks, indexed.Columns
	}
	for _, b := range x.blocks {
		x.rows = max(x.rows, 0) + b.Count()
	}
	block := status.ParseFileName(info.Name).Block
	u := t.changes[l.SegmentID()+"/"+block]
	t.unnamedDeltas(u, l, p.Dir, block, deltas)
	if t.Guessed != nil {
		u = t.Guessed.entry(u, l, block, deltas)
	}
	if u == nil || t.O.deleted {
		return x, true
	}
	x.Update = u
	return x, !u.Gone()
}

// ownUnindexed returns, in recovery, the data files of l that its indexes should name but do not. The missing files
// that the indexes name instead are removed from blocks.
func (t *Managed) ownUnindexed(l *status.Load, dir string, indexes []string, blocks map[string]*datafile.Indexed,
	data map[string]store.Info) map[string]bool {
	if t.saved == nil {
		return nil
	}
	own := unindexed(indexes, blocks, data, l)
	if len(own) > 0 {
		t.note("carbon.index.damaged", fault.Span{Object: path.Join(dir, indexes[0])},
			"it names missing data files, and not %s: the existing files of segment %s are read",
			path.Join(dir, layout.SortedKeys(own)[0]), l.Name)
		maps.DeleteFunc(blocks, func(name string, _ *datafile.Indexed) bool { _, ok := data[name]; return !ok })
	}
	return own
}

// unindexed returns the data files of a load that its damaged index files, which name missing files, fail to name. A
// file is the load's own, and not a leftover, if the indexes name only files of other segments, or if the time in its
// name is that of an index file: a load uses the same time for both.
func unindexed(indexes []string, blocks map[string]*datafile.Indexed, here map[string]store.Info,
	l *status.Load) (own map[string]bool) {
	lost, others := false, true
	for name := range blocks {
		_, ok := here[name]
		s := status.ParseFileName(name).Segment
		lost, others = lost || !ok, others && !ok && s != "" && s != l.SegmentID()
	}
	if !lost {
		return nil
	}
	times := map[int64]bool{}
	for _, name := range indexes {
		if _, at := status.SegmentOf(name); at > 0 {
			times[at] = true
		}
	}
	own = map[string]bool{}
	for name := range here {
		n := status.ParseFileName(name)
		if blocks[name] == nil && (n.Segment == l.SegmentID() && (others || times[n.Time]) || n.Segment == "" &&
			times[n.Time]) {
			own[name] = true
		}
	}
	return own
}

// unnamedDeltas records delete deltas of a block that are newer than all deltas that the update status names for the
// block.
func (t *Managed) unnamedDeltas(u *status.Update, l *status.Load, dir, block string, deltas []string) {
	last := int64(-1)
	if u != nil {
		if _, to := span64(u); to > 0 {
			last = to
		}
		for _, s := range u.Stamps {
			if at, ok := status.Millis(s); ok {
				last = max(last, at)
			}
		}
	}
	if t.Guessed != nil || !l.Counts() || u != nil && u.Gone() {
		return
	}
	for _, name := range deltas {
		stamp, ok := strings.CutPrefix(strings.TrimSuffix(name, layout.DeltaExt), block+"-")
		if at, isTime := status.Millis(stamp); ok && isTime && at > last {
			t.note("carbon.delete.unnamed", fault.Span{Object: path.Join(dir, name)}, "segment %s: the update "+
				"status does not name this delete delta, which is newer than those that it names for the block", l.Name)
		}
	}
}

// indexed reads index files. whole is false if an index file is missing or damaged, or if there is none. That is a
// finding and not an error, because the footers of the data files have all information that the indexes have.
func (t *Managed) indexed(ctx context.Context, l *status.Load, dir string, names []string) (
	out map[string]*datafile.Indexed, whole bool, err error) {
	out, whole = map[string]*datafile.Indexed{}, len(names) > 0
	if !whole {
		t.note("carbon.index.missing", fault.Span{Object: dir},
			"the segment has no index file: every data file with the segment in its name is read")
	}
	for _, n := range names {
		name := path.Join(dir, n)
		o, err := layout.OpenObject(ctx, t.Tree, name, t.Opts.Limits)
		if err != nil {
			whole = false
			t.note("carbon.index.missing", fault.Span{Object: name}, "%v", err)
			continue
		}
		files, err := o.ReadIndex(ctx, strings.HasSuffix(n, layout.MergedExt), nil)
		if err == nil {
			err = cmp.Or(t.CheckIndexes(files), t.ofSegment(ctx, l, dir, files))
		}
		if fault.OverBudget(err) {
			return nil, false, err
		}
		if err != nil {
			whole = false
			t.note("carbon.index.damaged", o.At, "%v", err)
			continue
		}
		datafile.Collect(out, files)
	}
	return out, whole, nil
}

// CheckIndexes returns Corrupt if index files can be parsed but name no data file, or have a column that the table
// never had. The table's column with a damaged id would otherwise look as if it had been added later, and be null in
// all rows.
func (t *Managed) CheckIndexes(files []layout.IndexFile) error {
	for i := range files {
		f := &files[i]
		if len(f.Blocks) == 0 {
			return fault.Corruptf(fault.Span{Object: f.Name}, "", "the index names no data file")
		}
		for k := range f.Header.Columns {
			if c := &f.Header.Columns[k]; t.Ids != nil && !t.Ids[c.ID] {
				return fault.Corruptf(fault.Span{Object: f.Name}, "table_columns",
					"column %q has an id that the table never had", c.Name)
			}
		}
	}
	return nil
}

// ForeignFile is a file of a segment whose files are not CarbonData's, but Parquet's.
type ForeignFile struct {
	Name, Stamp string
	Segment     string
	Bytes       int64
	Values      []string // of the partition columns: NAME=VALUE each
}

// ForeignFiles returns the files of a Parquet segment: those that its segment file names. With an error it still
// returns what was found.
func (t *Managed) ForeignFiles(ctx context.Context, l *status.Load) (out []ForeignFile, err error) {
	at := fault.Span{Object: t.Status}
	switch {
	case t.O.positions:
		return nil, fault.Unsupportedf(at, "", "segment %s is Parquet: its rows have no positions; CarbonData, too, "+
			"deletes and updates no rows of a table with such a segment", l.Name)
	case t.O.Bucket >= 0:
		return nil, fault.Unsupportedf(at, "", "segment %s is Parquet, which has no buckets", l.Name)
	case l.Segment == "":
		return nil, fault.Corruptf(at, "segmentFile", "segment %s: missing: it names the files of Parquet", l.Name)
	}
	name := t.segmentFileOf(l)
	var s status.SegmentFile
	if err := status.ReadJSON(ctx, t.Tree, name, t.Opts.Limits, &s); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fault.Corruptf(fault.Span{Object: name}, "", "segment %s: the segment file is missing", l.Name)
		}
		return nil, err
	}
	places, err := t.Located(name, s, l.SegmentID())
	if err != nil {
		return nil, err
	}
	for _, p := range places {
		for _, base := range p.Indexes {
			if base == "" || status.HiddenFromSpark(base) {
				continue
			}
			full := path.Join(p.Dir, base)
			info, failed := t.Tree.Stat(ctx, full)
			switch {
			case errors.Is(failed, fs.ErrNotExist):
				err = fault.Corruptf(fault.Span{Object: full}, "",
					"segment %s: the segment file names this file, and it is missing", l.Name)
			case failed != nil:
				return out, failed
			default:
				out = append(out, ForeignFile{Name: full, Stamp: info.Stamp, Segment: l.SegmentID(), Bytes: info.Size,
					Values: p.values})
			}
		}
	}
	return out, err
}
