package carbon

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/klauspost/compress/s2"

	"stoa/fault"
	"stoa/format"
	dicts "stoa/format/carbon/internal/dict"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/store"
	"stoa/vec"
	"stoa/wire"
)

// classText is the beginning of a ValueEncoderMeta serialized by Java, up to its values; it is from a real file.
const classText = "" +
	"aced0005737200346f72672e6170616368652e636172626f6e646174612e636f72652e6d657461646174612e56616c7565456e63" +
	"6f6465724d657461e86a31bb2c82999b020006420010646174615479706553656c6563746564490007646563696d616c43000474" +
	"7970654c00086d617856616c75657400124c6a6176612f6c616e672f4f626a6563743b4c00086d696e56616c756571007e00014c" +
	"000b756e6971756556616c756571007e00017870"

const (
	longText = "" +
		"7372000e6a6176612e6c616e672e4c6f6e673b8be490cc8f23df0200014a000576616c7565787200106a6176612e6c616e672e4e" +
		"756d62657286ac951d0b94e08b0200007870"
	doubleText = "" +
		"737200106a6176612e6c616e672e446f75626c6580b3c24a296bfb0402000144000576616c7565787200106a6176612e6c616e67" +
		"2e4e756d62657286ac951d0b94e08b0200007870"
	againText = "737100" + "7e0003" // another object of the previous class
)

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// javaMeta serializes a ValueEncoderMeta whose bounds are all int64 or all float64.
func javaMeta(kind byte, digits int, max, min any) []byte {
	b := unhex(classText)
	b = append(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(digits))
	b = append(b, 0, kind)
	for i, v := range []any{max, min, min} {
		n, whole := v.(int64)
		if !whole {
			n = int64(math.Float64bits(v.(float64)))
		}
		switch {
		case i > 0:
			b = append(b, unhex(againText)...)
		case whole:
			b = append(b, unhex(longText)...)
		default:
			b = append(b, unhex(doubleText)...)
		}
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return b
}

func TestMeasureMeta(t *testing.T) {
	b := javaMeta('n', 2, 9996.0625, -4.5)
	c := wire.NewCursor(b, fault.Span{Object: "f", Len: int64(len(b))}, "")
	m := layout.ParseMeasureMeta(layout.BigEndian{Cursor: c})
	if c.Err() != nil || c.Left() != 0 || m != (layout.MeasureMeta{Kind: 'n', Digits: 2, Max: 9996.0625, Min: -4.5}) {
		t.Errorf("%+v %v", m, c.Err())
	}
	for n := range b { // cut anywhere
		c := wire.NewCursor(b[:n], fault.Span{Object: "f", Len: int64(n)}, "")
		if layout.ParseMeasureMeta(layout.BigEndian{Cursor: c}); !errors.Is(c.Err(), fault.Corrupt) {
			t.Fatalf("cut at %d: %v", n, c.Err())
		}
	}
}

// TestMeasureForms decodes pages of every form that CarbonData 1.0.0's rules can choose; the form follows from these
// rules (ValueCompressionUtil), and the bytes were written by hand.
func TestMeasureForms(t *testing.T) {
	le := func(w int, v ...int64) (b []byte) {
		for _, x := range v {
			var eight [8]byte
			binary.LittleEndian.PutUint64(eight[:], uint64(x))
			b = append(b, eight[:w]...)
		}
		return b
	}
	bits := func(f float64) int64 { return int64(math.Float64bits(f)) }
	long, double := arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float64
	big := int64(1) << 60
	for name, c := range map[string]struct {
		meta []byte
		typ  arrow.DataType
		raw  []byte
		want string
	}{
		"bytes": {javaMeta('d', 0, int64(127), int64(0)), long, le(1, 0, 127, 5), "[0 127 5]"},
		"the wider type": {javaMeta('d', 0, int64(100), int64(-30000)), long, le(2, -30000, 100, 7),
			"[-30000 100 7]"},
		"shorts": {javaMeta('d', 0, int64(300), int64(0)), long, le(2, 300, 0, 299), "[300 0 299]"},
		"bytes from the top": {javaMeta('d', 0, int64(1000000), int64(999900)), long, le(1, 0, 100, 50),
			"[1000000 999900 999950]"},
		"shorts from the top": {javaMeta('d', 0, big, big-1000), long, le(2, 0, 1000, 1),
			"[1152921504606846976 1152921504606845976 1152921504606846975]"},
		"ints from the top": {javaMeta('d', 0, big, big-1<<20), long, le(4, 1<<20, 0, 1),
			"[1152921504605798400 1152921504606846976 1152921504606846975]"},
		"longs": {javaMeta('d', 0, big, -big), long, le(8, big, -big, 3),
			"[1152921504606846976 -1152921504606846976 3]"},
		"longs of 0.x":      {javaMeta('l', 0, int64(3), int64(1)), long, le(8, 1, 2, 3), "[1 2 3]"},
		"whole doubles":     {javaMeta('n', 0, 3.0, -200.0), double, le(2, 3, -200, 0), "[3 -200 0]"},
		"doubles, from top": {javaMeta('n', 0, 1e6, 1e6-5), double, le(1, 0, 5, 2), "[1e+06 999995 999998]"},
		"ints kept as doubles": {javaMeta('n', 0, 1e6, 1e6-5), arrow.PrimitiveTypes.Int32, le(1, 0, 5, 2),
			"[1000000 999995 999998]"},
		"tens": {javaMeta('n', 2, 1.27, -1.0), double, le(1, 127, -100, 3), "[1.27 -1 0.03]"},
		"tens from the top": {javaMeta('n', 2, 1000000000.25, 1000000000.0), double, le(1, 0, 25, 13),
			"[1.00000000025e+09 1e+09 1.00000000012e+09]"},
		"as they are": {javaMeta('n', 17, 1.5, -1.5), double, le(8, bits(1.5), bits(-1.5), bits(0.1)),
			"[1.5 -1.5 0.1]"},
		"beyond longs": {javaMeta('n', 0, 1e300, -1.0), double, le(8, bits(1e300), bits(-1), bits(7)),
			"[1e+300 -1 7]"},
	} {
		got, err := decodeMeasure(c.meta, s2.EncodeSnappy(nil, c.raw), 3, c.typ, nil)
		if err != nil || arrayText(got) != c.want {
			t.Errorf("%s: %s %v, want %s", name, arrayText(got), err, c.want)
		}
	}
	// entries are null if the bits mark them, whatever values they have
	nulls := s2.EncodeSnappy(nil, []byte{2})
	got, err := decodeMeasure(javaMeta('d', 0, int64(1000000), int64(999900)),
		s2.EncodeSnappy(nil, le(1, 0, 1000000, 50)), 3, long, nulls)
	if err != nil || arrayText(got) != "[1000000 (null) 999950]" {
		t.Errorf("nulls: %s %v", arrayText(got), err)
	}
	for name, c := range map[string]struct {
		meta []byte
		raw  []byte
		n    int64
	}{
		"too few":            {javaMeta('d', 0, int64(127), int64(0)), le(1, 1, 2), 3},
		"too many":           {javaMeta('d', 0, int64(127), int64(0)), le(1, 1, 2, 3, 4), 3},
		"beyond the bounds":  {javaMeta('d', 0, int64(9), int64(0)), le(1, 1, 2, 10), 3},
		"below the bounds":   {javaMeta('n', 1, 9.0, 0.5), le(1, 5, 90, 4-30), 3},
		"bounds that differ": {javaMeta('n', 0, int64(9), int64(0)), le(1, 1, 2, 3), 3},
	} {
		typ := arrow.DataType(long)
		if name == "below the bounds" {
			typ = double
		}
		if got, err := decodeMeasure(c.meta, s2.EncodeSnappy(nil, c.raw), c.n, typ, nil); !errors.Is(err,
			fault.Corrupt) && !errors.Is(err, fault.Unsupported) {
			t.Errorf("%s: %s %v", name, arrayText(got), err)
		}
	}
}

// TestMeasureOfFormat3: release 1.1's format 3 has the same numbers as the earlier formats, with different metadata.
func TestMeasureOfFormat3(t *testing.T) {
	meta := []byte{0, 'd'}
	for _, v := range []int64{1000000, 999900, 999899} {
		meta = binary.BigEndian.AppendUint64(meta, uint64(v))
	}
	meta = append(meta, 0, 0, 0, 0, 0)
	data := s2.EncodeSnappy(nil, []byte{0, 100, 50})
	p := &page.StoredPage{Version: 3, Col: &schema.Column{ColumnSchema: &layout.ColumnSchema{Type: layout.TypeLong}},
		Limits: format.Limits{}.WithDefaults(), Spans: 1,
		DataChunk: &layout.DataChunk{Codec: "snappy", DataLen: int32(len(data)), Meta: [][]byte{meta},
			Encoders: layout.Encodings{layout.EncDelta}}}
	got, err := decodeOne(p, data, 3, arrow.PrimitiveTypes.Int64, nil)
	if err != nil || arrayText(got) != "[1000000 999900 999950]" {
		t.Error(arrayText(got), err)
	}
	p.Meta[0] = meta[:20]
	if _, err := decodeOne(p, data, 3, arrow.PrimitiveTypes.Int64, nil); !errors.Is(err, fault.Corrupt) {
		t.Error(err)
	}
}

func decodeMeasure(meta, data []byte, n int64, typ arrow.DataType, nulls []byte) (arrow.Array, error) {
	p := &page.StoredPage{Version: 2, Col: &schema.Column{ColumnSchema: &layout.ColumnSchema{Type: layout.TypeLong}},
		Limits: format.Limits{}.WithDefaults(), Spans: 1,
		DataChunk: &layout.DataChunk{Codec: "snappy", DataLen: int32(len(data)), Meta: [][]byte{meta},
			Encoders: layout.Encodings{layout.EncDelta}, Presence: &layout.Presence{Bits: nulls}}}
	return decodeOne(p, data, n, typ, nil)
}

func decodeOne(p *page.StoredPage, data []byte, n int64, typ arrow.DataType, dict *vec.Vector) (arrow.Array, error) {
	dst, err := vec.New(typ, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	t := &format.Task{N: n, Bytes: [][]byte{data}, Scratch: &vec.Arena{}, Limits: p.Limits, Dict: dict}
	if err := p.Decode(t, t.Bytes, n, dst); err != nil {
		return nil, err
	}
	if err := dst.Plain(); err != nil {
		return nil, err
	}
	return dst.View(dst.Len())
}

func arrayText(a arrow.Array) string {
	if a == nil {
		return "nothing"
	}
	var out []string
	for i := range a.Len() {
		if s, ok := a.(*array.String); ok && a.IsValid(i) {
			out = append(out, s.Value(i))
		} else {
			out = append(out, a.ValueStr(i))
		}
	}
	return "[" + strings.Join(out, " ") + "]"
}

// TestPackedNumbers unpacks numbers of every width; the bytes are those of one big number.
func TestPackedNumbers(t *testing.T) {
	for w := 1; w <= 24; w++ {
		var want []uint32
		for i := range 19 {
			want = append(want, uint32(i*i*i*7919+i)&(1<<w-1))
		}
		b := pack(want, w)
		got, err := page.UnpackNumbers(b, w, &vec.Arena{})
		if k := len(got) - len(want); err != nil || k < 0 || !slices.Equal(got[k:], want) ||
			slices.ContainsFunc(got[:k], func(v uint32) bool { return v != 0 }) {
			t.Errorf("%d bits: %v %v, want %v", w, got, err, want)
		}
	}
	if _, err := page.UnpackNumbers([]byte{0x80, 0, 0}, 17, &vec.Arena{}); !errors.Is(err, fault.Corrupt) {
		t.Error("bits above the first number are not noticed")
	}
}

// pack is the inverse of UnpackNumbers, bit by bit.
func pack(v []uint32, w int) []byte {
	n := len(v) * w
	out := make([]byte, (n+7)/8)
	for i, x := range v {
		for k := range w {
			if at := (len(v)-1-i)*w + k; x>>k&1 != 0 {
				out[len(out)-1-at/8] |= 1 << (at % 8)
			}
		}
	}
	return out
}

// TestWidthIsFound: the width of row ids is found for every value of the property, and remembered.
func TestWidthIsFound(t *testing.T) {
	for _, size := range []int{2000, 2047, 2048, 120000, 131072, 12000000} {
		w := 1
		for size>>w != 0 {
			w++
		}
		ids := []uint32{1999, 3, 9, 0, 2, 10, 1998} // 1999, 3 to 9, 0 to 2, 10 to 1998
		var k page.KeyWidths
		got, err := k.RowIDs(pack(ids, w), pack([]uint32{1, 3, 5}, w), 2000, &vec.Arena{})
		if err != nil || len(got) != 2000 || got[0] != 1999 || got[1] != 3 || got[8] != 0 || got[1999] != 1998 ||
			int(k.Found.Load()) != w {
			t.Errorf("%d: %d row ids, %v, found %d", size, len(got), err, k.Found.Load())
		}
		k.Found.Store(0)
		runs, err := k.Runs(pack([]uint32{0, 5, 5, 1990, 1995, 5}, w), &vec.Arena{})
		if err != nil || !slices.Equal(runs, []uint32{0, 5, 5, 1990, 1995, 5}) {
			t.Errorf("%d: runs %v %v", size, runs, err)
		}
		if _, err := k.RowIDs(pack([]uint32{0, 1, 1}, w), nil, 3, &vec.Arena{}); !errors.Is(err, fault.Corrupt) {
			t.Errorf("%d: no permutation: %v", size, err)
		}
	}
}

// dictionaryOf returns a table's directory with one dictionary, built by hand.
func dictionaryOf(values []string, more map[string][]byte) *store.Memory {
	files := map[string][]byte{"m/c.dict": dictBytes(values)}
	for k, v := range more {
		files[k] = v
	}
	return store.NewMemory(files)
}

func dictBytes(values []string) []byte {
	b := []byte{0x19, 0xf8, byte(len(values))} // field 1, a list of that many (fewer than 128) binaries
	for _, v := range values {
		b = append(append(b, byte(len(v))), v...)
	}
	return append(b, 0)
}

// TestTypedDictionaries decodes codes of each width to values of each type.
func TestTypedDictionaries(t *testing.T) {
	for _, c := range []struct {
		typ    layout.DataType
		values []string
		want   string
	}{
		{layout.TypeString, []string{"b", "", "a"}, "[b (null)  a]"},
		{layout.TypeInt, []string{"-7", "12", "2147483647"}, "[-7 (null) 12 2147483647]"},
		{layout.TypeShort, []string{"-7", "12", "32767"}, "[-7 (null) 12 32767]"},
		{layout.TypeLong, []string{"-7", "12", "9223372036854775807"}, "[-7 (null) 12 9223372036854775807]"},
		{layout.TypeDouble, []string{"1.5", "-2e10", "0.1"}, "[1.5 (null) -2e+10 0.1]"},
		{layout.TypeDecimal, []string{"1.50", "-2", "0.01"}, "[1.5 (null) -2 0.01]"},
		{layout.TypeBoolean, []string{"true", "false", "true"}, "[true (null) false true]"},
	} {
		col := &schema.Column{ColumnSchema: &layout.ColumnSchema{Type: c.typ, Name: "c", ID: "c", Dimension: true,
			Encoders: layout.Encodings{layout.EncDictionary}, Precision: 10, Scale: 2}}
		d := dicts.NewDictionaries(dictionaryOf(append([]string{schema.NullText}, c.values...), nil), "m",
			format.OpenOptions{})
		for w := 1; w <= 4; w++ {
			var raw []byte
			for _, code := range []uint32{2, 1, 3, 4} {
				four := binary.BigEndian.AppendUint32(nil, code)
				raw = append(raw, four[4-w:]...)
			}
			got, err := decodeCodes(t, d, col, raw, 4)
			if err != nil || arrayText(got) != c.want {
				t.Errorf("%s, %d bytes: %s %v, want %s", c.typ, w, arrayText(got), err, c.want)
			}
		}
		for _, code := range []byte{0, 5, 255} {
			if _, err := decodeCodes(t, d, col, []byte{code}, 1); !errors.Is(err, fault.Corrupt) {
				t.Errorf("%s: code %d: %v", c.typ, code, err)
			}
		}
	}
	// a value that is not of the type costs only the pages with its code
	col := &schema.Column{ColumnSchema: &layout.ColumnSchema{Type: layout.TypeInt, Name: "c", ID: "c",
		Dimension: true, Encoders: layout.Encodings{layout.EncDictionary}}}
	d := dicts.NewDictionaries(dictionaryOf([]string{schema.NullText, "5", "x"}, nil), "m", format.OpenOptions{})
	if got, err := decodeCodes(t, d, col, []byte{2, 1}, 2); err != nil || arrayText(got) != "[5 (null)]" {
		t.Error(arrayText(got), err)
	}
	if _, err := decodeCodes(t, d, col, []byte{2, 3}, 2); !errors.Is(err, fault.Corrupt) {
		t.Error(err)
	}
}

func decodeCodes(t *testing.T, d *dicts.Dictionaries, col *schema.Column, raw []byte, n int64) (arrow.Array, error) {
	t.Helper()
	typ, err := col.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	g, err := d.Global(context.Background(), col)
	if err != nil {
		return nil, err
	}
	words, err := vec.New(typ, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Tree.Open(context.Background(), g.Dict.Object)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]byte, g.Dict.Len)
	if err := format.ReadFull(context.Background(), b, g.Dict, "", all); err != nil {
		t.Fatal(err)
	}
	if err := g.Decode(&format.Task{Bytes: [][]byte{all}, Scratch: &vec.Arena{}}, words); err != nil {
		return nil, err
	}
	data := s2.EncodeSnappy(nil, raw)
	p := &page.StoredPage{Version: 2, Col: col, Limits: format.Limits{}.WithDefaults(), Spans: 1, Global: true,
		DataChunk: &layout.DataChunk{Codec: "snappy", DataLen: int32(len(data)),
			Encoders: layout.Encodings{layout.EncDictionary}}}
	return decodeOne(p, data, n, typ, words)
}

// TestCodeBounds: codes have the bounds of the values that they stand for, with a sort index, without one, and with a
// wrong one.
func TestCodeBounds(t *testing.T) {
	col := &schema.Column{ColumnSchema: &layout.ColumnSchema{Type: layout.TypeInt, Name: "c", ID: "c",
		Dimension: true, Encoders: layout.Encodings{layout.EncDictionary}}}
	values := []string{schema.NullText, "50", "7", "-3", "1000"}
	index := func(codes, ranks []byte) []byte {
		b := append([]byte{0x19, 0x55}, codes...)
		return append(append(append(b, 0x19, 0x55), ranks...), 0)
	}
	name := "m/c_" + "26" + dicts.SortExt
	if n := len(dictBytes(values)); n != 26 {
		t.Fatal(n)
	}
	good := index([]byte{2, 8, 6, 4, 10}, []byte{2, 8, 6, 4, 10}) // zigzag: codes 1 4 3 2 5, and their ranks
	wrongBounds := index([]byte{2, 4, 6, 8, 10}, []byte{2, 4, 6, 8, 10})
	for how, files := range map[string]map[string][]byte{"good": {name: good}, "none": nil,
		"wrong": {name: wrongBounds}} {
		g, err := dicts.NewDictionaries(dictionaryOf(values, files), "m",
			format.OpenOptions{}).Global(context.Background(), col)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			lo, hi   byte
			min, max int64
		}{{2, 2, 50, 50}, {2, 3, 7, 50}, {1, 4, -3, 50}, {3, 5, -3, 1000}} {
			b, err := g.Bounds(context.Background(), []byte{c.lo}, []byte{0, c.hi})
			if err != nil || b == nil || b.Min.Int != c.min || b.Max.Int != c.max || (b.Nulls == 0) != (c.lo > 1) {
				t.Errorf("%s, codes %d to %d: %+v %v", how, c.lo, c.hi, b, err)
			}
		}
		if b, err := g.Bounds(context.Background(), []byte{3}, []byte{6}); b != nil || err != nil {
			t.Errorf("%s: bounds of a code that is not there: %v %v", how, b, err)
		}
		if from := g.Order.From; (from != "") != (how == "good") {
			t.Errorf("%s: the order came from %q", how, from)
		}
	}
}

// TestTextColumns: dimensions without a dictionary are texts, whatever their type.
func TestTextColumns(t *testing.T) {
	col := &schema.Column{ColumnSchema: &layout.ColumnSchema{Type: layout.TypeInt, Name: "c", Dimension: true}}
	data := s2.EncodeSnappy(nil, []byte("\x00\x0217\x00\x08"+schema.NullText+"\x00\x02-4"))
	p := &page.StoredPage{Version: 1, Col: col, Limits: format.Limits{}.WithDefaults(), Spans: 1,
		DataChunk: &layout.DataChunk{Codec: "snappy", DataLen: int32(len(data))}}
	got, err := decodeOne(p, data, 3, arrow.PrimitiveTypes.Int32, nil)
	if err != nil || arrayText(got) != "[17 (null) -4]" {
		t.Error(arrayText(got), err)
	}
	data = s2.EncodeSnappy(nil, []byte("\x00\x021x"))
	p.DataLen = int32(len(data))
	if got, err := decodeOne(p, data, 1, arrow.PrimitiveTypes.Int32, nil); !errors.Is(err, fault.Corrupt) {
		t.Error(got, err)
	}
}
