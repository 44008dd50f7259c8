package carbon

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
	"stoa/internal/thrift"
	"stoa/pred"
)

// writtenVersion is the CarbonData whose files these are like; it is told in the footer.
const writtenVersion = "2.3.0"

// writePlan is what all files of a load have in common.
type writePlan struct {
	o       *writeOptions
	list    []columnSchema
	columns []*column // by chunk
	roots   []*column // of the table, in the order of list
	stamp   int64     // milliseconds, in the names and the headers
	task    string
	bucket  int
	segment string // "null" outside of a table
}

// newPlan plans the files for columns in the order of format 3.
func newPlan(list []columnSchema, o *writeOptions, stamp int64) (*writePlan, error) {
	p := &writePlan{o: o, list: list, stamp: stamp, task: "0", segment: "null"}
	var err error
	var chunks int
	if p.roots, chunks, err = columnTree(list, fault.Span{}, "schema"); err != nil {
		return nil, err
	}
	p.columns = make([]*column, chunks)
	for _, r := range p.roots {
		r.all(func(c *column) {
			p.columns[c.chunk] = c
			c.setCard(0)
		})
	}
	return p, nil
}

// pageWriter makes the writer of a column's pages.
func (p *writePlan) pageWriter(c *column) *pageWriter {
	w := &pageWriter{column: c, codec: p.o.codec, inverted: c.sortColumn() && c.encoders.has(encInvertedIndex)}
	if p.o.dictionary && (c.typ == typeString || c.typ == typeVarchar) && p.o.codes(c) {
		w.dict = newDictWriter(p.o.threshold)
	}
	return w
}

// dataName is the name of data file number n of the task.
func (p *writePlan) dataName(n int) string {
	if p.o.version < 3 {
		return fmt.Sprintf("part-%d-%s-%d-%d.carbondata", n, p.task, p.bucket, p.stamp)
	}
	return fmt.Sprintf("part-%d-%s_batchno0-%d-%s-%d.%s.carbondata", n, p.task, p.bucket, p.segment, p.stamp, p.o.codec)
}

// indexName is the name of the task's index file.
func (p *writePlan) indexName() string {
	if p.o.version < 3 {
		return fmt.Sprintf("%s-%d-%d.carbonindex", p.task, p.bucket, p.stamp)
	}
	return fmt.Sprintf("%s_batchno0-%d-%s-%d.carbonindex", p.task, p.bucket, p.segment, p.stamp)
}

// outPlace is where the files of a task go.
type outPlace interface {
	create(ctx context.Context, name string) (io.WriteCloser, error)
}

// taskWriter writes the data files of a task, one after the other, and their index. Rows come page by page.
type taskWriter struct {
	*writePlan
	to     outPlace
	single bool // one data file, without index
	name   string

	cols   []*pageWriter // by chunk
	cells  [2][]*cells   // of the roots; while one page is encoded the next is filled
	fill   int           // which of them is filled
	rows   int           // in the page that is filled
	busy   chan error    // of the page that is encoded; nil: none is
	total  int64         // rows
	failed error

	old *oldWriter // of formats 1 and 2; nil

	blocklet [][]*outPage // by chunk
	held     int64        // bytes of the blocklet's pages
	inPage   []int32

	out    io.WriteCloser
	buf    *bufio.Writer
	at     int64
	foot   footer
	index  indexFile
	names  []string // of the files that are whole
	bytes  int64    // of them
	begun  int64    // bytes of the blocklets in the current file
	number int
}

func newTask(p *writePlan, to outPlace, single bool) *taskWriter {
	t := &taskWriter{writePlan: p, to: to, single: single}
	for _, c := range p.columns {
		t.cols = append(t.cols, p.pageWriter(c))
	}
	if p.o.version < 3 {
		t.old = newOldWriter(p)
	}
	t.blocklet = make([][]*outPage, len(p.columns))
	for i := range t.cells {
		for _, r := range p.roots {
			t.cells[i] = append(t.cells[i], newCells(r))
		}
	}
	t.index.header = indexHeader{version: int32(p.o.version), columns: p.list, segment: segmentInfo{columns: int32(len(p.list))}, bucket: int32(p.bucket), stamp: p.stamp, sorted: len(p.o.sortColumns) > 0}
	return t
}

// addSlice is how many rows are added between two looks at the size of the page.
const addSlice = 4 << 10

// add puts rows from…to of a batch into pages. fields are those of the roots; -1: null in all rows.
func (t *taskWriter) add(ctx context.Context, b arrow.RecordBatch, fields []int, from, to int) error {
	for from < to {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(to-from, t.room(), addSlice)
		for i, x := range t.current() {
			if fields[i] < 0 {
				for range n {
					x.addNull(t.roots[i])
				}
				continue
			}
			if err := x.add(t.roots[i], b.Column(fields[i]), from, from+n, t.o); err != nil {
				return inColumn(err, t.roots[i])
			}
		}
		if err := t.added(ctx, n); err != nil {
			return err
		}
		if t.rows > 0 && t.crowded() {
			if err := t.endPage(ctx); err != nil {
				return err
			}
		}
		from += n
	}
	return nil
}

// inColumn names the column of a value that does not fit.
func inColumn(err error, c *column) error {
	var v *valueError
	if errors.As(err, &v) && v.column == "" {
		v.column = c.name
	}
	return err
}

// located tells the row of a value that does not fit; before is what is added to its place in the batch.
func located(err error, before int64) error {
	var v *valueError
	if !errors.As(err, &v) {
		return err
	}
	why := v.err.Error()
	var e *fault.Error
	if errors.As(v.err, &e) { // without the class, which is said once
		why = e.Reason
	}
	return fault.Invalidf("column %s, row %d: %s", v.column, before+int64(v.row), why)
}

// current are the cells that are filled.
func (t *taskWriter) current() []*cells { return t.cells[t.fill] }

// room is how many rows the page still takes.
func (t *taskWriter) room() int { return t.o.pageRows - t.rows }

// added notes that n rows were put into the current cells, and ends the page if it is full.
func (t *taskWriter) added(ctx context.Context, n int) error {
	t.rows += n
	t.total += int64(n)
	if t.rows >= t.o.pageRows {
		return t.endPage(ctx)
	}
	return nil
}

// crowded reports whether the page that is filled has as many bytes as a page may have.
func (t *taskWriter) crowded() bool {
	n := 0
	for _, x := range t.current() {
		n += x.size()
	}
	return n >= t.o.pageSize
}

// endPage has the page encoded while the next is filled.
func (t *taskWriter) endPage(ctx context.Context) error {
	if err := t.wait(); err != nil || t.rows == 0 {
		return err
	}
	cells, n := t.current(), t.rows
	t.fill, t.rows = 1-t.fill, 0
	for _, x := range t.current() {
		x.reset()
	}
	done := make(chan error, 1)
	t.busy = done
	go func() { done <- t.page(ctx, cells, n) }()
	return nil
}

// wait waits for the page that is encoded.
func (t *taskWriter) wait() error {
	if t.busy != nil {
		if err := <-t.busy; err != nil && t.failed == nil {
			t.failed = err
		}
		t.busy = nil
	}
	return t.failed
}

// page encodes a page of n rows and adds it to the blocklet, which is written if it is large enough.
func (t *taskWriter) page(ctx context.Context, tops []*cells, n int) error {
	if t.old != nil {
		return t.oldBlocklet(ctx, tops, n)
	}
	pages := make([]*outPage, len(t.columns))
	if err := t.encodeAll(tops, pages); err != nil {
		return err
	}
	var size int64
	for _, p := range pages {
		size += p.size()
	}
	add := func() {
		for i, p := range pages {
			t.blocklet[i] = append(t.blocklet[i], p)
		}
		t.held += size
		t.inPage = append(t.inPage, int32(n))
	}
	if t.held*115/100+size < min(t.o.blocklet, t.o.block) {
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
func (t *taskWriter) encodeAll(tops []*cells, pages []*outPage) error {
	type job struct {
		c *column
		x *cells
	}
	jobs := make([]job, len(pages))
	var walk func(c *column, x *cells)
	walk = func(c *column, x *cells) {
		jobs[c.chunk] = job{c, x}
		for i, k := range c.kids {
			walk(k, x.kids[i])
		}
	}
	for i, r := range t.roots {
		if r.typ.complex() && !t.o.merge {
			if err := tops[i].emptyBytes(r); err != nil {
				return err
			}
			if err := tops[i].check(r); err != nil {
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
				pages[i] = t.cols[i].encode(jobs[i].x)
			}
		})
	}
	group.Wait()
	return nil
}

// endBlocklet writes the pages that are held as a blocklet.
func (t *taskWriter) endBlocklet(ctx context.Context) error {
	if len(t.inPage) == 0 {
		return nil
	}
	heads := make([][]byte, len(t.columns))
	size := t.held
	for i, pages := range t.blocklet {
		dict := t.cols[i].settle(pages)
		heads[i] = thriftBytes(func(w *thrift.Writer) { putDataChunk3(w, pages, dict) })
		size += int64(len(heads[i]))
	}
	if limit := t.o.block - t.o.block/10; !t.single && t.begun > 0 && t.begun+size >= limit { // a tenth is left for metadata
		if err := t.endFile(); err != nil {
			return err
		}
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	t.begun += size
	info := blockletInfo{pages: int32(len(t.inPage)), inPage: t.inPage}
	for _, n := range t.inPage {
		info.rows += int64(n)
	}
	for i, pages := range t.blocklet {
		info.offsets = append(info.offsets, t.at)
		info.lengths = append(info.lengths, int32(len(heads[i])))
		t.put(heads[i])
		for _, p := range pages {
			t.put(p.bytes)
		}
		if t.columns[i].dimension {
			info.dims = t.at
		}
	}
	if info.dims == 0 {
		info.dims = info.offsets[0]
	}
	info.end = t.at
	t.foot.rows += info.rows
	t.foot.index = append(t.foot.index, blockletIndex{minMax: t.bounds(), start: deprecatedKey, end: deprecatedKey})
	t.foot.blocklet = append(t.foot.blocklet, info)
	for i := range t.blocklet {
		t.blocklet[i] = nil
	}
	t.held, t.inPage = 0, nil
	return nil
}

// bounds are the least and the greatest value of each column of the blocklet.
func (t *taskWriter) bounds() *minMax {
	m := &minMax{}
	for i, pages := range t.blocklet {
		c := t.columns[i]
		lo, hi, written := pages[0].minMax.min[0], pages[0].minMax.max[0], true
		for _, p := range pages {
			written = written && p.minMax.written[0]
			if a := p.minMax.min[0]; c.less(a, lo) {
				lo = a
			}
			if z := p.minMax.max[0]; c.less(hi, z) {
				hi = z
			}
		}
		if !written || c.parent != nil || c.typ.complex() { // nothing is looked up by what is in lists and structs
			lo, hi, written = []byte{}, []byte{}, false
		}
		m.min, m.max, m.written = append(m.min, lo), append(m.max, hi), append(m.written, written)
	}
	return m
}

// less compares bounds: of measures as numbers, of dimensions as bytes.
func (c *column) less(a, b []byte) bool {
	switch {
	case c.dimension:
		return bytes.Compare(a, b) < 0
	case c.typ == typeFloat || c.typ == typeDouble:
		return floatBound(c, a) < floatBound(c, b)
	}
	x, ok1 := c.bound(a)
	y, ok2 := c.bound(b)
	if order, ok := pred.Compare(x, y); ok1 && ok2 && ok {
		return order < 0
	}
	return false
}

// put writes to the file. The buffer keeps the first error.
func (t *taskWriter) put(b []byte) {
	n, _ := t.buf.Write(b)
	t.at += int64(n)
}

// begin begins a data file if none is open.
func (t *taskWriter) begin(ctx context.Context) (err error) {
	if t.out != nil {
		return nil
	}
	t.name = t.dataName(t.number)
	name := t.name
	if t.single {
		name = ""
	}
	if t.out, err = t.to.create(ctx, name); err != nil {
		return err
	}
	t.number++
	t.buf = bufio.NewWriterSize(t.out, 256<<10)
	t.at, t.begun = 0, 0
	t.foot = footer{version: int32(t.o.version), columns: t.list, segment: t.segmentInfo(), sorted: len(t.o.sortColumns) > 0, extra: map[string]string{"written_by": t.o.by, "version": writtenVersion}}
	if t.old != nil {
		t.put(t.old.header())
		return nil
	}
	h := header{version: 3, columns: t.list, footer: true, stamp: t.stamp}
	t.put(thriftBytes(h.put))
	return nil
}

// endFile writes the footer and closes the data file.
func (t *taskWriter) endFile() error {
	if t.out == nil {
		return nil
	}
	at := t.at
	if t.old != nil {
		t.put(thriftBytes(t.foot.putOld))
	} else {
		t.put(thriftBytes(t.foot.put))
	}
	t.put(binary.BigEndian.AppendUint64(nil, uint64(at)))
	err := errors.Join(t.buf.Flush(), t.out.Close())
	t.out = nil
	if err != nil {
		return err
	}
	if t.old != nil && len(t.foot.index) > 0 {
		t.index.blocks = append(t.index.blocks, blockIndex{rows: t.foot.rows, file: t.name, offset: at, index: fileIndex(t.foot.index)})
	}
	for i := range t.foot.blocklet {
		if t.old != nil {
			break
		}
		t.index.blocks = append(t.index.blocks, blockIndex{rows: t.foot.rows, file: t.name, offset: at, index: t.foot.index[i], info: &t.foot.blocklet[i], size: t.at})
	}
	t.names = append(t.names, t.name)
	t.bytes += t.at
	return nil
}

// close writes what is left, and the index. A task without rows has a data file without blocklets.
func (t *taskWriter) close(ctx context.Context) error {
	if err := t.endPage(ctx); err != nil {
		return err
	}
	if err := t.wait(); err != nil {
		return err
	}
	if err := t.endBlocklet(ctx); err != nil {
		return err
	}
	if t.old != nil && t.total == 0 {
		return fault.Unsupportedf(fault.Span{}, "", "CarbonData has no files of format %d without rows", t.old.version)
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	if err := t.endFile(); err != nil || t.single {
		return err
	}
	t.index.header.segment = t.segmentInfo()
	put := t.index.put
	if t.old != nil {
		put = t.index.putOld
	}
	b := thriftBytes(put)
	out, err := t.to.create(ctx, t.indexName())
	if err != nil {
		return err
	}
	_, err = out.Write(b)
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	t.names = append(t.names, t.indexName())
	t.bytes += int64(len(b))
	return nil
}

// abandon waits for what runs and closes the open file, which is not whole.
func (t *taskWriter) abandon() {
	t.wait() // whatever it says: the files are thrown away
	if t.out != nil {
		t.out.Close()
		t.out = nil
	}
}

// floatBound is a bound of a floating column.
func floatBound(c *column, b []byte) float64 {
	if len(b) != 8 {
		return 0
	}
	v := binary.BigEndian.Uint64(b)
	if c.typ == typeFloat {
		return float64(math.Float32frombits(uint32(v >> 32)))
	}
	return math.Float64frombits(v)
}
