package cfile

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/zeebo/xxh3"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/write"
	"stoa/store"
)

// createFrom writes a table, given as Arrow's JSON, to memory.
func createFrom(sc *arrow.Schema, text string, o format.WriteOptions) (*store.Memory, format.Summary, error) {
	ctx, m := context.Background(), store.NewMemory(nil)
	w, err := create(ctx, m.Sink("t"), sc, o)
	if err != nil {
		return m, format.Summary{}, err
	}
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(text))
	if err != nil {
		return m, format.Summary{}, err
	}
	if err := w.Write(ctx, b); err != nil {
		return m, format.Summary{}, errors.Join(err, w.Abort(ctx))
	}
	sum, err := w.Close(ctx)
	return m, sum, err
}

func schemaOf(fields ...arrow.Field) *arrow.Schema { return arrow.NewSchema(fields, nil) }

func plainField(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

var nested = schemaOf(
	plainField("id", arrow.PrimitiveTypes.Int64),
	plainField("a/b", arrow.BinaryTypes.String),
	plainField("A/B", arrow.ListOf(arrow.PrimitiveTypes.Int32)),
	plainField("s", arrow.StructOf(plainField("x", arrow.PrimitiveTypes.Float64),
		plainField("t", arrow.StructOf(plainField("y", arrow.BinaryTypes.Binary))))),
)

// TestSetOfFiles: a table of several columns becomes a file for each physical column, with escaped and unique names,
// and table.json.
func TestSetOfFiles(t *testing.T) {
	m, sum, err := createFrom(nested, `[{"id":1,"a/b":"x","A/B":[1],"s":{"x":0.5,"t":{"y":null}}},{"id":2,`+
		`"a/b":null,"A/B":null,"s":{"x":null,"t":{"y":"YQ=="}}}]`, format.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"id.cfile", "a%2Fb.cfile", "A%2FB~2.cfile", "s.cfile", "s.x.cfile", "s.t.cfile", "s.t.y.cfile",
		"table.json"}
	if sum.Rows != 2 || !slices.Equal(sum.Files, files) {
		t.Errorf("got summary %+v, want 2 rows in %v", sum, files)
	}
	var total int64
	for _, n := range m.Names() {
		total += int64(len(m.Bytes(n)))
	}
	if len(m.Names()) != len(files) || total != sum.Bytes {
		t.Errorf("got files %v of %d bytes, want %d", m.Names(), total, sum.Bytes)
	}
	var set struct {
		Stoa          string
		Version, Rows int
		Schema        []byte
		Columns       []map[string]string
	}
	if err := json.Unmarshal(m.Bytes("t/table.json"), &set); err != nil {
		t.Fatal(err)
	}
	r, err := ipc.NewReader(bytes.NewReader(set.Schema))
	if err != nil || !r.Schema().Equal(nested) {
		t.Errorf("got schema %v, %v, want %v", r, err, nested)
	}
	for _, c := range set.Columns {
		checkMarks(t, m.Bytes("t/"+c["file"]), c["marks"])
		delete(c, "marks")
	}
	want := "[map[file:id.cfile path:id] map[file:a%2Fb.cfile path:a/b] map[file:A%2FB~2.cfile path:A/B] " +
		"map[file:s.cfile holds:validity path:s] map[file:s.x.cfile path:s.x] " +
		"map[file:s.t.cfile holds:validity path:s.t] map[file:s.t.y.cfile path:s.t.y]]"
	if got := fmt.Sprint(set.Columns); set.Stoa != "cfile-set" || set.Version != 2 || set.Rows != 2 || got != want {
		t.Errorf("%s\ngot columns %v\nwant %v", m.Bytes("t/table.json"), got, want)
	}
}

// checkMarks compares the marks of a file with its bytes: the sizes and hashes of pieces up to the footer's checksum.
func checkMarks(t *testing.T, file []byte, marks string) {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(marks)
	rest := file[:len(file)-16-int(binary.LittleEndian.Uint32(file[len(file)-4:]))]
	for len(b) > 0 && err == nil {
		n, k := binary.Uvarint(b)
		if k <= 0 || len(b) < k+4 || n > uint64(len(rest)) ||
			uint32(xxh3.Hash(rest[:n])) != binary.LittleEndian.Uint32(b[k:]) {
			break
		}
		b, rest = b[k+4:], rest[n:]
	}
	if err != nil || len(b) > 0 || len(rest) > 0 {
		t.Errorf("marks %s of %x: %d bytes of marks are wrong, %d bytes have none: %v", marks, file, len(b), len(rest),
			err)
	}
}

// TestOneFileOrDirectory: a table of one column becomes a file; other tables, and any table with option layout=dir,
// become a directory.
func TestOneFileOrDirectory(t *testing.T) {
	one := schemaOf(plainField("n", arrow.PrimitiveTypes.Int32))
	in := schemaOf(plainField("s", arrow.StructOf(plainField("n", arrow.PrimitiveTypes.Int32))))
	for _, c := range []struct {
		sc   *arrow.Schema
		o    format.WriteOptions
		want []string
	}{
		{one, format.WriteOptions{}, []string{"t"}},
		{one, format.WriteOptions{Dir: true}, []string{"t/n.cfile", "t/table.json"}},
		{one, format.WriteOptions{Opts: map[string]string{"layout": "dir"}}, []string{"t/n.cfile", "t/table.json"}},
		{in, format.WriteOptions{}, []string{"t/s.cfile", "t/s.n.cfile", "t/table.json"}},
		{in, format.WriteOptions{Opts: map[string]string{"null-structs": "flatten"}},
			[]string{"t/s.n.cfile", "t/table.json"}},
		{schemaOf(arrow.Field{Name: "s", Type: arrow.StructOf()}), format.WriteOptions{}, []string{"t/table.json"}},
	} {
		m, _, err := createFrom(c.sc, "[]", c.o)
		if err != nil || !slices.Equal(m.Names(), c.want) {
			t.Errorf("%v %+v: got %v, %v, want %v", c.sc, c.o, m.Names(), err, c.want)
		}
	}
}

// TestNullStructs: by option, null structs are stored in a column of bools, or refused, or their fields become null.
func TestNullStructs(t *testing.T) {
	sc := schemaOf(plainField("s", arrow.StructOf(plainField("x", arrow.PrimitiveTypes.Int32),
		arrow.Field{Name: "y", Type: arrow.BinaryTypes.String})))
	text := `[{"s":{"x":1,"y":"a"}},{"s":null},{"s":{"x":null,"y":"b"}}]`
	m, _, err := createFrom(sc, text, format.WriteOptions{Opts: map[string]string{"checksums": "false",
		"plain-metadata": "true"}})
	// 3 values from row 0 on: a literal run of bits, 101
	if s := m.Bytes("t/s.cfile"); err != nil || !bytes.HasPrefix(s[12:], unhex("03000000 00000000 03 05")) {
		t.Errorf("validity: got %x, %v", s, err)
	}
	m, _, err = createFrom(sc, text, format.WriteOptions{Opts: map[string]string{"null-structs": "refuse"}})
	if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "s.x: row 1: ") || len(m.Names()) != 0 {
		t.Errorf("refuse: got %v, files %v, want class Unsupported with row 1 and none", err, m.Names())
	}
	m, _, err = createFrom(sc, text, format.WriteOptions{Opts: map[string]string{"null-structs": "flatten",
		"checksums": "false", "encoding": "plain", "plain-metadata": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	// x is 1, null, null; y is a, null, b
	if x := m.Bytes("t/s.x.cfile"); !bytes.HasPrefix(x[12:], unhex("03 02 03 01  01000000 00000000 01000000")) {
		t.Errorf("s.x: got %x", x)
	}
	if y := m.Bytes("t/s.y.cfile"); !bytes.HasPrefix(y[12:],
		unhex("03 02 03 05  00000000 02000000 0e000000 6162 00 0c 0d 0000")) {
		t.Errorf("s.y: got %x", y)
	}
}

// TestUnsupportedColumns: types that a CFile cannot hold are refused with the column's name, before a file is created.
func TestUnsupportedColumns(t *testing.T) {
	i32 := arrow.PrimitiveTypes.Int32
	for _, typ := range []arrow.DataType{
		arrow.MapOf(arrow.BinaryTypes.String, i32), arrow.ListOf(arrow.ListOf(i32)),
		arrow.ListOf(arrow.StructOf(plainField("x", i32))),
		arrow.Null, arrow.DenseUnionOf([]arrow.Field{plainField("x", i32)}, []arrow.UnionTypeCode{0}),
		&arrow.Decimal256Type{Precision: 60}, &arrow.Decimal128Type{Precision: 5, Scale: -2},
		arrow.FixedWidthTypes.MonthInterval, arrow.FixedWidthTypes.MonthDayNanoInterval,
		&arrow.DictionaryType{IndexType: i32, ValueType: arrow.StructOf(plainField("x", i32))},
		arrow.ListOf(arrow.BinaryTypes.StringView),
	} {
		sc := schemaOf(plainField("ok", i32), plainField("s", arrow.StructOf(plainField("bad", typ))))
		m, _, err := createFrom(sc, "[]", format.WriteOptions{})
		if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "s.bad") || len(m.Names()) != 0 {
			t.Errorf("%v: got %v, files %v, want class Unsupported with the column and none", typ, err, m.Names())
		}
	}
}

// TestCreateOptions: wrong options are refused before a file is created, others reach their columns.
func TestCreateOptions(t *testing.T) {
	sc := schemaOf(plainField("n", arrow.PrimitiveTypes.Int32), plainField("s.t", arrow.BinaryTypes.String),
		plainField("d", arrow.PrimitiveTypes.Float64))
	for _, c := range []struct {
		opts map[string]string
		want string
	}{
		{map[string]string{"colour": "red"}, `no option "colour"`},
		{map[string]string{"encoding": "gzip"}, "encoding=gzip"},
		{map[string]string{"encoding.x": "plain"}, `no column "x"`},
		{map[string]string{"colour.n": "plain"}, `no option "colour.n"`},
		{map[string]string{"layout.n": "dir"}, `no option "layout.n"`},
		{map[string]string{"encoding.n": "dict"}, `column "n": encoding dict is not defined`},
		{map[string]string{"encoding": "group-varint", "version": "1"}, `is defined for the type of no column`},
		{map[string]string{"block-size": "0"}, "block-size=0"},
		{map[string]string{"block-size": "many"}, "block-size=many"},
		{map[string]string{"value-index.d": "true"}, `column "d": double has no order of keys`},
		{map[string]string{"layout": "flat"}, "layout=flat"},
	} {
		m, _, err := createFrom(sc, "[]", format.WriteOptions{Opts: c.opts})
		if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.want) || len(m.Names()) != 0 {
			t.Errorf("%v: got %v, want class Invalid with %q", c.opts, err, c.want)
		}
	}
	// encoding (field 2) and compression (6) in the footers, and the magic of the version
	m, _, err := createFrom(sc, "[]", format.WriteOptions{Opts: map[string]string{"encoding": "rle",
		"compression": "lz4", "compression.s.t": "zlib", "encoding.s.t": "prefix", "version.s.t": "1",
		"plain-metadata": "true", "positional-index": "false"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"t/n.cfile":   "0805 1004 1800 3003 4001 5001 6b756475 63666c32 0c000000",
		"t/s.t.cfile": "0808 1002 1800 3004 4001 6b756475 6366696c 0a000000",
	} {
		if !bytes.HasSuffix(m.Bytes(name), unhex(want)) {
			t.Errorf("%s: got %x, want suffix %s", name, m.Bytes(name), want)
		}
	}
}

// TestFieldMetadata: field metadata of the kind that the reader sets is used, unless an option is given or it does not
// fit the type.
func TestFieldMetadata(t *testing.T) {
	meta := func(kv ...string) arrow.Metadata {
		return arrow.MetadataFrom(map[string]string{kv[0]: kv[1], kv[2]: kv[3], kv[4]: kv[5]})
	}
	with := func(name string, typ arrow.DataType, kv ...string) arrow.Field {
		return arrow.Field{Name: name, Type: typ, Nullable: true, Metadata: meta(kv...)}
	}
	sc := schemaOf(
		with("a", arrow.BinaryTypes.String, "stoa.encoding", "prefix", "stoa.compression", "zlib",
			"stoa.block_size", "700"),
		with("b", arrow.BinaryTypes.String, "stoa.encoding", "RLE_DICTIONARY", "stoa.compression", "brotli",
			"stoa.block_size", "-"),
		with("c", arrow.BinaryTypes.String, "stoa.encoding", "plain", "stoa.type", "varchar", "stoa.length", "7"),
		with("d", &arrow.Decimal128Type{Precision: 38}, "stoa.encoding", "plain", "stoa.type", "int128", "x", "y"),
		with("e", &arrow.Decimal128Type{Precision: 5, Scale: 1}, "stoa.encoding", "plain", "stoa.type", "decimal64",
			"x", "y"),
	)
	leaves, err := write.LeavesOf(sc, false)
	if err != nil {
		t.Fatal(err)
	}
	o, err := write.ParseCreateOptions(map[string]string{"compression.c": "none"}, leaves)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"string prefix zlib 700 0", "string auto default 0 0", "varchar plain none 0 7", "int128 plain default 0 0",
		"decimal64 plain default 0 0",
	} {
		w := o.ForLeaf(&leaves[i], true)
		if got := fmt.Sprintf("%s %s %s %d %d", leaves[i].Col.Type, w.Encoding, w.Compression, w.BlockSize,
			leaves[i].Col.Length); got != want {
			t.Errorf("%s: got %s, want %s", leaves[i].Path, got, want)
		}
	}
}

// TestStoredField: the footer stores the properties of a field that the type does not imply; with plain-metadata it
// stores none.
func TestStoredField(t *testing.T) {
	f := arrow.Field{Name: "price", Type: &arrow.Decimal128Type{Precision: 7, Scale: 2}}
	for opt, want := range map[string]string{"false": `{"name":"price","nullable":false,"precision":7,"scale":2}`,
		"true": ""} {
		m, _, err := createFrom(schemaOf(f), "[]", format.WriteOptions{Opts: map[string]string{"plain-metadata": opt}})
		if err != nil {
			t.Fatal(err)
		}
		b := m.Bytes("t")
		i := bytes.Index(b, []byte("stoa.field"))
		if want == "" && i >= 0 || want != "" && !bytes.Contains(b, []byte(want)) {
			t.Errorf("plain-metadata=%s: got %q, want %q in it", opt, b, want)
		}
	}
	for typ, want := range map[arrow.DataType]string{
		&arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "Europe/Rome"}: `"type":"timestamp[ns, tz=Europe/Rome]"`,
		&arrow.FixedSizeBinaryType{ByteWidth: 3}:                              `"type":"fixed_size_binary[3]"`,
		arrow.BinaryTypes.LargeString:                                         `"type":"large_utf8"`,
	} {
		m, _, err := createFrom(schemaOf(plainField("x", typ)), "[]", format.WriteOptions{})
		if err != nil || !bytes.Contains(m.Bytes("t"), []byte(want)) {
			t.Errorf("%v: got %q, %v, want %s in it", typ, m.Bytes("t"), err, want)
		}
	}
}

// TestManyColumnsAtOnce: several goroutines write the same bytes as one.
func TestManyColumnsAtOnce(t *testing.T) {
	ctx := context.Background()
	var fields []arrow.Field
	var cols []arrow.Array
	b := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range 10000 {
		b.Append(int64(i * i))
	}
	arr := b.NewArray()
	for i := range 9 {
		fields = append(fields, plainField(fmt.Sprint("c", i), arrow.PrimitiveTypes.Int64))
		cols = append(cols, arr)
	}
	sc := schemaOf(fields...)
	m := store.NewMemory(nil)
	w, err := create(ctx, m.Sink("t"), sc, format.WriteOptions{Opts: map[string]string{"plain-metadata": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	batch := array.NewRecordBatch(sc, cols, 10000)
	for range 3 {
		if err := w.Write(ctx, batch); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	want, _, err := writeAll(write.Field{Type: block.Int64, Nullable: true}, write.WriterOptions{}, arr, arr, arr)
	for i := range 9 {
		if got := m.Bytes(fmt.Sprintf("t/c%d.cfile", i)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("column %d differs (%v)", i, err)
		}
	}
}
