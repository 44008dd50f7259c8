package cfile

import (
	"cmp"
	"slices"

	"stoa/fault"
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
	"stoa/wire"
)

// Bytes inserted into a file without checksums, or removed from it, move what follows them. A block in which that
// happened may still decode, to other values. But the footer is found from the end of the file, and says where the
// indexes lie, which are the last structures before it: the distance by which they lie elsewhere is how many bytes were
// inserted or removed. Of such a file only those blocks are returned that end where the next structure begins.

// find finds the blocks of a file whose indexes do not lead to them.
func (r *recovery) find() error {
	t := &r.f.Footer
	d := r.shift()
	if !t.Checksums() && d != 0 && t.PosIdx != nil && !r.guessed {
		if blocks, ok := r.moved(d); ok {
			r.known = blocks
			return r.limit
		}
	}
	known, tail := r.known, r.tail()
	// blocks with checksums need no end to be known by, and one that is wrong must not leave out those after it
	if err := r.search(r.f.Endless && t.Checksums()); err != nil {
		return err
	}
	if r.f.Endless = r.f.Endless && !r.bearsOut(t.NumValues); r.f.Endless && !t.Checksums() {
		r.known = known
		if err := r.search(true); err != nil {
			return err
		}
	}
	if !t.Checksums() && (d != 0 || t.PosIdx == nil && t.ValIdx == nil) {
		r.known = r.bounded(r.known, tail)
	}
	return nil
}

// shift is how many bytes after the stated place (negative: before it) the structures lie that the footer names.
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

// part is a structure of a file at its original place, and by how much it has moved.
type part struct {
	columnfile.DataBlock // First is -1 of what is no data block
	shift                int64
	placed               bool
}

// at is where p begins.
func (p *part) at() int64 { return p.Ptr.Offset + p.shift }

// bounds reports whether p ends where the next structure begins.
func (p *part) bounds(next *part) bool {
	return p.placed && next.placed && (p.shift == next.shift || p.at()+p.Ptr.Size == next.at())
}

// moved takes the blocks of a file of which something lies d bytes elsewhere from its index, which is read where it
// lies now. ok is false if it cannot be read there, either.
func (r *recovery) moved(d int64) (out []columnfile.DataBlock, ok bool) {
	t := &r.f.Footer
	parts, ok := r.tree(nil, *t.PosIdx, d, 0)
	if !ok || !r.ordinals(parts) {
		return nil, false
	}
	for _, p := range parts { // the last block says itself where it ends
		r.f.Endless = r.f.Endless && !(p.placed && p.First >= 0 && p.First+p.Rows == t.NumValues)
	}
	dict := -1
	if t.Dict != nil {
		parts = append(parts, part{DataBlock: columnfile.DataBlock{Ptr: *t.Dict, First: -1}})
		dict = len(parts) - 1
		parts[dict].place(d, func(at int64) bool { return r.isWords(at, t.Dict.Size) })
		t.Dict = nil
	}
	words := block.BlockPtr{Offset: -1}
	if dict >= 0 {
		words = parts[dict].Ptr
	}
	foot := block.BlockPtr{Offset: r.f.At.Len - int64(len(r.f.Foot)) - d} // where it began
	parts = append(parts, part{DataBlock: columnfile.DataBlock{Ptr: foot, First: -1}, shift: d, placed: true})
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.Ptr.Offset, b.Ptr.Offset) })
	for i := range parts[:len(parts)-1] {
		p, next := &parts[i], &parts[i+1]
		switch {
		case !p.bounds(next):
		case p.Ptr == words:
			t.Dict = &block.BlockPtr{Offset: p.at(), Size: p.Ptr.Size}
		case p.First >= 0:
			b := p.DataBlock
			b.Ptr.Offset = p.at()
			out = append(out, b)
		}
	}
	return out, true
}

// place looks for a structure where it was written, and d bytes from there.
func (p *part) place(d int64, is func(at int64) bool) {
	for _, p.shift = range []int64{0, d} {
		if p.placed = is(p.at()); p.placed {
			return
		}
	}
}

// tree appends the nodes and the blocks of the index tree at p. The leaves in front of the harm are in their places.
func (r *recovery) tree(parts []part, p block.BlockPtr, d int64, depth int) (out []part, ok bool) {
	var x block.IndexNode
	n := part{DataBlock: columnfile.DataBlock{Ptr: p, First: -1}}
	n.place(d, func(at int64) (is bool) { x, is = r.node(at, p.Size); return is })
	if !n.placed || depth == columnfile.MaxDepth || r.ctx.Err() != nil || r.work <= 0 {
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

// node reads the index block of so many bytes at a place.
func (r *recovery) node(at, size int64) (x block.IndexNode, ok bool) {
	if at < 0 || size <= 0 || at > int64(len(r.data))-size {
		return x, false
	}
	r.work -= size
	b, err := r.f.OpenBlock(r.data[at:at+size], r.f.At, nil, true)
	if err != nil || !isIndex(b.Data) {
		return x, false
	}
	x = block.ParseIndexBlock(b.Cursor(""), false)
	x.Block = b
	return x, true
}

// ordinals gives the data blocks of parts their rows, and finds out where they lie. It is false if the index
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
		b.place(d, func(at int64) bool {
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

// isWords reports whether the size bytes at a place are a dictionary.
func (r *recovery) isWords(at, size int64) bool {
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

// adjoin reports whether nothing lies between two places, or an index block.
func (r *recovery) adjoin(end, next int64) bool {
	if end == next {
		return true
	}
	_, ok := r.node(end, next-end)
	return ok
}

// tail is where the footer says that the first structure after the data blocks begins, in a file with few of them;
// -1 if it does not say it, -2 if that is not there: bytes may be missing before it as well as in it, and a last block
// that lacks some has taken as many of what follows.
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
	there := false
	if first == t.Dict {
		there = r.isWords(first.Offset, first.Size)
	} else {
		_, there = r.node(first.Offset, first.Size)
	}
	if !there {
		return -2
	}
	return first.Offset
}

// bounded are those of the blocks that were found by searching that end where the next begins; between two may be an
// index block. The last must end at tail, if there is a footer.
func (r *recovery) bounded(all []columnfile.DataBlock, tail int64) (out []columnfile.DataBlock) {
	for i, b := range all {
		end := b.Ptr.Offset + b.Ptr.Size
		if i+1 == len(all) && (tail == -1 || tail == end) || i+1 < len(all) && r.adjoin(end, all[i+1].Ptr.Offset) {
			out = append(out, b)
		}
	}
	return out
}
