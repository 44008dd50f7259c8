package carbon_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
)

// verdict returns the findings of verify for t of a tree.
func verdict(t testing.TB, tree store.Tree) (out []region.Finding) {
	for f := range carbon.Format.Verify(t.Context(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{}) {
		out = append(out, f)
	}
	return out
}

// swap replaces the first occurrence of old in the file whose name has the suffix; there must be one.
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

// refused checks that reading the table is an error, and that verify has a finding of the code.
func refused(t *testing.T, what string, tree store.Tree, code string) {
	t.Helper()
	if _, rows, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{}); !errors.Is(err, fault.Corrupt) {
		t.Errorf("%s: got %d rows, %v, want corrupt", what, len(rows), err)
	}
	if found := verdict(t, tree); !has(found, code) {
		t.Errorf("%s: verify: got %v, want %s", what, found, code)
	}
}

// TestDamagedDeletes: anything that would make deleted rows reappear is an error: missing members of a delta or an
// update status, differing numbers, a delta or an entry of another file.
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
		{updates, `"blockName":"part-0-0_batchno0-0-1"`, `"blockName":"part-0-0_batchno0-0-7"`,
			"carbon.delete.damaged"},
		{updates, `-1795249940876.snappy`, `-1795249940877.snappy`, "carbon.delete.damaged"},
		{updates, `"deleteDeltaEndTimestamp"`, `"deleteDeltaEndTimestamq"`, "carbon.status.damaged"},
		{updates, `"deleteDeltaStartTimestamp"`, `"deleteDeltaStartTimestamq"`, "carbon.status.damaged"},
		{updates, `"deleteDeltaEndTimestamp":"1795249941724"`, `"deleteDeltaEndTimestamp":"1795249941723"`,
			"carbon.delete.damaged"},
		{updates, `"deletedRowsInBlock"`, `"deletedRowsInBlocl"`, "carbon.status.damaged"},
		{updates, `"deletedRowsInBlock":"11"`, `"deletedRowsInBlock":"0"`, "carbon.status.damaged"},
		{"tablestatus", `"updateStatusFileName"`, `"updateStatusFileNamf"`, "carbon.status.damaged"},
	} {
		tree := loaded(t, filepath.Join(golden2, "managed/managed_del"))
		swap(t, tree, c.file, c.old, c.now)
		refused(t, c.old+" is "+c.now, tree, c.code)
	}
}

// TestUnknownStatus: a segment, or a directory of one, with an unknown status is not left out silently, and the rows of
// a directory do not get the values of another partition.
func TestUnknownStatus(t *testing.T) {
	for _, c := range []struct{ table, file, old, now, code string }{
		{"managed1", "tablestatus", `"Success"`, `"Sucsess"`, "carbon.status.damaged"},
		{"managed1", "tablestatus", `"loadStatus"`, `"loadStatut"`, "carbon.status.damaged"},
		{"managed1", "tablestatus", `"loadName"`, `"loadNamf"`, "carbon.status.damaged"},
		{"managed1", "tablestatus", `"segmentFile":"0_`, `"segmentFile":"4_`, "carbon.status.damaged"},
		{"managed1", "tablestatus", `"segmentFile":"1_`, `"segmentFile":"1-`, "carbon.status.damaged"},
		{"managed1", "tablestatus", `.segment"`, `.segmend"`, "carbon.status.damaged"},
		{"managed_compact", "tablestatus", `"Compacted"`, `"Compactee"`, "carbon.status.damaged"},
		{"managed_part", ".segment", `"Success"`, `"Sucsess"`, "carbon.segment.missing"},
		{"managed_part", ".segment", `"status"`, `"statut"`, "carbon.segment.missing"},
		{"managed_part", ".segment", `["country\u003dc1"`, `["country\u003dc0"`, "carbon.segment.missing"},
		{"managed_part", ".segment", `["country\u003dc1","y\u003d2019"`, `["country\u003dc1","y\u003d2018"`,
			"carbon.segment.missing"},
	} {
		tree := loaded(t, filepath.Join(golden2, "managed", c.table))
		swap(t, tree, c.file, c.old, c.now)
		refused(t, c.old+" is "+c.now, tree, c.code)
	}
}

// lacking returns t of a tree without the files whose names contain a text; there must be at least one.
func lacking(t *testing.T, tree *store.Memory, text string) *store.Memory {
	t.Helper()
	files := map[string][]byte{}
	for _, n := range tree.Names() {
		if !strings.Contains(n, text) {
			files[n] = tree.Bytes(n)
		}
	}
	if len(files) == len(tree.Names()) {
		t.Fatalf("no file …%s…", text)
	}
	return store.NewMemory(files)
}

// TestLostSegmentFiles: data files that are missing along with the index that lists them are an error, and recovery
// reads the rest; if only the index is missing nothing is lost. The rows are Spark's: see the manifest.
func TestLostSegmentFiles(t *testing.T) {
	for _, c := range []struct {
		table string
		gone  []string
		left  int // rows
	}{
		{"managed1", []string{"Fact/Part0/Segment_1/"}, 220},
		{"managed_bucket", []string{"carbonindexmerge", "batchno0-2-0"}, 247},
		{"managed_part", []string{"country=c0/y=2019/"}, 55},
	} {
		tree := loaded(t, filepath.Join(golden2, "managed", c.table))
		for _, g := range c.gone {
			tree = lacking(t, tree, g)
		}
		refused(t, c.table, tree, "carbon.segment.missing")
		rows, found, err := recovered(t, tree, "t")
		if err != nil || len(rows) != c.left || !has(found, "carbon.segment.missing") {
			t.Errorf("%s: got %d rows recovered, want %d, %v, %v", c.table, len(rows), c.left, err, found)
		}
	}
	for gone, code := range map[string]string{"Segment_1/1_1795249939034.carbonindexmerge": "carbon.index.missing",
		"segments/1_1795249939034.segment": "carbon.segment.file"} {
		tree := lacking(t, loaded(t, filepath.Join(golden2, "managed/managed1")), gone)
		if _, rows, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{}); err != nil || len(rows) != 370 {
			t.Errorf("without %s: %d rows, %v", gone, len(rows), err)
		}
		if found := verdict(t, tree); len(found) != 1 || found[0].Code != code {
			t.Errorf("without %s: %v", gone, found)
		}
	}
}

// TestDamagedSegmentFile: a segment file that is truncated, has trailing bytes, or has content that no writer produces,
// is refused; recovery reads the directory of the segment, and reports it. The rows are Spark's: see the manifest.
func TestDamagedSegmentFile(t *testing.T) {
	const name = "t/Metadata/segments/1_1795249939034.segment"
	for what, damage := range map[string]func(b []byte) []byte{
		"cut":          func(b []byte) []byte { return b[:len(b)/2] },
		"longer":       func(b []byte) []byte { return append(bytes.Clone(b), "\x00\x01\x02"...) },
		"other status": func(b []byte) []byte { return bytes.Replace(b, []byte("Success"), []byte("Succesr"), 1) },
	} {
		tree := loaded(t, filepath.Join(golden2, "managed/managed1"))
		tree.Put(name, damage(tree.Bytes(name)))
		if _, rows, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{}); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: %d rows, %v", what, len(rows), err)
		}
		rows, found, err := recovered(t, tree, "t")
		if err != nil || len(rows) != 370 || !has(errorsIn(found), "carbon.segment.damaged") {
			t.Errorf("%s: got %d rows recovered, want 370, %v, %v", what, len(rows), err, found)
		}
	}
}

// TestOtherFile: a data file that was overwritten with another is detected with and without a filter.
func TestOtherFile(t *testing.T) {
	tree := loaded(t, filepath.Join(golden2, "managed/managed1"))
	const at = "t/Fact/Part0/Segment_"
	tree.Put(at+"2/part-0-0_batchno0-0-2-1795249939344.snappy.carbondata",
		tree.Bytes(at+"1/part-0-0_batchno0-0-1-1795249939034.snappy.carbondata"))
	refused(t, "the file of another segment", tree, "carbon.index.disagree")
}

// TestOtherFileOfOtherColumns: the same if the other file has as many rows but different columns, because the table was
// altered between the loads.
func TestOtherFileOfOtherColumns(t *testing.T) {
	tree := loaded(t, filepath.Join(golden2, "managed/managed_alter"))
	const at = "t/Fact/Part0/Segment_"
	tree.Put(at+"1/part-0-0_batchno0-0-1-1795249946832.snappy.carbondata",
		tree.Bytes(at+"0/part-0-0_batchno0-0-0-1795249946482.snappy.carbondata"))
	refused(t, "the file of another segment", tree, "carbon.index.disagree")
	if _, found, err := recovered(t, tree, "t"); err != nil || !has(found, "carbon.index.disagree") {
		t.Errorf("recovered: %v, %v", err, found)
	}
}

// TestExchangedFiles: data files of the same size that were swapped are not read as if nothing had happened, and
// out-of-date update statuses are reported.
func TestExchangedFiles(t *testing.T) {
	const dir = "managed/managed_del"
	tree := loaded(t, filepath.Join(golden2, dir))
	var data []string
	for _, n := range tree.Names() {
		if strings.HasSuffix(n, ".carbondata") {
			data = append(data, n)
		}
	}
	a, b := tree.Bytes(data[0]), tree.Bytes(data[1])
	tree.Put(data[0], b)
	tree.Put(data[1], a)
	refused(t, "exchanged data files", tree, "carbon.index.disagree")
	for _, filter := range []string{"id >= 0", "id < 1000000"} {
		e, err := pred.Parse(filter)
		if err != nil {
			t.Fatal(err)
		}
		if _, rows, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{Filter: e}); !errors.Is(err,
			fault.Corrupt) {
			t.Errorf("exchanged data files, %s: %d rows, %v", filter, len(rows), err)
		}
	}
	if _, found, err := recovered(t, tree, "t"); err != nil || !has(found, "carbon.index.disagree") {
		t.Errorf("exchanged data files, recovered: %v, %v", err, found)
	}

	tree = loaded(t, filepath.Join(golden2, dir))
	tree.Put("t/Metadata/tableupdatestatus-1795249942958", tree.Bytes("t/Metadata/tableupdatestatus-1795249942096"))
	if found := verdict(t, tree); !has(found, "carbon.delete.unnamed") {
		t.Errorf("an older update status: %v", found)
	}
}

// TestFusedEntries: if the bytes from the middle of an entry of tablestatus to the middle of the next are missing, the
// rest may still be JSON: one entry instead of two, with duplicate members. That is damage, not a shorter list.
func TestFusedEntries(t *testing.T) {
	whole := loaded(t, filepath.Join(golden2, "managed", "managed1"))
	name := ""
	for _, n := range whole.Names() {
		if strings.HasSuffix(n, "/tablestatus") {
			name = n
		}
	}
	b := whole.Bytes(name)
	between := bytes.Index(b, []byte("},{"))
	if between < 0 {
		t.Fatalf("%s has one entry: %s", name, b)
	}
	members := func(b []byte) (at []int) { // offsets of all members but the first
		for i := bytes.Index(b, []byte(`","`)); i >= 0; {
			at = append(at, i+2)
			next := bytes.Index(b[i+2:], []byte(`","`))
			if next < 0 {
				break
			}
			i += 2 + next
		}
		return at
	}
	tried := 0
	second := b[between+2:]
	second = second[:bytes.IndexByte(second, '}')]
	for i, from := range members(b[:between]) {
		for j, to := range members(second) {
			if j >= i {
				continue // no member is duplicated
			}
			tried++
			tree := loaded(t, filepath.Join(golden2, "managed", "managed1"))
			tree.Put(name, slices.Concat(b[:from], b[between+2+to:]))
			refused(t, "two entries in one", tree, "carbon.status.damaged")
		}
	}
	if tried == 0 {
		t.Error("got nothing tried")
	}
}
