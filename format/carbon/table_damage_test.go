package carbon_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/region"
	"stoa/store"
)

// verdict is what verify finds in t of a tree.
func verdict(t testing.TB, tree store.Tree) (out []region.Finding) {
	for f := range carbon.Format.Verify(t.Context(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{}) {
		out = append(out, f)
	}
	return out
}

// swap changes the first old in the file of the tree whose name ends so; it has to be there.
func swap(t *testing.T, tree *store.Memory, suffix, old, now string) {
	t.Helper()
	for _, n := range tree.Names() {
		if s := string(tree.Bytes(n)); strings.HasSuffix(n, suffix) && strings.Contains(s, old) {
			tree.Put(n, []byte(strings.Replace(s, old, now, 1)))
			return
		}
	}
	t.Fatalf("no %q in a file …%s", old, suffix)
}

// refused expects that nobody reads the table as if nothing were wrong, and that verify has a finding of the code.
func refused(t *testing.T, what string, tree store.Tree, code string) {
	t.Helper()
	if _, rows, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{}); !errors.Is(err, fault.Corrupt) {
		t.Errorf("%s: %d rows, %v, want corrupt", what, len(rows), err)
	}
	if found := verdict(t, tree); !has(found, code) {
		t.Errorf("%s: verify says %v, want %s", what, found, code)
	}
}

// TestDamagedDeletes: what lets deleted rows come back is an error: members of delta or update status that are not there, numbers that
// differ, a delta or an entry of another file.
func TestDamagedDeletes(t *testing.T) {
	const delta, updates = "-1-1795249941724.deletedelta", "tableupdatestatus-1795249942958"
	for _, c := range []struct{ file, old, now, code string }{
		{delta, `"blockletDetailsMap"`, `"blockletDetailsMaq"`, "carbon.delete.damaged"},
		{delta, `"deletedRows"`, `"deletedRowt"`, "carbon.delete.damaged"},
		{delta, `"pageId"`, `"pageIe"`, "carbon.delete.damaged"},
		{delta, `"id"`, `"ie"`, "carbon.delete.damaged"},
		{delta, `"blockName"`, `"blockNamf"`, "carbon.delete.damaged"},
		{delta, `part-0-0_batchno0-0-1`, `part-0-0_batchno0-0-0`, "carbon.delete.damaged"},
		{delta, `,50]`, `]`, "carbon.delete.damaged"},
		{delta, `93,50`, `93,93`, "carbon.delete.damaged"},
		{updates, `"segmentName"`, `"segmentNamd"`, "carbon.status.damaged"},
		{updates, `"segmentName":"0"`, `"segmentName":"2"`, "carbon.status.damaged"},
		{updates, `"segmentName":"0"`, `"segmentName":"8"`, "carbon.status.damaged"},
		{updates, `"blockName"`, `"blockNamd"`, "carbon.status.damaged"},
		{updates, `"blockName":"part-0-0_batchno0-0-1"`, `"blockName":"part-0-0_batchno0-0-7"`, "carbon.delete.damaged"},
		{updates, `-1795249940876.snappy`, `-1795249940877.snappy`, "carbon.delete.damaged"},
		{updates, `"deleteDeltaEndTimestamp"`, `"deleteDeltaEndTimestamq"`, "carbon.status.damaged"},
		{updates, `"deleteDeltaStartTimestamp"`, `"deleteDeltaStartTimestamq"`, "carbon.status.damaged"},
		{updates, `"deleteDeltaEndTimestamp":"1795249941724"`, `"deleteDeltaEndTimestamp":"1795249941723"`, "carbon.delete.damaged"},
		{updates, `"deletedRowsInBlock"`, `"deletedRowsInBlocl"`, "carbon.status.damaged"},
		{updates, `"deletedRowsInBlock":"11"`, `"deletedRowsInBlock":"0"`, "carbon.status.damaged"},
		{"tablestatus", `"updateStatusFileName"`, `"updateStatusFileNamf"`, "carbon.status.damaged"},
	} {
		tree := loaded(t, filepath.Join(golden2, "managed/managed_del"))
		swap(t, tree, c.file, c.old, c.now)
		refused(t, c.old+" is "+c.now, tree, c.code)
	}
}

// TestUnknownStatus: a segment, or a directory of one, whose status is no known word is not left out without a word.
func TestUnknownStatus(t *testing.T) {
	for _, c := range []struct{ table, file, old, now, code string }{
		{"managed1", "tablestatus", `"Success"`, `"Sucsess"`, "carbon.status.damaged"},
		{"managed1", "tablestatus", `"loadStatus"`, `"loadStatut"`, "carbon.status.damaged"},
		{"managed1", "tablestatus", `"loadName"`, `"loadNamf"`, "carbon.status.damaged"},
		{"managed_compact", "tablestatus", `"Compacted"`, `"Compactee"`, "carbon.status.damaged"},
		{"managed_part", ".segment", `"Success"`, `"Sucsess"`, "carbon.segment.missing"},
		{"managed_part", ".segment", `"status"`, `"statut"`, "carbon.segment.missing"},
	} {
		tree := loaded(t, filepath.Join(golden2, "managed", c.table))
		swap(t, tree, c.file, c.old, c.now)
		refused(t, c.old+" is "+c.now, tree, c.code)
	}
}
