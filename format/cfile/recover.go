package cfile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/codec"
	"stoa/internal/sum"
	"stoa/region"
	"stoa/vec"
	"stoa/wire"
)

// recovery finds the data blocks of a damaged CFile again. A file whose indexes are sound is left to them. Otherwise blocks are
// taken from what is left of both indexes, and the bytes between them are searched: a block is recognized by its own
// structure, the rows it says it has, and its checksum.
type recovery struct {
	ctx     context.Context
	f       *file
	part    string
	found   []region.Finding
	known   []dataBlock // by place
	work    int64       // bytes that may still be tried
	data    []byte      // the whole file, if it is searched
	guessed bool        // blocks were found by guess
	vals    *vec.Vector
	spare   vec.Arena
}

// recoverTable is Format.Recover.
func recoverTable(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, []region.Finding, error) {
	opts, err := parseOptions(o.Opts)
	if err != nil {
		return nil, nil, err
	}
	if info, err := tg.Tree.Stat(ctx, tg.Name); err == nil && info.Dir {
		return recoverDir(ctx, tg, o, opts)
	}
	if opts, err = opts.ofFile(ctx, tg); err != nil {
		return nil, nil, err
	}
	f, blocks, findings, err := recoverFile(ctx, tg, o, opts)
	if err != nil {
		return nil, findings, err
	}
	if blocks == nil {
		r, err := newTable(ctx, tg, f, opts)
		return r, findings, err
	}
	t := openColumn(ctx, tg, f, opts)
	t.files[0].found = blocks
	return t, findings, nil
}

// Recovered is the footer of a single column file that Format.Recover gave, as far as it was left or the options told it, and what the file is
// in Kudu by that.
func Recovered(r format.Reader) (Footer, Kind) {
	switch x := r.(type) {
	case *table:
		if len(x.files) == 1 {
			return x.files[0].file.footer, x.files[0].file.kind()
		}
	case *side:
		return x.f.footer, x.f.kind()
	}
	return Footer{}, KindUnknown
}

// recoverFile opens the CFile at tg as far as that goes. Without blocks the indexes of f are to be used.
func recoverFile(ctx context.Context, tg format.Target, o format.OpenOptions, opts readOptions) (*file, []dataBlock, []region.Finding, error) {
	src, base, size, err := tg.Open(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	r := &recovery{ctx: ctx, part: tg.Name}
	at := fault.Span{Object: tg.Name, Off: base, Len: size}
	f, err := openFile(ctx, src, at, o)
	r.f = f
	if err != nil {
		if !isDamage(err) && !errors.Is(err, fault.Unsupported) {
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

// tell notes a finding about an error.
func (r *recovery) tell(where string, err error) {
	v := &verifier{ctx: r.ctx, f: r.f, part: r.part, yield: func(f region.Finding) bool { r.found = append(r.found, f); return true }}
	v.blame(where, err, -1, -1)
}

// frames makes do with a header or footer that failed with err. The header says nothing that the footer does not. A footer that is not the end of
// the file is looked for. What can be parsed of a damaged one is believed although the checksum is wrong, unless the options say what it said and
// blocks are found by that; where nothing can be parsed the options must.
func (r *recovery) frames(at fault.Span, o format.OpenOptions, opts readOptions, err error) error {
	r.tell("footer", err)
	if r.headless(r.f, err) || r.longer(at, o) {
		return nil
	}
	o.NoVerify = true
	f, again := openFile(r.ctx, r.f.src, at, o)
	f.noVerify = r.f.noVerify
	if again == nil || r.headless(f, again) {
		return r.guessOr(f, at, o, opts)
	}
	if opts.typ < 0 {
		var e *fault.Error
		if errors.As(again, &e) {
			out := *e
			out.Reason += "; if you know what the file holds, say type=, encoding=, compression=, nullable=, checksums=; or schema=FILE, the schema of a file like it"
			return &out
		}
		return again
	}
	return r.guess(f, opts)
}

// headless takes f without its header, if that is all that err is about.
func (r *recovery) headless(f *file, err error) bool {
	var e *fault.Error
	if !errors.As(err, &e) || !strings.HasPrefix(e.Path, "header") || f.settle() != nil {
		return false
	}
	f.header = Header{Version: f.footer.Version}
	f.head = f.head[:min(len(f.head), tail)] // how long it was is not certain
	r.f = f
	return true
}

// longer looks for a footer before the end of the file, behind which others have written. Its indexes must end just before it, and the one of
// positions be whole: it is not that of a file in a cell.
func (r *recovery) longer(at fault.Span, o format.OpenOptions) bool {
	const most = 1 << 20
	n := min(at.Len, most)
	b := make([]byte, n)
	if format.ReadFull(r.ctx, r.f.src, at.Sub(at.Len-n, n), "footer", b) != nil {
		return false
	}
	for i := len(b) - tail - 1; i >= 0; i-- {
		if magicVersion(b[i:i+magicLen]) == 0 {
			continue
		}
		f, err := openFile(r.ctx, r.f.src, at.Sub(0, at.Len-n+int64(i+tail)), o)
		if err != nil || f.footer.PosIdx == nil {
			continue
		}
		last := *f.footer.PosIdx
		if v := f.footer.ValIdx; v != nil && v.offset > last.offset {
			last = *v
		}
		if last.offset+last.size != f.at.Len-int64(len(f.foot)) {
			continue
		}
		whole := &recovery{ctx: r.ctx, f: f, part: r.part}
		if whole.walk(f.positions()) {
			r.f = f
			return true
		}
	}
	return false
}

// guessOr tries what the options say before f, whose footer is damaged, is believed.
func (r *recovery) guessOr(f *file, at fault.Span, o format.OpenOptions, opts readOptions) error {
	if opts.typ >= 0 {
		g, _ := openFile(r.ctx, f.src, at, o)
		g.noVerify = f.noVerify
		told := r.found
		if err := r.guess(g, opts); err == nil && r.guessed {
			return nil
		}
		if err := r.ctx.Err(); err != nil {
			return err
		}
		r.found = told
	}
	r.f = f
	return nil
}

// assume fills the footer from the options.
func (r *recovery) assume(f *file, opts readOptions) error {
	t := Footer{Version: max(f.header.Version, 1), Type: opts.typ, Encoding: opts.encoding, Compression: opts.compression, Nullable: opts.nullable, NumValues: -1}
	if !opts.noChecksums {
		t.Incompatible = featureChecksums
	}
	if opts.array {
		t.Incompatible |= featureArrayBlocks
	}
	if f.header.Version == 0 {
		f.header.Version = 2
	}
	if err := support(&t, f.at); err != nil {
		return err
	}
	f.footer, f.foot = t, nil
	if f.head = f.head[:min(len(f.head), tail)]; len(f.head) < tail || magicVersion(f.head[:magicLen]) == 0 { // how long it was is not certain
		f.head = nil
	}
	f.codec, _ = codecOf(t.Compression)
	r.f = f
	return nil
}

// blocks finds the data blocks; nil if the indexes are sound. If they are not, and the footer has no word of checksums, that may be what is damaged.
func (r *recovery) blocks(o format.OpenOptions, opts readOptions) ([]dataBlock, error) {
	t := &r.f.footer
	if t.NumValues >= 0 && r.f.kind() == KindBloom {
		return nil, nil
	}
	sound := t.NumValues >= 0
	if t.PosIdx != nil {
		sound = r.walk(r.f.positions()) && sound
	}
	if t.ValIdx != nil && (t.PosIdx == nil || !sound) {
		sound = r.walk(r.f.values()) && sound && t.PosIdx == nil
	}
	if sound || t.NumValues >= 0 && t.PosIdx == nil && t.ValIdx == nil {
		return nil, nil
	}
	if !t.Checksums() && opts.typ >= 0 && !opts.noChecksums && !r.guessed {
		if err := r.guessOr(r.f, r.f.at, o, opts); err != nil {
			return nil, err
		}
		if r.guessed {
			r.known = nil
		}
	}
	slices.SortFunc(r.known, func(a, b dataBlock) int { return int(min(max(a.ptr.offset-b.ptr.offset, -1), 1)) })
	r.known = slices.CompactFunc(r.known, func(a, b dataBlock) bool { return a.ptr.offset == b.ptr.offset })
	if err := r.load(); err != nil {
		return nil, err
	}
	if err := r.search(); err != nil {
		return nil, err
	}
	return r.complete(), nil
}

// walk takes the blocks from what can be read of an index tree, and says whether that was all.
func (r *recovery) walk(w *walker) bool {
	sound := true
	v := &verifier{ctx: r.ctx, f: r.f, part: r.part, yield: func(f region.Finding) bool {
		sound = false
		r.found = append(r.found, f)
		return true
	}}
	n := 0
	v.walk(w, func(w *walker, e indexEntry) {
		b := dataBlock{ptr: e.ptr, first: -1, rows: -1}
		if w.name == "posidx" {
			c := chunk{f: r.f, walk: w, n: 1 + n}
			var err error
			if b.first, b.rows, err = c.place(e); err != nil {
				v.blame("index", err, -1, -1)
				b.first, b.rows = -1, -1
			}
		}
		n++
		if err := w.block(e); err != nil {
			v.blame("index", err, -1, -1)
			return
		}
		r.known = append(r.known, b)
	})
	return sound
}

// load reads the whole file.
func (r *recovery) load() error {
	f := r.f
	if f.at.Len > f.limits.Page {
		return fault.Limitf(f.at, "", "%d bytes are more than can be searched (%d)", f.at.Len, f.limits.Page)
	}
	r.data = make([]byte, f.at.Len)
	r.work = 64*f.at.Len + 1<<20
	return format.ReadFull(r.ctx, f.src, f.at, "", r.data)
}

// search looks at the known blocks, whose rows they must tell themselves if the index did not, and between them.
func (r *recovery) search() error {
	var all []dataBlock
	at, row := int64(len(r.f.head)), int64(0)
	end := r.f.at.Len - int64(len(r.f.foot))
	for _, b := range append(r.known, dataBlock{ptr: blockPtr{offset: end}, first: -2}) {
		if b.ptr.offset < at {
			continue // an index entry that contradicts what was found
		}
		until := r.f.footer.NumValues
		if b.first >= 0 {
			until = b.first
		}
		if b.first < 0 || b.first > row {
			all, row = r.between(all, at, b.ptr.offset, row, until)
		}
		if b.first == -2 {
			break
		}
		if b.rows < 0 {
			x, n := r.block(b.ptr.offset, b.ptr.offset+b.ptr.size)
			if n != b.ptr.size || x.first < row {
				continue
			}
			b = x
		}
		all = append(all, b)
		at, row = b.ptr.offset+b.ptr.size, b.first+b.rows
	}
	r.known = all
	if r.f.footer.Encoding == Dict && r.f.footer.Dict == nil {
		r.dictionary(at, end)
	}
	return r.ctx.Err()
}

// between searches the bytes [at, end) for blocks with rows from row on, below until if that is not negative. If it is, and a block is whole whose rows
// are behind those that were found, these may be those of a CFile in a cell, whose own block is damaged: what most bytes agree on is taken.
func (r *recovery) between(all []dataBlock, at, end, row, until int64) ([]dataBlock, int64) {
	from, before := len(all), row
	contradicts := false
	for at < end && r.work > 0 && (until < 0 || row < until) && r.ctx.Err() == nil {
		b, n := r.block(at, end)
		if n > 0 && until < 0 && r.f.footer.Checksums() && before <= b.first && b.first < row {
			contradicts = true
			all = append(all, b)
			at += n
			continue
		}
		if n < 0 || b.first < row || until >= 0 && b.first+b.rows > until || b.first > row && !r.trusted(b, end, until) {
			at++
			r.work--
			continue
		}
		all = append(all, b)
		at += n
		row = b.first + b.rows
	}
	if contradicts {
		all = append(all[:from], heaviest(all[from:])...)
		last := all[len(all)-1]
		row = last.first + last.rows
	}
	return all, row
}

// heaviest are those of blocks, which come by place, that have the most bytes of all whose rows rise.
func heaviest(blocks []dataBlock) []dataBlock {
	var ends []int64
	for _, b := range blocks {
		ends = append(ends, b.first+b.rows)
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	best := make([]int, len(ends)+1) // a Fenwick tree: of the chains that end with a row up to ends[i-1], the heaviest one's last block and 1
	weight, before := make([]int64, len(blocks)+1), make([]int, len(blocks)+1)
	for i, b := range blocks {
		n, _ := slices.BinarySearch(ends, b.first+1)
		for ; n > 0; n &= n - 1 {
			if weight[best[n]] > weight[before[i+1]] {
				before[i+1] = best[n]
			}
		}
		weight[i+1] = weight[before[i+1]] + b.ptr.size
		n, _ = slices.BinarySearch(ends, b.first+b.rows)
		for n++; n < len(best); n += n & -n {
			if weight[i+1] > weight[best[n]] {
				best[n] = i + 1
			}
		}
	}
	last := 0
	for i, w := range weight {
		if w > weight[last] {
			last = i
		}
	}
	var out []dataBlock
	for ; last > 0; last = before[last] {
		out = append(out, blocks[last-1])
	}
	slices.Reverse(out)
	return out
}

// trusted says whether a block behind a hole in the rows is one: its checksum says so, or the block behind it fits.
func (r *recovery) trusted(b dataBlock, end, until int64) bool {
	if r.f.footer.Checksums() || b.first+b.rows == until {
		return true
	}
	next, n := r.block(b.ptr.offset+b.ptr.size, end)
	return n > 0 && next.first == b.first+b.rows
}

// block recognizes a data block at offset at, which ends before end; n is its size, -1 if there is none.
func (r *recovery) block(at, end int64) (b dataBlock, n int64) {
	stored, raw, ok := r.open(r.data[at:end])
	if !ok {
		return b, -1
	}
	c := wire.NewInnerCursor(raw, fault.Span{}, "")
	lay := parseDataBlock(c, &r.f.footer)
	if c.Err() != nil || lay.rows == 0 || isIndex(raw) {
		return b, -1
	}
	b = dataBlock{ptr: blockPtr{at, int64(len(stored))}, first: int64(lay.values.ordinal), rows: int64(lay.rows)}
	if !r.f.footer.Checksums() && !r.decodes(b, stored) {
		return b, -1
	}
	return b, int64(len(stored))
}

// isIndex reports whether a block is an index block: a short one may look like plain values.
func isIndex(raw []byte) bool {
	b := block{data: raw}
	c := b.cursor("")
	x := parseIndexBlock(c, false)
	if c.Err() != nil || x.n == 0 {
		return false
	}
	x.block = b
	for i := range x.n {
		if _, err := x.entry(i); err != nil {
			return false
		}
	}
	return true
}

// open measures and opens what begins with b: stored is all of it, with the checksum.
func (r *recovery) open(b []byte) (stored, raw []byte, ok bool) {
	return r.measure(b, func(raw []byte) int { return dataExtent(raw, &r.f.footer) })
}

// measure opens a block that begins with b, whose decoded form extent measures.
func (r *recovery) measure(b []byte, extent func([]byte) int) (stored, raw []byte, ok bool) {
	n, crc := -1, 0
	if r.f.footer.Checksums() {
		crc = 4
	}
	if r.f.codec == nil {
		n = extent(b)
	} else {
		n = r.packed(b, extent)
	}
	if n <= 0 || n+crc > len(b) {
		return nil, nil, false
	}
	stored = b[:n+crc]
	r.work -= int64(n) / 16
	if crc > 0 && sum.CRC32C(b[:n]) != le32(b[n:]) {
		return nil, nil, false
	}
	if r.f.codec == nil {
		return stored, b[:n], true
	}
	blk, err := r.f.openBlock(stored, r.f.at, nil, true)
	if err != nil || extent(blk.data) != len(blk.data) {
		return nil, nil, false
	}
	r.work -= int64(len(blk.data)) / 16
	return stored, blk.data, true
}

// packed measures a block of a file with a codec.
func (r *recovery) packed(b []byte, extent func([]byte) int) int {
	head := 4
	if r.f.header.Version == 1 {
		head = 8
	}
	if len(b) < head {
		return -1
	}
	raw := int64(le32(b[head-4:]))
	if raw == 0 || raw > maxUncompressed {
		return -1
	}
	if head == 8 {
		return upTo(b, int64(le32(b))+8)
	}
	if n := int64(head) + raw; n <= int64(len(b)) && int64(extent(b[head:n])) == raw {
		return int(n) // not compressed
	}
	n := codec.Extent(r.f.footer.Compression.String(), b[head:], int(raw))
	r.work -= int64(max(n, 64))
	if n < 0 {
		return -1
	}
	return head + n
}

// decodes reports whether a block can be decoded: without a checksum its structure is all there is. Words of a dictionary are
// believed.
func (r *recovery) decodes(b dataBlock, stored []byte) bool {
	r.work -= int64(len(stored))
	t := format.Task{Page: format.Page{Spans: []fault.Span{r.f.span(b.ptr)}, Own: &dataBlock{first: -1, rows: -1}}, N: min(b.rows, maxSub),
		Bytes: [][]byte{stored}, Scratch: &r.spare, Limits: r.f.limits}
	if r.vals == nil {
		v, err := vec.New(r.f.field(readOptions{scale: -1}).Type, memory.DefaultAllocator)
		if err != nil {
			return false
		}
		r.vals = v
	}
	r.vals.Reset()
	r.spare.Reset()
	lay, err := r.f.decode(&t, r.vals, nil)
	return err == nil || lay.values.form == formCodes
}

// dictionary looks for the dictionary, which is behind the data blocks.
func (r *recovery) dictionary(at, end int64) {
	for ; at < end && r.work > 0; at++ {
		stored, raw, ok := r.measure(r.data[at:end], plainBinaryExtent)
		if !ok {
			r.work--
			continue
		}
		c := wire.NewInnerCursor(raw, fault.Span{}, "")
		v := parsePlainBinary(c)
		offs := make([]int32, v.count+1)
		if c.Err() == nil && v.count > 0 && v.ordinal == 0 && v.starts(offs, 0) == nil {
			r.f.footer.Dict = &blockPtr{at, int64(len(stored))}
			return
		}
	}
}

// complete fills the holes between the blocks with lost pages, and tells them.
func (r *recovery) complete() []dataBlock {
	f := r.f
	out := []dataBlock{}
	at, row := int64(len(f.head)), int64(0)
	lose := func(until, end int64) {
		if until <= row {
			return
		}
		p := blockPtr{at, max(end-at, 0)}
		err := fault.Corruptf(f.span(p), "", "the blocks of rows %d to %d were not found", row, until)
		r.found = append(r.found, region.Finding{Code: "cfile.rows.lost", Severity: region.Error, At: f.span(p), Message: err.Reason, Part: r.part,
			Rows: [2]int64{row, until}, Lost: until - row})
		out = append(out, dataBlock{ptr: p, first: row, rows: until - row, lost: err})
		row = until
	}
	n := 0
	for _, b := range r.known {
		lose(b.first, b.ptr.offset)
		out = append(out, b)
		at, row = b.ptr.offset+b.ptr.size, b.first+b.rows
		n++
	}
	lose(min(f.footer.NumValues, 1<<32), f.at.Len-int64(len(f.foot))) // an ordinal has 32 bits
	if f.footer.NumValues < 0 {
		f.footer.NumValues = row
	}
	r.found = append(r.found, region.Finding{Code: "cfile.recovered", Severity: region.Note, At: f.at, Part: r.part,
		Message: fmt.Sprintf("%d blocks were found", n), Rows: [2]int64{0, row}})
	return out
}
