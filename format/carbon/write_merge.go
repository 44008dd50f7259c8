package carbon

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
	"stoa/internal/thrift"
	"stoa/store"
)

// mergedIndex is a .carbonindexmerge: the bytes of index files, by their names.
func mergedIndex(names []string, files [][]byte) []byte {
	return thriftBytes(func(w *thrift.Writer) {
		w.Struct(thrift.Item)
		w.List(1, thrift.Bytes, len(names))
		for _, n := range names {
			w.String(thrift.Item, n)
		}
		w.End()
		w.Struct(thrift.Item)
		putBinaries(w, 1, files)
		w.End()
	})
}

// IndexMerge is what MergeIndexes did.
type IndexMerge struct {
	Segments []string // that had single index files
	Files    int      // index files that became one a directory
}

// MergeIndexes makes one .carbonindexmerge of the single index files of each directory of the segments that count, or of those that
// are named. Readers then open one file instead of one for every task. A segment that has a segment file gets a new one, and is
// changed by one rename of tablestatus; the single files go after that. A damaged index file is an error, and nothing is changed.
// Segments of formats 1 and 2 stay as they are: the releases that read them know no merged index.
func MergeIndexes(ctx context.Context, dir string, segments []string) (out IndexMerge, err error) {
	unlock, err := LockUpdate(ctx, dir)
	if err != nil {
		return out, err
	}
	defer unlock()
	t, err := openManaged(ctx, store.Local{}, filepath.ToSlash(dir), format.OpenOptions{}, readOptions{bucket: -1, zone: time.UTC, segments: segments}, nil)
	if err != nil {
		return out, err
	}
	if err := t.checkWanted(); err != nil {
		return out, err
	}
	for i := range t.loads {
		l := &t.loads[i]
		if !l.counts() || l.foreign() || l.Path != "" || len(segments) > 0 && !slices.Contains(segments, l.Name) {
			continue
		}
		n, err := t.mergeSegment(ctx, l)
		if err != nil {
			return out, err
		}
		if n > 0 {
			out.Segments, out.Files = append(out.Segments, l.Name), out.Files+n
		}
	}
	return out, nil
}

// mergeSegment merges the index files of a segment; n is how many there were.
func (t *managed) mergeSegment(ctx context.Context, l *load) (n int, err error) {
	places, err := t.folders(ctx, l)
	if err != nil {
		return 0, err
	}
	stamp := now()
	name := fmt.Sprintf("%s_%d%s", l.id(), stamp, mergedExt)
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
		single, err := t.singleIndexes(ctx, p)
		if err != nil {
			return 0, err
		}
		if len(single) == 0 {
			continue
		}
		var files [][]byte
		for _, s := range single {
			b, version, err := t.indexBytes(ctx, filepath.ToSlash(filepath.Join(p.dir, s)))
			if err != nil {
				return 0, err
			}
			if version < 3 {
				return 0, nil
			}
			files, old = append(files, b), append(old, filepath.Join(p.dir, s))
		}
		b := mergedIndex(single, files)
		if err := replaceFile(filepath.Join(p.dir, name), b); err != nil {
			return 0, err
		}
		fresh, size, merged[filepath.Clean(p.dir)] = append(fresh, filepath.Join(p.dir, name)), size+int64(len(b)), true
	}
	if len(old) == 0 {
		return 0, nil
	}
	if l.Segment != "" {
		segment, err := t.mergedSegmentFile(l, merged, name, stamp)
		if err != nil {
			return 0, err
		}
		fresh = append(fresh, filepath.Join(t.path, "Metadata", "segments", segment))
		old = append(old, filepath.Join(t.path, "Metadata", "segments", l.Segment))
		err = changeStatus(ctx, t.path, func(s *statusFile) error {
			e := s.find(l.Name)
			if e == nil || !e.counts() || e.text("segmentFile") != l.Segment {
				return fault.Invalidf("segment %s of %s changed while its indexes were merged", l.Name, t.path)
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
func (t *managed) singleIndexes(ctx context.Context, p place) (out []string, err error) {
	names := p.indexes
	if names == nil {
		for info, err := range t.tree.List(ctx, p.dir) {
			if err != nil {
				return nil, err
			}
			names = append(names, filepath.Base(info.Name))
		}
	}
	for _, n := range names {
		switch {
		case strings.HasSuffix(n, mergedExt):
			return nil, nil
		case strings.HasSuffix(n, indexExt):
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}

// indexBytes are the bytes of an index file that can be read, and the format of its data files.
func (t *managed) indexBytes(ctx context.Context, name string) (b []byte, version int32, err error) {
	o, err := openObject(ctx, t.tree, name, t.opts.Limits)
	if err != nil {
		return nil, 0, err
	}
	files, err := o.readIndex(ctx, false, nil)
	if err == nil {
		err = t.odd(files)
	}
	if err != nil {
		return nil, 0, err
	}
	b, err = o.read(ctx, 0, o.at.Len, "")
	return b, files[0].header.version, err
}

// mergedSegmentFile writes a segment's segment file anew: its directories that were merged have one index file. Members that nobody
// here knows stay.
func (t *managed) mergedSegmentFile(l *load, merged map[string]bool, index string, stamp int64) (name string, err error) {
	dir := filepath.Join(t.path, "Metadata", "segments")
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
			full = filepath.Join(t.path, k)
		}
		if f != nil && merged[filepath.Clean(full)] {
			f["files"], f["mergeFileName"] = []string{}, index
		}
	}
	if b, err = json.Marshal(seg); err != nil {
		return "", err
	}
	name = fmt.Sprintf("%s_%d.segment", l.id(), stamp)
	return name, replaceFile(filepath.Join(dir, name), b)
}
