package parquet

import (
	"context"
	"io"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
	"stoa/vec"
)

const defaultGroupRows = 1 << 20

var writeKeys = []format.OptionKey{
	{Name: "compression", Values: "snappy|none|zstd|gzip|lz4|brotli", Help: "how pages are compressed (default snappy)"},
	{Name: "level", Values: "N", Help: "level of zstd, gzip and brotli"},
	{Name: "row-group-rows", Values: "N", Help: "rows of a row group (default 1048576)"},
	{Name: "page-size", Values: "BYTES", Help: "size at which a data page is ended (default 1MiB)"},
	{Name: "dictionary", Values: "true|false", Help: "whether dictionaries are tried (default true)"},
	{Name: "version", Values: "1.0|2.4|2.6", Help: "version of the format (default 2.6)"},
	{Name: "page-version", Values: "1|2", Help: "version of data pages (default 1)"},
	{Name: "page-index", Values: "true|false", Help: "whether column and offset indexes are written (default true)"},
	{Name: "crc", Values: "true|false", Help: "whether pages have checksums (default true)"},
}

func checkOpts(opts map[string]string, keys []format.OptionKey) error {
next:
	for k := range opts {
		for _, have := range keys {
			if have.Name == k {
				continue next
			}
		}
		return fault.Invalidf("format parquet has no option %q", k)
	}
	return nil
}

var codecs = map[string]compress.Compression{
	"": compress.Codecs.Snappy, "snappy": compress.Codecs.Snappy, "none": compress.Codecs.Uncompressed,
	"zstd": compress.Codecs.Zstd, "gzip": compress.Codecs.Gzip, "lz4": compress.Codecs.Lz4Raw, "brotli": compress.Codecs.Brotli,
}

// properties turns options into those of the library.
func properties(opts map[string]string, mem memory.Allocator, more ...parquet.WriterProperty) (*parquet.WriterProperties, error) {
	if err := checkOpts(opts, writeKeys); err != nil {
		return nil, err
	}
	codec, ok := codecs[opts["compression"]]
	if !ok {
		return nil, fault.Invalidf("compression=%s: it is snappy, none, zstd, gzip, lz4 or brotli", opts["compression"])
	}
	rows, err := number(opts, "row-group-rows", defaultGroupRows)
	if err != nil {
		return nil, err
	}
	page, err := size(opts, "page-size", 1<<20)
	if err != nil {
		return nil, err
	}
	dict, err := boolean(opts, "dictionary", true)
	if err != nil {
		return nil, err
	}
	index, err := boolean(opts, "page-index", true)
	if err != nil {
		return nil, err
	}
	if codec == compress.Codecs.Brotli && opts["page-version"] == "2" {
		// The library compresses the no bytes of a page of nulls to one, and cannot decompress that again.
		return nil, fault.New(fault.Unsupported, fault.Span{}, "", "compression=brotli with page-version=2: pages of nulls could not be read again")
	}
	props := []parquet.WriterProperty{
		parquet.WithCompression(codec), parquet.WithMaxRowGroupLength(rows), parquet.WithDataPageSize(page),
		parquet.WithDictionaryDefault(dict), parquet.WithPageIndexEnabled(index), parquet.WithCreatedBy("stoa (arrow-go " + arrow.PkgVersion + ")"),
	}
	if mem != nil {
		props = append(props, parquet.WithAllocator(vec.Zeroed{Allocator: mem}))
	}
	return versions(opts, append(props, more...))
}

func versions(opts map[string]string, props []parquet.WriterProperty) (*parquet.WriterProperties, error) {
	switch v := opts["version"]; v {
	case "1.0":
		props = append(props, parquet.WithVersion(parquet.V1_0))
	case "2.4":
		props = append(props, parquet.WithVersion(parquet.V2_4))
	case "", "2.6":
		props = append(props, parquet.WithVersion(parquet.V2_6))
	default:
		return nil, fault.Invalidf("version=%s: it is 1.0, 2.4 or 2.6", v)
	}
	switch v := opts["page-version"]; v {
	case "", "1":
		props = append(props, parquet.WithDataPageVersion(parquet.DataPageV1))
	case "2":
		props = append(props, parquet.WithDataPageVersion(parquet.DataPageV2))
	default:
		return nil, fault.Invalidf("page-version=%s: it is 1 or 2", v)
	}
	if v := opts["level"]; v != "" {
		level, err := strconv.Atoi(v)
		if err != nil {
			return nil, fault.Invalidf("level=%s is not a number", v)
		}
		props = append(props, parquet.WithCompressionLevel(level))
	}
	return parquet.NewWriterProperties(props...), nil
}

func number(opts map[string]string, key string, def int64) (int64, error) {
	v := opts[key]
	if v == "" {
		return def, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n <= 0 {
		return 0, fault.Invalidf("%s=%s is not a positive number", key, v)
	}
	return n, nil
}

// size is a number of bytes, perhaps with a unit.
func size(opts map[string]string, key string, def int64) (int64, error) {
	v := opts[key]
	if v == "" {
		return def, nil
	}
	n, ok := format.ParseSize(v)
	if !ok || n == 0 || n > 1<<30 {
		return 0, fault.Invalidf("%s=%s is not a number of bytes up to 1073741824, as 65536 or 64KiB", key, v)
	}
	return n, nil
}

func boolean(opts map[string]string, key string, def bool) (bool, error) {
	switch v := opts[key]; v {
	case "":
		return def, nil
	case "true", "false":
		return v == "true", nil
	default:
		return false, fault.Invalidf("%s=%s: it is true or false", key, v)
	}
}

// Writer writes record batches as a Parquet file.
type Writer struct {
	lib    *file.Writer
	group  file.BufferedRowGroupWriter // that is being filled
	filled int64                       // rows in it
	most   int64                       // rows of a row group
	seal   *sealer
	sc     *arrow.Schema
	cols   []*leafWriter
	first  []int // number of the first leaf of each field
	mem    memory.Allocator
	rows   int64
	failed error
}

// NewWriter writes a file of batches of sc to w, with the options of Format.WriteKeys (nil: the defaults).
// Close writes the footer; it does not close w.
func NewWriter(w io.Writer, sc *arrow.Schema, opts map[string]string) (*Writer, error) {
	return newWriter(w, sc, opts, nil)
}

func newWriter(w io.Writer, sc *arrow.Schema, opts map[string]string, mem memory.Allocator) (*Writer, error) {
	props, err := properties(opts, mem)
	if err != nil {
		return nil, err
	}
	if mem == nil {
		mem = memory.NewGoAllocator()
	}
	arrowProps := pqarrow.NewArrowWriterProperties(pqarrow.WithAllocator(mem))
	if err := refuse(sc, props, arrowProps); err != nil {
		return nil, err
	}
	low, err := lower(sc)
	if err != nil {
		return nil, err
	}
	sums, err := boolean(opts, "crc", true)
	if err != nil {
		return nil, err
	}
	out := &Writer{seal: &sealer{w: w, sums: sums}, sc: sc, mem: mem, most: props.MaxRowGroupLength()}
	err = guardWrite(func() error {
		pq, err := pqarrow.ToParquet(low, props, arrowProps)
		if err != nil {
			return err
		}
		if err := out.plan(pq); err != nil {
			return err
		}
		if props, err = properties(opts, mem, plainFloats(pq)...); err != nil {
			return err
		}
		meta := make(metadata.KeyValueMetadata, 0)
		for i, k := range low.Metadata().Keys() {
			if err := meta.Append(k, low.Metadata().Values()[i]); err != nil {
				return err
			}
		}
		out.lib, err = file.NewParquetWriterWithError(struct{ io.Writer }{out.seal}, pq.Root(), file.WithWriterProps(props), file.WithWriteMetadata(meta)) // must not close w
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// plainFloats has floats written without dictionaries: the library's take all NaN for one.
func plainFloats(pq *schema.Schema) (out []parquet.WriterProperty) {
	for i := range pq.NumColumns() {
		if t := pq.Column(i).PhysicalType(); t == parquet.Types.Float || t == parquet.Types.Double {
			out = append(out, parquet.WithDictionaryPath(pq.Column(i).ColumnPath(), false))
		}
	}
	return out
}

// guardWrite makes an error of a panic of the library's.
func guardWrite(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.Bugf("the Parquet library: %v", p)
		}
	}()
	return f()
}

// refuse names the column that Parquet cannot hold.
func refuse(sc *arrow.Schema, props *parquet.WriterProperties, arrowProps pqarrow.ArrowWriterProperties) error {
	for _, f := range sc.Fields() {
		if props.Version() != parquet.V2_LATEST && hasNanoseconds(f.Type) {
			return fault.New(fault.Unsupported, fault.Span{}, "", "column %q of type %s cannot be written as Parquet %s, which has no nanoseconds", f.Name, f.Type, props.Version())
		}
		err := guardWrite(func() error {
			low := f
			low.Type = storedType(f.Type)
			_, err := pqarrow.ToParquet(arrow.NewSchema([]arrow.Field{low}, nil), props, arrowProps)
			return err
		})
		if err != nil {
			return fault.New(fault.Unsupported, fault.Span{}, "", "column %q of type %s cannot be written as Parquet: %v", f.Name, f.Type, err)
		}
	}
	return nil
}

// hasNanoseconds reports whether t is, or has inside, an instant in nanoseconds: the library would cut it to microseconds
// for versions before 2.6.
func hasNanoseconds(t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.TimestampType:
		return t.Unit == arrow.Nanosecond
	case *arrow.DictionaryType:
		return hasNanoseconds(t.ValueType)
	case arrow.NestedType:
		return slices.ContainsFunc(t.Fields(), func(f arrow.Field) bool { return hasNanoseconds(f.Type) })
	}
	return false
}

// Write appends the rows of b; row groups are cut as the options say.
func (w *Writer) Write(b arrow.RecordBatch) error {
	if w.failed != nil {
		return w.failed
	}
	if w.failed = checkBatch(b, w.sc); w.failed == nil {
		w.failed = guardWrite(func() error { return w.batch(b) })
	}
	return w.failed
}

// Rows is how many were written.
func (w *Writer) Rows() int64 { return w.rows }

// Flush does nothing: a row group is written when it is full.
func (w *Writer) Flush() error { return nil }

// Close writes the last row group and the footer.
func (w *Writer) Close() error {
	if w.failed == nil {
		w.failed = guardWrite(w.close)
	}
	return w.failed
}

func (w *Writer) close() error {
	if err := w.endGroup(); err != nil {
		return err
	}
	if err := w.lib.Close(); err != nil {
		return err
	}
	return w.seal.finish()
}

func create(ctx context.Context, s store.Sink, sc *arrow.Schema, o format.WriteOptions) (format.Writer, error) {
	return format.CreateObject(ctx, s, func(w io.Writer) (format.Encoder, error) { return newWriter(w, sc, o.Opts, o.Mem) })
}
