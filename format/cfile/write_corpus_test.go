package cfile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/write"
	"stoa/internal/codec"
	"stoa/internal/enc/bitshuffle"
	"stoa/internal/kudugen"
)

// These tests rewrite files of Kudu from the same values, and compare them byte by byte.

// cellsArray returns an Arrow array of cells, with the type for f.
func cellsArray(f write.Field, cells []kudugen.Cell) arrow.Array {
	n := len(cells)
	valid := make([]byte, (n+7)/8)
	nulls := 0
	for i, c := range cells {
		if c == nil {
			nulls++
		} else {
			valid[i>>3] |= 1 << (i & 7)
		}
	}
	bufs := []*memory.Buffer{nil}
	if nulls > 0 {
		bufs[0] = memory.NewBufferBytes(valid)
	}
	t := arrowTypeOf(f)
	if f.Type.IsBinary() {
		offs := make([]int32, 1, n+1)
		var data []byte
		for _, c := range cells {
			data = append(data, c...)
			offs = append(offs, int32(len(data)))
		}
		bufs = append(bufs, memory.NewBufferBytes(write.RawBytes(offs)), memory.NewBufferBytes(data))
	} else {
		bufs = append(bufs, memory.NewBufferBytes(fixedBuffer(f, cells)))
	}
	d := array.NewData(t, n, bufs, nil, nulls, 0)
	defer d.Release()
	return array.MakeFromData(d)
}

func fixedBuffer(f write.Field, cells []kudugen.Cell) []byte {
	if f.Type == block.Bool {
		b := make([]byte, (len(cells)+7)/8)
		for i, c := range cells {
			if c != nil && c[0] != 0 {
				b[i>>3] |= 1 << (i & 7)
			}
		}
		return b
	}
	w := f.Type.Width()
	if f.Type.Digits() > 0 {
		w = 16
	}
	b := make([]byte, 0, len(cells)*w)
	for _, c := range cells {
		x := make([]byte, w)
		if c != nil {
			if c[len(c)-1]&0x80 != 0 && f.Type.Digits() > 0 {
				for i := range x {
					x[i] = 0xff
				}
			}
			copy(x, c)
		} else {
			for i := range x {
				x[i] = 0xa5 // the writer must ignore values under nulls
			}
		}
		b = append(b, x...)
	}
	return b
}

func arrowTypeOf(f write.Field) arrow.DataType {
	switch f.Type {
	case block.Decimal32, block.Decimal64, block.Decimal128:
		return &arrow.Decimal128Type{Precision: int32(f.Precision), Scale: int32(f.Scale)}
	case block.Int128:
		return &arrow.FixedSizeBinaryType{ByteWidth: 16}
	case block.UnixtimeMicros:
		return arrow.FixedWidthTypes.Timestamp_us
	}
	return map[block.Type]arrow.DataType{
		block.Uint8: arrow.PrimitiveTypes.Uint8, block.Int8: arrow.PrimitiveTypes.Int8,
		block.Uint16: arrow.PrimitiveTypes.Uint16, block.Int16: arrow.PrimitiveTypes.Int16,
		block.Uint32: arrow.PrimitiveTypes.Uint32, block.Int32: arrow.PrimitiveTypes.Int32,
		block.Uint64: arrow.PrimitiveTypes.Uint64, block.Int64: arrow.PrimitiveTypes.Int64,
		block.Float: arrow.PrimitiveTypes.Float32, block.Double: arrow.PrimitiveTypes.Float64,
		block.Bool:   arrow.FixedWidthTypes.Boolean,
		block.String: arrow.BinaryTypes.String, block.Varchar: arrow.BinaryTypes.String,
		block.Binary: arrow.BinaryTypes.Binary, block.Date: arrow.FixedWidthTypes.Date32,
	}[f.Type]
}

// fieldOf returns the CFile field for a column of Kudu.
func fieldOf(c kudugen.Column) write.Field {
	f := write.Field{Name: c.Name, Nullable: c.Nullable, Precision: c.Precision, Scale: c.Scale, Length: c.Length}
	switch {
	case c.Type == "decimal":
		f.Type = map[int]block.Type{4: block.Decimal32, 8: block.Decimal64, 16: block.Decimal128}[c.Width()]
	default:
		for t, info := range block.Types {
			if info.Name == c.Type {
				f.Type = t
			}
		}
	}
	return f
}

// realFile is an entry of the corpus's MANIFEST.json.
type realFile struct {
	File, Kind, Table, Partition string
	Rowset                       int
	Column                       string
	ColumnID                     string `json:"column_id"`
	Run                          string
	Checksums                    bool
	Cfile                        map[string]string
}

// eachManifest runs f over the golden subset, and, but in short form, over the corpus if STOA_CORPUS is set.
func eachManifest(t *testing.T, f func(t *testing.T, dir string, files []realFile)) {
	dirs := map[string]string{"golden": "../../corpus/kudu/1.18.1"}
	if d := os.Getenv("STOA_CORPUS"); d != "" && !testing.Short() {
		dirs["corpus"] = filepath.Join(d, "kudu")
	}
	for name, dir := range dirs {
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join(dir, "MANIFEST.json"))
			if err != nil {
				t.Fatal(err)
			}
			var files []realFile
			if err := json.Unmarshal(b, &files); err != nil {
				t.Fatal(err)
			}
			f(t, dir, files)
		})
	}
}

// tally counts files by how they compare.
type tally map[string][3]int // identical, identical once decompressed, different

func (c tally) add(kind string, i int) {
	x := c[kind]
	x[i]++
	c[kind] = x
}

func (c tally) log(t *testing.T) {
	keys := make([]string, 0, len(c))
	for k := range c {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var sum [3]int
	for _, k := range keys {
		t.Logf("%-60s identical %d, identical once decompressed %d, different %d", k, c[k][0], c[k][1], c[k][2])
		for i, n := range c[k] {
			sum[i] += n
		}
	}
	t.Logf("all: identical %d, identical once decompressed %d, different %d", sum[0], sum[1], sum[2])
}

var encodingNames = map[string]block.Encoding{"PLAIN_ENCODING": block.Plain, "PREFIX_ENCODING": block.Prefix,
	"RLE": block.RLE, "DICT_ENCODING": block.Dict, "BIT_SHUFFLE": block.BitShuffle}
var compressionNames = map[string]block.Compression{"NO_COMPRESSION": block.NoCompression, "SNAPPY": block.Snappy,
	"LZ4": block.LZ4, "ZLIB": block.Zlib}

// TestAuxiliaryFilesLikeKudu: bloom files, ad-hoc indexes and delta files are written as Kudu writes them.
func TestAuxiliaryFilesLikeKudu(t *testing.T) { eachManifest(t, auxiliaryFiles) }

func auxiliaryFiles(t *testing.T, dir string, files []realFile) {
	tables := map[string]*kudugen.Table{}
	for _, tab := range kudugen.Tables() {
		tables[tab.Name] = tab
	}
	counts := tally{}
	for _, e := range files {
		if e.Kind == "column" {
			continue
		}
		want, err := os.ReadFile(filepath.Join(dir, e.File))
		if err != nil {
			t.Fatal(err)
		}
		got, err := rewriteAuxiliary(tables[e.Table], e, want)
		if err != nil {
			t.Errorf("%s: %v", e.File, err)
			continue
		}
		kind := e.Run + " " + e.Kind
		switch diff := compareFiles(got, want); {
		case bytes.Equal(got, want):
			counts.add(kind, 0)
		case diff == "" && e.Kind != "bloom":
			counts.add(kind, 1)
		default:
			counts.add(kind, 2)
			t.Errorf("%s: %s", e.File, diff)
		}
	}
	counts.log(t)
}

func rewriteAuxiliary(tab *kudugen.Table, e realFile, want []byte) ([]byte, error) {
	var b bytes.Buffer
	var add func([]byte) error
	var end func() (write.Summary, error)
	switch e.Kind {
	case "bloom":
		w, err := write.NewBloomWriter(&b, write.BloomOptions{NoChecksums: !e.Checksums, BlockBytes: 1024})
		if err != nil {
			return nil, err
		}
		add, end = w.Add, w.Close
	case "adhoc-index":
		w, err := write.NewAdhocIndexWriter(&b, write.WriterOptions{NoChecksums: !e.Checksums, BlockSize: 512})
		if err != nil {
			return nil, err
		}
		add, end = w.Add, w.Close
	default:
		err := rewriteDeltas(&b, e, want)
		return b.Bytes(), err
	}
	set, err := tab.Rowset(e.Partition, e.Rowset)
	if err != nil {
		return nil, err
	}
	for _, k := range set.Keys() {
		if err := add(k); err != nil {
			return nil, err
		}
	}
	_, err = end()
	return b.Bytes(), err
}

// rewriteDeltas rewrites the deltas of the file, which it parses with code of its own.
func rewriteDeltas(b *bytes.Buffer, e realFile, want []byte) error {
	w, err := write.NewDeltaWriter(b, e.Kind == "undo", write.WriterOptions{NoChecksums: !e.Checksums, BlockSize: 1024})
	if err != nil {
		return err
	}
	l, err := kudugen.Walk(want)
	if err != nil {
		return err
	}
	for _, blk := range dataBlocks(l) {
		for _, v := range plainStringsOf(rawBlock(l, want, blk)) {
			row, n := orderedVarint(v)
			ts, m := orderedVarint(v[n:])
			if err := w.Add(uint32(row), ts, changeListOf(v[n+m:])); err != nil {
				return err
			}
		}
	}
	_, err = w.Close()
	return err
}

func changeListOf(v []byte) *write.ChangeList {
	l := new(write.ChangeList)
	switch v[0] {
	case 1:
		l.Update()
	case 2:
		l.Delete()
	case 3:
		l.Reinsert()
	}
	for v = v[1:]; len(v) > 0; {
		id, n := binary.Uvarint(v)
		size, m := binary.Uvarint(v[n:])
		v = v[n+m:]
		if size == 0 {
			l.SetNull(uint32(id))
			continue
		}
		l.Set(uint32(id), v[:size-1])
		v = v[size-1:]
	}
	return l
}

// orderedVarint decodes SQLite4's varint, as specified in its documentation.
func orderedVarint(b []byte) (uint64, int) {
	a := uint64(b[0])
	switch {
	case a <= 240:
		return a, 1
	case a <= 248:
		return 240 + 256*(a-241) + uint64(b[1]), 2
	case a == 249:
		return 2288 + 256*uint64(b[1]) + uint64(b[2]), 3
	}
	n := int(a) - 247
	var x uint64
	for _, c := range b[1 : 1+n] {
		x = x<<8 | uint64(c)
	}
	return x, 1 + n
}

// plainStringsOf decodes the strings of a plain block independently.
func plainStringsOf(b []byte) (out [][]byte) {
	n, at := int(binary.LittleEndian.Uint32(b[4:])), binary.LittleEndian.Uint32(b[8:])
	offs := make([]uint32, 0, n+4)
	for p := b[at:]; len(offs) < n; {
		tag := p[0]
		p = p[1:]
		for i := range 4 {
			k := int(tag>>(6-2*i)&3) + 1
			var x [4]byte
			copy(x[:], p[:k])
			offs = append(offs, binary.LittleEndian.Uint32(x[:]))
			p = p[k:]
		}
	}
	for i := range n {
		end := at
		if i+1 < n {
			end = offs[i+1]
		}
		out = append(out, b[offs[i]:end])
	}
	return out
}

// TestColumnsLikeKudu: columns are written as Kudu writes them.
func TestColumnsLikeKudu(t *testing.T) { eachManifest(t, columnFiles) }

func columnFiles(t *testing.T, dir string, files []realFile) {
	tables := map[string]*kudugen.Table{}
	for _, tab := range kudugen.Tables() {
		tables[tab.Name] = tab
	}
	counts := tally{}
	for _, e := range files {
		if e.Kind != "column" {
			continue
		}
		want, err := os.ReadFile(filepath.Join(dir, e.File))
		if err != nil {
			t.Fatal(err)
		}
		got, err := rewrite(tables[e.Table], e)
		if err != nil {
			t.Errorf("%s: %v", e.File, err)
			continue
		}
		kind := e.Run + " " + e.Cfile["encoding"] + " " + e.Cfile["compression"]
		switch diff := compareFiles(got, want); {
		case bytes.Equal(got, want):
			counts.add(kind, 0)
		case diff == "" && e.Cfile["compression"] == "NO_COMPRESSION" && e.Cfile["encoding"] != "BIT_SHUFFLE" &&
			e.Cfile["encoding"] != "DICT_ENCODING":
			t.Errorf("%s: not identical, although it is not compressed", e.File)
		case diff == "":
			counts.add(kind, 1)
		case lastLeaf(e):
			counts.add(kind, 2)
		default:
			counts.add(kind, 2)
			t.Errorf("%s: %s", e.File, diff)
		}
	}
	counts.log(t)
}

// lastLeaf reports whether a block of the file became full within the last ten rows. In Kudu's memory store these rows
// were in one leaf, while all other leaves have seven rows. Kudu adds rows leaf by leaf, so the block got the rest of
// the leaf. A streaming writer does not know which rows are the last.
func lastLeaf(e realFile) bool {
	return e.Table == "matrix" && (e.Column == "int64_rle_snappy_null" || e.Column == "unixtime_micros_rle_snappy_null")
}

// rewrite writes a column of the corpus from the values of the formula.
func rewrite(tab *kudugen.Table, e realFile) ([]byte, error) {
	set, err := tab.Rowset(e.Partition, e.Rowset)
	if err != nil {
		return nil, err
	}
	var id int
	fmt.Sscan(e.ColumnID, &id)
	col, cells, ok := set.Column(id)
	if !ok {
		return nil, fmt.Errorf("no column %d", id)
	}
	o := write.WriterOptions{Encoding: encodingNames[e.Cfile["encoding"]],
		Compression: compressionNames[e.Cfile["compression"]], NoChecksums: !e.Checksums}
	o.BlockSize = col.BlockSize
	keys := 0
	for _, c := range set.Columns {
		if c.Key {
			keys++
		}
	}
	o.ValueIndex = col.Key && keys == 1
	var b bytes.Buffer
	w, err := write.NewWriter(&b, fieldOf(col), o)
	if err != nil {
		return nil, err
	}
	if err := w.Append(cellsArray(fieldOf(col), cells)); err != nil {
		return nil, err
	}
	_, err = w.Close()
	return b.Bytes(), err
}

// compareFiles compares two CFiles block by block after decompression. It returns "" if they differ at most in
// compressed bytes and in offsets that depend on these.
func compareFiles(got, want []byte) string {
	g, err := kudugen.Walk(got)
	if err != nil {
		return "ours: " + err.Error()
	}
	w, err := kudugen.Walk(want)
	if err != nil {
		return "theirs: " + err.Error()
	}
	if a, b := fmt.Sprint(g.Version, g.Type, g.Encoding, g.Compression, g.Values, g.Nullable, g.Checksums, g.Levels,
		g.Meta), fmt.Sprint(w.Version, w.Type, w.Encoding, w.Compression, w.Values, w.Nullable, w.Checksums,
		w.Levels, w.Meta); a != b {
		return fmt.Sprintf("footer: got %s, want %s", a, b)
	}
	// The ends of index blocks depend on the offsets of data blocks, and so on the compressor; the entries of the
	// indexes do not.
	a, b := dataBlocks(g), dataBlocks(w)
	if len(a) != len(b) {
		return fmt.Sprintf("got %d blocks, want %d: got %s, want %s", len(a), len(b), layoutText(g), layoutText(w))
	}
	for i, a := range a {
		b := b[i]
		if a.Kind != b.Kind || a.First != b.First || a.Rows != b.Rows || !bytes.Equal(a.Key, b.Key) {
			return fmt.Sprintf("block %d: got %s, want %s", i, layoutText(g), layoutText(w))
		}
		if !bytes.Equal(rawBlock(g, got, a), rawBlock(w, want, b)) {
			return fmt.Sprintf("block %d (%s, rows %d+%d): got %x, want %x", i, a.Kind, a.First, a.Rows,
				short(rawBlock(g, got, a)), short(rawBlock(w, want, b)))
		}
	}
	return ""
}

func dataBlocks(l *kudugen.Layout) (out []kudugen.Block) {
	for _, b := range l.Blocks {
		if b.Kind == "data" || b.Kind == "dict" {
			out = append(out, b)
		}
	}
	return out
}

func short(b []byte) []byte { return b[:min(len(b), 64)] }

func layoutText(l *kudugen.Layout) string {
	var s []string
	for _, b := range l.Blocks {
		s = append(s, fmt.Sprintf("%s %d+%d(%d) %x", b.Kind, b.First, b.Rows, b.Len, b.Key))
	}
	return strings.Join(s, ", ")
}

// rawBlock returns a block without compression and bitshuffle.
func rawBlock(l *kudugen.Layout, file []byte, b kudugen.Block) []byte {
	p := file[b.Off : b.Off+b.Len]
	if l.Checksums {
		p = p[:len(p)-4]
	}
	if c := block.Compression(l.Compression); c != block.NoCompression {
		n := binary.LittleEndian.Uint32(p)
		p = p[4:]
		if l.Version == 1 {
			n = binary.LittleEndian.Uint32(p)
			p = p[4:]
		}
		if int(n) != len(p) || l.Version == 1 {
			out := make([]byte, n)
			method, _ := codec.ByName(c.String())
			if err := method.Decompress(out, p); err != nil {
				return []byte(err.Error())
			}
			p = out
		}
	}
	if b.Kind != "data" {
		return p
	}
	var head []byte
	rest := p
	if l.Nullable {
		_, i := binary.Uvarint(p)
		n, j := binary.Uvarint(p[i:])
		head, rest = p[:i+j+int(n)], p[i+j+int(n):]
	}
	if block.Encoding(l.Encoding) == block.Dict {
		if binary.LittleEndian.Uint32(rest) == block.DictPlain {
			return p
		}
		head, rest = append(bytes.Clone(head), rest[:4]...), rest[4:]
	} else if block.Encoding(l.Encoding) != block.BitShuffle {
		return p
	}
	elem, padded := int(binary.LittleEndian.Uint32(rest[16:])), int(binary.LittleEndian.Uint32(rest[12:]))
	out := make([]byte, padded*elem)
	if _, err := bitshuffle.Decode(out, rest[20:], elem); err != nil {
		return []byte(err.Error())
	}
	// the header without the size
	return append(append(append(bytes.Clone(head), rest[:8]...), rest[12:20]...), out...)
}
