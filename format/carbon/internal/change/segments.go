package change

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/dict"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"
	"stoa/format/carbon/internal/table"
	"stoa/store"
)

// AddSegment makes the files of a directory a segment of the table in dir; see addPlace.
func AddSegment(ctx context.Context, dir string, s format.NewSegment, dry bool) (string, error) {
	t, err := ReadTableSchema(dir)
	if err != nil {
		return "", err
	}
	if t.Partition != nil {
		return "", fault.Invalidf("%s has partitions: the files of a directory can only be one of them (add-partition)",
			dir)
	}
	return addPlace(ctx, dir, s, nil, dry)
}

// addPlace makes the files of a directory a segment of the table in dir or, if partition values are given, a partition.
// The files stay where they are. Index files must name them, and their columns must have the ids of the table's
// columns: CarbonData finds columns by id, and reads missing ones as null. With dry nothing is written.
func addPlace(ctx context.Context, dir string, s format.NewSegment, partition []string, dry bool) (name string,
	err error) {
	full, err := filepath.Abs(s.Path)
	if err != nil {
		return "", err
	}
	if s.Format != "" && s.Format != "carbon" && s.Format != "carbondata" {
		return "", fault.Unsupportedf(fault.Span{Object: s.Path}, "", "a segment of format %q: expected carbon or "+
			"parquet", s.Format)
	}
	f, sum, err := placeToAdd(ctx, dir, full)
	if err != nil {
		return "", err
	}
	if f.Partitions = partition; partition == nil {
		f.Partitions = []string{}
	}
	return enterPlace(ctx, added{dir: dir, full: full, given: s.Path, format: "carbondata", folder: f, sum: sum}, dry)
}

// Parquet is the file format of Parquet segments in tablestatus.
const Parquet = "parquet"

// AddForeign makes the Parquet files of a directory a segment of the table at p. check must accept each file, which it
// gets by name.
func AddForeign(ctx context.Context, p format.TablePlace, s format.NewSegment, dry bool,
	check func(name string) error) (string, error) {
	if err := checkIndependent(ctx, p); err != nil {
		return "", err
	}
	t, err := ReadTableSchema(p.Dir)
	if err != nil {
		return "", err
	}
	if t.Partition != nil {
		return "", fault.Unsupportedf(fault.Span{Object: p.Dir}, "", "a segment of Parquet of a table with partitions")
	}
	full, err := filepath.Abs(s.Path)
	if err != nil {
		return "", err
	}
	f := folderText{Files: []string{}, Partitions: []string{}, Status: status.StatusSuccess}
	list, err := os.ReadDir(full)
	if err != nil {
		return "", err
	}
	sum := LoadSummary{}
	for _, e := range list {
		if e.IsDir() || status.HiddenFromSpark(e.Name()) {
			continue // nor does CarbonData list directories
		}
		if err := check(filepath.ToSlash(filepath.Join(full, e.Name()))); err != nil {
			return "", err
		}
		info, err := e.Info()
		if err != nil {
			return "", err
		}
		f.Files, sum.DataBytes = append(f.Files, e.Name()), sum.DataBytes+info.Size()
	}
	if len(f.Files) == 0 {
		return "", fault.Invalidf("%s: expected files of Parquet, found none", s.Path)
	}
	return enterPlace(ctx, added{dir: p.Dir, full: full, given: s.Path, format: Parquet, folder: f, sum: sum}, dry)
}

// added is a directory that becomes a segment of a table.
type added struct {
	dir, full, given string // directory of the table; of the files; of the files as the user wrote it
	format           string // as in the options of ADD SEGMENT
	folder           folderText
	sum              LoadSummary
}

// enterPlace writes a segment file for a directory, and enters it in tablestatus. With dry nothing is written.
func enterPlace(ctx context.Context, a added, dry bool) (name string, err error) {
	full := filepath.ToSlash(a.full)
	seg := addedText{segmentText: segmentText{Locations: map[string]folderText{full: a.folder}}}
	entry := func(st *status.StatusFile) error {
		if err := ownPlace(ctx, a); err != nil {
			return err
		}
		if name, err = st.NewSegment(a.dir); err != nil || dry {
			return err
		}
		stamp := max(status.NowMillis(), lastStamp(*st)+1)
		e := status.StatusEntry{"loadName": name, "loadStatus": status.StatusSuccess,
			"loadStartTime": status.FormatMillis(stamp), "timestamp": status.FormatMillis(stamp),
			"dataSize": fmt.Sprint(a.sum.DataBytes), "indexSize": fmt.Sprint(a.sum.IndexBytes),
			"segmentFile": fmt.Sprintf("%s_%d.segment", name, stamp)}
		if len(a.folder.Partitions) == 0 {
			e["path"] = full
			seg.Options = map[string]string{"format": a.format, "path": full}
		}
		if a.format == Parquet {
			e["fileFormat"] = Parquet
		}
		b, err := json.Marshal(seg)
		if err != nil {
			return err
		}
		segments := filepath.Join(a.dir, "Metadata", "segments")
		if err := os.MkdirAll(segments, 0o777); err != nil {
			return err
		}
		if err := status.ReplaceFile(filepath.Join(segments, e.Text("segmentFile")), b); err != nil {
			return err
		}
		*st = append(*st, e)
		return nil
	}
	if !dry {
		err := changeStatus(ctx, a.dir, entry)
		return name, err
	}
	st, err := readStatus(a.dir)
	if err == nil {
		err = entry(&st)
	}
	return name, err
}

// addedText is the segment file of a segment that was added.
type addedText struct {
	segmentText
	Options map[string]string `json:"options,omitempty"`
}

// fileToAdd checks that a data file that x describes is whole, and that its columns, and the codes in them, mean the
// same in table m.
func fileToAdd(ctx context.Context, m *table.Managed, name string, x *datafile.Indexed) error {
	versions := append([][]layout.ColumnSchema{m.TableSchema.Columns}, m.TableSchema.HistoryColumns()...)
	if why := schema.Contradicts(x.Columns, versions...); why != "" {
		return fault.Invalidf("%s: %s", name, why)
	}
	f, err := table.OpenIndexed(ctx, m.Tree, name, x)
	if err != nil {
		return err
	}
	list := f.Header.Columns
	if f.Version < 3 {
		list = f.Footer.Columns
	}
	if why := schema.Contradicts(list, versions...); why != "" {
		return fault.Invalidf("%s: %s", name, why)
	}
	for _, c := range f.Columns {
		if schema.HasGlobalCodes(c) {
			if err := dict.Agree(ctx, m.Tree, filepath.ToSlash(filepath.Dir(name)), m.Path, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// ownPlace returns Invalid if a directory holds files of a segment of the table already: its rows would be read twice,
// or be removed with that segment. Links are followed.
func ownPlace(ctx context.Context, a added) error {
	m, err := openManaged(ctx, format.TablePlace{Dir: a.dir, External: true})
	if err != nil {
		return err
	}
	full, root := real(a.full), real(a.dir)
	if rel, err := filepath.Rel(root, full); err == nil {
		if own, _ := path.Match("Fact/Part*/Segment_*", filepath.ToSlash(rel)); own {
			return fault.Invalidf("%s is the directory of a segment of %s itself", a.given, a.dir)
		}
	}
	for i := range m.Loads {
		l := &m.Loads[i]
		if l.Foreign() && l.Path == "" || !l.Counts() && l.Path != "" { // what was added stays where it is
			continue
		}
		places, err := m.Folders(ctx, l)
		if err != nil && l.Counts() {
			return err
		}
		for _, p := range places {
			if real(filepath.FromSlash(p.Dir)) == full {
				return fault.Invalidf("%s is segment %s of %s already", a.given, l.Name, a.dir)
			}
		}
	}
	return nil
}

// placeToAdd reads the indexes of a directory of data files, and checks that they fit the table in dir.
func placeToAdd(ctx context.Context, dir, full string) (f folderText, sum LoadSummary, err error) {
	place := format.Target{Tree: store.Local{}, Name: filepath.ToSlash(full)}
	have, err := table.ReadFolder(ctx, place, format.Limits{})
	if err != nil {
		return f, sum, err
	}
	for _, name := range layout.SortedKeys(have.Unreadable) {
		return f, sum, have.Unreadable[name]
	}
	m, err := openManaged(ctx, format.TablePlace{Dir: dir, External: true}) // refused before, if it must be
	if err != nil {
		return f, sum, err
	}
	if len(have.Data) == 0 || len(have.Indexes) == 0 {
		return f, sum, fault.Invalidf("%s: expected data files of CarbonData with their index, found %d and %d index "+
			"files", full, len(have.Data), len(have.Indexes))
	}
	for _, name := range have.Missing() {
		return f, sum, have.MissingError(full, name)
	}
	for _, name := range have.Data {
		x := have.Named[filepath.Base(name)]
		if x == nil {
			return f, sum, fault.Invalidf("%s: no index names this data file: CarbonData would not read it", name)
		}
		if err := fileToAdd(ctx, m, name, x); err != nil {
			return f, sum, err
		}
		info, err := os.Stat(filepath.FromSlash(name))
		if err != nil {
			return f, sum, err
		}
		sum.DataBytes += info.Size()
	}
	f = folderText{Files: []string{}, Status: status.StatusSuccess}
	merged := slices.ContainsFunc(have.Indexes, func(n string) bool { return strings.HasSuffix(n, layout.MergedExt) })
	for _, name := range have.Indexes {
		if strings.HasSuffix(name, layout.MergedExt) != merged {
			continue // a merged index file replaces the others
		}
		info, err := os.Stat(filepath.FromSlash(name))
		if err != nil {
			return f, sum, err
		}
		if sum.IndexBytes += info.Size(); merged {
			if f.Merge != "" {
				return f, sum, fault.Invalidf("%s has several merged index files", full)
			}
			f.Merge = filepath.Base(name)
		} else {
			f.Files = append(f.Files, filepath.Base(name))
		}
	}
	return f, sum, nil
}
