package trevni

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni/internal/container"
	"stoa/format/trevni/internal/layout"
	"stoa/format/trevni/internal/schema"
	"stoa/format/trevni/internal/table"
	"stoa/internal/check"
	"stoa/region"
	"stoa/vec"
)

// recoverFile reads the intact parts of a file. Little in a Trevni file is stored twice, but columns follow one
// another, so a wrong start can be corrected, even after a lost column, by searching for the offset from which all
// other columns follow; and every column counts the rows. Damaged or truncated blocks are lost in the same way as to
// the ordinary reader.
func recoverFile(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, []region.Finding, error) {
	opts, err := table.ParseOptions(o.Opts)
	if err != nil {
		return nil, nil, err
	}
	r := &recoverer{ctx: ctx}
	r.Reporter = check.Collect(ctx, tg.Name, layout.Codes, &r.found)
	f, err := container.OpenTarget(ctx, tg, o)
	unproven := false
	if err != nil {
		f, unproven, err = r.breakSeal(tg, o, err)
	}
	if err != nil {
		if f, err = r.replaceMagic(tg, o, err); err != nil {
			return nil, r.found, err
		}
	}
	if err := schema.CheckLimits(f); err != nil {
		f.Src.Close()
		return nil, r.found, err
	}
	r.f = f
	f.Lenient = true
	r.findStarts()
	r.restoreChecksums()
	r.dropUnproven()
	r.recount()
	if err := r.rows(); err != nil {
		f.Src.Close()
		return nil, r.found, err
	}
	t, err := table.New(ctx, tg, f, opts)
	if err != nil {
		f.Src.Close()
		return nil, r.found, err
	}
	if unproven && o.Opts["schema"] == "" {
		r.loseScaled(t)
	}
	r.reportLost(t)
	r.found, t.Contradictions, t.PartFindings = append(r.found, t.Findings()...), nil, nil
	return t, r.found, nil
}

// recoverer is the state of recoverFile.
type recoverer struct {
	*check.Reporter
	ctx   context.Context
	f     *container.File
	found []region.Finding

	stated   int64 // number of rows in the header, as far as it is trusted
	searched int64 // bytes that were read in the search for columns
	arena    vec.Arena

	restarted []int // columns that do not begin where the header says
}

// of returns a reporter about a column.
func (r *recoverer) of(column string) *check.Reporter { return r.For(r.Part, column) }

// breakSeal opens a file whose header is damaged; failed is that error. If flipping one bit of the header makes its
// checksum match, that header is used. Otherwise, if only the checksum is wrong, the header is used unchanged, and
// unproven is true.
func (r *recoverer) breakSeal(tg format.Target, o format.OpenOptions, failed error) (f *container.File, unproven bool,
	err error) {
	broken := layout.IsSealError(failed)
	if !broken && !errors.Is(failed, fault.Corrupt) {
		return nil, false, failed
	}
	f, at := container.OpenFlippedBack(r.ctx, tg, o)
	switch {
	case broken:
		r.Report("trevni.header.checksum", fault.Span{Object: tg.Name}, "", "%s", check.Reason(failed))
	case f != nil:
		r.Blame("trevni.header.damaged", failed, -1, -1)
	default:
		return nil, false, failed
	}
	if f != nil {
		r.Report("trevni.recovered", at, "header", "one bit of the header, or of its checksum, is another: with that "+
			"bit flipped back the two agree")
		return f, false, nil
	}
	f, err = container.OpenIgnoringSeal(r.ctx, tg, o, failed)
	return f, true, err
}

// loseScaled gives up numeric columns whose scale is a digit or a letter of the schema, such as the scale of decimals
// or the unit of times: nothing proves that these are unchanged, and a different scale would change each value.
func (r *recoverer) loseScaled(t *table.Table) {
	for _, ph := range t.Plan.Phys {
		cb, err := r.f.Blocks(r.ctx, ph.Stored)
		if err != nil || ph.Has&format.Values == 0 || !isScaled(ph.Type) {
			continue
		}
		for k := range cb.Blocks {
			if b := &cb.Blocks[k]; b.Lost == nil {
				b.Lost = fault.Corruptf(b.At, fmt.Sprintf("%s.block[%d]", r.f.PathOf(ph.Stored), k), "the header is "+
					"damaged, and nothing else says that the values are %s", ph.Type)
			}
		}
	}
}

// isScaled reports whether values of type d, or of a list of it, are stored numbers times a factor that is part of the
// type.
func isScaled(d arrow.DataType) bool {
	if l, ok := d.(*arrow.ListType); ok {
		d = l.Elem()
	}
	switch d.ID() {
	case arrow.TIMESTAMP, arrow.TIME32, arrow.TIME64, arrow.DURATION:
		return true
	}
	return arrow.IsDecimal(d.ID())
}

// replaceMagic tries again with the usual magics if the file's own is damaged. failed is the error with that magic.
func (r *recoverer) replaceMagic(tg format.Target, o format.OpenOptions, failed error) (*container.File, error) {
	for _, version := range []byte{2, 1} {
		src, base, size, err := tg.Open(r.ctx)
		if err != nil {
			return nil, failed
		}
		at := fault.Span{Object: tg.Name, Off: base, Len: size}
		f, err := container.OpenFile(r.ctx, container.Patched{Source: src, Off: base,
			With: []byte{'T', 'r', 'v', version}}, at, o)
		if err == nil && len(f.Header.Columns) > 0 {
			f.Src = src
			r.Report("trevni.recovered", at.Sub(0, 4), "",
				"the magic is damaged; the file is read as version %d", version)
			return f, nil
		}
		src.Close()
	}
	return nil, failed
}

// findStarts searches for columns that do not begin where the previous column ends and have no readable descriptors
// there.
func (r *recoverer) findStarts() {
	f := r.f
	end := f.Header.Size
	f.Budget += f.At.Len // for reading at wrong starts
	for i := range f.Header.Columns {
		c := &f.Header.Columns[i]
		cb := r.readAt(i, c.Start)
		others := cb != nil && c.Summed && f.CheckOwner(r.ctx, i, cb) != nil
		if cb != nil && !others {
			end = cb.End
			continue
		}
		at := end
		if cb = nil; !others {
			cb = r.readAt(i, at)
		}
		if cb == nil {
			at, cb = r.search(i, end)
		}
		if cb == nil {
			continue // it is lost; later columns may be found
		}
		was := c.Start
		f.Restart(i, at)
		end = cb.End
		r.restarted = append(r.restarted, i)
		r.of(c.Name).Report("trevni.recovered", f.At.Sub(0, f.Header.Size), "",
			"column %q does not start at %d, but at %d", c.Name, was, at)
	}
}

// restoreChecksums treats columns as having checksums although the header has none for them, if by their descriptors
// all of them then end exactly where the next one begins, or the file.
func (r *recoverer) restoreChecksums() {
	f := r.f
	borders := map[int64]bool{f.At.Len: true}
	for i := range f.Header.Columns {
		borders[f.Header.Columns[i].Start] = true
	}
	var unsummed []int
	for i := range f.Header.Columns {
		cb, err := f.Blocks(r.ctx, i)
		if c := &f.Header.Columns[i]; err != nil || c.Summed || len(cb.Blocks) == 0 {
			continue
		}
		sums := f.At.Sub(cb.End, 4*int64(len(cb.Blocks)))
		if borders[cb.End] || !borders[cb.End+sums.Len] {
			return
		}
		if zeros, err := f.Zeros(r.ctx, sums); zeros && err == nil && cb.End+sums.Len == f.At.Len {
			return // the file was padded, which is not damage
		}
		unsummed = append(unsummed, i)
	}
	for _, i := range unsummed {
		c := &f.Header.Columns[i]
		c.Checksum, c.Summed = "crc32", true
		f.Restart(i, c.Start)
		r.of(c.Name).Report("trevni.recovered", c.At, "", "the blocks of column %q have checksums, which the "+
			"header does not say", c.Name)
	}
}

// dropUnproven gives up the blocks of columns that begin where another column does. It also gives up blocks without
// checksums that may have been changed, if a column was found at another offset than the header states: then bytes were
// inserted or removed somewhere. A column without checksums is known not to contain that place only if its blocks end
// where another column begins or the file ends, or if it lies before a column that is still where the header states.
// After the last such column nothing is known: if the next one has no descriptors there, that may be its own damage, or
// due to bytes inserted before it.
func (r *recoverer) dropUnproven() {
	f := r.f
	moved, last, fixed := len(r.restarted) > 0, int64(0), int64(0)
	borders := map[int64]bool{f.At.Len: true}
	for i := range f.Header.Columns {
		start := f.Header.Columns[i].Start
		if start < f.At.Len {
			last = max(last, start)
		}
		_, err := f.Blocks(r.ctx, i)
		if err == nil || start >= f.At.Len { // beyond the end of a truncated file, the start may still be correct
			borders[start] = true
		} else {
			moved = true
		}
		if err == nil && !slices.Contains(r.restarted, i) && start < f.At.Len {
			fixed = max(fixed, start)
		}
	}
	for i := range f.Header.Columns {
		cb, err := f.Blocks(r.ctx, i)
		if err == nil {
			if err = f.CheckStart(i, cb); err == nil && f.Header.Columns[i].Summed {
				err = f.CheckOwner(r.ctx, i, cb)
			}
			lose(cb, err)
		}
		switch c := &f.Header.Columns[i]; {
		case err != nil || c.Summed || borders[cb.End]:
			continue
		case cb.End > f.At.Len && c.Start == last: // the file is truncated
			continue
		case cb.End <= fixed && c.Start < fixed && moved:
			continue
		}
		if zeros, err := f.Zeros(r.ctx, f.At.Sub(cb.End, max(0, f.At.Len-cb.End))); !moved && zeros && err == nil {
			r.of(f.Header.Columns[i].Name).Report("trevni.coverage.gap", f.At.Sub(cb.End, 0), "",
				"zeros that no structure claims lie after a column without checksums")
			continue
		}
		lose(cb, fault.Corruptf(cb.Desc, f.PathOf(i), "the column ends at %d, where nothing begins: without checksums "+
			"all its values are in doubt", cb.End))
	}
}

// lose gives up the remaining blocks of a column; if err is nil, none.
func lose(cb *container.ColumnBlocks, err error) {
	for k := range cb.Blocks {
		if b := &cb.Blocks[k]; b.Lost == nil && err != nil {
			b.Lost = err
		}
	}
}

// readAt reads the descriptors of column i if it can begin at start; nil if not.
func (r *recoverer) readAt(i int, start int64) *container.ColumnBlocks {
	f := r.f
	cb, read, err := f.BlocksAt(r.ctx, i, start)
	r.searched += read + container.FirstBlocks
	flat := f.Header.Columns[i].MaxRep == 0
	// a row has at least one entry
	if err != nil || flat && cb.Rows != f.Header.Rows || !flat && cb.Rows < f.Header.Rows {
		return nil
	}
	return cb
}

// search returns the first offset from from on at which column i can begin. Descriptors have no mark, and those of the
// next column look alike, so column i must be followed by all columns after it, the last of which ends with the file.
func (r *recoverer) search(i int, from int64) (int64, *container.ColumnBlocks) {
	const window = 64 << 10
	f := r.f
	last := f.At.Len - minColumn
	if f.Header.Rows == 0 {
		return 0, nil
	}
	for at := from; at <= last && !r.overBudget(); at += window {
		buf := make([]byte, min(window+minColumn-1, f.At.Len-at))
		r.searched += int64(len(buf))
		if format.ReadFull(r.ctx, f.Src, f.At.Sub(at, int64(len(buf))), "", buf) != nil {
			return 0, nil
		}
		for k := range len(buf) - minColumn + 1 {
			start := at + int64(k)
			if !r.canBegin(i, buf[k:], f.At.Len-start) || r.overBudget() {
				continue
			}
			cb := r.readAt(i, start)
			if cb == nil {
				continue
			}
			switch ok, fewer := r.chain(i, cb); {
			case ok:
				return start, cb
			case fewer: // from here on only later columns can begin
				return 0, nil
			}
		}
	}
	return 0, nil
}

// overBudget reports whether the search for columns has read more than any file needs that was not crafted for it. The
// budget grows with the file and the number of columns, each of which is read once in an intact file.
func (r *recoverer) overBudget() bool {
	return r.searched > 16*r.f.At.Len+4*container.FirstBlocks*int64(len(r.f.Header.Columns))+1<<20
}

// minColumn is the minimum size, in bytes, of a column with one block: its count and a descriptor.
const minColumn = 16

// canBegin reports whether b can be the beginning of a column, with left bytes of the file from there on.
func (r *recoverer) canBegin(i int, b []byte, left int64) bool {
	count, rows, stored := int64(binary.LittleEndian.Uint32(b)), int64(binary.LittleEndian.Uint32(b[4:])),
		int64(binary.LittleEndian.Uint32(b[12:]))
	flat := r.f.Header.Columns[i].MaxRep == 0
	return count > 0 && count <= left/12 && stored <= left &&
		(!flat || rows <= r.f.Header.Rows && (count > 1 || rows == r.f.Header.Rows))
}

// chain reports whether cb can be the blocks of column i: they fit in the file, and column follows column to its end.
// fewer: the file ends with an earlier column than the last.
func (r *recoverer) chain(i int, cb *container.ColumnBlocks) (ok, fewer bool) {
	for {
		if r.overBudget() || len(cb.Blocks) == 0 || cb.End > r.f.At.Len || !r.verifies(i, &cb.Blocks[0]) {
			return false, false
		}
		if i++; i == len(r.f.Header.Columns) || cb.End == r.f.At.Len {
			return i == len(r.f.Header.Columns) && cb.End == r.f.At.Len, cb.End == r.f.At.Len
		}
		if cb = r.readAt(i, cb.End); cb == nil {
			return false, false
		}
	}
}

// verifies reports whether a block's checksum matches and it expands to the raw size in its descriptor.
func (r *recoverer) verifies(i int, b *container.Block) bool {
	f := r.f
	col := &f.Header.Columns[i]
	if b.At.Len > f.Limits.Page || col.Problem != nil {
		return false
	}
	r.searched += b.At.Len
	o, _, err := f.ReadBlock(r.ctx, i, b, "", &r.arena, false)
	return err == nil && (col.Kind != layout.CodecNone || int64(len(o.Raw)) == b.Raw)
}

// recount corrects the row count of a block descriptor, which no checksum covers, if a column has another number of
// rows than the header. The difference belongs to the one block that cannot be decoded with its count. If there are
// several such blocks, the rows of the blocks after the first are not known.
func (r *recoverer) recount() {
	f, p := r.f, schema.PlanOf(&r.f.Header, nil)
	v := &verifier{ctx: r.ctx, f: f, depth: format.Deep}
	for i := 0; p != nil && i < len(p.Phys); i++ {
		ph, rest, bad := p.Phys[i], f.Header.Rows, []int(nil)
		cb, err := f.Blocks(r.ctx, ph.Stored)
		vals, verr := vec.New(ph.Type, memory.DefaultAllocator)
		if err != nil || verr != nil || !ph.Counted() || ph.Parent >= 0 || cb.Rows == f.Header.Rows {
			continue
		}
		for k := range cb.Blocks {
			if b := &cb.Blocks[k]; b.Rows > 0 && b.Lost == nil && v.reads(ph, b, k, vals) {
				rest -= b.Rows
			} else {
				bad = append(bad, k)
			}
		}
		if cb.Odd != nil && (len(bad) > 1 || rest < 0) {
			f.MarkUnreadable(ph.Stored, cb.Odd)
		}
		if len(bad) != 1 || rest < 0 {
			continue
		}
		b := cb.Blocks[bad[0]]
		b.Rows = rest
		if proved := v.reads(ph, &b, bad[0], vals) && b.Raw > 0; proved || cb.Odd != nil && !r.contradicted() {
			cb.Blocks[bad[0]].Rows, cb.Rows = rest, 0
			for k := range cb.Blocks {
				cb.Blocks[k].Row = cb.Rows
				cb.Rows += cb.Blocks[k].Rows
			}
			r.of(ph.Name).Report("trevni.recovered", b.Desc, "", "block[%d] has %s", bad[0], fault.Count(rest, "row"))
		}
	}
}

// contradicted reports whether columns that end where they should count other rows than the header, and none as many:
// then the header's number does not validate a block that cannot be verified.
func (r *recoverer) contradicted() (others bool) {
	for i := range r.f.Header.Columns {
		cb, err := r.f.Blocks(r.ctx, i)
		if r.f.Header.Columns[i].MaxRep > 0 || err != nil || cb.Odd != nil {
			continue
		}
		if cb.Rows == r.f.Header.Rows {
			return false
		}
		others = true
	}
	return others
}

// rows sets the header's number of rows to the maximum of all columns if no column has the header's number. If columns
// cannot be read, or contradict each other, they are damaged, and the header's rows beyond theirs are lost.
func (r *recoverer) rows() error {
	f := r.f
	r.stated = f.Header.Rows
	failed := f.CheckRows(r.ctx)
	if failed != nil && !container.IsFault(failed) {
		return failed
	}
	rows, agreed, flat := int64(-1), true, false
	for i := range f.Header.Columns {
		if f.Header.Columns[i].MaxRep > 0 {
			continue
		}
		cb, err := f.Blocks(r.ctx, i)
		flat = flat || err == nil
		counts := failed != nil && err == nil && r.counts(i, cb)
		if agreed = agreed && counts && (rows < 0 || cb.Rows == rows); counts {
			rows = max(rows, cb.Rows)
		}
	}
	// in a file without columns only the header has a number of rows
	if failed == nil && (flat || len(f.Header.Columns) == 0) {
		return nil
	}
	if rows <= 0 { // no column counts the rows, or zeros were written over the descriptors of those that do
		n, all := r.repeated()
		if n == r.stated {
			return nil
		}
		if rows = max(0, n); n > 0 {
			agreed = all
		}
	}
	if f.Header.Rows = rows; rows < r.stated && (!agreed || rows == 0) {
		r.Rows("trevni.column.rows", f.At.Sub(4, 8), [2]int64{rows, r.stated}, r.stated-rows,
			"the header has %s, the columns at most %d: the others are lost", fault.Count(r.stated, "row"), rows)
		return nil
	}
	r.Report("trevni.recovered", f.At.Sub(4, 8), "",
		"no column has the %s of the header; the maximum is %d", fault.Count(r.stated, "row"), rows)
	r.stated = rows
	return nil
}

// counts reports whether the number of rows in the descriptors of column i can be trusted: the checksum over them
// matches, or a block proves it; or there is no such checksum, all blocks are in the file, and the number of rows of a
// single block fits its size.
func (r *recoverer) counts(i int, cb *container.ColumnBlocks) bool {
	c := &r.f.Header.Columns[i]
	_, summed := layout.Get(c.Meta, layout.DescKey)
	if cb.Odd == nil && (summed || len(cb.Blocks) == 0) {
		return true
	}
	if lost := func(b container.Block) bool { return b.Lost != nil }; !summed && slices.ContainsFunc(cb.Blocks, lost) {
		return false // bytes that are no descriptors usually point beyond the end of the file
	}
	if cb.Odd == nil && len(cb.Blocks) > 1 {
		return true
	}
	return slices.ContainsFunc(cb.Blocks, func(b container.Block) bool {
		enough := cb.Odd != nil || c.Array || c.MaxDef > 0 || c.Type.MinBytes(b.Rows) <= b.Raw
		return b.Lost == nil && enough && r.verifies(i, &b)
	})
}

// repeated returns the maximum number of rows that begin in a repeated column. all: each column could be read to its
// end and has that many rows. The number of a damaged column is unknown: the header's is used if the column has enough
// entries.
func (r *recoverer) repeated() (rows int64, all bool) {
	f := r.f
	p := schema.PlanOf(&f.Header, nil) // any plan of these levels will do
	if p == nil {
		return -1, false
	}
	rows, all = -1, true
	v := newVerifier(r.ctx, r.Part, func(region.Finding) bool { return true }) // for verify to report
	v.of(f)
	for _, ph := range p.Phys {
		if ph.Counted() {
			continue
		}
		n, ok := v.countRows(ph)
		if cb, err := f.Blocks(r.ctx, ph.Stored); !ok && err == nil && cb.Rows >= r.stated {
			n = r.stated
		}
		all = all && ok && (rows < 0 || n == rows)
		rows = max(rows, n)
	}
	return rows, all
}

// reportLost reports the losses that are known before rows are read.
func (r *recoverer) reportLost(t *table.Table) {
	f := r.f
	for i := range f.Header.Columns {
		c := &f.Header.Columns[i]
		cb, err := f.Blocks(r.ctx, i)
		if err != nil {
			r.of(c.Name).Rows("trevni.column.damaged", f.At.Sub(min(max(c.Start, 0), f.At.Len), 0),
				[2]int64{0, r.stated}, r.stated, "%s", check.Reason(err))
			continue
		}
		if cb.Odd != nil {
			r.of(c.Name).Report("trevni.column.damaged", cb.Desc, "", "%s: its blocks prove themselves",
				check.Reason(cb.Odd))
		}
		for k := range cb.Blocks {
			if b := &cb.Blocks[k]; b.Lost != nil {
				if end := b.Row + b.Rows; c.MaxRep > 0 || end > r.stated { // rows beyond the header's
					r.of(c.Name).Report("trevni.block.cut", b.Desc, "", "%s", check.Reason(b.Lost))
				} else {
					r.of(c.Name).Rows("trevni.block.cut", b.Desc, [2]int64{b.Row, end}, b.Rows, "%s",
						check.Reason(b.Lost))
				}
			}
		}
	}
}
