package parquet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// recovered reads all rows of a reader, as text; those of row groups with damage are left out.
func recovered(r format.Reader) (rows []string) {
	defer r.Close()
	p := r.(*reader)
	q := format.Query{}
	for i := range p.Shown.NumFields() {
		q.Cols = append(q.Cols, i)
	}
	for g := range p.Footer.RowGroups {
		for b, err := range batchesOf(context.Background(), p, format.RowGroup{Index: g}, q, vec.Range{},
			memory.DefaultAllocator) {
			if err != nil {
				continue
			}
			for i := range int(b.NumRows()) {
				var row strings.Builder
				for _, c := range b.Columns() {
					row.WriteString(c.ValueStr(i) + "|")
				}
				rows = append(rows, row.String())
			}
		}
	}
	return rows
}

// cuts returns offsets at which to truncate a file: many in the footer, some before it.
func cuts(size, footer int) (out []int) {
	pages, tail := 2003, 197
	if testing.Short() {
		pages, tail = 4001, 499
	}
	for at := 12; at < footer; at += pages {
		out = append(out, at)
	}
	for at := footer; at < size; at += tail {
		out = append(out, at)
	}
	return append(out, size-1, size-4, size-5, size-8, size-9)
}

// TestRecoverCut truncates files by pyarrow, with every encoding and codec, and by stoa, and recovers them with the
// schema of the intact file: exactly the rows of complete row groups are recovered, and the loss is reported.
func TestRecoverCut(t *testing.T) {
	files, _ := filepath.Glob("testdata/*-*.parquet")
	files = append(files, "testdata/plain.parquet", "testdata/rare.v2.parquet", "ours")
	for _, file := range files {
		var intact []byte
		if file == "ours" {
			intact = ourFile(t)
		} else {
			intact = golden(t, file).Bytes("t")
		}
		checkCuts(t, file, intact)
	}
}

func checkCuts(t *testing.T, file string, intact []byte) {
	tree := store.NewMemory(map[string][]byte{"intact": intact})
	r, err := openReader(t.Context(), format.Target{Tree: tree, Name: "intact"},
		format.OpenOptions{Opts: map[string]string{"arrow-schema": "ignore"}})
	if err != nil {
		t.Fatal(err)
	}
	ends, rows := []int64{0}, []int64{0}
	for g, rg := range r.Footer.RowGroups {
		end := int64(0)
		for c := range rg.Columns {
			end = max(end, r.ChunkSpan(g, c).End())
		}
		ends, rows = append(ends, end), append(rows, rows[g]+rg.NumRows)
	}
	footer := int(r.FooterAt.Off)
	want := recovered(r)
	for _, cut := range cuts(len(intact), footer) {
		tree.Put("t", intact[:cut])
		back, found, err := recoverReader(t.Context(), format.Target{Tree: tree, Name: "t"},
			format.OpenOptions{Opts: map[string]string{"schema": "intact", "arrow-schema": "ignore"}})
		if err != nil {
			t.Errorf("%s cut at %d: %v", file, cut, err)
			continue
		}
		n := int64(0)
		for i, end := range ends {
			if end <= int64(cut) {
				n = rows[i]
			}
		}
		if got := recovered(back); !slices.Equal(got, want[:n]) {
			t.Errorf("%s cut at %d of %d: got %d rows, want %d: %v", file, cut, len(intact), len(got), n, found)
		}
		if !slices.ContainsFunc(found, func(f region.Finding) bool {
			return f.Severity == region.Error &&
				f.Lost != 0
		}) {
			t.Errorf("%s cut at %d: got %v, want a loss reported", file, cut, found)
		}
	}
}

// ourFile returns a file of stoa's writer with several row groups.
func ourFile(t *testing.T) []byte {
	t.Helper()
	_, b := numbers(1000, "x", "y", "z")
	return written(t, map[string]string{"row-group-rows": "300", "page-size": "500"}, b).Bytes("t")
}

// numbers returns a table of columns that cannot be distinguished by their values.
func numbers(n int, names ...string) (*arrow.Schema, arrow.RecordBatch) {
	var fields []arrow.Field
	for _, name := range names {
		fields = append(fields, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64})
	}
	sc := arrow.NewSchema(fields, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	for i := range n {
		for k := range names {
			b.Field(k).(*array.Int64Builder).Append(int64(i*(k+3)) * 1_000_003)
		}
	}
	return sc, b.NewRecordBatch()
}

// TestRecoverAmbiguous: pages that fit row groups of different sizes are refused unless the user gives the size.
func TestRecoverAmbiguous(t *testing.T) {
	_, b := numbers(1024, "x", "y")
	intact := written(t, map[string]string{"row-group-rows": "512", "page-size": "1024", "dictionary": "false"},
		b).Bytes("t")
	tree := store.NewMemory(map[string][]byte{"intact": intact})
	back, err := openReader(t.Context(), format.Target{Tree: tree, Name: "intact"}, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cut := back.ChunkSpan(1, 1).End()
	want := recovered(back)
	tree.Put("t", intact[:cut])
	opts := map[string]string{"schema": "intact"}
	_, _, err = recoverReader(t.Context(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{Opts: opts})
	if !errors.Is(err, fault.Corrupt) || !strings.Contains(fmt.Sprint(err), "row-group-rows=N") {
		t.Fatalf("got %v, want an error that names row-group-rows=N", err)
	}
	opts["row-group-rows"] = "512"
	got, _, err := recoverReader(t.Context(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{Opts: opts})
	if err != nil {
		t.Fatal(err)
	}
	if rows := recovered(got); !slices.Equal(rows, want) {
		t.Errorf("got %d rows, want the %d rows of the file", len(rows), len(want))
	}
}

// TestRecoverColumns: the complete columns of a truncated row group can be read.
func TestRecoverColumns(t *testing.T) {
	intact := golden(t, "testdata/codec-zstd.parquet").Bytes("t")
	tree := store.NewMemory(map[string][]byte{"intact": intact})
	r, err := openReader(t.Context(), format.Target{Tree: tree, Name: "intact"}, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tree.Put("t", intact[:r.ChunkSpan(0, 1).End()+20])
	back, _, err := recoverReader(t.Context(), format.Target{Tree: tree, Name: "t"},
		format.OpenOptions{Opts: map[string]string{"schema": "intact"}})
	if err != nil {
		t.Fatal(err)
	}
	read := func(cols ...int) (n int64, err error) {
		for b, e := range batchesOf(t.Context(), back.(*reader), format.RowGroup{}, format.Query{Cols: cols},
			vec.Range{}, nil) {
			if err = errors.Join(err, e); e == nil {
				n += b.NumRows()
			}
		}
		return n, err
	}
	if n, err := read(0, 1); n != 150 || err != nil {
		t.Errorf("the complete columns: got %d rows, %v, want 150", n, err)
	}
	if n, err := read(0, 2); n != 0 || !errors.Is(err, fault.Corrupt) {
		t.Errorf("with a truncated one: got %d rows, %v, want class Corrupt", n, err)
	}
}

// TestRecoverTrailing: bytes after the end of a file are ignored; the footer of a file inside a truncated one is not
// used.
func TestRecoverTrailing(t *testing.T) {
	intact := golden(t, "testdata/enc-dict.v1.parquet").Bytes("t")
	tree := store.NewMemory(map[string][]byte{"t": append(slices.Clone(intact), make([]byte, 3000)...)})
	back, _, err := recoverReader(t.Context(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(recovered(back)); n != 150 {
		t.Errorf("3000 trailing bytes: got %d rows, want 150", n)
	}
	tree.Put("t", append(append([]byte("PAR1 some other file "), intact...), 0, 0))
	if _, _, err := recoverReader(t.Context(), format.Target{Tree: tree, Name: "t"},
		format.OpenOptions{}); !errors.Is(err, fault.Corrupt) {
		t.Errorf("a file inside a file: got %v, want class Corrupt", err)
	}
}

// TestRecoverArrowSchema: if the footer is cut after Parquet's schema, the Arrow schema is taken from the file that the
// user names, if it has the same columns.
func TestRecoverArrowSchema(t *testing.T) {
	intact, other := golden(t, "testdata/rare.parquet").Bytes("t"), golden(t, "testdata/codec-none.parquet").Bytes("t")
	tree := store.NewMemory(map[string][]byte{"intact": intact, "other": other, "t": intact[:len(intact)-400]})
	// large_utf8, which has no Parquet type of its own
	at := openGolden(t, "testdata/rare.parquet").Schema().FieldIndices("ls")[0]
	for name, same := range map[string]bool{"": false, "intact": true, "other": false} {
		back, found, err := recoverReader(t.Context(), format.Target{Tree: tree, Name: "t"},
			format.OpenOptions{Opts: map[string]string{"schema": name}})
		if err != nil {
			t.Fatal(err)
		}
		if got := back.Schema(); (got.Field(at).Type.ID() == arrow.LARGE_STRING) != same {
			t.Errorf("schema=%s: got %s", name, got)
		}
		cut := slices.IndexFunc(found, func(f region.Finding) bool { return f.Code == "parquet.footer.cut" })
		if cut < 0 || strings.Contains(found[cut].Message, "is used") != same ||
			strings.Contains(found[cut].Message, "different columns") != (name == "other") {
			t.Errorf("schema=%s: got findings %+v", name, found)
		}
		back.Close()
	}
}

// TestRecoverFileInFile: if the pages of a truncated file contain Parquet files, their footers, complete or truncated,
// are not used.
func TestRecoverFileInFile(t *testing.T) {
	_, one := numbers(300, "k")
	_, none := numbers(0, "k")
	plainOpts := map[string]string{"compression": "none", "dictionary": "false"}
	inner := [][]byte{written(t, plainOpts, one).Bytes("t"), written(t, plainOpts, none).Bytes("t"),
		[]byte("some text")}
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "blob", Type: arrow.BinaryTypes.Binary}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	for i := range 60 {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.BinaryBuilder).Append(inner[i%3])
	}
	intact := written(t, map[string]string{"compression": "none", "dictionary": "false", "row-group-rows": "20",
		"page-index": "false"}, b.NewRecordBatch()).Bytes("t")
	tree := store.NewMemory(map[string][]byte{"intact": intact})
	r, err := openReader(t.Context(), format.Target{Tree: tree, Name: "intact"}, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	step := 131
	if testing.Short() {
		step = 1511
	}
	for cut := 300; cut < int(r.FooterAt.Off); cut += step {
		tree.Put("t", intact[:cut])
		back, found, err := recoverReader(t.Context(), format.Target{Tree: tree, Name: "t"},
			format.OpenOptions{Opts: map[string]string{"schema": "intact"}})
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		n := 0
		for g := range r.Footer.RowGroups {
			if r.ChunkSpan(g, 1).End() <= int64(cut) {
				n += 20
			}
		}
		if names := back.Schema().String(); !back.Schema().HasField("blob") {
			t.Fatalf("cut at %d: got schema %s, want one with blob: %v", cut, names, found)
		}
		if got := recovered(back); len(got) != n || n > 0 && !strings.HasPrefix(got[n-1], fmt.Sprintf("%d|", n-1)) {
			t.Errorf("cut at %d: got %d rows, want %d: %v", cut, len(got), n, found)
		}
	}
}

// TestRecoverOverwrittenEnd: whatever overwrites the last bytes of the footer, the rest of it and the pages yield all
// rows.
func TestRecoverOverwrittenEnd(t *testing.T) {
	intact := ourFile(t)
	tree := store.NewMemory(nil)
	for _, n := range []int{4, 8, 9, 12, 16, 30, 100} {
		for _, x := range []byte{0, 0xEE, 0xFF, 0x15, 0x19} {
			if x == 0 && n > 30 {
				// zeros end Thrift's structs: inside the row groups they make a complete footer, but not this file's
				continue
			}
			b := slices.Clone(intact)
			for i := range n {
				b[len(b)-1-i] = x
			}
			tree.Put("t", b)
			back, found, err := recoverReader(t.Context(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{})
			if err != nil {
				t.Errorf("%d bytes of %#x: %v", n, x, err)
				continue
			}
			if got := len(recovered(back)); got != 1000 || len(found) == 0 {
				t.Errorf("%d bytes of %#x: got %d rows, want 1000: %v", n, x, got, found)
			}
		}
	}
}

// TestCutGroupOfDamagedPages: what is left of the last row group is one column, and its page begins like that of a row
// group with more rows. Recovery neither returns nor reports more rows than there were.
func TestCutGroupOfDamagedPages(t *testing.T) {
	const rows, each = 209, 50
	_, b := numbers(rows, "x", "y")
	intact := written(t, map[string]string{"row-group-rows": fmt.Sprint(each), "dictionary": "false"}, b).Bytes("t")
	tree := store.NewMemory(map[string][]byte{"intact": intact})
	r, err := openReader(t.Context(), format.Target{Tree: tree, Name: "intact"}, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first, last := r.ChunkSpan(0, 0), r.ChunkSpan(rows/each, 0)
	for n := range min(first.Len, last.Len) {
		cut := slices.Clone(intact[:last.End()+n%20])
		copy(cut[last.Off:], intact[first.Off:first.Off+n])
		tree.Put("t", cut)
		back, found, err := recoverReader(t.Context(), format.Target{Tree: tree, Name: "t"},
			format.OpenOptions{Opts: map[string]string{"schema": "intact"}})
		if err != nil {
			t.Fatal(err)
		}
		total := int64(0)
		for _, g := range back.(*reader).Footer.RowGroups {
			total += g.NumRows
		}
		back.Close()
		if total < rows/each*each || total > rows {
			t.Errorf("%d bytes: %d rows in row groups, there were %d", n, total, rows)
		}
		if !slices.ContainsFunc(found, func(f region.Finding) bool {
			return f.Code == "parquet.rows.lost" && f.Lost <= rows%each
		}) {
			t.Errorf("%d bytes: found %+v", n, found)
		}
	}
}
