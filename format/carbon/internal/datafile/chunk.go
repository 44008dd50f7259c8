package datafile

import (
	"context"
	"fmt"
	"io"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/dict"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/vec"
	"stoa/wire"
)

// Chunk is a format.Chunk: the pages of a column of a blocklet.
type Chunk struct {
	F      *DataFile
	Phys   *schema.Physical
	Col    *schema.Column // of the file
	Rows   vec.Range      // that are read
	Starts []int64        // see PageStarts
	Tree   *chunkTree
	I      int // the next page
	Dates  page.DateRule
	Global *dict.GlobalDictionary // the column's global dictionary; nil: it has none
	NoDict error                  // why Global cannot be opened
}

// chunkTree is the metadata of a column chunk and, for lists and structs, of the chunks below it.
type chunkTree struct {
	*ChunkAt
	col      *schema.Column
	children []*chunkTree
	nulls    []uint32 // chunk with a local dictionary inside a list or struct: the codes that mean null
}

// OpenTree reads the metadata of a column chunk. For a list or struct it also reads that of its children, because nulls
// of lists and structs are derived from the children.
func (f *DataFile) OpenTree(ctx context.Context, g int, col *schema.Column) (*chunkTree, error) {
	c, err := f.ReadChunk(ctx, g, col)
	if err != nil {
		return nil, err
	}
	t := &chunkTree{ChunkAt: c, col: col}
	for _, k := range below(col) {
		kid, err := f.OpenTree(ctx, g, k)
		if err != nil {
			return nil, err
		}
		if len(kid.Pages) != len(t.Pages) {
			return nil, fault.Corruptf(kid.At, kid.Path, "expected the %s of %s, found %d",
				fault.Count(len(t.Pages), "page"), t.Path,
				len(kid.Pages))
		}
		if kid.Dict != nil && len(kid.Pages) > 0 {
			if kid.nulls, err = localNulls(kid.Dict, kid.Pages[0].Codec, f.Limits); err != nil {
				return nil, fault.Locate(err, kid.At, false, kid.Path+".local_dictionary")
			}
		}
		t.children = append(t.children, kid)
	}
	return t, nil
}

// below returns the columns whose nulls make c null.
func below(c *schema.Column) []*schema.Column {
	if c.Type == layout.TypeMap {
		return c.Children[0].Children
	}
	return c.Children
}

// Global reports whether the pages hold codes of the column's global dictionary.
func (t *chunkTree) Global() bool {
	return t.Dict == nil && schema.HasGlobalCodes(t.col) && len(t.Pages) > 0 &&
		t.Pages[0].Encoders.Has(layout.EncDictionary)
}

// page returns page i with the pages below it. Their spans are appended to spans in the order in which Decode expects
// the bytes.
func (t *chunkTree) page(f *DataFile, i int, rows int64, dates page.DateRule, spans *[]fault.Span) page.StoredPage {
	p := page.StoredPage{DataChunk: &t.Pages[i], Col: t.col, Version: f.Version, Rows: rows, Coded: t.Dict != nil,
		Limits: f.Limits, Spans: 1, Dates: dates, Widths: &f.Widths}
	p.Global = t.Global()
	own := t.pageSpans(i)
	p.Spans = len(own)
	*spans = append(*spans, own...)
	p.NullCodes = t.nulls
	for _, k := range t.children {
		p.Below = append(p.Below, k.page(f, i, -1, dates, spans))
	}
	return p
}

// Next is format.Chunk.Next.
func (c *Chunk) Next(ctx context.Context) (format.Page, error) {
	i := c.I
	if i >= len(c.Tree.Pages) || c.Starts[i] >= c.Rows.To {
		return format.Page{}, io.EOF
	}
	c.I++
	p := format.Page{Ordinal: i, First: c.Starts[i], Rows: c.Starts[i+1] - c.Starts[i],
		Entries: c.Starts[i+1] - c.Starts[i]}
	if c.Phys.Parent >= 0 {
		p.Entries = -1
	}
	own := c.Tree.page(c.F, i, p.Rows, c.Dates, &p.Spans)
	if p.Entries > page.MaxPageRows {
		return p, fault.Limitf(c.Tree.At, c.Tree.Path, "page %d: expected at most %s, found %d", i,
			fault.Count(page.MaxPageRows, "row"), p.Entries)
	}
	p.Own, p.Lent = &own, len(p.Spans)-own.Spans
	p.Coded = own.Coded || own.Global && c.known(&own)
	if p.Bounds, _ = c.bounds(ctx, &own); p.Bounds != nil {
		p.Bounds.Rows = p.Rows
	}
	return p, nil
}

// Dict is format.Chunk.Dict: the local or global dictionary.
func (c *Chunk) Dict() (format.Page, bool) {
	d := c.Tree.Dict
	if c.NoDict != nil && c.Phys.Has == format.Values {
		return format.Page{Lost: c.NoDict}, true
	}
	if d == nil && c.Global != nil && c.Phys.Has == format.Values {
		return c.Global.Page(), true
	}
	if d == nil || c.Phys.Has != format.Values {
		return format.Page{}, false
	}
	return format.Page{Ordinal: -1, First: -1, Rows: -1, Entries: -1,
		Spans: []fault.Span{c.Tree.Within(d.Data), c.Tree.Within(d.Used)}, Own: d}, true
}

// Decode is format.Chunk.Decode.
func (c *Chunk) Decode(t *format.Task, dst *vec.Vector) error {
	before := dst.Len()
	filter := t.Filter
	id := dst.Type.ID()
	hybrid := c.F.Hybrid && (id == arrow.DATE32 || id == arrow.TIMESTAMP)
	if hybrid {
		t.Filter = nil // the filter applies to dates as returned, not as stored
	}
	err := c.decode(t, dst)
	t.Filter = filter
	if err != nil {
		return err
	}
	if hybrid {
		c.F.Rebased.Add(page.Rebase(dst, before))
	}
	if i := dst.TooManyDigits(before); i >= 0 {
		return fault.Corruptf(t.Page.Spans[0], fmt.Sprintf("%s.page[%d]", c.Tree.Path, t.Page.Ordinal),
			"entry %d has more digits than %s", i-before, dst.Type)
	}
	return nil
}

func (c *Chunk) decode(t *format.Task, dst *vec.Vector) error {
	switch own := t.Page.Own.(type) {
	case *page.StoredPage:
		var err error
		if own.Col.Type.Complex() {
			err = own.Lengths(t, dst)
		} else {
			err = own.Decode(t, t.Bytes, t.N, dst)
		}
		if err != nil {
			return fault.Locate(err, t.Page.Spans[0], false, fmt.Sprintf("%s.page[%d]", c.Tree.Path, t.Page.Ordinal))
		}
		return nil
	case *dict.GlobalDictionary:
		return own.Decode(t, dst)
	case *layout.LocalDictionary:
		if err := decodeLocal(own, t, c.codec(), c.F.Limits, dst); err != nil {
			return fault.Locate(err, t.Page.Spans[0], false, c.Tree.Path+".local_dictionary")
		}
		return nil
	}
	return fault.Bugf("carbon: a page that Next did not return")
}

// codec is the codec of the chunk: all its pages have the same.
func (c *Chunk) codec() string {
	if len(c.Tree.Pages) == 0 {
		return "snappy"
	}
	return c.Tree.Pages[0].Codec
}

// maxCodes is the number of codes of three bytes.
const maxCodes = 1 << 24

// dictionaryValues is a decompressed local dictionary: the values in code order, and the set of codes that have one.
type dictionaryValues struct {
	raw    []byte
	starts []uint32 // start and end of each value in raw
	used   []byte   // bit set of the codes that have a value
	n      int      // all codes in used are less than n
}

// localValues decompresses a local dictionary from its stored data and used bits.
func localValues(d *layout.LocalDictionary, t *format.Task, data, used []byte, method string,
	l format.Limits) (v dictionaryValues, err error) {
	if len(d.Meta) == 0 {
		return v, fault.Rel(0, 0, "dictionary_meta", "no encoder_meta")
	}
	cur := wire.NewInnerCursor(d.Meta[0], fault.Span{}, "dictionary_meta.encoder_meta")
	m := layout.ParseEncoderMeta(cur, false)
	if cur.Err() != nil {
		return v, page.Relative(cur.Err())
	}
	if v.used, err = page.Expand(method, m.Codec, used, l, t); err != nil {
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
		return v, fault.Rel(0, 0, "dictionary_values", "expected codes below %d, found %d", maxCodes, v.n-1)
	}
	p := &page.StoredPage{DataChunk: &layout.DataChunk{Codec: method},
		Col: &schema.Column{ColumnSchema: &layout.ColumnSchema{Type: layout.TypeString}}, Version: 3, Limits: l}
	c := page.Content{P: p, T: t, N: count}
	if c.Raw, err = page.Expand(method, m.Codec, data, l, t); err != nil {
		return v, err
	}
	t.Raw += int64(len(c.Raw) + len(v.used))
	lv := 2
	if m.Column == layout.PlainLongValue {
		lv = 4
	}
	v.raw = c.Raw
	v.starts, err = c.Lengths(lv)
	return v, err
}

// localNulls returns the codes that mean null: 1 and, in lists and structs, the code of the text for null.
func localNulls(d *layout.LocalDictionary, method string, l format.Limits) ([]uint32, error) {
	t := &format.Task{Scratch: new(vec.Arena)}
	v, err := localValues(d, t, d.Data, d.Used, method, l)
	if err != nil {
		return nil, err
	}
	out := []uint32{schema.NullCode}
	k := 0
	for i := range v.n {
		if v.used[i>>3]>>(i&7)&1 != 0 {
			if i != schema.NullCode && string(v.raw[v.starts[2*k]:v.starts[2*k+1]]) == schema.NullText {
				out = append(out, uint32(i))
			}
			k++
		}
	}
	return out, nil
}

// decodeLocal appends a local dictionary to dst: code c is entry c. Codes without a value are null, and so are codes
// whose value means null. The latter keep their bytes, by which page.Content distinguishes them from unknown codes.
func decodeLocal(d *layout.LocalDictionary, t *format.Task, method string, l format.Limits, dst *vec.Vector) error {
	v, err := localValues(d, t, t.Bytes[0], t.Bytes[1], method, l)
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
			null = i == schema.NullCode || string(value) == schema.NullText
			end += copy(room[end:], value)
		}
		if null {
			schema.SetNull(valid, at+i)
			nulls++
		}
		offs[i+1] = offs[0] + int32(end)
	}
	dst.AddNulls(nulls)
	return nil
}

// known reports whether it is certain that all codes of a page have a value. With a damaged dictionary this is unknown
// until the page is decoded.
func (c *Chunk) known(p *page.StoredPage) bool {
	if c.Global == nil || p.MinMax == nil {
		return false
	}
	_, hi, ok := p.MinMax.At(0)
	if !ok {
		return false
	}
	code, ok := schema.ParseCode(hi)
	return ok && int64(code) < c.Global.ValidBelow.Load()
}
