package change

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
	"stoa/format/carbon/internal/table"
	"stoa/store"
)

// CreateTable creates a table in dir, which must not exist or must be empty, by writing its schema and nothing else, so
// that an interrupted run leaves all or nothing: tablestatus begins with the first load, as with CarbonData. store,
// unless "", is the directory of the databases, whose ModifiedTime.mdt is touched. Errors about spec are Invalid or
// Unsupported.
func CreateTable(dir, store string, spec TableSpec) error {
	return createTable(dir, store, spec, false)
}

func createTable(dir, store string, spec TableSpec, dry bool) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fault.Invalidf("%s exists already", dir)
	}
	t, err := spec.tableSchema(status.NowMillis())
	if err != nil || dry {
		return err
	}
	meta := filepath.Join(dir, "Metadata")
	if err := os.MkdirAll(meta, 0o777); err != nil {
		return err
	}
	if err := status.ReplaceFile(filepath.Join(meta, "schema"), layout.ThriftBytes(t.Put)); err != nil {
		return err
	}
	return touchStore(store)
}

// touchStore records that a table was created or dropped, by updating the modification time of a file in the store.
func touchStore(dir string) error {
	if dir == "" {
		return nil
	}
	name := filepath.Join(dir, "ModifiedTime.mdt")
	if other := filepath.Join(dir, "modifiedTime.mdt"); exists(other) { // its name in later releases
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

// isTable returns Invalid if a directory is not a table's.
func isTable(dir string) error {
	if !exists(filepath.Join(dir, "Metadata", "schema")) && !exists(filepath.Join(dir, "Fact")) {
		return fault.Invalidf("%s is not a table: it has neither Metadata/schema nor Fact", dir)
	}
	return nil
}

// DropTable removes a table with all its files, starting with the schema, so that after an interruption the rest does
// not look like a complete table. store is as for CreateTable.
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
	if err := checkIdle(dir); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, "Metadata", "schema")); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(dir), touchStore(store))
}

// checkIdle returns Invalid if a load into the table in dir is running: one whose entry says so, and whose lock is
// held. The entry of a load that was killed is no reason, nor is a tablestatus that cannot be read.
func checkIdle(dir string) error {
	s, err := status.ReadEntries(status.StatusPath(dir))
	if err != nil {
		return nil
	}
	for _, x := range s {
		e := status.StatusEntry(x)
		if n := e.Text("loadName"); e.Loading() && !status.Free(dir, "Segment_"+n+".lock") {
			return fault.Invalidf("segment %s of %s is being loaded: wait until that load has ended", n, dir)
		}
	}
	return nil
}

// renameTable moves the directory of a table to another place, which must not exist. The files of a table do not
// contain its path. Only added segments are named by path, and they stay where they are.
func renameTable(ctx context.Context, p, to format.TablePlace, dry bool) error {
	if exists(to.Dir) {
		return fault.Invalidf("%s exists already", to.Dir)
	}
	if err := canMove(p.Dir, to.Dir); err != nil {
		return err
	}
	s, err := readStatus(p.Dir)
	if err != nil {
		return err
	}
	added, err := placedFolders(p.Dir, s)
	if err != nil {
		return err
	}
	for folder := range added {
		return fault.Unsupportedf(fault.Span{Object: p.Dir}, "", "rename: %s is inside of the table, and tablestatus "+
			"has it by its full name, where it would be no more", folder)
	}
	if dry {
		return checkIdle(p.Dir)
	}
	for _, name := range []string{status.LockStatus, status.LockSchema} {
		unlock, err := status.Lock(ctx, p.Dir, name, status.LockWait)
		if err != nil {
			return err
		}
		defer unlock()
	}
	if err := checkIdle(p.Dir); err != nil {
		return err
	}
	above := filepath.Dir(filepath.Clean(to.Dir))
	if err := os.MkdirAll(above, 0o777); err != nil {
		return err
	}
	if err := os.Rename(p.Dir, to.Dir); err != nil {
		return err
	}
	err = errors.Join(store.SyncDir(above), store.SyncDir(filepath.Dir(filepath.Clean(p.Dir))), touchStore(to.Store))
	if p.Store != to.Store {
		err = errors.Join(err, touchStore(p.Store))
	}
	return err
}

// canMove returns Invalid if a directory cannot be renamed to a place that does not exist: one inside of it, or one in
// another file system.
func canMove(from, to string) error {
	above := filepath.Clean(to)
	for !exists(above) && filepath.Dir(above) != above {
		above = filepath.Dir(above)
	}
	if in, err := filepath.Rel(real(from), real(above)); err == nil && filepath.IsLocal(in) {
		return fault.Invalidf("%s is inside of %s itself", to, from)
	}
	if !status.OneDevice(from, above) {
		return fault.Invalidf("%s is in another file system than %s, which can only be moved within its own: copy it "+
			"there, and drop it here", to, from)
	}
	return nil
}

// DeleteSegments marks segments as deleted; Clean removes their files. A segment that does not exist or is not valid is
// Invalid.
func DeleteSegments(ctx context.Context, dir string, names []string) error {
	return changeStatus(ctx, dir, markDeleted(dir, names))
}

func markDeleted(dir string, names []string) func(s *status.StatusFile) error {
	return func(s *status.StatusFile) error {
		for i, n := range names {
			e := s.Find(n)
			switch {
			case slices.Contains(names[:i], n):
				continue
			case e == nil:
				return fault.Invalidf("%s has no segment %s", dir, n)
			case !e.Counts():
				return fault.Invalidf("segment %s of %s is %s: it cannot be deleted", n, dir, e.Text("loadStatus"))
			}
			e["loadStatus"], e["modificationOrDeletionTimestamp"] = status.StatusDeleted,
				status.FormatMillis(status.NowMillis())
		}
		return nil
	}
}

// Deleted has rows of a data file that are to be deleted. They are the values of the columns FileColumn and RowColumn,
// which the reader's option positions adds.
type Deleted = format.RowsOfFile

// DeleteRows deletes rows and returns their number: for each data file a delete delta with all its deleted rows, and an
// update status, committed by one rename of tablestatus. A row that is already deleted, or does not exist, is Invalid.
func DeleteRows(ctx context.Context, dir string, rows []Deleted) (int64, error) {
	return deleteRows(ctx, format.TablePlace{Dir: dir}, rows, nil)
}

// UpdateRows deletes rows and, in the same commit, adds those that were written to l, which BeginUpdate returned.
func UpdateRows(ctx context.Context, dir string, rows []Deleted, l *Load) (int64, error) {
	return deleteRows(ctx, format.TablePlace{Dir: dir}, rows, l)
}

// BeginUpdate begins the load of an update, which UpdateRows commits together with the deletes.
func BeginUpdate(ctx context.Context, dir string, sc *arrow.Schema, o LoadOptions) (*Load, error) {
	return BeginLoad(ctx, dir, sc, o)
}

func deleteRows(ctx context.Context, p format.TablePlace, rows []Deleted, l *Load) (n int64, err error) {
	m, err := openManaged(ctx, p)
	if err != nil {
		return 0, err
	}
	stamp := status.NowMillis()
	if l != nil {
		stamp = l.stamp
	}
	var fresh []map[string]any
	var deltas []string
	listed := false // the commit was attempted, so tablestatus may name the files
	defer func() {
		for _, name := range deltas {
			if err != nil && !listed {
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
	empty, err := emptied(ctx, m, fresh)
	if err != nil {
		return 0, err
	}
	commit := func(s *status.StatusFile) error {
		listed = true
		return commitDeletes(p.Dir, s, fresh, segments, empty, stamp)
	}
	if l == nil {
		if len(rows) == 0 {
			return 0, nil
		}
		return n, changeStatus(ctx, p.Dir, commit)
	}
	l.then = func(_ *Load, s *status.StatusFile, _ status.StatusEntry) error { return commit(s) }
	_, err = l.Close(ctx)
	return n, err
}

// emptied returns the segments that have no row left after the changes fresh: all their data files are deleted.
func emptied(ctx context.Context, m *table.Managed, fresh []map[string]any) (map[string]bool, error) {
	whole, segments := map[string]bool{}, map[string]bool{}
	for _, u := range fresh {
		if u["segmentStatus"] == status.StatusDeleted {
			segments[u["segmentName"].(string)] = true
			whole[u["segmentName"].(string)+"/"+u["blockName"].(string)] = true
		}
	}
	if len(segments) == 0 {
		return nil, nil
	}
	for p, err := range m.Parts(ctx, format.Query{}) { // without the data files that earlier changes marked
		if err != nil {
			return nil, err
		}
		x, err := m.Part(ctx, p.Ref)
		if err != nil {
			return nil, err
		}
		if !whole[x.Segment+"/"+status.ParseFileName(x.Name).Block] {
			delete(segments, x.Segment)
		}
	}
	return segments, nil
}

// commitDeletes writes a new update status with the entries fresh, and sets its name in tablestatus. If there are none,
// the update status stays: CarbonData cannot read a table whose update status lists nothing. As in CarbonData, segments
// without rows become deleted ones: it cannot compact partitions without rows.
func commitDeletes(dir string, s *status.StatusFile, fresh []map[string]any,
	segments, empty map[string]bool, stamp int64) error {
	if len(fresh) == 0 {
		return nil
	}
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
	name := "tableupdatestatus-" + status.FormatMillis(stamp)
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
				e["updateDeltaStartTimestamp"] = status.FormatMillis(stamp)
			}
			e["updateDeltaEndTimestamp"] = status.FormatMillis(stamp)
		}
		if empty[e.Text("loadName")] && e.Counts() {
			e["loadStatus"], e["modificationOrDeletionTimestamp"] = status.StatusDeleted, status.FormatMillis(stamp)
		}
	}
	return nil
}
