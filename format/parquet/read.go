package parquet

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/order"
	"stoa/format/parquet/internal/page"
	"stoa/internal/present"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// reader is an open file. Its footer is read once.
type reader struct {
	src    store.Source
	target format.Target
	base   int64
	size   int64
	limits format.Limits

	ignoreSchema bool               // ARROW:schema
	untyped      error              // why it was ignored without being asked
	missing      []error            // parts of the table that are not beside the file
	groupRows    int64              // of recovery: 0 not given
	lost         map[chunkKey]error // of a recovered file: chunks that are not there
	tracer       func(region.Node)
	noVerify     bool
	loose        bool            // pages may have bytes after their values: fastparquet leaves some there
	keys         *meta.Keyring   // nil: none are given
	algorithm    *meta.Algorithm // nil: nothing is encrypted
	sealed       *meta.Sealed    // by the footer's key; nil: it is not known
	hidden       bool            // the footer is encrypted
	summaries    bool            // a file of which all data are in other files is taken, too: see verifier.summary

	footer  fault.Span // of the Thrift
	meta    *meta.FileMeta
	schema  *arrow.Schema // as it is given away
	stored  *arrow.Schema // the same with the types as which columns are decoded
	columns []*page.FileColumn
	leaves  [][]int // per top-level field, the columns
	flats   []order.LeafField
	offsets offsets
	tables  tables
}

func open(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader, error) {
	r, err := openAgreed(ctx, t, o)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// openAgreed opens a file that does not contradict itself about its rows, nor, unless it is told not to verify, about
// the names of its columns.
func openAgreed(ctx context.Context, t format.Target, o format.OpenOptions) (*reader, error) {
	r, err := openReader(ctx, t, o)
	if err != nil {
		return nil, err
	}
	if err = r.rowsAgree(); err == nil && !o.NoVerify {
		err = r.namesAgree()
	}
	if err != nil {
		r.src.Close()
		return nil, err
	}
	return r, nil
}

// rowsAgree holds the number of rows of the file against those of its row groups. A _common_metadata has the
// schema, and no row groups by its meaning; what its writer put there as the number of rows is not the file's.
func (r *reader) rowsAgree() error {
	if len(r.meta.RowGroups) == 0 && path.Base(r.target.Name) == "_common_metadata" {
		return nil
	}
	rows := int64(0)
	for _, g := range r.meta.RowGroups {
		rows += g.NumRows
	}
	if rows == r.meta.NumRows {
		return nil
	}
	return fault.Corruptf(r.footer, "footer/metadata.num_rows", "%d, but the row groups have %d", r.meta.NumRows, rows)
}

var readKeys = []format.OptionKey{
	{Name: "arrow-schema", Values: "use|ignore",
		Help: "whether the types are those of the Arrow schema that the file may carry (default), or Parquet's own"},
	{Name: "key-file", Values: "FILE", Help: "the keys of an encrypted file: lines `footer KEY`, `column PATH " +
		"KEY`, `key ID KEY`, `aad-prefix TEXT`; a key in hexadecimal digits, or after base64: or text:"},
	{Name: "schema", Values: "FILE", Help: "recover: the columns of a file whose footer is lost are those of " +
		"this whole Parquet file, by the same writer"},
	{Name: "row-group-rows", Values: "N", Help: "recover: the row groups of a file whose footer is lost have N " +
		"rows (the last may have fewer), where its pages do not tell"},
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
	if err := meta.CheckOpts(o.Opts, readKeys); err != nil {
		return nil, err
	}
	use := o.Opts["arrow-schema"]
	if use != "" && use != "use" && use != "ignore" {
		return nil, fault.Invalidf("arrow-schema=%s: it is use or ignore", use)
	}
	var keys *meta.Keyring
	if name := o.Opts["key-file"]; name != "" {
		var err error
		if keys, err = meta.ReadKeyring(name); err != nil {
			return nil, err
		}
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
	return &reader{src: src, target: t, base: base, size: size, limits: o.Limits.WithDefaults(),
		ignoreSchema: use == "ignore", groupRows: rows,
		keys: keys, tracer: o.Tracer, noVerify: o.NoVerify}, nil
}

func (r *reader) span(off, n int64) fault.Span {
	return fault.Span{Object: r.target.Name, Off: r.base + off, Len: n}
}

func (r *reader) start(ctx context.Context) error {
	b, err := r.readFooter(ctx)
	if err != nil {
		return err
	}
	if why := meta.BrokenSeal(b); why != "" {
		return fault.Corruptf(r.footer, "footer", "%s", why)
	}
	if err := r.take(b, nil); err != nil {
		return err
	}
	r.missing = r.neighbours(ctx)
	return nil
}

// take understands a footer. pairs, which may be nil, are taken for its key/value metadata if it has none.
func (r *reader) take(b []byte, pairs []meta.KeyPair) error {
	c := wire.NewCursor(b, r.footer, "footer").Trace(r.tracer, 1)
	if r.hidden { // what stands where is not known
		c = wire.NewInnerCursor(b, r.footer, "footer").Trace(r.tracer, 1)
	}
	c.Within(r.limits.Memory()).Spend(int64(len(b)))
	m := meta.ParseFileMeta(thrift.NewReader(c, thrift.Compact), c, r.limits)
	if c.Err() != nil {
		return c.Err()
	}
	tree, err := meta.ReadTree(m.Elements, r.footer)
	if err != nil {
		return err
	}
	if err := r.affords(c, tree); err != nil {
		return err
	}
	m.Length = c.Pos()
	if m.Schema = tree; pairs != nil {
		m.Pairs = pairs
	}
	r.meta, r.loose = m, strings.HasPrefix(m.CreatedBy, "fastparquet")
	r.offsets.forget()
	r.tables.forget()
	if err := r.unlock(b); err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	return r.buildSchema()
}

// affords refuses a schema that is nested deeper, or whose columns take more memory, than the limits allow, before
// the columns are made.
func (r *reader) affords(c *wire.Cursor, t *meta.SchemaTree) error {
	// Memory that a column, and a step of its way through the schema, is taken to need.
	const perColumn, perStep = 1 << 10, 64
	for _, d := range t.Columns {
		c.Spend(perColumn + perStep*int64(len(d.Steps)))
	}
	if c.Err() != nil {
		return c.Err()
	}
	fields, _ := page.FieldsOf(t)
	return r.limits.Fit(arrow.NewSchema(fields, nil), r.footer, "footer/metadata.schema")
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
	case meta.Magic:
	case meta.Encrypted:
	default:
		return nil, fault.Corruptf(at.Sub(4, 4), "footer.magic",
			"%q instead of %q: the file is cut or was never finished", tail[4:], meta.Magic)
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	switch {
	case n == 0 || n > r.size-12:
		return nil, fault.Corruptf(at.Sub(0, 4), "footer.length", "%d bytes in a file of %d", n, r.size)
	case n > r.limits.Metadata:
		return nil, fault.Limitf(at.Sub(0, 4), "footer.length", "%d bytes, and at most %d are read (--max-metadata)", n,
			r.limits.Metadata)
	}
	r.footer = r.span(r.size-8-n, n)
	b := make([]byte, n)
	if err := format.ReadFull(ctx, r.src, r.footer, "footer", b); err != nil || string(tail[4:]) == meta.Magic {
		return b, err
	}
	return r.openFooter(b)
}

// magic is what the file begins and ends with.
func (r *reader) magic() string {
	if r.hidden {
		return meta.Encrypted
	}
	return meta.Magic
}

// check looks at what reading goes by.
func (r *reader) check() error {
	columns := r.meta.Schema.NumColumns()
	for k := range columns {
		c := r.meta.Schema.Column(k)
		if n := int64(c.Length); c.Typ == meta.TypeFixed && (n <= 0 || n > r.limits.Page) {
			return fault.Corruptf(r.footer, "schema."+c.Path(), "a fixed length of %d bytes", n)
		}
	}
	if r.meta.NumRows < 0 {
		return fault.Corruptf(r.footer, "footer/metadata.num_rows", "it is missing or negative")
	}
	r.summaries = r.summaries && r.isSummary()
	for i, g := range r.meta.RowGroups {
		path := fmt.Sprintf("row_groups[%d]", i)
		if len(g.Columns) != columns || g.NumRows < 0 {
			return fault.Corruptf(r.footer, path,
				"does not have the %d columns of the schema, or a negative number of rows", columns)
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
	c, d := r.meta.RowGroups[group].Columns[column], r.meta.Schema.Column(column)
	if c.Encrypted { // what is said of it, if anything, may be cut
		if m := c.MetaData; m != nil && m.TotalCompressedSize > 0 {
			c.Veiled = r.chunkSpan(group, column)
		}
		c.MetaData = &meta.ColumnMeta{Type: d.Typ, PathInSchema: d.Steps, Codec: meta.CodecNone}
		return nil
	}
	if c.MetaData == nil {
		return fault.Corruptf(r.footer, path, "has no metadata")
	}
	if c.FilePath != "" && !r.summaries {
		return fault.Unsupportedf(r.footer, path+".file_path", "the data are in another file, %q", c.FilePath)
	}
	m := c.MetaData
	if name := m.Missing(); name != "" {
		return fault.Corruptf(r.footer, path+"."+name, "it is missing or negative")
	}
	if m.Type != d.Typ {
		return fault.Corruptf(r.footer, path+".type", "%s, but the schema says %s", m.Type, d.Typ)
	}
	from := r.chunkStart(group, column)
	if r.summaries && m.TotalCompressedSize <= math.MaxInt64-from {
		return nil
	}
	if from > r.size || m.TotalCompressedSize > r.size-from {
		return fault.Corruptf(r.footer, path, "%d bytes at %d do not lie in the file (%d)", m.TotalCompressedSize,
			from, r.size)
	}
	return nil
}

// chunkSpan is where the pages of a column chunk lie.
func (r *reader) chunkSpan(group, column int) fault.Span {
	m := r.meta.RowGroups[group].Columns[column].MetaData
	return r.span(r.chunkStart(group, column), m.TotalCompressedSize)
}

// chunkStart is where the pages of a column chunk begin. One without values may have a dictionary, and no data
// page: Arrow C++ leaves data_page_offset at 0 then.
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

// buildSchema works out the fields, and what each column is of them.
func (r *reader) buildSchema() error {
	orig, err := r.originalSchema()
	if err != nil {
		return err
	}
	own, paths := page.FieldsOf(r.meta.Schema)
	fields, stored := slices.Clone(own), make([]arrow.Field, len(own))
	for i, f := range own {
		if orig != nil && orig.NumFields() == len(own) && orig.Field(i).Name == f.Name {
			fields[i] = page.Original(f, orig.Field(i))
		}
		stored[i] = page.StoredField(fields[i])
	}
	pairs := r.schemaMetadata(orig)
	r.schema, r.stored = arrow.NewSchema(fields, &pairs), arrow.NewSchema(stored, &pairs)
	r.leaves, r.flats, r.columns = make([][]int, len(fields)), nil, nil
	for k := range r.meta.Schema.NumColumns() {
		c := r.newColumn(k, paths[k], own, stored)
		r.columns = append(r.columns, c)
		r.leaves[paths[k][0]] = append(r.leaves[paths[k][0]], k)
		if c.MaxRep == 0 {
			r.flats = append(r.flats, r.leafOf(k))
		}
	}
	return nil
}

// newColumn is column k, which lies at a path of both lists of fields.
func (r *reader) newColumn(k int, path []int, own, stored []arrow.Field) *page.FileColumn {
	c := &page.FileColumn{SchemaColumn: r.meta.Schema.Column(k), Own: page.VectorType(leafAt(own, path))}
	t := leafAt(stored, path)
	form, ok := page.FormOf(c.SchemaElem, t)
	if !ok {
		c.Unread = fault.Unsupportedf(r.footer, "schema."+c.Path(), "%s as %s", c.Typ, t)
	}
	c.Form = &form
	c.Column = format.Column{Name: c.Path(), Path: path, Parent: -1, Has: format.Values, Type: t,
		MaxDef: uint8(c.MaxDef), MaxRep: uint8(c.MaxRep)}
	if len(path) > 1 || c.MaxRep > 0 {
		c.Column.Has |= format.Levels
	}
	return c
}

// leafAt is the type at a path of child indices, as nest counts them.
func leafAt(fields []arrow.Field, path []int) arrow.DataType {
	f := fields[path[0]]
	for _, i := range path[1:] {
		switch t := f.Type.(type) {
		case *arrow.MapType:
			f = arrow.Field{Type: arrow.StructOf(t.KeyField(), t.ItemField())}
		case arrow.NestedType:
			f = t.Fields()[i]
		}
	}
	return f.Type
}

// leafOf is a column as its bounds are read.
func (r *reader) leafOf(column int) order.LeafField {
	c := r.columns[column]
	return order.LeafField{Path: c.Column.Path, Column: column, Typ: c.Own}
}

func (r *reader) Schema() *arrow.Schema { return r.schema }
func (r *reader) Order() []format.Key   { return nil }
func (r *reader) Close() error          { return r.src.Close() }

// Columns are the leaves of the schema.
func (r *reader) Columns() []format.Column {
	out := make([]format.Column, len(r.columns))
	for i, c := range r.columns {
		out[i] = c.Column
		out[i].Facts = r.facts(i)
	}
	return out
}

// facts are those of the first row group.
func (r *reader) facts(col int) (f format.ColumnFacts) {
	if len(r.meta.RowGroups) == 0 {
		return f
	}
	m := r.meta.RowGroups[0].Columns[col].MetaData
	for k, e := range m.Encodings {
		if k > 0 {
			f.Encoding += ","
		}
		f.Encoding += e.String()
	}
	f.Codec = m.Codec.String()
	return f
}

// Stored is the schema of what Columns make.
func (r *reader) Stored() *arrow.Schema { return r.stored }

// Present gives an array the type that the schema has in its place.
func (r *reader) Present(a arrow.Array, to arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
	return present.As(a, to, mem)
}

var _ format.Presenter = (*reader)(nil)

func (r *reader) Parts(ctx context.Context, q format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		p := format.Part{Ref: r.target.Name, Rows: r.meta.NumRows}
		if info, err := r.target.Tree.Stat(ctx, r.target.Name); err == nil {
			p.Stamp = info.Stamp
		}
		for i := range r.meta.RowGroups {
			p.Bytes += r.bytes(i, q.Cols)
		}
		yield(p, nil)
	}
}

// bytes is the stored size of columns in a row group.
func (r *reader) bytes(group int, cols []int) (n int64) {
	for _, c := range cols {
		n += r.meta.RowGroups[group].Columns[c].MetaData.TotalCompressedSize
	}
	return n
}

func (r *reader) RowGroups(_ context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	out := make([]format.RowGroup, len(r.meta.RowGroups))
	for i, g := range r.meta.RowGroups {
		out[i] = format.RowGroup{Part: p.Ref, Index: i, Rows: g.NumRows, Bytes: r.bytes(i, q.Cols),
			Bounds: r.bounds(i, q.Cols)}
	}
	return out, nil
}

// Meta tells the facts of the file.
func (r *reader) Meta() []format.KeyValue {
	out := []format.KeyValue{
		{Key: "created by", Value: r.meta.CreatedBy},
		{Key: "version", Value: strconv.Itoa(int(r.meta.Version))},
		{Key: "rows", Value: strconv.FormatInt(r.meta.NumRows, 10)},
		{Key: "row groups", Value: strconv.Itoa(len(r.meta.RowGroups))},
		{Key: "columns", Value: strconv.Itoa(r.meta.Schema.NumColumns())},
		{Key: "footer", Value: fmt.Sprintf("%d bytes", r.footer.Len)},
	}
	for _, p := range r.meta.Pairs {
		if p.Key != meta.StoredSchema && p.Key != meta.SealKey && p.Value != nil {
			out = append(out, format.KeyValue{Key: "metadata: " + p.Key, Value: *p.Value})
		}
	}
	return out
}
