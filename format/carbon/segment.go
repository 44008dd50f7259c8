package carbon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/region"
	"stoa/store"
)

// fileName is what the name of a data file says.
//
//	part-0-0_batchno0-BUCKET-SEGMENT-TIME.snappy.carbondata     since 1.5
//	part-0-0_batchno0-BUCKET-TIME.carbondata                    before
//	part-0-TASK-BUCKET-TIME.carbondata                          formats 1 and 2
type fileName struct {
	block   string // all before the time: by which deletes name the file
	segment string // "" not said
	bucket  int    // -1 not said
	time    int64  // -1 not said
}

func parseFileName(name string) fileName {
	base := path.Base(name)
	f := fileName{bucket: -1, time: -1}
	i := strings.LastIndexByte(base, '-')
	if i < 0 {
		return f
	}
	f.block = base[:i]
	stamp, _, _ := strings.Cut(base[i+1:], ".")
	if n, err := strconv.ParseInt(stamp, 10, 64); err == nil {
		f.time = n
	}
	p := strings.Split(f.block, "-")
	switch {
	case len(p) == 5:
		f.bucket, f.segment = number0(p[3]), p[4]
	case len(p) == 4:
		f.bucket = number0(p[3])
	}
	return f
}

func number0(s string) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return -1
}

const (
	dataExt   = ".carbondata"
	indexExt  = ".carbonindex"
	mergedExt = ".carbonindexmerge"
	deltaExt  = ".deletedelta"
)

// segmentParts finds the data files of a load.
func (t *managed) segmentParts(ctx context.Context, l *load) ([]part, error) {
	out, _, err := t.segmentHolding(ctx, l)
	return out, err
}

// segmentHolding finds the data files of a load, and says what else was found.
func (t *managed) segmentHolding(ctx context.Context, l *load) ([]part, *holding, error) {
	h := &holding{names: map[string]bool{}}
	if l.foreign() {
		return nil, h, fault.Unsupportedf(fault.Span{Object: t.status}, "", "segment %s has files of format %s, not Carbon's; option segments leaves it out", l.Name, l.FileFormat)
	}
	var out []part
	folders, err := t.folders(ctx, l)
	if err != nil {
		return nil, h, err
	}
	for _, f := range folders {
		some, err := t.folderParts(ctx, l, f, h)
		if err != nil && !errors.Is(err, fault.Corrupt) {
			return nil, h, err
		}
		h.fail(err)
		if !f.dropped { // what it holds was looked at all the same: tablestatus counts its bytes
			out = append(out, some...)
		}
	}
	h.fail(t.whole(l, h))
	if err := t.fit(l, h.names); err != nil {
		return out, h, &misfit{cmp.Or(h.err, err)}
	}
	return out, h, h.err
}

// misfit is an error about a segment of which the update status has entries that no data file fits, so that which rows are deleted is not known, or whose data files
// are not those that were loaded.
type misfit struct{ error }

func (m *misfit) Unwrap() error { return m.error }

// holding is what was found of a segment.
type holding struct {
	names    map[string]bool // of data files, also of those of other buckets than the wanted one
	bytes    int64           // of them
	indexes  int64           // bytes of its index files
	deltas   []string        // its delete deltas
	unknown  bool            // an index file is missing or damaged: there may have been more data files
	guessed  bool            // its directories were looked for: there may have been more
	promised string          // an index file that the segment file names, and that is not there
	err      error           // the first of them
}

func (h *holding) fail(err error) {
	if h.err == nil {
		h.err = err
	}
}

// whole looks whether all data files of the segment are there if no index tells: by the size that tablestatus has of them. There may be
// more of them: updates before 2.0 added files and left the size as it was.
func (t *managed) whole(l *load, h *holding) error {
	want := count64(l.DataSize)
	switch {
	case !l.counts() || !h.unknown && len(h.names) > 0:
	case want > h.bytes:
		return fault.Corruptf(fault.Span{Object: t.status}, "dataSize", "segment %s has %d bytes of data files, and %d are there; its index files or its segment file are missing or damaged", l.Name, want, h.bytes)
	case want < 0 && h.guessed:
		return fault.Corruptf(fault.Span{Object: t.status}, "dataSize", "segment %s: without its segment file nothing says in which directories of partitions its files were", l.Name)
	case want < 0 && h.promised != "":
		return fault.Corruptf(fault.Span{Object: h.promised}, "", "segment %s: its segment file names this index, it is missing, and nothing else says which data files there were", l.Name)
	}
	return nil
}

// fit looks whether each entry of the update status has its data file in the segment.
func (t *managed) fit(l *load, files map[string]bool) error {
	blocks := map[string]bool{}
	for f := range files {
		blocks[parseFileName(f).block] = true
	}
	for _, k := range sorted(t.changes) {
		u := t.changes[k]
		if !l.counts() || u.Segment != l.id() || u.gone() {
			continue
		}
		if !blocks[u.Block] || u.Actual != "" && !files[path.Base(u.Actual)] {
			return fault.Corruptf(fault.Span{Object: t.updates}, "blockName", "%s (%s) has deleted rows, and is no data file of segment %s", u.Block, u.Actual, l.Name)
		}
	}
	return nil
}

// place is a directory with files of a segment.
type place struct {
	dir     string
	indexes []string // names of its index files, as the segment file says; nil: look
	values  []string // of the partition columns, name=value each
	guessed bool     // recovering: nothing says that these are all directories of the segment
	dropped bool     // recovering: the damaged segment file still says that this partition was dropped
}

// folders are the directories of a segment: as its segment file says, or where segments are by rule.
func (t *managed) folders(ctx context.Context, l *load) ([]place, error) {
	if l.Path != "" {
		return []place{{dir: l.Path}}, nil
	}
	var why error // the segment file is not followed
	if l.Segment != "" {
		var s segmentFile
		name := t.segmentFileOf(l)
		err := readJSON(ctx, t.tree, name, t.opts.Limits, &s)
		if err == nil && s.Locations == nil {
			err = fault.Corruptf(fault.Span{Object: name}, "locationMap", "it is missing, which says in which directories the files of segment %s are", l.Name)
		}
		if err == nil && len(s.Locations) > 0 {
			var out []place
			if out, err = t.located(name, s, l.id()); err == nil {
				return out, nil
			}
		}
		switch {
		case errors.Is(err, fault.Corrupt) && t.saved != nil && l.counts():
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, err
		case err != nil && l.counts():
			t.note("carbon.segment.file", fault.Span{Object: name}, "segment %s: its segment file is missing, its files are looked for where they should be", l.Name)
		}
		why = err
	}
	fact := path.Join(t.path, "Fact")
	var out []place
	for info, err := range t.tree.List(ctx, fact) {
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		if info.Dir && strings.HasPrefix(path.Base(info.Name), "Part") {
			dir := path.Join(info.Name, "Segment_"+l.id())
			d, err := t.tree.Stat(ctx, dir)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			if err == nil && d.Dir {
				out = append(out, place{dir: dir})
			}
		}
	}
	if len(out) == 0 && t.saved != nil {
		if out, err := t.partitionPlaces(ctx, l, why); err != nil || len(out) > 0 {
			return out, err
		}
	}
	if errors.Is(why, fault.Corrupt) && l.counts() {
		name := t.segmentFileOf(l)
		t.sayOnce(name, saying("carbon.segment.damaged", placeOf(why, name), t.path, "%v: the directory of segment %s is read", why, l.Name))
	}
	if len(out) == 0 && l.DataSize != "0" {
		return nil, fault.Corruptf(fault.Span{Object: t.status}, "", "segment %s (%s) has no directory", l.Name, l.Status)
	}
	return out, nil
}

// segmentFileOf is the name of the segment file of a load.
func (t *managed) segmentFileOf(l *load) string {
	return path.Join(t.path, "Metadata", "segments", l.Segment)
}

// located are the places of the segment file name. They and their files say of which segment they are: a file that is another segment's would
// have its rows twice, and this one's not at all.
func (t *managed) located(name string, s segmentFile, segment string) (out []place, err error) {
	for _, k := range sorted(s.Locations) {
		f := s.Locations[k]
		if !knownStatus(f.Status) {
			return nil, fault.Corruptf(fault.Span{Object: name}, "locationMap."+k+".status", "location status %q is unknown", f.Status)
		}
		if f.Status != statusSuccess {
			continue
		}
		p := place{dir: k, values: f.Partitions, indexes: slices.Clone(f.Files)}
		if f.Relative {
			if !fs.ValidPath(path.Clean(strings.TrimLeft(k, "/"))) { // with .. it may be another table's
				return nil, fault.Corruptf(fault.Span{Object: name}, "locationMap", "the relative location %q leads out of the table", k)
			}
			p.dir = path.Join(t.path, k)
		}
		if f.Merge != "" {
			p.indexes = append(p.indexes, f.Merge)
		}
		if i := slices.IndexFunc(p.indexes, func(n string) bool { return strings.ContainsAny(n, "/") || n == ".." }); i >= 0 {
			return nil, fault.Corruptf(fault.Span{Object: name}, "locationMap."+k, "the index file %q is a path, where a name is wanted", p.indexes[i])
		}
		of, ok := strings.CutPrefix(path.Base(k), "Segment_")
		for i := 0; !ok && i < len(p.indexes); i++ { // as in a partition's directory
			of, _ = segmentOf(p.indexes[i])
			ok = of != "" && of != segment
		}
		if ok && of != segment {
			return nil, fault.Corruptf(fault.Span{Object: name}, "locationMap."+k, "this is of segment %s, but the file is named as that of segment %s", of, segment)
		}
		if v := otherPartition(k, f.Partitions); f.Relative && v != "" {
			return nil, fault.Corruptf(fault.Span{Object: name}, "locationMap."+k+".partitions", "the directory is not that of the partition %s", v)
		}
		slices.Sort(p.indexes)
		out = append(out, p)
	}
	return out, nil
}

// otherPartition is the first of the values NAME=VALUE of a partition that the path of its directory contradicts: there the column has another one. A directory
// without NAME= may be of any partition, if its user said so.
func otherPartition(dir string, values []string) string {
	for _, v := range values {
		name, value, _ := strings.Cut(v, "=")
		for _, d := range strings.Split(dir, "/") {
			n, x, ok := strings.Cut(d, "=")
			if ok && strings.EqualFold(n, name) && x != value && unescape(x) != value && unescape(x) != unescape(value) {
				return v
			}
		}
	}
	return ""
}

// folderParts are the data files of a load in a directory: those that its index files name. Without a readable index those whose
// names say the segment. With a Corrupt error it gives what is there. h is told what was found.
func (t *managed) folderParts(ctx context.Context, l *load, p place, h *holding) ([]part, error) {
	here := map[string]store.Info{} // data files
	var indexes, deltas []string
	sizes := map[string]int64{}
	for info, err := range t.tree.List(ctx, p.dir) {
		if errors.Is(err, fs.ErrNotExist) { // an empty directory is as good
			break
		}
		if err != nil {
			return nil, err
		}
		base := path.Base(info.Name)
		switch {
		case info.Dir:
		case strings.HasSuffix(base, dataExt):
			here[base] = info
		case strings.HasSuffix(base, indexExt), strings.HasSuffix(base, mergedExt):
			indexes = append(indexes, base)
			sizes[base] = info.Size
		case strings.HasSuffix(base, deltaExt):
			deltas = append(deltas, base)
			h.deltas = append(h.deltas, info.Name)
		}
	}
	if p.indexes != nil {
		indexes = p.indexes
	} else {
		indexes = currentIndexes(indexes)
	}
	for _, n := range indexes {
		h.indexes += sizes[n]
	}
	blocks, whole := t.indexed(ctx, p.dir, indexes)
	var own map[string]bool
	if t.saved != nil {
		own = unindexed(indexes, blocks, here, l)
	}
	if len(own) > 0 {
		t.note("carbon.index.damaged", fault.Span{Object: path.Join(p.dir, indexes[0])}, "it names data files that are not there, and not %s: what is there of segment %s is read", path.Join(p.dir, sorted(own)[0]), l.Name)
		maps.DeleteFunc(blocks, func(name string, _ *indexed) bool { _, ok := here[name]; return !ok })
		h.unknown = true
	}
	h.unknown, h.guessed = h.unknown || !whole || p.guessed, h.guessed || p.guessed
	if !whole && len(p.indexes) > 0 {
		h.promised = path.Join(p.dir, p.indexes[0])
	}
	var out []part
	for _, name := range sorted(here) {
		n := parseFileName(name)
		x0 := blocks[name]
		mine := x0 != nil || own[name] || !whole && (n.segment == "" || n.segment == l.id())
		if mine {
			h.names[name] = true
			h.bytes += here[name].Size
		} else if n.segment == l.id() || path.Base(p.dir) == "Segment_"+l.id() {
			t.note("carbon.file.leftover", fault.Span{Object: path.Join(p.dir, name)}, "no index of segment %s names the file: it is not read", l.Name)
		}
		if !mine || t.o.bucket >= 0 && n.bucket != t.o.bucket {
			continue
		}
		x := part{name: path.Join(p.dir, name), stamp: here[name].Stamp, rows: -1, bytes: here[name].Size, segment: l.id(), values: p.values}
		if x0 != nil {
			x.blocks, x.columns = x0.blocks, x0.columns
		}
		for _, b := range x.blocks {
			x.rows = max(x.rows, 0) + b.count()
		}
		u := t.changes[l.id()+"/"+n.block]
		t.unnamedDeltas(u, l, p.dir, n.block, deltas)
		if t.guessed != nil {
			u = t.guessed.entry(u, l, n.block, deltas)
		}
		if u != nil && !t.o.deleted {
			if u.gone() {
				continue
			}
			x.update = u
		}
		out = append(out, x)
	}
	for _, name := range sorted(blocks) {
		if _, ok := here[name]; !ok {
			return out, fault.Corruptf(fault.Span{Object: path.Join(p.dir, name)}, "", "segment %s: the index names this file, and it is missing", l.Name)
		}
	}
	return out, nil
}

// unindexed are the data files of a load that its index files should name, and do not, because what they name is not there: the indexes, or names in them, are others than they
// were. That the files are the load's own, and no leftovers, shows where all that is named is of other segments, or where the time in a file's name is that in an index's,
// which one load gives to both.
func unindexed(indexes []string, blocks map[string]*indexed, here map[string]store.Info, l *load) (own map[string]bool) {
	lost, others := false, true
	for name := range blocks {
		_, ok := here[name]
		s := parseFileName(name).segment
		lost, others = lost || !ok, others && !ok && s != "" && s != l.id()
	}
	if !lost {
		return nil
	}
	times := map[int64]bool{}
	for _, name := range indexes {
		if _, at := segmentOf(name); at > 0 {
			times[at] = true
		}
	}
	own = map[string]bool{}
	for name := range here {
		n := parseFileName(name)
		if blocks[name] == nil && (n.segment == l.id() && (others || times[n.time]) || n.segment == "" && times[n.time]) {
			own[name] = true
		}
	}
	return own
}

// unnamedDeltas notes delete deltas of a block that are newer than all that the update status names of it.
func (t *managed) unnamedDeltas(u *update, l *load, dir, block string, deltas []string) {
	last := int64(-1)
	if u != nil {
		if _, to := span64(u); to > 0 {
			last = to
		}
		for _, s := range u.Stamps {
			if at, ok := millis(s); ok {
				last = max(last, at)
			}
		}
	}
	if t.guessed != nil || !l.counts() || u != nil && u.gone() {
		return
	}
	for _, name := range deltas {
		stamp, ok := strings.CutPrefix(strings.TrimSuffix(name, deltaExt), block+"-")
		if at, isTime := millis(stamp); ok && isTime && at > last {
			t.note("carbon.delete.unnamed", fault.Span{Object: path.Join(dir, name)}, "segment %s: the update status does not name this delete delta, which is newer than all that it names of the block", l.Name)
		}
	}
}

// currentIndexes leaves out single index files where a merged one is: the merged one stands for them.
func currentIndexes(names []string) []string {
	var merged []string
	for _, n := range names {
		if strings.HasSuffix(n, mergedExt) {
			merged = append(merged, n)
		}
	}
	if merged != nil {
		return merged
	}
	return names
}

// indexed is what index files say of a data file.
type indexed struct {
	blocks  []blockIndex
	columns []columnSchema
}

// indexed reads index files. whole is false if one is missing or damaged, or if there is none: the footers know all that they know,
// and the finding is kept for who asks.
func (t *managed) indexed(ctx context.Context, dir string, names []string) (out map[string]*indexed, whole bool) {
	out, whole = map[string]*indexed{}, len(names) > 0
	if !whole {
		t.note("carbon.index.missing", fault.Span{Object: dir}, "the segment has no index file: every data file whose name says the segment is read")
	}
	for _, n := range names {
		name := path.Join(dir, n)
		o, err := openObject(ctx, t.tree, name, t.opts.Limits)
		if err != nil {
			whole = false
			t.note("carbon.index.missing", fault.Span{Object: name}, "%v", err)
			continue
		}
		files, err := o.readIndex(ctx, strings.HasSuffix(n, mergedExt), nil)
		if err == nil {
			err = t.odd(files)
		}
		if err != nil {
			whole = false
			t.note("carbon.index.damaged", o.at, "%v", err)
			continue
		}
		collect(out, files)
	}
	return out, whole
}

// collect puts the entries of index files in order, by data file.
func collect(out map[string]*indexed, files []indexFile) {
	for _, f := range files {
		for _, b := range f.blocks {
			base := path.Base(b.file)
			if out[base] == nil {
				out[base] = &indexed{columns: f.header.columns}
			}
			out[base].blocks = append(out[base].blocks, b)
		}
	}
}

// odd is an error if index files parse, and yet say what none of this table can: then nothing of them is believed. A column that
// the table never had would be taken for one that was added later, and its rows for nulls.
func (t *managed) odd(files []indexFile) error {
	for i := range files {
		f := &files[i]
		if len(f.blocks) == 0 {
			return fault.Corruptf(fault.Span{Object: f.name}, "", "the index names no data file")
		}
		for k := range f.header.columns {
			if c := &f.header.columns[k]; t.ids != nil && !t.ids[c.id] {
				return fault.Corruptf(fault.Span{Object: f.name}, "table_columns", "column %q has an id that the table never had", c.name)
			}
		}
	}
	return nil
}

// note keeps a finding.
func (t *managed) note(code string, at fault.Span, format string, args ...any) {
	t.noting.Lock()
	defer t.noting.Unlock()
	t.notes = append(t.notes, region.Finding{Code: code, Severity: severityOf(code), At: at, Message: fmt.Sprintf(format, args...), Part: t.path, Rows: [2]int64{-1, -1}, Lost: 0})
}

// Findings is what was odd about the indexes of the segments that were looked into.
func (t *managed) Findings() []region.Finding {
	t.noting.Lock()
	defer t.noting.Unlock()
	return slices.Clone(t.notes)
}
