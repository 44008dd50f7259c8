package trevni_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni"
	"stoa/internal/scan"
	"stoa/store"
)

// Files that no writer produces, built byte by byte.

// zigzag encodes n as one of Trevni's ints and longs.
func zigzag(n int64) []byte { return binary.AppendUvarint(nil, uint64(n<<1^n>>63)) }

// handMeta encodes metadata of keys and values.
func handMeta(pairs ...string) []byte {
	b := zigzag(int64(len(pairs) / 2))
	for _, s := range pairs {
		b = append(append(b, zigzag(int64(len(s)))...), s...)
	}
	return b
}

// handBlock is a block: rows, raw and stored size as in the descriptor, and the bytes with the checksum, if any.
type handBlock struct {
	rows, raw, stored int
	bytes             string
}

// handColumn encodes descriptors and blocks.
func handColumn(blocks ...handBlock) []byte {
	le := binary.LittleEndian
	out := le.AppendUint32(nil, uint32(len(blocks)))
	for _, b := range blocks {
		out = le.AppendUint32(le.AppendUint32(le.AppendUint32(out, uint32(b.rows)), uint32(b.raw)), uint32(b.stored))
	}
	for _, b := range blocks {
		out = append(out, b.bytes...)
	}
	return out
}

// handFile builds a file from its columns' bytes.
func handFile(version byte, rows int64, meta []byte, metas [][]byte, columns ...[]byte) []byte {
	le := binary.LittleEndian
	b := append([]byte("Trv"), version)
	b = append(le.AppendUint32(le.AppendUint64(b, uint64(rows)), uint32(len(metas))), meta...)
	for _, m := range metas {
		b = append(b, m...)
	}
	off := len(b) + 8*len(metas)
	for _, c := range columns {
		b = le.AppendUint64(b, uint64(off))
		off += len(c)
	}
	return append(b, slices.Concat(columns...)...)
}

// summedFile builds an uncompressed Avro file of one column x of fixed-width values, with their CRC-32 before the data
// (front) or after it; zero: the checksum is 0.
func summedFile(typ string, rows int, data []byte, front, zero bool) []byte {
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(data))
	if zero {
		clear(sum)
	}
	stored := string(data) + string(sum)
	if front {
		stored = string(sum) + string(data)
	}
	return handFile(2, int64(rows), handMeta("trevni.codec", "null", "trevni.checksum", "crc32"),
		[][]byte{handMeta("trevni.name", "x", "trevni.type", typ)},
		handColumn(handBlock{rows, len(data), len(data), stored}))
}

// TestZerosAreNoChecksum: a damaged block that begins with four zero bytes is not mistaken for one with Avro's zero
// checksum before the data. Nor is a block that ends with zero bytes, and has the right checksum before the data,
// mistaken for one with a zero checksum after it.
func TestZerosAreNoChecksum(t *testing.T) {
	var data []byte
	for i := range 5 {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(float64(i)))
	}
	for _, c := range []struct {
		name        string
		front, zero bool
		want        string
	}{{"after", false, false, "[0,1,2,3,4]"}, {"zero", false, true, "[0,1,2,3,4]"},
		{"before", true, false, "[0,1,2,3,4]"}} {
		file := summedFile("double", 5, data, c.front, c.zero)
		for _, o := range []format.OpenOptions{{}, {NoVerify: true}} {
			if got, err := scanHand(t, file, o); got != c.want || err != nil {
				t.Errorf("%s: %s, %v", c.name, got, err)
			}
		}
		file[len(file)-12] ^= 1 // in the last value, or in the one before
		got, err := scanHand(t, file, format.OpenOptions{})
		if c.zero != (err == nil) {
			t.Errorf("%s: one bit is flipped: %s, %v", c.name, got, err)
		}
		if codes, _ := findings(t, file); !c.zero && !slices.Equal(codes, []string{"trevni.block.checksum"}) {
			t.Errorf("%s: one bit is flipped: %v", c.name, codes)
		}
	}
	ends := slices.Concat(data[8:], data[:8])
	if got, err := scanHand(t, summedFile("double", 5, ends, true, false),
		format.OpenOptions{}); got != "[1,2,3,4,0]" || err != nil {
		t.Errorf("zeros at the end: %s, %v", got, err)
	}
}

// TestNoVerifyLocatesChecksums: the position of a checksum is determined even if it is not to be compared with the
// data.
func TestNoVerifyLocatesChecksums(t *testing.T) {
	data := []byte{7, 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0}
	if got, err := scanHand(t, summedFile("fixed32", 3, data, true, false),
		format.OpenOptions{NoVerify: true}); got != "[7,8,9]" || err != nil {
		t.Errorf("before the data: %s, %v", got, err)
	}
	bad := summedFile("fixed32", 3, data, false, false)
	bad[len(bad)-8] ^= 1
	if got, err := scanHand(t, bad, format.OpenOptions{NoVerify: true}); got != "[7,8,8]" || err != nil {
		t.Errorf("damaged: %s, %v", got, err)
	}
	_, cols, err := readAll(t.Context(), corpusFile(t, "negative/crc_before_data.trv"),
		format.OpenOptions{NoVerify: true})
	if err != nil || cols[0].String() != "[5 -5 70]" {
		t.Errorf("crc_before_data: %v, %v", cols, err)
	}
}

// TestNoVerifyKeepsThePlaceOfChecksums: after one block has shown where the checksums lie, those of the next blocks lie
// there, too, whether they match or not. They are not even computed.
func TestNoVerifyKeepsThePlaceOfChecksums(t *testing.T) {
	for _, front := range []bool{false, true} {
		var blocks []handBlock
		for i := range byte(3) {
			data := []byte{7 + i, 0, 0, 0, 8 + i, 0, 0, 0}
			sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(data))
			if i > 0 {
				data[4] ^= 64
			}
			stored := string(data) + string(sum)
			if front {
				stored = string(sum) + string(data)
			}
			blocks = append(blocks, handBlock{2, len(data), len(data), stored})
		}
		file := handFile(2, 6, handMeta("trevni.codec", "null", "trevni.checksum", "crc32"),
			[][]byte{handMeta("trevni.name", "x", "trevni.type", "fixed32")}, handColumn(blocks...))
		got, err := scanHand(t, file, format.OpenOptions{NoVerify: true})
		if want := "[7,8,8,73,9,74]"; got != want || err != nil {
			t.Errorf("before the data %t: expected %s, got %s, %v", front, want, got, err)
		}
		if got, err := scanHand(t, file, format.OpenOptions{}); !errors.Is(err, fault.Corrupt) {
			t.Errorf("before the data %t, verified: expected damage, got %s, %v", front, got, err)
		}
	}
}

// scanHand reads a file through the engine, as text.
func scanHand(t *testing.T, data []byte, o format.OpenOptions) (string, error) {
	t.Helper()
	o.Limits = o.Limits.WithDefaults()
	return scanWith(t.Context(), data, scan.Spec{}, o, trevni.Format.Open)
}

// TestSharedDescriptors: if all columns start at the same descriptors of many empty blocks, these blocks are not
// allocated once per column.
func TestSharedDescriptors(t *testing.T) {
	const columns, blocks = 400, 20000
	var metas [][]byte
	for i := range columns {
		metas = append(metas, handMeta("trevni.name", "c"+strconv.Itoa(i), "trevni.type", "int"))
	}
	first := handColumn(append(make([]handBlock, blocks), handBlock{1, 1, 1, "\x02"})...)
	file := handFile(2, 1, handMeta(), metas, first)
	head := len(file) - len(first) - 8 // columns after the first have no start yet
	start := make([]byte, 0, 8*columns)
	for range columns {
		start = binary.LittleEndian.AppendUint64(start, uint64(head+8*columns))
	}
	file = slices.Concat(file[:head], start, first)
	before := time.Now()
	codes, all := findings(t, file)
	want := []string{"trevni.block.empty", "trevni.column.damaged"}
	if !slices.Equal(codes, want) {
		t.Errorf("%v, want %v", codes, want)
	}
	if len(all) > 2*columns {
		t.Errorf("%d findings about %d columns", len(all), columns)
	}
	_, err := scanHand(t, file, format.OpenOptions{})
	placed(t, "cat", err)
	if d := time.Since(before); d > 20*time.Second {
		t.Errorf("took %s", d)
	}
}

// TestRunsOfNothing: 2^25 rows of empty arrays take a few bytes. They are not traversed from the beginning for each
// part of the block, and verify ends when its context is cancelled.
func TestRunsOfNothing(t *testing.T) {
	run := zigzag(3 - 2<<24)
	file := func(typ string, runs int) []byte {
		raw := string(bytes.Repeat(run, runs))
		return handFile(2, int64(runs)<<24, handMeta(),
			[][]byte{handMeta("trevni.name", "x", "trevni.type", typ, "trevni.array", "")},
			handColumn(handBlock{runs << 24, len(raw), len(raw), raw}))
	}
	for _, typ := range []string{"int", "boolean", "string", "null"} {
		before := time.Now()
		if codes, _ := findings(t, file(typ, 2)); len(codes) != 0 {
			t.Errorf("%s: %v", typ, codes)
		}
		if d := time.Since(before); d > 20*time.Second {
			t.Errorf("%s: verifying took %s", typ, d)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	before := time.Now()
	m := store.NewMemory(map[string][]byte{"f.trv": file("int", 100)})
	for range trevni.Format.Verify(ctx, format.Target{Tree: m, Name: "f.trv"}, format.OpenOptions{}) {
	}
	if d := time.Since(before); d > 5*time.Second {
		t.Errorf("after it was stopped verifying went on for %s", d)
	}
}

// TestAmbiguousNames: all columns' paths in the wiki's dialect share a prefix, with levels that make the search for
// optional and repeated steps backtrack. The same answer for the steps below would be computed again and again; it must
// be computed only once.
func TestAmbiguousNames(t *testing.T) {
	const depth = 58
	var metas, columns [][]byte
	levels := make([][2]int, depth)
	for k := range levels {
		levels[k] = [2]int{k/2 + 1 + k%2*2, 1}
	}
	for k := depth - 1; k >= 0; k-- {
		metas = append(metas, handMeta("Name", strings.Repeat("g.", k+1)+"x", "Type", "Int", "MaxDefinition",
			strconv.Itoa(levels[k][0]), "MaxRepetition", strconv.Itoa(levels[k][1])))
		columns = append(columns, handColumn())
	}
	before := time.Now()
	codes, _ := findings(t, handFile(1, 0, handMeta(), metas, columns...))
	if d := time.Since(before); d > 10*time.Second || len(codes) > 0 {
		t.Errorf("took %s: %v", d, codes)
	}
}

// TestTooManyLevels: a column with more levels than can be represented is refused.
func TestTooManyLevels(t *testing.T) {
	file := handFile(1, 0, handMeta(), [][]byte{handMeta("Name", "x", "Type", "Int", "MaxDefinition", "250")},
		handColumn())
	if codes, _ := findings(t, file); !slices.Equal(codes, []string{"trevni.unsupported"}) {
		t.Errorf("%v", codes)
	}
	_, err := scanHand(t, file, format.OpenOptions{})
	if placed(t, "open", err); err == nil {
		t.Error("no error")
	}
}

// TestColumnsWithoutNames: a header of columns without metadata fails at the first column.
func TestColumnsWithoutNames(t *testing.T) {
	const n = 1 << 20
	file := handFile(2, 0, handMeta(), nil)
	binary.LittleEndian.PutUint32(file[12:], n)
	file = append(file, make([]byte, 9*n)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := scanHand(t, file, format.OpenOptions{})
	runtime.ReadMemStats(&after)
	if placed(t, "open", err); err == nil || !strings.Contains(err.Error(), "header.column-metadata[0].name") {
		t.Errorf("%v, want the first column's name", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("%d bytes were taken", took)
	}
}

// TestOverlong: varints longer than necessary are read, up to 5 bytes for an int and 10 for a long, as Avro reads them.
func TestOverlong(t *testing.T) {
	for _, c := range []struct{ typ, raw, want string }{
		{"int", "\x82\x80\x80\x80\x00", "[1]"}, {"int", "\x82\x80\x80\x80\x80\x00", ""},
		{"long", "\x82\x80\x80\x80\x80\x80\x80\x80\x80\x00", "[1]"},
		{"long", "\x82\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", ""},
		{"string", "\x82\x80\x00a", `["a"]`}, {"int", "\x82\x80\x00\x00", ""},
	} {
		file := handFile(2, 1, handMeta(), [][]byte{handMeta("trevni.name", "x", "trevni.type", c.typ)},
			handColumn(handBlock{1, len(c.raw), len(c.raw), c.raw}))
		got, err := scanHand(t, file, format.OpenOptions{})
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s %x: %s, %v, want %s", c.typ, c.raw, got, err, c.want)
		}
		if err != nil {
			placed(t, c.typ, err)
		}
	}
}
