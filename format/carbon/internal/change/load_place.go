package change

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"
	"stoa/store"
)

// filePlace puts files into a directory, and their bytes on stable storage.
type filePlace struct {
	dir   string
	index []byte // of the .carbonindex, which is merged with others
	own   bool   // the .carbonindex is a file of its own
	sizes map[string]int64
}

type syncedFile struct {
	*os.File
	place *filePlace
	name  string
	n     int64
}

func (f *syncedFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	f.n += int64(n)
	return n, err
}

func (f *syncedFile) Close() error {
	f.place.sizes[f.name] = f.n
	return errors.Join(f.Sync(), f.File.Close())
}

func (p *filePlace) CreateFile(_ context.Context, name string) (io.WriteCloser, error) {
	if strings.HasSuffix(name, layout.IndexExt) && !p.own {
		return (*keptIndex)(p), nil
	}
	f, err := os.OpenFile(filepath.Join(p.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return &syncedFile{File: f, place: p, name: name}, nil
}

type keptIndex filePlace

func (k *keptIndex) Write(b []byte) (int, error) { k.index = append(k.index, b...); return len(b), nil }

func (k *keptIndex) Close() error { return nil }

// Scratch is a temporary file, which has no name any more.
func (p *filePlace) Scratch(context.Context) (store.Scratch, error) {
	f, err := os.CreateTemp(p.dir, store.TempPrefix+"sort-*")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// segmentText is a .segment file.
type segmentText struct {
	Locations map[string]folderText `json:"locationMap"`
}

type folderText struct {
	Files      []string `json:"files"`
	Partitions []string `json:"partitions"`
	Status     string   `json:"status"`
	Merge      string   `json:"mergeFileName,omitempty"`
	Relative   bool     `json:"isRelative"`
}

func writeSegmentFile(dir, name string, seg segmentText) error {
	b, err := json.Marshal(seg)
	if err != nil {
		return err
	}
	full := filepath.Join(dir, "Metadata", "segments")
	if err := os.MkdirAll(full, 0o777); err != nil {
		return err
	}
	return status.ReplaceFile(filepath.Join(full, name), b)
}

// removeSegment removes the files of a segment that is not part of the table: those whose names say the
// segment; with a stamp above 0 only those of that load.
func removeSegment(dir, segment string, stamp int64) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			dirs = append(dirs, name)
			return nil
		}
		if of, ms := segmentOfPath(name); of == segment && (stamp <= 0 || ms == stamp) {
			return os.Remove(name)
		}
		return nil
	})
	slices.Reverse(dirs)
	for _, d := range dirs { // those that became empty
		if base := filepath.Base(d); base == "Segment_"+segment || strings.Contains(base, "=") {
			os.Remove(d) // fails if something is in it
		}
	}
	return err
}

// segmentOfPath is segmentOf, also for files of formats 1 and 2, of which only the directory says the segment.
func segmentOfPath(name string) (segment string, stamp int64) {
	segment, stamp = status.SegmentOf(filepath.Base(name))
	if of, ok := strings.CutPrefix(filepath.Base(filepath.Dir(name)), "Segment_"); ok && segment == "" && stamp > 0 {
		segment = of
	}
	return segment, stamp
}

// CheckText reports why a text is no value of a column of the table in dir; loads read texts in the same way.
func CheckText(dir, name, s string) error {
	t, err := ReadTableSchema(dir)
	if err != nil {
		return err
	}
	c := t.Top(name)
	if c == nil {
		return fault.Invalidf("%s has no column %q", dir, name)
	}
	if c.Typ == layout.TypeString || c.Typ == layout.TypeVarchar {
		return nil
	}
	v, err := page.ConstantOf(&schema.Column{ColumnSchema: c}, s)
	if err == nil && c.Typ == layout.TypeDecimal && !v.D.FitsInPrecision(c.Precision) {
		err = fault.Invalidf("%s has more than %d digits", s, c.Precision)
	}
	return err
}
