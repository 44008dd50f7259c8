package datafile

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"sync"
	"sync/atomic"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/internal/sorted"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// DataFile is an open data file: its header, its footer, and the columns that these describe.
type DataFile struct {
	layout.Object
	Version  int // of the format: 1, 2, 3
	Header   layout.Header
	Footer   layout.Footer
	HeadLen  int64 // bytes of the header
	FootAt   int64 // offset of the footer; -1: unknown
	Roots    []*schema.Column
	Columns  []*schema.Column // by chunk
	dimCount int              // number of dimensions among them
	noVerify bool
	Widths   page.KeyWidths // formats 1 and 2
	Stream   *streamFile    // of a row-format file; nil: a columnar one
	// Hybrid states that dates and times before 15 October 1582 are stored in Java's hybrid calendar; reading converts
	// them to the Gregorian one.
	Hybrid  bool
	Rebased atomic.Int64 // number of values converted
	Rebuilt bool         // in recovery: Footer was not read from the file

	sorting sync.Once
	starts  []int64 // offsets of the column chunks of format 2, sorted
}

// OpenFile reads the header and the footer of a data file, and compares them. With an error f is not nil: it holds what
// was read, for RecoverFile. Errors are those of tree, or Corrupt, Unsupported or Limit with a place.
func OpenFile(ctx context.Context, tree store.Tree, name string, o format.OpenOptions) (f *DataFile, err error) {
	o.Limits = o.Limits.Apart() // a table opens file after file
	f = &DataFile{noVerify: o.NoVerify, FootAt: -1}
	if f.Object, err = layout.OpenObject(ctx, tree, name, o.Limits); err != nil {
		return f, err
	}
	if f.At.Len < layout.TailLen+2 {
		return f, fault.Corruptf(f.At, "", "expected a data file of at least %d bytes, found %d", layout.TailLen+2,
			f.At.Len)
	}
	headErr := f.readHeader(ctx, o.Tracer)
	if e := (*fault.Error)(nil); headErr != nil && !errors.As(headErr, &e) {
		return f, headErr // the storage failed
	}
	if headErr == nil && f.Version == 3 && f.Header.HasFooter && !f.Header.Footer {
		return f, f.readStream(ctx, o.Tracer)
	}
	if err := f.readFooter(ctx, o.Tracer); err != nil {
		return f, err
	}
	if f.Version == 3 && headErr != nil {
		return f, headErr
	}
	if err := f.resolve(); err != nil {
		return f, err
	}
	return f, f.checkSeams()
}

// readHeader reads the header: FileHeader in format 3, MagicV2 in format 2; format 1 has none, and the error is then
// that of parsing the beginning of the file as a FileHeader.
func (f *DataFile) readHeader(ctx context.Context, trace func(region.Node)) error {
	b, err := f.Read(ctx, 0, min(f.At.Len, int64(len(layout.MagicV2))), "header")
	if err != nil {
		return err
	}
	if bytes.Equal(b, []byte(layout.MagicV2)) {
		f.Version, f.HeadLen = 2, int64(len(layout.MagicV2))
		layout.Trace(trace, region.Node{Kind: region.Struct, Name: "header", Value: layout.MagicV2,
			At: f.At.Sub(0, f.HeadLen), Inner: -1})
		return nil
	}
	var h layout.Header
	head, err := f.ParseGrowing(ctx, 0, "header",
		func(c *wire.Cursor) { h = layout.ParseHeader(thrift.NewReader(c, thrift.Compact), "") })
	if err == nil && h.Version == 3 {
		f.Version, f.Header, f.HeadLen = 3, h, int64(len(head))
		if trace != nil {
			trace(region.Node{Kind: region.Struct, Name: "header", Value: fault.Count(len(h.Columns), "column"),
				At: f.At.Sub(0, f.HeadLen), Inner: -1})
			layout.ParseHeader(thrift.NewReader(wire.NewCursor(head, f.At.Sub(0, f.HeadLen), "header").Trace(trace,
				1), thrift.Compact), "FileHeader")
		}
		return nil
	}
	f.Version = 1 // unless readFooter finds a FileFooter3
	if err == nil {
		err = fault.Corruptf(f.At.Sub(0, int64(len(head))), "header.version", "expected 3, found %d", h.Version)
	}
	return err
}

// readFooter reads the footer, whose offset is in the last eight bytes. Its first field distinguishes FileFooter from
// FileFooter3.
func (f *DataFile) readFooter(ctx context.Context, trace func(region.Node)) error {
	end, err := f.Read(ctx, f.At.Len-layout.TailLen, layout.TailLen, "footer_offset")
	if err != nil {
		return err
	}
	off := int64(binary.BigEndian.Uint64(end))
	if off < f.HeadLen || off >= f.At.Len-layout.TailLen {
		return fault.Corruptf(f.At.Sub(f.At.Len-layout.TailLen, layout.TailLen), "footer_offset",
			"%d is not between the header's end (%d) and %d", off, f.HeadLen, f.At.Len-layout.TailLen)
	}
	f.FootAt = off
	b, err := f.Read(ctx, off, f.At.Len-layout.TailLen-off, "footer")
	if err != nil {
		return err
	}
	c := f.Cursor(b, f.At.Sub(off, int64(len(b))), "footer")
	f.Footer = f.parseFooter(c)
	if trace != nil {
		trace(region.Node{Kind: region.Struct, Name: "footer",
			Value: fmt.Sprintf("%s, %s", fault.Count(f.Footer.Rows, "row"),
				fault.Count(len(f.Footer.Blocklet), "blocklet")),
			At: f.At.Sub(off, int64(len(b))), Inner: -1})
		f.parseFooter(wire.NewCursor(b, f.At.Sub(off, int64(len(b))), "footer").Trace(trace, 1))
		trace(region.Node{Kind: region.Data, Name: "footer_offset", Value: fmt.Sprint(off),
			At: f.At.Sub(f.At.Len-layout.TailLen, layout.TailLen), Inner: -1})
	}
	if c.Err() == nil && c.Left() > 0 {
		c.Fail(c.Pos(), c.Left(), "", "%d bytes after the footer", c.Left())
	}
	return c.Err()
}

// IsFooter3 reports whether a footer is a FileFooter3, which begins with the i64 num_rows, not with the i32 version.
func IsFooter3(b []byte) bool { return len(b) > 0 && b[0] == 0x16 }

func (f *DataFile) parseFooter(c *wire.Cursor) layout.Footer {
	r := thrift.NewReader(c, thrift.Compact)
	if IsFooter3(c.Rest()) {
		f.Version = 3
		return layout.ParseFooter3(r, "FileFooter3")
	}
	if f.Version == 3 {
		f.Version = 1
	}
	return layout.ParseFooter12(r, "FileFooter")
}

// resolve sets the columns that header or footer list, and compares header, footer and file.
func (f *DataFile) resolve() (err error) {
	list, at, path := f.Footer.Columns, f.ColumnsAt(), f.ColumnsPath()
	if f.Version == 3 {
		list = f.Header.Columns
	}
	var chunks int
	if f.Roots, chunks, err = schema.ColumnTree(list, at, path); err == nil {
		err = schema.CheckLimits(f.Roots, f.Limits, at, path)
	}
	if err == nil && f.Version < 3 {
		err = schema.CheckV12Types(list, f.Version, at, path)
	}
	if err != nil {
		return err
	}
	f.Columns = schema.ByChunk(f.Roots, chunks)
	for _, c := range f.Columns { // recorded twice; they differ only if a dictionary is shared
		if c.Reference != "" && c.Reference != c.ID && !c.HasGlobalDictionary() {
			return fault.Corruptf(at, path, "column %s: expected its id %s as columnReferenceId, found %s", c.Name,
				c.ID,
				c.Reference)
		}
	}
	f.dimCount = f.dims()
	if f.Version < 3 {
		f.cardinalities()
		if err := f.checkFooter12(); err != nil {
			return err
		}
	}
	return f.checkBlocklets()
}

// ColumnsAt is the span of the list of columns: of the header in format 3, else of the footer.
func (f *DataFile) ColumnsAt() fault.Span {
	if f.Version == 3 {
		return f.At.Sub(0, f.HeadLen)
	}
	return f.FootSpan()
}

// ColumnsPath is the path of the list of columns in messages.
func (f *DataFile) ColumnsPath() string {
	if f.Version == 3 {
		return "header.column_schema"
	}
	return "footer.table_columns"
}

// FootSpan is the span of the footer, without the offset after it.
func (f *DataFile) FootSpan() fault.Span { return f.At.Sub(f.FootAt, f.At.Len-layout.TailLen-f.FootAt) }

// checkBlocklets compares the rows and offsets of the blocklets with the footer and the file.
func (f *DataFile) checkBlocklets() error {
	at := f.FootSpan()
	if n, k := len(f.Footer.Blocklet), len(f.Footer.Index); n != k {
		return fault.Corruptf(at, "footer", "expected one index entry for each of %s, found %d",
			fault.Count(n, "blocklet"), k)
	}
	var rows int64
	for i := range f.Footer.Blocklet {
		b := &f.Footer.Blocklet[i]
		path := fmt.Sprintf("footer.blocklet[%d]", i)
		if b.Rows < 0 {
			return fault.Corruptf(at, path+".num_rows", "expected no negative number, found %d", b.Rows)
		}
		rows += b.Rows
		if f.Version < 3 && b.Rows > page.MaxPageRows {
			return fault.Limitf(at, path+".num_rows", "expected at most %d, found %d", page.MaxPageRows, b.Rows)
		}
		var err error
		switch f.Version {
		case 3:
			err = f.checkBlocklet3(b, at, path)
		case 2:
			err = f.checkBlocklet2(b, at, path)
		default:
			err = f.checkBlocklet1(b, at, path)
		}
		if err != nil {
			return err
		}
	}
	if rows != f.Footer.Rows {
		return fault.Corruptf(at, "footer.num_rows", "expected the %s of the blocklets, found %d",
			fault.Count(rows, "row"),
			f.Footer.Rows)
	}
	return nil
}

func (f *DataFile) checkBlocklet3(b *layout.BlockletInfo, at fault.Span, path string) error {
	if len(b.Offsets) != len(f.Columns) || len(b.Lengths) != len(f.Columns) {
		return fault.Corruptf(at, path, "expected an offset and a length for each of %s, found %d and %d",
			fault.Count(len(f.Columns), "column"), len(b.Offsets), len(b.Lengths))
	}
	for i, off := range b.Offsets {
		if b.ChunksFound > 0 && i >= b.ChunksFound {
			break
		}
		end := b.ChunkEnd(i, f.dimCount)
		if off < f.HeadLen || b.Lengths[i] < 1 || end > f.FootAt || off > end || int64(b.Lengths[i]) > end-off {
			return fault.Corruptf(at, fmt.Sprintf("%s.column_data_chunks_offsets[%d]", path, i),
				"a chunk from %d to %d whose metadata has %d bytes does not lie between header (%d) and footer (%d)",
				off, end, b.Lengths[i], f.HeadLen, f.FootAt)
		}
	}
	for i, n := range b.Lengths { // the metadata of a chunk has at least one byte per page
		if int64(len(b.PageRows)) > int64(n) && (b.ChunksFound == 0 || i < b.ChunksFound) {
			return fault.Corruptf(at, path+".row_count_in_page", "%s, the metadata of chunk %d has %d bytes",
				fault.Count(len(b.PageRows), "page"), i, n)
		}
	}
	if b.PageRows != nil {
		var n int64
		for _, k := range b.PageRows {
			if k < 0 || k > page.MaxPageRows3 {
				return fault.Corruptf(at, path+".row_count_in_page", "expected at most %s in a page, found %d",
					fault.Count(page.MaxPageRows3, "row"), k)
			}
			n += int64(k)
		}
		if n != b.Rows || int(b.Pages) != len(b.PageRows) {
			return fault.Corruptf(at, path+".row_count_in_page",
				"expected %s in %s, found %d in %d", fault.Count(b.Rows, "row"), fault.Count(b.Pages, "page"), n,
				len(b.PageRows))
		}
	}
	return nil
}

// checkSeams checks that the column chunks fill the file between header and footer without a gap or an overlap. No
// writer leaves gaps, and without checksums little else reveals a damaged length or a lost field. The pages inside a
// chunk are checked when its metadata is read, see ChunkAt.check and follows.
func (f *DataFile) checkSeams() error {
	at := f.HeadLen
	for i := range f.Footer.Blocklet {
		b := &f.Footer.Blocklet[i]
		if f.Version == 1 {
			return f.checkSeams1()
		}
		if len(b.Offsets) == 0 {
			continue
		}
		if b.Offsets[0] != at && (f.Version == 3 || i == 0) {
			return f.seamError(at, b.Offsets[0], fmt.Sprintf("footer.blocklet[%d]", i))
		}
		at = max(b.MeasuresEnd, b.DimensionsEnd)
	}
	if f.Version == 3 && at != f.FootAt {
		return f.seamError(at, f.FootAt, "footer")
	}
	return nil
}

// seamError returns the error for a structure that begins at begin although the previous one ends at end.
func (f *DataFile) seamError(end, begin int64, path string) error {
	if end < begin {
		return fault.Corruptf(f.FootSpan(), path, "no column chunk claims the %d bytes at %d", begin-end, end)
	}
	return fault.Corruptf(f.FootSpan(), path, "two column chunks claim the %d bytes at %d", end-begin, begin)
}

// checkSeams1 is checkSeams for format 1, whose footer has the offsets of all pages.
func (f *DataFile) checkSeams1() error {
	var all [][2]int64
	add := func(off int64, n int32) {
		if n > 0 {
			all = append(all, [2]int64{off, off + int64(n)})
		}
	}
	for i := range f.Footer.Blocklet {
		for k := range f.Footer.Blocklet[i].Chunks {
			d := &f.Footer.Blocklet[i].Chunks[k]
			add(d.DataAt, d.DataLen)
			add(d.RowidAt, d.RowidLen)
			add(d.RleAt, d.RleLen)
		}
	}
	sorted.By(all, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	end := f.HeadLen
	for _, x := range append(all, [2]int64{f.FootAt, f.FootAt}) {
		if x[0] != end {
			return f.seamError(end, x[0], "footer.blocklet_info_list")
		}
		end = x[1]
	}
	return nil
}

// dims returns the number of column chunks that are dimensions.
func (f *DataFile) dims() int {
	n := 0
	for _, c := range f.Columns {
		if c.Dimension {
			n++
		}
	}
	return n
}

// BlockletBytes returns the stored size of blocklet i in bytes; in formats 1 and 2 it is an equal share of the file.
func (f *DataFile) BlockletBytes(i int) int64 {
	b := &f.Footer.Blocklet[i]
	if f.Stream != nil {
		return f.Stream.Blocklets[i].At.Len
	}
	if f.Version == 3 && len(b.Offsets) > 0 {
		return max(b.MeasuresEnd, b.DimensionsEnd) - b.Offsets[0]
	}
	return (f.FootAt - f.HeadLen) / int64(len(f.Footer.Blocklet))
}

// ChunkBytes returns the stored size of a column chunk of blocklet i; -1 if the footer does not say it.
func (f *DataFile) ChunkBytes(i, chunk int) int64 {
	b := &f.Footer.Blocklet[i]
	if f.Stream != nil || f.Version < 3 || chunk < 0 || chunk >= len(b.Offsets) {
		return -1
	}
	if n := b.ChunkEnd(chunk, f.dimCount) - b.Offsets[chunk]; n >= 0 && n <= f.At.Len {
		return n
	}
	return -1
}

// Facts are what `stoa meta` prints of a data file.
func (f *DataFile) Facts() []format.KeyValue {
	var out []format.KeyValue
	add := func(k string, v any) { out = append(out, format.KeyValue{Key: k, Value: fmt.Sprint(v)}) }
	add("format", fmt.Sprintf("CarbonData V%d", f.Version))
	add("file", path.Base(f.At.Object))
	add("num_rows", f.Footer.Rows)
	add("blocklets", len(f.Footer.Blocklet))
	add("columns", len(f.Columns))
	if f.Version == 3 {
		add("is_sort", f.Footer.Sorted)
		add("schema_time_stamp", f.Header.Stamp)
	}
	for _, k := range []string{"version", "written_by"} {
		if v, ok := f.Footer.Extra[k]; ok {
			add("extra_info."+k, v)
		}
	}
	return out
}
