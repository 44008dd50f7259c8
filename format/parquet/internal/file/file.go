package file

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/order"
	"stoa/format/parquet/internal/page"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// File is an open file. Its footer is read once.
type File struct {
	Src    store.Source
	Target format.Target
	Base   int64
	Size   int64
	Limits format.Limits

	ignoreSchema bool    // ARROW:schema
	Untyped      error   // why it was ignored without being asked
	MissingParts []error // parts of the table that are not beside the file
	GroupRows    int64   // of recovery: 0 not given
	Tracer       func(region.Node)
	NoVerify     bool
	Loose        bool            // pages may have bytes after their values: fastparquet leaves some there
	keys         *meta.Keyring   // nil: none are given
	algorithm    *meta.Algorithm // nil: nothing is encrypted
	sealed       *meta.Sealed    // by the footer's key; nil: it is not known
	KeyFile      string          // where keys are; "": none are given
	Hidden       bool            // the footer is encrypted
	Summaries    bool            // a file of which all data are in other files is taken, too: see verifier.summary

	FooterAt    fault.Span // of the Thrift
	Footer      *meta.FileMeta
	Shown       *arrow.Schema // as it is given away
	Decoded     *arrow.Schema // the same with the types as which columns are decoded
	Leaves      []*page.FileColumn
	FieldLeaves [][]int // per top-level field, the columns
	Flats       []order.LeafField
	offsets     offsets
}

func (r *File) Span(off, n int64) fault.Span {
	return fault.Span{Object: r.Target.Name, Off: r.Base + off, Len: n}
}

func (r *File) Start(ctx context.Context) error {
	b, err := r.readFooter(ctx)
	if err != nil {
		return err
	}
	if why := meta.BrokenSeal(b); why != "" {
		return fault.Corruptf(r.FooterAt, "footer", "%s", why)
	}
	if err := r.Take(b, nil); err != nil {
		return err
	}
	r.MissingParts = r.Neighbours(ctx)
	return nil
}

// Take understands a footer. pairs, which may be nil, are taken for its key/value metadata if it has none.
func (r *File) Take(b []byte, pairs []meta.KeyPair) error {
	c := wire.NewCursor(b, r.FooterAt, "footer").Trace(r.Tracer, 1)
	if r.Hidden { // what stands where is not known
		c = wire.NewInnerCursor(b, r.FooterAt, "footer").Trace(r.Tracer, 1)
	}
	c.Within(r.Limits.Memory()).Spend(int64(len(b)))
	m := meta.ParseFileMeta(thrift.NewReader(c, thrift.Compact), c, r.Limits)
	if c.Err() != nil {
		return c.Err()
	}
	tree, err := meta.ReadTree(m.Elements, r.FooterAt)
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
	r.Footer, r.Loose = m, strings.HasPrefix(m.CreatedBy, "fastparquet")
	r.offsets.forget()
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
func (r *File) affords(c *wire.Cursor, t *meta.SchemaTree) error {
	// Memory that a column, and a step of its way through the schema, is taken to need.
	const perColumn, perStep = 1 << 10, 64
	for _, d := range t.Columns {
		c.Spend(perColumn + perStep*int64(len(d.Steps)))
	}
	if c.Err() != nil {
		return c.Err()
	}
	fields, _ := page.FieldsOf(t)
	return r.Limits.Fit(arrow.NewSchema(fields, nil), r.FooterAt, "footer/metadata.schema")
}

// readFooter finds and reads the Thrift of the footer.
func (r *File) readFooter(ctx context.Context) ([]byte, error) {
	if r.Size < 12 {
		return nil, fault.Corruptf(r.Span(0, r.Size), "footer", "the file is too short")
	}
	var tail [8]byte
	at := r.Span(r.Size-8, 8)
	if err := format.ReadFull(ctx, r.Src, at, "footer", tail[:]); err != nil {
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
	case n == 0 || n > r.Size-12:
		return nil, fault.Corruptf(at.Sub(0, 4), "footer.length", "%d bytes in a file of %d", n, r.Size)
	case n > r.Limits.Metadata:
		return nil, fault.Limitf(at.Sub(0, 4), "footer.length", "%d bytes, and at most %d are read (--max-metadata)", n,
			r.Limits.Metadata)
	}
	r.FooterAt = r.Span(r.Size-8-n, n)
	b := make([]byte, n)
	if err := format.ReadFull(ctx, r.Src, r.FooterAt, "footer", b); err != nil || string(tail[4:]) == meta.Magic {
		return b, err
	}
	return r.openFooter(b)
}

// Algorithm is how the file is encrypted; nil: it is not.
func (r *File) Algorithm() *meta.Algorithm { return r.algorithm }

// Magic is what the file begins and ends with.
func (r *File) Magic() string {
	if r.Hidden {
		return meta.Encrypted
	}
	return meta.Magic
}

// check looks at what reading goes by.
func (r *File) check() error {
	columns := r.Footer.Schema.NumColumns()
	for k := range columns {
		c := r.Footer.Schema.Column(k)
		if n := int64(c.Length); c.Typ == meta.TypeFixed && (n <= 0 || n > r.Limits.Page) {
			return fault.Corruptf(r.FooterAt, "schema."+c.Path(), "a fixed length of %d bytes", n)
		}
	}
	if r.Footer.NumRows < 0 {
		return fault.Corruptf(r.FooterAt, "footer/metadata.num_rows", "it is missing or negative")
	}
	r.Summaries = r.Summaries && r.isSummary()
	for i, g := range r.Footer.RowGroups {
		path := fmt.Sprintf("row_groups[%d]", i)
		if len(g.Columns) != columns || g.NumRows < 0 {
			return fault.Corruptf(r.FooterAt, path,
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

func (r *File) checkChunk(group, column int, path string) error {
	c, d := r.Footer.RowGroups[group].Columns[column], r.Footer.Schema.Column(column)
	if c.Encrypted { // what is said of it, if anything, may be cut
		if m := c.MetaData; m != nil && m.TotalCompressedSize > 0 {
			c.Veiled = r.ChunkSpan(group, column)
		}
		c.MetaData = &meta.ColumnMeta{Type: d.Typ, PathInSchema: d.Steps, Codec: meta.CodecNone}
		return nil
	}
	if c.MetaData == nil {
		return fault.Corruptf(r.FooterAt, path, "has no metadata")
	}
	if c.FilePath != "" && !r.Summaries {
		return fault.Unsupportedf(r.FooterAt, path+".file_path", "the data are in another file, %q", c.FilePath)
	}
	m := c.MetaData
	if name := m.Missing(); name != "" {
		return fault.Corruptf(r.FooterAt, path+"."+name, "it is missing or negative")
	}
	if m.Type != d.Typ {
		return fault.Corruptf(r.FooterAt, path+".type", "%s, but the schema says %s", m.Type, d.Typ)
	}
	from := r.ChunkStart(group, column)
	if r.Summaries && m.TotalCompressedSize <= math.MaxInt64-from {
		return nil
	}
	if from > r.Size || m.TotalCompressedSize > r.Size-from {
		return fault.Corruptf(r.FooterAt, path, "%d bytes at %d do not lie in the file (%d)", m.TotalCompressedSize,
			from, r.Size)
	}
	return nil
}

// ChunkSpan is where the pages of a column chunk lie.
func (r *File) ChunkSpan(group, column int) fault.Span {
	m := r.Footer.RowGroups[group].Columns[column].MetaData
	return r.Span(r.ChunkStart(group, column), m.TotalCompressedSize)
}

// ChunkStart is where the pages of a column chunk begin. One without values may have a dictionary, and no data
// page: Arrow C++ leaves data_page_offset at 0 then.
func (r *File) ChunkStart(group, column int) int64 {
	m := r.Footer.RowGroups[group].Columns[column].MetaData
	d := m.DictionaryPageOffset
	switch {
	case d == nil || *d <= 0:
		return m.DataPageOffset
	case m.DataPageOffset == 0 && m.NumValues == 0:
		return *d
	}
	return min(m.DataPageOffset, *d)
}

// isSummary reports whether all column chunks are in other files, and there are some.
func (r *File) isSummary() bool {
	some := false
	for _, g := range r.Footer.RowGroups {
		for _, c := range g.Columns {
			if c.FilePath == "" {
				return false
			}
			some = true
		}
	}
	return some
}

// Close lets the file go.
func (r *File) Close() error { return r.Src.Close() }
