package datafile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/internal/thrift"
	"stoa/pred"
)

// writtenVersion is the CarbonData whose files these are like; it is reported in the footer.
const writtenVersion = "2.3.0"

// WritePlan is what all files of a load have in common.
type WritePlan struct {
	o       *schema.WriteOptions
	list    []layout.ColumnSchema
	Columns []*schema.Column // by chunk
	Roots   []*schema.Column // of the table, in the order of list
	stamp   int64            // milliseconds, in the names and the headers
	Task    string
	Bucket  int
	Segment string // noSegment outside of a table
}

// NewPlan plans the files for columns in the order of format 3.
func NewPlan(list []layout.ColumnSchema, o *schema.WriteOptions, stamp int64) (*WritePlan, error) {
	p := &WritePlan{o: o, list: list, stamp: stamp, Task: "0", Segment: noSegment}
	var err error
	var chunks int
	if p.Roots, chunks, err = schema.ColumnTree(list, fault.Span{}, "schema"); err != nil {
		return nil, err
	}
	p.Columns = make([]*schema.Column, chunks)
	for _, r := range p.Roots {
		r.All(func(c *schema.Column) {
			p.Columns[c.Chunk] = c
			c.SetCard(0)
		})
	}
	return p, nil
}

// pageWriter makes the writer of a column's pages.
func (p *WritePlan) pageWriter(c *schema.Column) *page.PageWriter {
	w := &page.PageWriter{Column: c, Codec: p.o.Codec, Inverted: c.SortColumn() &&
		c.Encoders.Has(layout.EncInvertedIndex)}
	if p.o.Dictionary && (c.Typ == layout.TypeString || c.Typ == layout.TypeVarchar) && p.o.Codes(c) {
		w.Dict = page.NewDictWriter(p.o.Threshold)
	}
	return w
}

// dataName is the name of data file number n of the task.
func (p *WritePlan) dataName(n int) string {
	if p.o.Version < 3 {
		return fmt.Sprintf("part-%d-%s-%d-%d.carbondata", n, p.Task, p.Bucket, p.stamp)
	}
	return fmt.Sprintf("part-%d-%s_batchno0-%d-%s-%d.%s.carbondata", n, p.Task, p.Bucket, p.Segment, p.stamp, p.o.Codec)
}

// noSegment is the segment's number in names of files outside of a table.
const noSegment = "null"

// IndexName is the name of the task's index file.
func (p *WritePlan) IndexName() string {
	if p.o.Version < 3 {
		return fmt.Sprintf("%s-%d-%d.carbonindex", p.Task, p.Bucket, p.stamp)
	}
	return fmt.Sprintf("%s_batchno0-%d-%s-%d.carbonindex", p.Task, p.Bucket, p.Segment, p.stamp)
}

// OutPlace is where the files of a task go.
type OutPlace interface {
	CreateFile(ctx context.Context, name string) (io.WriteCloser, error)
}

// TaskWriter writes the data files of a task, one after the other, and their index. Rows come page by page.
type TaskWriter struct {
	*WritePlan
	to     OutPlace
	Single bool // one data file, without index
	name   string

	cols   []*page.PageWriter // by chunk
	cells  [2][]*page.Cells   // of the roots; while one page is encoded the next is filled
	fill   int                // which of them is filled
	rows   int                // in the page that is filled
	busy   chan error         // of the page that is encoded; nil: none is
	total  int64              // rows
	failed error

	v12 *v12Writer // of formats 1 and 2; nil

	blocklet [][]*layout.OutPage // by chunk
	held     int64               // bytes of the blocklet's pages
	inPage   []int32

	out    io.WriteCloser
	buf    *bufio.Writer
	at     int64
	foot   layout.Footer
	index  layout.IndexFile
	Names  []string // of the files that are whole
	Bytes  int64    // of them
	begun  int64    // bytes of the blocklets in the current file
	number int
}

func NewTask(p *WritePlan, to OutPlace, single bool) *TaskWriter {
	t := &TaskWriter{WritePlan: p, to: to, Single: single}
	for _, c := range p.Columns {
		t.cols = append(t.cols, p.pageWriter(c))
	}
	if p.o.Version < 3 {
		t.v12 = newV12Writer(p)
	}
	t.blocklet = make([][]*layout.OutPage, len(p.Columns))
	for i := range t.cells {
		for _, r := range p.Roots {
			t.cells[i] = append(t.cells[i], page.NewCells(r))
		}
	}
	t.index.Header = layout.IndexHeader{Version: int32(p.o.Version), Columns: p.list,
		Segment: layout.SegmentInfo{Columns: int32(len(p.list))}, Bucket: int32(p.Bucket), Stamp: p.stamp,
		Sorted: len(p.o.SortColumns) > 0}
	return t
}

// addSlice is how many rows are added between two looks at the size of the page.
const addSlice = 4 << 10

// Add puts rows from…to of a batch into pages. fields are those of the roots; -1: null in all rows.
func (t *TaskWriter) Add(ctx context.Context, b arrow.RecordBatch, fields []int, from, to int) error {
	for from < to {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(to-from, t.room(), addSlice)
		for i, x := range t.current() {
			if fields[i] < 0 {
				for range n {
					x.AddNull(t.Roots[i])
				}
				continue
			}
			if err := x.Add(t.Roots[i], b.Column(fields[i]), from, from+n, t.o); err != nil {
				return InColumn(err, t.Roots[i])
			}
		}
		if err := t.added(ctx, n); err != nil {
			return err
		}
		if t.rows > 0 && t.pageFull() {
			if err := t.endPage(ctx); err != nil {
				return err
			}
		}
		from += n
	}
	return nil
}

// InColumn names the column of a value that does not fit.
func InColumn(err error, c *schema.Column) error {
	var v *page.ValueError
	if errors.As(err, &v) && v.Column == "" {
		v.Column = c.Name
	}
	return err
}

// Located reports the row of a value that does not fit; before is what is added to its place in the batch.
func Located(err error, before int64) error {
	var v *page.ValueError
	if !errors.As(err, &v) {
		return err
	}
	why := v.Err.Error()
	var e *fault.Error
	if errors.As(v.Err, &e) { // without the class, which is said once
		why = e.Reason
	}
	return fault.Invalidf("column %s, row %d: %s", v.Column, before+int64(v.Row), why)
}

// current are the cells that are filled.
func (t *TaskWriter) current() []*page.Cells { return t.cells[t.fill] }

// room is how many rows the page still takes.
func (t *TaskWriter) room() int { return t.o.PageRows - t.rows }

// added notes that n rows were put into the current cells, and ends the page if it is full.
func (t *TaskWriter) added(ctx context.Context, n int) error {
	t.rows += n
	t.total += int64(n)
	if t.rows >= t.o.PageRows {
		return t.endPage(ctx)
	}
	return nil
}

// pageFull reports whether the page that is filled has as many bytes as a page may have.
func (t *TaskWriter) pageFull() bool {
	n := 0
	for _, x := range t.current() {
		n += x.Size()
	}
	return n >= t.o.PageSize
}

// endPage has the page encoded while the next is filled.
func (t *TaskWriter) endPage(ctx context.Context) error {
	if err := t.wait(); err != nil || t.rows == 0 {
		return err
	}
	cells, n := t.current(), t.rows
	t.fill, t.rows = 1-t.fill, 0
	for _, x := range t.current() {
		x.Reset()
	}
	done := make(chan error, 1)
	t.busy = done
	go func() { done <- t.page(ctx, cells, n) }()
	return nil
}

// wait waits for the page that is encoded.
func (t *TaskWriter) wait() error {
	if t.busy != nil {
		if err := <-t.busy; err != nil && t.failed == nil {
			t.failed = err
		}
		t.busy = nil
	}
	return t.failed
}

// page encodes a page of n rows and adds it to the blocklet, which is written if it is large enough.
func (t *TaskWriter) page(ctx context.Context, tops []*page.Cells, n int) error {
	if t.v12 != nil {
		return t.v12Blocklet(ctx, tops, n)
	}
	pages := make([]*layout.OutPage, len(t.Columns))
	if err := t.encodeAll(tops, pages); err != nil {
		return err
	}
	var size int64
	for _, p := range pages {
		size += p.Size()
	}
	add := func() {
		for i, p := range pages {
			t.blocklet[i] = append(t.blocklet[i], p)
		}
		t.held += size
		t.inPage = append(t.inPage, int32(n))
	}
	if t.held*115/100+size < min(t.o.Blocklet, t.o.Block) {
		add()
		return nil
	}
	alone := len(t.inPage) == 0
	if alone {
		add()
	}
	if err := t.endBlocklet(ctx); err != nil {
		return err
	}
	if !alone {
		add()
	}
	return nil
}

// encodeAll encodes the pages of all columns, side by side.
func (t *TaskWriter) encodeAll(tops []*page.Cells, pages []*layout.OutPage) error {
	type job struct {
		c *schema.Column
		x *page.Cells
	}
	jobs := make([]job, len(pages))
	var walk func(c *schema.Column, x *page.Cells)
	walk = func(c *schema.Column, x *page.Cells) {
		jobs[c.Chunk] = job{c, x}
		for i, k := range c.Children {
			walk(k, x.Children[i])
		}
	}
	for i, r := range t.Roots {
		if r.Typ.Complex() && !t.o.Merge {
			if err := tops[i].EmptyBytes(r); err != nil {
				return err
			}
			if err := tops[i].Check(r); err != nil {
				return err
			}
		}
		walk(r, tops[i])
	}
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(jobs)) {
		group.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(jobs); i = next.Add(1) - 1 {
				pages[i] = t.cols[i].Encode(jobs[i].x)
			}
		})
	}
	group.Wait()
	return nil
}

// endBlocklet writes the pages that are held as a blocklet.
func (t *TaskWriter) endBlocklet(ctx context.Context) error {
	if len(t.inPage) == 0 {
		return nil
	}
	heads := make([][]byte, len(t.Columns))
	size := t.held
	for i, pages := range t.blocklet {
		dict := t.cols[i].UnifyPages(pages)
		heads[i] = layout.ThriftBytes(func(w *thrift.Writer) { layout.PutDataChunk3(w, pages, dict) })
		size += int64(len(heads[i]))
	}
	// a tenth is left for metadata
	if limit := t.o.Block - t.o.Block/10; !t.Single && t.begun > 0 && t.begun+size >= limit {
		if err := t.endFile(); err != nil {
			return err
		}
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	t.begun += size
	info := layout.BlockletInfo{Pages: int32(len(t.inPage)), InPage: t.inPage}
	for _, n := range t.inPage {
		info.Rows += int64(n)
	}
	for i, pages := range t.blocklet {
		info.Offsets = append(info.Offsets, t.at)
		info.Lengths = append(info.Lengths, int32(len(heads[i])))
		t.put(heads[i])
		for _, p := range pages {
			t.put(p.Bytes)
		}
		if t.Columns[i].Dimension {
			info.Dims = t.at
		}
	}
	if info.Dims == 0 {
		info.Dims = info.Offsets[0]
	}
	info.End = t.at
	t.foot.Rows += info.Rows
	t.foot.Index = append(t.foot.Index, layout.BlockletIndex{MinMax: t.bounds(), Start: layout.DeprecatedKey,
		End: layout.DeprecatedKey})
	t.foot.Blocklet = append(t.foot.Blocklet, info)
	for i := range t.blocklet {
		t.blocklet[i] = nil
	}
	t.held, t.inPage = 0, nil
	return nil
}

// bounds are the smallest and the largest value of each column of the blocklet.
func (t *TaskWriter) bounds() *layout.MinMax {
	m := &layout.MinMax{}
	for i, pages := range t.blocklet {
		c := t.Columns[i]
		lo, hi, written := pages[0].MinMax.Min[0], pages[0].MinMax.Max[0], true
		for _, p := range pages {
			written = written && p.MinMax.Written[0]
			if a := p.MinMax.Min[0]; lessBound(c, a, lo) {
				lo = a
			}
			if z := p.MinMax.Max[0]; lessBound(c, hi, z) {
				hi = z
			}
		}
		if !written || c.Parent != nil || c.Typ.Complex() { // nothing is looked up by what is in lists and structs
			lo, hi, written = []byte{}, []byte{}, false
		}
		m.Min, m.Max, m.Written = append(m.Min, lo), append(m.Max, hi), append(m.Written, written)
	}
	return m
}

// put writes to the file. The buffer keeps the first error.
func (t *TaskWriter) put(b []byte) {
	n, _ := t.buf.Write(b)
	t.at += int64(n)
}

// begin begins a data file if none is open.
func (t *TaskWriter) begin(ctx context.Context) (err error) {
	if t.out != nil {
		return nil
	}
	t.name = t.dataName(t.number)
	name := t.name
	if t.Single {
		name = ""
	}
	if t.out, err = t.to.CreateFile(ctx, name); err != nil {
		return err
	}
	t.number++
	t.buf = bufio.NewWriterSize(t.out, 256<<10)
	t.at, t.begun = 0, 0
	t.foot = layout.Footer{Version: int32(t.o.Version), Columns: t.list, Segment: t.segmentInfo(),
		Sorted: len(t.o.SortColumns) > 0, Extra: map[string]string{"written_by": t.o.By, "version": writtenVersion}}
	if t.v12 != nil {
		t.put(t.v12.header())
		return nil
	}
	h := layout.Header{Version: 3, Columns: t.list, Footer: true, Stamp: t.stamp}
	t.put(layout.ThriftBytes(h.Put))
	return nil
}

// endFile writes the footer and closes the data file.
func (t *TaskWriter) endFile() error {
	if t.out == nil {
		return nil
	}
	at := t.at
	if t.v12 != nil {
		t.put(layout.ThriftBytes(t.foot.PutV12))
	} else {
		t.put(layout.ThriftBytes(t.foot.Put))
	}
	t.put(binary.BigEndian.AppendUint64(nil, uint64(at)))
	err := errors.Join(t.buf.Flush(), t.out.Close())
	t.out = nil
	if err != nil {
		return err
	}
	if t.v12 != nil && len(t.foot.Index) > 0 {
		t.index.Blocks = append(t.index.Blocks,
			layout.BlockIndex{Rows: t.foot.Rows, File: t.name, Offset: at, Index: fileIndex(t.foot.Index)})
	}
	for i := range t.foot.Blocklet {
		if t.v12 != nil {
			break
		}
		t.index.Blocks = append(t.index.Blocks,
			layout.BlockIndex{Rows: t.foot.Rows, File: t.name, Offset: at, Index: t.foot.Index[i],
				Info: &t.foot.Blocklet[i], Size: t.at})
	}
	t.Names = append(t.Names, t.name)
	t.Bytes += t.at
	return nil
}

// Close writes what is left, and the index. A task without rows has a data file without blocklets.
func (t *TaskWriter) Close(ctx context.Context) error {
	if err := t.endPage(ctx); err != nil {
		return err
	}
	if err := t.wait(); err != nil {
		return err
	}
	if err := t.endBlocklet(ctx); err != nil {
		return err
	}
	if t.v12 != nil && t.total == 0 {
		return fault.Unsupportedf(fault.Span{}, "", "CarbonData has no files of format %d without rows", t.v12.version)
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	if err := t.endFile(); err != nil || t.Single {
		return err
	}
	if t.total == 0 && t.Segment == noSegment { // there is no index that names no blocklet
		return nil
	}
	t.index.Header.Segment = t.segmentInfo()
	put := t.index.Put
	if t.v12 != nil {
		put = t.index.PutV12
	}
	b := layout.ThriftBytes(put)
	out, err := t.to.CreateFile(ctx, t.IndexName())
	if err != nil {
		return err
	}
	_, err = out.Write(b)
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	t.Names = append(t.Names, t.IndexName())
	t.Bytes += int64(len(b))
	return nil
}

// Abandon waits for what runs and closes the open file, which is not whole.
func (t *TaskWriter) Abandon() {
	t.wait() // whatever it says: the files are thrown away
	if t.out != nil {
		t.out.Close()
		t.out = nil
	}
}

// floatBound is a bound of a floating column.
func floatBound(c *schema.Column, b []byte) float64 {
	if len(b) != 8 {
		return 0
	}
	v := binary.BigEndian.Uint64(b)
	if c.Typ == layout.TypeFloat {
		return float64(math.Float32frombits(uint32(v >> 32)))
	}
	return math.Float64frombits(v)
}

// lessBound compares bounds: of measures as numbers, of dimensions as bytes.
func lessBound(c *schema.Column, a, b []byte) bool {
	switch {
	case c.Dimension:
		return bytes.Compare(a, b) < 0
	case c.Typ == layout.TypeFloat || c.Typ == layout.TypeDouble:
		return floatBound(c, a) < floatBound(c, b)
	}
	x, ok1 := BoundOf(c, a)
	y, ok2 := BoundOf(c, b)
	if order, ok := pred.Compare(x, y); ok1 && ok2 && ok {
		return order < 0
	}
	return false
}
