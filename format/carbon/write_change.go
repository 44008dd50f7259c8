package carbon

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
	"stoa/store"
)

// CreateTable makes a table's directory: its schema and an empty status. dir must not be there, or be empty. store, if it is not
// empty, is the directory of the databases, whose ModifiedTime.mdt is touched.
func CreateTable(dir, store string, spec TableSpec) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fault.Invalidf("%s is there already", dir)
	}
	t, err := spec.tableSchema(now())
	if err != nil {
		return err
	}
	meta := filepath.Join(dir, "Metadata")
	if err := os.MkdirAll(meta, 0o777); err != nil {
		return err
	}
	if err := replaceFile(statusPath(dir), []byte("[]")); err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(meta, "schema"), thriftBytes(t.put)); err != nil { // the last one: it makes the directory a table
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

// DropTable removes a table with all its files. The schema goes first: without it nobody takes the directory for a whole table.
func DropTable(ctx context.Context, dir, store string) error {
	if !exists(filepath.Join(dir, "Metadata", "schema")) && !exists(filepath.Join(dir, "Fact")) {
		return fault.Invalidf("%s is no table: it has neither Metadata/schema nor Fact", dir)
	}
	for _, name := range []string{lockStatus, lockUpdate, lockCompaction} {
		unlock, err := lock(ctx, dir, name, lockWait)
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
	return changeStatus(ctx, dir, func(s *statusFile) error {
		for _, n := range names {
			e := s.find(n)
			switch {
			case e == nil:
				return fault.Invalidf("%s has no segment %s", dir, n)
			case !e.counts():
				return fault.Invalidf("segment %s of %s is %s: it cannot be deleted", n, dir, e.text("loadStatus"))
			}
			e["loadStatus"], e["modificationOrDeletionTimestamp"] = statusDeleted, msText(now())
		}
		return nil
	})
}

// Cleaned is what Clean removed, or would remove.
type Cleaned struct {
	Segments []string // entries of tablestatus that are gone
	Files    []string
	Bytes    int64
}

// Clean removes what is no part of the table any more: loads that were cut off, segments that are deleted or compacted, files of
// segments that tablestatus does not have, temporary files, and delete deltas that a newer update status does not name. A load that
// goes on holds the lock of its segment and is left alone. With dry nothing is removed.
func Clean(ctx context.Context, dir string, dry bool) (out Cleaned, err error) {
	if _, err := readTableSchema(dir); err != nil {
		return out, err
	}
	for _, name := range []string{lockCompaction, lockUpdate} {
		unlock, err := lock(ctx, dir, name, lockWait)
		if err != nil {
			return out, err
		}
		defer unlock()
	}
	err = changeStatus(ctx, dir, func(s *statusFile) error {
		keep, err := cleanEntries(ctx, dir, s, &out)
		if err != nil {
			return err
		}
		if err := cleanFiles(dir, *s, keep, dry, &out); err != nil {
			return err
		}
		if dry {
			return nil
		}
		return s.retire(dir, out.Segments)
	})
	slices.Sort(out.Files)
	return out, err
}

// cleanEntries sorts the segments into those that go and those whose files stay.
func cleanEntries(ctx context.Context, dir string, s *statusFile, out *Cleaned) (keep map[string]bool, err error) {
	keep = map[string]bool{}
	for _, x := range *s {
		e := statusEntry(x)
		name := e.text("loadName")
		switch status := e.text("loadStatus"); {
		case status == statusDeleted || status == statusCompacted:
			out.Segments = append(out.Segments, name)
		case e.loading():
			unlock, err := lock(ctx, dir, "Segment_"+name+".lock", 0)
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

func cleanFiles(dir string, s statusFile, keep map[string]bool, dry bool, out *Cleaned) error {
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
			gone = len(s) == 0 || d.Name() != statusEntry(s[0]).text("updateStatusFileName")
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
func readUpdates(dir string, s statusFile) (list []map[string]any, err error) {
	if len(s) == 0 || statusEntry(s[0]).text("updateStatusFileName") == "" {
		return nil, nil
	}
	b, err := os.ReadFile(filepath.Join(dir, "Metadata", statusEntry(s[0]).text("updateStatusFileName")))
	if err != nil {
		return nil, err
	}
	return list, json.Unmarshal(b, &list)
}

// deltasInUse are the names of the delete deltas that the update status names, by range.
func deltasInUse(dir string, s statusFile) (map[string]bool, error) {
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
		at, _ := millis(base[i+1:])
		for _, x := range list {
			u := statusEntry(x)
			from, _ := millis(u.text("deleteDeltaStartTimestamp"))
			to, _ := millis(u.text("deleteDeltaEndTimestamp"))
			if u.text("blockName") == base[:i] && at >= from && at <= to {
				out[d.Name()] = true
			}
		}
		return nil
	})
	return out, err
}

// Deleted are rows of a data file that are to go: numbers in the file, ascending.
type Deleted struct {
	File string // as column stoa_file of the reader's option positions gives it
	Rows []int64
}

// DeleteRows deletes rows: for each data file a delete delta with all its deleted rows, and an update status, become part of the
// table in one rename of tablestatus.
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
	for _, name := range []string{lockUpdate, lockCompaction} {
		u, err := lock(ctx, dir, name, lockWait)
		if err != nil {
			undo()
			return nil, err
		}
		all = append(all, u)
	}
	return undo, nil
}

func deleteRows(ctx context.Context, dir string, rows []Deleted, l *Load) (n int64, err error) {
	m, err := openManaged(ctx, store.Local{}, filepath.ToSlash(dir), format.OpenOptions{}, readOptions{bucket: -1, zone: time.UTC}, nil)
	if err != nil {
		return 0, err
	}
	stamp := now()
	if l != nil {
		stamp = l.stamp
	}
	var fresh []map[string]any
	segments := map[string]bool{}
	for _, d := range rows {
		u, err := m.writeDelta(ctx, d, stamp)
		if err != nil {
			return 0, err
		}
		n += int64(len(d.Rows))
		segments[u["segmentName"].(string)] = true
		fresh = append(fresh, u)
	}
	commit := func(s *statusFile) error { return commitDeletes(dir, s, fresh, segments, stamp) }
	if l == nil {
		if len(rows) == 0 {
			return 0, nil
		}
		return n, changeStatus(ctx, dir, commit)
	}
	l.then = func(_ *Load, s *statusFile, _ statusEntry) error { return commit(s) }
	_, err = l.Close(ctx)
	return n, err
}

// commitDeletes writes the update status anew and has tablestatus name it.
func commitDeletes(dir string, s *statusFile, fresh []map[string]any, segments map[string]bool, stamp int64) error {
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
	name := "tableupdatestatus-" + msText(stamp)
	if err := replaceFile(filepath.Join(dir, "Metadata", name), b); err != nil {
		return err
	}
	for i, x := range *s {
		e := statusEntry(x)
		if i == 0 {
			e["updateStatusFileName"] = name
		}
		if segments[e.text("loadName")] {
			if e.text("updateDeltaStartTimestamp") == "" {
				e["updateDeltaStartTimestamp"] = msText(stamp)
			}
			e["updateDeltaEndTimestamp"] = msText(stamp)
		}
	}
	return nil
}

// writeDelta writes the delete delta of a data file: the rows that were deleted before, and those that are now. It gives its entry in
// the update status.
func (t *managed) writeDelta(ctx context.Context, d Deleted, stamp int64) (map[string]any, error) {
	p, err := t.part(ctx, d.File)
	if err != nil {
		return nil, err
	}
	f, err := t.file(ctx, d.File)
	if err != nil {
		return nil, err
	}
	gone := deletes{}
	if p.update != nil {
		if gone, err = t.readDeletes(ctx, p.update, filepath.ToSlash(filepath.Dir(p.name))); err != nil {
			return nil, err
		}
		if gone == nil {
			gone = deletes{}
		}
	}
	if err := t.placed(ctx, f, d.Rows, gone); err != nil {
		return nil, err
	}
	name := parseFileName(d.File)
	details := map[string]any{}
	total := 0
	for k, rows := range gone {
		slices.Sort(rows)
		rows = slices.Compact(rows)
		total += len(rows)
		details[fmt.Sprintf("%d_%d", k.blocklet, k.page)] = map[string]any{"id": strconv.FormatInt(k.blocklet, 10), "pageId": k.page, "deletedRows": rows}
	}
	b, err := json.Marshal(map[string]any{"blockletDetailsMap": details, "blockName": name.block})
	if err != nil {
		return nil, err
	}
	u := map[string]any{"segmentName": p.segment, "blockName": name.block, "deleteDeltaStartTimestamp": msText(stamp), "deleteDeltaEndTimestamp": msText(stamp),
		"actualBlockName": filepath.Base(d.File), "deletedRowsInBlock": strconv.Itoa(total)}
	return u, replaceFile(filepath.Join(filepath.Dir(d.File), fmt.Sprintf("%s-%d.deletedelta", name.block, stamp)), b)
}

// placed finds blocklet and page of rows of a file.
func (t *managed) placed(ctx context.Context, f *dataFile, rows []int64, gone deletes) error {
	base, k := int64(0), 0
	for g := range f.footer.blocklet {
		starts, err := f.pageStarts(ctx, g)
		if err != nil {
			return err
		}
		for page := range len(starts) - 1 {
			for ; k < len(rows) && rows[k] < base+starts[page+1]; k++ {
				key := pageKey{int64(g), int64(page)}
				gone[key] = append(gone[key], rows[k]-base-starts[page])
			}
		}
		base += f.footer.blocklet[g].rows
	}
	if k < len(rows) {
		return fault.Invalidf("%s has no row %d", f.at.Object, rows[k])
	}
	return nil
}

// Compaction is segments that become one.
type Compaction struct {
	From []string // oldest first
	To   string
	Load *Load
}

// BeginCompaction begins to make one segment of several; the caller gives it the rows of these segments and closes the load.
// major says which kind tablestatus is told.
func BeginCompaction(ctx context.Context, dir string, sc *arrow.Schema, from []string, to string, major bool, o LoadOptions) (*Load, error) {
	o.segment, o.hidden = to, true
	l, err := BeginLoad(ctx, dir, sc, o)
	if err != nil {
		return nil, err
	}
	l.then = func(l *Load, s *statusFile, entry statusEntry) error {
		for _, n := range from {
			e := s.find(n)
			if e == nil || !e.counts() {
				return fault.Invalidf("segment %s of %s changed while it was compacted", n, dir)
			}
			e["loadStatus"], e["mergedLoadName"], e["modificationOrDeletionTimestamp"] = statusCompacted, to, msText(now())
		}
		if major {
			entry["majorCompacted"] = "true"
		}
		return nil
	}
	return l, nil
}

// PlanCompaction says which segments become one: all that count for major; for minor four loads, or three results of such
// compactions, as CarbonData's default thresholds say. ids are segment names given by hand, nil: by rule.
func PlanCompaction(dir string, major bool, ids []string) ([]Compaction, error) {
	s, err := readStatusFile(dir)
	if err != nil {
		return nil, err
	}
	history, err := readEntries(historyPath(dir))
	if err != nil {
		return nil, err
	}
	known := slices.Concat(s, history)
	var levels [3][]string
	var all []string
	for _, x := range s {
		e := statusEntry(x)
		name := e.text("loadName")
		if !e.counts() || e.text("fileFormat") != "" {
			continue
		}
		all = append(all, name)
		if _, level, ok := strings.Cut(name, "."); !ok {
			levels[0] = append(levels[0], name)
		} else if n, err := strconv.Atoi(level); err == nil && n <= 2 && e.text("majorCompacted") != "true" {
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

// mergedName is a name for what first and others become: the number of the first with the next level that is free, and was never
// used.
func mergedName(s statusFile, first string, level int) string {
	whole, _, _ := strings.Cut(first, ".")
	for ; ; level++ {
		if name := fmt.Sprintf("%s.%d", whole, level); s.find(name) == nil {
			return name
		}
	}
}

// changeSchema reads the schema, has it changed, and writes it anew under its lock.
func changeSchema(ctx context.Context, dir string, change func(t *tableSchema) error) error {
	unlock, err := lock(ctx, dir, lockSchema, lockWait)
	if err != nil {
		return err
	}
	defer unlock()
	t, err := readTableSchema(dir)
	if err != nil {
		return err
	}
	if err := change(t); err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, "Metadata", "schema"), thriftBytes(t.put))
}

// AddColumn adds a column to a table; rows that are there have the default, a text, or null if there is none.
func AddColumn(ctx context.Context, dir string, f arrow.Field, def *string) error {
	return changeSchema(ctx, dir, func(t *tableSchema) error {
		f.Name = strings.ToLower(f.Name)
		if t.top(f.Name) != nil {
			return fault.Invalidf("the table %s has a column %q", dir, f.Name)
		}
		o := defaultWriteOptions()
		list, err := planColumns(arrow.NewSchema([]arrow.Field{f}, nil), &o)
		if err != nil {
			return err
		}
		if list[0].typ.complex() && def != nil {
			return fault.Invalidf("column %s: a %s has no default", f.Name, list[0].typ)
		}
		for i := range list {
			list[i].id = newUUID()
			if list[i].encoders.has(encDirectDictionary) {
				list[i].encoders[0], list[i].encoders[1] = encDictionary, encDirectDictionary
			}
		}
		list[0].ordinal = t.nextOrdinal()
		if def != nil {
			if list[0].def, err = defaultBytes(&column{columnSchema: &list[0]}, *def); err != nil {
				return err
			}
			t.properties["default.value."+f.Name] = *def
		}
		t.columns = arranged(append(t.columns, list...))
		t.history = append(t.history, evolution{stamp: now(), added: slices.Clone(list)})
		return nil
	})
}

// arranged brings columns into the order that CarbonData has them in: sort columns, other dimensions, long strings, nested ones,
// measures. Its loads fail for a table that has them in another.
func arranged(columns []columnSchema) (out []columnSchema) {
	var lists [5][]columnSchema
	for i := 0; i < len(columns); {
		c, kind := &columns[i], listDimension
		switch {
		case c.sortColumnSchema():
			kind = listSort
		case c.typ.complex():
			kind = listComplex
		case c.typ == typeVarchar:
			kind = listVarchar
		case !c.dimension:
			kind = listMeasure
		}
		end := i + 1
		for more := c.children; more > 0 && end < len(columns); more-- { // its children are behind it
			more += columns[end].children
			end++
		}
		lists[kind] = append(lists[kind], columns[i:end]...)
		i = end
	}
	return slices.Concat(lists[:]...)
}

// defaultBytes is a default as the schema keeps it; see defaultValue.
func defaultBytes(c *column, s string) ([]byte, error) {
	v, err := parseValue(c, s, nil)
	if err != nil {
		return nil, fault.Invalidf("the default of column %s: %v", c.name, err)
	}
	switch c.typ {
	case typeTimestamp:
		return putBig(uint64(v.i) ^ 1<<63), nil
	case typeDate:
		return []byte(strconv.FormatInt(v.i+dateOffset, 10)), nil
	case typeDecimal:
		return decimalBytes(v.d, c.scale), nil
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

func (t *tableSchema) nextOrdinal() (n int32) {
	for i := range t.columns {
		n = max(n, t.columns[i].ordinal+1)
	}
	return n
}

// DropColumn takes a column out of a table; the data stays in the files, unseen.
func DropColumn(ctx context.Context, dir, name string) error {
	return changeSchema(ctx, dir, func(t *tableSchema) error {
		c := t.top(name)
		if c == nil {
			return fault.Invalidf("the table %s has no column %q", dir, name)
		}
		used := slices.Clone(t.bucketBy)
		if t.partition != nil {
			used = append(used, t.partition.columns...)
		}
		if c.sortColumnSchema() || slices.ContainsFunc(used, func(x columnSchema) bool { return x.id == c.id }) {
			return fault.Invalidf("%s is a sort, bucket or partition column of %s: it cannot be dropped", name, dir)
		}
		left := 0
		for i := range t.columns {
			if t.columns[i].ordinal >= 0 && !t.columns[i].invisible {
				left++
			}
		}
		if left == 1 {
			return fault.Invalidf("%s is the only column of %s", name, dir)
		}
		e := evolution{stamp: now()}
		at := slices.IndexFunc(t.columns, func(x columnSchema) bool { return x.id == c.id })
		for n := int32(1); n > 0; n-- {
			e.removed = append(e.removed, t.columns[at])
			n += t.columns[at].children
			t.columns[at].invisible = true
			at++
		}
		t.history = append(t.history, e)
		return nil
	})
}
