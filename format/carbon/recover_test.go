package carbon_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/region"
	"stoa/store"
)

// recovered opens a table with Recover and reads it.
func recovered(t *testing.T, tree store.Tree, name string) ([]line, []region.Finding, error) {
	t.Helper()
	r, findings, err := carbon.Format.Recover(t.Context(), format.Target{Tree: tree, Name: name}, format.OpenOptions{})
	if err != nil {
		return nil, findings, err
	}
	if f, ok := r.(format.Finder); ok {
		findings = append(findings, f.Findings()...)
	}
	_, rows, err := read(t, name, stoa.OpenOptions{Tree: tree, From: "carbon", Recover: true}, stoa.ScanSpec{})
	return rows, findings, err
}

func has(findings []region.Finding, code string) bool {
	for _, f := range findings {
		if f.Code == code {
			return true
		}
	}
	return false
}

// TestRecoverFooter: without the footer all rows are recovered, with or without the index file.
func TestRecoverFooter(t *testing.T) {
	for _, name := range []string{"v3/complex_nested/table", "v3/allprim_zstd/table", "v3/lowcard_inv/table",
		"v3/onerow/table"} {
		for _, index := range []bool{true, false} {
			tree := loaded(t, filepath.Join(golden2, name))
			_, right, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
			if err != nil {
				t.Fatal(err)
			}
			files := map[string][]byte{}
			file := ""
			for _, n := range tree.Names() {
				b := tree.Bytes(n)
				if strings.HasSuffix(n, ".carbondata") {
					file, b = n, b[:len(b)-20]
				} else if !index {
					continue
				}
				files[n] = b
			}
			rows, found, err := recovered(t, store.NewMemory(files), file)
			if err != nil || differ(rows, right, false) != "" || !has(found, "carbon.recovered") ||
				!has(found, "carbon.footer.damaged") {
				t.Errorf("%s, index %v: %v %s %v", name, index, err, differ(rows, right, false), found)
			}
		}
	}
}

// TestRecoverFooterOfTable: the same in a table whose index file has the footer's offset; the missing footer is not
// reported as a contradiction.
func TestRecoverFooterOfTable(t *testing.T) {
	tree := loaded(t, filepath.Join(golden2, "managed/managed1"))
	_, right, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range tree.Names() {
		if strings.Contains(n, "Segment_1") && strings.HasSuffix(n, ".carbondata") {
			tree.Put(n, tree.Bytes(n)[:len(tree.Bytes(n))-20])
		}
	}
	rows, found, err := recovered(t, tree, "t")
	if err != nil || differ(rows, right, true) != "" || !has(found, "carbon.recovered") ||
		has(found, "carbon.index.disagree") {
		t.Errorf("%v %s %v", err, differ(rows, right, true), found)
	}
}

// TestRecoverStatus: an unreadable tablestatus loses no segment.
func TestRecoverStatus(t *testing.T) {
	tree := loaded(t, filepath.Join(golden2, "managed/managed1"))
	_, right, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
	if err != nil {
		t.Fatal(err)
	}
	tree.Put("t/Metadata/tablestatus", []byte(`[{"timestamp"`))
	rows, found, err := recovered(t, tree, "t")
	if err != nil || differ(rows, right, true) != "" || !has(found, "carbon.status.damaged") {
		t.Errorf("%v %s %v", err, differ(rows, right, true), found)
	}
	tree.Put("t/Metadata/schema", []byte{1, 2, 3})
	rows, found, err = recovered(t, tree, "t")
	if err != nil || len(rows) != len(right) || !has(found, "carbon.schema.damaged") {
		t.Errorf("%v %d rows of %d, %v", err, len(rows), len(right), found)
	}
}

// TestRecoverCompacted: without tablestatus it is unknown which segments were compacted; recovery reports that their
// rows are returned twice, and which segments to select. The expected rows are Spark's.
func TestRecoverCompacted(t *testing.T) {
	whole := loaded(t, filepath.Join(golden2, "managed/managed_compact"))
	_, right, err := read(t, "t", stoa.OpenOptions{Tree: whole}, stoa.ScanSpec{})
	if err != nil || len(right) != 100 {
		t.Fatal(len(right), err)
	}
	tree := lacking(t, whole, "tablestatus")
	rows, found, err := recovered(t, tree, "t")
	if err != nil || len(rows) != 200 || !has(found, "carbon.status.damaged") ||
		!strings.Contains(found[0].Message, "0.1 were made by compaction (0.1 from 0 and others)") {
		t.Errorf("%v, %d rows, %v", err, len(rows), found)
	}
	_, rows, err = read(t, "t", stoa.OpenOptions{Tree: tree, Recover: true,
		Opts: map[string]string{"segments": "0.1"}}, stoa.ScanSpec{})
	if err != nil || differ(rows, right, true) != "" {
		t.Errorf("segment 0.1: %v, %s", err, differ(rows, right, true))
	}
	if _, found, _ := recovered(t, lacking(t, loaded(t, filepath.Join(golden2, "managed/managed1")), "tablestatus"),
		"t"); strings.Contains(found[0].Message, "compacting") {
		t.Errorf("not compacted: %v", found)
	}
}

// TestRecoverColumnIDs: a damaged column id in the schema loses no rows, as all data files have the original one. A
// damaged id in a data file loses that file's rows, provided that another file has the schema's id.
func TestRecoverColumnIDs(t *testing.T) {
	tree := loaded(t, filepath.Join(golden2, "managed/managed1"))
	sc, right, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
	if err != nil || len(right) != 370 {
		t.Fatal(len(right), err)
	}
	id, ok := sc.Field(1).Metadata.GetValue(carbon.MetaColumnID)
	if !ok || len(id) < 8 {
		t.Fatalf("%q", id)
	}
	swap(t, tree, "schema", id, "0"+id[1:])
	refused(t, "another id", tree, "carbon.header.damaged")
	if rows, found, err := recovered(t, tree, "t"); err != nil || differ(rows, right, true) != "" ||
		!has(found, "carbon.schema.damaged") || has(found, "carbon.index.damaged") {
		t.Errorf("another id in the schema: %v, %s, %v", err, differ(rows, right, true), found)
	}

	tree = loaded(t, filepath.Join(golden2, "managed/managed1"))
	swap(t, tree, "-1-1795249939034.snappy.carbondata", id, "0"+id[1:])
	if _, found, _ := recovered(t, tree, "t"); has(found, "carbon.schema.damaged") {
		t.Errorf("another id in a data file: %v", found)
	}
}

// TestRecoverNothing: if only metadata without a schema is left of a table, recovery reports the damage.
func TestRecoverNothing(t *testing.T) {
	tree := lacking(t, lacking(t, loaded(t, filepath.Join(golden2, "managed/managed_gsort")), "Fact/"),
		"Metadata/schema")
	if rows, _, err := recovered(t, tree, "t"); !errors.Is(err, fault.Corrupt) ||
		!strings.Contains(err.Error(), "t/Metadata/schema") {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// TestLostTableFiles: a table without tablestatus or schema is neither empty nor unknown: reading it is an error,
// verify reports it, and recovery reads every segment that is there; this holds for partitioned tables, too, whose
// segments have no directories of their own.
func TestLostTableFiles(t *testing.T) {
	for _, dir := range []string{"managed/managed1", "managed/managed_part"} {
		for file, code := range map[string]string{"tablestatus": "carbon.status.damaged",
			"schema": "carbon.schema.damaged"} {
			tree := loaded(t, filepath.Join(golden2, dir))
			_, right, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
			if err != nil || len(right) == 0 {
				t.Fatal(len(right), err)
			}
			files := map[string][]byte{}
			for _, n := range tree.Names() {
				if n != "t/Metadata/"+file {
					files[n] = tree.Bytes(n)
				}
			}
			lost := store.NewMemory(files)
			if _, rows, err := read(t, "t", stoa.OpenOptions{Tree: lost}, stoa.ScanSpec{}); !errors.Is(err,
				fault.Corrupt) {
				t.Errorf("%s without %s: %d rows, %v", dir, file, len(rows), err)
			}
			var found []region.Finding
			for f := range carbon.Format.Verify(t.Context(), format.Target{Tree: lost, Name: "t"},
				format.OpenOptions{}) {
				found = append(found, f)
			}
			if !has(found, code) {
				t.Errorf("%s without %s: verify: got %v", dir, file, found)
			}
			rows, found, err := recovered(t, lost, "t")
			if err != nil || len(rows) != len(right) || !has(found, code) || file == "tablestatus" &&
				differ(rows, right, true) != "" {
				t.Errorf("%s without %s: %v, %d of %d rows recovered, %v", dir, file, err, len(rows), len(right), found)
			}
		}
	}
}

// TestRecoverOldFooter: a file of format 2 without a footer is recovered chunk by chunk through its index file; if it
// is also truncated, the rest is reported as lost. In format 1 nothing can be recovered.
func TestRecoverOldFooter(t *testing.T) {
	whole := store.NewMemory(goldenFiles(t, "v2_b2000"))
	file := ""
	for _, n := range whole.Names() {
		if strings.HasSuffix(n, ".carbondata") {
			file = n
		}
	}
	_, right, err := read(t, file, stoa.OpenOptions{Tree: whole}, stoa.ScanSpec{})
	if err != nil || len(right) != 5000 {
		t.Fatal(len(right), err)
	}
	data := whole.Bytes(file)
	for _, x := range []struct{ cut, rows int }{{20, 5000}, {len(data) / 3, 2000}} {
		files := goldenFiles(t, "v2_b2000")
		files[file] = data[:len(data)-x.cut]
		rows, found, err := recovered(t, store.NewMemory(files), file)
		if err != nil || len(rows) != x.rows || differ(rows, right[:x.rows], false) != "" ||
			!has(found, "carbon.recovered") || has(found, "carbon.rows.lost") != (x.rows < 5000) {
			t.Errorf("truncated by %d: %v, %d rows, %v", x.cut, err, len(rows), found)
		}
	}
	files := goldenFiles(t, "v1_complex")
	for n, b := range files {
		if strings.HasSuffix(n, ".carbondata") {
			files[n] = b[:len(b)-20]
			rows, found, err := recovered(t, store.NewMemory(files), n)
			// the footer's offset
			if err == nil || len(found) != 1 || found[0].Code != "carbon.footer.damaged" ||
				found[0].At.Object != n || found[0].At.Len != 8 {
				t.Errorf("format 1 without a footer: %d rows, %v, %v", len(rows), err, found)
			}
		}
	}
}

// TestRecoverDeletes: if the files that list deleted rows are lost, rows stay deleted as far as other files list them:
// the newest intact update status, and the delete deltas beside their blocks. The table has 179 rows (according to
// Spark); the delta removed here deletes 15 more of the first 100.
func TestRecoverDeletes(t *testing.T) {
	const dir, delta, updates = "managed/managed_del", "-0-0-1795249942958.deletedelta",
		"tableupdatestatus-1795249942958"
	whole := loaded(t, filepath.Join(golden2, dir))
	_, right, err := read(t, "t", stoa.OpenOptions{Tree: whole}, stoa.ScanSpec{})
	if err != nil || len(right) != 179 {
		t.Fatal(len(right), err)
	}
	for _, c := range []struct {
		gone []string
		code []string
	}{
		{[]string{"Metadata/tablestatus"}, []string{"carbon.status.damaged"}},
		{[]string{updates}, []string{"carbon.status.damaged"}},
		{[]string{"tableupdatestatus"}, []string{"carbon.status.damaged"}},
		{[]string{"Metadata/tablestatus", updates}, []string{"carbon.status.damaged"}},
		{[]string{"Metadata/schema"}, []string{"carbon.schema.damaged"}},
		{[]string{"Metadata/schema", "Metadata/tablestatus", "tableupdatestatus"},
			[]string{"carbon.schema.damaged", "carbon.status.damaged"}},
	} {
		tree := whole
		for _, gone := range c.gone {
			tree = lacking(t, tree, gone)
		}
		rows, found, err := recovered(t, tree, "t")
		if err != nil || differ(rows, right, true) != "" {
			t.Errorf("without %v: %v, %d rows, %s", c.gone, err, len(rows), differ(rows, right, true))
		}
		for _, code := range c.code {
			if !has(found, code) {
				t.Errorf("without %v: %v, want %s", c.gone, found, code)
			}
		}
	}
	cut := loaded(t, filepath.Join(golden2, dir))
	cut.Put("t/Metadata/"+updates, whole.Bytes("t/Metadata/" + updates)[:100])
	if rows, found, err := recovered(t, cut, "t"); err != nil || differ(rows, right, true) != "" ||
		!has(found, "carbon.status.damaged") {
		t.Errorf("truncated update status: %v, %d rows, %v", err, len(rows), found)
	}

	lost := lacking(t, whole, delta)
	rows, found, err := recovered(t, lost, "t")
	if err != nil || len(rows) != 179 || !has(found, "carbon.delete.damaged") { // older deltas delete the same rows
		t.Errorf("without a delta: %v, %d rows, %v", err, len(rows), found)
	}
	var losses []region.Loss
	_, rows, err = read(t, "t", stoa.OpenOptions{Tree: lost},
		stoa.ScanSpec{Damaged: stoa.SkipRows, Lost: func(l region.Loss) { losses = append(losses, l) }})
	if err != nil || len(rows) != 94 || len(losses) != 1 || losses[0].Rows != [2]int64{0, 100} ||
		!errors.Is(losses[0].Err, fault.Corrupt) {
		t.Errorf("without a delta, and skip-rows: %v, %d rows, lost %v", err, len(rows), losses)
	}
}

// TestRecoverOldOtherFile: a data file in place of another segment's is reported even in formats 1 and 2, whose files
// have no header.
func TestRecoverOldOtherFile(t *testing.T) {
	for _, name := range []string{"v1/basic/default/old_basic_v1", "v2/basic/default/old_basic_v2"} {
		tree := loaded(t, filepath.Join(corpusDir(t), name))
		const at = "t/Fact/Part0/Segment_"
		tree.Put(at+"0/part-0-0-0-1480000000000.carbondata", tree.Bytes(at+"1/part-0-0-0-1480000000001.carbondata"))
		if _, found, err := recovered(t, tree, "t"); err != nil || !has(found, "carbon.index.disagree") {
			t.Errorf("%s: %v, %v", name, err, found)
		}
	}
}

// TestRecoverColumns: if a blocklet is truncated within its column chunks, the columns before the cut keep their cells.
func TestRecoverColumns(t *testing.T) {
	tree := loaded(t, filepath.Join(golden2, "v3/allprim_zstd/table"))
	file := ""
	for _, n := range tree.Names() {
		if strings.HasSuffix(n, ".carbondata") {
			file = n
		}
	}
	whole := tree.Bytes(file)
	_, right, err := read(t, file, stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
	if err != nil || len(right) == 0 {
		t.Fatal(len(right), err)
	}
	cut := store.NewMemory(map[string][]byte{file: whole[:len(whole)*3/4]})
	tab, err := stoa.Open(t.Context(), file, stoa.OpenOptions{Tree: cut, From: "carbon", Recover: true})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	rows, cells := int64(0), 0
	lost := map[string]bool{}
	spec := stoa.ScanSpec{Damaged: stoa.NullCells, Lost: func(l region.Loss) { lost[l.Column] = true }}
	for b, err := range tab.Scan(t.Context(), spec) {
		if err != nil {
			t.Fatal(err)
		}
		rows += b.NumRows()
		for i, c := range b.Columns() {
			if name := b.ColumnName(i); !lost[name] {
				cells += c.Len() - c.NullN()
			}
		}
	}
	if rows != int64(len(right)) || cells == 0 || len(lost) == 0 || len(lost) == len(tab.Schema().Fields()) {
		t.Errorf("got %d rows of %d, %d cells, lost %v; %v", rows, len(right), cells, lost, tab.Findings())
	}
}

// TestRecoverRowsOfPages: without footer and index each column chunk states the number of rows; a wrong bit in one of
// these numbers does not affect other columns.
func TestRecoverRowsOfPages(t *testing.T) {
	for _, name := range []string{"v3/allprim_zstd/table", "v3/complex_nested/table"} {
		tree := loaded(t, filepath.Join(golden2, name))
		i := slices.IndexFunc(tree.Names(), func(n string) bool { return strings.HasSuffix(n, ".carbondata") })
		file := tree.Names()[i]
		whole := tree.Bytes(file)
		_, right, err := read(t, file, stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
		if err != nil || len(right) == 0 {
			t.Fatal(len(right), err)
		}
		first := bytes.Index(whole, []byte{0x19, 0x11, 0x01, 0x00, 0x15}) + 5 // the rows of the first page
		if first < 5 {
			t.Fatalf("%s: no chunk was found", name)
		}
		for bit := range 6 { // bits that do not change the length of the number
			damaged := slices.Clone(whole[:len(whole)-20])
			damaged[first] ^= 2 << bit
			rows, lost := nulledRows(t, file, damaged)
			if rows != len(right) || len(lost) > 1 {
				t.Errorf("%s, bit %d: got %d rows of %d, lost of %v", name, bit, rows, len(right), lost)
			}
		}
	}
}

// nulledRows returns the number of rows that recovery returns from a single file, and the columns with lost cells.
func nulledRows(t *testing.T, file string, b []byte) (rows int, lost []string) {
	t.Helper()
	tab, err := stoa.Open(t.Context(), file, stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{file: b}),
		From: "carbon", Recover: true})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	spec := stoa.ScanSpec{Damaged: stoa.NullCells, Lost: func(l region.Loss) {
		if !slices.Contains(lost, l.Column) {
			lost = append(lost, l.Column)
		}
	}}
	for b, err := range tab.Scan(t.Context(), spec) {
		if err != nil {
			t.Fatal(err)
		}
		rows += int(b.NumRows())
	}
	return rows, lost
}

// TestRecoverPartitions: if a partitioned table has lost its segment files, which list the directories of each segment,
// file names identify the segments. Only the sizes in tablestatus show whether all directories still exist. The
// expected rows are Spark's.
func TestRecoverPartitions(t *testing.T) {
	const dir = "managed/managed_part"
	whole := loaded(t, filepath.Join(golden2, dir))
	_, right, err := read(t, "t", stoa.OpenOptions{Tree: whole}, stoa.ScanSpec{})
	if err != nil || len(right) != 65 {
		t.Fatal(len(right), err)
	}
	for _, c := range []struct {
		gone   []string
		rows   int
		codes  []string
		errors bool
	}{
		{[]string{"Metadata/segments/"}, 65, []string{"carbon.segment.file", "carbon.segment.damaged"}, true},
		{[]string{"segments/0_"}, 65, []string{"carbon.segment.file", "carbon.segment.damaged"}, true},
		{[]string{"segments/0_", "country=c1/y=2019"}, 55,
			[]string{"carbon.segment.file", "carbon.segment.missing"}, true},
		{[]string{"Metadata/segments/", "carbonindexmerge"}, 65,
			[]string{"carbon.segment.file", "carbon.segment.damaged", "carbon.index.missing"}, true},
		{[]string{"Metadata/segments/", "tablestatus"}, 65,
			[]string{"carbon.status.damaged", "carbon.segment.missing"}, true},
		{[]string{"Metadata/segments/", "tablestatus", "carbonindexmerge"}, 65,
			[]string{"carbon.status.damaged", "carbon.segment.missing"}, true},
	} {
		tree := whole
		for _, g := range c.gone {
			tree = lacking(t, tree, g)
		}
		if _, rows, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{}); !errors.Is(err, fault.Corrupt) {
			t.Errorf("without %v: %d rows, %v", c.gone, len(rows), err)
		}
		rows, found, err := recovered(t, tree, "t")
		if err != nil || len(rows) != c.rows || c.rows == 65 && differ(rows, right, true) != "" ||
			(len(errorsIn(found)) > 0) != c.errors {
			t.Errorf("without %v: %v, %d rows, %s, %v", c.gone, err, len(rows), differ(rows, right, true), found)
		}
		for _, code := range c.codes {
			if !has(found, code) {
				t.Errorf("without %v: %v, want %s", c.gone, found, code)
			}
		}
	}
	other := loaded(t, filepath.Join(golden2, dir))
	swap(t, other, ".segment", `["country\u003dc1"`, `["country\u003dc0"`)
	if rows, found, err := recovered(t, other, "t"); err != nil || differ(rows, right, true) != "" ||
		!has(errorsIn(found), "carbon.segment.damaged") {
		t.Errorf("another partition's value: %v, %s, %v", err, differ(rows, right, true), found)
	}
	rows, found, err := recovered(t, lacking(t, whole, "Metadata/"), "t") // the columns are those of the data files
	if err != nil || len(rows) != 65 || !has(found, "carbon.schema.damaged") {
		t.Errorf("without metadata: %v, %d rows, %v", err, len(rows), found)
	}
}

// TestDirectoriesOfTables: directories NAME=VALUE that each have a table of the SDK are not a partitioned table, nor
// are directories in which files of segments lie beside other files. Directories beside CarbonData's own directories
// are one, even if file names do not contain a segment.
func TestDirectoriesOfTables(t *testing.T) {
	sdk := map[string][]byte{}
	for i, from := 0, loaded(t, filepath.Join(golden2, "v3/onerow/table")); i < 3; i++ {
		for _, n := range from.Names() {
			sdk[fmt.Sprintf("t/day=%d/%s", i, strings.TrimPrefix(n, "t/"))] = from.Bytes(n)
		}
	}
	with := func(tree *store.Memory, files ...string) *store.Memory {
		out := map[string][]byte{}
		for _, n := range tree.Names() {
			out[n] = tree.Bytes(n)
		}
		for _, n := range files {
			out[n] = []byte("a,b\n1,2\n")
		}
		return store.NewMemory(out)
	}
	bare := lacking(t, loaded(t, filepath.Join(golden2, "managed/managed_part")), "Metadata/")
	for what, c := range map[string]struct {
		tree  *store.Memory
		table bool
	}{
		"tables of the SDK":             {store.NewMemory(sdk), false},
		"tables of the SDK and locks":   {with(store.NewMemory(sdk), "t/LockFiles/a.lock"), false},
		"tables of the SDK, a file":     {with(store.NewMemory(sdk), "t/x.csv"), false},
		"partitions":                    {bare, true},
		"partitions and what is hidden": {with(bare, "t/_SUCCESS", "t/.x.crc"), true},
		"partitions and a file":         {with(bare, "t/x.csv"), false},
		"partitions with a file":        {with(bare, "t/country=c0/y=2019/x.csv"), false},
		"partitions and a directory":    {with(bare, "t/else/x.csv"), false},
		"partitions of two columns":     {with(bare, "t/other=1/part-0-0_batchno0-0-0-1.snappy.carbondata"), false},
		"partitions and a table": {with(bare, "t/country=c3/part-0-0_batchno0-0-null-1.snappy.carbondata"),
			false},
		"partitions, locks and a file": {with(bare, "t/x.csv", "t/LockFiles/a.lock"), true},
		"partitions of old names": {with(store.NewMemory(nil), "t/LockFiles/a.lock",
			"t/a=1/part-0-0_batchno0-0-1.carbondata"), true},
		"old names":     {with(store.NewMemory(nil), "t/a=1/part-0-0_batchno0-0-1.carbondata"), false},
		"no data files": {with(store.NewMemory(nil), "t/LockFiles/a.lock", "t/a=1/x.parquet"), false},
	} {
		sure, err := carbon.Format.Probe(t.Context(), format.Target{Tree: c.tree, Name: "t"})
		if err != nil || (sure != format.No) != c.table {
			t.Errorf("%s: %v, %v", what, sure, err)
		}
	}
	// --from carbon declares it a table
	if rows, _, err := recovered(t, with(bare, "t/x.csv"), "t"); err != nil || len(rows) != 65 {
		t.Errorf("partitions and a file: %d rows, %v", len(rows), err)
	}
	if sure, err := carbon.Format.Probe(t.Context(), format.Target{Tree: bare, Name: "t/country=c0"}); err != nil ||
		sure != format.No {
		t.Errorf("a partition: %v, %v", sure, err)
	}
	if _, _, err := read(t, "t", stoa.OpenOptions{Tree: bare}, stoa.ScanSpec{}); !errors.Is(err, fault.Corrupt) ||
		!strings.Contains(err.Error(), "like a partitioned table") {
		t.Errorf("partitions: %v", err)
	}
	tables := map[string]int64{}
	for e, err := range stoa.List(t.Context(), "t", stoa.OpenOptions{Tree: with(store.NewMemory(sdk), "t/x.csv")}) {
		if err != nil {
			t.Error(err)
		}
		tables[e.Place] = e.Rows
	}
	if len(tables) != 4 || tables["t/day=0"] != 1 || tables["t/day=2"] != 1 {
		t.Errorf("listed: %v", tables)
	}
	t.Chdir(filepath.Join(golden2, "managed/managed_part/country=c0"))
	if sure, err := carbon.Format.Probe(t.Context(), format.Target{Tree: store.Local{}, Name: "."}); err != nil ||
		sure != format.No {
		t.Errorf("a partition, from inside: %v, %v", sure, err)
	}
}

// TestRecoverDefault: if an added column has one default in the schema and another in its history, its values in
// earlier rows are unknown. These cells are lost, and the other rows are unchanged.
func TestRecoverDefault(t *testing.T) {
	tree := loaded(t, filepath.Join(golden2, "managed/managed_alter"))
	_, right, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
	before := func(l line) bool { return l["extra"] == "77" }
	if err != nil || len(right) != 60 || !slices.ContainsFunc(right, before) || !before(right[0]) {
		t.Fatal(len(right), err)
	}
	swap(t, tree, "schema", "\x0277", "\x0278")
	refused(t, "another default", tree, "carbon.schema.damaged")
	lost := int64(0)
	_, rows, err := read(t, "t", stoa.OpenOptions{Tree: tree, From: "carbon", Recover: true},
		stoa.ScanSpec{Damaged: stoa.SkipRows, Lost: func(l region.Loss) { lost += l.Rows[1] - l.Rows[0] }})
	right = slices.DeleteFunc(right, before)
	if err != nil || differ(rows, right, true) != "" || int(lost)+len(rows) != 60 {
		t.Errorf("%v, %d rows and %d lost, %s", err, len(rows), lost, differ(rows, right, true))
	}
}
