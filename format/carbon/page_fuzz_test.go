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
	"stoa/format/formattest"
	"stoa/store"
	"stoa/vec"
)

// What pages of format 3 say of how they are stored: one, or several, of the encodings.
var fuzzEncoders = []encodings{
	{encDirectCompress}, {encAdaptiveIntegral}, {encAdaptiveDeltaIntegral}, {encRLEIntegral}, {encAdaptiveFloating}, {encAdaptiveDeltaFloating},
	{encBoolByte}, {encDirectCompressVarchar}, {encDirectString}, {encDictionary, encDirectDictionary}, {encDictionary}, {encDirectCompress, encIntLengthChild},
	{encDictionary, encRLE, encInvertedIndex}, {encDictionary, encRLE}, {encDirectString, encInvertedIndex}, {encDirectCompress, encRLE, encInvertedIndex},
}

var fuzzTypes = []dataType{typeString, typeShort, typeInt, typeLong, typeDouble, typeDecimal, typeTimestamp, typeDate, typeBoolean, typeVarchar, typeFloat, typeByte, typeBinary}

// Shapes of a fuzzed page: bits of its number.
const (
	fuzzCoded  = 1 << iota // the values are codes of a dictionary
	fuzzMeta               // it has an encoder's metadata
	fuzzNulls              // it has bits of nulls
	fuzzChild              // it is below a list or struct
	fuzzList               // the list above it is decoded, whose lengths are what is in nulls
	fuzzStruct             // the struct above it is decoded
	fuzzNoRows             // how many entries there are nobody says
)

// FuzzPage decodes a page of format 3: any encoding, of any type, with row ids, runs and nulls, and the list or struct above it.
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
	// Two lists that say that they have 2³¹ items, of which the page has one.
	f.Add(uint8(0), uint8(0), uint8(fuzzList|fuzzCoded), uint16(2), []byte{}, []byte{0, 0, 2}, []byte{}, []byte{}, []byte("\x7f\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, encoding, typ uint8, shape uint8, n uint16, meta, raw, ids, runs, nulls []byte) {
		before := formattest.Allocated()
		e := fuzzEncoders[int(encoding)%len(fuzzEncoders)]
		p := &storedPage{version: 3, limits: oldLimits, spans: 1, rows: int64(n), coded: shape&fuzzCoded != 0, dates: dateRule{unit: 1000},
			dataChunk: &dataChunk{codec: "none", encoders: e, dataLen: int32(len(raw)), rowidLen: int32(len(ids)), rleLen: int32(len(runs)), rows: -1},
			col:       &column{columnSchema: &columnSchema{name: "c", typ: fuzzTypes[int(typ)%len(fuzzTypes)], precision: 20, scale: 2, dimension: true, ordinal: -1}, card: -1}}
		if shape&fuzzMeta != 0 {
			p.meta = [][]byte{meta}
		}
		if shape&fuzzNulls != 0 {
			p.presence = &presence{bits: nulls}
		}
		if shape&(fuzzChild|fuzzList|fuzzStruct) != 0 {
			p.col.parent = &column{columnSchema: &columnSchema{typ: typeArray, name: "p", ordinal: -1, children: 1}, card: -1, kids: []*column{p.col}}
		}
		at, err := p.col.arrow()
		if err != nil {
			t.Fatal(err)
		}
		task := &format.Task{Scratch: &vec.Arena{}, Limits: oldLimits, Bytes: [][]byte{append(append(append([]byte{}, raw...), ids...), runs...)}, N: int64(n)}
		if shape&fuzzNoRows != 0 {
			task.N = -1
		}
		if p.coded {
			task.Dict = fuzzDictionary(t)
			p.nullCodes = []uint32{nullCode}
			at = arrow.BinaryTypes.String
		}
		if shape&(fuzzList|fuzzStruct) != 0 {
			fuzzAbove(t, p, task, nulls, shape)
		} else if dst, err := vec.New(at, memory.DefaultAllocator); err != nil {
			t.Fatal(err)
		} else if err = p.decode(task, task.Bytes, task.N, dst); err != nil {
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
func fuzzAbove(t *testing.T, p *storedPage, task *format.Task, above []byte, shape uint8) {
	parent := storedPage{version: 3, limits: oldLimits, spans: 1, rows: task.N, col: p.col.parent, below: []storedPage{*p},
		dataChunk: &dataChunk{codec: "none", encoders: encodings{encDirectCompress}, dataLen: int32(len(above)), rows: -1}}
	if shape&fuzzStruct != 0 {
		parent.col.typ = typeStruct
	}
	task.Bytes = append([][]byte{above}, task.Bytes...)
	dst, err := vec.New(arrow.PrimitiveTypes.Int32, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.lengths(task, dst); err != nil {
		pageFault(t, err)
		return
	}
	fuzzEmit(t, dst, task.N)
}

// pageFault fails unless a page's error is of a class that a file may cause.
func pageFault(t *testing.T, err error) {
	var e *fault.Error
	if !errors.As(err, &e) || e.Class == fault.Bug || e.Class == fault.Invalid {
		t.Fatalf("%T %v", err, err)
	}
}

// fuzzEmit makes an array of what was decoded: n entries, or as many as there are.
func fuzzEmit(t *testing.T, dst *vec.Vector, n int64) {
	if n >= 0 && int64(dst.Len()) != n {
		t.Fatalf("%d entries instead of %d", dst.Len(), n)
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

// pageSeeds adds the pages of a real file, taken apart.
func pageSeeds(f *testing.F, data []byte) (n int) {
	ctx := context.Background()
	tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f.carbondata": data}), Name: "f.carbondata"}
	tab, err := openFiles(ctx, tg, format.OpenOptions{Limits: oldLimits}, readOptions{bucket: -1}, []string{tg.Name}, nil)
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
	p, ok := page.Own.(*storedPage)
	if !ok {
		return 0
	}
	task := &format.Task{Page: *page, N: page.Entries, Scratch: &vec.Arena{}, Limits: oldLimits}
	for _, s := range page.Spans {
		task.Bytes = append(task.Bytes, data[s.Off:s.End()])
	}
	above, shape := []byte(nil), uint8(0)
	if p.col.typ.complex() {
		c, err := p.open(task, task.Bytes[:p.spans], task.N)
		if err != nil || len(p.below) == 0 || p.below[0].col.typ.complex() {
			return 0
		}
		shape = fuzzList
		if p.col.typ == typeStruct {
			shape = fuzzStruct
		}
		above, task.Bytes, p = c.raw, task.Bytes[p.spans:], &p.below[0]
	}
	c, err := p.open(task, task.Bytes, -1)
	if err != nil {
		return 0
	}
	_, ids, runs, err := p.pieces(task.Bytes)
	if err != nil || len(c.raw) > 2000 {
		return 0
	}
	var meta []byte
	if p.coded {
		shape |= fuzzCoded
	}
	if len(p.meta) > 0 {
		shape, meta = shape|fuzzMeta, p.meta[0]
	}
	if len(c.nulls) > 0 && above == nil {
		shape, above = shape|fuzzNulls, c.nulls
	}
	typ, enc := 0, -1
	for i, t := range fuzzTypes {
		if t == p.col.typ {
			typ = i
		}
	}
	for i, e := range fuzzEncoders {
		if strings.HasPrefix(p.encoders.String(), e.String()) {
			enc = i
		}
	}
	if enc < 0 {
		return 0
	}
	raw := c.raw
	if p.encoders.has(encRLE) && len(runs) > 0 { // runs were spelled out
		runs = nil
	}
	f.Add(uint8(enc), uint8(typ), shape, uint16(max(0, page.Entries)), meta, raw, ids, runs, above)
	return 1
}
