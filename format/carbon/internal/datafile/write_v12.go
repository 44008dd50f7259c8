package datafile

import (
	"bytes"
	"context"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
)

// Files of formats 1 and 2, as CarbonData 1.0.0 writes them (CarbonFactDataWriterImplV1 and V2): a blocklet is
// one page of each column, of as many rows as the property carbon.blocklet.size says.

// v12Writer is what a task keeps of formats 1 and 2.
type v12Writer struct {
	version int
	columns []*page.V12Column // by chunk
}

func newV12Writer(p *WritePlan) *v12Writer {
	o := &v12Writer{version: p.o.Version, columns: make([]*page.V12Column, len(p.Columns))}
	w := bits.Len(uint(p.o.PageRows))
	for i, c := range p.Columns {
		o.columns[i] = &page.V12Column{Column: c, Bits: w, As10: p.o.As10}
	}
	return o
}

// runLimit is carbon.high.cardinality.value: the real writer keeps runs of columns with smaller dictionaries only.
const runLimit = 100_000

// fixBlockletSize sets what depends on how many codes there are. The real writer asks always the first column whose
// codes it has not found to be few, so that all columns in front of a large one have runs, whatever their own
// size.
func (o *v12Writer) fixBlockletSize() {
	var keyed []*page.V12Column
	for _, c := range o.columns {
		if c.Dimension && c.Parent == nil && !c.Typ.Complex() && c.Encoders.Has(layout.EncDictionary) {
			keyed = append(keyed, c)
		}
	}
	asked := 0
	for _, c := range keyed {
		if c.Runs = keyed[asked].Card < runLimit; !c.Runs {
			asked++
		}
	}
}

// v12Blocklet writes the rows of the cells as a blocklet.
func (t *TaskWriter) v12Blocklet(ctx context.Context, tops []*page.Cells, n int) error {
	t.v12.fixBlockletSize()
	pages, err := t.v12Pages(tops)
	if err != nil {
		return err
	}
	size := int64(0)
	for _, p := range pages {
		size += int64(len(p.Data) + len(p.Rowids) + len(p.Runs))
	}
	if limit := t.o.Block - t.o.Block/10; !t.Single && t.begun > 0 && t.begun+size >= limit {
		if err := t.endFile(); err != nil {
			return err
		}
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	t.begun += size
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

// v12Pages encodes the pages of all columns, side by side.
func (t *TaskWriter) v12Pages(tops []*page.Cells) ([]*layout.V12Page, error) {
	jobs := make([]*page.Cells, len(t.Columns))
	var walk func(c *schema.Column, x *page.Cells)
	walk = func(c *schema.Column, x *page.Cells) {
		jobs[c.Chunk] = x
		for i, k := range c.Children {
			walk(k, x.Children[i])
		}
	}
	for i, r := range t.Roots {
		if r.Typ.Complex() && !t.o.Merge {
			if err := tops[i].Check(r); err != nil {
				return nil, err
			}
		}
		walk(r, tops[i])
	}
	pages := make([]*layout.V12Page, len(jobs))
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(jobs)) {
		group.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(jobs); i = next.Add(1) - 1 {
				pages[i] = t.v12.columns[i].Encode(jobs[i])
			}
		})
	}
	group.Wait()
	return pages, nil
}

// pieces1 writes all data, then all row ids, then all runs.
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
		p.Data, p.Rowids, p.Runs = nil, nil, nil // they are in the file
		b.V12 = append(b.V12, p)
	}
}

// pieces2 writes a chunk for each column: DataChunk2, data, row ids, runs.
func (t *TaskWriter) pieces2(b *layout.BlockletInfo, pages []*layout.V12Page) error {
	for i, p := range pages {
		head := layout.ThriftBytes(p.Put2)
		if len(head) > math.MaxInt16 {
			return fault.Limitf(fault.Span{}, t.Columns[i].Name,
				"what describes a page has %d bytes, format 2 can tell %d: lower --opt blocklet-rows", len(head),
				math.MaxInt16)
		}
		b.Offsets, b.Lengths = append(b.Offsets, t.at), append(b.Lengths, int32(len(head)))
		for _, piece := range [][]byte{head, p.Data, p.Rowids, p.Runs} {
			t.put(piece)
		}
	}
	return nil
}

// index are the bounds and the first and last key of a blocklet. Measures have no bounds.
func (o *v12Writer) index(pages []*layout.V12Page) (x layout.BlockletIndex) {
	x.MinMax = &layout.MinMax{}
	var first, last [3][][]byte // codes, texts, nested
	for i, p := range pages {
		c := o.columns[i]
		if !c.Dimension {
			continue
		}
		x.MinMax.Min, x.MinMax.Max = append(x.MinMax.Min, p.Lo), append(x.MinMax.Max, p.Hi)
		if c.Parent != nil {
			continue
		}
		kind := 1
		switch {
		case c.Typ.Complex():
			kind = 2
		case c.Encoders.Has(layout.EncDictionary):
			kind = 0
		}
		first[kind], last[kind] = append(first[kind], p.First), append(last[kind], p.Last)
	}
	x.Start, x.End = page.V12Key(first[0], first[1], first[2]), page.V12Key(last[0], last[1], last[2])
	return x
}

// header is what stands before the first blocklet.
func (o *v12Writer) header() []byte {
	if o.version == 1 {
		return nil
	}
	return []byte(layout.MagicV2)
}

// cardinalities are how many codes the dimensions have, with what is in them.
func (p *WritePlan) cardinalities() (out []int32) {
	for _, c := range p.Columns {
		if c.Dimension {
			out = append(out, c.Card)
		}
	}
	return out
}

// segmentInfo reports the cardinalities only where there are dictionaries, whose codes they give their width.
func (p *WritePlan) segmentInfo() layout.SegmentInfo {
	s := layout.SegmentInfo{Columns: int32(len(p.list))}
	if p.o.Version < 3 || slices.ContainsFunc(p.Columns, schema.GlobalCodes) {
		s.Cardinalities = p.cardinalities()
	}
	return s
}

// fileIndex joins the indexes of the blocklets of a file.
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
