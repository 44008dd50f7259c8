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

	ignoreSchema    bool           // ignore ARROW:schema
	Int96           arrow.TimeUnit // unit of the timestamps as which INT96 is read
	SchemaError     error          // why ARROW:schema was ignored although it was requested
	MissingParts    []error        // files of the table that are missing from the directory
	GroupRows       int64          // for recovery; 0 if not set
	Tracer          func(region.Node)
	NoVerify        bool
	AllowTrailing   bool            // pages may have bytes after their values, as fastparquet's pages do
	keys            *meta.Keyring   // nil if none were supplied
	algorithm       *meta.Algorithm // nil if nothing is encrypted
	footerCipher    *meta.Cipher    // uses the footer's key; nil if that is unknown
	KeyFile         string          // "" if none was supplied
	EncryptedFooter bool            // the footer is encrypted
	Summaries       bool            // accept a file whose data are all in other files: see verifier.summary
	Short           bool            // accept chunks behind the end of the file: see recovery

	FooterAt    fault.Span // span of the Thrift
	Footer      *meta.FileMeta
	Shown       *arrow.Schema // the file's schema, as callers see it
	Decoded     *arrow.Schema // the same with the types that columns are decoded as
	Leaves      []*page.FileColumn
	FieldLeaves [][]int // columns of each top-level field
	FlatLeaves  []order.LeafField
	Claimed     map[ChunkKey]error // chunks that are not read, see Overlapping
	offsets     offsetIndexCache
}

// Span returns n bytes at off, counted from the start of the file, as a place for errors.
func (r *File) Span(off, n int64) fault.Span {
	return fault.Span{Object: r.Target.Name, Off: r.Base + off, Len: n}
}

// Start reads and parses the footer.
func (r *File) Start(ctx context.Context) error {
	b, err := r.readFooter(ctx)
	if err != nil {
		return err
	}
	if why := meta.BrokenSeal(b); why != "" {
		return fault.Corruptf(r.FooterAt, "footer", "%s", why)
	}
	if err := r.SetFooter(b, nil); err != nil {
		return err
	}
	r.MissingParts = r.MissingSiblings(ctx)
	return nil
}

// SetFooter parses a footer. pairs, which may be nil, replace its key/value metadata.
func (r *File) SetFooter(b []byte, pairs []meta.KeyValue) error {
	c := wire.NewCursor(b, r.FooterAt, "footer").Trace(r.Tracer, 1)
	if r.EncryptedFooter { // positions within it are unknown
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
	if err := r.checkLimits(c, tree); err != nil {
		return err
	}
	m.Length = c.Pos()
	if m.Schema = tree; pairs != nil {
		m.KeyValues = pairs
	}
	if m.NumRows == 0 && strings.HasPrefix(m.CreatedBy, "parquet-rs version 0.") { // these versions did not set it
		m.NumRows = m.GroupRows()
	}
	r.Footer, r.AllowTrailing = m, strings.HasPrefix(m.CreatedBy, "fastparquet")
	r.offsets.clear()
	if err := r.decryptColumns(b); err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	if r.Claimed = nil; !r.NoVerify {
		r.Claimed = r.Overlapping()
	}
	return r.buildSchema()
}

// checkLimits refuses a schema that is nested too deeply, or whose columns would take too much memory, before the
// columns are built.
func (r *File) checkLimits(c *wire.Cursor, t *meta.SchemaTree) error {
	// Estimated memory, in bytes, of a column and of each step of its path through the schema.
	const perColumn, perStep = 1 << 10, 64
	for _, d := range t.Columns {
		c.Spend(perColumn + perStep*int64(len(d.Steps)))
	}
	if c.Err() != nil {
		return c.Err()
	}
	fields, _ := page.FieldsOf(t, r.Int96)
	return r.Limits.Fit(arrow.NewSchema(fields, nil), r.FooterAt, "footer/metadata.schema")
}

// readFooter finds and reads the Thrift of the footer, decrypted.
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
		return nil, fault.Limitf(at.Sub(0, 4), "footer.length", "%d bytes, and at most %d are read (metadata limit)", n,
			r.Limits.Metadata)
	}
	r.FooterAt = r.Span(r.Size-8-n, n)
	b := make([]byte, n)
	if err := format.ReadFull(ctx, r.Src, r.FooterAt, "footer", b); err != nil || string(tail[4:]) == meta.Magic {
		return b, err
	}
	return r.decryptFooter(b)
}

// Algorithm returns the encryption algorithm; nil if the file is not encrypted.
func (r *File) Algorithm() *meta.Algorithm { return r.algorithm }

// Magic returns the magic at the beginning and the end of the file.
func (r *File) Magic() string {
	if r.EncryptedFooter {
		return meta.Encrypted
	}
	return meta.Magic
}

// check validates the parts of the footer on which reading relies.
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
				"does not have the %s of the schema, or a negative number of rows", fault.Count(columns, "column"))
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
	if c.Encrypted { // the footer's claims about it may be incomplete
		if m := c.MetaData; m != nil && m.TotalCompressedSize > 0 {
			c.EncryptedSpan = r.ChunkSpan(group, column)
		}
		c.MetaData = &meta.ColumnMeta{Type: d.Typ, PathInSchema: d.Steps, Codec: meta.CodecNone}
		return nil
	}
	if c.MetaData == nil {
		return fault.Corruptf(r.FooterAt, path, "has no metadata")
	}
	if c.FilePath != "" && !r.Summaries {
		err := fault.Unsupportedf(r.FooterAt, path+".file_path", "the data are in another file, %q", c.FilePath)
		if r.isSummary() {
			err.Cause = errSummary{}
		}
		return err
	}
	m := c.MetaData
	if name := m.Missing(); name != "" {
		return fault.Corruptf(r.FooterAt, path+"."+name, "it is missing or negative")
	}
	if m.Type != d.Typ {
		return fault.Corruptf(r.FooterAt, path+".type", "%s, but the schema says %s", m.Type, d.Typ)
	}
	from := r.ChunkStart(group, column)
	if (r.Summaries || r.Short) && m.TotalCompressedSize <= math.MaxInt64-from {
		return nil
	}
	if from > r.Size || m.TotalCompressedSize > r.Size-from {
		return fault.Corruptf(r.FooterAt, path, "%d bytes at %d do not lie in the file (%d)", m.TotalCompressedSize,
			from, r.Size)
	}
	return nil
}

// ChunkSpan returns the span of the pages of a column chunk.
func (r *File) ChunkSpan(group, column int) fault.Span {
	m := r.Footer.RowGroups[group].Columns[column].MetaData
	return r.Span(r.ChunkStart(group, column), m.TotalCompressedSize)
}

// ChunkStart returns the offset of the first page of a column chunk. A chunk without values may have a dictionary and
// no data page; Arrow C++ then leaves data_page_offset at 0.
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

// errSummary is the cause of the error for a file that is only a summary of other files.
type errSummary struct{}

func (errSummary) Error() string {
	return "this is a summary of other files: read these, or their directory"
}

func (errSummary) Is(target error) bool { return target == format.ErrElsewhere }

// isSummary reports whether there are column chunks and all of them are in other files.
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

// Close closes the file.
func (r *File) Close() error { return r.Src.Close() }
