package parquet

import (
	"context"
	"io"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

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
func properties(opts map[string]string, mem memory.Allocator) (*parquet.WriterProperties, error) {
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
	return versions(opts, props)
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
	lib   *pqarrow.FileWriter
	seal  *sealer
	sc    *arrow.Schema
	lower *arrow.Schema // as the library writes it
	mem   memory.Allocator
	rows  int64
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
	seal := &sealer{w: w, sums: sums}
	var lib *pqarrow.FileWriter
	err = guardWrite(func() (err error) {
		lib, err = pqarrow.NewFileWriter(low, struct{ io.Writer }{seal}, props, arrowProps) // must not close w
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Writer{lib: lib, seal: seal, sc: sc, lower: low, mem: mem}, nil
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
	if err := checkBatch(b, w.sc); err != nil {
		return err
	}
	w.rows += b.NumRows()
	return guardWrite(func() error {
		cols := make([]arrow.Array, 0, b.NumCols())
		defer func() {
			for _, c := range cols {
				c.Release()
			}
		}()
		for i, f := range w.lower.Fields() {
			c, err := convert(b.Column(i), f.Type, w.mem)
			if err != nil {
				return err
			}
			cols = append(cols, withBytes(c))
		}
		low := array.NewRecordBatch(w.lower, cols, b.NumRows())
		defer low.Release()
		return w.lib.WriteBuffered(low)
	})
}

// Rows is how many were written.
func (w *Writer) Rows() int64 { return w.rows }

// Flush does nothing: a row group is written when it is full.
func (w *Writer) Flush() error { return nil }

// Close writes the last row group and the footer.
func (w *Writer) Close() error {
	err := guardWrite(w.lib.Close)
	if err == nil {
		err = guardWrite(w.seal.finish)
	}
	return err
}

func create(ctx context.Context, s store.Sink, sc *arrow.Schema, o format.WriteOptions) (format.Writer, error) {
	return format.CreateObject(ctx, s, func(w io.Writer) (format.Encoder, error) { return newWriter(w, sc, o.Opts, o.Mem) })
}

// withBytes gives strings and binary whose values are all empty a buffer that is not nil. Of a nil one the library takes the empty
// values for none: the least value that it writes then is greater than they are, and readers overlook them.
func withBytes(a arrow.Array) arrow.Array {
	d, changed := dataWithBytes(a.Data())
	if !changed {
		return a
	}
	defer a.Release()
	defer d.Release()
	return array.MakeFromData(d)
}

func dataWithBytes(d arrow.ArrayData) (arrow.ArrayData, bool) {
	bufs, kids, changed := d.Buffers(), d.Children(), false
	switch d.DataType().ID() {
	case arrow.STRING, arrow.BINARY, arrow.LARGE_STRING, arrow.LARGE_BINARY:
		if len(bufs) == 3 && bufs[2] != nil && bufs[2].Bytes() == nil {
			bufs, changed = []*memory.Buffer{bufs[0], bufs[1], memory.NewBufferBytes([]byte{})}, true
		}
	case arrow.DICTIONARY:
		return d, false // its values are looked up, or decoded to strings of their own
	}
	var made []arrow.ArrayData
	for i, k := range kids {
		if n, ok := dataWithBytes(k); ok {
			if !changed || made == nil {
				kids, changed = slices.Clone(kids), true
			}
			kids[i] = n
			made = append(made, n)
		}
	}
	if !changed {
		return d, false
	}
	out := array.NewData(d.DataType(), d.Len(), bufs, kids, d.NullN(), d.Offset())
	for _, n := range made {
		n.Release()
	}
	return out, true
}
