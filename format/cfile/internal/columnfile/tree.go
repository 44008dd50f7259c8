package columnfile

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"

	"stoa/fault"
	"stoa/format/cfile/internal/block"
)

// MaxDepth is the largest number of levels of an index tree. Three levels of the default size suffice even if every row
// has a block of its own.
const MaxDepth = 32

// Walker is a position in an index tree. Trees are written in post-order: a node comes after its children, and the
// blocks of each level are in ascending order. Walker requires this, so every walk ends.
type Walker struct {
	f     *File
	Name  string // "posidx" or "validx"
	Root  block.BlockPtr
	Stack []level
	Ends  [MaxDepth]int64 // offset at which the last node of each level ends
	Data  int64           // offset at which the last data block ends
	Eof   bool            // after the last leaf entry
}

// level is a node on the path from the root, and the entry of it through which the path continues.
type level struct {
	Node block.IndexNode
	ptr  block.BlockPtr
	I    int
}

// Positions walks the positional index, which f must have.
func (f *File) Positions() *Walker { return &Walker{f: f, Name: "posidx", Root: *f.Footer.PosIdx} }

// Values walks the value index, which f must have.
func (f *File) Values() *Walker { return &Walker{f: f, Name: "validx", Root: *f.Footer.ValIdx} }

// Path is the path of the current entry, as posidx/entry[2]/entry[12].
func (w *Walker) Path() string {
	var b strings.Builder
	b.WriteString(w.Name)
	for _, l := range w.Stack {
		fmt.Fprintf(&b, "/entry[%d]", l.I)
	}
	return b.String()
}

// load reads the node at p, which the entry on top of the stack points to.
func (w *Walker) load(ctx context.Context, p block.BlockPtr) (block.IndexNode, error) {
	if reason := w.f.Problem(p); reason != "" {
		return block.IndexNode{}, fault.Corruptf(w.Place(), w.Path(), "%s", reason)
	}
	if n := len(w.Stack); n >= MaxDepth {
		return block.IndexNode{}, fault.Corruptf(w.f.Span(p), w.Path(), "the tree has more than %d levels", MaxDepth)
	} else if n > 0 && p.Offset+p.Size > w.Stack[n-1].ptr.Offset {
		return block.IndexNode{}, fault.Corruptf(w.Place(), w.Path(),
			"offset %d: an index block must be before the one that points to it (%d)", p.Offset,
			w.Stack[n-1].ptr.Offset)
	}
	if x, ok := w.f.nodes.get(p); ok {
		return x, nil
	}
	path := w.Path()
	held := int64(0)
	for _, l := range w.Stack {
		held += int64(len(l.Node.Block.Data))
	}
	if held > w.f.Limits.Opening {
		return block.IndexNode{}, fault.Limitf(w.f.Span(p), path, "the index blocks above have %d bytes, at most %d "+
			"are held (memory limit)", held, w.f.Limits.Opening)
	}
	x, err := w.f.readIndexBlock(ctx, p, path)
	if err == nil && x.N == 0 && (len(w.Stack) > 0 || !x.Leaf) {
		err = fault.Corruptf(w.f.Span(p), path, "an index block without entries")
	}
	if err == nil && x.N > 0 {
		w.f.nodes.put(p, &x)
	}
	return x, err
}

// nodes caches parsed index blocks of an open file for lookups. The zero value is empty. It is safe for concurrent use.
type nodes struct {
	mu   sync.RWMutex
	have map[block.BlockPtr]block.IndexNode
	size int
}

// maxNodes is the approximate size in bytes of the index blocks that are cached for a file.
const maxNodes = 1 << 20

func (k *nodes) get(p block.BlockPtr) (block.IndexNode, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	x, ok := k.have[p]
	return x, ok
}

// put caches a node. A node with a damaged entry is not cached, so that every lookup reports the error.
func (k *nodes) put(p block.BlockPtr, x *block.IndexNode) {
	size := len(x.Block.Data) + 48*x.N
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.size+size > maxNodes {
		return
	}
	all := make([]block.IndexEntry, x.N)
	for i := range all {
		var err error
		if all[i], err = x.Entry(i); err != nil {
			return
		}
	}
	x.Entries = all
	if k.have == nil {
		k.have = map[block.BlockPtr]block.IndexNode{}
	}
	k.have[p] = *x
	k.size += size
}

// readIndexBlock reads and opens an index block.
func (f *File) readIndexBlock(ctx context.Context, p block.BlockPtr, path string) (block.IndexNode, error) {
	b, err := f.readBlock(ctx, p, path)
	if err != nil {
		return block.IndexNode{}, err
	}
	c := b.Cursor(path)
	x := block.ParseIndexBlock(c, false)
	x.Block = b
	return x, c.Err()
}

// Place is the place of errors in the current entry: the span of the block that holds it, or of the footer at the root.
func (w *Walker) Place() fault.Span {
	if n := len(w.Stack); n > 0 {
		return w.f.Span(w.Stack[n-1].ptr)
	}
	return w.f.FootSpan()
}

// Push enters the node at p. The error is Corrupt if p is not after the last node of its level.
func (w *Walker) Push(ctx context.Context, p block.BlockPtr) error {
	x, err := w.load(ctx, p)
	if err != nil {
		return err
	}
	d := len(w.Stack)
	if p.Offset < w.Ends[d] {
		return fault.Corruptf(w.Place(), w.Path(), "offset %d: the block before it ends at %d", p.Offset, w.Ends[d])
	}
	w.Ends[d] = p.Offset + p.Size
	w.Stack = append(w.Stack, level{x, p, 0})
	return nil
}

// Top is the node that was entered last.
func (w *Walker) Top() *level { return &w.Stack[len(w.Stack)-1] }

// Current is the current entry of Top.
func (w *Walker) Current() (block.IndexEntry, error) {
	l := w.Top()
	e, err := l.Node.Entry(l.I)
	if err != nil {
		return e, fault.Locate(err, w.Place(), true, w.parentPath())
	}
	return e, nil
}

// parentPath is the path of the node that holds the current entry.
func (w *Walker) parentPath() string {
	p := w.Path()
	return p[:strings.LastIndexByte(p, '/')]
}

// First moves to the first leaf entry.
func (w *Walker) First(ctx context.Context) error { return w.seek(ctx, nil, false) }

// seek moves to the last leaf entry whose key is at most key (less than key if strict is true), or to the first entry
// if there is none.
func (w *Walker) seek(ctx context.Context, key []byte, strict bool) error {
	w.Stack, w.Eof, w.Ends, w.Data = w.Stack[:0], false, [MaxDepth]int64{}, 0
	p, first := w.Root, []byte(nil)
	for {
		if err := w.Push(ctx, p); err != nil {
			return err
		}
		l := w.Top()
		if len(w.Stack) > 1 {
			if err := w.sameKey(first); err != nil {
				w.Stack = w.Stack[:len(w.Stack)-1]
				return err
			}
		}
		if l.Node.N == 0 {
			w.Eof = true
			return nil
		}
		if err := w.search(l, key, strict); err != nil {
			return err
		}
		if l.Node.Leaf {
			return nil
		}
		e, err := w.Current()
		if err != nil {
			return err
		}
		p, first = e.Ptr, e.Key
	}
}

// search finds the entry of a node at which seek continues.
func (w *Walker) search(l *level, key []byte, strict bool) error {
	lo, hi := 0, l.Node.N-1 // the entry is in [lo, hi]
	for lo < hi {
		l.I = (lo + hi + 1) / 2
		e, err := w.Current()
		if err != nil {
			return err
		}
		if d := bytes.Compare(e.Key, key); d < 0 || d == 0 && !strict {
			lo = l.I
		} else {
			hi = l.I - 1
		}
	}
	l.I = lo
	return nil
}

// Next moves to the next leaf entry; after the last it sets Eof. After an error it is at the entry, of a leaf or above,
// that cannot be followed, and may go on.
func (w *Walker) Next(ctx context.Context) error {
	for len(w.Stack) > 0 {
		l := w.Top()
		if l.I+1 < l.Node.N {
			l.I++
			return w.descend(ctx)
		}
		w.Stack = w.Stack[:len(w.Stack)-1]
	}
	w.Eof = true
	return nil
}

// descend goes from the current entry down to a leaf.
func (w *Walker) descend(ctx context.Context) error {
	for !w.Top().Node.Leaf {
		e, err := w.Current()
		if err != nil {
			return err
		}
		if err := w.Push(ctx, e.Ptr); err != nil {
			return err
		}
		if err := w.sameKey(e.Key); err != nil {
			w.Stack = w.Stack[:len(w.Stack)-1]
			return err
		}
	}
	return nil
}

// sameKey checks that the first key of the node just entered is the key that its parent has for it.
func (w *Walker) sameKey(key []byte) error {
	e, err := w.Current()
	if err == nil && !bytes.Equal(e.Key, key) {
		err = fault.Corruptf(w.Place(), w.Path()+".key", "expected %x as in the block above, found %x", key, e.Key)
	}
	return err
}

// following returns the key of the leaf entry after the current one; nil at the end. If that entry is in another leaf,
// the key is read from a level above.
func (w *Walker) following() ([]byte, error) {
	for d := len(w.Stack) - 1; d >= 0; d-- {
		l := &w.Stack[d]
		if l.I+1 >= l.Node.N {
			continue
		}
		e, err := l.Node.Entry(l.I + 1)
		if err != nil {
			at := w.f.Span(l.ptr)
			return nil, fault.Locate(err, at, true, w.Name)
		}
		return e.Key, nil
	}
	return nil, nil
}

// Block checks the data block of the entry e: it must be within the file and after the previous data block. The error
// is Corrupt.
func (w *Walker) Block(e block.IndexEntry) error {
	if reason := w.f.Problem(e.Ptr); reason != "" {
		return fault.Corruptf(w.Place(), w.Path(), "%s", reason)
	}
	if e.Ptr.Offset < w.Data {
		return fault.Corruptf(w.Place(), w.Path()+".offset", "%d: the block before it ends at %d", e.Ptr.Offset, w.Data)
	}
	w.Data = e.Ptr.Offset + e.Ptr.Size
	return nil
}
