package carbon

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/codec"
	"stoa/store"
	"stoa/wire"
)

// The tables of formats 1 and 2 of the corpus judge the writer: the rows that went into them are loaded again, with the same schema,
// and must become the same dictionaries, pages, indexes and keys as CarbonData 1.0.0 made of them.

// oldRows reads rows of texts; lists and structs have their parts parted by $.
func oldRows(t testing.TB, name string, schema *tableSchema) arrow.RecordBatch {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		t.Fatal(err)
	}
	roots, _, err := columnTree(schema.stored(), fault.Span{}, "")
	if err != nil {
		t.Fatal(err)
	}
	var fields []arrow.Field
	for _, r := range roots {
		fields = append(fields, arrow.Field{Name: r.name, Type: textsOf(r), Nullable: true})
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for d := json.NewDecoder(z); ; {
		var row map[string]*string
		if err := d.Decode(&row); errors.Is(err, io.EOF) {
			return b.NewRecordBatch()
		} else if err != nil {
			t.Fatal(err)
		}
		for i, r := range roots {
			appendParts(b.Field(i), row[r.name])
		}
	}
}

// textsOf is a column's type with texts for values.
func textsOf(c *column) arrow.DataType {
	switch c.typ {
	case typeArray:
		return arrow.ListOf(textsOf(c.kids[0]))
	case typeStruct:
		var fields []arrow.Field
		for _, k := range c.kids {
			fields = append(fields, arrow.Field{Name: k.leafName(), Type: textsOf(k), Nullable: true})
		}
		return arrow.StructOf(fields...)
	}
	return arrow.BinaryTypes.String
}

func appendParts(b array.Builder, s *string) {
	if s == nil {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(*s)
	case *array.ListBuilder:
		b.Append(true)
		for _, part := range strings.Split(*s, "$") {
			appendParts(b.ValueBuilder(), &part)
		}
	case *array.StructBuilder:
		b.Append(true)
		for i, part := range strings.Split(*s, "$") {
			appendParts(b.FieldBuilder(i), &part)
		}
	}
}

// loadAgain makes a table with the schema of another and loads rows into it.
func loadAgain(t testing.TB, real string, version int, opts map[string]string, way DictionaryWay, loads ...arrow.RecordBatch) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "again")
	if err := os.MkdirAll(filepath.Join(dir, "Metadata"), 0o777); err != nil {
		t.Fatal(err)
	}
	schema, err := os.ReadFile(filepath.Join(real, "Metadata", "schema"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "Metadata", "schema"), schema, 0o666), os.WriteFile(statusPath(dir), []byte("[]"), 0o666)); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"version": fmt.Sprint(version)}
	for k, v := range opts {
		all[k] = v
	}
	for _, rows := range loads {
		way.Rows = func() iter.Seq2[arrow.RecordBatch, error] {
			return func(yield func(arrow.RecordBatch, error) bool) { yield(rows, nil) }
		}
		l, err := BeginLoad(t.Context(), dir, rows.Schema(), LoadOptions{Opts: all, Dictionary: way})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Write(t.Context(), rows); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// oldPageText is all of a page, its bytes decompressed.
func oldPageText(t testing.TB, f *dataFile, g int, col *column) string {
	t.Helper()
	c, err := f.readChunk(t.Context(), g, col)
	if err != nil {
		t.Fatal(err)
	}
	p := &c.pages[0]
	at := [3]int64{p.dataAt, p.rowidAt, p.rleAt}
	if f.version == 2 {
		at[0] = c.at.End()
		at[1] = at[0] + int64(p.dataLen)
		at[2] = at[1] + int64(p.rowidLen)
	}
	piece := func(i int, n int32) []byte {
		if n == 0 {
			return nil
		}
		b, err := f.read(t.Context(), at[i], int64(n), "")
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	bare := func(b []byte) []byte {
		raw, err := codec.Expand("snappy", b, 1<<30, func(n int) []byte { return make([]byte, n) })
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	var nulls []byte
	if p.presence != nil {
		if nulls = p.presence.bits; f.version == 2 {
			nulls = bare(nulls)
		}
	}
	return fmt.Sprintf("encoders %s sort %d\nrowids %x\nruns %x\nnulls %x\nmeta %x\ndata %x", p.encoders, p.sort, piece(1, p.rowidLen), piece(2, p.rleLen), nulls, p.meta, bare(piece(0, p.dataLen)))
}

func indexText(x *blockletIndex) string {
	return fmt.Sprintf("min %x\nmax %x\nstart %x\nend %x", x.minMax.min, x.minMax.max, x.start, x.end)
}

// compareOld compares two data files and gives how many pages there are and how many are equal.
func compareOld(t *testing.T, real, ours string) (pages, equal int) {
	t.Helper()
	a, err := openFile(t.Context(), store.Local{}, real, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := openFile(t.Context(), store.Local{}, ours, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if x, y := columnsText(a), columnsText(b); x != y {
		t.Errorf("the columns differ:\n%s\n%s", x, y)
	}
	if x, y := fmt.Sprint(a.footer.version, a.footer.rows, a.footer.segment), fmt.Sprint(b.footer.version, b.footer.rows, b.footer.segment); x != y {
		t.Errorf("version, rows, segment_info %s, the real writer: %s", y, x)
	}
	if len(a.footer.blocklet) != len(b.footer.blocklet) {
		t.Fatalf("%d blocklets, the real writer makes %d", len(b.footer.blocklet), len(a.footer.blocklet))
	}
	for g := range a.footer.blocklet {
		if x, y := indexText(&a.footer.index[g]), indexText(&b.footer.index[g]); x != y {
			t.Errorf("blocklet %d: %s", g, unlike(y, x))
		}
		for i, col := range a.columns {
			pages++
			if x, y := oldPageText(t, a, g, col), oldPageText(t, b, g, b.columns[i]); x == y {
				equal++
			} else {
				t.Errorf("%s: blocklet %d: %s", col.name, g, unlike(y, x))
			}
		}
	}
	return pages, equal
}

// sameFiles compares files of two directories byte for byte.
func sameFiles(t *testing.T, real, ours string, wanted func(name string) bool) (n int) {
	t.Helper()
	entries, err := os.ReadDir(real)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !wanted(e.Name()) {
			continue
		}
		n++
		x, err := os.ReadFile(filepath.Join(real, e.Name()))
		y, err2 := os.ReadFile(filepath.Join(ours, e.Name()))
		if err != nil || err2 != nil || !bytes.Equal(x, y) {
			t.Errorf("%s: %d bytes, the real one has %d: %v %v\n%.200x\n%.200x", e.Name(), len(y), len(x), err, err2, y, x)
		}
	}
	return n
}

func isDictionary(name string) bool {
	return slices.Contains([]string{dictExt, dictMetaExt, sortExt}, filepath.Ext(name))
}

// TestOldPagesOfTheRealWriter loads the rows of every table of formats 1 and 2 of the corpus anew and compares dictionaries, pages and
// indexes.
func TestOldPagesOfTheRealWriter(t *testing.T) {
	dir := os.Getenv("STOA_CORPUS")
	if dir == "" {
		t.Skip("STOA_CORPUS is not set")
	}
	tables, pages, equal, dicts := 0, 0, 0, 0
	for _, version := range []int{1, 2} {
		for name, opts := range map[string]map[string]string{"basic": {"measures": "1.0"}, "basic_b2000": {"measures": "1.0", "blocklet-rows": "2000"}, "complex": {"measures": "1.0"}} {
			t.Run(fmt.Sprint("v", version, "/", name), func(t *testing.T) {
				root := filepath.Join(dir, "carbon", fmt.Sprint("v", version), name)
				real, err := filepath.Glob(filepath.Join(root, "default", "*"))
				if err != nil || len(real) != 1 {
					t.Fatal(real, err)
				}
				schema, err := readTableSchema(real[0])
				if err != nil {
					t.Fatal(err)
				}
				rows := oldRows(t, filepath.Join(root, "expected.jsonl.gz"), schema)
				var loads []arrow.RecordBatch
				segments, err := filepath.Glob(filepath.Join(real[0], "Fact", "Part0", "Segment_*"))
				if err != nil || len(segments) == 0 {
					t.Fatal(segments, err)
				}
				each := rows.NumRows() / int64(len(segments))
				for i := range segments {
					loads = append(loads, rows.NewSlice(int64(i)*each, int64(i+1)*each))
				}
				ours := loadAgain(t, real[0], version, opts, DictionaryWay{}, loads...)
				dicts += sameFiles(t, filepath.Join(real[0], "Metadata"), filepath.Join(ours, "Metadata"), isDictionary)
				for i, s := range segments {
					p, q := compareSegments(t, s, filepath.Join(ours, "Fact", "Part0", fmt.Sprint("Segment_", i)))
					pages, equal = pages+p, equal+q
				}
				tables++
			})
		}
	}
	t.Logf("COUNT %d tables of formats 1 and 2 loaded anew: %d of %d pages are those of the real writer; %d dictionary files byte for byte", tables, equal, pages, dicts)
	if tables != 6 || dicts == 0 {
		t.Errorf("%d tables, the manifest has 6; %d dictionary files", tables, dicts)
	}
}

func compareSegments(t *testing.T, real, ours string) (pages, equal int) {
	t.Helper()
	var files [2][]string
	for i, d := range []string{real, ours} {
		for _, ext := range []string{dataExt, indexExt} {
			names, err := filepath.Glob(filepath.Join(d, "*"+ext))
			if err != nil || len(names) != 1 {
				t.Fatal(d, names, err)
			}
			files[i] = append(files[i], names[0])
		}
	}
	var index [2]indexFile
	for i := range index {
		b, err := os.ReadFile(files[i][1])
		if err != nil {
			t.Fatal(err)
		}
		index[i] = parseIndex(wire.NewCursor(b, fault.Span{Object: files[i][1]}, ""))
	}
	if x, y := fmt.Sprintf("%+v", index[0].header), fmt.Sprintf("%+v", index[1].header); x != y {
		t.Errorf("index header %s\nthe real one: %s", y, x)
	}
	if len(index[0].blocks) != 1 || len(index[1].blocks) != 1 || indexText(&index[0].blocks[0].index) != indexText(&index[1].blocks[0].index) || index[0].blocks[0].rows != index[1].blocks[0].rows {
		t.Errorf("index: %+v, the real one: %+v", index[1].blocks, index[0].blocks)
	}
	return compareOld(t, files[0][0], files[1][0])
}

func TestOldTime(t *testing.T) {
	for _, ms := range []int64{0, 1795298710763, 1480000000009} {
		if got, ok := millis(oldTime(ms)); !ok || got != ms {
			t.Errorf("%d is written %s and read %d", ms, oldTime(ms), got)
		}
	}
	if s := oldTime(1480000000000); s != "24-11-2016 15:06:40:000" { // as the corpus has it
		t.Error(s)
	}
}
