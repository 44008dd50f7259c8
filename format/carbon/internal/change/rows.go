package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"
	"stoa/format/carbon/internal/table"
	"stoa/store"
)

// CreateTable makes a table's directory: its schema and an empty status. dir must not be there, or be empty.
// store, if it is not empty, is the directory of the databases, whose ModifiedTime.mdt is touched.
func CreateTable(dir, store string, spec TableSpec) error {
	return createTable(dir, store, spec, false)
}

func createTable(dir, store string, spec TableSpec, dry bool) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fault.Invalidf("%s is there already", dir)
	}
	t, err := spec.tableSchema(status.Now())
	if err != nil || dry {
		return err
	}
	meta := filepath.Join(dir, "Metadata")
	if err := os.MkdirAll(meta, 0o777); err != nil {
		return err
	}
	if err := status.ReplaceFile(status.StatusPath(dir), []byte("[]")); err != nil {
		return err
	}
	// the last one: it makes the directory a table
	if err := status.ReplaceFile(filepath.Join(meta, "schema"), layout.ThriftBytes(t.Put)); err != nil {
		return err
	}
	return touchStore(store)
}

// touchStore notes that a table came or went: the time of the file is what others look at.
func touchStore(dir string) error {
	if dir == "" {
		return nil
	}
	name := filepath.Join(dir, "ModifiedTime.mdt")
	if other := filepath.Join(dir, "modifiedTime.mdt"); exists(other) { // as newer releases call it
		name = other
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	at := time.Now()
	return errors.Join(f.Close(), os.Chtimes(name, at, at))
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// isTable is an error if a directory is no table's.
func isTable(dir string) error {
	if !exists(filepath.Join(dir, "Metadata", "schema")) && !exists(filepath.Join(dir, "Fact")) {
		return fault.Invalidf("%s is no table: it has neither Metadata/schema nor Fact", dir)
	}
	return nil
}

// DropTable removes a table with all its files. The schema goes first: without it nobody takes the directory
// for a whole table.
func DropTable(ctx context.Context, dir, store string) error {
	if err := isTable(dir); err != nil {
		return err
	}
	for _, name := range []string{status.LockStatus, status.LockUpdate, status.LockCompaction} {
		unlock, err := status.Lock(ctx, dir, name, status.LockWait)
		if err != nil {
			return err
		}
		defer unlock()
	}
	if err := os.Remove(filepath.Join(dir, "Metadata", "schema")); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(dir), touchStore(store))
}

// DeleteSegments marks loads as deleted; their files stay until they are cleaned away.
func DeleteSegments(ctx context.Context, dir string, names []string) error {
	return changeStatus(ctx, dir, markDeleted(dir, names))
}

func markDeleted(dir string, names []string) func(s *status.StatusFile) error {
	return func(s *status.StatusFile) error {
		for _, n := range names {
			e := s.Find(n)
			switch {
			case e == nil:
				return fault.Invalidf("%s has no segment %s", dir, n)
			case !e.Counts():
				return fault.Invalidf("segment %s of %s is %s: it cannot be deleted", n, dir, e.Text("loadStatus"))
			}
			e["loadStatus"], e["modificationOrDeletionTimestamp"] = status.StatusDeleted, status.MsText(status.Now())
		}
		return nil
	}
}

// Cleaned is what Clean removed, or would remove: entries of tablestatus, and files.
type Cleaned = format.Cleaned

// errDry ends a change of tablestatus that is only tried: nothing is written.
var errDry = errors.New("dry run")

// Clean removes what is no part of the table any more: loads that were cut off, segments that are deleted or
// compacted, files of segments that tablestatus does not have, temporary files, and delete deltas that a newer
// update status does not name. A load that goes on holds the lock of its segment and is left alone. With dry
// nothing is removed.
func Clean(ctx context.Context, dir string, dry bool) (out Cleaned, err error) {
	if _, err := ReadTableSchema(dir); err != nil {
		return out, err
	}
	for _, name := range []string{status.LockCompaction, status.LockUpdate} {
		unlock, err := status.Lock(ctx, dir, name, status.LockWait)
		if err != nil {
			return out, err
		}
		defer unlock()
	}
	err = changeStatus(ctx, dir, func(s *status.StatusFile) error {
		keep, err := cleanEntries(ctx, dir, s, &out)
		if err != nil {
			return err
		}
		if err := cleanFiles(dir, *s, keep, dry, &out); err != nil {
			return err
		}
		if dry {
			return errDry
		}
		return s.Retire(dir, out.Segments)
	})
	if errors.Is(err, errDry) {
		err = nil
	}
	slices.Sort(out.Files)
	return out, err
}

// cleanEntries sorts the segments into those that go and those whose files stay.
func cleanEntries(ctx context.Context, dir string, s *status.StatusFile, out *Cleaned) (keep map[string]bool,
	err error) {
	keep = map[string]bool{}
	for _, x := range *s {
		e := status.StatusEntry(x)
		name := e.Text("loadName")
		switch said := e.Text("loadStatus"); {
		case said == status.StatusDeleted || said == status.StatusCompacted:
			out.Segments = append(out.Segments, name)
		case e.Loading():
			unlock, err := status.Lock(ctx, dir, "Segment_"+name+".lock", 0)
			if err != nil { // somebody is at it
				keep[name] = true
				continue
			}
			unlock()
			out.Segments = append(out.Segments, name)
		default:
			keep[name] = true
		}
	}
	return keep, nil
}

func cleanFiles(dir string, s status.StatusFile, keep map[string]bool, dry bool, out *Cleaned) error {
	deltas, err := deltasInUse(dir, s)
	if err != nil {
		return err
	}
	var dirs []string
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			dirs = append(dirs, name)
			return nil
		}
		of, _ := segmentOfPath(name)
		gone := of != "" && !keep[of] || strings.HasPrefix(d.Name(), store.TempPrefix)
		if strings.HasSuffix(d.Name(), ".deletedelta") {
			gone = !deltas[d.Name()] || !keep[of]
		}
		if strings.HasPrefix(d.Name(), "tableupdatestatus-") {
			gone = len(s) == 0 || d.Name() != status.StatusEntry(s[0]).Text("updateStatusFileName")
		}
		if of, ok := strings.CutPrefix(d.Name(), "Segment_"); ok && strings.HasSuffix(of, ".lock") {
			gone = false
		}
		if !gone {
			return nil
		}
		if info, err := d.Info(); err == nil {
			out.Bytes += info.Size()
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if out.Files = append(out.Files, filepath.ToSlash(rel)); dry {
			return nil
		}
		return os.Remove(name)
	})
	if err != nil || dry {
		return err
	}
	slices.Reverse(dirs)
	for _, d := range dirs {
		if base := filepath.Base(d); strings.HasPrefix(base, "Segment_") || strings.Contains(base, "=") {
			os.Remove(d) // fails if something is in it
		}
	}
	return nil
}

// readUpdates reads the update status that tablestatus names.
func readUpdates(dir string, s status.StatusFile) (list []map[string]any, err error) {
	if len(s) == 0 || status.StatusEntry(s[0]).Text("updateStatusFileName") == "" {
		return nil, nil
	}
	b, err := os.ReadFile(filepath.Join(dir, "Metadata", status.StatusEntry(s[0]).Text("updateStatusFileName")))
	if err != nil {
		return nil, err
	}
	return list, json.Unmarshal(b, &list)
}

// deltasInUse are the names of the delete deltas that the update status names, by range.
func deltasInUse(dir string, s status.StatusFile) (map[string]bool, error) {
	list, err := readUpdates(dir, s)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		base, ok := strings.CutSuffix(d.Name(), ".deletedelta")
		i := strings.LastIndexByte(base, '-')
		if err != nil || !ok || i < 0 {
			return err
		}
		at, _ := status.Millis(base[i+1:])
		for _, x := range list {
			u := status.StatusEntry(x)
			from, _ := status.Millis(u.Text("deleteDeltaStartTimestamp"))
			to, _ := status.Millis(u.Text("deleteDeltaEndTimestamp"))
			if u.Text("blockName") == base[:i] && at >= from && at <= to {
				out[d.Name()] = true
			}
		}
		return nil
	})
	return out, err
}

// Deleted are rows of a data file that are to go; File is as column stoa_file of the reader's option positions
// gives it.
type Deleted = format.RowsOfFile

// DeleteRows deletes rows: for each data file a delete delta with all its deleted rows, and an update status,
// become part of the table in one rename of tablestatus.
func DeleteRows(ctx context.Context, dir string, rows []Deleted) (int64, error) {
	return deleteRows(ctx, dir, rows, nil)
}

// UpdateRows deletes rows and, in the same change, adds those that were written to l, which was begun by BeginUpdate.
func UpdateRows(ctx context.Context, dir string, rows []Deleted, l *Load) (int64, error) {
	return deleteRows(ctx, dir, rows, l)
}

// BeginUpdate begins the load of an update: it becomes part of the table together with the deletes.
func BeginUpdate(ctx context.Context, dir string, sc *arrow.Schema, o LoadOptions) (*Load, error) {
	return BeginLoad(ctx, dir, sc, o)
}

// LockUpdate keeps other deletes, updates and compactions from the table until unlock is called.
func LockUpdate(ctx context.Context, dir string) (unlock func(), err error) {
	var all []func()
	undo := func() {
		for _, f := range all {
			f()
		}
	}
	for _, name := range []string{status.LockUpdate, status.LockCompaction} {
		u, err := status.Lock(ctx, dir, name, status.LockWait)
		if err != nil {
			undo()
			return nil, err
		}
		all = append(all, u)
	}
	return undo, nil
}

func deleteRows(ctx context.Context, dir string, rows []Deleted, l *Load) (n int64, err error) {
	m, err := table.OpenManaged(ctx, store.Local{}, filepath.ToSlash(dir), format.OpenOptions{},
		table.ReadOptions{Bucket: -1, Zone: time.UTC}, nil)
	if err != nil {
		return 0, err
	}
	stamp := status.Now()
	if l != nil {
		stamp = l.stamp
	}
	var fresh []map[string]any
	var deltas []string
	told := false // tablestatus may name them
	defer func() {
		for _, name := range deltas {
			if err != nil && !told {
				err = errors.Join(err, os.Remove(name))
			}
		}
	}()
	segments := map[string]bool{}
	for _, d := range rows {
		u, delta, err := writeDelta(m, ctx, d, stamp)
		if err != nil {
			return 0, err
		}
		deltas = append(deltas, delta)
		n += int64(len(d.Rows))
		segments[u["segmentName"].(string)] = true
		fresh = append(fresh, u)
	}
	commit := func(s *status.StatusFile) error {
		told = true
		return commitDeletes(dir, s, fresh, segments, stamp)
	}
	if l == nil {
		if len(rows) == 0 {
			return 0, nil
		}
		return n, changeStatus(ctx, dir, commit)
	}
	l.then = func(_ *Load, s *status.StatusFile, _ status.StatusEntry) error { return commit(s) }
	_, err = l.Close(ctx)
	return n, err
}

// commitDeletes writes the update status anew and has tablestatus name it.
func commitDeletes(dir string, s *status.StatusFile, fresh []map[string]any, segments map[string]bool,
	stamp int64) error {
	list, err := readUpdates(dir, *s)
	if err != nil {
		return err
	}
	for _, u := range fresh {
		list = slices.DeleteFunc(list, func(x map[string]any) bool {
			return x["segmentName"] == u["segmentName"] && x["blockName"] == u["blockName"]
		})
	}
	b, err := json.Marshal(append(list, fresh...))
	if err != nil {
		return err
	}
	name := "tableupdatestatus-" + status.MsText(stamp)
	if err := status.ReplaceFile(filepath.Join(dir, "Metadata", name), b); err != nil {
		return err
	}
	for i, x := range *s {
		e := status.StatusEntry(x)
		if i == 0 {
			e["updateStatusFileName"] = name
		}
		if segments[e.Text("loadName")] {
			if e.Text("updateDeltaStartTimestamp") == "" {
				e["updateDeltaStartTimestamp"] = status.MsText(stamp)
			}
			e["updateDeltaEndTimestamp"] = status.MsText(stamp)
		}
	}
	return nil
}

// Compaction is segments that become one.
type Compaction = format.Compaction

// BeginCompaction begins to make one segment of several; the caller gives it the rows of these segments and
// closes the load. major says which kind tablestatus is told.
func BeginCompaction(ctx context.Context, dir string, sc *arrow.Schema, from []string, to string, major bool,
	o LoadOptions) (*Load, error) {
	o.segment, o.hidden = to, true
	l, err := BeginLoad(ctx, dir, sc, o)
	if err != nil {
		return nil, err
	}
	l.then = func(l *Load, s *status.StatusFile, entry status.StatusEntry) error {
		for _, n := range from {
			e := s.Find(n)
			if e == nil || !e.Counts() {
				return fault.Invalidf("segment %s of %s changed while it was compacted", n, dir)
			}
			e["loadStatus"], e["mergedLoadName"], e["modificationOrDeletionTimestamp"] = status.StatusCompacted, to,
				status.MsText(status.Now())
		}
		if major {
			entry["majorCompacted"] = "true"
		}
		return nil
	}
	return l, nil
}

// PlanCompaction says which segments become one: all that count for major; for minor four loads, or three
// results of such compactions, as CarbonData's default thresholds say. ids are segment names given by hand,
// nil: by rule.
func PlanCompaction(dir string, major bool, ids []string) ([]Compaction, error) {
	s, err := readStatus(dir)
	if err != nil {
		return nil, err
	}
	history, err := status.ReadEntries(status.HistoryPath(dir))
	if err != nil {
		return nil, err
	}
	known := slices.Concat(s, history)
	var levels [3][]string
	var all []string
	for _, x := range s {
		e := status.StatusEntry(x)
		name := e.Text("loadName")
		if !e.Counts() || e.Text("fileFormat") != "" {
			continue
		}
		all = append(all, name)
		if _, level, ok := strings.Cut(name, "."); !ok {
			levels[0] = append(levels[0], name)
		} else if n, err := strconv.Atoi(level); err == nil && n <= 2 && e.Text("majorCompacted") != "true" {
			levels[n] = append(levels[n], name)
		}
	}
	for i, n := range ids {
		if !slices.Contains(all, n) {
			return nil, fault.Invalidf("%s has no segment %s that counts", dir, n)
		}
		if slices.Contains(ids[:i], n) {
			return nil, fault.Invalidf("segment %s is named twice", n)
		}
	}
	if ids != nil { // oldest first
		ids = slices.DeleteFunc(slices.Clone(all), func(n string) bool { return !slices.Contains(ids, n) })
	}
	switch {
	case ids != nil:
		return []Compaction{{From: ids, To: mergedName(known, ids[0], 1)}}, nil
	case major && len(all) > 1:
		return []Compaction{{From: all, To: mergedName(known, all[0], 1)}}, nil
	case major:
		return nil, nil
	}
	var out []Compaction
	for level, need := range []int{4, 3} {
		for list := levels[level]; len(list) >= need; list = list[need:] {
			out = append(out, Compaction{From: list[:need], To: mergedName(known, list[0], level+1)})
		}
	}
	return out, nil
}

// mergedName is a name for what first and others become: the number of the first with the next level that is
// free, and was never used.
func mergedName(s status.StatusFile, first string, level int) string {
	whole, _, _ := strings.Cut(first, ".")
	for ; ; level++ {
		if name := fmt.Sprintf("%s.%d", whole, level); s.Find(name) == nil {
			return name
		}
	}
}

// changeSchema reads the schema, has it changed, and writes it anew under its lock. With dry it is only tried.
func changeSchema(ctx context.Context, dir string, dry bool, change func(t *layout.TableSchema) error) error {
	if dry {
		t, err := ReadTableSchema(dir)
		if err != nil {
			return err
		}
		return change(t)
	}
	unlock, err := status.Lock(ctx, dir, status.LockSchema, status.LockWait)
	if err != nil {
		return err
	}
	defer unlock()
	t, err := ReadTableSchema(dir)
	if err != nil {
		return err
	}
	if err := change(t); err != nil {
		return err
	}
	return status.ReplaceFile(filepath.Join(dir, "Metadata", "schema"), layout.ThriftBytes(t.Put))
}

// AddColumn adds a column to a table; rows that are there have the default, a text, or null if there is none.
func AddColumn(ctx context.Context, dir string, f arrow.Field, def *string) error {
	return addColumn(ctx, dir, f, def, false)
}

func addColumn(ctx context.Context, dir string, f arrow.Field, def *string, dry bool) error {
	return changeSchema(ctx, dir, dry, func(t *layout.TableSchema) error {
		f.Name = strings.ToLower(f.Name)
		if t.Top(f.Name) != nil {
			return fault.Invalidf("the table %s has a column %q", dir, f.Name)
		}
		o := schema.DefaultWriteOptions()
		list, err := schema.PlanColumns(arrow.NewSchema([]arrow.Field{f}, nil), &o)
		if err != nil {
			return err
		}
		if list[0].Typ.Complex() && def != nil {
			return fault.Invalidf("column %s: a %s has no default", f.Name, list[0].Typ)
		}
		for i := range list {
			list[i].Id = newUUID()
			if list[i].Encoders.Has(layout.EncDirectDictionary) {
				list[i].Encoders[0], list[i].Encoders[1] = layout.EncDictionary, layout.EncDirectDictionary
			}
		}
		list[0].Ordinal = t.NextOrdinal()
		if def != nil {
			if list[0].Def, err = defaultBytes(&schema.Column{ColumnSchema: &list[0]}, *def); err != nil {
				return err
			}
			t.Properties["default.value."+f.Name] = *def
		}
		t.Columns = arranged(append(t.Columns, list...))
		t.History = append(t.History, layout.Evolution{Stamp: status.Now(), Added: slices.Clone(list)})
		return nil
	})
}

// arranged brings columns into the order that CarbonData has them in: sort columns, other dimensions, long
// strings, nested ones, measures. Its loads fail for a table that has them in another.
func arranged(columns []layout.ColumnSchema) (out []layout.ColumnSchema) {
	var lists [5][]layout.ColumnSchema
	for i := 0; i < len(columns); {
		c, kind := &columns[i], schema.ListDimension
		switch {
		case c.SortColumnSchema():
			kind = schema.ListSort
		case c.Typ.Complex():
			kind = schema.ListComplex
		case c.Typ == layout.TypeVarchar:
			kind = schema.ListVarchar
		case !c.Dimension:
			kind = schema.ListMeasure
		}
		end := i + 1
		for more := c.Children; more > 0 && end < len(columns); more-- { // its children are behind it
			more += columns[end].Children
			end++
		}
		lists[kind] = append(lists[kind], columns[i:end]...)
		i = end
	}
	return slices.Concat(lists[:]...)
}

// defaultBytes is a default as the schema keeps it; see defaultValue.
func defaultBytes(c *schema.Column, s string) ([]byte, error) {
	v, err := schema.ParseValue(c, s, nil)
	if err != nil {
		return nil, fault.Invalidf("the default of column %s: %v", c.Name, err)
	}
	switch c.Typ {
	case layout.TypeTimestamp:
		return putBig(uint64(v.I) ^ 1<<63), nil
	case layout.TypeDate:
		return []byte(strconv.FormatInt(v.I+schema.DateOffset, 10)), nil
	case layout.TypeDecimal:
		return page.DecimalBytes(v.D, c.Scale), nil
	}
	return []byte(s), nil
}

func putBig(v uint64) []byte {
	b := make([]byte, 8)
	for i := range b {
		b[i] = byte(v >> (56 - 8*i))
	}
	return b
}

// DropColumn takes a column out of a table; the data stays in the files, unseen.
func DropColumn(ctx context.Context, dir, name string) error {
	return dropColumn(ctx, dir, name, false)
}

func dropColumn(ctx context.Context, dir, name string, dry bool) error {
	return changeSchema(ctx, dir, dry, func(t *layout.TableSchema) error {
		c := t.Top(name)
		if c == nil {
			return fault.Invalidf("the table %s has no column %q", dir, name)
		}
		used := slices.Clone(t.BucketBy)
		if t.Partition != nil {
			used = append(used, t.Partition.Columns...)
		}
		if c.SortColumnSchema() || slices.ContainsFunc(used, func(x layout.ColumnSchema) bool { return x.Id == c.Id }) {
			return fault.Invalidf("%s is a sort, bucket or partition column of %s: it cannot be dropped", name, dir)
		}
		left := 0
		for i := range t.Columns {
			if t.Columns[i].Ordinal >= 0 && !t.Columns[i].Invisible {
				left++
			}
		}
		if left == 1 {
			return fault.Invalidf("%s is the only column of %s", name, dir)
		}
		e := layout.Evolution{Stamp: status.Now()}
		at := slices.IndexFunc(t.Columns, func(x layout.ColumnSchema) bool { return x.Id == c.Id })
		for n := int32(1); n > 0; n-- {
			e.Removed = append(e.Removed, t.Columns[at])
			n += t.Columns[at].Children
			t.Columns[at].Invisible = true
			at++
		}
		t.History = append(t.History, e)
		return nil
	})
}
