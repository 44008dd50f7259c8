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
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
	"stoa/format/carbon/internal/table"
	"stoa/internal/thrift"
	"stoa/store"
)

// mergedIndex is a .carbonindexmerge: the bytes of index files, by their names.
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

// IndexMerge is what MergeIndexes did.
type IndexMerge = format.IndexMerge

// MergeIndexes makes one .carbonindexmerge of the single index files of each directory of the segments that
// count, or of those that are named. Readers then open one file instead of one for every task. A segment that
// has a segment file gets a new one, and is changed by one rename of tablestatus; the single files go after
// that. A damaged index file is an error, and nothing is changed. Segments of formats 1 and 2 stay as they are:
// the releases that read them know no merged index.
func MergeIndexes(ctx context.Context, dir string, segments []string) (out IndexMerge, err error) {
	unlock, err := LockUpdate(ctx, dir)
	if err != nil {
		return out, err
	}
	defer unlock()
	return mergeIndexes(ctx, dir, segments, false)
}

// mergeIndexes is MergeIndexes under its lock. With dry the index files are read and counted.
func mergeIndexes(ctx context.Context, dir string, segments []string, dry bool) (out IndexMerge, err error) {
	t, err := table.OpenManaged(ctx, store.Local{}, filepath.ToSlash(dir), format.OpenOptions{},
		table.ReadOptions{Bucket: -1, Zone: time.UTC, Segments: segments}, nil)
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

// mergeSegment merges the index files of a segment, or with dry only reads them; n is how many there were.
func mergeSegment(t *table.Managed, ctx context.Context, l *status.Load, dry bool) (n int, err error) {
	places, err := t.Folders(ctx, l)
	if err != nil {
		return 0, err
	}
	stamp := status.Now()
	name := fmt.Sprintf("%s_%d%s", l.Id(), stamp, layout.MergedExt)
	var old, fresh []string
	size := int64(0)
	defer func() {
		if err != nil { // nobody names them
			for _, f := range fresh {
				err = errors.Join(err, os.Remove(f))
			}
		}
	}()
	merged := map[string]bool{} // directories
	for _, p := range places {
		single, err := singleIndexes(t, ctx, p)
		if err != nil {
			return 0, err
		}
		if len(single) == 0 {
			continue
		}
		var files [][]byte
		for _, s := range single {
			b, version, err := indexBytes(t, ctx, filepath.ToSlash(filepath.Join(p.Dir, s)))
			if err != nil {
				return 0, err
			}
			if version < 3 {
				return 0, nil
			}
			files, old = append(files, b), append(old, filepath.Join(p.Dir, s))
		}
		if dry {
			continue
		}
		b := mergedIndex(single, files)
		if err := status.ReplaceFile(filepath.Join(p.Dir, name), b); err != nil {
			return 0, err
		}
		fresh, size, merged[filepath.Clean(p.Dir)] = append(fresh, filepath.Join(p.Dir, name)), size+int64(len(b)), true
	}
	if len(old) == 0 || dry {
		return len(old), nil
	}
	if l.Segment != "" {
		segment, err := mergedSegmentFile(t, l, merged, name, stamp)
		if err != nil {
			return 0, err
		}
		fresh = append(fresh, filepath.Join(t.Path, "Metadata", "segments", segment))
		old = append(old, filepath.Join(t.Path, "Metadata", "segments", l.Segment))
		err = changeStatus(ctx, t.Path, func(s *status.StatusFile) error {
			e := s.Find(l.Name)
			if e == nil || !e.Counts() || e.Text("segmentFile") != l.Segment {
				return fault.Invalidf("segment %s of %s changed while its indexes were merged", l.Name, t.Path)
			}
			e["segmentFile"], e["indexSize"] = segment, strconv.FormatInt(size, 10)
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	fresh = nil
	for _, f := range old {
		err = errors.Join(err, os.Remove(f))
	}
	return len(old) - map[bool]int{true: 1}[l.Segment != ""], err
}

// singleIndexes are the names of the .carbonindex files of a segment's directory that no merged one stands for.
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

// indexBytes are the bytes of an index file that can be read, and the format of its data files.
func indexBytes(t *table.Managed, ctx context.Context, name string) (b []byte, version int32, err error) {
	o, err := layout.OpenObject(ctx, t.Tree, name, t.Opts.Limits)
	if err != nil {
		return nil, 0, err
	}
	files, err := o.ReadIndex(ctx, false, nil)
	if err == nil {
		err = t.Odd(files)
	}
	if err != nil {
		return nil, 0, err
	}
	b, err = o.Read(ctx, 0, o.At.Len, "")
	return b, files[0].Header.Version, err
}

// mergedSegmentFile writes a segment's segment file again: its directories that were merged have one index file.
// Members that nobody here knows stay.
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
	name = fmt.Sprintf("%s_%d.segment", l.Id(), stamp)
	return name, status.ReplaceFile(filepath.Join(dir, name), b)
}
