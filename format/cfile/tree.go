package cfile

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"

	"stoa/fault"
)

// maxDepth is how many levels an index tree may have. A tree of three holds more blocks than a file can have rows.
const maxDepth = 32

// walker stands on a leaf entry of an index tree. Trees are written in post-order, so a node lies behind its children, and
// the blocks of each level follow each other: that is demanded here, and with it every walk ends.
type walker struct {
	f     *file
	name  string // "posidx" or "validx"
	root  blockPtr
	stack []level
	ends  [maxDepth]int64 // where the last node seen at each depth ended
	data  int64           // where the last data block ended
	eof   bool
}

// level is a node on the way from the root, and the entry that was taken.
type level struct {
	node indexNode
	ptr  blockPtr
	i    int
}

func (f *file) positions() *walker { return &walker{f: f, name: "posidx", root: *f.footer.PosIdx} }
func (f *file) values() *walker    { return &walker{f: f, name: "validx", root: *f.footer.ValIdx} }

// path names the current entry: posidx/entry[2]/entry[12].
func (w *walker) path() string {
	var b strings.Builder
	b.WriteString(w.name)
	for _, l := range w.stack {
		fmt.Fprintf(&b, "/entry[%d]", l.i)
	}
	return b.String()
}

// load reads the node at p, which the entry on top of the stack points to.
func (w *walker) load(ctx context.Context, p blockPtr) (indexNode, error) {
	if reason := w.f.bad(p); reason != "" {
		return indexNode{}, fault.Corruptf(w.place(), w.path(), "%s", reason)
	}
	if n := len(w.stack); n >= maxDepth {
		return indexNode{}, fault.Corruptf(w.f.span(p), w.path(), "the tree has more than %d levels", maxDepth)
	} else if n > 0 && p.offset+p.size > w.stack[n-1].ptr.offset {
		return indexNode{}, fault.Corruptf(w.place(), w.path(), "offset %d: an index block lies before the one that points to it (%d)", p.offset, w.stack[n-1].ptr.offset)
	}
	if x, ok := w.f.nodes.get(p); ok {
		return x, nil
	}
	path := w.path()
	x, err := w.f.readIndexBlock(ctx, p, path)
	if err == nil && x.n == 0 && (len(w.stack) > 0 || !x.leaf) {
		err = fault.Corruptf(w.f.span(p), path, "an index block without entries")
	}
	if err == nil && x.n > 0 {
		w.f.nodes.put(p, &x)
	}
	return x, err
}

// nodes keeps index blocks of an open file, taken apart: look-ups go through the same ones again and again. The zero value is ready, and
// safe for concurrent use.
type nodes struct {
	mu   sync.RWMutex
	have map[blockPtr]indexNode
	size int
}

// maxNodes is how many bytes of a file's index blocks are kept, about.
const maxNodes = 1 << 20

func (k *nodes) get(p blockPtr) (indexNode, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	x, ok := k.have[p]
	return x, ok
}

// put keeps a node whose entries are all whole. Others tell what is wrong each time.
func (k *nodes) put(p blockPtr, x *indexNode) {
	size := len(x.block.data) + 48*x.n
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.size+size > maxNodes {
		return
	}
	all := make([]indexEntry, x.n)
	for i := range all {
		var err error
		if all[i], err = x.entry(i); err != nil {
			return
		}
	}
	x.entries = all
	if k.have == nil {
		k.have = map[blockPtr]indexNode{}
	}
	k.have[p] = *x
	k.size += size
}

// readIndexBlock reads and opens an index block.
func (f *file) readIndexBlock(ctx context.Context, p blockPtr, path string) (indexNode, error) {
	b, err := f.readBlock(ctx, p, path)
	if err != nil {
		return indexNode{}, err
	}
	c := b.cursor(path)
	x := parseIndexBlock(c, false)
	x.block = b
	return x, c.Err()
}

// place is the block that holds the current entry: what errors about the entry point at.
func (w *walker) place() fault.Span {
	if n := len(w.stack); n > 0 {
		return w.f.span(w.stack[n-1].ptr)
	}
	return w.f.footSpan()
}

// push enters the node at p.
func (w *walker) push(ctx context.Context, p blockPtr) error {
	x, err := w.load(ctx, p)
	if err != nil {
		return err
	}
	d := len(w.stack)
	if p.offset < w.ends[d] {
		return fault.Corruptf(w.place(), w.path(), "offset %d: the block before it ends at %d", p.offset, w.ends[d])
	}
	w.ends[d] = p.offset + p.size
	w.stack = append(w.stack, level{x, p, 0})
	return nil
}

func (w *walker) top() *level { return &w.stack[len(w.stack)-1] }

// current is the entry that w stands on.
func (w *walker) current() (indexEntry, error) {
	l := w.top()
	e, err := l.node.entry(l.i)
	if err != nil {
		return e, fault.Locate(err, w.place(), true, w.parentPath())
	}
	return e, nil
}

// parentPath is the path of the node that holds the current entry.
func (w *walker) parentPath() string {
	p := w.path()
	return p[:strings.LastIndexByte(p, '/')]
}

// first goes to the first leaf entry.
func (w *walker) first(ctx context.Context) error { return w.seek(ctx, nil, false) }

// seek goes to the last leaf entry whose key is not above key (strict: that is below it), or else to the first one.
func (w *walker) seek(ctx context.Context, key []byte, strict bool) error {
	w.stack, w.eof, w.ends, w.data = w.stack[:0], false, [maxDepth]int64{}, 0
	p, first := w.root, []byte(nil)
	for {
		if err := w.push(ctx, p); err != nil {
			return err
		}
		l := w.top()
		if len(w.stack) > 1 {
			if err := w.sameKey(first); err != nil {
				return err
			}
		}
		if l.node.n == 0 {
			w.eof = true
			return nil
		}
		if err := w.search(l, key, strict); err != nil {
			return err
		}
		if l.node.leaf {
			return nil
		}
		e, err := w.current()
		if err != nil {
			return err
		}
		p, first = e.ptr, e.key
	}
}

// search finds the entry of a node where seek goes on.
func (w *walker) search(l *level, key []byte, strict bool) error {
	lo, hi := 0, l.node.n-1 // the entry wanted is in [lo, hi]
	for lo < hi {
		l.i = (lo + hi + 1) / 2
		e, err := w.current()
		if err != nil {
			return err
		}
		if d := bytes.Compare(e.key, key); d < 0 || d == 0 && !strict {
			lo = l.i
		} else {
			hi = l.i - 1
		}
	}
	l.i = lo
	return nil
}

// next goes to the next leaf entry; eof is set behind the last.
func (w *walker) next(ctx context.Context) error {
	for len(w.stack) > 0 {
		l := w.top()
		if l.i+1 < l.node.n {
			l.i++
			return w.descend(ctx)
		}
		w.stack = w.stack[:len(w.stack)-1]
	}
	w.eof = true
	return nil
}

// descend goes from the current entry down to a leaf.
func (w *walker) descend(ctx context.Context) error {
	for !w.top().node.leaf {
		e, err := w.current()
		if err != nil {
			return err
		}
		if err := w.push(ctx, e.ptr); err != nil {
			return err
		}
		if err := w.sameKey(e.key); err != nil {
			return err
		}
	}
	return nil
}

// sameKey checks that the first key of the node just entered is the one its parent has for it.
func (w *walker) sameKey(key []byte) error {
	e, err := w.current()
	if err == nil && !bytes.Equal(e.key, key) {
		err = fault.Corruptf(w.place(), w.path()+".key", "%x, but the block above says %x", e.key, key)
	}
	return err
}

// following is the key of the leaf entry behind the current one, which the levels above know without reading its leaf;
// nil at the end.
func (w *walker) following() ([]byte, error) {
	for d := len(w.stack) - 1; d >= 0; d-- {
		l := &w.stack[d]
		if l.i+1 >= l.node.n {
			continue
		}
		e, err := l.node.entry(l.i + 1)
		if err != nil {
			at := w.f.span(l.ptr)
			return nil, fault.Locate(err, at, true, w.name)
		}
		return e.key, nil
	}
	return nil, nil
}

// block checks the data block of the current entry: it lies in the file, behind the one before.
func (w *walker) block(e indexEntry) error {
	if reason := w.f.bad(e.ptr); reason != "" {
		return fault.Corruptf(w.place(), w.path(), "%s", reason)
	}
	if e.ptr.offset < w.data {
		return fault.Corruptf(w.place(), w.path()+".offset", "%d: the block before it ends at %d", e.ptr.offset, w.data)
	}
	w.data = e.ptr.offset + e.ptr.size
	return nil
}
