package trevni

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
	"stoa/internal/enc/plain"
	"stoa/vec"
)

// maxSub is how many rows a page has at most: blocks of more are given as several pages, so that a few bytes of
// nulls or runs never become a window's whole memory. It is a multiple of 8, so that booleans are cut between
// bytes.
const maxSub = 128 << 10

// shape is what a physical column takes from its blocks.
type shape uint8

const (
	shapeFlat     shape = iota // values
	shapeList                  // of an array column: lengths and values, as lists
	shapeLengths               // of an array column: lengths only
	shapePresence              // the same; lengths are 0 or 1
	shapeItems                 // of an array column: values only
	shapeOptional              // of an array column whose lengths are 0 or 1: values, null where it is 0
	shapeNullable              // wiki, Impala: a definition level of 0 or 1, values where it is 1
	shapeLevels                // wiki: definition and repetition levels
	shapeMatrix                // wiki: rows of equally many values, as lists
)

// physical is a physical column, and how it is made from the blocks of a stored one. Several may be made from one.
type physical struct {
	format.Column
	column int // stored
	stored Type
	shape  shape
	conv   convert // nil: values are stored as Arrow has them
	enum   []string
	size   int // of fixed values that are stored as bytes
	width  int // of shapeMatrix
}

// counted reports whether the descriptors' block-row-count is rows. (The wiki's repeated columns count entries.)
func (p *physical) counted() bool { return p.MaxRep == 0 }

// chunk gives the pages of a physical column. It is a format.Chunk.
type chunk struct {
	f    *file
	p    *physical
	rows vec.Range
	cb   *columnBlocks
	err  error // why there are no blocks; io.EOF after the last page
	i    int   // next block
	sub  int64 // next row in it; behind the last block: next row of the file

	most room // what vectors have held so far
}

// room is how much a vector is made to hold at once: as much as those before it have come to; of the first,
// what its blocks let expect.
type room struct{ entries, bytes atomic.Int64 }

// A vector is not expected to hold more than this: a window of rows, and strings.
const (
	roomRows  = 64 << 10
	roomBytes = 16 << 20
)

// expect guesses from the descriptor of the block that holds the first wanted row.
func (r *room) expect(cb *columnBlocks, rows vec.Range) {
	i, _ := slices.BinarySearchFunc(cb.blocks, rows.From,
		func(b block, row int64) int { return cmp.Compare(b.row+b.rows, row+1) })
	if i == len(cb.blocks) {
		return
	}
	b := &cb.blocks[i]
	n := min(rows.To, cb.rows) - rows.From
	if n = min(n, roomRows) + min(b.rows, maxSub); n > 0 && b.rows > 0 && b.lost == nil {
		r.entries.Store(n)
		r.bytes.Store(min(int64(float64(n)*float64(b.raw)/float64(b.rows))+b.raw, roomBytes))
	}
}

func (r *room) reserve(dst *vec.Vector) { dst.Reserve(int(r.entries.Load()), r.bytes.Load()) }

// note remembers what dst has come to; the last block of strings had raw bytes.
func (r *room) note(dst *vec.Vector, raw int) {
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

// newChunk gives the pages of p with rows of the range.
func newChunk(ctx context.Context, f *file, p *physical, rows vec.Range) (*chunk, error) {
	c := &chunk{f: f, p: p, rows: rows}
	var err error
	if c.cb, err = f.blocks(ctx, p.column); err != nil {
		if !isFault(err) {
			return nil, err
		}
		c.err = err
		return c, nil
	}
	if p.Parent < 0 && p.counted() {
		c.most.expect(c.cb, rows)
	}
	if p.counted() && c.cb.rows > f.header.Rows {
		c.err = fault.Corruptf(c.cb.desc, f.pathOf(p.column), "the blocks have %d rows, the header says %d",
			c.cb.rows, f.header.Rows)
	}
	if !p.counted() && c.cb.rows == 0 && f.header.Rows > 0 {
		c.err = fewEntries(f, c.cb, f.pathOf(p.column))
	}
	return c, nil
}

// Next gives the next block, or a part of one that has very many rows.
func (c *chunk) Next(context.Context) (format.Page, error) {
	if c.err == nil && !c.p.counted() {
		return c.nextLevels()
	}
	if c.err == nil {
		for ; c.i < len(c.cb.blocks); c.i++ {
			b := &c.cb.blocks[c.i]
			if b.row >= c.rows.To {
				return format.Page{}, io.EOF
			}
			if b.row+b.rows > c.rows.From && b.rows > 0 {
				return c.part(b), nil
			}
		}
		c.err, c.sub = io.EOF, c.cb.rows
		if c.cb.rows < c.f.header.Rows {
			c.err = fault.Corruptf(c.cb.desc, c.f.pathOf(c.p.column), "the blocks have %d rows, the header says %d",
				c.cb.rows, c.f.header.Rows)
		}
	}
	if c.err == io.EOF || c.sub >= min(c.f.header.Rows, c.rows.To) {
		return format.Page{}, io.EOF
	}
	return c.lost(), nil
}

// lost is a page of rows that there is no block for, from row sub on. Very many are several pages.
func (c *chunk) lost() format.Page {
	c.sub = max(c.sub, c.rows.From/maxSub*maxSub)
	p := format.Page{Ordinal: c.i, First: c.sub, Rows: min(maxSub, c.f.header.Rows-c.sub), Entries: -1, Lost: c.err,
		Spans: []fault.Span{c.f.at.Sub(0, c.f.header.size)}}
	var e *fault.Error
	if errors.As(c.err, &e) {
		p.Spans[0] = e.At
	}
	if c.p.Parent < 0 && c.p.counted() {
		p.Entries = p.Rows
	}
	c.i++
	c.sub += p.Rows
	return p
}

// part is the page of block b, or of a part of it.
func (c *chunk) part(b *block) format.Page {
	p := c.page(b)
	p.First, p.Rows, p.Entries = b.row, b.rows, b.rows
	// how many entries a part would have, only the parent tells
	if (c.p.Parent >= 0 || c.p.shape == shapeLevels) && b.lost == nil {
		if c.p.Parent >= 0 {
			p.Entries = -1
		}
		c.i++
		return p
	}
	if b.rows > maxSub {
		if skip := (c.rows.From - b.row) / maxSub * maxSub; skip > c.sub {
			c.sub = skip
		}
		p.Sub = c.sub
		p.Rows = min(maxSub, b.rows-c.sub)
		p.First, p.Entries = b.row+c.sub, p.Rows
		if c.p.Parent >= 0 {
			p.Entries = -1
		}
		if c.sub += p.Rows; c.sub < b.rows && b.row+c.sub < c.rows.To {
			return p
		}
	}
	if c.i, c.sub = c.i+1, 0; c.p.Parent >= 0 {
		p.Entries = -1
	}
	return p
}

func (c *chunk) page(b *block) format.Page {
	p := format.Page{Ordinal: c.i, Spans: []fault.Span{b.at}, Raw: b.raw, Lost: b.lost, Own: b}
	if b.at.Len == 0 && b.lost == nil {
		p.Spans = nil // nulls take no bytes
	}
	return p
}

// nextLevels is Next for repeated columns: nothing tells how many rows a block has.
func (c *chunk) nextLevels() (format.Page, error) {
	for ; c.i < len(c.cb.blocks); c.i++ {
		if b := &c.cb.blocks[c.i]; b.rows > 0 {
			p := c.page(b)
			p.First, p.Rows, p.Entries = -1, -1, b.rows
			if b.row == 0 {
				p.First = 0
			}
			c.i++
			return p, nil
		}
	}
	if c.err = io.EOF; c.cb.rows < c.f.header.Rows {
		return format.Page{Ordinal: c.i, First: -1, Rows: -1, Entries: -1,
			Lost: fewEntries(c.f, c.cb, c.f.pathOf(c.p.column)), Spans: []fault.Span{c.cb.desc}}, nil
	}
	return format.Page{}, io.EOF
}

// fewEntries is the damage of a repeated column that has less than an entry a row.
func fewEntries(f *file, cb *columnBlocks, path string) error {
	return fault.Corruptf(cb.desc, path,
		"the blocks have %d entries, which are too few for the %d rows that the header says", cb.rows, f.header.Rows)
}

// Dict is none: Trevni has no dictionaries.
func (c *chunk) Dict() (format.Page, bool) { return format.Page{}, false }

// decoding is one page being decoded.
type decoding struct {
	p       *physical
	task    *format.Task
	b       *block
	o       opened
	d       Dialect
	scratch *vec.Arena
	limit   int64
}

// Decode appends a page to dst.
func (c *chunk) Decode(t *format.Task, dst *vec.Vector) error {
	b := t.Page.Own.(*block)
	col := &c.f.header.Columns[c.p.column]
	d := decoding{p: c.p, task: t, b: b, d: c.f.header.Dialect, scratch: t.Scratch, limit: t.Limits.WithDefaults().Page}
	var stored []byte
	if len(t.Bytes) > 0 {
		stored = t.Bytes[0]
	}
	var err error
	if d.o, err = c.f.openBlock(col, b, stored, t.Scratch, c.f.noVerify || t.NoVerify); err != nil {
		return fault.Locate(err, b.at, false, c.path(t))
	}
	t.Raw = int64(len(d.o.raw))
	c.most.reserve(dst)
	if err := d.entries(dst); err != nil {
		return fault.Locate(err, d.o.at, d.o.exact, c.path(t))
	}
	c.most.note(dst, len(d.o.raw))
	return nil
}

func (c *chunk) path(t *format.Task) string {
	return fmt.Sprintf("%s.block[%d]", c.f.pathOf(c.p.column), t.Page.Ordinal)
}

// entries decodes the entries that the page stands for.
func (d *decoding) entries(dst *vec.Vector) error {
	n := d.task.Page.Entries
	if n < 0 {
		n = d.task.N
	}
	if n < 0 {
		return fault.Bugf("trevni: nobody knows how many entries block %d of column %s has", d.task.Page.Ordinal,
			d.p.Name)
	}
	if n*int64(max(dst.Width(), 1)) > d.limit || n > 1<<31-64 {
		if least := d.least(n); least > int64(len(d.o.raw)) { // then it is no limit that keeps them from being read
			return fault.Rel(0, len(d.o.raw), "", "%d entries take at least %d bytes, the block has %d", n, least,
				len(d.o.raw))
		}
		return fault.Limitf(fault.Span{}, "", "%d entries are more than a page may have", n)
	}
	switch d.p.shape {
	case shapeFlat:
		return d.flat(dst, int(n))
	case shapeNullable, shapeLevels:
		return d.levels(dst, int(n))
	case shapeMatrix:
		return d.matrix(dst, int(n))
	}
	return d.array(dst, int(n))
}

// least is how many bytes n entries take at least: of lengths, which may be runs, and of values that are null
// or not there nobody knows.
func (d *decoding) least(n int64) int64 {
	switch d.p.shape {
	case shapeFlat:
		return d.p.stored.least(n)
	case shapeNullable:
		return arraySize(n, 1)
	case shapeLevels:
		return arraySize(n, int(d.p.MaxDef)) + arraySize(n, int(d.p.MaxRep))
	case shapeMatrix:
		return d.p.stored.least(n * int64(d.p.width))
	}
	return 0
}

// whole reports whether the page ends where its block does.
func (d *decoding) whole(n int) bool { return d.p.Parent >= 0 || d.task.Page.Sub+int64(n) == d.b.rows }

// rest refuses bytes behind the last value.
func (d *decoding) rest(used, n int) error {
	if left := len(d.o.raw) - used; left != 0 && d.whole(n) {
		return fault.Rel(used, left, "", "%d bytes are behind the last value", left)
	}
	return nil
}

func (d *decoding) flat(dst *vec.Vector, n int) error {
	skip := 0
	if d.task.Page.Sub > 0 {
		if skip = skipValues(d.p.stored, d.o.raw, int(d.task.Page.Sub)); skip < 0 {
			return ends(d.o.raw, int(d.task.Page.Sub), n)
		}
	}
	used, err := d.p.dense(dst, d.o.raw[skip:], n, d)
	if err != nil {
		return moved(err, skip)
	}
	return d.rest(skip+used, n)
}

// moved is a relative error about bytes that begin off bytes into the block.
func moved(err error, off int) error {
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
		return fault.Limitf(fault.Span{}, "", "%d lengths are more than a page may have", n)
	}
	if d.p.shape == shapeOptional && d.optionalAtOnce(dst, n) {
		return nil
	}
	return d.arrayStepwise(dst, n)
}

// arrayStepwise decodes any array column, length by length.
func (d *decoding) arrayStepwise(dst *vec.Vector, n int) error {
	a := arrays{t: d.p.stored, src: d.o.raw}
	if err := a.skipEntries(d.task.Page.Sub); err != nil {
		return err
	}
	if d.p.shape == shapeItems {
		return d.items(&a, dst, n)
	}
	var lengths []int32
	switch d.p.shape {
	case shapeLengths, shapePresence:
		lengths = vec.Fixed[int32](dst, dst.Extend(n))
	default:
		lengths = as[int32](d.scratch.Bytes(4*n), n)
	}
	s, err := a.split(lengths, d.scratch.Bytes(len(a.src)-a.pos+1))
	if err != nil {
		return err
	}
	if err := d.rest(a.pos, n); err != nil {
		return err
	}
	if a.run > 0 && d.whole(n) {
		return fault.Rel(a.pos, 0, "length", "the last run of lengths goes on for %d entries behind the block's %d",
			a.run, n)
	}
	switch d.p.shape {
	case shapePresence:
		return single(lengths)
	case shapeList:
		return d.list(dst, lengths, s)
	case shapeOptional:
		return d.optional(dst, lengths, s)
	}
	return nil
}

// single refuses lengths other than 0 and 1.
func single(lengths []int32) error {
	for i, l := range lengths {
		if l > 1 {
			return fault.Rel(0, 0, "entry["+strconv.Itoa(i)+"].length", "%d, of a union's branch it is 0 or 1", l)
		}
	}
	return nil
}

// items decodes the n values of an array column, whose entries are counted by its own lengths.
func (d *decoding) items(a *arrays, dst *vec.Vector, n int) error {
	scratch := d.scratch.Bytes(len(a.src) + 1)
	var one [1]int32
	var all []byte
	bits := 0
	for a.pos < len(a.src) || a.run > 0 {
		if a.run > 0 && a.of == 0 {
			a.run = 0
			continue
		}
		from := a.values
		s, err := a.split(one[:], scratch[len(all):])
		if err != nil {
			return err
		}
		if a.t != Boolean {
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
		return fault.Rel(0, len(a.src), "", "the block has %d values, its lengths make %d", a.values, n)
	}
	_, err := d.p.dense(dst, all, n, d)
	return err
}

// list makes lists of lengths and values.
func (d *decoding) list(dst *vec.Vector, lengths []int32, s split) error {
	items := dst.Items
	if s.count > 1<<31-64-int64(items.Len()) || s.count*int64(max(items.Width(), 1)) > d.limit {
		return fault.Limitf(fault.Span{}, "", "%d values are more than a page may have", s.count)
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

// optional makes values, or null, of lengths that are 1 or 0.
func (d *decoding) optional(dst *vec.Vector, lengths []int32, s split) error {
	if err := single(lengths); err != nil {
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

// matrix makes lists of equal lengths.
func (d *decoding) matrix(dst *vec.Vector, n int) error {
	w := int64(d.p.width)
	if int64(n)*w > d.limit {
		return fault.Limitf(fault.Span{}, "", "%d rows of %d values are more than a page may have", n, w)
	}
	skip := 0
	if sub := d.task.Page.Sub; sub > 0 {
		if d.p.stored == Boolean && sub*w%8 != 0 {
			return fault.Unsupportedf(fault.Span{}, "", "a block of %d rows of %d booleans", d.b.rows, w)
		}
		if sub*w > int64(len(d.o.raw))*8 && d.p.stored != Null {
			return ends(d.o.raw, int(sub), n)
		}
		if skip = skipValues(d.p.stored, d.o.raw, int(sub*w)); skip < 0 {
			return ends(d.o.raw, int(sub), n)
		}
	}
	if d.p.stored.least(int64(n)*w) > int64(len(d.o.raw)-skip) {
		return ends(d.o.raw, 0, n)
	}
	offs := dst.Offsets(dst.Extend(n))
	for i := range n {
		offs[i+1] = offs[i] + int32(w)
	}
	used, err := d.p.dense(dst.Items, d.o.raw[skip:], n*int(w), d)
	if err != nil {
		return moved(err, skip)
	}
	return d.rest(skip+used, n)
}

// decodeBlock decodes a block by itself, number t.Page.Ordinal of its column and of t.N entries, in parts, as a scan
// would. dst has those of the last part then.
func decodeBlock(ctx context.Context, f *file, p *physical, b *block, t format.Task, dst *vec.Vector) error {
	c := &chunk{f: f, p: p, rows: vec.Range{To: 1 << 62}, cb: &columnBlocks{blocks: []block{*b}}}
	ordinal := t.Page.Ordinal
	for c.i == 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.Page = c.page(b)
		t.Page.Entries = b.rows
		if p.counted() {
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
