package table

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"
	"stoa/internal/sorted"
	"stoa/store"
)

// The segments of a partitioned table have no directories of their own. Their files are in the partitions' directories,
// nested NAME=VALUE, and only the segment files list these. If a segment file is lost, the names of the data files
// still contain the segment.

// maxPartitions is the largest depth to which partition directories are searched.
const maxPartitions = 16

// partitionFiles calls yield with each partition directory below the table, the values in its path, and the names of
// the files in it, until yield returns false.
func partitionFiles(ctx context.Context, tree store.Tree, table string,
	yield func(dir string, values, files []string) bool) error {
	done := false
	var below func(dir string, values []string) error
	below = func(dir string, values []string) error {
		var dirs, files []string
		for info, err := range tree.List(ctx, dir) {
			if err != nil {
				return err
			}
			switch base := path.Base(info.Name); {
			case !info.Dir:
				files = append(files, base)
			case hiveDir.MatchString(base) && len(values) < maxPartitions:
				dirs = append(dirs, base)
			}
		}
		if len(values) > 0 && len(files) > 0 {
			done = !yield(dir, values, files)
		}
		for _, d := range dirs {
			if done {
				break
			}
			if err := below(path.Join(dir, d), append(slices.Clone(values), d)); err != nil {
				return err
			}
		}
		return nil
	}
	return below(table, nil)
}

// partitionPlaces returns the directories of a segment whose segment file cannot be used, and reports that. why is the
// reason; nil means that tablestatus names no segment file or that the file has no location. Only the segment file
// records which partitions were dropped: their files stay until the table is cleaned, and the sizes in tablestatus do
// not change. So partitions that the damaged file still marks as dropped are left out, but other dropped partitions
// cannot be recognized.
func (t *Managed) partitionPlaces(ctx context.Context, l *status.Load, why error) ([]Place, error) {
	found, err := t.partitionsOf(ctx, l.SegmentID())
	if err != nil || len(found) == 0 {
		return nil, err
	}
	out := slices.Clone(found)
	name := t.segmentFileOf(l)
	at, reason := fault.Span{Object: name}, "it is missing"
	var dropped map[string]bool
	switch {
	case l.Segment == "":
		name = t.Status + " " + l.Name // reported once per segment
		at, reason = fault.Span{Object: t.Status}, "it names no segment file"
	case why == nil:
		reason = "it has no location"
	case errors.Is(why, fault.Corrupt):
		at, reason = placeOf(why, name), why.Error()
		if e := (*fault.Error)(nil); errors.As(why, &e) && e.At.Object == name {
			reason = strings.TrimPrefix(e.Path+": "+e.Reason, ": ")
		}
		if dropped, err = t.droppedPlaces(ctx, name, l.SegmentID()); err != nil {
			return nil, err
		}
	}
	left := 0
	for i := range out {
		if out[i].dropped = dropped[out[i].Dir]; out[i].dropped {
			left++
		}
	}
	if l.Counts() && t.saved != nil {
		also := ""
		if left > 0 {
			also = fmt.Sprintf("; %d that it still marks as dropped are left out", left)
		}
		t.reportOnce(name, layout.Findingf("carbon.segment.damaged", at, t.Path, "%s: the files of segment %s in the "+
			"directories of all partitions are read%s; rows of partitions that were dropped may have come back",
			reason, l.Name, also))
	}
	return out, nil
}

// aLocation matches an intact entry of locationMap anywhere in a segment file that is damaged elsewhere. Neither key
// nor value contains braces.
var aLocation = regexp.MustCompile(`("(?:[^"\\]|\\.)*")\s*:\s*(\{[^{}]*\})`)

// droppedPlaces returns the directories that a damaged segment file marks as dropped partitions. Only intact entries
// that agree with their directory are used.
func (t *Managed) droppedPlaces(ctx context.Context, name, segment string) (map[string]bool, error) {
	o, err := layout.OpenObject(ctx, t.Tree, name, t.Opts.Limits)
	if err != nil {
		return nil, err
	}
	b, err := o.Read(ctx, 0, o.At.Len, "")
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, m := range aLocation.FindAllSubmatch(b, -1) {
		var dir string
		var f status.Folder
		if json.Unmarshal(m[1], &dir) != nil || json.Unmarshal(m[2], &f) != nil ||
			bytes.Count(m[2], []byte(`"status"`)) != 1 {
			continue
		}
		of, _ := status.SegmentOf(f.Merge)
		if f.Status == status.StatusDeleted && f.Relative && len(f.Partitions) > 0 &&
			otherPartition(dir, f.Partitions) == "" && (f.Merge == "" || of == segment) {
			out[path.Join(t.Path, dir)] = true
		}
	}
	return out, nil
}

// partitionsOf returns the partition directories with files of a segment. All segments share one search.
func (t *Managed) partitionsOf(ctx context.Context, segment string) ([]Place, error) {
	if t.partitions != nil {
		return t.partitions[segment], nil
	}
	found := map[string][]Place{}
	err := partitionFiles(ctx, t.Tree, t.Path, func(dir string, values, files []string) bool {
		here := map[string]*Place{}
		for _, f := range files {
			of, _ := status.SegmentOf(f)
			index := strings.HasSuffix(f, layout.IndexExt) || strings.HasSuffix(f, layout.MergedExt)
			if of == "" || !index && !strings.HasSuffix(f, layout.DataExt) {
				continue
			}
			if here[of] == nil {
				here[of] = &Place{Dir: dir, values: values, Indexes: []string{}, guessed: true}
			}
			if index {
				here[of].Indexes = append(here[of].Indexes, f)
			}
		}
		for of, p := range here {
			p.Indexes = currentIndexes(p.Indexes)
			found[of] = append(found[of], *p)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	t.partitions = found
	return found[segment], nil
}

// maxLooked is the largest number of partition directories that are read to decide whether a place is a partitioned
// table.
const maxLooked = 64

// partitioned reports whether a directory is a partitioned table that lost its schema and segment files: it is not a
// partition itself, it contains nothing but partition directories and CarbonData's own directories, and the names of
// the data files contain segments. Data files of the SDK have no segments, so each directory of them is a table of its
// own, as is a directory with files of other systems. An error means that the store could not answer.
func partitioned(ctx context.Context, tree store.Tree, dir string) (bool, error) {
	column, own, other := "", false, false
	for info, err := range tree.List(ctx, dir) {
		if err != nil {
			return false, storeFailure(err)
		}
		base := path.Base(info.Name)
		name, _, _ := strings.Cut(base, "=")
		switch {
		case info.Dir && (base == "Metadata" || base == carbonLocks):
			own = true
		case base[0] == '.', base[0] == '_', info.Dir && base == "Fact":
		case info.Dir && hiveDir.MatchString(base) && (column == "" || strings.EqualFold(name, column)):
			column = name
		default:
			other = true
		}
	}
	if column == "" || other && !own {
		return false, nil
	}
	if is, err := isPartition(ctx, tree, dir); err != nil || is {
		return false, err
	}
	looked, data, foreign := 0, 0, false
	err := partitionFiles(ctx, tree, dir, func(_ string, _, files []string) bool {
		for _, f := range files {
			of, _ := status.SegmentOf(f)
			switch {
			case strings.HasSuffix(f, layout.DataExt):
				data++
				// names before 1.5 have no segment
				foreign = foreign || !segmentNumber.MatchString(of) && (of != "" || !own)
			case !ownData.MatchString(f) && !ownAnywhere.MatchString(f):
				foreign = foreign || !own
			}
		}
		looked++
		return !foreign && looked < maxLooked
	})
	return err == nil && data > 0 && !foreign, storeFailure(err)
}

// storeFailure returns err if the store could not answer, and nil if something merely does not exist.
func storeFailure(err error) error {
	if store.Failing(err) {
		return err
	}
	return nil
}

// isPartition reports whether a directory is a partition and not a table: judged by its name or, for the working
// directory, by the names of its parents.
func isPartition(ctx context.Context, tree store.Tree, dir string) (bool, error) {
	dir = path.Clean(dir)
	if base := path.Base(dir); base != "." && base != ".." {
		return hiveDir.MatchString(base), nil
	}
	for range maxPartitions {
		dir = path.Join(dir, "..")
		if is, err := isTable(ctx, tree, dir); is || err != nil {
			return is, err
		}
	}
	return false, nil
}

// segmentNumber matches the name of a segment: a number and, after a point, how often it was compacted.
var segmentNumber = regexp.MustCompile(`^\d+(\.\d+)?$`)

// holdsPartitions reports whether there is a data file in a directory NAME=VALUE below dir. If so, dir may be a
// partitioned table.
func holdsPartitions(ctx context.Context, tree store.Tree, dir string) (holds bool, err error) {
	err = partitionFiles(ctx, tree, dir, func(_ string, _, files []string) bool {
		holds = slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, layout.DataExt) })
		return !holds
	})
	return holds && err == nil, storeFailure(err)
}

// currentIndexes returns the merged index files among names, or all names if none is merged: a merged index file
// replaces the others.
func currentIndexes(names []string) []string {
	var merged []string
	for _, n := range names {
		if strings.HasSuffix(n, layout.MergedExt) {
			merged = append(merged, n)
		}
	}
	if merged != nil {
		return merged
	}
	return names
}

// otherPartition returns the first of a partition's values NAME=VALUE that contradicts the path of its directory, "" if
// none does. A directory without NAME= may belong to any partition, since users can choose the location.
func otherPartition(dir string, values []string) string {
	for _, v := range values {
		name, value, _ := strings.Cut(v, "=")
		for _, d := range strings.Split(dir, "/") {
			n, x, ok := strings.Cut(d, "=")
			if ok && strings.EqualFold(n, name) && x != value && schema.Unescape(x) != value &&
				schema.Unescape(x) != schema.Unescape(value) {
				return v
			}
		}
	}
	return ""
}

// FilesBelow returns the paths of the data files below a directory, down to depth levels of subdirectories.
func FilesBelow(ctx context.Context, tree store.Tree, dir string, depth int) (out []string, err error) {
	for info, err := range tree.List(ctx, dir) {
		if err != nil {
			return nil, err
		}
		switch {
		case info.Dir && depth > 0:
			more, err := FilesBelow(ctx, tree, info.Name, depth-1)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		case !info.Dir && strings.HasSuffix(info.Name, layout.DataExt):
			out = append(out, info.Name)
		}
	}
	return out, nil
}

// guessLoads returns the segments that have a directory below Fact or, in partitioned tables, a segment file
// (N_TIME.segment; the latest one is used) or data files in partition directories.
func (t *Managed) guessLoads(ctx context.Context) ([]status.Load, error) {
	out, err := t.segmentsThere(ctx)
	known := map[string]bool{}
	for i := range out {
		known[out[i].Name] = true
	}
	err = errors.Join(err, partitionFiles(ctx, t.Tree, t.Path, func(_ string, _, files []string) bool {
		for _, f := range files {
			if of, _ := status.SegmentOf(f); of != "" && strings.HasSuffix(f, layout.DataExt) && !known[of] {
				known[of] = true
				out = append(out, status.Load{Name: of, Status: status.StatusSuccess})
			}
		}
		return true
	}))
	sorted.By(out, func(a, b status.Load) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

// segmentsThere returns the segments that have a directory below Fact, or a segment file.
func (t *Managed) segmentsThere(ctx context.Context) ([]status.Load, error) {
	found := map[string]*status.Load{}
	add := func(name string) *status.Load {
		if found[name] == nil {
			found[name] = &status.Load{Name: name, Status: status.StatusSuccess}
		}
		return found[name]
	}
	list := func(dir string, yield func(info store.Info)) error {
		for info, err := range t.Tree.List(ctx, dir) {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			yield(info)
		}
		return nil
	}
	var parts []string
	err := list(path.Join(t.Path, "Fact"), func(info store.Info) {
		if info.Dir && strings.HasPrefix(path.Base(info.Name), "Part") {
			parts = append(parts, info.Name)
		}
	})
	for _, p := range parts {
		err = errors.Join(err, list(p, func(info store.Info) {
			if name, ok := strings.CutPrefix(path.Base(info.Name), "Segment_"); ok && info.Dir {
				add(name)
			}
		}))
	}
	err = errors.Join(err, list(path.Join(t.Path, "Metadata", "segments"), func(info store.Info) {
		base := path.Base(info.Name)
		if name, _, ok := strings.Cut(base, "_"); ok && strings.HasSuffix(base, ".segment") && !info.Dir {
			if l := add(name); base > l.Segment {
				l.Segment = base
			}
		}
	}))
	var out []status.Load
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, *found[name])
	}
	return out, err
}

// ofSegment returns Corrupt if indexes in dir, of a load, name a data file that is another segment's by its name, and
// that segment has files in dir: then they are a copy of its indexes. In the directory of a partition, where the files
// of all segments lie, whatever they name is there; in that of a segment it is missing, which is found without this.
func (t *Managed) ofSegment(ctx context.Context, l *status.Load, dir string, files []layout.IndexFile) error {
	if l.Path != "" || path.Base(dir) == "Segment_"+l.SegmentID() {
		return nil
	}
	mine := map[string]bool{"": true, l.SegmentID(): true} // by the segment in the name of a file
	for i := range files {
		for _, b := range files[i].Blocks {
			of := status.ParseFileName(b.File).Segment
			if !mine[of] && t.loadedTo(ctx, of, dir) {
				return fault.Corruptf(fault.Span{Object: files[i].Name}, "", "segment %s: the index names %s, a file "+
					"of segment %s", l.Name, path.Base(b.File), of)
			}
			mine[of] = true
		}
	}
	return nil
}

// loadedTo reports whether a segment that counts has files in dir by its segment file. If it has none there, as where
// a directory was added to the table as a partition, its name says nothing.
func (t *Managed) loadedTo(ctx context.Context, segment, dir string) bool {
	for i := range t.Loads {
		l := &t.Loads[i]
		if l.SegmentID() != segment || !l.Counts() || l.Segment == "" {
			continue
		}
		places, _, _ := t.segmentFilePlaces(ctx, l)
		if slices.ContainsFunc(places, func(p Place) bool { return p.Dir == dir && !p.dropped }) {
			return true
		}
	}
	return false
}
