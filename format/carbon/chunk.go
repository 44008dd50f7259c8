package carbon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/codec"
	"stoa/vec"
	"stoa/wire"
)

// chunk gives the pages of a column of a blocklet. It is a format.Chunk.
type chunk struct {
	f      *dataFile
	phys   *physical
	col    *column // the file's column
	rows   vec.Range
	starts []int64
	tree   *chunkTree
	i      int
	dates  dateRule
	global *globalDictionary // of the column, not of the chunk; nil: none
	noDict error             // why its dictionary cannot be read
}

// chunkTree is the metadata of a column chunk and, for lists and structs, of those below it.
type chunkTree struct {
	*chunkAt
	col   *column
	kids  []*chunkTree
	nulls []uint32 // of a chunk with a dictionary below a list or struct: the codes that mean null
}

// openTree reads the metadata of a column chunk; of a list or struct also those of what is below, because only they tell
// which lists and structs are null.
func (f *dataFile) openTree(ctx context.Context, g int, col *column) (*chunkTree, error) {
	c, err := f.readChunk(ctx, g, col)
	if err != nil {
		return nil, err
	}
	t := &chunkTree{chunkAt: c, col: col}
	for _, k := range below(col) {
		kid, err := f.openTree(ctx, g, k)
		if err != nil {
			return nil, err
		}
		if len(kid.pages) != len(t.pages) {
			return nil, fault.Corruptf(kid.at, kid.path, "%d pages, %s has %d", len(kid.pages), t.path, len(t.pages))
		}
		if kid.dict != nil && len(kid.pages) > 0 {
			if kid.nulls, err = kid.dict.nullCodes(kid.pages[0].codec, f.limits); err != nil {
				return nil, fault.Locate(err, kid.at, false, kid.path+".local_dictionary")
			}
		}
		t.kids = append(t.kids, kid)
	}
	return t, nil
}

// below are the columns whose nulls make c null.
func below(c *column) []*column {
	if c.typ == typeMap {
		return c.kids[0].kids
	}
	return c.kids
}

// global reports whether the pages hold codes of the column's dictionary, which is the table's.
func (t *chunkTree) global() bool {
	return t.dict == nil && t.col.globalCodes() && len(t.pages) > 0 && t.pages[0].encoders.has(encDictionary)
}

// page is page i with those below it; spans are appended in the order in which Decode takes their bytes.
func (t *chunkTree) page(f *dataFile, i int, rows int64, dates dateRule, spans *[]fault.Span) storedPage {
	p := storedPage{dataChunk: &t.pages[i], col: t.col, version: f.version, rows: rows, coded: t.dict != nil, limits: f.limits, spans: 1, dates: dates, widths: &f.widths}
	p.global = t.global()
	own := t.pageSpans(i)
	p.spans = len(own)
	*spans = append(*spans, own...)
	p.nullCodes = t.nulls
	for _, k := range t.kids {
		p.below = append(p.below, k.page(f, i, -1, dates, spans))
	}
	return p
}

// newChunk stands before the page that holds rows.From.
func (t *table) newChunk(ctx context.Context, f *dataFile, g int, phys *physical, col *column, rows vec.Range) (*chunk, error) {
	c := &chunk{f: f, phys: phys, col: col, rows: rows, dates: t.dates}
	var err error
	if c.starts, err = f.pageStarts(ctx, g); err != nil {
		return nil, err
	}
	if c.tree, err = f.openTree(ctx, g, col); err != nil {
		return nil, err
	}
	if id := phys.Type.ID(); c.tree.dict != nil && phys.Has == format.Values && id != arrow.STRING && id != arrow.BINARY {
		return nil, fault.Corruptf(c.tree.at, c.tree.path+".local_dictionary", "a dictionary of a column of type %s", col.typ)
	}
	if n := len(c.starts) - 1; len(c.tree.pages) != n {
		return nil, fault.Corruptf(c.tree.at, c.tree.path, "%d pages, the blocklet has %d", len(c.tree.pages), n)
	}
	if phys.Has == format.Values && c.tree.global() {
		if c.global, c.noDict = t.dicts.global(ctx, phys.col); c.noDict != nil && !errors.Is(c.noDict, fault.Corrupt) {
			return nil, c.noDict
		}
	}
	for c.i < len(c.tree.pages) && c.starts[c.i+1] <= rows.From {
		c.i++
	}
	return c, nil
}

// Next gives the next page.
func (c *chunk) Next(ctx context.Context) (format.Page, error) {
	i := c.i
	if i >= len(c.tree.pages) || c.starts[i] >= c.rows.To {
		return format.Page{}, io.EOF
	}
	c.i++
	p := format.Page{Ordinal: i, First: c.starts[i], Rows: c.starts[i+1] - c.starts[i], Entries: c.starts[i+1] - c.starts[i]}
	if c.phys.Parent >= 0 {
		p.Entries = -1
	}
	own := c.tree.page(c.f, i, p.Rows, c.dates, &p.Spans)
	if p.Entries > maxPageRows {
		return p, fault.Limitf(c.tree.at, c.tree.path, "page %d has %d rows, a page has at most %d", i, p.Entries, maxPageRows)
	}
	p.Own = &own
	p.Coded = own.coded || own.global && c.known(&own)
	if p.Bounds, _ = c.bounds(ctx, &own); p.Bounds != nil {
		p.Bounds.Rows = p.Rows
	}
	return p, nil
}

// Dict is the dictionary of the chunk.
func (c *chunk) Dict() (format.Page, bool) {
	d := c.tree.dict
	if c.noDict != nil && c.phys.Has == format.Values {
		return format.Page{Lost: c.noDict}, true
	}
	if d == nil && c.global != nil && c.phys.Has == format.Values {
		return c.global.page(), true
	}
	if d == nil || c.phys.Has != format.Values {
		return format.Page{}, false
	}
	return format.Page{Ordinal: -1, First: -1, Rows: -1, Entries: -1, Spans: []fault.Span{c.tree.within(d.data), c.tree.within(d.used)}, Own: d}, true
}

// Decode appends a page to dst.
func (c *chunk) Decode(t *format.Task, dst *vec.Vector) error {
	switch own := t.Page.Own.(type) {
	case *storedPage:
		var err error
		if own.col.typ.complex() {
			err = own.lengths(t, dst)
		} else {
			err = own.decode(t, t.Bytes, t.N, dst)
		}
		if err != nil {
			return fault.Locate(err, t.Page.Spans[0], false, fmt.Sprintf("%s.page[%d]", c.tree.path, t.Page.Ordinal))
		}
		return nil
	case *globalDictionary:
		return own.decode(t, dst)
	case *localDictionary:
		if err := own.decode(t, c.codec(), c.f.limits, dst); err != nil {
			return fault.Locate(err, t.Page.Spans[0], false, c.tree.path+".local_dictionary")
		}
		return nil
	}
	return fault.Bugf("carbon: a page that Next did not give")
}

// codec is the method of a chunk; all its pages have the same.
func (c *chunk) codec() string {
	if len(c.tree.pages) == 0 {
		return "snappy"
	}
	return c.tree.pages[0].codec
}

// maxCodes is how many codes of three bytes there are.
const maxCodes = 1 << 24

// dictionaryValues is a local dictionary taken apart: the values, in the order of their codes, and which codes have one.
type dictionaryValues struct {
	raw    []byte
	starts []uint32 // where each value begins and ends in raw
	used   []byte   // bits
	n      int      // codes: all used ones are below
}

// values decompresses a local dictionary.
func (d *localDictionary) values(t *format.Task, data, used []byte, method string, l format.Limits) (v dictionaryValues, err error) {
	if len(d.meta) == 0 {
		return v, fault.Rel(0, 0, "dictionary_meta", "no encoder_meta")
	}
	cur := wire.NewInnerCursor(d.meta[0], fault.Span{}, "dictionary_meta.encoder_meta")
	m := parseEncoderMeta(cur, false)
	if cur.Err() != nil {
		return v, relative(cur.Err())
	}
	if v.used, err = codec.Expand(method, used, l.Page, t.Scratch.Bytes); err != nil {
		return v, fault.Locate(err, fault.Span{}, false, "dictionary_values")
	}
	count := 0
	for i, x := range v.used {
		if x != 0 {
			v.n = 8*i + bits.Len8(x)
			count += bits.OnesCount8(x)
		}
	}
	if v.n > maxCodes {
		return v, fault.Rel(0, 0, "dictionary_values", "code %d", v.n-1)
	}
	p := &storedPage{dataChunk: &dataChunk{codec: method}, col: &column{columnSchema: &columnSchema{typ: typeString}}, version: 3, limits: l}
	c := content{p: p, t: t, n: count}
	if c.raw, err = codec.Expand(method, data, l.Page, t.Scratch.Bytes); err != nil {
		return v, err
	}
	t.Raw += int64(len(c.raw) + len(v.used))
	lv := 2
	if m.column == plainLongValue {
		lv = 4
	}
	v.raw = c.raw
	v.starts, err = c.lengths(lv)
	return v, err
}

// nullCodes are the codes that mean null: 1, and in lists and structs the one of the text that stands for null.
func (d *localDictionary) nullCodes(method string, l format.Limits) ([]uint32, error) {
	t := &format.Task{Scratch: new(vec.Arena)}
	v, err := d.values(t, d.data, d.used, method, l)
	if err != nil {
		return nil, err
	}
	out := []uint32{nullCode}
	k := 0
	for i := range v.n {
		if v.used[i>>3]>>(i&7)&1 != 0 {
			if i != nullCode && string(v.raw[v.starts[2*k]:v.starts[2*k+1]]) == nullText {
				out = append(out, uint32(i))
			}
			k++
		}
	}
	return out, nil
}

// decode makes a local dictionary a vector in which code c is entry c. Null are the codes without a value, and those whose value
// means null; the latter have bytes nevertheless, which tells them apart: see usable.
func (d *localDictionary) decode(t *format.Task, method string, l format.Limits, dst *vec.Vector) error {
	v, err := d.values(t, t.Bytes[0], t.Bytes[1], method, l)
	if err != nil {
		return err
	}
	at := dst.Extend(v.n)
	offs := dst.Offsets(at)
	room, err := dst.Bytes(offs[0], int64(len(v.raw)))
	if err != nil {
		return err
	}
	valid := dst.Validity()
	k, end, nulls := 0, 0, 0
	for i := range v.n {
		null := true
		if v.used[i>>3]>>(i&7)&1 != 0 {
			value := v.raw[v.starts[2*k]:v.starts[2*k+1]]
			k++
			null = i == nullCode || string(value) == nullText
			end += copy(room[end:], value)
		}
		if null {
			clearOne(valid, at+i)
			nulls++
		}
		offs[i+1] = offs[0] + int32(end)
	}
	dst.AddNulls(nulls)
	return nil
}
