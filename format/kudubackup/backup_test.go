package kudubackup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu"
	"stoa/format/parquet"
	"stoa/region"
	"stoa/store"
)

// openTable opens a table that Kudu wrote.
func openTable(t *testing.T, dir, table string) format.Reader {
	t.Helper()
	r, err := kudu.Format.Open(context.Background(),
		format.Target{Tree: store.Local{}, Name: "../kudu/testdata/" + dir, Table: table},
		format.OpenOptions{Opts: map[string]string{"wal": "false", "partial": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// backup writes a backup of batches, and returns its files.
func backup(t *testing.T, sc *arrow.Schema, opts map[string]string, batches ...arrow.RecordBatch) (*store.Memory,
	format.Summary) {
	t.Helper()
	ctx := context.Background()
	tree := store.NewMemory(nil)
	w, err := create(ctx, tree.Sink("out"), sc, format.WriteOptions{Rows: -1, Opts: opts})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if err := w.Write(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	s, err := w.Close(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return tree, s
}

func metadataIn(t *testing.T, tree *store.Memory, s format.Summary) map[string]any {
	t.Helper()
	last := s.Files[len(s.Files)-1]
	if path.Base(last) != metadataFile {
		t.Fatalf("last file: got %s, want %s", last, metadataFile)
	}
	var m map[string]any
	if err := json.Unmarshal(tree.Bytes("out/"+last), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestPartitions: a table with hash and range partitions, one of which has a hash schema of its own. The expectations
// are from the output of Kudu's tools (`kudu fs list` in testdata), in the form of backup.proto.
func TestPartitions(t *testing.T) {
	r := openTable(t, "log", "ranges")
	tree, s := backup(t, r.Schema(), map[string]string{"time": "1700000000000", "replicas": "2"})
	m := metadataIn(t, tree, s)
	if want := "e12804fbe58c4f2b8dca2a12108ffc7d-ranges/1700000000000/"; s.Files[0] != want+"part-00000.parquet" ||
		s.Files[1] != want+metadataFile || len(s.Files) != 2 {
		t.Errorf("got files %v, want the part and the metadata in %s", s.Files, want)
	}
	for k, want := range map[string]any{"version": 1.0, "fromMs": "0", "toMs": "1700000000000",
		"dataFormat": "parquet", "tableName": "ranges", "tableId": "e12804fbe58c4f2b8dca2a12108ffc7d",
		"numReplicas": 2.0} {
		if m[k] != want {
			t.Errorf("%s: got %v, want %v", k, m[k], want)
		}
	}
	text, _ := json.Marshal(m["partitions"])
	want := `{"hashPartitions":[{"columnNames":["id"],"numBuckets":2,"seed":3}],` +
		`"rangeAndHashPartitions":[{"bounds":{"lowerBounds":[{"columnName":"name","value":"q"}],` +
		`"upperBounds":[{"columnName":"name","value":"z"}]},"hashPartitions":[{"columnNames":["id","name"],` +
		`"numBuckets":3,"seed":9}]}],` +
		`"rangePartitions":{"bounds":[{"upperBounds":[{"columnName":"name","value":"g"}]}],"columnNames":["name"]}}`
	if string(text) != want {
		t.Errorf("partitions:\n got %s\nwant %s", text, want)
	}
	if tablets := m["tablets"].(map[string]any); len(tablets) != 2 {
		t.Errorf("got tablets %v, want 2", tablets)
	}
	var names []string
	for _, c := range m["columns"].([]any) {
		c := c.(map[string]any)
		names = append(names, fmt.Sprint(c["name"], " ", c["type"], " ", c["isKey"] == true, " ",
			c["isNullable"] == true, " ", c["encoding"]))
	}
	if want := []string{"id INT64 true false AUTO_ENCODING",
		"name STRING true false PREFIX_ENCODING"}; !slices.Equal(names[:2], want) {
		t.Errorf("columns: got %v, want %v", names, want)
	}
}

// TestParts: rows are written to Parquet files of at most part-rows rows, and the metadata file is the last.
func TestParts(t *testing.T) {
	b := smallBatch(t, 10)
	defer b.Release()
	tree, s := backup(t, b.Schema(), map[string]string{"key": "k", "table": "a b~c/ü*", "part-rows": "4",
		"compression": "zstd"}, b, b)
	if s.Rows != 20 || len(s.Files) != 6 || !strings.Contains(s.Files[0], "-a+b%7Ec%2F%C3%BC*/") {
		t.Fatalf("got %+v, want 20 rows in 5 parts and the encoded name in paths", s)
	}
	var got []int64
	for _, name := range s.Files[:5] {
		r, err := parquet.Format.Open(context.Background(), format.Target{Tree: tree, Name: "out/" + name},
			format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for p, err := range r.Parts(context.Background(), format.Query{Cols: []int{0, 1}}) {
			if err != nil {
				t.Fatal(err)
			}
			groups, err := r.RowGroups(context.Background(), p, format.Query{})
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range groups {
				got = append(got, g.Rows)
			}
		}
		r.Close()
	}
	if !slices.Equal(got, []int64{4, 4, 4, 4, 4}) {
		t.Errorf("got parts of %v rows, want 5 of 4", got)
	}
	m := metadataIn(t, tree, s)
	text, _ := json.Marshal([]any{m["partitions"], m["columnIds"], m["numReplicas"],
		len(m["tablets"].(map[string]any))})
	want := `[{"rangePartitions":{"bounds":[{}],"columnNames":["k"]}},{"k":0,"v":1},3,1]`
	if string(text) != want {
		t.Errorf("partitions, column IDs, replicas, tablets:\n got %s\nwant %s", text, want)
	}
}

// TestMissingPartIsReported: if a part of a backup is missing, or two are swapped, listing, reading, verifying and
// recovering a neighbouring part reports it. A complete backup, and a part under another name elsewhere, have no
// findings.
func TestMissingPartIsReported(t *testing.T) {
	ctx := context.Background()
	for parts := 1; parts <= 4; parts++ {
		b := smallBatch(t, 3*parts)
		tree, s := backup(t, b.Schema(), map[string]string{"table": "t", "key": "k", "part-rows": "3", "time": "1"}, b)
		if len(s.Files) != parts+1 {
			t.Fatalf("%d parts: %v", parts, s.Files)
		}
		complete := map[string][]byte{}
		for _, name := range s.Files[:parts] {
			complete["out/"+name] = tree.Bytes("out/" + name)
		}
		first := "out/" + s.Files[0]
		reporters(ctx, t, fmt.Sprintf("%d parts", parts), complete, 0)
		reporters(ctx, t, "a part by itself", map[string][]byte{"mine.parquet": complete[first]}, 0)
		for i, name := range s.Files[:parts] {
			if parts > 1 {
				rest := maps.Clone(complete)
				delete(rest, "out/"+name)
				adjacent := 2
				if i == 0 || i == parts-1 {
					adjacent = 1
				}
				reporters(ctx, t, fmt.Sprintf("%d parts without part %d", parts, i), rest, adjacent)
			}
			if i > 0 {
				swapped := maps.Clone(complete)
				swapped[first], swapped["out/"+name] = swapped["out/"+name], swapped[first]
				reporters(ctx, t, fmt.Sprintf("%d parts, 0 and %d swapped", parts, i), swapped, 2)
			}
		}
	}
}

// reporters checks in how many of the files each operation reports that a part is missing.
func reporters(ctx context.Context, t *testing.T, what string, files map[string][]byte, want int) {
	t.Helper()
	reported := func(all []region.Finding) bool {
		return slices.ContainsFunc(all, func(f region.Finding) bool {
			return f.Code == "parquet.part" && f.Severity == region.Error
		})
	}
	n := map[string]int{"list": 0, "verify": 0, "quick": 0, "read": 0, "recover": 0}
	for name := range files {
		tg := format.Target{Tree: store.NewMemory(files), Name: name}
		for e, err := range parquet.Format.List(ctx, tg) {
			if err != nil {
				t.Fatal(err)
			}
			if reported(e.Findings) {
				n["list"]++
			}
		}
		for how, depth := range map[string]format.Depth{"verify": format.Deep, "quick": format.Quick} {
			if reported(slices.Collect(parquet.Format.Verify(ctx, tg, format.OpenOptions{Depth: depth}))) {
				n[how]++
			}
		}
		r, err := parquet.Format.Open(ctx, tg, format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if reported(r.(format.Finder).Findings()) {
			n["read"]++
		}
		r.Close()
		if r, _, err = parquet.Format.Recover(ctx, tg, format.OpenOptions{}); err != nil {
			t.Fatal(err)
		}
		if reported(r.(format.Finder).Findings()) {
			n["recover"]++
		}
		r.Close()
	}
	for how, got := range n {
		if got != want {
			t.Errorf("%s: %s reports a missing part in %d files, want %d", what, how, got, want)
		}
	}
}

func smallBatch(t *testing.T, n int) arrow.RecordBatch {
	t.Helper()
	sc := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "k", Type: arrow.PrimitiveTypes.Int64}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprint(i))
		b.Field(1).(*array.Int64Builder).Append(int64(i))
	}
	return b.NewRecordBatch()
}

// TestEmpty: a backup without rows also has one part, because Spark needs one for the schema.
func TestEmpty(t *testing.T) {
	b := smallBatch(t, 0)
	defer b.Release()
	_, s := backup(t, b.Schema(), map[string]string{"key": "k", "table": "t"})
	if s.Rows != 0 || len(s.Files) != 2 {
		t.Errorf("got %+v, want no rows and 2 files", s)
	}
}

// TestBackupWithoutFiles: a backup that has none of its files is not a table without rows.
func TestBackupWithoutFiles(t *testing.T) {
	for rows, parts := range map[int]int{0: 1, 30: 3} {
		b := smallBatch(t, rows)
		tree, s := backup(t, b.Schema(), map[string]string{"key": "k", "table": "t", "part-rows": "10"}, b)
		b.Release()
		if len(s.Files) != parts+1 {
			t.Fatalf("%v", s.Files)
		}
		left := store.NewMemory(nil)
		for _, n := range tree.Names() {
			if !strings.HasSuffix(n, ".parquet") {
				left.Put(n, tree.Bytes(n))
			}
		}
		for in, want := range map[*store.Memory]int{tree: 0, left: 1} {
			r, err := Format.Open(t.Context(), format.Target{Tree: in, Name: "out"}, format.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			found := r.(format.Finder).Findings()
			r.Close()
			if len(found) != want || want > 0 && (found[0].Code != "dir.part.missing" ||
				found[0].Severity != region.Error || !strings.HasSuffix(found[0].At.Object, metadataFile)) {
				t.Errorf("%d rows: %+v, want %d findings", rows, found, want)
			}
			asBackup(t, fmt.Sprint(rows, " rows"), "out", in, map[int]string{1: "dir.part.missing"}[want])
		}
	}
}

// TestColumns: columns and default values have the form that the restore job reads.
func TestColumns(t *testing.T) {
	with := func(f arrow.Field, kv ...string) arrow.Field {
		var keys, values []string
		for i := 0; i < len(kv); i += 2 {
			keys, values = append(keys, kv[i]), append(values, kv[i+1])
		}
		f.Metadata = arrow.NewMetadata(keys, values)
		return f
	}
	us := &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	for _, c := range []struct {
		f    arrow.Field
		want string
	}{
		{arrow.Field{Type: arrow.PrimitiveTypes.Int8},
			`{"name":"","type":"INT8","encoding":"AUTO_ENCODING","compression":"DEFAULT_COMPRESSION"}`},
		{with(arrow.Field{Type: arrow.BinaryTypes.String}, cfile.MetaType, "varchar", cfile.MetaLength, "30",
			kudu.MetaDefault, "x"),
			`{"name":"","type":"VARCHAR","typeAttributes":{"length":30},"defaultValue":"x",` +
				`"encoding":"AUTO_ENCODING","compression":"DEFAULT_COMPRESSION"}`},
		{with(arrow.Field{Type: arrow.BinaryTypes.Binary}, kudu.MetaDefault, "00ff", cfile.MetaEncoding, "prefix",
			cfile.MetaCompression, "zlib", cfile.MetaBlockSize, "4096"),
			`{"name":"","type":"BINARY","defaultValue":"AP8=","encoding":"PREFIX_ENCODING","compression":"ZLIB",` +
				`"blockSize":4096}`},
		{with(arrow.Field{Type: us}, kudu.MetaDefault, "1-02-03T04:05:06.000007Z"),
			`{"name":"","type":"UNIXTIME_MICROS","defaultValue":"-62132730893999993","encoding":"AUTO_ENCODING",` +
				`"compression":"DEFAULT_COMPRESSION"}`},
		{with(arrow.Field{Type: arrow.FixedWidthTypes.Date32}, kudu.MetaDefault, "33-01-02"),
			`{"name":"","type":"DATE","defaultValue":"0033-01-02","encoding":"AUTO_ENCODING",` +
				`"compression":"DEFAULT_COMPRESSION"}`},
		{with(arrow.Field{Type: arrow.PrimitiveTypes.Float64}, kudu.MetaDefault, "-Inf"),
			`{"name":"","type":"DOUBLE","defaultValue":"-Infinity","encoding":"AUTO_ENCODING",` +
				`"compression":"DEFAULT_COMPRESSION"}`},
		{with(arrow.Field{Type: &arrow.Decimal128Type{Precision: 9, Scale: 2}, Nullable: true}, kudu.MetaDefault,
			"1.50", kudu.MetaComment, "money"),
			`{"name":"","type":"DECIMAL","typeAttributes":{"precision":9,"scale":2},"isNullable":true,` +
				`"defaultValue":"1.50","encoding":"AUTO_ENCODING","compression":"DEFAULT_COMPRESSION",` +
				`"comment":"money"}`},
		{with(arrow.Field{Type: arrow.PrimitiveTypes.Int64}, kudu.MetaAutoIncrement, "true", cfile.MetaEncoding,
			"bitshuffle"), `{"name":"","type":"INT64","encoding":"BIT_SHUFFLE","compression":"DEFAULT_COMPRESSION",` +
			`"isAutoIncrementing":true}`},
		{arrow.Field{Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
			`{"name":"","type":"NESTED","isNullable":true,"encoding":"AUTO_ENCODING",` +
				`"compression":"DEFAULT_COMPRESSION","nestedTypeDescriptor":{"arrayDescriptor":{"elemType":"INT32"}}}`},
	} {
		got, err := columnOf(c.f)
		if err != nil {
			t.Errorf("%s: %v", c.f, err)
			continue
		}
		if b, _ := json.Marshal(got.columnMetadata); string(b) != c.want {
			t.Errorf("got %s\nwant %s", b, c.want)
		}
	}
}

// TestRefused: Create refuses what Kudu cannot store.
func TestRefused(t *testing.T) {
	k := arrow.Field{Name: "k", Type: arrow.PrimitiveTypes.Int64}
	for name, c := range map[string]struct {
		fields []arrow.Field
		opts   map[string]string
		class  fault.Class
	}{
		"no key":         {[]arrow.Field{k}, map[string]string{"table": "t"}, fault.Invalid},
		"no name":        {[]arrow.Field{k}, map[string]string{"key": "k"}, fault.Invalid},
		"an unknown key": {[]arrow.Field{k}, map[string]string{"key": "x", "table": "t"}, fault.Invalid},
		"a key of doubles": {[]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Float64}},
			map[string]string{"key": "k", "table": "t"}, fault.Invalid},
		"an unsigned column": {[]arrow.Field{k, {Name: "u", Type: arrow.PrimitiveTypes.Uint32}},
			map[string]string{"key": "k", "table": "t"}, fault.Unsupported},
		"a list of lists": {[]arrow.Field{k, {Name: "l", Type: arrow.ListOf(arrow.ListOf(k.Type))}},
			map[string]string{"key": "k", "table": "t"}, fault.Unsupported},
		"a key of lists": {[]arrow.Field{{Name: "k", Type: arrow.ListOf(k.Type)}},
			map[string]string{"key": "k", "table": "t"}, fault.Invalid},
		"a list with a default": {[]arrow.Field{k, {Name: "l", Type: arrow.ListOf(k.Type),
			Metadata: arrow.NewMetadata([]string{kudu.MetaDefault}, []string{"00"})}},
			map[string]string{"key": "k", "table": "t"}, fault.Unsupported},
		"a timestamp without a zone": {[]arrow.Field{k,
			{Name: "t", Type: &arrow.TimestampType{Unit: arrow.Microsecond}}},
			map[string]string{"key": "k", "table": "t"}, fault.Unsupported},
		"names that differ in case": {[]arrow.Field{k, {Name: "K", Type: k.Type}},
			map[string]string{"key": "k", "table": "t"}, fault.Invalid},
		"an unknown option": {[]arrow.Field{k}, map[string]string{"key": "k", "table": "t", "zzz": "1"},
			fault.Invalid},
		"a bad id": {[]arrow.Field{k}, map[string]string{"key": "k", "table": "t", "table-id": "12"},
			fault.Invalid},
		"a bad number": {[]arrow.Field{k}, map[string]string{"key": "k", "table": "t", "part-rows": "0"},
			fault.Invalid},
	} {
		tree := store.NewMemory(nil)
		sink := tree.Sink("out")
		_, err := create(context.Background(), sink, arrow.NewSchema(c.fields, nil), format.WriteOptions{Opts: c.opts})
		if !errors.Is(err, c.class) {
			t.Errorf("%s: got %v, want class %s", name, err, c.class)
		}
	}
}

// TestNullsInTheKey: a nullable column may be in the key if it has no nulls.
func TestNullsInTheKey(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	b.Field(0).(*array.Int64Builder).Append(1)
	good := b.NewRecordBatch()
	defer good.Release()
	b.Field(0).(*array.Int64Builder).AppendNull()
	bad := b.NewRecordBatch()
	defer bad.Release()
	tree, s := backup(t, sc, map[string]string{"key": "k", "table": "t"}, good)
	if c := metadataIn(t, tree, s)["columns"].([]any)[0].(map[string]any); c["isNullable"] != nil ||
		c["isKey"] != true {
		t.Errorf("got column %v, want a key column that is not nullable", c)
	}
	w, err := create(context.Background(), store.NewMemory(nil).Sink("out"), sc,
		format.WriteOptions{Opts: map[string]string{"key": "k", "table": "t"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(context.Background(), bad); !errors.Is(err, fault.Invalid) {
		t.Errorf("write of a null key: got %v, want class Invalid", err)
	}
	w.Abort(context.Background())
}

// TestMissingKeyColumns: a backup without a column of the key or of the partitions is refused, as it could not be
// restored.
func TestMissingKeyColumns(t *testing.T) {
	sc := openTable(t, "log", "ranges").Schema()
	m := sc.Metadata()
	_, err := metadataOf(arrow.NewSchema(sc.Fields()[:1], &m), options{})
	if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), `"name"`) {
		t.Errorf("without name: got %v, want class Invalid and the column's name", err)
	}
	_, err = metadataOf(arrow.NewSchema(sc.Fields()[1:], &m), options{})
	if !errors.Is(err, fault.Invalid) {
		t.Errorf("without id: got %v, want class Invalid", err)
	}
}

// TestAbort: an aborted backup leaves no files.
func TestAbort(t *testing.T) {
	b := smallBatch(t, 5)
	defer b.Release()
	dir := t.TempDir()
	ctx := context.Background()
	w, err := create(ctx, store.Local{}.Sink(dir+"/out/", nil), b.Schema(),
		format.WriteOptions{Opts: map[string]string{"key": "k", "table": "t"}})
	if err == nil {
		err = errors.Join(w.Write(ctx, b), w.Abort(ctx))
	}
	left, rerr := os.ReadDir(dir)
	if err != nil || rerr != nil || len(left) > 0 {
		t.Errorf("got %v, %v, %v left; want nothing", err, rerr, left)
	}
}
