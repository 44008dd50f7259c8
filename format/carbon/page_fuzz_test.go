package carbon

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	pages "stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/table"
	"stoa/format/formattest"
	"stoa/store"
	"stoa/vec"
)

// Encodings of pages of format 3; a page has one or several.
var fuzzEncoders = []layout.Encodings{
	{layout.EncDirectCompress}, {layout.EncAdaptiveIntegral}, {layout.EncAdaptiveDeltaIntegral},
	{layout.EncRLEIntegral}, {layout.EncAdaptiveFloating}, {layout.EncAdaptiveDeltaFloating},
	{layout.EncBoolByte}, {layout.EncDirectCompressVarchar}, {layout.EncDirectString},
	{layout.EncDictionary, layout.EncDirectDictionary}, {layout.EncDictionary},
	{layout.EncDirectCompress, layout.EncIntLengthChild},
	{layout.EncDictionary, layout.EncRLE, layout.EncInvertedIndex}, {layout.EncDictionary, layout.EncRLE},
	{layout.EncDirectString, layout.EncInvertedIndex},
	{layout.EncDirectCompress, layout.EncRLE, layout.EncInvertedIndex},
}

var fuzzTypes = []layout.DataType{layout.TypeString, layout.TypeShort, layout.TypeInt, layout.TypeLong,
	layout.TypeDouble, layout.TypeDecimal, layout.TypeTimestamp, layout.TypeDate, layout.TypeBoolean,
	layout.TypeVarchar, layout.TypeFloat, layout.TypeByte, layout.TypeBinary}

// Shapes of a fuzzed page: bits of its number.
const (
	fuzzCoded  = 1 << iota // the values are codes of a dictionary
	fuzzMeta               // it has an encoder's metadata
	fuzzNulls              // it has bits of nulls
	fuzzChild              // it is below a list or struct
	fuzzList               // the list above it is decoded; the nulls argument has its lengths
	fuzzStruct             // the struct above it is decoded
	fuzzNoRows             // the number of entries is unknown
)

// FuzzPage decodes pages of format 3 with any encodings and types, with row ids, runs and nulls, and the list or struct
// above them.
func FuzzPage(f *testing.F) {
	seeds := 0
	for _, pattern := range []string{"v3/*/table/*.carbondata", "managed/*/Fact/Part0/*/*.carbondata"} {
		names, err := filepath.Glob(filepath.Join("../../corpus/carbon/2.3.0", pattern))
		if err != nil {
			f.Fatal(err)
		}
		for _, n := range names {
			if b, err := os.ReadFile(n); err == nil && len(b) < 24<<10 {
				seeds += pageSeeds(f, b)
			}
		}
	}
	if seeds < 60 {
		f.Fatalf("%d seeds", seeds)
	}
	// Two lists whose lengths claim 2³¹ items; the page has one.
	f.Add(uint8(0), uint8(0), uint8(fuzzList|fuzzCoded), uint16(2), []byte{}, []byte{0, 0, 2}, []byte{}, []byte{},
		[]byte("\x7f\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, encoding, typ uint8, shape uint8, n uint16, meta, raw, ids, runs, nulls []byte) {
		before := formattest.Allocated()
		e := fuzzEncoders[int(encoding)%len(fuzzEncoders)]
		p := &pages.StoredPage{Version: 3, Limits: v12Limits, Spans: 1, Rows: int64(n), Coded: shape&fuzzCoded != 0,
			Dates: pages.DateRule{Unit: 1000},
			DataChunk: &layout.DataChunk{Codec: "none", Encoders: e, DataLen: int32(len(raw)),
				RowidLen: int32(len(ids)), RleLen: int32(len(runs)), Rows: -1},
			Col: &schema.Column{ColumnSchema: &layout.ColumnSchema{Name: "c",
				Type: fuzzTypes[int(typ)%len(fuzzTypes)], Precision: 20, Scale: 2, Dimension: true, Ordinal: -1},
				Cardinality: -1}}
		if shape&fuzzMeta != 0 {
			p.Meta = [][]byte{meta}
		}
		if shape&fuzzNulls != 0 {
			p.Presence = &layout.Presence{Bits: nulls}
		}
		if shape&(fuzzChild|fuzzList|fuzzStruct) != 0 {
			p.Col.Parent = &schema.Column{ColumnSchema: &layout.ColumnSchema{Type: layout.TypeArray, Name: "p",
				Ordinal: -1, NumChild: 1}, Cardinality: -1, Children: []*schema.Column{p.Col}}
		}
		at, err := p.Col.Arrow()
		if err != nil {
			t.Fatal(err)
		}
		task := &format.Task{Scratch: &vec.Arena{}, Limits: v12Limits,
			Bytes: [][]byte{append(append(append([]byte{}, raw...), ids...), runs...)}, N: int64(n)}
		if shape&fuzzNoRows != 0 {
			task.N = -1
		}
		if p.Coded {
			task.Dict = fuzzDictionary(t)
			p.NullCodes = []uint32{schema.NullCode}
			at = arrow.BinaryTypes.String
		}
		if shape&(fuzzList|fuzzStruct) != 0 {
			fuzzAbove(t, p, task, nulls, shape)
		} else if dst, err := vec.New(at, memory.DefaultAllocator); err != nil {
			t.Fatal(err)
		} else if err = p.Decode(task, task.Bytes, task.N, dst); err != nil {
			pageFault(t, err)
		} else {
			fuzzEmit(t, dst, task.N)
		}
		if grown := formattest.Allocated() - before; grown > 96<<20 {
			t.Errorf("%d bytes were allocated for %d", grown, len(task.Bytes[0]))
		}
	})
}

// fuzzAbove decodes the list or struct of p, whose page is above.
func fuzzAbove(t *testing.T, p *pages.StoredPage, task *format.Task, above []byte, shape uint8) {
	parent := pages.StoredPage{Version: 3, Limits: v12Limits, Spans: 1, Rows: task.N, Col: p.Col.Parent,
		Below: []pages.StoredPage{*p},
		DataChunk: &layout.DataChunk{Codec: "none", Encoders: layout.Encodings{layout.EncDirectCompress},
			DataLen: int32(len(above)), Rows: -1}}
	if shape&fuzzStruct != 0 {
		parent.Col.Type = layout.TypeStruct
	}
	task.Bytes = append([][]byte{above}, task.Bytes...)
	dst, err := vec.New(arrow.PrimitiveTypes.Int32, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Lengths(task, dst); err != nil {
		pageFault(t, err)
		return
	}
	fuzzEmit(t, dst, task.N)
}

// pageFault fails the test unless the error of a page has a class that a file can cause.
func pageFault(t *testing.T, err error) {
	var e *fault.Error
	if !errors.As(err, &e) || e.Class == fault.Bug || e.Class == fault.Invalid {
		t.Fatalf("%T %v", err, err)
	}
}

// fuzzEmit builds an array of the first n decoded entries, or of all if n is negative.
func fuzzEmit(t *testing.T, dst *vec.Vector, n int64) {
	if n >= 0 && int64(dst.Len()) != n {
		t.Fatalf("got %d entries, want %d", dst.Len(), n)
	}
	a, err := dst.Emit(dst.Len())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	if err := formattest.ValidArray(a); err != nil {
		t.Fatal(err)
	}
}

func fuzzDictionary(t *testing.T) *vec.Vector {
	d, err := vec.New(arrow.BinaryTypes.String, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	at := d.Extend(4)
	offs := d.Offsets(at)
	b, err := d.Bytes(offs[0], 6)
	if err != nil {
		t.Fatal(err)
	}
	copy(b, "aabbcc")
	for i, n := range []int32{0, 0, 2, 6} {
		offs[i+1] = n
	}
	return d
}

// pageSeeds adds the pages of a real file as seeds.
func pageSeeds(f *testing.F, data []byte) (n int) {
	ctx := context.Background()
	tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f.carbondata": data}), Name: "f.carbondata"}
	tab, err := table.OpenFiles(ctx, tg, format.OpenOptions{Limits: v12Limits}, table.ReadOptions{Bucket: -1},
		[]string{tg.Name}, nil)
	if err != nil {
		f.Fatal(err)
	}
	for part := range tab.Parts(ctx, format.Query{}) {
		groups, err := tab.RowGroups(ctx, part, format.Query{})
		if err != nil {
			f.Fatal(err)
		}
		for c := range tab.Columns() {
			ch, err := tab.Chunk(ctx, groups[0], c, vec.Range{To: groups[0].Rows})
			if err != nil {
				f.Fatal(err)
			}
			page, err := ch.Next(ctx)
			if err == io.EOF {
				continue
			} else if err != nil {
				f.Fatal(err)
			}
			n += pageSeed(f, &page, data)
		}
	}
	return n
}

func pageSeed(f *testing.F, page *format.Page, data []byte) int {
	p, ok := page.Own.(*pages.StoredPage)
	if !ok {
		return 0
	}
	task := &format.Task{Page: *page, N: page.Entries, Scratch: &vec.Arena{}, Limits: v12Limits}
	for _, s := range page.Spans {
		task.Bytes = append(task.Bytes, data[s.Off:s.End()])
	}
	above, shape := []byte(nil), uint8(0)
	if p.Col.Type.Complex() {
		c, err := p.Open(task, task.Bytes[:p.Spans], task.N)
		if err != nil || len(p.Below) == 0 || p.Below[0].Col.Type.Complex() {
			return 0
		}
		shape = fuzzList
		if p.Col.Type == layout.TypeStruct {
			shape = fuzzStruct
		}
		above, task.Bytes, p = c.Raw, task.Bytes[p.Spans:], &p.Below[0]
	}
	c, err := p.Open(task, task.Bytes, -1)
	if err != nil {
		return 0
	}
	_, ids, runs, err := p.Pieces(task.Bytes)
	if err != nil || len(c.Raw) > 2000 {
		return 0
	}
	var meta []byte
	if p.Coded {
		shape |= fuzzCoded
	}
	if len(p.Meta) > 0 {
		shape, meta = shape|fuzzMeta, p.Meta[0]
	}
	if len(c.Nulls) > 0 && above == nil {
		shape, above = shape|fuzzNulls, c.Nulls
	}
	typ, enc := 0, -1
	for i, t := range fuzzTypes {
		if t == p.Col.Type {
			typ = i
		}
	}
	for i, e := range fuzzEncoders {
		if strings.HasPrefix(p.Encoders.String(), e.String()) {
			enc = i
		}
	}
	if enc < 0 {
		return 0
	}
	raw := c.Raw
	if p.Encoders.Has(layout.EncRLE) && len(runs) > 0 { // the runs were expanded
		runs = nil
	}
	f.Add(uint8(enc), uint8(typ), shape, uint16(max(0, page.Entries)), meta, raw, ids, runs, above)
	return 1
}
