package trevni

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni/internal/container"
	"stoa/format/trevni/internal/layout"
	"stoa/format/trevni/internal/page"
	"stoa/format/trevni/internal/table"
	"stoa/internal/check"
	"stoa/internal/describe"
	"stoa/internal/nest"
	"stoa/pred"
	"stoa/region"
	"stoa/vec"
)

// verify checks header, descriptors, checksums, every value and first values, and that every byte belongs to exactly
// one structure; at lower values of format.Depth it checks less.
func verify(ctx context.Context, tg format.Target, o format.OpenOptions) iter.Seq[region.Finding] {
	return func(yield func(region.Finding) bool) {
		v := newVerifier(ctx, tg.Name, yield)
		v.depth = o.Depth
		v.object(tg, o)
	}
}

type verifier struct {
	*check.Reporter
	ctx   context.Context
	depth format.Depth
	bad   map[string]bool // paths of reported blocks

	t     *table.Table
	f     *container.File
	arena vec.Arena
	spare vec.Arena
}

func newVerifier(ctx context.Context, part string, yield func(region.Finding) bool) *verifier {
	return &verifier{Reporter: reporter(ctx, part, yield), ctx: ctx, depth: format.Deep, bad: map[string]bool{}}
}

// reporter reports findings about a Trevni file.
func reporter(ctx context.Context, part string, yield func(region.Finding) bool) *check.Reporter {
	r := check.New(ctx, part, layout.Codes, yield)
	r.Read, r.CodeOf = "trevni.read", codeOf
	return r
}

// codeOf returns the code for an error that occurred where code would be reported.
func codeOf(code string, e *fault.Error) string {
	switch {
	case e.Class == fault.Unsupported:
		return "trevni.unsupported"
	case strings.HasSuffix(e.Path, "column-checksum"):
		return "trevni.block.checksum"
	}
	return code
}

// reportOnce is Report for findings that apply to every block of a column: only the first is reported.
func (v *verifier) reportOnce(code string, at fault.Span, path, format string, args ...any) {
	column, _, _ := strings.Cut(path, ".")
	v.Once(code+" "+v.Column+" "+column, code, at, path, format, args...)
}

func (v *verifier) object(tg format.Target, o format.OpenOptions) {
	opts, err := table.ParseOptions(o.Opts)
	if err != nil {
		v.Blame("trevni.read", err, -1, -1)
		return
	}
	o.Tracer, o.NoVerify = nil, false
	f, err := container.OpenTarget(v.ctx, tg, o)
	v.of(f)
	if layout.IsSealError(err) {
		v.Blame("trevni.header.checksum", err, -1, -1)
		again, failed := container.OpenIgnoringSeal(v.ctx, tg, o, err)
		if failed != nil {
			return
		}
		f, err = again, nil
		v.of(f)
	}
	if err != nil {
		v.Blame("trevni.header.damaged", err, -1, -1)
		return
	}
	defer f.Src.Close()
	if v.t, err = table.New(v.ctx, tg, f, opts); err != nil {
		v.Blame("trevni.unsupported", err, -1, -1)
		return
	}
	for _, odd := range v.t.Findings() {
		v.Scoped(odd)
	}
	v.reportInferred()
	names := map[string]bool{}
	for i := range f.Header.Columns {
		c := &f.Header.Columns[i]
		if names[c.Name] {
			v.Report("trevni.column.duplicate", c.At, fmt.Sprintf("column-metadata[%d].name", i), "%q", c.Name)
		}
		names[c.Name] = true
		v.Column = c.Name
		v.descriptors(i)
	}
	for i, ph := range v.t.Plan.Phys {
		if v.depth == format.Quick {
			break
		}
		v.Column = f.Header.Columns[ph.Stored].Name
		v.values(i)
	}
	v.Column = ""
	v.coverage(tg, o)
}

// of sets the file to verify.
func (v *verifier) of(f *container.File) {
	if v.f = f; f != nil {
		v.Whole = f.At
	}
}

// descriptors verifies the descriptors of a column, and reports errors that prevent its values from being read.
func (v *verifier) descriptors(i int) {
	col := &v.f.Header.Columns[i]
	path := v.f.PathOf(i)
	cb, err := v.f.Blocks(v.ctx, i)
	if err != nil {
		v.Blame("trevni.column.damaged", err, 0, v.f.Header.Rows)
		return
	}
	if col.MaxRep == 0 && cb.Rows != v.f.Header.Rows {
		from, to := min(cb.Rows, v.f.Header.Rows), v.f.Header.Rows
		if cb.Rows > to {
			from = 0
		}
		v.Blame("trevni.column.rows", fault.Corruptf(cb.Desc, path, "the blocks have %s, the header says %d",
			fault.Count(cb.Rows, "row"), v.f.Header.Rows), from, to)
	}
	if col.MaxRep > 0 && cb.Rows < v.f.Header.Rows {
		v.Blame("trevni.column.rows", page.FewEntries(v.f, cb, path), -1, -1)
	}
	if col.FirstValues && col.Type == layout.Boolean && len(cb.Blocks) > 1 {
		v.Report("trevni.firstvalue.boolean", cb.Desc, path, "%s", fault.Count(len(cb.Blocks), "block"))
	}
	for k := range cb.Blocks {
		b := &cb.Blocks[k]
		switch {
		case b.Lost != nil:
			first, end := b.Row, b.Row+b.Rows
			if col.MaxRep > 0 || end > v.f.Header.Rows {
				first, end = -1, -1
			}
			v.Blame("trevni.block.cut", b.Lost, first, end)
		case b.Rows == 0:
			v.reportOnce("trevni.block.empty", b.Desc, path+fmt.Sprintf(".block[%d]", k),
				"a block of %d bytes has no rows", b.Stored)
		}
	}
}

// values decodes every page of a physical column.
func (v *verifier) values(i int) {
	ph := v.t.Plan.Phys[i]
	cb, err := v.f.Blocks(v.ctx, ph.Stored)
	if err != nil || v.f.Header.Columns[ph.Stored].MaxRep == 0 && cb.Rows > v.f.Header.Rows {
		return // their descriptors show it
	}
	var up *counter
	if ph.Parent >= 0 && !v.sumSuffices(ph) {
		up = v.counter(ph.Parent)
	}
	vals, err := vec.New(ph.Type, memory.DefaultAllocator)
	if err != nil {
		v.Blame("trevni.unsupported", err, -1, -1)
		return
	}
	defer vals.Release()
	var last []byte
	began, whole := int64(0), !ph.Counted() // counted only if the column's levels alone determine the number of rows
	for k := range cb.Blocks {
		if v.Stopped() {
			return
		}
		b := &cb.Blocks[k]
		n, known := b.Rows, true
		if up != nil {
			n, known = up.entries(b.Rows)
		}
		if b.Rows == 0 {
			continue
		}
		if b.Lost != nil || !v.block(ph, b, k, n, known, vals, &last) {
			whole = false
			continue
		}
		began += int64(nest.CountRows(vals.Rep()))
	}
	if rows := v.f.Header.Rows; whole && began != rows && cb.Rows >= rows { // otherwise already reported
		from := min(began, rows)
		if began > rows {
			from = 0
		}
		v.Blame("trevni.column.rows", fault.Corruptf(cb.Desc, v.f.PathOf(ph.Stored),
			"%d rows begin in the blocks, the header says %d", began, rows), from, rows)
	}
}

// countRows returns the number of rows that begin in a repeated column; ok: all of it could be read.
func (v *verifier) countRows(ph *page.Physical) (rows int64, ok bool) {
	cb, err := v.f.Blocks(v.ctx, ph.Stored)
	if err != nil {
		return -1, false
	}
	vals, err := vec.New(ph.Type, memory.DefaultAllocator)
	if err != nil {
		return -1, false
	}
	defer vals.Release()
	for k := range cb.Blocks {
		b := &cb.Blocks[k]
		if b.Rows == 0 {
			continue
		}
		if b.Lost != nil || !v.reads(ph, b, k, vals) {
			return rows, false
		}
		rows += int64(nest.CountRows(vals.Rep()))
	}
	return rows, true
}

// reads reports whether a block can be read as its descriptor says.
func (v *verifier) reads(ph *page.Physical, b *container.Block, k int, vals *vec.Vector) bool {
	_, stored, err := v.open(ph.Stored, b, "")
	return err == nil && v.decode(ph, b, k, b.Rows, stored, vals) == nil
}

// sumSuffices reports whether the values of a column need not be decoded: checksums are enough at this depth, and there
// is one over its blocks, and one over the header, which has its type and the columns that count it.
func (v *verifier) sumSuffices(ph *page.Physical) bool {
	return v.depth == format.Sums && v.f.Header.Sealed && v.f.Header.Columns[ph.Stored].Summed
}

// block verifies one block: its checksum and codec and, if the number of its entries is known, the values; ok: nothing
// is wrong. Checksums cover the values but not the number of entries, so a repeated column, which nothing else counts,
// is always decoded.
func (v *verifier) block(ph *page.Physical, b *container.Block, k int, n int64, known bool, vals *vec.Vector,
	last *[]byte) (ok bool) {
	path := fmt.Sprintf("%s.block[%d]", v.f.PathOf(ph.Stored), k)
	first, end := b.Row, b.Row+b.Rows
	if !ph.Counted() {
		first, end = -1, -1
	}
	if v.bad[path] {
		return false // reported by another physical column
	}
	o, stored, err := v.open(ph.Stored, b, path)
	if err == nil {
		v.reportUnusual(ph, b, &o, stored, path)
		if known && (!v.sumSuffices(ph) || o.Sum.Zero || !ph.Counted()) {
			err = v.decode(ph, b, k, n, stored, vals)
		}
	}
	if err != nil {
		v.bad[path] = true
		v.Blame("trevni.block.damaged", err, first, end)
		return false
	}
	if known && v.f.Header.Columns[ph.Stored].FirstValues && ph.Shape == page.ShapeFlat {
		v.firstValue(ph, b, &o, path, last)
	}
	return true
}

// open reads and opens a block. stored is valid until the next call.
func (v *verifier) open(column int, b *container.Block, path string) (o container.Opened, stored []byte, err error) {
	return v.f.ReadBlock(v.ctx, column, b, path, &v.arena, false)
}

// reportInferred reports once, at the first column whose levels allow several schemas, that its nesting was inferred.
func (v *verifier) reportInferred() {
	h, p := &v.f.Header, v.t.Plan
	i := -1
	switch {
	case len(p.Open) > 0:
		i = p.Open[0][0]
	case p.How == "columns" && h.Dialect == layout.Wiki:
		i = slices.IndexFunc(h.Columns, func(c layout.Column) bool { return c.MaxDef > 1 })
	}
	if i >= 0 {
		c := &h.Columns[i]
		v.Report("trevni.schema.inferred", c.At, fmt.Sprintf("column-metadata[%d]", i),
			"%q has definition %d and repetition %d, which may be of several schemas%s: shown by %s", c.Name,
			c.MaxDef, c.MaxRep, v.t.Sampled, p.How)
	}
}

// reportUnusual reports valid but unusual properties.
func (v *verifier) reportUnusual(ph *page.Physical, b *container.Block, o *container.Opened, stored []byte,
	path string) {
	col := &v.f.Header.Columns[ph.Stored]
	d := v.f.Header.Dialect
	if d == layout.Avro && col.Checksum != "" && col.Checksum != "crc32" && col.Checksum != "null" {
		v.reportOnce("trevni.checksum.name", col.At, path+".column-metadata.checksum",
			"the checksum is called %q; Avro knows crc32 and null", col.Checksum)
	}
	if col.Summed {
		switch usual := container.UsualSum(d); {
		case o.Sum.Zero:
			v.reportOnce("trevni.checksum.zero", b.At, path+".column-checksum", "the checksums are 0")
		case o.Sum != usual:
			v.reportOnce("trevni.checksum.form", b.At, path+".column-checksum", "the checksums are %s; %s is usual",
				o.Sum, usual)
		}
	}
	if o.Zlib && d == layout.Avro {
		v.reportOnce("trevni.codec.zlib", o.At, path, "the blocks have a zlib header")
	}
	if o.Surplus > 0 {
		v.reportOnce("trevni.block.padded", o.At, path, "%d bytes follow the %d raw ones", o.Surplus, b.Raw)
	}
	if col.Kind == layout.CodecNone && b.Raw != int64(len(o.Raw)) {
		v.Report("trevni.block.rawsize", b.Desc, path+".block-uncompressed-size",
			"expected %d, the bytes of the block, found %d", len(o.Raw), b.Raw)
	}
	if col.Array && v.f.Header.Version < 2 {
		a := page.Arrays{Type: col.Type, Bytes: o.Raw}
		for a.Pos < len(a.Bytes) && !a.Runs {
			l, err := a.Next()
			if err != nil {
				break
			}
			if _, _, _, err := a.Values(l); err != nil {
				break
			}
		}
		if a.Runs {
			v.reportOnce("trevni.lengths.runs", o.At, path, "version %d has no runs of lengths", v.f.Header.Version)
		}
	}
}

// decode decodes the n entries of a block in parts, as a scan would.
func (v *verifier) decode(ph *page.Physical, b *container.Block, k int, n int64, stored []byte,
	vals *vec.Vector) error {
	return page.DecodeBlock(v.ctx, v.f, ph, b, format.Task{Page: format.Page{Ordinal: k}, N: n, Bytes: [][]byte{stored},
		Scratch: &v.spare, Limits: v.f.Limits}, vals)
}

// firstValue compares the first value in the descriptor with the block's and, if the column is sorted, with the block
// before.
func (v *verifier) firstValue(ph *page.Physical, b *container.Block, o *container.Opened, path string, last *[]byte) {
	got, want := ph.First(o), b.First
	if layout.Types[ph.StoredType].Form == layout.FormBits && len(want) == 1 && len(got) == 1 && want[0]&1 == got[0]&1 {
		want = got
	}
	if !bytes.Equal(got, want) {
		v.Report("trevni.firstvalue", b.Desc, path+".first-value", "expected %x, with which the block begins, found %x",
			got, want)
	}
	if v.t.IsSorted(ph.Stored) {
		prev, next := table.FirstOf(ph, *last), table.FirstOf(ph, b.First)
		if *last != nil && prev != nil && next != nil {
			if c, ok := pred.Compare(*prev, *next); ok && c > 0 {
				v.Report("trevni.order", b.Desc, path+".first-value", "%s after %s", next, prev)
			}
		}
		*last = append([]byte{}, b.First...)
	}
}

// coverage reports bytes that no structure or more than one structure claims.
func (v *verifier) coverage(tg format.Target, o format.OpenOptions) {
	if v.Stopped() {
		return
	}
	gaps, overlaps, err := describe.Claims(v.ctx, v.f.At, func(out *describe.Outline) error {
		return (&describer{Outline: out}).object(tg, o)
	})
	if err != nil { // already reported: an unreadable column is not a gap
		gaps = nil
	}
	v.Unclaimed("trevni.coverage", gaps, overlaps)
}

// counter returns the number of child entries for each row of an array column, in order, by reading its blocks and
// those of its parents once more.
type counter struct {
	v    *verifier
	ph   *page.Physical
	cb   *container.ColumnBlocks
	up   *counter
	next int
	rows []int64 // buffered numbers of values per row; -1: unknown
}

func (v *verifier) counter(phys int) *counter {
	c := &counter{v: v, ph: v.t.Plan.Phys[phys]}
	var err error
	if c.cb, err = v.f.Blocks(v.ctx, c.ph.Stored); err != nil {
		c.cb = &container.ColumnBlocks{}
	}
	if c.ph.Parent >= 0 {
		c.up = v.counter(c.ph.Parent)
	}
	return c
}

// entries returns the number of child entries of the next n rows; known is false if that cannot be determined.
func (c *counter) entries(n int64) (sum int64, known bool) {
	known = true
	for _, x := range c.take(n) {
		if known = known && x >= 0; known {
			sum += x
		}
	}
	return sum, known && n <= c.most()
}

// most returns the maximum number of rows to process at once: their counts must fit the limits.
func (c *counter) most() int64 { return c.v.f.Limits.Page / 8 }

// take returns the number of values of each of the next n rows.
func (c *counter) take(n int64) []int64 {
	if n > c.most() {
		return nil
	}
	for int64(len(c.rows)) < n && c.next < len(c.cb.Blocks) && c.v.ctx.Err() == nil {
		c.block(&c.cb.Blocks[c.next])
		c.next++
	}
	for int64(len(c.rows)) < n {
		c.rows = append(c.rows, -1)
	}
	out := c.rows[:n:n]
	c.rows = c.rows[n:]
	return out
}

// block appends the rows of a block.
func (c *counter) block(b *container.Block) {
	if b.Rows > c.most() {
		return
	}
	lengths, per := c.lengths(b)
	if lengths == nil {
		for range b.Rows {
			c.rows = append(c.rows, -1)
		}
		return
	}
	i := 0
	for r := range int(b.Rows) {
		k := int64(1)
		if per != nil {
			k = per[r]
		}
		sum := int64(0)
		for ; k > 0; k-- {
			sum += int64(lengths[i])
			i++
		}
		c.rows = append(c.rows, sum)
	}
}

// lengths returns the lengths in a block, and in per the number of lengths of each row, nil: one. lengths is nil if
// they cannot be determined.
func (c *counter) lengths(b *container.Block) (lengths []int32, per []int64) {
	n := b.Rows
	if c.up != nil {
		per = c.up.take(b.Rows)
		n = 0
		for _, k := range per {
			if k < 0 {
				return nil, nil
			}
			n += k
		}
	}
	if b.Lost != nil || n > c.most() {
		return nil, nil
	}
	o, _, err := c.v.open(c.ph.Stored, b, "")
	if err != nil {
		return nil, nil
	}
	out := make([]int32, n)
	a := page.Arrays{Type: c.ph.StoredType, Bytes: o.Raw}
	if _, err := a.Split(out, make([]byte, len(o.Raw)+1)); err != nil {
		return nil, nil
	}
	return out, per
}
