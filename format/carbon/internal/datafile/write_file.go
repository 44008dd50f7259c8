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
	"strings"
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

// writtenVersion is the release of CarbonData whose format is written; it is recorded in the footer.
const writtenVersion = "2.3.0"

// WritePlan has the properties that all data files of a load share.
type WritePlan struct {
	o       *schema.WriteOptions
	list    []layout.ColumnSchema
	Columns []*schema.Column // by chunk
	Roots   []*schema.Column // of the table, in the order of list
	stamp   int64            // milliseconds since 1970, in the names and the headers
	Task    string
	Bucket  int
	Segment string // noSegment outside of a table
}

// NewPlan plans the files for columns in the order of PlanColumns; stamp is the time of the load in milliseconds since
// 1970. Errors are those of schema.ColumnTree.
func NewPlan(list []layout.ColumnSchema, o *schema.WriteOptions, stamp int64) (*WritePlan, error) {
	p := &WritePlan{o: o, list: list, stamp: stamp, Task: "0", Segment: noSegment}
	var err error
	var chunks int
	if p.Roots, chunks, err = schema.ColumnTree(list, fault.Span{}, "schema"); err != nil {
		return nil, err
	}
	p.Columns = schema.ByChunk(p.Roots, chunks)
	for _, c := range p.Columns {
		c.SetCardinality(0)
	}
	return p, nil
}

// pageWriter returns a writer of a column's pages in format 3.
func (p *WritePlan) pageWriter(c *schema.Column) *page.PageWriter {
	w := &page.PageWriter{Column: c, Codec: p.o.Codec, Inverted: c.SortColumn() &&
		c.Encoders.Has(layout.EncInvertedIndex)}
	if p.o.Dictionary && (c.Type == layout.TypeString || c.Type == layout.TypeVarchar) && p.o.AllowsLocalDictionary(c) {
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

// noSegment replaces the segment number in the names of files outside of a table.
const noSegment = "null"

// IndexName is the name of the task's index file.
func (p *WritePlan) IndexName() string {
	if p.o.Version < 3 {
		return fmt.Sprintf("%s-%d-%d.carbonindex", p.Task, p.Bucket, p.stamp)
	}
	return fmt.Sprintf("%s_batchno0-%d-%s-%d.carbonindex", p.Task, p.Bucket, p.Segment, p.stamp)
}

// OutPlace is where a task creates its files; the name is "" for the only file of a writer without a table.
type OutPlace interface {
	CreateFile(ctx context.Context, name string) (io.WriteCloser, error)
}

// TaskWriter writes the data files of a task, one after the other, and their index. A page is encoded while the next
// one is filled.
type TaskWriter struct {
	*WritePlan
	to     OutPlace
	Single bool // one data file, without an index
	name   string

	cols   []*page.PageWriter // by chunk
	cells  [2][]*page.Cells   // of the roots, for two pages
	fill   int                // index in cells of the page being filled
	rows   int                // rows in the page being filled
	busy   chan error         // receives the result of the page being encoded; nil: there is none
	total  int64              // rows
	failed error              // of the first page that failed

	v12 *v12Writer // nil in format 3

	blocklet [][]*layout.OutPage // encoded pages of the current blocklet, by chunk
	held     int64               // bytes of the pages in blocklet
	inPage   []int32             // rows of each page in blocklet

	out    io.WriteCloser // the open data file; nil: there is none
	buf    *bufio.Writer
	at     int64 // offset in the data file
	foot   layout.Footer
	index  layout.IndexFile
	Names  []string // of the complete files
	Bytes  int64    // total size of the complete files
	begun  int64    // bytes of the blocklets in the open data file
	number int      // number of the next data file
}

// NewTask starts a task. A single one writes one data file, and no index.
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

// addSlice is the largest number of rows that are added before the size of the page is checked again.
const addSlice = 4 << 10

// Add appends rows [from, to) of a batch. fields has the column in the batch for each root; -1 means null in all rows.
// A value that the format cannot hold is a page.ValueError.
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

// InColumn sets the column of a page.ValueError.
func InColumn(err error, c *schema.Column) error {
	var v *page.ValueError
	if errors.As(err, &v) && v.Column == "" {
		v.Column = c.Name
	}
	return err
}

// Located turns a page.ValueError into an Invalid error with column and row; before is added to the row number, which
// counts within the batch. Other errors are returned as they are.
func Located(err error, before int64) error {
	var v *page.ValueError
	if !errors.As(err, &v) {
		return err
	}
	why := v.Err.Error()
	var e *fault.Error
	if errors.As(v.Err, &e) { // without its class, because the new error has one
		why = e.Reason
	}
	return fault.Invalidf("column %s, row %d: %s", v.Column, before+int64(v.Row), why)
}

// current returns the cells of the page being filled.
func (t *TaskWriter) current() []*page.Cells { return t.cells[t.fill] }

// room returns the number of rows for which the page has room.
func (t *TaskWriter) room() int { return t.o.PageRows - t.rows }

// added counts n rows that were appended to the current cells, and ends the page if it is full.
func (t *TaskWriter) added(ctx context.Context, n int) error {
	t.rows += n
	t.total += int64(n)
	if t.rows >= t.o.PageRows {
		return t.endPage(ctx)
	}
	return nil
}

// pageFull reports whether the page being filled has reached the size limit of pages.
func (t *TaskWriter) pageFull() bool {
	n := 0
	for _, x := range t.current() {
		n += x.Size()
	}
	return n >= t.o.PageSize
}

// endPage starts encoding the page being filled, and switches to the other set of cells.
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

// wait waits for the page that is being encoded. The error is that of the first page that failed.
func (t *TaskWriter) wait() error {
	if t.busy != nil {
		if err := <-t.busy; err != nil && t.failed == nil {
			t.failed = err
		}
		t.busy = nil
	}
	return t.failed
}

// page encodes a page of n rows and adds it to the blocklet. If the page would make the blocklet too large, the
// blocklet is written first.
func (t *TaskWriter) page(ctx context.Context, tops []*page.Cells, n int) error {
	if t.v12 != nil {
		return t.v12Blocklet(ctx, tops, n)
	}
	cells, err := t.cellsByChunk(tops)
	if err != nil {
		return err
	}
	pages := make([]*layout.OutPage, len(cells))
	inParallel(len(pages), func(i int) { pages[i] = t.cols[i].Encode(cells[i]) })
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

// cellsByChunk returns the cells of all columns, including nested ones. Values that would be read as null are an error
// unless the options allow them.
func (t *TaskWriter) cellsByChunk(tops []*page.Cells) ([]*page.Cells, error) {
	out := make([]*page.Cells, len(t.Columns))
	var walk func(c *schema.Column, x *page.Cells)
	walk = func(c *schema.Column, x *page.Cells) {
		out[c.Chunk] = x
		for i, k := range c.Children {
			walk(k, x.Children[i])
		}
	}
	for i, r := range t.Roots {
		if r.Type.Complex() && !t.o.Merge {
			if err := tops[i].CheckEmptyBytes(r); err != nil {
				return nil, err
			}
			if err := tops[i].Check(r); err != nil {
				return nil, err
			}
		}
		walk(r, tops[i])
	}
	return out, nil
}

// inParallel calls f(0) to f(n-1) on as many goroutines as there are processors.
func inParallel(n int, f func(i int)) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	group.Wait()
}

// endBlocklet writes the held pages as a blocklet.
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
	if err := t.beginBlocklet(ctx, size); err != nil {
		return err
	}
	info := layout.BlockletInfo{Pages: int32(len(t.inPage)), PageRows: t.inPage}
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
			info.DimensionsEnd = t.at
		}
	}
	if info.DimensionsEnd == 0 {
		info.DimensionsEnd = info.Offsets[0]
	}
	info.MeasuresEnd = t.at
	t.foot.Rows += info.Rows
	t.foot.Index = append(t.foot.Index, layout.BlockletIndex{MinMax: t.bounds(), Start: layout.EmptyKey,
		End: layout.EmptyKey})
	t.foot.Blocklet = append(t.foot.Blocklet, info)
	for i := range t.blocklet {
		t.blocklet[i] = nil
	}
	t.held, t.inPage = 0, nil
	return nil
}

// bounds returns min and max of each column of the blocklet.
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
		if !written || c.Parent != nil || c.Type.Complex() { // no reader filters by lists, structs or their children
			lo, hi, written = []byte{}, []byte{}, false
		}
		m.Min, m.Max, m.Written = append(m.Min, lo), append(m.Max, hi), append(m.Written, written)
	}
	return m
}

// put writes to the open data file. endFile returns the first error, which the buffer keeps.
func (t *TaskWriter) put(b []byte) {
	n, _ := t.buf.Write(b)
	t.at += int64(n)
}

// beginBlocklet makes sure that a data file with room for a blocklet of the given size is open. It begins a new file if
// the open one would become too large. A tenth of the block size is reserved for metadata.
func (t *TaskWriter) beginBlocklet(ctx context.Context, size int64) error {
	if limit := t.o.Block - t.o.Block/10; !t.Single && t.begun > 0 && t.begun+size >= limit {
		if err := t.endFile(); err != nil {
			return err
		}
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	t.begun += size
	return nil
}

// begin creates a data file unless one is open.
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
		Sorted: len(t.o.SortColumns) > 0, Extra: map[string]string{"written_by": t.o.CreatedBy,
			"version": writtenVersion}}
	if !strings.HasPrefix(t.o.CreatedBy, "stoa") { // otherwise readers would assume Java's calendar for old dates
		t.foot.Extra["calendar"] = "proleptic"
	}
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
	if t.v12 == nil {
		for i := range t.foot.Blocklet {
			t.index.Blocks = append(t.index.Blocks,
				layout.BlockIndex{Rows: t.foot.Rows, File: t.name, Offset: at, Index: t.foot.Index[i],
					Info: &t.foot.Blocklet[i], Size: t.at})
		}
	}
	t.Names = append(t.Names, t.name)
	t.Bytes += t.at
	return nil
}

// Close writes the remaining rows and the index. In format 3 a task without rows writes a data file without blocklets;
// in formats 1 and 2 it is Unsupported.
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
		return fault.Unsupportedf(fault.Span{}, "", "a file of CarbonData's format %d needs at least one row",
			t.v12.version)
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	if err := t.endFile(); err != nil || t.Single {
		return err
	}
	if t.total == 0 && t.Segment == noSegment { // an index would have no entry
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

// Abandon waits for the page that is being encoded and closes the open file, which is incomplete.
func (t *TaskWriter) Abandon() {
	t.wait() // its error does not matter: the caller removes the files
	if t.out != nil {
		t.out.Close()
		t.out = nil
	}
}

// floatBound parses a bound of a floating-point measure; 0 if it is not one.
func floatBound(c *schema.Column, b []byte) float64 {
	if len(b) != 8 {
		return 0
	}
	v := binary.BigEndian.Uint64(b)
	if c.Type == layout.TypeFloat {
		return float64(math.Float32frombits(uint32(v >> 32)))
	}
	return math.Float64frombits(v)
}

// lessBound compares bounds: of measures as numbers, of dimensions as bytes.
func lessBound(c *schema.Column, a, b []byte) bool {
	switch {
	case c.Dimension:
		return bytes.Compare(a, b) < 0
	case c.Type == layout.TypeFloat || c.Type == layout.TypeDouble:
		return floatBound(c, a) < floatBound(c, b)
	}
	x, ok1 := BoundOf(c, a)
	y, ok2 := BoundOf(c, b)
	if order, ok := pred.Compare(x, y); ok1 && ok2 && ok {
		return order < 0
	}
	return false
}
