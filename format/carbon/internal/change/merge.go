package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
	"stoa/format/carbon/internal/table"
	"stoa/internal/thrift"
)

// mergedIndex returns a .carbonindexmerge of index files with the given names.
func mergedIndex(names []string, files [][]byte) []byte {
	return layout.ThriftBytes(func(w *thrift.Writer) {
		w.Struct(thrift.Item)
		w.List(1, thrift.Bytes, len(names))
		for _, n := range names {
			w.String(thrift.Item, n)
		}
		w.End()
		w.Struct(thrift.Item)
		layout.PutBinaries(w, 1, files)
		w.End()
	})
}

// IndexMerge reports what MergeIndexes did.
type IndexMerge = format.IndexMerge

// MergeIndexes merges the index files in each directory of all valid segments, or of the named ones, to one
// .carbonindexmerge, so that readers open one file instead of one per task. A segment with a segment file gets a new
// segment file, committed by one rename of tablestatus; the single index files are removed after that. If an index file
// is damaged, nothing is changed. Segments of formats 1 and 2 are skipped: the releases that read them have no merged
// indexes.
func MergeIndexes(ctx context.Context, dir string, segments []string) (out IndexMerge, err error) {
	return lockedMerge(ctx, format.TablePlace{Dir: dir}, segments)
}

func lockedMerge(ctx context.Context, p format.TablePlace, segments []string) (out IndexMerge, err error) {
	unlock, err := LockUpdate(ctx, p.Dir)
	if err != nil {
		return out, err
	}
	defer unlock()
	// a dry run first, so that a damaged index of a later segment is found before the first one is changed
	if _, err := mergeIndexes(ctx, p, segments, true); err != nil {
		return out, err
	}
	return mergeIndexes(ctx, p, segments, false)
}

// mergeIndexes is MergeIndexes under its lock. With dry the index files are only read and counted.
func mergeIndexes(ctx context.Context, p format.TablePlace, segments []string, dry bool) (out IndexMerge, err error) {
	t, err := openManaged(ctx, p, segments...)
	if err != nil {
		return out, err
	}
	if err := t.CheckWanted(); err != nil {
		return out, err
	}
	for i := range t.Loads {
		l := &t.Loads[i]
		if !l.Counts() || l.Foreign() || l.Path != "" || len(segments) > 0 && !slices.Contains(segments, l.Name) {
			continue
		}
		n, err := mergeSegment(t, ctx, l, dry)
		if err != nil {
			return out, err
		}
		if n > 0 {
			out.Segments, out.Files = append(out.Segments, l.Name), out.Files+n
		}
	}
	return out, nil
}

// mergeSegment merges the index files of a segment; with dry it only reads them. n is their number.
func mergeSegment(t *table.Managed, ctx context.Context, l *status.Load, dry bool) (n int, err error) {
	places, err := t.Folders(ctx, l)
	if err != nil {
		return 0, err
	}
	stamp := status.NowMillis()
	m := indexMerge{t: t, name: fmt.Sprintf("%s_%d%s", l.SegmentID(), stamp, layout.MergedExt),
		merged: map[string]bool{}}
	defer func() {
		for _, f := range m.fresh { // these files are not committed
			err = errors.Join(err, os.Remove(f))
		}
	}()
	for _, p := range places {
		if ok, err := m.directory(ctx, p, dry); err != nil || !ok {
			return 0, err
		}
	}
	n = len(m.replaced)
	if n == 0 || dry {
		return n, nil
	}
	if l.Segment != "" {
		if err := m.pointTo(ctx, l, stamp); err != nil {
			return 0, err
		}
	}
	m.fresh = nil
	for _, f := range m.replaced {
		err = errors.Join(err, os.Remove(f))
	}
	return n, err
}

// indexMerge is the state of merging the index files of a segment.
type indexMerge struct {
	t        *table.Managed
	name     string          // of the merged index files, the same in every directory
	merged   map[string]bool // directories that have a merged index file
	size     int64           // bytes of the merged index files
	replaced []string        // files to be removed after the commit
	fresh    []string        // files that were written, to be removed unless the merge is committed
}

// directory merges the single index files of a directory to one file; with dry it only reads them. ok is false if one
// of them is of a format that has no merged indexes.
func (m *indexMerge) directory(ctx context.Context, p table.Place, dry bool) (ok bool, err error) {
	single, err := singleIndexes(m.t, ctx, p)
	if err != nil || len(single) == 0 {
		return err == nil, err
	}
	var files [][]byte
	for _, s := range single {
		b, version, err := indexBytes(m.t, ctx, filepath.ToSlash(filepath.Join(p.Dir, s)))
		if err != nil || version < 3 {
			return false, err
		}
		files, m.replaced = append(files, b), append(m.replaced, filepath.Join(p.Dir, s))
	}
	if dry {
		return true, nil
	}
	b, name := mergedIndex(single, files), filepath.Join(p.Dir, m.name)
	if err := status.ReplaceFile(name, b); err != nil {
		return false, err
	}
	m.fresh, m.size = append(m.fresh, name), m.size+int64(len(b))
	m.merged[filepath.Clean(p.Dir)] = true
	return true, nil
}

// pointTo writes a segment file for l that names the merged index files, and commits it to tablestatus.
func (m *indexMerge) pointTo(ctx context.Context, l *status.Load, stamp int64) error {
	segment, err := mergedSegmentFile(m.t, l, m.merged, m.name, stamp)
	if err != nil {
		return err
	}
	dir := filepath.Join(m.t.Path, "Metadata", "segments")
	m.fresh = append(m.fresh, filepath.Join(dir, segment))
	m.replaced = append(m.replaced, filepath.Join(dir, l.Segment))
	return changeStatus(ctx, m.t.Path, func(s *status.StatusFile) error {
		e := s.Find(l.Name)
		if e == nil || !e.Counts() || e.Text("segmentFile") != l.Segment {
			return fault.Invalidf("segment %s of %s changed while its indexes were merged", l.Name, m.t.Path)
		}
		e["segmentFile"], e["indexSize"] = segment, strconv.FormatInt(m.size, 10)
		return nil
	})
}

// singleIndexes are the names of the .carbonindex files of a segment's directory; none if there is a merged index file,
// which replaces them.
func singleIndexes(t *table.Managed, ctx context.Context, p table.Place) (out []string, err error) {
	names := p.Indexes
	if names == nil {
		for info, err := range t.Tree.List(ctx, p.Dir) {
			if err != nil {
				return nil, err
			}
			names = append(names, filepath.Base(info.Name))
		}
	}
	for _, n := range names {
		switch {
		case strings.HasSuffix(n, layout.MergedExt):
			return nil, nil
		case strings.HasSuffix(n, layout.IndexExt):
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}

// indexBytes returns the bytes of an index file, and its format version. A damaged file is Corrupt.
func indexBytes(t *table.Managed, ctx context.Context, name string) (b []byte, version int32, err error) {
	o, err := layout.OpenObject(ctx, t.Tree, name, t.Opts.Limits)
	if err != nil {
		return nil, 0, err
	}
	files, err := o.ReadIndex(ctx, false, nil)
	if err == nil {
		err = t.CheckIndexes(files)
	}
	if err != nil {
		return nil, 0, err
	}
	b, err = o.Read(ctx, 0, o.At.Len, "")
	return b, files[0].Header.Version, err
}

// mergedSegmentFile writes a new segment file for l in which the directories in merged have the index file named index.
// Unknown members are preserved.
func mergedSegmentFile(t *table.Managed, l *status.Load, merged map[string]bool, index string,
	stamp int64) (name string, err error) {
	dir := filepath.Join(t.Path, "Metadata", "segments")
	b, err := os.ReadFile(filepath.Join(dir, l.Segment))
	if err != nil {
		return "", err
	}
	var seg map[string]any
	if err := json.Unmarshal(b, &seg); err != nil {
		return "", err
	}
	places, _ := seg["locationMap"].(map[string]any)
	for k, v := range places {
		f, _ := v.(map[string]any)
		full := k
		if relative, _ := f["isRelative"].(bool); relative {
			full = filepath.Join(t.Path, k)
		}
		if f != nil && merged[filepath.Clean(full)] {
			f["files"], f["mergeFileName"] = []string{}, index
		}
	}
	if b, err = json.Marshal(seg); err != nil {
		return "", err
	}
	name = fmt.Sprintf("%s_%d.segment", l.SegmentID(), stamp)
	return name, status.ReplaceFile(filepath.Join(dir, name), b)
}
