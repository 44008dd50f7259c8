package redfile

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/container"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/page"
	"stoa/format/redfile/internal/table"
	"stoa/format/redfile/internal/unpack"
	"stoa/format/redfile/internal/write"
	"stoa/internal/codec"
	"stoa/internal/enc/redlevels"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
	"stoa/wire"
)

// handmade is a file of one INT32 column, assembled here rather than by the writer.
type handmade struct {
	gen      layout.Generation
	protocol thrift.Protocol
	literal  bool // the number at the end is the offset from the end
	noOffset bool // the column's metadata does not have the offset of its pages
	version  int32
	codec    layout.Compression
	encoding layout.Encoding
	typ      layout.Physical
	body     []byte // of the page, as stored
	raw      int
	crc      uint32
	values   int
	path     string // file_path of the chunk
	unknown  bool   // a page of an unknown type before the data
	empty    bool   // a row group without rows: no page
}

func le32s(vals ...int32) (b []byte) {
	for _, v := range vals {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}

func newHandmade(g layout.Generation) handmade {
	return handmade{gen: g, version: 1, body: le32s(7, -8, 9), raw: 12, values: 3, typ: layout.Int32}
}

func (h *handmade) bytes() []byte {
	out := []byte(layout.Magic)
	w := func() *thrift.Writer { return thrift.NewWriter(h.protocol) }
	if h.unknown {
		tw := w()
		p := layout.PageHeader{Kind: 77, Raw: 5, Stored: 5}
		p.Write(tw)
		out = append(append(out, tw.Encoded()...), "hello"...)
	}
	data := int64(len(out))
	if h.unknown {
		data = layout.MagicLen
	}
	tw := w()
	p := layout.PageHeader{Kind: layout.DataPage, Raw: int32(h.raw), Stored: int32(len(h.body)), CRC: h.crc,
		Values: int32(h.values), Encoding: h.encoding}
	p.Write(tw)
	if !h.empty {
		out = append(append(out, tw.Encoded()...), h.body...)
	}
	m := layout.ColumnMeta{Type: h.typ, Encodings: []layout.Encoding{h.encoding}, Path: []string{"x"}, Codec: h.codec,
		Values: int64(h.values), Raw: int64(h.raw), Stored: int64(len(h.body)), Data: data, Index: -1}
	if h.noOffset {
		m.Data = -1
	}
	at := int64(len(out))
	gen := h.gen
	if gen == layout.GenB {
		gen = layout.GenA // the same fields
	}
	tw = w()
	if h.noOffset { // can be written only here
		tw.Struct(thrift.Item)
		tw.I32(1, int32(m.Type))
		tw.List(2, thrift.I32, 1)
		tw.I32(thrift.Item, int32(h.encoding))
		tw.List(3, thrift.Bytes, 1)
		tw.String(thrift.Item, "x")
		tw.I32(4, int32(m.Codec))
		tw.I64(5, m.Values)
		tw.I32(6, 0)
		tw.I32(7, 0)
		tw.End()
	} else {
		m.Write(tw, thrift.Item, gen)
	}
	out = append(out, tw.Encoded()...)
	start := len(out)
	out = append(out, h.metadata(&m, at, gen)...)
	n := uint32(len(out) - start)
	if h.literal {
		n += layout.TailLen
	}
	return append(binary.LittleEndian.AppendUint32(out, n), layout.Magic...)
}

// metadata is FileMetaData, field by field as in the thrift files of the five days.
func (h *handmade) metadata(m *layout.ColumnMeta, at int64, gen layout.Generation) []byte {
	w := thrift.NewWriter(h.protocol)
	w.Struct(thrift.Item)
	w.I32(1, h.version)
	switch h.gen {
	case layout.GenA, layout.GenB:
		w.I64(2, int64(h.values))
		w.I32(3, 1)
	case layout.GenC:
		w.I64(2, int64(h.values))
		w.String(3, "message m { required int32 x; }")
	case layout.GenD, layout.GenE:
		w.List(2, thrift.Struct, 2)
		w.Struct(thrift.Item)
		w.String(3, "m")
		if h.gen == layout.GenD {
			w.List(4, thrift.I32, 1)
			w.I32(thrift.Item, 1)
		} else {
			w.I32(4, 1)
		}
		w.End()
		w.Struct(thrift.Item)
		w.I32(1, int32(h.typ))
		w.I32(2, 0)
		w.String(3, "x")
		w.End()
		w.I64(3, int64(h.values))
	}
	w.List(4, thrift.Struct, 1)
	w.Struct(thrift.Item)
	w.List(1, thrift.Struct, 1)
	w.Struct(thrift.Item)
	if h.path != "" {
		w.String(1, h.path)
	}
	w.I64(2, at)
	if h.gen != layout.GenA {
		m.Write(w, 3, gen)
	}
	w.End()
	w.I64(2, int64(h.raw))
	if h.gen >= layout.GenC {
		w.I64(3, int64(h.values))
	}
	w.End()
	w.End()
	return w.Encoded()
}

// readX reads the column of a file.
func readX(files map[string][]byte, opts map[string]string) (string, *table.File, error) {
	ctx := context.Background()
	tg := format.Target{Tree: store.NewMemory(files), Name: "d/f.red"}
	f, err := table.OpenTarget(ctx, tg, format.OpenOptions{Opts: opts})
	if err != nil {
		return "", nil, err
	}
	groups, err := f.RowGroups(ctx, format.Part{}, format.Query{})
	if err != nil {
		return "", f, err
	}
	c, err := f.Chunk(ctx, groups[0], 0, vec.Range{To: math.MaxInt64})
	if err != nil {
		return "", f, err
	}
	p, err := c.Next(ctx)
	if err != nil {
		return "", f, err
	}
	src, err := tg.Tree.Open(ctx, p.Spans[0].Object)
	if err != nil {
		return "", f, err
	}
	b := make([]byte, p.Spans[0].Len)
	if err := format.ReadFull(ctx, src, p.Spans[0], "", b); err != nil {
		return "", f, err
	}
	v, _ := vec.New(f.Leaves[0].Column.Type, memory.DefaultAllocator)
	if err := c.Decode(&format.Task{Page: p, N: p.Entries, Bytes: [][]byte{b}, Scratch: &vec.Arena{},
		Limits: f.Limits}, v); err != nil {
		return "", f, err
	}
	a, err := v.Emit(v.Len())
	if err != nil {
		return "", f, err
	}
	return fmt.Sprint(a), f, nil
}

// TestGenerations: the five forms of the metadata, in both protocols, with both meanings of the number at the end.
func TestGenerations(t *testing.T) {
	for _, g := range []layout.Generation{layout.GenA, layout.GenB, layout.GenC, layout.GenD, layout.GenE} {
		for _, p := range []thrift.Protocol{thrift.Compact, thrift.Binary} {
			for _, literal := range []bool{false, true} {
				h := newHandmade(g)
				h.protocol, h.literal, h.unknown = p, literal, literal
				got, f, err := readX(map[string][]byte{"d/f.red": h.bytes()}, nil)
				if err != nil || got != "[7 -8 9]" || f.Footer.Gen != g || f.Footer.Protocol != p ||
					f.Literal != literal {
					t.Errorf("generation %s, %s, literal %v: %s, %v", g, p, literal, got, err)
				}
			}
		}
	}
	// a copy of the column's metadata lies at the offset at which pages would begin
	for _, g := range []layout.Generation{layout.GenA, layout.GenB, layout.GenC, layout.GenD, layout.GenE} {
		h := handmade{gen: g, version: 1, typ: layout.Int32, empty: true}
		for _, depth := range []format.Depth{format.Deep, format.Quick} {
			tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f.red": h.bytes()}), Name: "f.red"}
			for f := range verify(t.Context(), tg, format.OpenOptions{Depth: depth}) {
				if f.Severity > region.Note {
					t.Errorf("generation %s without rows: %+v", g, f)
				}
			}
		}
	}
	h := newHandmade(layout.GenA)
	h.noOffset = true
	if got, _, err := readX(map[string][]byte{"d/f.red": h.bytes()}, nil); got != "[7 -8 9]" {
		t.Errorf("without data_page_offset: %s, %v", got, err)
	}
}

// TestRefused: unknown values are refused by number, as unsupported and not as damage, whether the file is read or
// verified.
func TestRefused(t *testing.T) {
	for want, change := range map[string]func(*handmade){
		"version 1 of RED1, found 2": func(h *handmade) { h.version = 2 },
		"LZO (codec 3)":              func(h *handmade) { h.codec = layout.LZO },
		"codec 9":                    func(h *handmade) { h.codec = 9 },
		"encoding 4":                 func(h *handmade) { h.encoding = 4 },
		"type 7":                     func(h *handmade) { h.typ = 7 },
		"GROUP_VAR_INT is not ":      func(h *handmade) { h.encoding, h.typ = layout.GroupVarInt, layout.Float },
	} {
		for _, g := range []layout.Generation{layout.GenA, layout.GenE} {
			h := newHandmade(g)
			change(&h)
			_, _, err := readX(map[string][]byte{"d/f.red": h.bytes()}, nil)
			class := fault.Unsupported
			if strings.HasPrefix(want, "GROUP") {
				class = fault.Corrupt
			}
			if err == nil || !errors.Is(err, class) || !strings.Contains(err.Error(), want) {
				t.Errorf("generation %s, %s: %v", g, want, err)
			}
			verdict := fault.Class(0)
			tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f.red": h.bytes()}), Name: "f.red"}
			for f := range Format.Verify(t.Context(), tg, format.OpenOptions{Depth: format.Sums}) {
				if f.Severity == region.Error && (verdict == 0 || f.Class == 0) {
					verdict = cmp.Or(f.Class, fault.Corrupt)
				}
			}
			if verdict != class {
				t.Errorf("generation %s, %s: the verdict of verify is %v, that of reading %v", g, want, verdict, class)
			}
		}
	}
}

// TestChecksums: a wrong checksum is damage; 0 means no checksum.
func TestChecksums(t *testing.T) {
	h := newHandmade(layout.GenE)
	h.crc = layout.CRC(h.body)
	if got, _, err := readX(map[string][]byte{"d/f.red": h.bytes()}, nil); got != "[7 -8 9]" {
		t.Error(got, err)
	}
	h.crc++
	if _, _, err := readX(map[string][]byte{"d/f.red": h.bytes()}, nil); !errors.Is(err, fault.Corrupt) ||
		!strings.Contains(err.Error(), "crc") {
		t.Error(err)
	}
}

// TestHadoopSnappy: bare blocks, and Hadoop's framing with one or more blocks.
func TestHadoopSnappy(t *testing.T) {
	z, _ := codec.ByName("snappy")
	raw := le32s(7, -8, 9)
	frame := func(parts ...[]byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(len(slices.Concat(parts...))))
		for _, p := range parts {
			c := z.Compress(nil, p)
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(c))), c...)
		}
		return b
	}
	for name, body := range map[string][]byte{
		"bare": z.Compress(nil, raw), "one block": frame(raw), "two blocks": frame(raw[:5], raw[5:]),
		"two frames": slices.Concat(frame(raw[:4]), frame(raw[4:])),
	} {
		h := newHandmade(layout.GenE)
		h.codec, h.body = layout.Snappy, body
		if got, _, err := readX(map[string][]byte{"d/f.red": h.bytes()}, nil); got != "[7 -8 9]" {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		h.body = body[:len(body)-1]
		if _, _, err := readX(map[string][]byte{"d/f.red": h.bytes()}, nil); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s, cut: %v", name, err)
		}
	}
}

// TestFilePath: chunks in other files, relative to the metadata file, but not outside of its directory.
func TestFilePath(t *testing.T) {
	data := newHandmade(layout.GenE)
	for path, want := range map[string]string{"sub/x.red": "", "../f.red": "leads out", "/etc/passwd": "leads out",
		"a/../../x": "leads out", "..": "leads out"} {
		h := newHandmade(layout.GenE)
		h.path = path
		files := map[string][]byte{"d/f.red": h.bytes(), "d/sub/x.red": data.bytes(), "f.red": data.bytes()}
		got, _, err := readX(files, nil)
		if want == "" && got != "[7 -8 9]" || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %s, %v", path, got, err)
		}
		if path == "../f.red" {
			if got, _, err = readX(files, map[string]string{"outside": "true"}); got != "[7 -8 9]" {
				t.Errorf("%s, allowed: %s, %v", path, got, err)
			}
		}
	}
}

// TestGroupVarInt64: an example built by hand from the document, and round trips.
func TestGroupVarInt64(t *testing.T) {
	by := []byte{0x00, 0x0a, 5, 6, 7, 0x2c, 0x01, 0x00, 0x00, 0x01} // lengths 1, 1, 1, 2, 3: 000 000 000 001 010
	got := make([]uint64, 4)
	used, err := unpack.DecodeGroups64(got, by)
	if err != nil || used != len(by) || !slices.Equal(got, []uint64{5, 6, 7, 300}) {
		t.Error(got, used, err)
	}
	five := make([]uint64, 5)
	if _, err := unpack.DecodeGroups64(five, by); err != nil || five[4] != 65536 {
		t.Error(five, err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		vals := make([]uint64, n)
		for i := range vals {
			vals[i] = r.Uint64() >> r.IntN(64)
			if i%11 == 0 {
				vals[i] = uint64(-int64(i))
			}
		}
		b := unpack.AppendGroups64(nil, vals)
		got := make([]uint64, n)
		if used, err := unpack.DecodeGroups64(got, b); err != nil || used != len(b) || !slices.Equal(got, vals) {
			t.Fatal(n, err)
		}
		for cut := range b {
			if _, err := unpack.DecodeGroups64(got, b[:cut]); err == nil && n > 0 {
				t.Fatalf("%d numbers, cut at %d: no error", n, cut)
			}
		}
	}
}

// FuzzParseFast: the fast path returns the same result as the parser.
func FuzzParseFast(f *testing.F) {
	for _, h := range []layout.PageHeader{{Raw: 8000, Stored: 77, CRC: 0xfedcba98, HasCRC: true, HasData: true,
		Values: 1000, Encoding: layout.GroupVarInt, Entries: -1}, {Raw: 1, HasData: true, Entries: -1},
		{Kind: layout.IndexPage, Entries: 3}} {
		w := thrift.NewWriter(thrift.Compact)
		h.Write(w)
		b := append(slices.Clone(w.Encoded()), 1, 2, 3)
		var got layout.PageHeader
		if n, ok := got.ParseFast(b); ok != (h.Kind == layout.DataPage) || ok && (got != h || n != len(b)-3) {
			f.Errorf("%+v became %+v, %v", h, got, ok)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var fast layout.PageHeader
		n, ok := fast.ParseFast(b)
		if !ok {
			return
		}
		c := wire.NewCursor(b, fault.Span{Len: int64(len(b))}, "")
		if slow := layout.ParsePageHeader(thrift.NewReader(c, layout.ProtocolOf(b)), ""); c.Err() != nil ||
			slow != fast ||
			c.Pos() != n {
			t.Fatalf("% x: %+v, %d bytes; the parser says %+v, %d bytes, %v", b, fast, n, slow, c.Pos(), c.Err())
		}
	})
}

func FuzzGroups64(f *testing.F) {
	f.Add(unpack.AppendGroups64(nil, []uint64{1, 2, 1 << 40}), uint16(3))
	f.Fuzz(func(t *testing.T, b []byte, n uint16) { unpack.DecodeGroups64(make([]uint64, n%100), b) })
}

// TestSplit: files of metadata whose chunks are in other files.
func TestSplit(t *testing.T) {
	ctx := context.Background()
	sc := arrowSchemaOf(t)
	for _, split := range []string{"row-group", "metadata"} {
		mem := store.NewMemory(nil)
		w, err := write.Create(ctx, mem.Sink("out"), sc,
			format.WriteOptions{Rows: -1, Opts: map[string]string{"split": split, "row-group-rows": "4"}})
		if err != nil {
			t.Fatal(err)
		}
		b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		for i := range 10 {
			b.Field(0).(*array.Int32Builder).Append(int32(i))
		}
		if err := w.Write(ctx, b.NewRecordBatch()); err != nil {
			t.Fatal(err)
		}
		sum, err := w.Close(ctx)
		if err != nil {
			t.Fatal(err)
		}
		names := mem.Names()
		want := map[string]int{"row-group": 4, "metadata": 2}[split]
		if len(names) != want || len(sum.Files) != want || sum.Rows != 10 {
			t.Errorf("%s: %v, %+v", split, names, sum)
		}
		dir := format.Target{Tree: mem, Name: "out"}
		if m, err := container.Probe(ctx, dir); m != format.Certain || err != nil {
			t.Errorf("%s: the directory is probed %v, %v", split, m, err)
		}
		if f, err := table.OpenTarget(ctx, dir, format.OpenOptions{}); err != nil || f.Footer.Rows != 10 {
			t.Errorf("%s: the directory: %v", split, err)
		}
		for _, name := range names {
			tg := format.Target{Tree: mem, Name: name}
			f, err := table.OpenTarget(ctx, tg, format.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			rows := map[string]int64{"out/part-00000.red": 4, "out/part-00001.red": 4, "out/part-00002.red": 2}[name]
			if rows == 0 {
				rows = 10
			}
			if f.Footer.Rows != rows {
				t.Errorf("%s has %d rows", name, f.Footer.Rows)
			}
			for x := range verify(ctx, tg, format.OpenOptions{}) {
				t.Errorf("%s: %+v", name, x)
			}
			f.Close()
		}
	}
}

func arrowSchemaOf(t *testing.T) *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int32}}, nil)
}

// TestRealLevels: re-encoding the levels of every page that redelm wrote yields the same bytes.
func TestRealLevels(t *testing.T) {
	ctx := context.Background()
	pages := 0
	for _, name := range []string{"dremel", "dremel_gzip", "flat", "flat_pages", "flat_pages_gzip", "nested"} {
		raw, err := os.ReadFile("../../corpus/redfile/red1/" + name + ".red")
		if err != nil {
			t.Fatal(err)
		}
		f, err := table.OpenTarget(ctx, format.Target{Tree: store.NewMemory(map[string][]byte{"f": raw}), Name: "f"},
			format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for g := range f.Footer.Groups {
			for col, l := range f.Leaves {
				tab, err := f.Table(ctx, g, col)
				if err != nil {
					t.Fatal(err)
				}
				for i := 0; ; i++ {
					p, err := tab.Get(ctx, i)
					if err != nil {
						break
					}
					h, head, err := layout.PageAt(ctx, f.Src, f.At.Sub(p.Off, p.Size), "")
					if err != nil {
						t.Fatal(err)
					}
					body, _, err := page.Inflate(raw[p.Off+head:p.Off+p.Size], int64(h.Raw), tab.Meta.Codec, 1<<30,
						page.Alloc)
					if err != nil {
						t.Fatal(err)
					}
					n := int(h.Values)
					var again []byte
					if l.MaxRep > 0 {
						rep := make([]byte, n)
						if _, err := redlevels.UnpackRep(rep, body, 0, n, l.MaxRep); err != nil {
							t.Fatal(err)
						}
						again = redlevels.PackRep(again, rep, l.MaxRep)
					}
					if l.MaxDef > 0 {
						def := make([]byte, n)
						r, _, err := redlevels.NewDefReader(body[len(again):], l.MaxDef)
						if err != nil {
							t.Fatal(err)
						}
						if _, err := r.Read(def); err != nil {
							t.Fatal(err)
						}
						again = redlevels.PackDef(again, def, l.MaxDef)
					}
					if string(again) != string(body[:len(again)]) {
						t.Fatalf("%s, row group %d, column %d, page %d:\n%x\n%x", name, g, col, i, again,
							body[:len(again)])
					}
					pages++
				}
			}
		}
	}
	if pages != 251 {
		t.Errorf("%d pages, redelm wrote 251", pages)
	}
	t.Logf("%d pages", pages)
}

// TestLiteralIsSound: a file whose final number is the offset, as the document words it, has no errors, whatever
// precedes its metadata.
func TestLiteralIsSound(t *testing.T) {
	for _, g := range []layout.Generation{layout.GenA, layout.GenB, layout.GenC, layout.GenD, layout.GenE} {
		for _, p := range []thrift.Protocol{thrift.Compact, thrift.Binary} {
			h := newHandmade(g)
			h.protocol, h.literal = p, true
			whole := h.bytes()
			n := int(binary.LittleEndian.Uint32(whole[len(whole)-8:]))
			files := map[string][]byte{"as it is": whole}
			// the beginning of different metadata; unknown fields
			for _, before := range []string{"\x0a\x16\x32\x16\xf0\x80\x02\x00",
				"\x15\x02\x15\x02\x15\x02\x15\x02", "\x15\x02\x19\x0c\x16\x00\x19\x0c",
				"\x08\x00\x01\x00\x00\x00\x01\x0a"} {
				files[fmt.Sprintf("before %x", before)] = slices.Concat(whole[:len(whole)-n], []byte(before),
					whole[len(whole)-n:])
			}
			for name, b := range files {
				tree := store.NewMemory(map[string][]byte{"f.red": b})
				for f := range Format.Verify(t.Context(), format.Target{Tree: tree, Name: "f.red"},
					format.OpenOptions{}) {
					if f.Severity == region.Error {
						t.Errorf("generation %s, %s, %s: %+v", g, p, name, f)
					}
				}
			}
		}
	}
}
