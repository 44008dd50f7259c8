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
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"
	"stoa/store"
)

// knownPlace is where a partition is.
type knownPlace struct {
	values  []string // NAME=VALUE of each column, as segment files and the names of directories have them
	outside string   // its location as the segment files have it; "": in the table
}

// knownPlaces returns where the partitions of the table in dir are, in the newest segments that have them, by the text
// of partitionKey. CarbonData reads a partition only where Hive's metastore has it, and loads into it there: rows in
// another directory would be missing under Spark, also if its name has the same value in another spelling.
func knownPlaces(ctx context.Context, dir string, columns []layout.ColumnSchema) (map[string]knownPlace, error) {
	list, err := status.ReadEntries(status.StatusPath(dir))
	if err != nil {
		return nil, err
	}
	out := map[string]knownPlace{}
	for _, x := range list {
		e := status.StatusEntry(x)
		if !e.Counts() || e.Text("segmentFile") == "" {
			continue
		}
		var seg status.SegmentFile
		name := filepath.Join(dir, "Metadata", "segments", e.Text("segmentFile"))
		err := status.ReadJSON(ctx, store.Local{}, filepath.ToSlash(name), format.Limits{}, &seg)
		if err != nil {
			return nil, err
		}
		for _, k := range layout.SortedKeys(seg.Locations) {
			f := seg.Locations[k]
			key, ok := partitionKey(columns, f.Partitions)
			if f.Status != status.StatusSuccess || !ok {
				continue
			}
			place := knownPlace{values: f.Partitions}
			if !f.Relative {
				place.outside = k
			}
			// Of two spellings in the table, Spark knows its own.
			was, is := out[key]
			if is && place.outside == "" && was.outside == "" && strings.Join(was.values, "/") == key {
				continue
			}
			out[key] = place
		}
	}
	return out, nil
}

// partitionKey returns NAME=VALUE/… of a partition as Spark would name it, whatever the spelling in partition is. ok
// is false if a value is missing or is none of its column's type.
func partitionKey(columns []layout.ColumnSchema, partition []string) (key string, ok bool) {
	var out []string
	for i := range columns {
		c := &schema.Column{ColumnSchema: &columns[i]}
		for _, p := range partition {
			name, value, _ := strings.Cut(p, "=")
			if !strings.EqualFold(schema.Unescape(name), c.Name) {
				continue
			}
			v := schema.Constant{Null: value == schema.HiveNull}
			if !v.Null {
				var err error
				if v, err = page.ParseConstant(c, schema.Unescape(value)); err != nil {
					return "", false
				}
			}
			out = append(out, schema.Escape(c.Name)+"="+schema.Escape(schema.PartitionText(c.ColumnSchema, v)))
			break
		}
	}
	return strings.Join(out, "/"), len(out) == len(columns)
}

// filePlace is a datafile.OutPlace that creates files in a directory, and syncs them when they are closed.
type filePlace struct {
	dir   string
	index []byte // contents of the .carbonindex unless it is a file
	own   bool   // the .carbonindex is a file of its own; otherwise it is merged with others
	sizes map[string]int64
}

// syncedFile is a file that is synced when it is closed, and whose size is recorded.
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

// keptIndex keeps the bytes of a .carbonindex in memory.
type keptIndex filePlace

func (k *keptIndex) Write(b []byte) (int, error) { k.index = append(k.index, b...); return len(b), nil }

func (k *keptIndex) Close() error { return nil }

// Scratch creates a temporary file and removes its name at once.
func (p *filePlace) Scratch(context.Context) (store.Scratch, error) {
	f, err := os.CreateTemp(p.dir, store.TempPrefix+"sort-*")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// segmentText is the JSON of a segment file.
type segmentText struct {
	Locations map[string]folderText `json:"locationMap"`
}

// folderText is the JSON of a directory in a segment file.
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

// removeSegment removes the files that have the segment and, if stamp is greater than 0, the time stamp in their names.
// It also removes directories that become empty.
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
	for _, d := range dirs {
		if base := filepath.Base(d); base == "Segment_"+segment || strings.Contains(base, "=") {
			os.Remove(d) // fails unless the directory is empty
		}
	}
	return err
}

// segmentOfPath is status.SegmentOf extended to files of formats 1 and 2, where only the directory names the segment.
func segmentOfPath(name string) (segment string, stamp int64) {
	segment, stamp = status.SegmentOf(filepath.Base(name))
	if of, ok := strings.CutPrefix(filepath.Base(filepath.Dir(name)), "Segment_"); ok && segment == "" && stamp > 0 {
		segment = of
	}
	return segment, stamp
}

// CheckText returns an error if a text is not a value of column name of the table in dir. It parses texts as loads do.
func CheckText(dir, name, s string) error {
	t, err := ReadTableSchema(dir)
	if err != nil {
		return err
	}
	c := t.FindColumn(name)
	if c == nil {
		return fault.Invalidf("%s has no column %q", dir, name)
	}
	if c.Type == layout.TypeString || c.Type == layout.TypeVarchar {
		return nil
	}
	v, err := page.ParseConstant(&schema.Column{ColumnSchema: c}, s)
	if err == nil && c.Type == layout.TypeDecimal && !v.D.FitsInPrecision(c.Precision) {
		err = fault.Invalidf("%s has more than %d digits", s, c.Precision)
	}
	return err
}
