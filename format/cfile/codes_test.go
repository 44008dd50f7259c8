package cfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
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
	"stoa/internal/sum"
	"stoa/region"
	"stoa/store"
)

// sample is a small file, with the spans of its regions, by name, before it was damaged.
type sample struct {
	t  *testing.T
	b  []byte
	at map[string]fault.Span
}

func newSample(t *testing.T, b []byte) *sample {
	t.Helper()
	p := &sample{t, bytes.Clone(b), map[string]fault.Span{}}
	for n, err := range Format.Describe(t.Context(), p.target(), format.DescribeOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := p.at[n.Name]; !ok { // outer nodes come first
			p.at[n.Name] = n.At
		}
	}
	return p
}

func (p *sample) target() format.Target {
	return format.Target{Tree: store.NewMemory(map[string][]byte{"f": p.b}), Name: "f"}
}

// region returns the bytes of a region.
func (p *sample) region(name string) []byte {
	p.t.Helper()
	at, ok := p.at[name]
	if !ok {
		p.t.Fatalf("region %s is not among %v", name, p.at)
	}
	return p.b[at.Off:at.End()]
}

// seal updates the checksum of a region, which precedes a footer and ends a block or header.
func (p *sample) seal(name string) {
	b := p.region(name)
	switch name {
	case "footer":
		binary.LittleEndian.PutUint32(b, sum.CRC32C(b[4:]))
	default:
		n := len(b) - 4
		binary.LittleEndian.PutUint32(b[n:], sum.CRC32C(b[:n]))
	}
}

// replace replaces bytes in a region by others of the same length.
func (p *sample) replace(name string, old, with []byte) {
	p.t.Helper()
	b := p.region(name)
	i := bytes.Index(b, old)
	if i < 0 || len(old) != len(with) {
		p.t.Fatalf("%s: %x is not in %x", name, old, b)
	}
	copy(b[i:], with)
}

// pointer encodes a block's offset and size as an index entry does.
func pointer(off, size int64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(off)), uint64(size))
}

func mustWrite(t *testing.T, f write.Field, o write.WriterOptions, text string) []byte {
	t.Helper()
	typ := map[block.Type]arrow.DataType{block.Int32: arrow.PrimitiveTypes.Int32,
		block.String: arrow.BinaryTypes.String, block.Int128: &arrow.Decimal128Type{Precision: 38}}[f.Type]
	b, _, err := writeAll(f, o, fromJSON(t, typ, text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// listOf returns the JSON of n values.
func listOf(n int, layout string) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(layout, i))
	}
	return "[" + strings.Join(out, ",") + "]"
}

// TestCodesOfDamage creates each kind of damage by hand, and updates checksums unless the checksum is the damage. The
// finding has the right code, severity, place and, if known, rows.
func TestCodesOfDamage(t *testing.T) {
	none := [2]int64{-1, -1}
	ints := mustWrite(t, write.Field{Type: block.Int32},
		write.WriterOptions{Encoding: block.Plain, BlockSize: 512, ValueIndex: true}, listOf(300, "%d"))
	words := mustWrite(t, write.Field{Type: block.String},
		write.WriterOptions{Encoding: block.Dict, BlockSize: 512}, `["a","b","c","a"]`)
	texts := mustWrite(t, write.Field{Type: block.String},
		write.WriterOptions{Encoding: block.Plain, BlockSize: 512}, listOf(200, `"text%d"`))
	prefixes := mustWrite(t, write.Field{Type: block.String},
		write.WriterOptions{Encoding: block.Prefix, BlockSize: 512, RestartInterval: 4}, listOf(40, `"text%03d"`))
	nulls := mustWrite(t, write.Field{Type: block.Int32, Nullable: true},
		write.WriterOptions{Encoding: block.Plain, BlockSize: 512}, `[1,null,3,null]`)
	var delta, bloom bytes.Buffer
	d, _ := write.NewDeltaWriter(&delta, false, write.WriterOptions{Compression: block.NoCompression})
	for row := range uint32(5) {
		if err := d.Add(row, 9, new(write.ChangeList).Update().Set(3, []byte("abcd"))); err != nil {
			t.Fatal(err)
		}
	}
	f, _ := write.NewBloomWriter(&bloom, write.BloomOptions{})
	if err := f.Add([]byte("key")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Close(); err != nil {
		t.Fatal(err)
	}
	second := newSample(t, ints).at["block[1]"]
	per := (second.Len - 8 - 4) / 4 // rows of a full block, between number and ordinal and the checksum
	rows := [2]int64{per, 2 * per}
	for _, x := range []struct {
		code   string
		file   []byte
		place  string // region that contains the finding or is inside it
		rows   [2]int64
		opts   map[string]string
		damage func(p *sample)
	}{
		{code: "cfile.block.damaged", file: texts, place: "block[0]",
			rows:   [2]int64{0, int64(binary.LittleEndian.Uint32(newSample(t, texts).region("block[0]")[4:]))},
			damage: func(p *sample) { p.region("block[0]")[11] = 0x7f; p.seal("block[0]") }},
		{code: "cfile.block.ordinal", file: ints, place: "block[1]", rows: rows,
			damage: func(p *sample) { p.region("block[1]")[4]++; p.seal("block[1]") }},
		{code: "cfile.block.count", file: nulls, place: "block[0]", rows: [2]int64{0, 4},
			damage: func(p *sample) { p.region("block[0]")[0]++; p.seal("block[0]") }},
		{code: "cfile.block.checksum", file: ints, place: "block[1]", rows: rows,
			damage: func(p *sample) { p.region("block[1]")[20]++ }},
		{code: "cfile.bloom.damaged", file: bloom.Bytes(), place: "block[0]", rows: none,
			damage: func(p *sample) { p.region("block[0]")[3] = 0x7f; p.seal("block[0]") }},
		{code: "cfile.coverage.gap", file: ints, place: "gap", rows: none, damage: func(p *sample) {
			at := p.at["footer"].Off
			p.b = slices.Insert(p.b, int(at), []byte("nobody")...)
			p.at["gap"] = fault.Span{Object: "f", Off: at, Len: 6}
		}},
		{code: "cfile.coverage.overlap", file: ints, place: "posidx", rows: none, damage: func(p *sample) {
			root := func(at fault.Span) []byte {
				return binary.AppendUvarint(append(binary.AppendUvarint([]byte{8}, uint64(at.Off)), 16), uint64(at.Len))
			}
			p.replace("footer", root(p.at["validx"]), root(p.at["posidx"]))
			p.seal("footer")
		}},
		{code: "cfile.delta.damaged", file: delta.Bytes(), place: "block[0]", rows: [2]int64{2, 3},
			damage: func(p *sample) {
				p.replace("block[0]", []byte{2, 9, 1, 3, 5}, []byte{2, 9, 7, 3, 5}) // row 2 at 9, op 1
				p.seal("block[0]")
			}},
		{code: "cfile.delta.order", file: delta.Bytes(), place: "block[0]", rows: none, damage: func(p *sample) {
			p.replace("block[0]", []byte{2, 9, 1, 3, 5}, []byte{0, 9, 1, 3, 5})
			p.seal("block[0]")
		}},
		{code: "cfile.delta.stats", file: delta.Bytes(), place: "footer", rows: none, damage: func(p *sample) {
			// min_timestamp
			p.replace("footer", []byte{0x19, 9, 0, 0, 0, 0, 0, 0, 0}, []byte{0x19, 8, 0, 0, 0, 0, 0, 0, 0})
			p.seal("footer")
		}},
		{code: "cfile.dict.checksum", file: words, place: "dictionary", rows: none,
			damage: func(p *sample) { p.region("dictionary")[13]++ }},
		{code: "cfile.dict.damaged", file: words, place: "dictionary", rows: none,
			damage: func(p *sample) { p.region("dictionary")[11] = 0x7f; p.seal("dictionary") }},
		{code: "cfile.footer.checksum", file: ints, place: "footer", rows: none,
			damage: func(p *sample) { p.region("footer")[0]++ }},
		{code: "cfile.footer.damaged", file: ints, place: "footer", rows: none,
			damage: func(p *sample) { p.b = p.b[:len(p.b)-3] }},
		{code: "cfile.header.checksum", file: ints, place: "header", rows: none,
			damage: func(p *sample) { p.region("header")[15]++ }},
		{code: "cfile.header.damaged", file: ints, place: "header", rows: none,
			damage: func(p *sample) { p.region("header")[0]++ }},
		{code: "cfile.index.checksum", file: ints, place: "posidx", rows: none,
			damage: func(p *sample) { p.region("posidx")[1]++ }},
		{code: "cfile.index.damaged", file: ints, place: "posidx", rows: none, damage: func(p *sample) {
			b := p.region("posidx")
			b[len(b)-5] = 0x7f // the trailer's length, of which this is the high byte
			p.seal("posidx")
		}},
		{code: "cfile.index.order", file: ints, place: "posidx", rows: none, damage: func(p *sample) {
			p.replace("posidx", []byte{4, 0, 0, 1, 10}, []byte{4, 0, 0, 0, 1}) // the key of block[2] is row 266
			p.seal("posidx")
		}},
		{code: "cfile.index.key", file: ints, place: "validx", rows: none, damage: func(p *sample) {
			// the key of block[1], whose first value is 133
			p.replace("validx", []byte{4, 0x80, 0, 0, 133}, []byte{4, 0x80, 0, 0, 134})
			p.seal("validx")
		}},
		{code: "cfile.index.disagree", file: ints, place: "validx", rows: none, damage: func(p *sample) {
			p.replace("validx", pointer(second.Off, second.Len), pointer(second.Off-4, second.Len))
			p.seal("validx")
		}},
		{code: "cfile.int128.range", file: mustWrite(t, write.Field{Type: block.Int128},
			write.WriterOptions{Encoding: block.Plain}, `["1"]`), place: "block[0]", rows: none,
			damage: func(p *sample) {
				p.region("block[0]")[8+15] = 0x7f // the high byte of a value after number and ordinal
				p.seal("block[0]")
			}},
		{code: "cfile.keys.range", file: ints, place: "footer", rows: none, damage: func(p *sample) {
			p.replace("footer", []byte{0x80, 0, 1, 43}, []byte{0x80, 0, 1, 44}) // max_key, of 299
			p.seal("footer")
		}},
		{code: "cfile.kind", file: nulls, place: "footer", rows: none, opts: map[string]string{"kind": "delta"},
			damage: func(p *sample) {}},
		{code: "cfile.numvalues", file: delta.Bytes(), place: "footer", rows: none,
			damage: func(p *sample) { p.replace("footer", []byte{3 << 3, 5}, []byte{3 << 3, 6}); p.seal("footer") }},
		{code: "cfile.prefix.restarts", file: prefixes, place: "block[0]", rows: none, damage: func(p *sample) {
			b := p.region("block[0]")
			b[len(b)-12]++ // the last restart point
			p.seal("block[0]")
		}},
		{code: "cfile.unsupported", file: ints, place: "footer", rows: none,
			damage: func(p *sample) { b := p.region("incompatible_features"); b[len(b)-1] |= 32; p.seal("footer") }},
		{code: "cfile.utf8", file: texts, place: "block[0]", rows: none,
			damage: func(p *sample) { p.region("block[0]")[12] = 0xff; p.seal("block[0]") }},
		{code: "cfile.values.order", file: ints, place: "block[1]", rows: none,
			damage: func(p *sample) { p.region("block[1]")[8+4*50] = 0; p.seal("block[1]") }},
		{code: "cfile.version.mixed", file: ints, place: "footer", rows: none,
			damage: func(p *sample) { copy(p.region("header"), "kuducfil"); p.seal("header") }},
	} {
		p := newSample(t, x.file)
		x.damage(p)
		var all []string
		hit := false
		for got := range Format.Verify(t.Context(), p.target(), format.OpenOptions{Depth: format.Deep, Opts: x.opts}) {
			all = append(all, fmt.Sprintf("%s %s %v %s", got.Code, got.At, got.Rows, got.Message))
			place := p.at[x.place]
			hit = hit || got.Code == x.code && got.Severity == severityOf(t, x.code) && got.Rows == x.rows &&
				got.At.Object == "f" &&
				place.Off <= got.At.Off && got.At.Off < place.End()
		}
		if !hit {
			t.Errorf("%s in %s %v, rows %v, is not among\n\t%s", x.code, x.place, p.at[x.place], x.rows,
				strings.Join(all, "\n\t"))
		}
	}
	reported := 0
	for got := range Format.Verify(t.Context(), format.Target{Tree: store.NewMemory(nil), Name: "f"},
		format.OpenOptions{}) {
		if reported++; got.Code != "cfile.read" || got.At.Object != "f" || got.Severity != region.Error {
			t.Errorf("a missing file: %+v", got)
		}
	}
	if reported != 1 {
		t.Errorf("a missing file: %d findings, expected 1", reported)
	}
}

// TestCodesOfRecovery: recovery reports the rows that it did not find, what it found, and what it had to guess.
func TestCodesOfRecovery(t *testing.T) {
	ints := mustWrite(t, write.Field{Type: block.Int32}, write.WriterOptions{Encoding: block.Plain, BlockSize: 512},
		listOf(300, "%d"))
	p := newSample(t, ints)
	p.region("block[1]")[20]++
	p.region("posidx")[1]++
	hole := p.at["block[1]"]
	per := (hole.Len - 8 - 4) / 4
	lost := fmt.Sprint("cfile.rows.lost ", [2]int64{per, 2 * per})
	for _, guess := range []bool{false, true} {
		want := []string{"cfile.index.checksum [-1 -1]", lost, "cfile.recovered [0 300]"}
		opts := map[string]string{}
		if guess {
			copy(p.region("footer"), make([]byte, len(p.region("footer"))))
			opts["type"], opts["nullable"] = "int32", "false"
			want = []string{"cfile.footer.damaged [-1 -1]", "cfile.recovered.guessed [-1 -1]", lost,
				"cfile.recovered [0 300]"}
		}
		r, found, err := Format.Recover(t.Context(), p.target(), format.OpenOptions{Opts: opts})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var got []string
		for _, x := range found {
			got = append(got, fmt.Sprint(x.Code, " ", x.Rows))
			if x.Code == "cfile.rows.lost" && (x.At != hole || x.Lost != per) {
				t.Errorf("%d rows are lost at %v, want at %v", x.Lost, x.At, hole)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("guess %t: got %q, want %q", guess, got, want)
		}
	}
}

// TestRecoverAroundFilesInCells: the cells are CFiles themselves, and the footer and the first block of cells are
// damaged. Blocks of the files in cells are not mistaken for rows.
func TestRecoverAroundFilesInCells(t *testing.T) {
	inner := mustWrite(t, write.Field{Type: block.String},
		write.WriterOptions{Encoding: block.Plain, BlockSize: 512}, listOf(300, `"inner%d"`))
	w := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	for i := range 20 {
		w.Append(append([]byte{byte(i)}, inner...))
	}
	outer, _, err := writeAll(write.Field{Type: block.Binary},
		write.WriterOptions{Encoding: block.Plain, BlockSize: 16 << 10}, w.NewArray())
	if err != nil {
		t.Fatal(err)
	}
	p := newSample(t, outer)
	per := int64(binary.LittleEndian.Uint32(p.region("block[0]")[4:]))
	p.region("block[0]")[20]++
	copy(p.region("footer"), make([]byte, len(p.region("footer"))))
	for _, opts := range []map[string]string{{"type": "binary"},
		{"type": "binary", "encoding": "plain", "compression": "none", "nullable": "false"}} {
		r, found, err := Format.Recover(t.Context(), p.target(), format.OpenOptions{Opts: opts})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		lost := [][2]int64{}
		for _, x := range found {
			if x.Code == "cfile.rows.lost" {
				lost = append(lost, x.Rows)
			}
		}
		foot, _ := Recovered(r)
		if foot.NumValues != 20 || !slices.Equal(lost, [][2]int64{{0, per}}) {
			t.Errorf("%v: got %d rows, lost %v", opts, foot.NumValues, lost)
		}
	}
}

// severityOf returns the severity of a code in the table of codes.
func severityOf(t *testing.T, code string) region.Severity {
	t.Helper()
	for _, c := range block.Codes {
		if c.Code == code {
			return c.Severity
		}
	}
	t.Fatalf("unknown code %s", code)
	return 0
}

// TestHeaviestChain compares heaviestChain with the maximum over all chains.
func TestHeaviestChain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var blocks []columnfile.DataBlock
		for i := range 1 + r.IntN(9) {
			blocks = append(blocks, columnfile.DataBlock{Ptr: block.BlockPtr{Offset: int64(i),
				Size: 1 + r.Int64N(9)}, First: r.Int64N(12), Rows: 1 + r.Int64N(4)})
		}
		want := int64(0)
		for mask := range 1 << len(blocks) {
			row, weight := int64(0), int64(0)
			for i, b := range blocks {
				if mask>>i&1 == 0 {
					continue
				}
				if b.First < row {
					weight = -1
					break
				}
				row, weight = b.First+b.Rows, weight+b.Ptr.Size
			}
			want = max(want, weight)
		}
		got, row := int64(0), int64(0)
		for _, b := range heaviestChain(blocks) {
			if b.First < row {
				t.Fatalf("%+v: the chain's rows overlap", blocks)
			}
			row, got = b.First+b.Rows, got+b.Ptr.Size
		}
		if got != want {
			t.Fatalf("%+v: got a chain of %d bytes, want %d", blocks, got, want)
		}
	}
}

// TestIndexesAgreeAfterDamage: zeroed ranges of a file with checksums are damage of the blocks there. No block of one
// index is then said to be missing in the other.
func TestIndexesAgreeAfterDamage(t *testing.T) {
	b := array.NewInt32Builder(memory.DefaultAllocator)
	defer b.Release()
	for i := range int32(40_000) {
		b.Append(i)
	}
	whole, _, err := writeAll(write.Field{Type: block.Int32}, write.WriterOptions{ValueIndex: true,
		BlockSize: 512, IndexBlockSize: 512, Encoding: block.Plain}, b.NewArray())
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for from := 64; from < len(whole)-200; from += 997 {
		p := newSample(t, whole)
		clear(p.b[from:min(from+700, len(p.b)-200)])
		for f := range Format.Verify(t.Context(), p.target(), format.OpenOptions{Depth: format.Deep}) {
			switch f.Code {
			case "cfile.index.disagree":
				t.Fatalf("%d bytes at %d: %v", 700, from, f)
			case "cfile.index.checksum", "cfile.index.damaged":
				damaged++
			}
		}
	}
	if damaged < 10 {
		t.Errorf("%d index blocks were damaged, want 10 or more", damaged)
	}
}
