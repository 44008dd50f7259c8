package parquet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
	"stoa/wire"
)

const (
	magic     = "PAR1"
	encrypted = "PARE"

	// maxRows is how many rows a batch has at most.
	maxRows = 64 << 10
	// leastRows is how many it has at least, if there are so many: each batch costs something of its own.
	leastRows = 256
	// leastCell is how many bytes a decoded cell is taken to have at least.
	leastCell = 16

	minBuffer, maxBuffer = 4 << 10, 1 << 20
)

// reader is an open file. Its metadata is read once; every call of Batches has readers of its own.
type reader struct {
	src    store.Source
	target format.Target
	base   int64
	size   int64
	limits format.Limits

	ignoreSchema bool               // ARROW:schema
	untyped      error              // why it was ignored without being asked
	groupRows    int64              // of recovery: 0 not given
	lost         map[chunkKey]error // of a recovered file: chunks that are not there
	tracer       func(region.Node)
	noVerify     bool
	summaries    bool // a file of which all data are in other files is taken, too: see verifier.summary

	footer   fault.Span // of the Thrift
	meta     *metadata.FileMetaData
	schema   *arrow.Schema
	leaves   [][]int // per top-level field, the Parquet columns
	flats    []leafField
	manifest []pqarrow.SchemaField // the library's view of the same fields
	offsets  offsets
}

func open(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader, error) {
	return openReader(ctx, t, o)
}

var readKeys = []format.OptionKey{
	{Name: "arrow-schema", Values: "use|ignore", Help: "whether the types are those of the Arrow schema that the file may carry (default), or Parquet's own"},
	{Name: "schema", Values: "FILE", Help: "recover: the columns of a file whose footer is lost are those of this whole Parquet file, by the same writer"},
	{Name: "row-group-rows", Values: "N", Help: "recover: the row groups of a file whose footer is lost have N rows (the last may have fewer), where its pages do not tell"},
}

func openReader(ctx context.Context, t format.Target, o format.OpenOptions) (*reader, error) {
	r, err := newReader(ctx, t, o)
	if err != nil {
		return nil, err
	}
	if err := r.start(ctx); err != nil {
		r.src.Close()
		return nil, err
	}
	return r, nil
}

// newReader is a reader that has not read anything.
func newReader(ctx context.Context, t format.Target, o format.OpenOptions) (*reader, error) {
	if err := checkOpts(o.Opts, readKeys); err != nil {
		return nil, err
	}
	use := o.Opts["arrow-schema"]
	if use != "" && use != "use" && use != "ignore" {
		return nil, fault.Invalidf("arrow-schema=%s: it is use or ignore", use)
	}
	rows := int64(0)
	if v := o.Opts["row-group-rows"]; v != "" {
		var err error
		if rows, err = strconv.ParseInt(v, 10, 64); err != nil || rows <= 0 {
			return nil, fault.Invalidf("row-group-rows=%s: it is a number of rows", v)
		}
	}
	src, base, size, err := t.Open(ctx)
	if err != nil {
		return nil, err
	}
	return &reader{src: src, target: t, base: base, size: size, limits: o.Limits.WithDefaults(), ignoreSchema: use == "ignore", groupRows: rows,
		tracer: o.Tracer, noVerify: o.NoVerify}, nil
}

func (r *reader) span(off, n int64) fault.Span {
	return fault.Span{Object: r.target.Name, Off: r.base + off, Len: n}
}

// guard runs f and makes an error of a panic of the library's.
func guard(at fault.Span, path string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.Corruptf(at, path, "%v", p)
		}
	}()
	return f()
}

// blame gives an error of the library its place; errors that have one, and those of reading, stay as they are.
func (r *reader) blame(err error, at fault.Span, path string) error {
	var own *fault.Error
	var io *readError
	switch {
	case err == nil, errors.As(err, &own), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &io):
		return io.err
	}
	if farInstant(err) {
		return &fault.Error{Class: fault.Unsupported, At: at, Path: path, Reason: "the file may be sound, but its INT96 is read as nanoseconds, of the years 1677 to 2262", Cause: err}
	}
	class := fault.Corrupt
	// Of a page that is larger than Limits allow there is no value to compare with. One that is larger than its chunk is damage.
	if strings.HasSuffix(err.Error(), fmt.Sprintf("exceeds configured limit %d", r.limits.Page)) {
		class = fault.Limit
	}
	return &fault.Error{Class: class, At: at, Path: path, Cause: err}
}

// farInstant reports whether the library refused an INT96 that nanoseconds of 64 bits have no number for, as Spark's of the year 9999. Only its words tell it
// from one that cannot be.
func farInstant(err error) bool {
	return err != nil && strings.Contains(err.Error(), "INT96 timestamp is outside the Arrow nanosecond range")
}

func (r *reader) start(ctx context.Context) error {
	b, err := r.readFooter(ctx)
	if err != nil {
		return err
	}
	return r.take(ctx, b, nil)
}

// take understands a footer. pairs, which may be nil, are taken for its key/value metadata if it has none.
func (r *reader) take(ctx context.Context, b []byte, pairs metadata.KeyValueMetadata) error {
	if err := r.narrow(b); err != nil {
		return err
	}
	c := wire.NewCursor(b, r.footer, "footer").Trace(r.tracer, 1)
	if walk(thrift.NewReader(c, thrift.Compact), "metadata", fileMetaData); c.Err() != nil {
		return c.Err()
	}
	r.offsets.forget()
	err := guard(r.footer, "footer", func() (err error) {
		if r.meta, err = metadata.NewFileMetaData(b, nil); err != nil {
			return err
		}
		if pairs != nil {
			r.meta.FileMetaData.KeyValueMetadata = pairs
		}
		r.meta.SetSourceFileSize(r.size)
		if r.meta.IsSetEncryptionAlgorithm() {
			return fault.Unsupportedf(r.footer, "footer.encryption_algorithm", "the columns are encrypted")
		}
		if err := r.check(); err != nil {
			return err
		}
		return r.buildSchema(ctx)
	})
	return r.blame(err, r.footer, "footer")
}

// narrow is a Limit error for a footer with more columns and groups than a file may have, of whose number the library takes the square.
func (r *reader) narrow(b []byte) error {
	t := thrift.NewReader(wire.NewCursor(b, r.footer, "footer"), thrift.Compact)
	for t.Struct(""); t.Next(); {
		if t.Field() != 2 {
			continue
		}
		for i := range t.List("schema", thrift.Struct) {
			if int64(i) >= r.limits.Fields {
				return fault.Limitf(r.footer, "footer/metadata.schema", "more than %d columns and groups (--max-fields)", r.limits.Fields)
			}
			walk(t, "", schemaElement)
		}
	}
	return nil
}

// readFooter finds and reads the Thrift of the footer.
func (r *reader) readFooter(ctx context.Context) ([]byte, error) {
	if r.size < 12 {
		return nil, fault.Corruptf(r.span(0, r.size), "footer", "the file is too short")
	}
	var tail [8]byte
	at := r.span(r.size-8, 8)
	if err := format.ReadFull(ctx, r.src, at, "footer", tail[:]); err != nil {
		return nil, err
	}
	switch string(tail[4:]) {
	case magic:
	case encrypted:
		return nil, fault.Unsupportedf(at.Sub(4, 4), "footer.magic", "an encrypted footer (PARE)")
	default:
		return nil, fault.Corruptf(at.Sub(4, 4), "footer.magic", "%q instead of %q: the file is cut or was never finished", tail[4:], magic)
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	switch {
	case n == 0 || n > r.size-12:
		return nil, fault.Corruptf(at.Sub(0, 4), "footer.length", "%d bytes in a file of %d", n, r.size)
	case n > r.limits.Metadata:
		return nil, fault.Limitf(at.Sub(0, 4), "footer.length", "%d bytes, the limit is %d", n, r.limits.Metadata)
	}
	r.footer = r.span(r.size-8-n, n)
	b := make([]byte, n)
	return b, format.ReadFull(ctx, r.src, r.footer, "footer", b)
}

// check looks at what the library would believe.
func (r *reader) check() error {
	columns := r.meta.Schema.NumColumns()
	for k := range columns {
		c := r.meta.Schema.Column(k)
		if n := int64(c.TypeLength()); c.PhysicalType() == parquet.Types.FixedLenByteArray && (n <= 0 || n > r.limits.Page) {
			return fault.Corruptf(r.footer, "schema."+c.Path(), "a fixed length of %d bytes", n)
		}
	}
	r.summaries = r.summaries && r.isSummary()
	for i, g := range r.meta.RowGroups {
		path := fmt.Sprintf("row_groups[%d]", i)
		if g == nil || len(g.Columns) != columns || g.NumRows < 0 {
			return fault.Corruptf(r.footer, path, "does not have the %d columns of the schema, or a negative number of rows", columns)
		}
		for k := range columns {
			if err := r.checkChunk(i, k, fmt.Sprintf("%s.columns[%d]", path, k)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reader) checkChunk(group, column int, path string) error {
	c := r.meta.RowGroups[group].Columns[column]
	if c == nil || c.MetaData == nil {
		return fault.Corruptf(r.footer, path, "has no metadata")
	}
	if c.GetFilePath() != "" && !r.summaries {
		return fault.Unsupportedf(r.footer, path+".file_path", "the data are in another file, %q", *c.FilePath)
	}
	if c.CryptoMetadata != nil {
		return fault.Unsupportedf(r.footer, path+".crypto_metadata", "the column is encrypted")
	}
	m := c.MetaData
	if parquet.Type(m.Type) != r.meta.Schema.Column(column).PhysicalType() {
		return fault.Corruptf(r.footer, path+".type", "%s, but the schema says %s", parquet.Type(m.Type), r.meta.Schema.Column(column).PhysicalType())
	}
	if m.NumValues < 0 || m.TotalUncompressedSize < 0 {
		return fault.Corruptf(r.footer, path, "negative sizes")
	}
	from := r.chunkStart(group, column)
	if r.summaries && from >= 0 && m.TotalCompressedSize >= 0 && m.TotalCompressedSize <= math.MaxInt64-from {
		return nil
	}
	if from < 0 || m.TotalCompressedSize < 0 || from > r.size || m.TotalCompressedSize > r.size-from {
		return fault.Corruptf(r.footer, path, "%d bytes at %d do not lie in the file (%d)", m.TotalCompressedSize, from, r.size)
	}
	return nil
}

// chunkSpan is where the pages of a column chunk lie.
func (r *reader) chunkSpan(group, column int) fault.Span {
	m := r.meta.RowGroups[group].Columns[column].MetaData
	return r.span(r.chunkStart(group, column), m.TotalCompressedSize)
}

// chunkStart is where the pages of a column chunk begin. One without values may have a dictionary, and no data page: Arrow C++ leaves data_page_offset at 0 then.
func (r *reader) chunkStart(group, column int) int64 {
	m := r.meta.RowGroups[group].Columns[column].MetaData
	d := m.DictionaryPageOffset
	switch {
	case d == nil || *d <= 0:
		return m.DataPageOffset
	case m.DataPageOffset == 0 && m.NumValues == 0:
		return *d
	}
	return min(m.DataPageOffset, *d)
}

func (r *reader) buildSchema(ctx context.Context) error {
	orig, err := r.takeOriginal(r.ignoreSchema)
	if err != nil {
		return err
	}
	lib, err := r.library(ctx, memory.NewGoAllocator(), minBuffer, 0, nil)
	if err != nil {
		return err
	}
	read, err := lib.Schema()
	if err != nil {
		return err
	}
	kv := r.meta.KeyValueMetadata()
	r.schema = present(read, orig, kv.Keys(), kv.Values())
	if len(lib.Manifest.Fields) != r.schema.NumFields() {
		return fmt.Errorf("%d fields in the schema, %d in the manifest", r.schema.NumFields(), len(lib.Manifest.Fields))
	}
	r.manifest, r.leaves, r.flats = lib.Manifest.Fields, nil, nil
	for i := range lib.Manifest.Fields {
		r.leaves = append(r.leaves, leavesOf(&lib.Manifest.Fields[i], nil))
		r.flats = flatLeaves(&lib.Manifest.Fields[i], []int{i}, r.flats)
	}
	return nil
}

func leavesOf(f *pqarrow.SchemaField, to []int) []int {
	if f.IsLeaf() {
		return append(to, f.ColIndex)
	}
	for i := range f.Children {
		to = leavesOf(&f.Children[i], to)
	}
	return to
}

// library makes readers of the library's that read with ctx, so many bytes at once; pages have raw bytes at most. other, which may be nil, is the file that they see instead.
func (r *reader) library(ctx context.Context, mem memory.Allocator, buffer, raw int64, other *recoded) (*pqarrow.FileReader, error) {
	props := parquet.NewReaderProperties(mem)
	props.BufferedStreamEnabled = true
	props.BufferSize = buffer
	props.MaxCompressedPageSize, props.MaxUncompressedPageSize = r.limits.Page, min(r.limits.Page, max(raw, 1))
	at, meta := &sourceAt{ctx: ctx, r: r}, r.meta
	if other != nil {
		at.more, meta = other.more, other.meta
	}
	in := io.NewSectionReader(at, 0, r.size+int64(len(at.more)))
	pf, err := file.NewParquetReader(in, file.WithMetadata(meta), file.WithReadProps(props))
	if err != nil {
		return nil, err
	}
	return pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: maxRows}, mem)
}

// sourceAt reads from the store, and marks errors of reading so that they are not taken for damage.
type sourceAt struct {
	ctx  context.Context
	r    *reader
	more []byte // behind the file
}

type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

func (s *sourceAt) ReadAt(p []byte, off int64) (int, error) {
	if behind := off - s.r.size; behind >= 0 && s.more != nil {
		n := copy(p, s.more[min(behind, int64(len(s.more))):])
		if n < len(p) {
			return n, io.EOF
		}
		return n, nil
	}
	n, err := store.Past(s.r.src).ReadAt(s.ctx, p, s.r.base+off)
	if err != nil && err != io.EOF {
		err = &readError{err}
	}
	return n, err
}

func (r *reader) Schema() *arrow.Schema { return r.schema }
func (r *reader) Order() []format.Key   { return nil }
func (r *reader) Close() error          { return r.src.Close() }

// Columns are the top-level fields; the library assembles what is nested.
func (r *reader) Columns() []format.Column {
	out := make([]format.Column, r.schema.NumFields())
	for i, f := range r.schema.Fields() {
		out[i] = format.Column{Name: f.Name, Path: []int{i}, Parent: -1, Has: format.Values, Type: f.Type, Facts: r.facts(i)}
	}
	return out
}

// facts are those of the first row group and leaf.
func (r *reader) facts(field int) (f format.ColumnFacts) {
	if len(r.meta.RowGroups) == 0 || len(r.leaves[field]) == 0 {
		return f
	}
	m := r.meta.RowGroups[0].Columns[r.leaves[field][0]].MetaData
	for k, e := range m.Encodings {
		if k > 0 {
			f.Encoding += ","
		}
		f.Encoding += e.String()
	}
	f.Codec = m.Codec.String()
	return f
}

func (r *reader) Parts(ctx context.Context, q format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		p := format.Part{Ref: r.target.Name, Rows: r.meta.GetNumRows()}
		if info, err := r.target.Tree.Stat(ctx, r.target.Name); err == nil {
			p.Stamp = info.Stamp
		}
		for i := range r.meta.RowGroups {
			p.Bytes += r.bytes(i, q.Cols)
		}
		yield(p, nil)
	}
}

// bytes is the stored size of fields in a row group.
func (r *reader) bytes(group int, fields []int) (n int64) {
	for _, f := range fields {
		for _, c := range r.leaves[f] {
			n += r.meta.RowGroups[group].Columns[c].MetaData.TotalCompressedSize
		}
	}
	return n
}

func (r *reader) RowGroups(_ context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	out := make([]format.RowGroup, len(r.meta.RowGroups))
	for i, g := range r.meta.RowGroups {
		out[i] = format.RowGroup{Part: p.Ref, Index: i, Rows: g.NumRows, Bytes: r.bytes(i, q.Cols), Bounds: r.bounds(i, q.Cols)}
	}
	return out, nil
}

// Chunk does not exist here: the reader is a format.Batcher.
func (r *reader) Chunk(context.Context, format.RowGroup, int, vec.Range) (format.Chunk, error) {
	return nil, fault.Unsupportedf(fault.Span{Object: r.target.Name}, "", "Parquet is decoded by its library, not page by page")
}

// columns reads some fields of one row group side by side.
type columns struct {
	r      *reader
	group  int
	parts  []fieldPart
	schema *arrow.Schema
	units  [][]unit // per part
	crcs   []*crcWalk
	buf    []byte
	other  *recoded // nil: the library reads the file as it is
	wide   bool     // see feed.tooWide
}

func (c *columns) path(p *fieldPart) string {
	return fmt.Sprintf("row_groups[%d].%s", c.group, p.field.Name)
}

// span covers the chunks of a field.
func (c *columns) span(p *fieldPart) fault.Span {
	var at fault.Span
	for k, leaf := range p.leaves {
		s := c.r.chunkSpan(c.group, leaf)
		if k == 0 {
			at = s
			continue
		}
		end := max(at.End(), s.End())
		at.Off = min(at.Off, s.Off)
		at.Len = end - at.Off
	}
	return at
}

// open begins to read rows; no more than these will be asked for.
func (c *columns) open(ctx context.Context, rows vec.Range, mem memory.Allocator) error {
	from := rows.From
	meta := c.r.schema.Metadata()
	fields := make([]arrow.Field, len(c.parts))
	for k, p := range c.parts {
		fields[k] = p.field
	}
	c.schema = arrow.NewSchema(fields, &meta)
	if len(c.parts) == 0 {
		return nil
	}
	for k := range c.parts {
		u, err := c.unitsOf(ctx, &c.parts[k], from)
		if err != nil {
			return err
		}
		c.units = append(c.units, u)
		for _, u := range u {
			for _, leaf := range u.leaves {
				if u.row == 0 { // the library does not ask the index
					break
				}
				if err := c.holdRows(ctx, leaf, u.row); err != nil {
					return err
				}
			}
		}
	}
	if err := c.startChecks(ctx, from); err != nil {
		return err
	}
	err := guard(c.r.footer, "", func() error { return c.recode(ctx, rows) })
	if err != nil {
		return c.r.blame(err, c.r.footer, "")
	}
	var lib *pqarrow.FileReader
	err = guard(c.r.footer, "footer", func() (err error) {
		lib, err = c.r.library(ctx, mem, c.buffer(ctx, rows), c.mostRaw(), c.other)
		return err
	})
	if err != nil {
		return c.r.blame(err, c.r.footer, "footer")
	}
	// Else the library looks through the index locations of all columns for each of them. What is wrong with these it tells then.
	err = guard(c.r.footer, "footer", func() error {
		return lib.ParquetReader().GetPageIndexReader().WillNeed([]int32{int32(c.group)}, nil, metadata.PageIndexSelection{ColumnIndex: true, OffsetIndex: true})
	})
	var unread *readError
	if errors.As(err, &unread) {
		return unread.err
	}
	for k := range c.parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := &c.parts[k]
		err := guard(c.span(p), c.path(p), func() error { return c.openField(ctx, lib, k, from) })
		if err != nil {
			return c.r.blame(err, c.span(p), c.path(p))
		}
	}
	return nil
}

// buffer is how much of a column chunk is read at once: not more than what has rows, as far as that is known.
func (c *columns) buffer(ctx context.Context, rows vec.Range) int64 {
	n := int64(minBuffer)
	for _, p := range c.parts {
		for _, leaf := range p.leaves {
			size := c.r.chunkSpan(c.group, leaf).Len
			if x, err := c.r.offsetIndex(ctx, c.group, leaf); err == nil && x != nil && len(x.firstRow) > 0 && rows.Len() > 0 {
				first, last := x.page(rows.From), x.page(rows.To-1)
				size = x.offsets[last] + int64(x.sizes[last]) - x.offsets[first]
			}
			n = max(n, size)
		}
	}
	return min(n, maxBuffer)
}

// mostRaw is how long a page of the columns can be at most when decompressed, by the bytes that are there. The library takes memory by what
// the header of a page says.
func (c *columns) mostRaw() (n int64) {
	for _, p := range c.parts {
		for _, leaf := range p.leaves {
			m := c.r.meta.RowGroups[c.group].Columns[leaf].MetaData
			n = max(n, mostRaw(compress.Compression(m.Codec), m.TotalCompressedSize))
		}
	}
	if c.other != nil {
		n = max(n, int64(len(c.other.more)))
	}
	return n
}

func (c *columns) openField(ctx context.Context, lib *pqarrow.FileReader, k int, from int64) error {
	p := &c.parts[k]
	for _, leaf := range p.leaves {
		if err := c.r.lost[chunkKey{c.group, leaf}]; err != nil {
			return err
		}
		if what := c.refused(leaf); what != "" {
			return fault.Unsupportedf(c.r.chunkSpan(c.group, leaf), c.path(p), "%s", what)
		}
		if err := c.tryLeaf(ctx, lib, leaf, from); err != nil {
			return err
		}
	}
	for i := range c.units[k] {
		if err := c.openUnit(ctx, lib, p, &c.units[k][i], from); err != nil {
			return err
		}
	}
	return nil
}

func (c *columns) openUnit(ctx context.Context, lib *pqarrow.FileReader, p *fieldPart, u *unit, from int64) (err error) {
	leaves := map[int]bool{}
	for _, leaf := range u.leaves {
		leaves[leaf] = true
	}
	if u.col, err = lib.GetFieldReader(ctx, p.index, leaves, []int{c.group}); err != nil {
		return err
	}
	if first, ok := c.recodedFrom(p); ok {
		return drop(ctx, u.col, from-first)
	}
	if u.row > 0 {
		if err := u.col.SeekToRow(u.row); err != nil {
			return err
		}
	}
	return drop(ctx, u.col, from-u.row)
}

// recodedFrom is the row with which a field begins of which a column is given to the library as another chunk.
func (c *columns) recodedFrom(p *fieldPart) (first int64, ok bool) {
	if c.other == nil {
		return 0, false
	}
	for _, leaf := range p.leaves {
		if row, is := c.other.first[leaf]; is {
			first, ok = row, true
		}
	}
	return first, ok
}

// drop reads the first n rows for nothing.
func drop(ctx context.Context, col *pqarrow.ColumnReader, n int64) error {
	for step := int64(firstRows); n > 0; n -= step {
		if err := ctx.Err(); err != nil {
			return err
		}
		step = min(step, n)
		chunk, err := col.NextBatch(step)
		if err != nil {
			return err
		}
		chunk.Release()
	}
	return nil
}

// refused names what there is no decoder for.
func (c *columns) refused(leaf int) string {
	m := c.r.meta.RowGroups[c.group].Columns[leaf].MetaData
	if _, err := compress.GetCodec(compress.Compression(m.Codec)); err != nil {
		return "codec " + named(codecNames, int32(m.Codec))
	}
	for _, e := range m.Encodings {
		if e := int32(e); e < 0 || int(e) >= len(encodings) || encodings[e] == "" {
			return "encoding " + named(encodings, e) + " of " + named(physicalTypes, int32(m.Type))
		}
	}
	return ""
}

// tryLeaf does beforehand, in our goroutine, what the library does for the children of a struct in one of its own,
// where a panic could not be caught.
func (c *columns) tryLeaf(ctx context.Context, lib *pqarrow.FileReader, leaf int, from int64) error {
	if from > 0 {
		if _, err := c.r.offsetIndex(ctx, c.group, leaf); err != nil {
			return err
		}
	}
	pages, err := lib.ParquetReader().RowGroup(c.group).GetColumnPageReader(leaf)
	if err != nil {
		return err
	}
	return pages.Close()
}

// step is how many rows are decoded at once: fewer if values of a fixed length are long, or a batch would have more than batch bytes (0: any).
func (c *columns) step(batch int64) int64 {
	step := int64(maxRows)
	if g := c.r.meta.RowGroups[c.group]; batch > 0 && g.NumRows > 0 {
		row := int64(1)
		for _, p := range c.parts {
			for _, leaf := range p.leaves {
				row += max(leastCell, g.Columns[leaf].MetaData.TotalUncompressedSize/g.NumRows)
			}
		}
		step = min(step, max(leastRows, batch/row))
	}
	for _, p := range c.parts {
		for _, leaf := range p.leaves {
			if n := int64(c.r.meta.Schema.Column(leaf).TypeLength()); n > 0 {
				step = max(1, min(step, (64<<20)/n))
			}
		}
	}
	return step
}

// read gives the next n rows, which begin with row from of the row group.
func (c *columns) read(ctx context.Context, from, n int64, mem memory.Allocator) (arrow.RecordBatch, error) {
	for _, w := range c.crcs {
		if err := w.through(ctx, c.r, from, from+n, &c.buf); err != nil {
			return nil, err
		}
	}
	arrs := make([]arrow.Array, 0, len(c.parts))
	defer func() {
		for _, a := range arrs {
			a.Release()
		}
	}()
	for k := range c.parts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		at, path := c.span(&c.parts[k]), c.path(&c.parts[k])
		err := guard(at, path, func() error {
			a, err := c.readField(k, n, mem)
			if err == nil {
				arrs = append(arrs, a)
			}
			return err
		})
		if err != nil {
			return nil, c.r.blame(err, at, path)
		}
	}
	return array.NewRecordBatch(c.schema, arrs, n), nil
}

func (c *columns) readField(k int, n int64, mem memory.Allocator) (arrow.Array, error) {
	shares := make([]share, len(c.units[k]))
	for i, u := range c.units[k] {
		a, err := u.next(n, mem)
		if err != nil {
			return nil, err
		}
		defer a.Release()
		shares[i] = share{u.leaves, a}
	}
	a, err := joined(&c.r.manifest[c.parts[k].index], shares, mem)
	if err != nil {
		return nil, err
	}
	defer func() { a.Release() }()
	if t := c.parts[k].read; t != nil {
		was := a
		if a, err = pruned(was, t); err != nil {
			a = was
			return nil, err
		}
		was.Release()
	}
	if int64(a.Len()) != n {
		return nil, fmt.Errorf("the pages hold %d of the next %d rows", a.Len(), n)
	}
	if err := array.Validate(a); err != nil {
		return nil, err
	}
	return convert(a, c.schema.Field(k).Type, mem)
}

func (c *columns) release() {
	for _, units := range c.units {
		for _, u := range units {
			if u.col != nil {
				_ = guard(fault.Span{}, "", func() error { u.col.Release(); return nil })
			}
		}
	}
}

// Meta tells the facts of the file.
func (r *reader) Meta() []format.KeyValue {
	out := []format.KeyValue{
		{Key: "created by", Value: r.meta.GetCreatedBy()},
		{Key: "version", Value: r.meta.Version().String()},
		{Key: "rows", Value: strconv.FormatInt(r.meta.GetNumRows(), 10)},
		{Key: "row groups", Value: strconv.Itoa(len(r.meta.RowGroups))},
		{Key: "columns", Value: strconv.Itoa(r.meta.Schema.NumColumns())},
		{Key: "footer", Value: fmt.Sprintf("%d bytes", r.footer.Len)},
	}
	kv := r.meta.KeyValueMetadata()
	values := kv.Values()
	for i, k := range kv.Keys() {
		if k != storedSchema {
			out = append(out, format.KeyValue{Key: "metadata: " + k, Value: values[i]})
		}
	}
	return out
}
