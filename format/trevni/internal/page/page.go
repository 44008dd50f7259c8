package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni/internal/container"
	"stoa/format/trevni/internal/layout"
	"stoa/internal/enc/plain"
	"stoa/vec"
)

// maxSub is the maximum number of rows of a page: larger blocks are returned as several pages, so that a few bytes of
// nulls or runs do not take unbounded memory. It is a multiple of 8, so that booleans are split between bytes.
const maxSub = 128 << 10

// Shape is the part of a stored column's blocks that makes up a physical column.
type Shape uint8

const (
	ShapeFlat     Shape = iota // values
	ShapeList                  // of an array column: lengths and values, as lists
	ShapeLengths               // of an array column: lengths only
	ShapePresence              // lengths only, each 0 or 1
	ShapeItems                 // of an array column: values only
	ShapeOptional              // of an array column whose lengths are 0 or 1: values, null where it is 0
	ShapeNullable              // wiki, Impala: a definition level of 0 or 1, values where it is 1
	ShapeLevels                // wiki: definition and repetition levels
	ShapeMatrix                // wiki: rows with the same number of values each, as lists
)

// Physical is a physical column, and how it is decoded from the blocks of a stored column. One stored column may have
// several physical columns.
type Physical struct {
	format.Column
	Stored     int // stored
	StoredType layout.Type
	Shape      Shape
	Conv       convert // nil: values are stored in Arrow's form
	Enum       []string
	Size       int // of fixed-size values that are stored as bytes
	Width      int // of ShapeMatrix
}

// Counted reports whether block-row-count counts rows; in the wiki's repeated columns it counts entries.
func (p *Physical) Counted() bool { return p.MaxRep == 0 }

// chunk iterates over the pages of a physical column. It is a format.Chunk.
type chunk struct {
	f    *container.File
	p    *Physical
	rows vec.Range
	cb   *container.ColumnBlocks
	err  error // why there are no blocks; io.EOF after the last page
	i    int   // next block
	sub  int64 // next row in it; after the last block: next row of the file

	reserved reservation
}

// reservation is the amount of memory to reserve in a vector: the size of earlier vectors; for the first, an estimate
// from the descriptors.
type reservation struct{ entries, bytes atomic.Int64 }

// Limits of what is reserved for a vector: rows of a window, and bytes of strings.
const (
	reserveRows  = 64 << 10
	reserveBytes = 16 << 20
)

// expect makes the estimate from the descriptor of the block with the first wanted row.
func (r *reservation) expect(cb *container.ColumnBlocks, rows vec.Range) {
	i, _ := slices.BinarySearchFunc(cb.Blocks, rows.From,
		func(b container.Block, row int64) int { return cmp.Compare(b.Row+b.Rows, row+1) })
	if i == len(cb.Blocks) {
		return
	}
	b := &cb.Blocks[i]
	n := min(rows.To, cb.Rows) - rows.From
	if n = min(n, reserveRows) + min(b.Rows, maxSub); n > 0 && b.Rows > 0 && b.Lost == nil {
		r.entries.Store(n)
		r.bytes.Store(min(int64(float64(n)*float64(b.Raw)/float64(b.Rows))+b.Raw, reserveBytes))
	}
}

func (r *reservation) reserve(dst *vec.Vector) { dst.Reserve(int(r.entries.Load()), r.bytes.Load()) }

// note records the size of dst. raw is the raw size of its last block in bytes.
func (r *reservation) note(dst *vec.Vector, raw int) {
	if n := int64(dst.Len()); n > r.entries.Load() {
		r.entries.Store(n)
	}
	switch dst.Type.ID() {
	case arrow.STRING, arrow.BINARY:
		if n := int64(dst.Offsets(dst.Len())[0]) + int64(raw); n > r.bytes.Load() {
			r.bytes.Store(n)
		}
	}
}

// NewChunk returns the pages of p with rows of the range. If its descriptors are damaged, that error is the Lost of its
// pages.
func NewChunk(ctx context.Context, f *container.File, p *Physical, rows vec.Range) (*chunk, error) {
	c := &chunk{f: f, p: p, rows: rows}
	var err error
	if c.cb, err = f.Blocks(ctx, p.Stored); err != nil {
		if !container.IsFault(err) {
			return nil, err
		}
		c.err = err
		return c, nil
	}
	if p.Parent < 0 && p.Counted() {
		c.reserved.expect(c.cb, rows)
	}
	if p.Counted() && c.cb.Rows > f.Header.Rows {
		c.err = fault.Corruptf(c.cb.Desc, f.PathOf(p.Stored), "the blocks have %s, the header says %d",
			fault.Count(c.cb.Rows, "row"), f.Header.Rows)
	}
	if !p.Counted() && c.cb.Rows == 0 && f.Header.Rows > 0 {
		c.err = FewEntries(f, c.cb, f.PathOf(p.Stored))
	}
	return c, nil
}

// Next returns the next block, or a part of one that has very many rows.
func (c *chunk) Next(context.Context) (format.Page, error) {
	if c.err == nil && !c.p.Counted() {
		return c.nextLevels()
	}
	if c.err == nil {
		for ; c.i < len(c.cb.Blocks); c.i++ {
			b := &c.cb.Blocks[c.i]
			if b.Row >= c.rows.To {
				return format.Page{}, io.EOF
			}
			if b.Row+b.Rows > c.rows.From && b.Rows > 0 {
				return c.part(b), nil
			}
		}
		c.err, c.sub = io.EOF, c.cb.Rows
		if c.cb.Rows < c.f.Header.Rows {
			c.err = fault.Corruptf(c.cb.Desc, c.f.PathOf(c.p.Stored), "the blocks have %s, the header says %d",
				fault.Count(c.cb.Rows, "row"), c.f.Header.Rows)
		}
	}
	if c.err == io.EOF || c.sub >= min(c.f.Header.Rows, c.rows.To) {
		return format.Page{}, io.EOF
	}
	return c.lost(), nil
}

// lost returns a page of at most maxSub rows from sub on, for which there is no block.
func (c *chunk) lost() format.Page {
	c.sub = max(c.sub, c.rows.From/maxSub*maxSub)
	p := format.Page{Ordinal: c.i, First: c.sub, Rows: min(maxSub, c.f.Header.Rows-c.sub), Entries: -1, Lost: c.err,
		Spans: []fault.Span{c.f.At.Sub(0, c.f.Header.Size)}}
	var e *fault.Error
	if errors.As(c.err, &e) {
		p.Spans[0] = e.At
	}
	if c.p.Parent < 0 && c.p.Counted() {
		p.Entries = p.Rows
	}
	c.i++
	c.sub += p.Rows
	return p
}

// part returns the page of block b, or of a part of it.
func (c *chunk) part(b *container.Block) format.Page {
	p := c.page(b)
	p.First, p.Rows, p.Entries = b.Row, b.Rows, b.Rows
	// the number of entries in a part is known only to the parent
	if (c.p.Parent >= 0 || c.p.Shape == ShapeLevels) && b.Lost == nil {
		if c.p.Parent >= 0 {
			p.Entries = -1
		}
		c.i++
		return p
	}
	if b.Rows > maxSub {
		if skip := (c.rows.From - b.Row) / maxSub * maxSub; skip > c.sub {
			c.sub = skip
		}
		p.Sub = c.sub
		p.Rows = min(maxSub, b.Rows-c.sub)
		p.First, p.Entries = b.Row+c.sub, p.Rows
		if c.p.Parent >= 0 {
			p.Entries = -1
		}
		if c.sub += p.Rows; c.sub < b.Rows && b.Row+c.sub < c.rows.To {
			return p
		}
	}
	if c.i, c.sub = c.i+1, 0; c.p.Parent >= 0 {
		p.Entries = -1
	}
	return p
}

func (c *chunk) page(b *container.Block) format.Page {
	p := format.Page{Ordinal: c.i, Spans: []fault.Span{b.At}, Raw: b.Raw, Lost: b.Lost, Own: b}
	if b.At.Len == 0 && b.Lost == nil {
		p.Spans = nil // nulls take no bytes
	}
	return p
}

// nextLevels is Next for repeated columns, whose blocks do not store their number of rows.
func (c *chunk) nextLevels() (format.Page, error) {
	for ; c.i < len(c.cb.Blocks); c.i++ {
		if b := &c.cb.Blocks[c.i]; b.Rows > 0 {
			p := c.page(b)
			p.First, p.Rows, p.Entries = -1, -1, b.Rows
			if b.Row == 0 {
				p.First = 0
			}
			c.i++
			return p, nil
		}
	}
	if c.err = io.EOF; c.cb.Rows < c.f.Header.Rows {
		return format.Page{Ordinal: c.i, First: -1, Rows: -1, Entries: -1,
			Lost: FewEntries(c.f, c.cb, c.f.PathOf(c.p.Stored)), Spans: []fault.Span{c.cb.Desc}}, nil
	}
	return format.Page{}, io.EOF
}

// FewEntries is the error of a repeated column that has fewer entries than rows.
func FewEntries(f *container.File, cb *container.ColumnBlocks, path string) error {
	return fault.Corruptf(cb.Desc, path,
		"the blocks have %d entries, which are too few for the %d rows that the header says", cb.Rows, f.Header.Rows)
}

// Dict returns no page: Trevni has no dictionaries.
func (c *chunk) Dict() (format.Page, bool) { return format.Page{}, false }

// decoding is one page being decoded.
type decoding struct {
	p       *Physical
	task    *format.Task
	b       *container.Block
	o       container.Opened
	d       layout.Dialect
	scratch *vec.Arena
	limit   int64
}

// Decode appends a page to dst.
func (c *chunk) Decode(t *format.Task, dst *vec.Vector) error {
	b := t.Page.Own.(*container.Block)
	col := &c.f.Header.Columns[c.p.Stored]
	d := decoding{p: c.p, task: t, b: b, d: c.f.Header.Dialect, scratch: t.Scratch, limit: t.Limits.WithDefaults().Page}
	var stored []byte
	if len(t.Bytes) > 0 {
		stored = t.Bytes[0]
	}
	var err error
	if d.o, err = c.f.OpenBlock(col, b, stored, t.Scratch, c.f.NoVerify || t.NoVerify); err != nil {
		return fault.Locate(err, b.At, false, c.path(t))
	}
	t.Raw = int64(len(d.o.Raw))
	c.reserved.reserve(dst)
	if err := d.entries(dst); err != nil {
		return fault.Locate(err, d.o.At, d.o.Exact, c.path(t))
	}
	c.reserved.note(dst, len(d.o.Raw))
	return nil
}

func (c *chunk) path(t *format.Task) string {
	return fmt.Sprintf("%s.block[%d]", c.f.PathOf(c.p.Stored), t.Page.Ordinal)
}

// entries decodes the entries of the page.
func (d *decoding) entries(dst *vec.Vector) error {
	n := d.task.Page.Entries
	if n < 0 {
		n = d.task.N
	}
	if n < 0 {
		return fault.Bugf("trevni: the number of entries is not known of block %d of column %s", d.task.Page.Ordinal,
			d.p.Name)
	}
	if n*int64(max(dst.Width(), 1)) > d.limit || n > 1<<31-64 {
		// damage takes precedence over a limit
		if minBytes := d.minBytes(n); minBytes > int64(len(d.o.Raw)) {
			return fault.Rel(0, len(d.o.Raw), "", "%d entries take at least %d bytes, the block has %d", n, minBytes,
				len(d.o.Raw))
		}
		return fault.Limitf(fault.Span{}, "",
			"%d entries are more than a page may have (page limit or memory limit)", n)
	}
	switch d.p.Shape {
	case ShapeFlat:
		return d.flat(dst, int(n))
	case ShapeNullable, ShapeLevels:
		return d.levels(dst, int(n))
	case ShapeMatrix:
		return d.matrix(dst, int(n))
	}
	return d.array(dst, int(n))
}

// minBytes is the minimum size of n entries in bytes: 0 if they can be runs of lengths, or nulls.
func (d *decoding) minBytes(n int64) int64 {
	switch d.p.Shape {
	case ShapeFlat:
		return d.p.StoredType.MinBytes(n)
	case ShapeNullable:
		return arraySize(n, 1)
	case ShapeLevels:
		return arraySize(n, int(d.p.MaxDef)) + arraySize(n, int(d.p.MaxRep))
	case ShapeMatrix:
		return d.p.StoredType.MinBytes(n * int64(d.p.Width))
	}
	return 0
}

// whole reports whether the page ends where its block does.
func (d *decoding) whole(n int) bool { return d.p.Parent >= 0 || d.task.Page.Sub+int64(n) == d.b.Rows }

// rest returns an error if bytes follow the last value of the block.
func (d *decoding) rest(used, n int) error {
	if left := len(d.o.Raw) - used; left != 0 && d.whole(n) {
		return fault.Rel(used, left, "", "%d bytes are after the last value", left)
	}
	return nil
}

func (d *decoding) flat(dst *vec.Vector, n int) error {
	skip := 0
	if d.task.Page.Sub > 0 {
		if skip = skipValues(d.p.StoredType, d.o.Raw, int(d.task.Page.Sub)); skip < 0 {
			return truncated(d.o.Raw, int(d.task.Page.Sub), n)
		}
	}
	used, err := d.p.dense(dst, d.o.Raw[skip:], n, d)
	if err != nil {
		return shifted(err, skip)
	}
	return d.rest(skip+used, n)
}

// shifted adds off, the offset of the decoded bytes in the block, to a relative error.
func shifted(err error, off int) error {
	e, ok := err.(*fault.Error)
	if !ok || e.At.Object != "" {
		return err
	}
	out := *e
	out.At.Off += int64(off)
	return &out
}

// array decodes entries of an array column.
func (d *decoding) array(dst *vec.Vector, n int) error {
	if int64(n)*4 > d.limit {
		return fault.Limitf(fault.Span{}, "",
			"%d lengths are more than a page may have (page limit or memory limit)", n)
	}
	if d.p.Shape == ShapeOptional && d.optionalFast(dst, n) {
		return nil
	}
	return d.arrayStepwise(dst, n)
}

// arrayStepwise decodes any array column, length by length.
func (d *decoding) arrayStepwise(dst *vec.Vector, n int) error {
	a := Arrays{Type: d.p.StoredType, Bytes: d.o.Raw}
	if err := a.skipEntries(d.task.Page.Sub); err != nil {
		return err
	}
	if d.p.Shape == ShapeItems {
		return d.items(&a, dst, n)
	}
	var lengths []int32
	switch d.p.Shape {
	case ShapeLengths, ShapePresence:
		lengths = vec.Fixed[int32](dst, dst.Extend(n))
	default:
		lengths = as[int32](d.scratch.Bytes(4*n), n)
	}
	s, err := a.Split(lengths, d.scratch.Bytes(len(a.Bytes)-a.Pos+1))
	if err != nil {
		return err
	}
	if err := d.rest(a.Pos, n); err != nil {
		return err
	}
	if a.Run > 0 && d.whole(n) {
		return fault.Rel(a.Pos, 0, "length", "the last run of lengths continues for %d entries after the block's %d",
			a.Run, n)
	}
	switch d.p.Shape {
	case ShapePresence:
		return checkPresence(lengths)
	case ShapeList:
		return d.list(dst, lengths, s)
	case ShapeOptional:
		return d.optional(dst, lengths, s)
	}
	return nil
}

// checkPresence returns an error if a length is neither 0 nor 1.
func checkPresence(lengths []int32) error {
	for i, l := range lengths {
		if l > 1 {
			return fault.Rel(0, 0, "entry["+strconv.Itoa(i)+"].length", "expected 0 or 1, as for the branch of a "+
				"union, found %d", l)
		}
	}
	return nil
}

// items decodes the n values of an array column whose own lengths count them.
func (d *decoding) items(a *Arrays, dst *vec.Vector, n int) error {
	scratch := d.scratch.Bytes(len(a.Bytes) + 1)
	var one [1]int32
	var all []byte
	bits := 0
	for a.Pos < len(a.Bytes) || a.Run > 0 {
		if a.Run > 0 && a.of == 0 {
			a.Run = 0
			continue
		}
		from := a.values
		s, err := a.Split(one[:], scratch[len(all):])
		if err != nil {
			return err
		}
		if a.Type != layout.Boolean {
			all = scratch[:len(all)+len(s.values)]
			continue
		}
		k := int(a.values - from)
		bool8 := append([]byte(nil), s.values...)
		plain.CopyBits(scratch, bits, bool8, 0, k)
		bits += k
		all = scratch[:(bits+7)/8]
	}
	if a.values != int64(n) {
		return fault.Rel(0, len(a.Bytes), "", "the block has %s, its lengths make %d", fault.Count(a.values, "value"),
			n)
	}
	_, err := d.p.dense(dst, all, n, d)
	return err
}

// list appends lists of lengths and values.
func (d *decoding) list(dst *vec.Vector, lengths []int32, s split) error {
	items := dst.Items
	if s.count > 1<<31-64-int64(items.Len()) || s.count*int64(max(items.Width(), 1)) > d.limit {
		return fault.Limitf(fault.Span{}, "",
			"%d values are more than a page may have (page limit or memory limit)", s.count)
	}
	offs := dst.Offsets(dst.Extend(len(lengths)))
	end := offs[0]
	for i, l := range lengths {
		end += l
		offs[i+1] = end
	}
	_, err := d.p.dense(items, s.values, int(s.count), d)
	return err
}

// optional appends a value for each length of 1, and null for 0.
func (d *decoding) optional(dst *vec.Vector, lengths []int32, s split) error {
	if err := checkPresence(lengths); err != nil {
		return err
	}
	first := dst.Len()
	if _, err := d.p.dense(dst, s.values, int(s.count), d); err != nil {
		return err
	}
	spread(dst, first, int(s.count), len(lengths), d.scratch, func(valid []byte) {
		for i, l := range lengths {
			k := first + i
			valid[k>>3] = valid[k>>3]&^(1<<(k&7)) | byte(l)<<(k&7)
		}
	})
	return nil
}

// matrix appends lists of Width values.
func (d *decoding) matrix(dst *vec.Vector, n int) error {
	w := int64(d.p.Width)
	if int64(n)*w > d.limit {
		return fault.Limitf(fault.Span{}, "",
			"%s of %d values are more than a page may have (page limit or memory limit)", fault.Count(n, "row"), w)
	}
	skip := 0
	if sub := d.task.Page.Sub; sub > 0 {
		if d.p.StoredType == layout.Boolean && sub*w%8 != 0 {
			return fault.Unsupportedf(fault.Span{}, "", "a block of %s of %d booleans", fault.Count(d.b.Rows, "row"), w)
		}
		if sub*w > int64(len(d.o.Raw))*8 && d.p.StoredType != layout.Null {
			return truncated(d.o.Raw, int(sub), n)
		}
		if skip = skipValues(d.p.StoredType, d.o.Raw, int(sub*w)); skip < 0 {
			return truncated(d.o.Raw, int(sub), n)
		}
	}
	if d.p.StoredType.MinBytes(int64(n)*w) > int64(len(d.o.Raw)-skip) {
		return truncated(d.o.Raw, 0, n)
	}
	offs := dst.Offsets(dst.Extend(n))
	for i := range n {
		offs[i+1] = offs[i] + int32(w)
	}
	used, err := d.p.dense(dst.Items, d.o.Raw[skip:], n*int(w), d)
	if err != nil {
		return shifted(err, skip)
	}
	return d.rest(skip+used, n)
}

// DecodeBlock decodes one block in parts, as a scan does. The block has number t.Page.Ordinal in its column and t.N
// entries. In the end dst has the entries of the last part.
func DecodeBlock(ctx context.Context, f *container.File, p *Physical, b *container.Block, t format.Task,
	dst *vec.Vector) error {
	c := &chunk{f: f, p: p, rows: vec.Range{To: 1 << 62}, cb: &container.ColumnBlocks{Blocks: []container.Block{*b}}}
	ordinal := t.Page.Ordinal
	for c.i == 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.Page = c.page(b)
		t.Page.Entries = b.Rows
		if p.Counted() {
			t.Page = c.part(b)
		} else {
			c.i++
		}
		t.Page.Ordinal = ordinal
		t.Scratch.Reset()
		dst.Reset()
		if err := c.Decode(&t, dst); err != nil {
			return err
		}
	}
	return nil
}
