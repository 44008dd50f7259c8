package datafile

import (
	"bytes"
	"context"
	"math"
	"math/bits"
	"slices"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
)

// Files of formats 1 and 2, as CarbonData 1.0.0 writes them (CarbonFactDataWriterImplV1 and V2): a blocklet is one page
// of each column, with up to carbon.blocklet.size rows.

// v12Writer is the part of a TaskWriter for formats 1 and 2.
type v12Writer struct {
	version int
	columns []*page.V12Column // by chunk
}

func newV12Writer(p *WritePlan) *v12Writer {
	v := &v12Writer{version: p.o.Version, columns: make([]*page.V12Column, len(p.Columns))}
	w := bits.Len(uint(p.o.PageRows))
	for i, c := range p.Columns {
		v.columns[i] = &page.V12Column{Column: c, Bits: w, As10: p.o.As10}
	}
	return v
}

// runLimit is carbon.high.cardinality.value: CarbonData writes runs only for columns with fewer codes.
const runLimit = 100_000

// chooseRuns sets which columns have runs. Like CarbonData 1.0.0, it does not test the column's own cardinality: it
// tests that of the first column as long as that is small, and goes on to the next column's only after a column was
// refused.
func (v *v12Writer) chooseRuns() {
	var keyed []*page.V12Column
	for _, c := range v.columns {
		if c.Dimension && c.Parent == nil && !c.Type.Complex() && c.Encoders.Has(layout.EncDictionary) {
			keyed = append(keyed, c)
		}
	}
	tested := 0
	for _, c := range keyed {
		if c.Runs = keyed[tested].Cardinality < runLimit; !c.Runs {
			tested++
		}
	}
}

// v12Blocklet writes n rows as a blocklet.
func (t *TaskWriter) v12Blocklet(ctx context.Context, tops []*page.Cells, n int) error {
	t.v12.chooseRuns()
	cells, err := t.cellsByChunk(tops)
	if err != nil {
		return err
	}
	pages := make([]*layout.V12Page, len(cells))
	inParallel(len(pages), func(i int) { pages[i] = t.v12.columns[i].Encode(cells[i]) })
	size := int64(0)
	for _, p := range pages {
		size += int64(len(p.Data) + len(p.Rowids) + len(p.Runs))
	}
	if err := t.beginBlocklet(ctx, size); err != nil {
		return err
	}
	info := layout.BlockletInfo{Rows: int64(n)}
	if t.v12.version == 1 {
		t.pieces1(&info, pages)
	} else if err := t.pieces2(&info, pages); err != nil {
		return err
	}
	t.foot.Rows += int64(n)
	t.foot.Blocklet = append(t.foot.Blocklet, info)
	t.foot.Index = append(t.foot.Index, t.v12.index(pages))
	return nil
}

// pieces1 writes a blocklet of format 1: all data, then all row ids, then all runs.
func (t *TaskWriter) pieces1(b *layout.BlockletInfo, pages []*layout.V12Page) {
	for _, p := range pages {
		p.DataAt = t.at
		t.put(p.Data)
	}
	for _, p := range pages {
		p.RowidAt = t.at
		t.put(p.Rowids)
	}
	for _, p := range pages {
		p.RleAt = t.at
		t.put(p.Runs)
		p.Data, p.Rowids, p.Runs = nil, nil, nil // already written to the file
		b.V12 = append(b.V12, p)
	}
}

// pieces2 writes a blocklet of format 2: for each column DataChunk2, data, row ids, runs.
func (t *TaskWriter) pieces2(b *layout.BlockletInfo, pages []*layout.V12Page) error {
	for i, p := range pages {
		head := layout.ThriftBytes(p.Put2)
		if len(head) > math.MaxInt16 {
			return fault.Limitf(fault.Span{}, t.Columns[i].Name,
				"the metadata of a page have %d bytes, and format 2 allows %d: lower the option blocklet-rows",
				len(head),
				math.MaxInt16)
		}
		b.Offsets, b.Lengths = append(b.Offsets, t.at), append(b.Lengths, int32(len(head)))
		for _, piece := range [][]byte{head, p.Data, p.Rowids, p.Runs} {
			t.put(piece)
		}
	}
	return nil
}

// index is the index entry of a blocklet: bounds of its dimensions, start and end key.
func (v *v12Writer) index(pages []*layout.V12Page) (x layout.BlockletIndex) {
	x.MinMax = &layout.MinMax{}
	var first, last [3][][]byte // codes, texts, nested
	for i, p := range pages {
		c := v.columns[i]
		if !c.Dimension {
			continue
		}
		x.MinMax.Min, x.MinMax.Max = append(x.MinMax.Min, p.Min), append(x.MinMax.Max, p.Max)
		if c.Parent != nil {
			continue
		}
		kind := 1
		switch {
		case c.Type.Complex():
			kind = 2
		case c.Encoders.Has(layout.EncDictionary):
			kind = 0
		}
		first[kind], last[kind] = append(first[kind], p.First), append(last[kind], p.Last)
	}
	x.Start, x.End = page.V12Key(first[0], first[1], first[2]), page.V12Key(last[0], last[1], last[2])
	return x
}

// header are the bytes before the first blocklet.
func (v *v12Writer) header() []byte {
	if v.version == 1 {
		return nil
	}
	return []byte(layout.MagicV2)
}

// cardinalities returns the cardinalities of the dimensions, including nested columns.
func (p *WritePlan) cardinalities() (out []int32) {
	for _, c := range p.Columns {
		if c.Dimension {
			out = append(out, c.Cardinality)
		}
	}
	return out
}

// segmentInfo returns a SegmentInfo. It has cardinalities only if there are dictionaries, because readers derive the
// width of codes from them.
func (p *WritePlan) segmentInfo() layout.SegmentInfo {
	s := layout.SegmentInfo{Columns: int32(len(p.list))}
	if p.o.Version < 3 || slices.ContainsFunc(p.Columns, schema.HasGlobalCodes) {
		s.Cardinalities = p.cardinalities()
	}
	return s
}

// fileIndex combines the index entries of a file's blocklets to the entry of the file.
func fileIndex(list []layout.BlockletIndex) layout.BlockletIndex {
	x := layout.BlockletIndex{Start: list[0].Start, End: list[len(list)-1].End,
		MinMax: &layout.MinMax{Min: slices.Clone(list[0].MinMax.Min), Max: slices.Clone(list[0].MinMax.Max)}}
	for _, y := range list[1:] {
		for i := range x.MinMax.Min {
			if bytes.Compare(y.MinMax.Min[i], x.MinMax.Min[i]) < 0 {
				x.MinMax.Min[i] = y.MinMax.Min[i]
			}
			if bytes.Compare(y.MinMax.Max[i], x.MinMax.Max[i]) > 0 {
				x.MinMax.Max[i] = y.MinMax.Max[i]
			}
		}
	}
	return x
}
