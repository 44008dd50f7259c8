package cfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
	"stoa/format/cfile/internal/write"
	"stoa/store"
	"stoa/vec"
)

// bytesOfHex parses hexadecimal text with blanks.
func bytesOfHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// decodeBlock decodes a block that is neither compressed nor has a checksum, and returns the values as Arrow prints
// them.
func decodeBlock(t testing.TB, f block.Footer, raw []byte) (string, error) {
	t.Helper()
	x := &columnfile.File{Footer: f, At: fault.Span{Object: "f", Len: 1 << 20}, Limits: format.Limits{}.WithDefaults()}
	v, err := vec.New(x.Field(columnfile.ReadOptions{Scale: -1}).Type, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	task := format.Task{Page: format.Page{Spans: []fault.Span{{Object: "f", Off: 100, Len: int64(len(raw))}},
		Own: &columnfile.DataBlock{First: -1, Rows: -1}},
		N: -1, Bytes: [][]byte{raw}, Scratch: &vec.Arena{}, Limits: x.Limits}
	if _, err := x.Decode(&task, v, nil); err != nil {
		return "", err
	}
	a, err := v.Emit(v.Len())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	return fmt.Sprint(a), nil
}

// TestBlocksByHand: the blocks of the documents' examples, written by hand.
func TestBlocksByHand(t *testing.T) {
	for _, x := range []struct {
		name, block, want string
		footer            block.Footer
	}{
		{ // "4 items, the first and last are nulls"; the document's bare bits 0110 are a run in the files
			"nullable, of the v1 document", `04 02 03 06  02000000 00000000 14000000 1e000000`, "[(null) 20 30 (null)]",
			block.Footer{Type: block.Int32, Encoding: block.Plain, Nullable: true},
		},
		{
			"array example A", `0a 07  03 05 ff 02  0f 03 0200 0000 0000 0200 0400 0100 0100  02 03 7b
				09000000 00000000 01000000 02000000 03000000 04000000 05000000 06000000 07000000 08000000 09000000`,
			"[[1 2] [] (null) [3 4] [5 6 7 8] [(null)] [9]]",
			block.Footer{Type: block.Int32, Encoding: block.Plain, Incompatible: block.FeatureArrayBlocks},
		},
		{
			"array example B", `03 04  02 03 06  09 03 0100 0000 0000 0200  02 03 0d  02000000 00000000 04000000 ` +
				`02000000`,
			"[[(null)] (null) [] [4 2]]",
			block.Footer{Type: block.Int32, Encoding: block.Plain, Incompatible: block.FeatureArrayBlocks},
		},
		{
			"array example C", `0a 01  03 05 fb 02  03 03 0a00  02 03 01
				08000000 00000000 02000000 03000000 06000000 08000000 05000000 03000000 01000000 00000000`,
			"[[2 3 (null) 6 8 5 3 1 (null) 0]]",
			block.Footer{Type: block.Int32, Encoding: block.Plain, Incompatible: block.FeatureArrayBlocks},
		},
		{ // header: 5 values, the smallest is 1000, ordinal 7; groups relative to the smallest, the last one padded
			"group varint, of the v1 document", `10 05 e803 07 00  06 00 01 2c01 880d01  00 00 00 00 00`,
			"[1000 1001 1300 70000 1000]", block.Footer{Type: block.Uint32, Encoding: block.GroupVarint},
		},
		{ // header: 3 values, ordinal 0, restart interval 2; one restart point, at the third entry
			"prefix", `00 03 00 02 00  00 03 616263  02 01 78  00 01 79  0e000000 01000000`,
			"[\"abc\" \"abx\" \"y\"]", block.Footer{Type: block.String, Encoding: block.Prefix},
		},
		{ // ordinal, count, offsets at 15; "a", "", "bc"
			"plain binary", `00000000 03000000 0f000000  61 6263  00 0c 0d 0d 00`,
			"[\"a\" \"\" \"bc\"]", block.Footer{Type: block.String, Encoding: block.Plain},
		},
		{"plain bool", `0a000000 00000000 05 02`, "[true false true false false false false false false true]",
			block.Footer{Type: block.Bool, Encoding: block.Plain}},
		{"rle bool", `0a000000 00000000 0a01 0a00`, "[true true true true true false false false false false]",
			block.Footer{Type: block.Bool, Encoding: block.RLE}},
		{"rle int16, negative", `03000000 00000000 06 feff`, "[-2 -2 -2]",
			block.Footer{Type: block.Int16, Encoding: block.RLE}},
		{"decimal32 is widened with its sign", `02000000 00000000 ffffffff 7b000000`, "[-1 123]",
			block.Footer{Type: block.Decimal32, Encoding: block.Plain}},
		{"all null", `03 02 06 00  00000000 00000000`, "[(null) (null) (null)]",
			block.Footer{Type: block.Int8, Encoding: block.Plain, Nullable: true}},
		{"nullable bool", `05 02 03 16  03000000 00000000 05`, "[(null) true false (null) true]",
			block.Footer{Type: block.Bool, Encoding: block.Plain, Nullable: true}},
	} {
		got, err := decodeBlock(t, x.footer, bytesOfHex(t, x.block))
		if err != nil || got != x.want {
			t.Errorf("%s: got %s %v, want %s", x.name, got, err, x.want)
		}
	}
}

// TestBrokenBlocks: errors have the place and the reason.
func TestBrokenBlocks(t *testing.T) {
	for _, x := range []struct {
		name, block, want string
		footer            block.Footer
	}{
		{"too few values", `02000000 00000000 14000000`,
			"f[108+4]: corrupt: values: expected 8 bytes of values, found 4",
			block.Footer{Type: block.Int32, Encoding: block.Plain}},
		{"more ones than values", `02 02 03 03  01000000 00000000 07`,
			"f[102+2]: corrupt: bitmap: expected 1 ones, as many as the block has values, found 2",
			block.Footer{Type: block.Int8, Encoding: block.Plain, Nullable: true}},
		{"offsets fall", `00000000 02000000 0e000000  6161  00 0d 0c 00 00`,
			"corrupt: offsets/offset[1]: 12 after 13", block.Footer{Type: block.String, Encoding: block.Plain}},
		{"a word without a dictionary", `01000000 00000000 00000000 14000000 00000000 01000000`,
			"corrupt: found codes of a dictionary, which the file does not have",
			block.Footer{Type: block.String, Encoding: block.Dict}},
		{"an unknown mode", `03000000 00000000`, "f[100+4]: corrupt: mode: expected codes (1) or strings (2), found 3",
			block.Footer{Type: block.String, Encoding: block.Dict}},
		{"bitshuffle: wrong size", `00000000 08000000 15000000 08000000 04000000`,
			"f[108+4]: corrupt: size: expected the size of the block, 20, found 21",
			block.Footer{Type: block.Int32, Encoding: block.BitShuffle}},
	} {
		_, err := decodeBlock(t, x.footer, bytesOfHex(t, x.block))
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: got %v, want %s", x.name, err, x.want)
		}
	}
}

// TestRunsAreLimited: the memory for a few bytes of runs that expand to very many rows is limited.
func TestRunsAreLimited(t *testing.T) {
	raw := bytesOfHex(t, `ffffff7f 00000000 feffffff0f 00000000`)
	if _, err := decodeBlock(t, block.Footer{Type: block.Int32, Encoding: block.RLE}, raw); err == nil ||
		!strings.Contains(err.Error(), "limit") {
		t.Error(err)
	}
}

func TestKeys(t *testing.T) {
	cols := []block.Type{block.Int32, block.String, block.Binary, block.Int8, block.String}
	values := [][]byte{{0xff, 0xff, 0xff, 0xff}, []byte("a\x00b"), {}, {1}, []byte("x\x00")}
	want := bytesOfHex(t, `7fffffff  61 0001 62 0000  0000  81  78 00`)
	var key []byte
	for i, c := range cols {
		var err error
		if key, err = block.AppendKey(key, c, values[i], i == len(cols)-1); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(key, want) {
		t.Fatalf("%x, want %x", key, want)
	}
	back, err := block.DecodeKey(key, cols)
	if err != nil {
		t.Fatal(err)
	}
	for i := range values {
		if !bytes.Equal(back[i], values[i]) {
			t.Errorf("%x, want %x", back[i], values[i])
		}
	}
	for _, bad := range []string{"7fffffff", "7fffff", "7fffffff6100", "7fffffff610002"} {
		if _, err := block.DecodeKey(bytesOfHex(t, bad), cols); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
	if _, err := block.AppendKey(nil, block.Double, make([]byte, 8), true); err == nil {
		t.Error("a double is no key")
	}
}

// TestOrderedVarints: SQLite 4's varints, the smallest and the largest of each length.
func TestOrderedVarints(t *testing.T) {
	for s, want := range map[string]uint64{"00": 0, "f0": 240, "f100": 240, "f101": 241, "f8ff": 2287,
		"f90000": 2288, "f9ffff": 67823,
		"fa010000": 1 << 16, "fb01000000": 1 << 24, "ff0102030405060708": 0x0102030405060708} {
		b := block.Block{Data: bytesOfHex(t, s)}
		c := b.Cursor("")
		if got := columnfile.ParseOrderedVarint(c, "x"); got != want || c.Err() != nil || c.Left() != 0 {
			t.Errorf("%s is %d %v, want %d", s, got, c.Err(), want)
		}
	}
}

// TestDirectory: a table of several columns is written to a directory, and read as it was written; in version 1 the
// fields of structs are columns.
func TestDirectory(t *testing.T) {
	ctx := context.Background()
	sc := arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int32},
		{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "t", Type: arrow.FixedWidthTypes.Time64us, Nullable: true},
			arrow.Field{Name: "d", Type: &arrow.Decimal128Type{Precision: 7, Scale: 2}})},
	}, nil)
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(
		`[{"n":1,"s":{"t":"00:00:01.000005","d":"12.50"}},{"n":2,"s":{"t":null,"d":"-0.01"}}]`))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Release()
	tree := store.NewMemory(nil)
	w, err := create(ctx, tree.Sink("dir"), sc, format.WriteOptions{Rows: -1,
		Opts: map[string]string{"null-structs": "refuse"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(ctx, rec); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	tg := format.Target{Tree: tree, Name: "dir"}
	if m, err := probe(ctx, tg); m != format.Certain || err != nil {
		t.Fatal(m, err)
	}
	r, err := open(ctx, tg, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := ""
	for _, f := range r.Schema().Fields() {
		got += fmt.Sprintf("%s %s %t;", f.Name, f.Type, f.Nullable)
	}
	if want := "n int32 false;s.t time64[us] true;s.d decimal(7, 2) false;"; got != want {
		t.Errorf("schema %s, want %s", got, want)
	}
	for i, want := range []string{"[1 2]", "[1000005 (null)]", "[12.5 -0.01]"} {
		it, err := (&Reader{f: r.(*table).files[i].File, field: r.Schema().Field(i)}).SeekToOrdinal(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		a, err := it.Next(ctx, 10)
		if err != nil || fmt.Sprint(a) != want {
			t.Errorf("column %d is %v %v, want %s", i, a, err, want)
		}
	}
	for f := range verify(ctx, tg, format.OpenOptions{}) {
		t.Error(f)
	}
	tree.Put("dir/n.cfile", tree.Bytes("dir/s.d.cfile")[:40])
	if _, err := open(ctx, tg, format.OpenOptions{}); err == nil || !strings.Contains(err.Error(), "dir/n.cfile") {
		t.Error(err)
	}
}

// TestManyRows: blocks of very many rows are read in pages of at most 128 Ki rows.
func TestManyRows(t *testing.T) {
	const n = 300_000
	bld := array.NewBooleanBuilder(memory.DefaultAllocator)
	for i := range n {
		if i%1000 == 7 {
			bld.AppendNull()
		} else {
			bld.Append(i >= 200_000)
		}
	}
	arr := bld.NewArray()
	var out bytes.Buffer
	w, err := write.NewWriter(&out, write.Field{Name: "x", Type: block.Bool, Nullable: true},
		write.WriterOptions{Encoding: block.RLE})
	if err == nil {
		err = w.Append(arr)
	}
	if err == nil {
		_, err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []int64{0, 131071, 131072, 250_000, n - 1, n} {
		it, err := r.SeekToOrdinal(context.Background(), from)
		if err != nil {
			t.Fatal(err)
		}
		at := from
		for {
			a, err := it.Next(context.Background(), 1<<20)
			if err != nil {
				break
			}
			if a.Len() > block.MaxSub {
				t.Fatalf("%d values at once", a.Len())
			}
			for i := range a.Len() {
				k := int(at) + i
				if a.IsNull(i) != (k%1000 == 7) || a.IsValid(i) && a.(*array.Boolean).Value(i) != (k >= 200_000) {
					t.Fatalf("row %d is wrong", k)
				}
			}
			at += int64(a.Len())
		}
		if at != n {
			t.Errorf("from %d to %d", from, at)
		}
	}
}

// TestWorkedExample: the file of the package comment; its checksums were computed by another program.
func TestWorkedExample(t *testing.T) {
	data := bytesOfHex(t, `6b756475 63666c32 00000000 02943ad3
		04 02 0306 02000000 00000000 14000000 1e000000 c6f8a75d
		04 00000000 10 18 00000000 08011000 04000000 33c9f219
		8f1d7fa0 0805 1001 1804 22060a0408281017 3001 4001 5001 6b756475 63666c32 14000000`)
	r, err := NewReader(bytes.NewReader(data), int64(len(data)), format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	it, err := r.SeekToOrdinal(context.Background(), 1)
	if err != nil {
		t.Fatal(err)
	}
	a, err := it.Next(context.Background(), 2)
	if err != nil || fmt.Sprint(a) != "[20 30]" || it.Ordinal() != 3 || r.Len() != 4 {
		t.Error(a, err, it.Ordinal(), r.Len())
	}
	tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f": data}), Name: "f"}
	for f := range verify(context.Background(), tg, format.OpenOptions{}) {
		t.Error(f)
	}
}

// TestNativeSeek: seeks find every value and, for keys between values, the next value, inside blocks and at their ends.
func TestNativeSeek(t *testing.T) {
	ctx := context.Background()
	bld := array.NewInt64Builder(memory.DefaultAllocator)
	const n = 1000
	for i := range n {
		bld.Append(int64(i-300) * 10)
	}
	arr := bld.NewArray()
	var out bytes.Buffer
	w, err := write.NewWriter(&out, write.Field{Name: "x", Type: block.Int64},
		write.WriterOptions{Encoding: block.Plain, BlockSize: 512, IndexBlockSize: 64, ValueIndex: true})
	if err == nil {
		err = w.Append(arr)
	}
	if err == nil {
		_, err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for v := int64(-3012); v < 7015; v += 3 {
		key, err := block.AppendKey(nil, block.Int64, binary.LittleEndian.AppendUint64(nil, uint64(v)), true)
		if err != nil {
			t.Fatal(err)
		}
		want := min(max((v+3000+9)/10, 0), n)
		it, exact, err := r.SeekAtOrAfter(ctx, key)
		if err != nil || it.Ordinal() != want || exact != (v%10 == 0 && v >= -3000 && v <= 6990) {
			t.Fatalf("%d: %v, want %d; exact %v, %v", v, it.Ordinal(), want, exact, err)
		}
		if want == n {
			continue
		}
		a, err := it.Next(ctx, 1)
		if err != nil || a.(*array.Int64).Value(0) != (want-300)*10 {
			t.Fatalf("%d: %v %v", v, a, err)
		}
	}
	if _, err := r.SeekToOrdinal(ctx, n+1); err == nil {
		t.Error("a seek past the end is no error")
	}
}

// TestDecodeDoesNotAllocate: decoding a page allocates nothing once vector and arena have grown to their size.
func TestDecodeDoesNotAllocate(t *testing.T) {
	bld := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range 20000 {
		if bld.Append(int64(i)); i%7 == 0 {
			bld.AppendNull()
		}
	}
	var out bytes.Buffer
	w, err := write.NewWriter(&out, write.Field{Name: "x", Type: block.Int64, Nullable: true},
		write.WriterOptions{Compression: block.LZ4, BlockSize: 64 << 10})
	if err == nil {
		err = w.Append(bld.NewArray())
	}
	if err == nil {
		_, err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	data := out.Bytes()
	ctx := context.Background()
	f, err := columnfile.OpenFile(ctx, sourceOf(data), fault.Span{Object: "f", Len: int64(len(data))},
		format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.NewChunk(ctx, vec.Range{To: f.Footer.NumValues})
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	v, err := vec.New(arrow.PrimitiveTypes.Int64, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	task := format.Task{Page: p, N: p.Entries, Bytes: [][]byte{data[p.Spans[0].Off:p.Spans[0].End()]},
		Scratch: &vec.Arena{}, Limits: f.Limits}
	got := testing.AllocsPerRun(100, func() {
		v.Truncate(0)
		task.Scratch.Reset()
		if err := c.Decode(&task, v); err != nil {
			t.Fatal(err)
		}
	})
	if got > 0 {
		t.Errorf("%v allocations a page", got)
	}
}
