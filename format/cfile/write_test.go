package cfile

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	blocks "stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
	"stoa/format/cfile/internal/write"
	"stoa/internal/enc/rle"
)

// fromJSON parses an array with Arrow's own JSON reader.
func fromJSON(t *testing.T, typ arrow.DataType, text string) arrow.Array {
	t.Helper()
	a, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func writeAll(f write.Field, o write.WriterOptions, arrs ...arrow.Array) ([]byte, write.Summary, error) {
	var b bytes.Buffer
	w, err := write.NewWriter(&b, f, o)
	if err != nil {
		return nil, write.Summary{}, err
	}
	for _, a := range arrs {
		if err := w.Append(a); err != nil {
			return nil, write.Summary{}, err
		}
	}
	sum, err := w.Close()
	return b.Bytes(), sum, err
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		panic(err)
	}
	return b
}

// TestFilesByHand: files of one block, written by hand byte by byte.
func TestFilesByHand(t *testing.T) {
	list := arrow.ListOf(arrow.PrimitiveTypes.Int32)
	for _, c := range []struct {
		name string
		f    write.Field
		o    write.WriterOptions
		arr  arrow.Array
		want string
	}{
		{"v2, no checksums", write.Field{Type: blocks.Int32},
			write.WriterOptions{NoChecksums: true, Encoding: blocks.Plain},
			fromJSON(t, arrow.PrimitiveTypes.Int32, "[1, -2]"),
			`6b756475 63666c32 00000000
			02000000 00000000 01000000 feffffff
			04 00000000 0c 10  00000000  08 01 10 00  04000000
			0805 1001 1802 2206 0a04 081c 1013 3001 4000 5000  6b756475 63666c32 14000000`},
		{"v1 has a version in its header and no features", write.Field{Type: blocks.Int32},
			write.WriterOptions{Version: 1, Encoding: blocks.Plain},
			fromJSON(t, arrow.PrimitiveTypes.Int32, "[1, -2]"),
			`6b756475 6366696c 04000000 08011000
			02000000 00000000 01000000 feffffff
			04 00000000 10 10  00000000  08 01 10 00  04000000
			0805 1001 1802 2206 0a04 0820 1013 3001 4000  6b756475 6366696c 12000000`},
		// A group of count, smallest, ordinal, 0; then 0, 1, 256 and 70000 in 1, 1, 2 and 3 bytes.
		{"v1, group-varint", write.Field{Type: blocks.Uint32},
			write.WriterOptions{Version: 1, Encoding: blocks.GroupVarint, NoPositionalIndex: true},
			fromJSON(t, arrow.PrimitiveTypes.Uint32, "[100, 101, 356, 70100]"),
			`6b756475 6366696c 04000000 08011000
			00 04 64 00 00  06 00 01 0001 701101
			0804 1003 1804 3001 4000  6b756475 6366696c 0a000000`},
		// The document's example: four rows, the first and the last null. Its "0110" is a packed run of one group.
		{"nullable", write.Field{Type: blocks.Int8, Nullable: true},
			write.WriterOptions{NoChecksums: true, Encoding: blocks.Plain, NoPositionalIndex: true},
			fromJSON(t, arrow.PrimitiveTypes.Int8, "[null, 2, 3, null]"),
			`6b756475 63666c32 00000000
			04 02 03 06  02000000 00000000 02 03
			0801 1001 1804 3001 4001 5000  6b756475 63666c32 0c000000`},
		{"dictionary", write.Field{Type: blocks.String},
			write.WriterOptions{NoChecksums: true, NoPositionalIndex: true},
			fromJSON(t, arrow.BinaryTypes.String, `[]`),
			`6b756475 63666c32 00000000
			00000000 00000000 0c000000
			0808 1005 1800 3001 4000 4a04 080c 100c 5000  6b756475 63666c32 12000000`},
		{"value index", write.Field{Type: blocks.String},
			write.WriterOptions{NoChecksums: true, Encoding: blocks.Plain, NoPositionalIndex: true, ValueIndex: true},
			fromJSON(t, arrow.BinaryTypes.String, `["ab", "b"]`),
			`6b756475 63666c32 00000000
			00000000 02000000 0f000000 616262  00 0c 0e 00 00
			01 61 0c 14  00000000  08 01 10 00  04000000
			0808 1001 1802 2a06 0a04 0820 1010 3001 3a0d 0a07 6d696e5f6b6579 1202 6162 3a0c 0a07 6d61785f6b6579 1201 62
			4000 5000 6b756475 63666c32 31000000`},
		// The document's examples of array blocks.
		{"array A", write.Field{Type: blocks.Int32, Array: true, Nullable: true},
			write.WriterOptions{NoChecksums: true, Encoding: blocks.Plain, NoPositionalIndex: true},
			fromJSON(t, list, "[[1,2],[],null,[3,4],[5,6,7,8],[null],[9]]"),
			`6b756475 63666c32 00000000
			0a 07  04 1001 0302  0f 03 0200 0000 0000 0200 0400 0100 0100  02 03 7b
			09000000 00000000 01000000 02000000 03000000 04000000 05000000 06000000 07000000 08000000 09000000
			0805 1001 1807 3001 4001 5002 6001  6b756475 63666c32 0e000000`},
		{"array B", write.Field{Type: blocks.Int32, Array: true, Nullable: true},
			write.WriterOptions{NoChecksums: true, Encoding: blocks.Plain, NoPositionalIndex: true},
			fromJSON(t, list, "[[null],null,[],[4,2]]"),
			`6b756475 63666c32 00000000
			03 04  02 03 06  09 03 0100 0000 0000 0200  02 03 0d
			02000000 00000000 04000000 02000000
			0805 1001 1804 3001 4001 5002 6001  6b756475 63666c32 0e000000`},
		{"array C", write.Field{Type: blocks.Int32, Array: true, Nullable: true},
			write.WriterOptions{NoChecksums: true, Encoding: blocks.Plain, NoPositionalIndex: true},
			fromJSON(t, list, "[[2,3,null,6,8,5,3,1,null,0]]"),
			`6b756475 63666c32 00000000
			0a 01  03 05 fb 02  03 02 0a00  02 02 01
			08000000 00000000 02000000 03000000 06000000 08000000 05000000 03000000 01000000 00000000
			0805 1001 1801 3001 4001 5002 6001  6b756475 63666c32 0e000000`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := writeAll(c.f, c.o, c.arr)
			if err != nil {
				t.Fatal(err)
			}
			if want := unhex(c.want); !bytes.Equal(got, want) {
				t.Errorf("\n%x, not\n%x", got, want)
			}
		})
	}
}

// TestCompressedHeaders: compressed data follows two sizes in v1 and one in v2; v2 stores a block plain if compression
// does not make it smaller.
func TestCompressedHeaders(t *testing.T) {
	zeros, noise := make([]byte, 400), make([]byte, 400)
	for i := range noise {
		noise[i] = byte(i*i*7 + i>>3*91 + i>>1)
	}
	for _, c := range []struct {
		version int
		data    []byte
		check   func(block []byte) bool
	}{
		{1, zeros, func(b []byte) bool {
			return blocks.Le32(b) == uint32(len(b)-8) && blocks.Le32(b[4:]) == 408 && len(b) < 100
		}},
		{1, noise, func(b []byte) bool { return blocks.Le32(b) == uint32(len(b)-8) && blocks.Le32(b[4:]) == 408 }},
		{2, zeros, func(b []byte) bool { return blocks.Le32(b) == 408 && len(b) < 100 }},
		{2, noise, func(b []byte) bool { return blocks.Le32(b) == 408 && len(b) == 412 && bytes.Equal(b[12:], noise) }},
	} {
		d := array.NewData(arrow.PrimitiveTypes.Uint8, len(c.data),
			[]*memory.Buffer{nil, memory.NewBufferBytes(c.data)}, nil, 0, 0)
		b, _, err := writeAll(write.Field{Type: blocks.Uint8},
			write.WriterOptions{Version: c.version, NoChecksums: true, Encoding: blocks.Plain,
				Compression: blocks.Snappy, NoPositionalIndex: true}, array.MakeFromData(d))
		if err != nil {
			t.Fatal(err)
		}
		head := 12 + int(blocks.Le32(b[8:]))
		foot := len(b) - 12 - int(blocks.Le32(b[len(b)-4:]))
		if !c.check(b[head:foot]) {
			t.Errorf("version %d: %x", c.version, b[head:foot])
		}
	}
}

// TestAppendsDoNotMatter: the file does not depend on how values are divided among calls of Append.
func TestAppendsDoNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for typ, info := range blocks.Types {
		for _, enc := range info.Encodings {
			for _, nullable := range []bool{false, true} {
				f := write.Field{Name: "c", Type: typ, Nullable: nullable, Precision: typ.Digits()}
				o := write.WriterOptions{Encoding: enc, BlockSize: 512, IndexBlockSize: 100, Version: 2}
				if enc == blocks.GroupVarint {
					o.Version = 1
				}
				arr := randomArray(r, f, 2500)
				want, sum, err := writeAll(f, o, arr)
				if err != nil {
					t.Fatal(f, err)
				}
				if sum.Rows != 2500 || sum.Bytes != int64(len(want)) || sum.Blocks == 0 || sum.IndexBlocks == 0 {
					t.Errorf("%v: %+v", f, sum)
				}
				for range 3 {
					var parts []arrow.Array
					for a := 0; a < 2500; {
						b := min(2500, a+1+r.IntN(1+r.IntN(900)))
						parts = append(parts, array.NewSlice(arr, int64(a), int64(b)))
						a = b
					}
					got, _, err := writeAll(f, o, parts...)
					if err != nil {
						t.Fatal(f, err)
					}
					if !bytes.Equal(got, want) {
						t.Errorf("%v %v: another file when it comes in %d parts", f, enc, len(parts))
					}
				}
			}
		}
	}
}

// randomArray has runs, repetitions and, in a nullable field, runs of nulls; the values under nulls are noise.
func randomArray(r *rand.Rand, f write.Field, n int) arrow.Array {
	valid, nulls := make([]byte, (n+7)/8), 0
	for i := 0; i < n; {
		null := f.Nullable && r.IntN(3) == 0
		for k := 1 + r.IntN(1+r.IntN(60)); k > 0 && i < n; k-- {
			if null {
				nulls++
			} else {
				valid[i>>3] |= 1 << (i & 7)
			}
			i++
		}
	}
	bufs := []*memory.Buffer{nil}
	if f.Nullable {
		bufs[0] = memory.NewBufferBytes(valid)
	}
	if f.Type.IsBinary() {
		offs, data := []int32{0}, []byte{}
		for range n {
			data = append(data, fmt.Sprintf("w%0*d", r.IntN(30), r.IntN(1+r.IntN(2000)))...)
			offs = append(offs, int32(len(data)))
		}
		bufs = append(bufs, memory.NewBufferBytes(write.RawBytes(offs)), memory.NewBufferBytes(data))
	} else {
		bufs = append(bufs, memory.NewBufferBytes(randomFixed(r, f, n)))
	}
	d := array.NewData(arrowTypeOf(f), n, bufs, nil, nulls, 0)
	return array.MakeFromData(d)
}

func randomFixed(r *rand.Rand, f write.Field, n int) []byte {
	w, digits := max(f.Type.Width(), 1), f.Type.Digits() > 0
	if digits {
		w = 16
	}
	out := make([]byte, 0, n*w)
	for len(out) < n*w {
		v := make([]byte, w)
		for i := range v {
			if !digits || i < 3 {
				v[i] = byte(r.IntN(1 + r.IntN(256)))
			}
		}
		for k := 1 + r.IntN(1+r.IntN(40)); k > 0 && len(out) < n*w; k-- {
			out = append(out, v...)
		}
	}
	return out
}

// TestArrayAppendsDoNotMatter: the same for cells, from lists with offsets.
func TestArrayAppendsDoNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	f := write.Field{Name: "c", Type: blocks.Int16, Array: true, Nullable: true}
	b := array.NewListBuilder(memory.DefaultAllocator, arrow.PrimitiveTypes.Int16)
	for range 3000 {
		if r.IntN(6) == 0 {
			b.AppendNull()
			continue
		}
		b.Append(true)
		for range r.IntN(1 + r.IntN(12)) {
			if r.IntN(4) == 0 {
				b.ValueBuilder().AppendNull()
			} else {
				b.ValueBuilder().(*array.Int16Builder).Append(int16(r.IntN(50)))
			}
		}
	}
	arr := b.NewArray()
	for _, enc := range blocks.Types[blocks.Int16].Encodings {
		o := write.WriterOptions{Encoding: enc, BlockSize: 512}
		want, _, err := writeAll(f, o, arr)
		if err != nil {
			t.Fatal(err)
		}
		var parts []arrow.Array
		for a := 0; a < 3000; {
			b := min(3000, a+1+r.IntN(700))
			parts = append(parts, array.NewSlice(arr, int64(a), int64(b)))
			a = b
		}
		if got, _, err := writeAll(f, o, parts...); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v: another file in %d parts (%v)", enc, len(parts), err)
		}
	}
}

// TestRefused: values that cannot be written are refused with the column and the row.
func TestRefused(t *testing.T) {
	i32 := arrow.PrimitiveTypes.Int32
	dec := &arrow.Decimal128Type{Precision: 12, Scale: 2}
	big := array.NewListBuilder(memory.DefaultAllocator, i32)
	big.Append(true)
	big.Append(true)
	big.ValueBuilder().(*array.Int32Builder).AppendValues(make([]int32, 65536), nil)
	for _, c := range []struct {
		f    write.Field
		o    write.WriterOptions
		arr  arrow.Array
		want string
	}{
		{write.Field{Name: "a", Type: blocks.Int32}, write.WriterOptions{}, fromJSON(t, i32, "[1, 2, null]"),
			`column "a", row 2: null`},
		{write.Field{Name: "a", Type: blocks.Int64}, write.WriterOptions{}, fromJSON(t, i32, "[1]"),
			`column "a": int64 does not hold values of type int32`},
		{write.Field{Name: "a", Type: blocks.Int32}, write.WriterOptions{Version: 3}, nil, "no CFile version 3"},
		{write.Field{Name: "a", Type: blocks.Uint32}, write.WriterOptions{Encoding: blocks.GroupVarint}, nil,
			"version 1 only"},
		{write.Field{Name: "a", Type: blocks.Int32}, write.WriterOptions{Encoding: blocks.Dict}, nil,
			"encoding dict is not defined for type int32"},
		{write.Field{Name: "a", Type: blocks.Int128}, write.WriterOptions{Encoding: blocks.RLE}, nil,
			"encoding rle is not defined for type int128"},
		{write.Field{Name: "a", Type: blocks.Int32, Array: true}, write.WriterOptions{Version: 1}, nil,
			"version 1 has no array blocks"},
		{write.Field{Name: "a", Type: blocks.Int32, Nullable: true}, write.WriterOptions{ValueIndex: true}, nil,
			"without nulls"},
		{write.Field{Name: "a", Type: blocks.Double}, write.WriterOptions{ValueIndex: true}, nil, "no order of keys"},
		{write.Field{Name: "a", Type: blocks.Int32}, write.WriterOptions{ValueIndex: true},
			fromJSON(t, i32, "[-5, 3, 3]"), `column "a", row 2: the value is not above`},
		{write.Field{Name: "a", Type: blocks.String}, write.WriterOptions{ValueIndex: true},
			fromJSON(t, arrow.BinaryTypes.String, `["", "b", "a"]`), `column "a", row 2`},
		{write.Field{Name: "a", Type: blocks.Decimal32, Precision: 10}, write.WriterOptions{}, nil,
			"cannot hold decimal(10,0)"},
		{write.Field{Name: "a", Type: blocks.Int32, Precision: 3}, write.WriterOptions{}, nil, "has no precision"},
		{write.Field{Name: "a", Type: blocks.Decimal32, Precision: 4, Scale: 2}, write.WriterOptions{},
			fromJSON(t, dec, `["1.00", "99.99", "-100.00"]`), `column "a", row 2: the value does not fit`},
		{write.Field{Name: "a", Type: blocks.Decimal128, Precision: 38}, write.WriterOptions{},
			fromJSON(t, &arrow.Decimal256Type{Precision: 60},
				`["1", "99999999999999999999999999999999999999", "100000000000000000000000000000000000000"]`),
			`row 2: the value does not fit`},
		{write.Field{Name: "a", Type: blocks.Decimal128, Precision: 38}, write.WriterOptions{},
			fromJSON(t, &arrow.Decimal256Type{Precision: 60}, `["-340282366920938463463374607431768211456"]`),
			`row 0: the value does not fit`},
		{write.Field{Name: "a", Type: blocks.Decimal64, Precision: 12, Scale: 3}, write.WriterOptions{},
			fromJSON(t, dec, `["1.00"]`), "does not hold"},
		{write.Field{Name: "a", Type: blocks.UnixtimeMicros, Nullable: true}, write.WriterOptions{},
			fromJSON(t, arrow.FixedWidthTypes.Timestamp_ns, `[null, 1000, null, 1001]`),
			`row 3: the value does not fit`},
		{write.Field{Name: "a", Type: blocks.UnixtimeMicros}, write.WriterOptions{},
			fromJSON(t, arrow.FixedWidthTypes.Timestamp_s, `[9223372036855]`), `row 0: the value does not fit`},
		{write.Field{Name: "a", Type: blocks.Date}, write.WriterOptions{},
			fromJSON(t, arrow.FixedWidthTypes.Date64, `[86400000, 1]`), `row 1: the value does not fit`},
		{write.Field{Name: "a", Type: blocks.Varchar, Length: 2}, write.WriterOptions{},
			fromJSON(t, arrow.BinaryTypes.String, `["éé", "abc"]`), `row 1: more than 2 characters`},
		{write.Field{Name: "a", Type: blocks.Int32, Array: true}, write.WriterOptions{}, big.NewArray(),
			`row 1: 65536 elements`},
		{write.Field{Name: "a", Type: blocks.Int32, Array: true}, write.WriterOptions{},
			fromJSON(t, arrow.ListOf(i32), "[[], null]"), `column "a", row 1: null`},
		{write.Field{Name: "a", Type: blocks.UnixtimeMicros, Array: true}, write.WriterOptions{},
			fromJSON(t, arrow.ListOf(arrow.FixedWidthTypes.Timestamp_ns), "[[], [1000], [2000, 1]]"),
			`column "a", row 2: the value`},
		{write.Field{Name: "a", Type: blocks.Type(18)}, write.WriterOptions{}, nil, "data type 18 is not known"},
	} {
		arrs := []arrow.Array{}
		if c.arr != nil {
			arrs = append(arrs, c.arr)
		}
		_, _, err := writeAll(c.f, c.o, arrs...)
		if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %+v: %v, not %q", c.f, c.o, err, c.want)
		}
	}
}

// TestTooLarge: no reader accepts a compressed block of more than 16 MiB.
func TestTooLarge(t *testing.T) {
	b := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	b.Append([]byte("x"))
	b.Append(make([]byte, 16<<20))
	arr := b.NewArray()
	_, _, err := writeAll(write.Field{Name: "a", Type: blocks.Binary},
		write.WriterOptions{Encoding: blocks.Plain, Compression: blocks.LZ4}, arr)
	if !errors.Is(err, fault.Limit) || !strings.Contains(err.Error(), "rows 0 to 1") {
		t.Errorf("%v", err)
	}
	if _, _, err := writeAll(write.Field{Name: "a", Type: blocks.Binary},
		write.WriterOptions{Encoding: blocks.Plain}, arr); err != nil {
		t.Errorf("not compressed: %v", err)
	}
}

// TestConversions: Arrow types that Kudu does not have are stored as equivalent types.
func TestConversions(t *testing.T) {
	us := arrow.FixedWidthTypes.Timestamp_us
	for _, c := range []struct {
		f        write.Field
		arr, was arrow.Array
	}{
		{write.Field{Type: blocks.UnixtimeMicros, Nullable: true},
			fromJSON(t, arrow.FixedWidthTypes.Timestamp_s, "[1, null, -2]"),
			fromJSON(t, us, "[1000000, null, -2000000]")},
		{write.Field{Type: blocks.UnixtimeMicros, Nullable: true},
			fromJSON(t, arrow.FixedWidthTypes.Timestamp_ms, "[1, null, -2]"), fromJSON(t, us, "[1000, null, -2000]")},
		{write.Field{Type: blocks.UnixtimeMicros, Nullable: true},
			fromJSON(t, arrow.FixedWidthTypes.Timestamp_ns, "[1000, null, -2000]"), fromJSON(t, us, "[1, null, -2]")},
		{write.Field{Type: blocks.Date}, fromJSON(t, arrow.FixedWidthTypes.Date64, "[86400000, -86400000]"),
			fromJSON(t, arrow.FixedWidthTypes.Date32, "[1, -1]")},
		{write.Field{Type: blocks.Decimal64, Precision: 12, Scale: 1, Nullable: true},
			fromJSON(t, &arrow.Decimal256Type{Precision: 12, Scale: 1}, `["-1.5", null, "99999999999.9"]`),
			fromJSON(t, &arrow.Decimal128Type{Precision: 12, Scale: 1}, `["-1.5", null, "99999999999.9"]`)},
		{write.Field{Type: blocks.Decimal32, Precision: 3, Nullable: true},
			array.MakeArrayOfNull(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 3}, 3),
			fromJSON(t, &arrow.Decimal128Type{Precision: 3}, "[null, null, null]")},
		{write.Field{Type: blocks.Float}, fromJSON(t, arrow.FixedWidthTypes.Float16, "[0.5, -2]"),
			fromJSON(t, arrow.PrimitiveTypes.Float32, "[0.5, -2]")},
		{write.Field{Type: blocks.String}, fromJSON(t, arrow.BinaryTypes.LargeString, `["a", ""]`),
			fromJSON(t, arrow.BinaryTypes.String, `["a", ""]`)},
		{write.Field{Type: blocks.Binary}, fromJSON(t, arrow.BinaryTypes.LargeBinary, `["YQ==", ""]`),
			fromJSON(t, arrow.BinaryTypes.Binary, `["YQ==", ""]`)},
		{write.Field{Type: blocks.Binary},
			fromJSON(t, &arrow.FixedSizeBinaryType{ByteWidth: 1}, `["YQ==", "Yg=="]`),
			fromJSON(t, arrow.BinaryTypes.Binary, `["YQ==", "Yg=="]`)},
		{write.Field{Type: blocks.Int64}, fromJSON(t, arrow.FixedWidthTypes.Duration_s, "[1, 2]"),
			fromJSON(t, arrow.PrimitiveTypes.Int64, "[1, 2]")},
		{write.Field{Type: blocks.Int32, Array: true},
			fromJSON(t, arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int32), "[[1,2],[3,null]]"),
			fromJSON(t, arrow.ListOf(arrow.PrimitiveTypes.Int32), "[[1,2],[3,null]]")},
		{write.Field{Type: blocks.Int32, Array: true},
			fromJSON(t, arrow.LargeListOf(arrow.PrimitiveTypes.Int32), "[[1,2],[]]"),
			fromJSON(t, arrow.ListOf(arrow.PrimitiveTypes.Int32), "[[1,2],[]]")},
		{write.Field{Type: blocks.String, Nullable: true},
			dictionary(t, arrow.BinaryTypes.String, `["x","yy",null]`, "[1, 0, null, 2, 1]"),
			fromJSON(t, arrow.BinaryTypes.String, `["yy","x",null,null,"yy"]`)},
		{write.Field{Type: blocks.Int32, Nullable: true},
			dictionary(t, arrow.PrimitiveTypes.Int32, `[7, 8]`, "[1, 0, null]"),
			fromJSON(t, arrow.PrimitiveTypes.Int32, `[8, 7, null]`)},
	} {
		got, _, err := writeAll(c.f, write.WriterOptions{}, c.arr)
		if err != nil {
			t.Errorf("%v: %v", c.arr.DataType(), err)
			continue
		}
		want, _, err := writeAll(c.f, write.WriterOptions{}, c.was)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v is not stored as %v: %v", c.arr, c.was, err)
		}
	}
}

func dictionary(t *testing.T, typ arrow.DataType, vals, index string) arrow.Array {
	return array.NewDictionaryArray(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: typ},
		fromJSON(t, arrow.PrimitiveTypes.Int16, index), fromJSON(t, typ, vals))
}

// TestDecimalWidths: a decimal is stored in as many bytes as its type has, in two's complement.
func TestDecimalWidths(t *testing.T) {
	b := array.NewDecimal128Builder(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 9, Scale: 1})
	b.Append(decimal128.FromI64(-2))
	b.Append(decimal128.FromI64(999999999))
	arr := b.NewArray()
	for typ, want := range map[blocks.Type]string{
		blocks.Decimal32:  "feffffff ffc99a3b",
		blocks.Decimal64:  "feffffffffffffff ffc99a3b00000000",
		blocks.Decimal128: "feffffffffffffffffffffffffffffff ffc99a3b000000000000000000000000",
	} {
		got, _, err := writeAll(write.Field{Type: typ, Precision: 9, Scale: 1},
			write.WriterOptions{Encoding: blocks.Plain, NoChecksums: true}, arr)
		if w := unhex(want); err != nil || !bytes.Equal(got[20:20+len(w)], w) {
			t.Errorf("%v: %x, %v", typ, got, err)
		}
	}
}

// TestOrderedVarint: the boundaries of the lengths, from the documentation of SQLite4's varint.
func TestOrderedVarint(t *testing.T) {
	for x, want := range map[uint64]string{
		0: "00", 240: "f0", 241: "f101", 495: "f1ff", 496: "f200", 2287: "f8ff", 2288: "f90000", 67823: "f9ffff",
		67824:     "fa0108f0",
		1<<24 - 1: "faffffff", 1 << 24: "fb01000000", 1<<32 - 1: "fbffffffff", 1 << 32: "fc0100000000",
		1<<40 - 1: "fcffffffffff",
		1 << 40:   "fd010000000000", 1 << 48: "fe01000000000000", 1 << 56: "ff0100000000000000",
		1<<64 - 1: "ffffffffffffffffff",
	} {
		got := columnfile.AppendOrderedVarint(nil, x)
		if !bytes.Equal(got, unhex(want)) || columnfile.OrderedVarintLen(got[0]) != len(got) {
			t.Errorf("%d: %x, not %s", x, got, want)
		}
	}
}

// TestSeparating: the examples of Kudu's rule for index keys.
func TestSeparating(t *testing.T) {
	for _, c := range [][3]string{{"", "", ""}, {"", "abc", "a"}, {"abc", "abd", "abd"}, {"abc", "b", "b"},
		{"ab", "abcd", "abc"}, {"ab", "ab", "ab"}} {
		if got := c[1][:write.Separating([]byte(c[0]), []byte(c[1]))]; got != c[2] {
			t.Errorf("after %q: %q of %q, not %q", c[0], got, c[1], c[2])
		}
	}
}

// TestBitRuns compares the encoder of bits with that of any width.
func TestBitRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		var a write.BitRuns
		b := rle.NewEncoder(1)
		n := 0
		for n < r.IntN(3000) {
			k := 1 + r.IntN(1+r.IntN(200))
			switch r.IntN(3) {
			case 0:
				bit := uint8(r.IntN(2))
				a.PutRun(bit, k)
				b.PutRun(uint64(bit), k)
			case 1:
				src, from := make([]byte, k/8+2), r.IntN(8)
				for i := range src {
					src[i] = byte(r.Uint32()&(r.Uint32()>>8)) & byte(r.Uint32()>>16) // few ones
				}
				a.Put(src, from, k)
				for i := range k {
					b.Put(uint64(src[(from+i)>>3] >> ((from + i) & 7) & 1))
				}
			case 2:
				k = 1
				bit := r.Uint64() & 1
				a.PutWord(bit, 1)
				b.Put(bit)
			}
			n += k
		}
		if len(a.Buf) != b.Written() {
			t.Fatalf("%d bytes written, not %d, after %d bits", len(a.Buf), b.Written(), n)
		}
		if got, want := a.Finish(), b.Finish(); a.N != n || !bytes.Equal(got, want) {
			t.Fatalf("%d bits: %x, not %x", n, got, want)
		}
	}
}

// TestDeltaOrder: changes must come in the order for the kind of file.
func TestDeltaOrder(t *testing.T) {
	for _, undo := range []bool{false, true} {
		w, err := write.NewDeltaWriter(&bytes.Buffer{}, undo, write.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		l := new(write.ChangeList).Update().Set(3, []byte("x"))
		if err := w.Add(5, 100, l); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			row uint32
			ts  uint64
			ok  bool
		}{{4, 200, false}, {5, 99, undo}, {5, 101, !undo}} {
			if err := w.Add(c.row, c.ts, l); (err == nil) != c.ok {
				t.Errorf("undo %t: row %d at %d: %v", undo, c.row, c.ts, err)
			}
		}
	}
	w, _ := write.NewDeltaWriter(&bytes.Buffer{}, false, write.WriterOptions{})
	for _, l := range []*write.ChangeList{new(write.ChangeList), new(write.ChangeList).Update(),
		new(write.ChangeList).Delete().SetNull(1)} {
		if err := w.Add(1, 1, l); !errors.Is(err, fault.Invalid) {
			t.Errorf("%x: %v", l.Bytes(), err)
		}
	}
	if _, err := w.Close(); !errors.Is(err, fault.Invalid) {
		t.Errorf("a file without changes: %v", err)
	}
}

// TestFailedWriter: after an error every call returns it.
func TestFailedWriter(t *testing.T) {
	for left := range 8 {
		w, err := write.NewWriter(&failing{left: left}, write.Field{Type: blocks.Int64},
			write.WriterOptions{BlockSize: 512, IndexBlockSize: 30})
		arr := fromJSON(t, arrow.PrimitiveTypes.Int64, "[1,2,3]")
		for i := 0; err == nil && i < 100; i++ {
			err = w.Append(arr)
		}
		if err == nil {
			_, err = w.Close()
		}
		if !errors.Is(err, errFull) {
			t.Fatalf("%d writes: %v", left, err)
		}
		if left > 0 {
			if err := w.Append(arr); !errors.Is(err, errFull) {
				t.Errorf("Append after an error: %v", err)
			}
			if _, err := w.Close(); !errors.Is(err, errFull) {
				t.Errorf("Close after an error: %v", err)
			}
		}
	}
}

var errFull = errors.New("the disk is full")

type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}
