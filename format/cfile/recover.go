package cfile

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
	"stoa/internal/check"
	"stoa/internal/codec"
	"stoa/internal/sum"
	"stoa/region"
	"stoa/vec"
	"stoa/wire"
)

// recovery finds the data blocks of a damaged CFile. If its indexes are intact, they are used. Otherwise blocks are
// taken from what is left of both indexes, and the bytes in between are searched: a block is recognized by its
// structure, the rows it says it has, and its checksum.
type recovery struct {
	*check.Reporter
	ctx     context.Context
	f       *columnfile.File
	found   []region.Finding
	known   []columnfile.DataBlock // by place
	work    int64                  // bytes that may still be searched
	data    []byte                 // the whole file, if it is searched
	guessed bool                   // blocks were found by guess
	doubted bool                   // no checksum proves that the footer is intact
	rows    int64                  // number of rows according to other sources; -1: not known
	limit   error                  // a budget was exceeded: no damage
	vals    *vec.Vector
	spare   vec.Arena
}

// recoverTable implements format.Format.Recover.
func recoverTable(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, []region.Finding,
	error) {
	opts, err := columnfile.ParseOptions(o.Opts)
	if err != nil {
		return nil, nil, err
	}
	if info, err := tg.Tree.Stat(ctx, tg.Name); err == nil && info.Dir {
		return recoverDir(ctx, tg, o, opts)
	}
	if opts, err = opts.OfFile(ctx, tg); err != nil {
		return nil, nil, err
	}
	f, blocks, findings, err := recoverFile(ctx, tg, o, opts, -1)
	if err != nil {
		return nil, findings, err
	}
	r, err := newTable(ctx, tg, f, opts, blocks)
	return r, findings, err
}

// Recovered is the footer of a single column file that Format.Recover gave, as far as it was left or the
// options reported it, and what the file is in Kudu by that.
func Recovered(r format.Reader) (block.Footer, block.Kind) {
	switch x := r.(type) {
	case *table:
		if len(x.files) == 1 {
			return x.files[0].File.Footer, x.files[0].File.Kind()
		}
	case *auxiliary:
		return x.f.Footer, x.f.Kind()
	}
	return block.Footer{}, block.KindUnknown
}

// recoverFile opens the CFile at tg as far as that goes. Without blocks the indexes of f are to be used. rows is
// how many there are, if that is known from elsewhere, else -1.
func recoverFile(ctx context.Context, tg format.Target, o format.OpenOptions, opts columnfile.ReadOptions,
	rows int64) (*columnfile.File, []columnfile.DataBlock, []region.Finding, error) {
	src, base, size, err := tg.Open(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	r := &recovery{ctx: ctx, rows: rows}
	r.Reporter = reporter(ctx, tg.Name, func(f region.Finding) bool { r.found = append(r.found, f); return true })
	at := fault.Span{Object: tg.Name, Off: base, Len: size}
	f, err := columnfile.OpenFile(ctx, src, at, o)
	r.f, r.doubted = f, err != nil || o.NoVerify || !f.Footer.Checksums()
	if err != nil {
		if !columnfile.IsDamage(err) && !errors.Is(err, fault.Unsupported) {
			src.Close()
			return nil, nil, nil, err
		}
		if err = r.frames(at, o, opts, err); err != nil {
			src.Close()
			return nil, nil, r.found, err
		}
	}
	blocks, err := r.blocks(o, opts)
	if err != nil {
		src.Close()
		return nil, nil, r.found, err
	}
	return r.f, blocks, r.found, nil
}

// frames makes do with a header or footer that failed with err. The header says nothing that the footer does
// not. A footer that is not the end of the file is looked for. What can be parsed of a damaged one is trusted
// although the checksum is wrong, unless the options say what it said and blocks are found by that; where
// nothing can be parsed the options must.
func (r *recovery) frames(at fault.Span, o format.OpenOptions, opts columnfile.ReadOptions, err error) error {
	r.Whole = r.f.At
	r.Blame("footer", err, -1, -1)
	if r.headless(r.f, err) || r.longer(at, o) {
		return nil
	}
	o.NoVerify = true
	f, again := columnfile.OpenFile(r.ctx, r.f.Src, at, o)
	f.NoVerify = r.f.NoVerify
	if again == nil || r.headless(f, again) {
		return r.guessOr(f, at, o, opts)
	}
	if opts.Typ < 0 {
		var e *fault.Error
		if errors.As(again, &e) {
			out := *e
			out.Reason += "; if you know what the file holds, say type=, encoding=, compression=, nullable=, " +
				"checksums=; or schema=FILE, the schema of a file like it"
			return &out
		}
		return again
	}
	return r.guess(f, opts)
}

// headless uses f without its header, if err is about nothing but that.
func (r *recovery) headless(f *columnfile.File, err error) bool {
	var e *fault.Error
	if !errors.As(err, &e) || !strings.HasPrefix(e.Path, "header") || f.Resolve() != nil {
		return false
	}
	f.Header = block.Header{Version: f.Footer.Version}
	f.Head = f.Head[:min(len(f.Head), block.Tail)] // how long it was is not certain
	r.f = f
	return true
}

// longer searches for a footer before the end of the file, after which other data was appended. Its indexes must end
// right before it, and the positional one be intact, so that it is not the footer of a file within a cell.
func (r *recovery) longer(at fault.Span, o format.OpenOptions) bool {
	const most = 1 << 20
	n := min(at.Len, most)
	b := make([]byte, n)
	if format.ReadFull(r.ctx, r.f.Src, at.Sub(at.Len-n, n), "footer", b) != nil {
		return false
	}
	for i := len(b) - block.Tail - 1; i >= 0; i-- {
		if block.MagicVersion(b[i:i+block.MagicLen]) == 0 {
			continue
		}
		f, err := columnfile.OpenFile(r.ctx, r.f.Src, at.Sub(0, at.Len-n+int64(i+block.Tail)), o)
		if err != nil || f.Footer.PosIdx == nil {
			continue
		}
		last := *f.Footer.PosIdx
		if v := f.Footer.ValIdx; v != nil && v.Offset > last.Offset {
			last = *v
		}
		if last.Offset+last.Size != f.At.Len-int64(len(f.Foot)) {
			continue
		}
		whole := &recovery{Reporter: r.Reporter, ctx: r.ctx, f: f}
		if whole.walk(f.Positions()) {
			r.f = f
			return true
		}
	}
	return false
}

// assume sets the footer from the options.
func (r *recovery) assume(f *columnfile.File, opts columnfile.ReadOptions) error {
	t := block.Footer{Version: max(f.Header.Version, 1), Type: opts.Typ, Encoding: opts.Encoding,
		Compression: opts.Compression, Nullable: opts.Nullable, NumValues: -1}
	if !opts.NoChecksums {
		t.Incompatible = block.FeatureChecksums
	}
	if opts.Array {
		t.Incompatible |= block.FeatureArrayBlocks
	}
	if f.Header.Version == 0 {
		f.Header.Version = 2
	}
	if err := block.Support(&t, f.At); err != nil {
		return err
	}
	f.Footer, f.Foot = t, nil
	// how long it was is not certain
	if f.Head = f.Head[:min(len(f.Head), block.Tail)]; len(f.Head) < block.Tail ||
		block.MagicVersion(f.Head[:block.MagicLen]) == 0 {
		f.Head = nil
	}
	f.Codec, _ = block.CodecOf(t.Compression)
	r.f = f
	return nil
}

// blocks finds the data blocks; nil if the indexes are intact. If they are not, and the footer declares no checksums,
// that declaration may be what is damaged.
func (r *recovery) blocks(o format.OpenOptions, opts columnfile.ReadOptions) ([]columnfile.DataBlock, error) {
	t := &r.f.Footer
	if t.NumValues >= 0 && r.f.Kind() == block.KindBloom {
		return nil, nil
	}
	if t.NumValues >= 0 && t.NumValues != r.rows && r.doubted {
		if doubt, err := r.f.MendRows(r.ctx, t.Checksums()); err != nil {
			r.Whole = r.f.At
			r.Blame("rows", err, -1, -1)
			if reported := &r.found[len(r.found)-1]; doubt.Len() > 0 {
				reported.Rows = [2]int64{doubt.From, doubt.To}
			}
		}
	}
	sound := t.NumValues >= 0
	if t.PosIdx != nil {
		sound = r.walk(r.f.Positions()) && sound
	}
	if t.ValIdx != nil && (t.PosIdx == nil || !sound) {
		sound = r.walk(r.f.Values()) && sound && t.PosIdx == nil
	}
	if r.limit != nil {
		return nil, r.limit
	}
	if sound || t.NumValues >= 0 && t.PosIdx == nil && t.ValIdx == nil {
		return nil, nil
	}
	if !t.Checksums() && opts.Typ >= 0 && !opts.NoChecksums && !r.guessed {
		if err := r.guessOr(r.f, r.f.At, o, opts); err != nil {
			return nil, err
		}
		if r.guessed {
			r.known = nil
		}
	}
	slices.SortFunc(r.known, func(a, b columnfile.DataBlock) int {
		return int(
			min(max(a.Ptr.Offset-b.Ptr.Offset, -1), 1))
	})
	r.known = slices.CompactFunc(r.known, func(a, b columnfile.DataBlock) bool { return a.Ptr.Offset == b.Ptr.Offset })
	if err := r.load(); err != nil {
		return nil, err
	}
	if err := r.find(); err != nil {
		return nil, err
	}
	return r.complete(), nil
}

// bearsOut reports whether the last block that was found ends after exactly n rows, which proves that number.
func (r *recovery) bearsOut(n int64) bool {
	k := len(r.known) - 1
	return k >= 0 && r.known[k].First+r.known[k].Rows == n
}

// walk takes the blocks from the readable part of an index tree, and reports whether that was all.
func (r *recovery) walk(w *columnfile.Walker) bool {
	sound := true
	v := &verifier{ctx: r.ctx, f: r.f}
	v.Reporter = reporter(r.ctx, r.Part, func(f region.Finding) bool {
		if sound = false; f.Class == fault.Limit {
			r.limit = fault.New(fault.Limit, f.At, f.Path, "%s", f.Message)
			return false
		}
		r.found = append(r.found, f)
		return true
	})
	v.Whole = r.f.At
	n := 0
	v.walk(w, func(w *columnfile.Walker, e block.IndexEntry) {
		b := columnfile.DataBlock{Ptr: e.Ptr, First: -1, Rows: -1}
		if w.Name == "posidx" {
			c := columnfile.Chunk{F: r.f, Walk: w, N: 1 + n}
			var err error
			if b.First, b.Rows, err = c.Place(e); err != nil {
				v.Blame("index", err, -1, -1)
				b.First, b.Rows = -1, -1
			}
		}
		n++
		if err := w.Block(e); err != nil {
			v.Blame("index", err, -1, -1)
			return
		}
		r.known = append(r.known, b)
	})
	return sound
}

// load reads the whole file.
func (r *recovery) load() error {
	f := r.f
	if f.At.Len > f.Limits.Page {
		return fault.Limitf(f.At, "", "%d bytes, at most %d are searched (page limit)", f.At.Len, f.Limits.Page)
	}
	r.data = make([]byte, f.At.Len)
	r.work = 64*f.At.Len + 1<<20
	return format.ReadFull(r.ctx, f.Src, f.At, "", r.data)
}

// search looks at the known blocks, whose rows they must say themselves if the index did not, and between them;
// endless: the footer's number of values is not trusted.
func (r *recovery) search(endless bool) error {
	var all []columnfile.DataBlock
	at, row := int64(len(r.f.Head)), int64(0)
	end := r.f.At.Len - int64(len(r.f.Foot))
	for _, b := range append(r.known, columnfile.DataBlock{Ptr: block.BlockPtr{Offset: end}, First: -2}) {
		if b.Ptr.Offset < at {
			continue // an index entry that contradicts what was found
		}
		until := r.f.Footer.NumValues
		if endless {
			until = -1
		}
		if b.First >= 0 {
			until = b.First
		}
		if b.First < 0 || b.First > row {
			all, row = r.between(all, at, b.Ptr.Offset, row, until)
		}
		if b.First == -2 {
			break
		}
		if b.Rows < 0 {
			x, n := r.block(b.Ptr.Offset, b.Ptr.Offset+b.Ptr.Size)
			if n != b.Ptr.Size || x.First < row {
				continue
			}
			b = x
		}
		all = append(all, b)
		at, row = b.Ptr.Offset+b.Ptr.Size, b.First+b.Rows
	}
	if r.known = all; r.limit != nil {
		return r.limit
	}
	if r.f.Footer.Encoding == block.Dict && r.f.Footer.Dict == nil {
		r.dictionary(at, end)
	}
	return r.ctx.Err()
}

// between searches the bytes [at, end) for blocks with rows from row on, below until if that is not negative.
// If it is, and a block is whole whose rows are after those that were found, these may be those of a CFile in
// a cell, whose own block is damaged: what most bytes agree on is taken.
func (r *recovery) between(all []columnfile.DataBlock, at, end, row, until int64) ([]columnfile.DataBlock, int64) {
	from, before := len(all), row
	contradicts := false
	for at < end && r.work > 0 && (until < 0 || row < until) && r.ctx.Err() == nil {
		b, n := r.block(at, end)
		if n > 0 && until < 0 && r.f.Footer.Checksums() && before <= b.First && b.First < row {
			contradicts = true
			all = append(all, b)
			at += n
			continue
		}
		if n < 0 || b.First < row || until >= 0 && b.First+b.Rows > until || b.First > row &&
			!r.trusted(b, end, until) {
			at++
			r.work--
			continue
		}
		all = append(all, b)
		at += n
		row = b.First + b.Rows
	}
	if contradicts {
		all = append(all[:from], heaviest(all[from:])...)
		last := all[len(all)-1]
		row = last.First + last.Rows
	}
	return all, row
}

// trusted reports whether a block after a gap in the rows is one: its checksum proves it, or the block after it fits.
func (r *recovery) trusted(b columnfile.DataBlock, end, until int64) bool {
	if r.f.Footer.Checksums() || b.First+b.Rows == until {
		return true
	}
	next, n := r.block(b.Ptr.Offset+b.Ptr.Size, end)
	return n > 0 && next.First == b.First+b.Rows
}

// block recognizes a data block at offset at, which ends before end; n is its size, -1 if not known.
func (r *recovery) block(at, end int64) (b columnfile.DataBlock, n int64) {
	stored, raw, ok := r.open(r.data[at:end])
	if !ok {
		return b, -1
	}
	c := wire.NewInnerCursor(raw, fault.Span{}, "")
	lay := block.ParseDataBlock(c, &r.f.Footer)
	if c.Err() != nil || lay.Rows == 0 || isIndex(raw) {
		return b, -1
	}
	b = columnfile.DataBlock{Ptr: block.BlockPtr{Offset: at, Size: int64(len(stored))},
		First: int64(lay.Values.Ordinal), Rows: int64(lay.Rows)}
	if !r.f.Footer.Checksums() && !r.decodes(b, stored) {
		return b, -1
	}
	return b, int64(len(stored))
}

// isIndex reports whether a block is an index block; a short one may look like plain values.
func isIndex(raw []byte) bool {
	b := block.Block{Data: raw}
	c := b.Cursor("")
	x := block.ParseIndexBlock(c, false)
	if c.Err() != nil || x.N == 0 {
		return false
	}
	x.Block = b
	for i := range x.N {
		if _, err := x.Entry(i); err != nil {
			return false
		}
	}
	return true
}

// open measures and opens what begins with b: stored is all of it, with the checksum.
func (r *recovery) open(b []byte) (stored, raw []byte, ok bool) {
	return r.measure(b, func(raw []byte) int { return block.DataExtent(raw, &r.f.Footer) })
}

// measure opens a block that begins with b, whose decoded form extent measures.
func (r *recovery) measure(b []byte, extent func([]byte) int) (stored, raw []byte, ok bool) {
	n, crc := -1, 0
	if r.f.Footer.Checksums() {
		crc = 4
	}
	if r.f.Codec == nil {
		n = extent(b)
	} else {
		n = r.packed(b, extent)
	}
	if n <= 0 || n+crc > len(b) {
		return nil, nil, false
	}
	stored = b[:n+crc]
	r.work -= int64(n) / 16
	if crc > 0 && sum.CRC32C(b[:n]) != block.Le32(b[n:]) {
		return nil, nil, false
	}
	if r.f.Codec == nil {
		return stored, b[:n], true
	}
	blk, err := r.f.OpenBlock(stored, r.f.At, nil, true)
	if crc > 0 && fault.OverBudget(err) {
		r.limit = err
	}
	if err != nil || extent(blk.Data) != len(blk.Data) {
		return nil, nil, false
	}
	r.work -= int64(len(blk.Data)) / 16
	return stored, blk.Data, true
}

// packed measures a block of a file with a codec.
func (r *recovery) packed(b []byte, extent func([]byte) int) int {
	head := 4
	if r.f.Header.Version == 1 {
		head = 8
	}
	if len(b) < head {
		return -1
	}
	raw := int64(block.Le32(b[head-4:]))
	if raw == 0 || raw > block.MaxUncompressed {
		return -1
	}
	if head == 8 {
		return block.UpTo(b, int64(block.Le32(b))+8)
	}
	if n := int64(head) + raw; n <= int64(len(b)) && int64(extent(b[head:n])) == raw {
		return int(n) // not compressed
	}
	n := codec.Extent(r.f.Footer.Compression.String(), b[head:], int(raw))
	r.work -= int64(max(n, 64))
	if n < 0 {
		return -1
	}
	return head + n
}

// decodes reports whether a block can be decoded: without a checksum its structure is all there is. Words of a
// dictionary are trusted.
func (r *recovery) decodes(b columnfile.DataBlock, stored []byte) bool {
	r.work -= int64(len(stored))
	t := format.Task{Page: format.Page{Spans: []fault.Span{r.f.Span(b.Ptr)},
		Own: &columnfile.DataBlock{First: -1, Rows: -1}}, N: min(b.Rows, block.MaxSub),
		Bytes: [][]byte{stored}, Scratch: &r.spare, Limits: r.f.Limits}
	if r.vals == nil {
		v, err := vec.New(r.f.Field(columnfile.ReadOptions{Scale: -1}).Type, memory.DefaultAllocator)
		if err != nil {
			return false
		}
		r.vals = v
	}
	r.vals.Reset()
	r.spare.Reset()
	lay, err := r.f.Decode(&t, r.vals, nil)
	return err == nil || lay.Values.Form == block.FormCodes
}

// dictionary searches for the dictionary, which follows the data blocks.
func (r *recovery) dictionary(at, end int64) {
	for ; at < end && r.work > 0; at++ {
		stored, raw, ok := r.measure(r.data[at:end], block.PlainBinaryExtent)
		if !ok {
			r.work--
			continue
		}
		c := wire.NewInnerCursor(raw, fault.Span{}, "")
		v := block.ParsePlainBinary(c)
		offs := make([]int32, v.Count+1)
		if c.Err() == nil && v.Count > 0 && v.Ordinal == 0 && v.Starts(offs, 0) == nil {
			r.f.Footer.Dict = &block.BlockPtr{Offset: at, Size: int64(len(stored))}
			return
		}
	}
}

// complete fills the gaps between the blocks with lost pages, and reports them.
func (r *recovery) complete() []columnfile.DataBlock {
	f := r.f
	out := []columnfile.DataBlock{}
	at, row := int64(len(f.Head)), int64(0)
	lose := func(until, end int64) {
		if until <= row {
			return
		}
		p := block.BlockPtr{Offset: at, Size: max(end-at, 0)}
		err := fault.Corruptf(f.Span(p), "", "the blocks of rows %d to %d were not found", row, until)
		r.Rows("cfile.rows.lost", f.Span(p), [2]int64{row, until}, until-row, "%s", err.Reason)
		out = append(out, columnfile.DataBlock{Ptr: p, First: row, Rows: until - row, Lost: err})
		row = until
	}
	n := 0
	for _, b := range r.known {
		lose(b.First, b.Ptr.Offset)
		out = append(out, b)
		at, row = b.Ptr.Offset+b.Ptr.Size, b.First+b.Rows
		n++
	}
	if end := f.At.Len - int64(len(f.Foot)); !f.Endless {
		lose(min(f.Footer.NumValues, 1<<32), end) // an ordinal has 32 bits
	} else { // the last block is lost, and its rows are reported as soon as that is met
		p := block.BlockPtr{Offset: at, Size: max(end-at, 0)}
		out = append(out, columnfile.DataBlock{Ptr: p, First: row, Rows: -1,
			Lost: fault.Corruptf(f.Span(p), "", "the last block was not found: nobody knows how many rows it had")})
	}
	if f.Footer.NumValues < 0 {
		f.Footer.NumValues = row
	}
	r.Rows("cfile.recovered", f.At, [2]int64{0, row}, 0, "%d blocks were found", n)
	return out
}
