package cfile

import (
	"cmp"
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
	"stoa/internal/sorted"
	"stoa/internal/sum"
	"stoa/region"
	"stoa/vec"
	"stoa/wire"
)

// recovery finds the data blocks of a damaged CFile. Intact indexes are used as they are. Otherwise blocks are taken
// from the readable parts of both indexes, and the bytes between these blocks are searched. A block is recognized by
// its structure, its ordinal and number of rows, and its checksum.
type recovery struct {
	*check.Reporter
	ctx     context.Context
	f       *columnfile.File
	found   []region.Finding
	known   []columnfile.DataBlock // by offset
	budget  int64                  // bytes that may still be searched
	data    []byte                 // the whole file if it is searched, else nil
	guessed bool                   // blocks were found by guessing options
	suspect bool                   // no checksum proves that the footer is intact
	damaged bool                   // the footer is lost, or its checksum is wrong
	rows    int64                  // number of rows known from other sources; -1: unknown
	stated  int64                  // number of rows that the footer states
	limit   error                  // error of an exceeded limit, which is not damage
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

// Recovered returns the footer of the single file that Format.Recover opened as r, as far as it survived or was stated
// by options, and the kind of the file that follows from it. For any other reader the kind is KindUnknown.
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

// recoverFile opens what is left of the CFile at tg. It returns nil blocks if the indexes of the file are intact. rows
// is the number of rows known from other sources; -1: unknown.
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
	r.f, r.suspect = f, err != nil || o.NoVerify || !f.Footer.Checksums()
	if err == nil && !f.Footer.Checksums() && r.flipBack() { // the flipped bit is the feature bit for checksums
		r.Whole = at
		r.Blame("footer", fault.Corruptf(f.FootSpan(), "footer.incompatible_features", "it says that there are no "+
			"checksums, and before it is one"), -1, -1)
	}
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
	r.f.Unproven = r.guessed || r.damaged
	return r.f, blocks, r.found, nil
}

// frames recovers a file whose header or footer failed with err. The header can be replaced, because it has nothing
// that the footer lacks. A footer is also searched for before the end of the file. A damaged footer that can be parsed
// is used although its checksum is wrong, unless the options state the same properties and blocks are found under them.
// If it cannot be parsed, the options must state them.
func (r *recovery) frames(at fault.Span, o format.OpenOptions, opts columnfile.ReadOptions, err error) error {
	r.Whole = r.f.At
	r.Blame("footer", err, -1, -1)
	if r.withoutHeader(r.f, err) || r.flipBack() || r.findFooter(at, o) {
		return nil
	}
	r.damaged, o.NoVerify = true, true
	f, again := columnfile.OpenFile(r.ctx, r.f.Src, at, o)
	f.NoVerify = r.f.NoVerify
	if again == nil || r.withoutHeader(f, again) {
		if err := r.guessOr(f, at, o, opts); err != nil {
			return err
		}
		return r.digits(opts)
	}
	if opts.Typ < 0 {
		var e *fault.Error
		if errors.As(again, &e) {
			out := *e
			out.Reason += "; if you know what the file holds, pass type=, encoding=, compression=, nullable=, " +
				"checksums=; or schema=FILE, the schema of a file like it"
			return &out
		}
		return again
	}
	return r.guess(f, opts)
}

// withoutHeader makes r use f without its header if err concerns only the header.
func (r *recovery) withoutHeader(f *columnfile.File, err error) bool {
	var e *fault.Error
	if !errors.As(err, &e) || !strings.HasPrefix(e.Path, "header") || f.Resolve() != nil {
		return false
	}
	f.Header = block.Header{Version: f.Footer.Version}
	f.Head = f.Head[:min(len(f.Head), block.Tail)] // its length is not certain
	r.f = f
	return true
}

// findFooter searches the last MiB for a footer, in case data was appended to the file. The footer's indexes must end
// right before it and its positional index must be intact; this rules out the footer of a CFile that is stored in a
// cell.
func (r *recovery) findFooter(at fault.Span, o format.OpenOptions) bool {
	const maxSearch = 1 << 20
	n := min(at.Len, maxSearch)
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

// assume sets the footer of f from the options, and makes f the file to be recovered. The error is Unsupported.
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
	// the length of the header is not certain
	if f.Head = f.Head[:min(len(f.Head), block.Tail)]; len(f.Head) < block.Tail ||
		block.MagicVersion(f.Head[:block.MagicLen]) == 0 {
		f.Head = nil
	}
	f.Codec, _ = block.CodecOf(t.Compression)
	r.f = f
	return nil
}

// blocks finds the data blocks; nil if the indexes are intact. If they are damaged and the footer declares that there
// are no checksums, that declaration may be damaged too, so the options are tried.
func (r *recovery) blocks(o format.OpenOptions, opts columnfile.ReadOptions) ([]columnfile.DataBlock, error) {
	t := &r.f.Footer
	r.stated = t.NumValues
	if t.NumValues >= 0 && r.f.Kind() == block.KindBloom {
		return nil, nil
	}
	if t.NumValues >= 0 && t.NumValues != r.rows && r.suspect {
		if uncertain, err := r.f.CorrectRows(r.ctx, t.Checksums(), r.rows); err != nil {
			r.Whole = r.f.At
			r.Blame("rows", err, -1, -1)
			switch reported := &r.found[len(r.found)-1]; {
			case uncertain.Len() > 0:
				reported.Rows = [2]int64{uncertain.From, uncertain.To}
			case t.NumValues == r.rows || r.f.Stated:
				reported.Lost = 0
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
	sorted.By(r.known, func(a, b columnfile.DataBlock) int { return cmp.Compare(a.Ptr.Offset, b.Ptr.Offset) })
	r.known = slices.CompactFunc(r.known, func(a, b columnfile.DataBlock) bool { return a.Ptr.Offset == b.Ptr.Offset })
	if err := r.load(); err != nil {
		return nil, err
	}
	if err := r.find(); err != nil {
		return nil, err
	}
	r.count()
	return r.complete(), nil
}

// lastEndsAt reports whether the last block found ends after exactly n rows, which confirms n as the number of rows.
func (r *recovery) lastEndsAt(n int64) bool {
	k := len(r.known) - 1
	return k >= 0 && r.known[k].First+r.known[k].Rows == n
}

// walk appends to known the blocks of the readable part of an index tree, and reports whether the tree is intact.
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
			if v.gaps.positions {
				c.N++
			}
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

// load reads the whole file, up to the page limit, and sets the budget of the search.
func (r *recovery) load() error {
	f := r.f
	if f.At.Len > f.Limits.Page {
		return fault.Limitf(f.At, "", "%d bytes, at most %d are searched (page limit)", f.At.Len, f.Limits.Page)
	}
	r.data = make([]byte, f.At.Len)
	r.budget = 64*f.At.Len + 1<<20
	return format.ReadFull(r.ctx, f.Src, f.At, "", r.data)
}

// search collects the known blocks and searches the bytes between them. Where the index did not state a block's rows,
// the block itself must. If endless is true the footer's number of values is not trusted.
func (r *recovery) search(endless bool) error {
	var all []columnfile.DataBlock
	at, row := int64(len(r.f.Head)), int64(0)
	end := r.f.At.Len - int64(len(r.f.Foot))
	for _, b := range append(r.known, columnfile.DataBlock{Ptr: block.BlockPtr{Offset: end}, First: -2}) {
		if b.Ptr.Offset < at {
			continue // the index entry contradicts blocks already found
		}
		until := r.f.Footer.NumValues
		if endless {
			until = -1
		}
		if b.First >= 0 {
			until = b.First
		}
		if b.First < 0 || b.First > row {
			all, row = r.searchRange(all, at, b.Ptr.Offset, row, until)
		}
		if b.First == -2 {
			break
		}
		if b.Rows < 0 {
			x, n := r.block(b.Ptr.Offset, b.Ptr.Offset+b.Ptr.Size)
			if n != b.Ptr.Size || x.First < row || x.First > row && until >= 0 && x.First+x.Rows > until {
				continue // not a block of this file, or its ordinal is damaged
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

// searchRange searches the bytes [at, end) for blocks whose rows are at or after row and, if until is not negative, end
// at or before until. It appends them to all, and returns the row after the last of them. If until is negative and
// there are checksums, a block may have rows that earlier blocks have, too: some blocks may then belong to a CFile that
// is stored in a cell whose own block is damaged. In that case the chain of blocks with the most bytes is chosen.
func (r *recovery) searchRange(all []columnfile.DataBlock, at, end, row, until int64) ([]columnfile.DataBlock, int64) {
	from, before := len(all), row
	contradicts := false
	for at < end && r.budget > 0 && (until < 0 || row < until) && r.ctx.Err() == nil {
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
			r.budget--
			continue
		}
		all = append(all, b)
		at += n
		row = b.First + b.Rows
	}
	if contradicts {
		all = append(all[:from], heaviestChain(all[from:])...)
		last := all[len(all)-1]
		row = last.First + last.Rows
	}
	return all, row
}

// trusted reports whether bytes that look like a block after a gap in the rows are one: the checksum proves it, or the
// block ends at row until, or the next block begins at the row where it ends.
func (r *recovery) trusted(b columnfile.DataBlock, end, until int64) bool {
	if r.f.Footer.Checksums() || b.First+b.Rows == until {
		return true
	}
	next, n := r.block(b.Ptr.Offset+b.Ptr.Size, end)
	return n > 0 && next.First == b.First+b.Rows
}

// block recognizes a data block at offset at that does not reach beyond end. n is its size in bytes, -1 if there is
// none.
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

// open measures and opens the data block that b begins with, see measure.
func (r *recovery) open(b []byte) (stored, raw []byte, ok bool) {
	return r.measure(b, func(raw []byte) int { return block.DataExtent(raw, &r.f.Footer) })
}

// measure opens the block at the beginning of b; extent measures its decompressed form. stored is the whole block with
// its checksum, raw its decompressed contents. ok is false if b does not begin with a block.
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
	r.budget -= int64(n) / 16
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
	r.budget -= int64(len(blk.Data)) / 16
	return stored, blk.Data, true
}

// packed returns the size in bytes, without the checksum, of the compressed block at the beginning of b; -1 if there is
// none.
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
	r.budget -= int64(max(n, 64))
	if n < 0 {
		return -1
	}
	return head + n
}

// decodes reports whether a block can be decoded; without a checksum nothing else proves that it is a block. Dictionary
// codes are not decoded, because the dictionary may not have been found yet.
func (r *recovery) decodes(b columnfile.DataBlock, stored []byte) bool {
	r.budget -= int64(len(stored))
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

// dictionary searches the bytes [at, end), which follow the data blocks, for the dictionary.
func (r *recovery) dictionary(at, end int64) {
	for ; at < end && r.budget > 0; at++ {
		stored, raw, ok := r.measure(r.data[at:end], block.PlainBinaryExtent)
		if !ok {
			r.budget--
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

// complete returns the blocks with lost blocks filled into the gaps between them, and reports the lost ones.
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
	} else { // the last block is lost, with an unknown number of rows, which is reported when it is read
		p := block.BlockPtr{Offset: at, Size: max(end-at, 0)}
		out = append(out, columnfile.DataBlock{Ptr: p, First: row, Rows: -1,
			Lost: fault.Corruptf(f.Span(p), "", "the last block was not found: its number of rows is not known")})
	}
	if f.Footer.NumValues < 0 {
		f.Footer.NumValues = row
	}
	r.Rows("cfile.recovered", f.At, [2]int64{0, row}, 0, "%s found", fault.Count(n, "block"))
	return out
}
