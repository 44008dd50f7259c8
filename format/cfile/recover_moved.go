package cfile

import (
	"cmp"
	"slices"

	"stoa/fault"
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
	"stoa/internal/sorted"
	"stoa/wire"
)

// Bytes inserted into a file without checksums, or removed from it, shift everything after them. A block in which that
// happened may still decode, but to other values. The footer, however, is found from the end of the file and has the
// offsets of the indexes, which are the last structures before it. The difference between these offsets and the actual
// positions is the number of bytes inserted or removed. From such a file, only blocks that end where the next structure
// begins are returned.

// find finds the blocks of a file whose indexes are damaged.
func (r *recovery) find() error {
	t := &r.f.Footer
	d := r.shift()
	if !t.Checksums() && d != 0 && t.PosIdx != nil && !r.guessed {
		if blocks, ok := r.takeMoved(d); ok {
			r.known = blocks
			return r.limit
		}
	}
	known, tail := r.known, r.tail()
	// blocks with checksums are recognized without knowing the end, and a wrong end must not drop the blocks after it
	if err := r.search(r.f.Endless && t.Checksums()); err != nil {
		return err
	}
	if r.f.Endless = r.f.Endless && !r.lastEndsAt(t.NumValues); r.f.Endless && !t.Checksums() {
		r.known = known
		if err := r.search(true); err != nil {
			return err
		}
	}
	if !t.Checksums() && (d != 0 || t.PosIdx == nil && t.ValIdx == nil) {
		r.known = r.dropUnbounded(r.known, tail)
	}
	return nil
}

// shift returns the distance in bytes between the end of the last structure, as stated in the footer, and the footer
// itself: positive if bytes were inserted, negative if bytes were removed.
func (r *recovery) shift() int64 {
	t, end := &r.f.Footer, int64(0)
	for _, p := range []*block.BlockPtr{t.PosIdx, t.ValIdx, t.Dict} {
		if p != nil {
			end = max(end, p.Offset+p.Size)
		}
	}
	if end == 0 {
		return 0
	}
	return r.f.At.Len - int64(len(r.f.Foot)) - end
}

// count numbers the rows of the blocks found by their order, if these are all blocks of the file: nothing has moved,
// each begins where the one before it ends, the first behind the header, and together they have as many rows as the
// footer states. What contradicts that then is the blocks' own ordinals.
func (r *recovery) count() {
	at, row := int64(len(r.f.Head)), int64(0)
	for _, b := range r.known {
		if b.Ptr.Offset != at || b.Rows < 0 {
			return
		}
		at, row = at+b.Ptr.Size, row+b.Rows
	}
	if row == 0 || row != r.stated || r.shift() != 0 || r.lastEndsAt(row) {
		return
	}
	r.f.Footer.NumValues, r.f.Endless, row = row, false, 0
	for i := range r.found { // how many rows there were is known after all
		if r.found[i].Code == "cfile.numvalues" {
			r.found[i].Lost = 0
		}
	}
	for i := range r.known {
		b := &r.known[i]
		b.Own, b.First = b.First-row, row
		row += b.Rows
	}
}

// part is a structure of a file: its original offset, and how far it has moved.
type part struct {
	columnfile.DataBlock // First is -1 unless it is a data block
	shift                int64
	placed               bool
}

// at is the current offset of p.
func (p *part) at() int64 { return p.Ptr.Offset + p.shift }

// endsAtNext reports whether p ends where the next structure begins.
func (p *part) endsAtNext(next *part) bool {
	return p.placed && next.placed && (p.shift == next.shift || p.at()+p.Ptr.Size == next.at())
}

// takeMoved collects blocks through the index of a file in which some structures have moved by d bytes. ok is false if
// the index cannot be read at either its original or its moved offset.
func (r *recovery) takeMoved(d int64) (out []columnfile.DataBlock, ok bool) {
	t := &r.f.Footer
	parts, ok := r.tree(nil, *t.PosIdx, d, 0)
	if !ok || !r.ordinals(parts) {
		return nil, false
	}
	for _, p := range parts { // the number of values is certain if the last block confirms it
		r.f.Endless = r.f.Endless && !(p.placed && p.First >= 0 && p.First+p.Rows == t.NumValues)
	}
	dict := -1
	if t.Dict != nil {
		parts = append(parts, part{DataBlock: columnfile.DataBlock{Ptr: *t.Dict, First: -1}})
		dict = len(parts) - 1
		parts[dict].locate(d, func(at int64) bool { return r.isDictionaryAt(at, t.Dict.Size) })
		t.Dict = nil
	}
	dictPtr := block.BlockPtr{Offset: -1}
	if dict >= 0 {
		dictPtr = parts[dict].Ptr
	}
	foot := block.BlockPtr{Offset: r.f.At.Len - int64(len(r.f.Foot)) - d} // its original offset
	parts = append(parts, part{DataBlock: columnfile.DataBlock{Ptr: foot, First: -1}, shift: d, placed: true})
	sorted.StablyBy(parts, func(a, b part) int { return cmp.Compare(a.Ptr.Offset, b.Ptr.Offset) })
	for i := range parts[:len(parts)-1] {
		p, next := &parts[i], &parts[i+1]
		switch {
		case !p.endsAtNext(next):
		case p.Ptr == dictPtr:
			t.Dict = &block.BlockPtr{Offset: p.at(), Size: p.Ptr.Size}
		case p.First >= 0:
			b := p.DataBlock
			b.Ptr.Offset = p.at()
			out = append(out, b)
		}
	}
	return out, true
}

// locate looks for a structure at its original offset, and d bytes after it.
func (p *part) locate(d int64, is func(at int64) bool) {
	for _, p.shift = range []int64{0, d} {
		if p.placed = is(p.at()); p.placed {
			return
		}
	}
}

// tree appends the nodes and the data blocks of the index tree at p to parts.
func (r *recovery) tree(parts []part, p block.BlockPtr, d int64, depth int) (out []part, ok bool) {
	var x block.IndexNode
	n := part{DataBlock: columnfile.DataBlock{Ptr: p, First: -1}}
	n.locate(d, func(at int64) (is bool) { x, is = r.node(at, p.Size); return is })
	if !n.placed || depth == columnfile.MaxDepth || r.ctx.Err() != nil || r.budget <= 0 {
		return nil, false
	}
	parts = append(parts, n)
	for i := range x.N {
		e, _ := x.Entry(i)
		if e.Ptr.Size <= 0 || e.Ptr.Offset < 0 || e.Ptr.Offset > r.f.At.Len || e.Ptr.Size > r.f.At.Len {
			return nil, false
		}
		if !x.Leaf {
			if parts, ok = r.tree(parts, e.Ptr, d, depth+1); !ok {
				return nil, false
			}
			continue
		}
		b := part{DataBlock: columnfile.DataBlock{Ptr: e.Ptr}}
		if b.First, ok = e.Ordinal(); !ok {
			return nil, false
		}
		parts = append(parts, b)
	}
	return parts, true
}

// node reads the index block of size bytes at offset at.
func (r *recovery) node(at, size int64) (x block.IndexNode, ok bool) {
	if at < 0 || size <= 0 || at > int64(len(r.data))-size {
		return x, false
	}
	r.budget -= size
	b, err := r.f.OpenBlock(r.data[at:at+size], r.f.At, nil, true)
	if err != nil || !isIndex(b.Data) {
		return x, false
	}
	x = block.ParseIndexBlock(b.Cursor(""), false)
	x.Block = b
	return x, true
}

// ordinals sets the numbers of rows of the data blocks in parts, and locates them. It returns false if the index
// contradicts itself.
func (r *recovery) ordinals(parts []part) bool {
	end, before, d := r.f.Footer.NumValues, int64(0), r.shift()
	for i := range slices.Backward(parts) {
		b := &parts[i]
		if b.First < 0 {
			continue
		}
		if b.Rows = end - b.First; b.Rows <= 0 {
			return false
		}
		end = b.First
		b.locate(d, func(at int64) bool {
			if at < 0 || b.Ptr.Size > int64(len(r.data))-at {
				return false
			}
			x, n := r.block(at, at+b.Ptr.Size)
			return n == b.Ptr.Size && x.First == b.First && x.Rows == b.Rows
		})
	}
	for _, b := range parts {
		if b.First < 0 {
			continue
		}
		if b.Ptr.Offset < before {
			return false
		}
		before = b.Ptr.Offset + b.Ptr.Size
	}
	return end == 0
}

// isDictionaryAt reports whether the size bytes at offset at are a dictionary.
func (r *recovery) isDictionaryAt(at, size int64) bool {
	if at < 0 || at > int64(len(r.data))-size {
		return false
	}
	stored, raw, ok := r.measure(r.data[at:at+size], block.PlainBinaryExtent)
	if !ok || int64(len(stored)) != size {
		return false
	}
	c := wire.NewInnerCursor(raw, fault.Span{}, "")
	v := block.ParsePlainBinary(c)
	return c.Err() == nil && v.Count > 0 && v.Ordinal == 0 && v.Starts(make([]int32, v.Count+1), 0) == nil
}

// adjacent reports whether a block ends where the next one begins, or exactly one index block lies between them.
func (r *recovery) adjacent(end, next int64) bool {
	if end == next {
		return true
	}
	_, ok := r.node(end, next-end)
	return ok
}

// tail returns the offset of the first structure after the data blocks as the footer states it; -1 if the footer names
// none, -2 if the structure is not at that offset. In the latter case bytes may be missing before it or in it, and a
// last block that lacks bytes may have been completed by the bytes that follow it.
func (r *recovery) tail() int64 {
	t := &r.f.Footer
	var first *block.BlockPtr
	for _, p := range []*block.BlockPtr{t.PosIdx, t.ValIdx, t.Dict} {
		if p != nil && (first == nil || p.Offset < first.Offset) {
			first = p
		}
	}
	if first == nil {
		return -1
	}
	found := false
	if first == t.Dict {
		found = r.isDictionaryAt(first.Offset, first.Size)
	} else {
		_, found = r.node(first.Offset, first.Size)
	}
	if !found {
		return -2
	}
	return first.Offset
}

// dropUnbounded returns those of the blocks found by searching that end where the next block, or an index block before
// it, begins. The last block must end at tail unless tail is -1.
func (r *recovery) dropUnbounded(all []columnfile.DataBlock, tail int64) (out []columnfile.DataBlock) {
	for i, b := range all {
		end := b.Ptr.Offset + b.Ptr.Size
		if i+1 == len(all) && (tail == -1 || tail == end) || i+1 < len(all) && r.adjacent(end, all[i+1].Ptr.Offset) {
			out = append(out, b)
		}
	}
	return out
}
