package datafile

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/internal/codec"
	"stoa/internal/thrift"
)

// StreamIndexName is the name of the index file in the directory of every streaming segment.
const StreamIndexName = "0_batchno0-0-0-0.carbonindex"

// A blocklet of rows ends at these limits, those of CarbonData.
const (
	streamRows  = 32_000
	streamBytes = 32 << 20
)

// Gregorian begins the marker of a row-format file whose dates and times are Gregorian throughout. CarbonData's markers
// are random numbers, of which one in 2⁴⁸ begins so; nothing else in such a file can say it.
var Gregorian = []byte("stoa-g")

// StreamWriter writes a row-format file, see streamFile, and the index of its directory.
type StreamWriter struct {
	p      *WritePlan
	fields []StreamField
	cells  []*page.Cells // of the fields
	roots  []int         // of the fields
	name   string
	to     OutPlace
	out    io.WriteCloser
	buf    *bufio.Writer
	at     int64
	sync   [markerLen]byte
	rows   []byte // of the current blocklet
	n      int64  // rows in it
	total  int64
}

// FitsStream returns an error, Unsupported, that names a column which row-format files cannot have.
func FitsStream(p *WritePlan) error {
	for _, c := range p.Roots {
		switch c.Type {
		case layout.TypeString, layout.TypeVarchar, layout.TypeBoolean, layout.TypeShort, layout.TypeInt,
			layout.TypeLong, layout.TypeDouble, layout.TypeDecimal, layout.TypeDate, layout.TypeTimestamp:
			if !schema.HasGlobalCodes(c) {
				continue
			}
		}
		return fault.Unsupportedf(fault.Span{}, "", "column %s: a segment of rows cannot have the type %s", c.Name,
			c.Type)
	}
	return nil
}

// NewStream starts the file of a plan for which FitsStream is nil.
func NewStream(ctx context.Context, p *WritePlan, to OutPlace) (*StreamWriter, error) {
	w := &StreamWriter{p: p, to: to}
	var err error
	if w.fields, err = streamFields(p.Roots, fault.Span{}); err != nil {
		return nil, err
	}
	for _, f := range w.fields {
		w.roots = append(w.roots, slices.Index(p.Roots, f.Col))
		w.cells = append(w.cells, page.NewCells(f.Col))
	}
	rand.Read(w.sync[copy(w.sync[:], Gregorian):])
	// the time is 0 in CarbonData's, too: the file grows
	w.name = fmt.Sprintf("part-0-%s_batchno0-0-%s-0.%s.carbondata", p.Task, p.Segment, p.o.Codec)
	if w.out, err = to.CreateFile(ctx, w.name); err != nil {
		return nil, err
	}
	w.buf = bufio.NewWriterSize(w.out, 1<<20)
	h := layout.Header{Version: 3, Columns: p.list, Stamp: p.stamp, Sync: w.sync[:], Compressor: p.o.Codec}
	return w, w.put(layout.ThriftBytes(h.Put))
}

// Name is the name of the file; "" if w is nil.
func (w *StreamWriter) Name() string {
	if w == nil {
		return ""
	}
	return w.name
}

func (w *StreamWriter) put(b []byte) error {
	n, err := w.buf.Write(b)
	w.at += int64(n)
	return err
}

// Add appends the rows of a batch; fields is as in TaskWriter.Add.
func (w *StreamWriter) Add(ctx context.Context, b arrow.RecordBatch, fields []int) error {
	for from, n := 0, int(b.NumRows()); from < n; from += addSlice {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.add(b, fields, from, min(from+addSlice, n)); err != nil {
			return err
		}
	}
	return nil
}

func (w *StreamWriter) add(b arrow.RecordBatch, fields []int, from, to int) error {
	for k, x := range w.cells {
		x.Reset()
		c := w.fields[k].Col
		at := fields[w.roots[k]]
		if at < 0 {
			for range to - from {
				x.AddNull(c)
			}
		} else if err := x.Add(c, b.Column(at), from, to, w.p.o); err != nil {
			return InColumn(err, c)
		}
		if w.p.o.Merge {
			continue
		}
		if err := x.Check(c); err != nil {
			return InColumn(err, c)
		}
	}
	for i := range to - from {
		w.row(i)
		if w.n == streamRows || len(w.rows) >= streamBytes {
			if err := w.endBlocklet(); err != nil {
				return err
			}
		}
	}
	return nil
}

// row appends row i of the cells. Only measures have a bit for a null, in Java's BitSet without trailing zeros.
func (w *StreamWriter) row(i int) {
	var nulls []byte
	for k, x := range w.cells {
		if x.Null(i) && !w.fields[k].Col.Dimension {
			for len(nulls) <= k>>3 {
				nulls = append(nulls, 0)
			}
			nulls[k>>3] |= 1 << (k & 7)
		}
	}
	w.rows = append(binary.BigEndian.AppendUint16(w.rows, uint16(len(nulls))), nulls...)
	for k, x := range w.cells {
		switch f := &w.fields[k]; {
		case !x.Null(i):
			w.value(f, x, i)
		case f.Col.Dimension:
			w.null(f)
		}
	}
	w.n++
	w.total++
}

// null appends a null of a dimension.
func (w *StreamWriter) null(f *StreamField) {
	switch t := f.Col.Type; {
	case f.width == 4:
		w.rows = binary.BigEndian.AppendUint32(w.rows, schema.NullCode)
	case t == layout.TypeString || t == layout.TypeVarchar:
		w.text(f, []byte(schema.NullText))
	default:
		w.text(f, nil)
	}
}

// text appends bytes after their length.
func (w *StreamWriter) text(f *StreamField, b []byte) {
	if f.lv == 4 {
		w.rows = binary.BigEndian.AppendUint32(w.rows, uint32(len(b)))
	} else {
		w.rows = binary.BigEndian.AppendUint16(w.rows, uint16(len(b)))
	}
	w.rows = append(w.rows, b...)
}

// value appends a value that is not null.
func (w *StreamWriter) value(f *StreamField, x *page.Cells, i int) {
	var b [8]byte
	v := b[:]
	switch t := f.Col.Type; {
	case t == layout.TypeString || t == layout.TypeVarchar:
		v = x.Text(i)
	case t == layout.TypeDecimal:
		v = append([]byte{byte(f.Col.Scale)}, javaBytes(x.Decs[i])...)
	case t == layout.TypeDouble:
		binary.BigEndian.PutUint64(v, math.Float64bits(x.Nums[i]))
	case f.width == 4 && f.Col.Dimension: // a date
		v = v[:4]
		binary.BigEndian.PutUint32(v, uint32(x.Ints[i]+schema.DateOffset))
	default:
		n := plainWidth(t)
		binary.BigEndian.PutUint64(v, uint64(x.Ints[i]))
		v = v[8-n:]
		if f.Col.Dimension && t != layout.TypeBoolean { // so that bytes compare as the numbers do
			v[0] ^= 0x80
		}
	}
	if f.width > 0 {
		w.rows = append(w.rows, v...)
		return
	}
	w.text(f, v)
}

// javaBytes returns a number as BigInteger.toByteArray does: big-endian, in as few bytes as keep its sign.
func javaBytes(d decimal128.Num) []byte {
	b := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(d.HighBits())), d.LowBits())
	for len(b) > 1 && (b[0] == 0 && b[1] < 0x80 || b[0] == 0xff && b[1] >= 0x80) {
		b = b[1:]
	}
	return b
}

// endBlocklet writes the collected rows.
func (w *StreamWriter) endBlocklet() error {
	if w.n == 0 {
		return nil
	}
	packed, _ := codec.CompressFramed(w.p.o.Codec, nil, w.rows) // the codec was checked with the options
	head := layout.ThriftBytes(func(t *thrift.Writer) {
		t.Struct(thrift.Item)
		t.I32(1, int32(len(w.rows)))
		t.I32(2, 0) // MutationType.INSERT
		t.Struct(4)
		t.I32(1, int32(w.n))
		t.End()
		t.End()
	})
	err := errors.Join(w.put(w.sync[:]), w.put(binary.BigEndian.AppendUint32(nil, uint32(len(head)))), w.put(head),
		w.put(binary.BigEndian.AppendUint32(nil, uint32(len(packed)))), w.put(packed))
	w.rows, w.n = w.rows[:0], 0
	return err
}

// Close ends the file and writes the index, by which its bytes are committed. Bounds are left out, as older releases of
// CarbonData do, whose readers then read all rows.
func (w *StreamWriter) Close(ctx context.Context) error {
	err := w.endBlocklet()
	if err == nil {
		err = w.buf.Flush()
	}
	err = errors.Join(err, w.out.Close())
	if w.out = nil; err != nil {
		return err
	}
	f, err := w.to.CreateFile(ctx, StreamIndexName)
	if err != nil {
		return err
	}
	b := layout.BlockIndex{Rows: w.total, File: w.name, Offset: -1, Size: w.at}
	_, err = f.Write(layout.ThriftBytes(b.Put))
	return errors.Join(err, f.Close())
}

// Abandon ends the writer; its file is not used.
func (w *StreamWriter) Abandon() {
	if w != nil && w.out != nil {
		w.out.Close()
		w.out = nil
	}
}
