package ipc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/ipc/flat"
	"stoa/internal/arrowschema"
	"stoa/region"
	"stoa/vec"
)

// maxRows is how many rows a batch that we give has at most; longer ones are sliced.
const maxRows = 64 << 10

// reader is an open file or stream.
type reader struct {
	*source
	target format.Target
	schema *arrow.Schema
	first  *message // the schema message; of a file, one made of its footer
	after  int64    // where the messages behind the schema at the beginning begin

	file    bool
	foot    flat.Footer  // of a file
	named   []flat.Block // by the footer, as they lie in the file
	unused  error        // of a file: why the schema at the beginning, which looks like one, is none
	partial bool         // of a stream no end mark is expected
	// recovery: the footer is gone, or the magic in front; the file is read as the stream that is in it
	lost bool

	mu    sync.Mutex
	rows  []int64    // of a file's batches; nil before RowGroups
	dicts []*message // of a file; nil before the first batch
	cut   int64      // where a stream ended without its end mark; 0: not seen
	rest  fault.Span // what lies behind a stream's end mark
}

// Findings tells of a stream that was read to its end and had no end mark, or one before its end.
func (r *reader) Findings() (out []region.Finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cut > 0 && !r.partial {
		out = append(out, r.noEnd(r.cut))
	}
	if r.rest.Len > 0 {
		out = append(out, behindEnd(r.rest))
	}
	return out
}

// behindEnd is the finding that a stream has its end mark before these bytes.
func behindEnd(at fault.Span) region.Finding {
	return region.Finding{Code: "arrow.stream.rest", Severity: region.Error, At: at, Part: at.Object,
		Rows: [2]int64{-1, -1}, Lost: -1,
		Message: fmt.Sprintf("%d bytes lie behind the end mark, and are not read: zeros in the place of a message "+
			"may have been taken for the mark, or another stream follows", at.Len)}
}

// noEnd is the finding that a stream ends at off without its end mark.
func (r *reader) noEnd(off int64) region.Finding {
	return region.Finding{Code: "arrow.stream.end", Severity: region.Error, At: r.span(off, 0), Part: r.name,
		Rows: [2]int64{-1, -1}, Lost: -1,
		Message: "the stream has no end mark: it may have been cut between two batches; partial=true says that " +
			"its writer leaves the mark out"}
}

func open(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader, error) {
	r, err := openReader(ctx, t, o)
	if err != nil {
		return nil, err
	}
	return r, nil
}

var readKeys = []format.OptionKey{
	{Name: "partial", Values: "true|false",
		Help: "a stream without end mark is no error: its writer leaves that out (default false)"},
}

func openReader(ctx context.Context, t format.Target, o format.OpenOptions) (*reader, error) {
	if err := checkOpts(o.Opts, readKeys); err != nil {
		return nil, err
	}
	if v := o.Opts["partial"]; v != "" && v != "true" && v != "false" {
		return nil, fault.Invalidf("partial=%s: it is true or false", v)
	}
	s, err := openSource(ctx, t, o.Limits)
	if err != nil {
		return nil, err
	}
	r := &reader{source: s, target: t, partial: o.Opts["partial"] == "true"}
	if err := r.start(ctx); err != nil {
		s.src.Close()
		return nil, err
	}
	return r, nil
}

// start finds out what it is, and reads the schema and the footer.
func (r *reader) start(ctx context.Context) error {
	var magic [8]byte
	n, err := r.fill(ctx, magic[:], r.base)
	if err != nil && err != errEnd {
		return err
	}
	switch {
	case n == len(magic) && (string(magic[:len(fileMagic)]) == fileMagic || r.lost && r.endsAsFile(ctx)):
		if !r.lost {
			return r.startFile(ctx)
		}
		// what the footer would tell stands in front of every message, too
		r.first, r.after, err = r.leading(ctx)
	case n < 8 || !streamStart(magic[:]):
		return fault.Corruptf(r.span(r.base, int64(n)), "magic",
			"neither an Arrow file nor a stream begins with %x", magic[:n])
	default:
		r.lost = false // a stream has no footer that could be
		r.first, r.after, err = r.schemaAt(ctx, r.base)
	}
	if err == nil {
		r.schema, err = schemaOf(r.first)
	}
	return err
}

// schemaOf is the schema of a schema message.
func schemaOf(m *message) (*arrow.Schema, error) {
	d, err := newDecoder(&feed{queue: []*message{m}, more: eof}, memory.NewGoAllocator())
	if err != nil {
		return nil, err
	}
	sc := d.lib.Schema()
	d.release()
	if err := arrowschema.CheckTypes(sc.Fields()); err != nil {
		return nil, &fault.Error{Class: fault.Corrupt, At: m.at, Path: "schema", Cause: err}
	}
	return sc, nil
}

// endsAsFile reports whether the end is a file's, whatever the beginning is.
func (r *reader) endsAsFile(ctx context.Context) bool {
	_, _, err := r.footerAt(ctx)
	return err == nil
}

func eof() (*message, error) { return nil, io.EOF }

// streamStart reports whether a stream may begin so.
func streamStart(b []byte) bool {
	n := int32(binary.LittleEndian.Uint32(b))
	if n == -1 {
		n = int32(binary.LittleEndian.Uint32(b[4:]))
		return n >= 8
	}
	return n >= 64 && n < 1<<24 && n%4 == 0 // before 0.15: the length of a schema's metadata
}

// tail is the length of what follows the footer.
const tail = 4 + int64(len(fileMagic))

// readFooter also gives the bytes of the footer.
func (s *source) readFooter(ctx context.Context) (f flat.Footer, raw []byte, at fault.Span, err error) {
	off, n, err := s.footerAt(ctx)
	if err != nil {
		return f, nil, at, err
	}
	raw, at = make([]byte, n), s.span(off, n)
	if err := s.must(ctx, raw, off, "footer"); err != nil {
		return f, nil, at, err
	}
	f, err = flat.ParseFooter(raw, off-s.base)
	if err == nil {
		err = s.affords(f.Schema, int64(len(raw)), at, "footer")
	}
	return f, raw, at, fault.Locate(err, at, true, "footer")
}

// footerAt finds the footer from the end of the file.
func (s *source) footerAt(ctx context.Context) (at, n int64, err error) {
	size := s.size()
	if size < 8+tail {
		return 0, 0, fault.Corruptf(s.span(s.base, size), "footer", "the file is too short for a footer")
	}
	var b [tail]byte
	end := s.base + size - tail
	if err := s.must(ctx, b[:], end, "footer"); err != nil {
		return 0, 0, err
	}
	if !bytes.Equal(b[4:], []byte(fileMagic)) {
		return 0, 0, fault.Corruptf(s.span(end+4, tail-4), "footer.magic",
			"%q instead of %q: the file is cut or was never finished", b[4:], fileMagic)
	}
	n = int64(int32(binary.LittleEndian.Uint32(b[:])))
	if n <= 8 || n > size-8-tail {
		return 0, 0, fault.Corruptf(s.span(end, 4), "footer.length", "%d bytes in a file of %d", n, size)
	}
	if n > s.limits.Metadata {
		return 0, 0, fault.Limitf(s.span(end, 4), "footer.length", "%d bytes, and at most %d are read "+
			"(--max-metadata)", n, s.limits.Metadata)
	}
	return end - n, n, nil
}

func (r *reader) Schema() *arrow.Schema { return r.schema }
func (r *reader) Order() []format.Key   { return nil }
func (r *reader) Close() error          { return r.src.Close() }

// Columns are the top-level fields: a batch is read whole.
func (r *reader) Columns() []format.Column {
	out := make([]format.Column, r.schema.NumFields())
	for i, f := range r.schema.Fields() {
		out[i] = format.Column{Name: f.Name, Path: []int{i}, Parent: -1, Has: format.Values, Type: f.Type}
	}
	return out
}

func (r *reader) Parts(ctx context.Context, _ format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		p := format.Part{Ref: r.name, Rows: -1, Bytes: -1}
		if info, err := r.target.Tree.Stat(ctx, r.name); err == nil {
			p.Stamp, p.Bytes = info.Stamp, info.Size
		}
		yield(p, nil)
	}
}

func (r *reader) RowGroups(ctx context.Context, p format.Part, _ format.Query) ([]format.RowGroup, error) {
	if !r.file {
		return []format.RowGroup{{Part: p.Ref, Rows: -1, Bytes: -1}}, nil
	}
	rows, err := r.batchRows(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]format.RowGroup, len(rows))
	for i, n := range rows {
		b := r.foot.Batches[i]
		out[i] = format.RowGroup{Part: p.Ref, Index: i, Rows: n, Bytes: b.Body + int64(b.Meta)}
	}
	return out, nil
}

// batchRows reads the metadata of every batch of a file, once. A batch with damaged metadata has -1 rows.
func (r *reader) batchRows(ctx context.Context) ([]int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rows != nil {
		return r.rows, nil
	}
	rows := make([]int64, len(r.foot.Batches))
	for i := range rows {
		m, err := r.block(ctx, i)
		if err != nil && !errors.Is(err, fault.Corrupt) {
			return nil, err
		}
		rows[i] = -1
		if err == nil {
			rows[i] = m.Batch.Rows
		}
	}
	r.rows = rows
	return rows, nil
}

// block is the message of batch i of a file. One of no rows is never read: it is held against the schema here.
func (r *reader) block(ctx context.Context, i int) (*message, error) {
	m, err := r.message(ctx, r.foot.Batches[i], flat.RecordBatch, fmt.Sprintf("recordBatches[%d]", i))
	if err != nil {
		return nil, err
	}
	return m, r.enough(m)
}

// message reads the metadata of a message that the footer names.
func (r *reader) message(ctx context.Context, b flat.Block, kind int, path string) (*message, error) {
	m, _, err := r.next(ctx, r.base+b.Off, b.Meta)
	if errors.Is(err, fault.Unsupported) { // the schema's message was not
		err = &fault.Error{Class: fault.Corrupt, At: r.span(r.base+b.Off, int64(b.Meta)), Path: path, Cause: err}
	}
	var placed *fault.Error
	if errors.As(err, &placed) {
		return nil, fault.Locate(err, r.span(r.base+b.Off, int64(b.Meta)), true, path)
	}
	if err != nil {
		return nil, err // that bytes could not be read is no damage
	}
	switch {
	case m == nil:
		return nil, fault.Corruptf(r.span(r.base+b.Off, int64(b.Meta)), path, "there is no message here")
	case m.Kind != kind:
		return nil, fault.Corruptf(m.at, path, "is a %s, not a %s", flat.KindName(m.Kind), flat.KindName(kind))
	case m.Body != b.Body:
		return nil, fault.Corruptf(m.at, path, "a body of %d bytes, but the footer says %d", m.Body, b.Body)
	}
	return m, nil
}

// dictionaries loads all dictionaries of a file, once.
func (r *reader) dictionaries(ctx context.Context) ([]*message, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dicts != nil || len(r.foot.Dictionaries) == 0 {
		return r.dicts, nil
	}
	var out []*message
	kept := r.limits.Memory() // several places may be the same
	first := map[int64]fault.Span{}
	for i, b := range r.foot.Dictionaries {
		path := fmt.Sprintf("dictionaries[%d]", i)
		m, err := r.message(ctx, b, flat.Dictionary, path)
		if err == nil {
			if one, again := first[m.ID]; again && !m.Delta {
				return nil, fault.Corruptf(m.at, path, "replaces dictionary %d, at %d, and nothing says which of the "+
					"two a batch means: in a file a dictionary may only grow", m.ID, one.Off)
			}
			first[m.ID] = m.at
			err = r.keep(ctx, m, kept)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	r.dicts = out
	return out, nil
}

// Chunk does not exist here: the reader is a format.Batcher.
func (r *reader) Chunk(context.Context, format.RowGroup, int, vec.Range) (format.Chunk, error) {
	return nil, fault.Unsupportedf(fault.Span{Object: r.name}, "", "Arrow batches are read whole, not by column chunk")
}

func (r *reader) Batches(ctx context.Context, g format.RowGroup, q format.Query, rows vec.Range,
	mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	if mem == nil {
		mem = memory.NewGoAllocator()
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		if rows == (vec.Range{}) {
			rows.To = math.MaxInt64
		}
		out := &output{cols: q.Cols, schema: projected(r.schema, q.Cols), rows: rows, yield: yield}
		var err error
		if r.file {
			if err = r.fileBatch(ctx, g, out, mem); errors.Is(err, fault.Corrupt) && g.Rows > 0 {
				err = &lostBatch{err, rows.Intersect(vec.Range{To: g.Rows})}
			}
		} else {
			err = r.streamBatches(ctx, out, mem)
		}
		if err != nil && err != errStop {
			yield(nil, err)
		}
	}
}

// lostBatch is damage of a record batch of a file. Of several columns some may be whole, as bytes are looked at
// only of those that are wanted.
type lostBatch struct {
	error
	rows vec.Range
}

func (e *lostBatch) Unwrap() error { return e.error }

// LostRows is the batch's rows that were wanted.
func (e *lostBatch) LostRows() (from, to int64) { return e.rows.From, e.rows.To }

// projected is the schema with only the fields cols.
func projected(sc *arrow.Schema, cols []int) *arrow.Schema {
	fields := make([]arrow.Field, len(cols))
	for k, c := range cols {
		fields[k] = sc.Field(c)
	}
	meta := sc.Metadata()
	return arrow.NewSchema(fields, &meta)
}

// errStop ends the reading without an error: the loop was left, or no more rows are wanted.
var errStop = errors.New("stop")

// output cuts batches to the wanted rows and columns and gives them away.
type output struct {
	cols   []int
	schema *arrow.Schema
	rows   vec.Range
	at     int64 // rows that went by
	yield  func(arrow.RecordBatch, error) bool
}

func (o *output) give(b arrow.RecordBatch) error {
	n := b.NumRows()
	want := vec.Range{From: o.rows.From - o.at, To: o.rows.To - o.at}.Intersect(vec.Range{From: 0, To: n})
	o.at += n
	for ; want.Len() > 0; want.From += maxRows {
		to := min(want.To, want.From+maxRows)
		cols := make([]arrow.Array, len(o.cols))
		for k, c := range o.cols {
			cols[k] = array.NewSlice(b.Column(c), want.From, to)
		}
		part := array.NewRecordBatch(o.schema, cols, to-want.From)
		for _, c := range cols {
			c.Release()
		}
		ok := o.yield(part, nil)
		part.Release()
		if !ok {
			return errStop
		}
	}
	if o.at >= o.rows.To {
		return errStop
	}
	return nil
}

// fileBatch reads one record batch of a file.
func (r *reader) fileBatch(ctx context.Context, g format.RowGroup, out *output, mem memory.Allocator) error {
	if g.Index < 0 || g.Index >= len(r.foot.Batches) {
		return fault.Bugf("row group %d of %d", g.Index, len(r.foot.Batches))
	}
	dicts, err := r.dictionaries(ctx)
	if err != nil {
		return err
	}
	m, err := r.block(ctx, g.Index)
	if err != nil {
		return err
	}
	if err := r.moved(ctx, r.foot.Batches[g.Index]); err != nil {
		return err
	}
	if err := r.load(ctx, m, mem); err != nil {
		return err
	}
	defer m.body.Release()
	d, err := newDecoder(&feed{queue: slices.Concat([]*message{r.first}, dicts, []*message{m}), more: eof,
		check: r.enough}, mem)
	if err != nil {
		return err
	}
	defer d.release()
	b, err := d.next(out.cols)
	if err != nil {
		return err
	}
	if b == nil {
		return fault.Corruptf(m.at, "message", "the batch has no rows that the dictionaries (%d) let be read",
			len(dicts))
	}
	return out.give(b)
}

// streamBatches reads a stream from its start. Behind a batch that is damaged it goes on with the next one, as
// far as that is found.
func (r *reader) streamBatches(ctx context.Context, out *output, mem memory.Allocator) error {
	w := &walk{r: r, ctx: ctx, out: out, mem: mem, at: r.after}
	defer w.release()
	if err := w.ahead(); err != nil {
		return err
	}
	for {
		d, err := newDecoder(&feed{queue: slices.Concat([]*message{r.first}, w.dicts), more: w.next,
			check: r.enough}, mem)
		if err != nil {
			return err
		}
		err = r.drain(d, out)
		d.release()
		if err == nil || err == errStop || !errors.Is(err, fault.Corrupt) || !w.pass(d.feed.err != nil) {
			return err
		}
		if !out.yield(nil, err) {
			return errStop
		}
	}
}

func (r *reader) drain(d *decoder, out *output) error {
	for {
		b, err := d.next(out.cols)
		if err != nil || b == nil {
			return err
		}
		if err := out.give(b); err != nil {
			return err
		}
	}
}

// Meta tells the facts of the file.
func (r *reader) Meta() []format.KeyValue {
	kind := "stream"
	if r.file {
		kind = "file"
	}
	out := []format.KeyValue{{Key: "kind", Value: kind},
		{Key: "metadata version", Value: fmt.Sprintf("V%d", r.first.Version+1)}}
	if r.file {
		out = append(out,
			format.KeyValue{Key: "record batches", Value: strconv.Itoa(len(r.foot.Batches))},
			format.KeyValue{Key: "dictionary batches", Value: strconv.Itoa(len(r.foot.Dictionaries))})
		if len(r.foot.Batches) > 0 {
			if m, err := r.block(context.Background(), 0); err == nil {
				out = append(out, format.KeyValue{Key: "compression", Value: flat.CodecNames[m.Batch.Codec]})
			}
		}
	}
	meta := r.schema.Metadata()
	for i, k := range meta.Keys() {
		out = append(out, format.KeyValue{Key: "schema metadata: " + k, Value: meta.Values()[i]})
	}
	return out
}
