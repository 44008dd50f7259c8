package scan

import (
	"context"
	"sync"
	"sync/atomic"

	"stoa/format"
	"stoa/store"
	"stoa/vec"
)

// foresee tells the store which bytes of a row group will be read, and of the one after it, which are then under way
// while the first is decoded. Scans that want only some rows of a row group, or have a filter, do not know before they
// have read others. The result is to be called when the task has been read.
func (r *run) foresee(ctx context.Context, t *task, ranges vec.Ranges) (done func()) {
	g, want := t.groups[0], t.rows
	if want == (vec.Range{}) {
		want.To = g.Rows
	}
	p, ok := r.Src.Reader.(format.Placed)
	if !ok || r.Plan.Filter != nil || r.Plan.Spec.Rows != (vec.Range{}) || g.Rows <= 0 || len(ranges) != 1 ||
		ranges[0] != want {
		return func() {}
	}
	if t.pieces != nil {
		return t.pieces.begin(ctx, func() func() { return r.foreseeGroup(ctx, p, g) })
	}
	for _, g := range []*format.RowGroup{&g, t.next} {
		if g == nil || r.foreseen[keyOf(*g)] != nil {
			continue
		}
		if f := r.foreseeGroup(ctx, p, *g); f != nil {
			if r.foreseen == nil {
				r.foreseen = map[groupKey]func(){}
			}
			r.foreseen[keyOf(*g)] = f
		}
	}
	return func() {
		if f := r.foreseen[keyOf(g)]; f != nil {
			f()
			delete(r.foreseen, keyOf(g))
		}
	}
}

// groupKey identifies a row group of a scan.
type groupKey struct {
	part  string
	index int
}

func keyOf(g format.RowGroup) groupKey { return groupKey{g.Part, g.Index} }

// foreseeGroup tells the store where the columns of a row group are; nil: the store makes no use of it.
func (r *run) foreseeGroup(ctx context.Context, p format.Placed, g format.RowGroup) (done func()) {
	object := ""
	var ranges []store.Range
	for _, col := range r.Plan.Query.Cols {
		at := p.Place(g, col)
		if at.Len <= 0 || object != "" && at.Object != object {
			return nil
		}
		object = at.Object
		ranges = append(ranges, store.Range{Off: at.Off, Len: at.Len})
	}
	if object == "" {
		return nil
	}
	return r.Src.Objects.Foresee(ctx, object, ranges)
}

// forget ends what was foreseen and not read.
func (r *run) forget() {
	for _, f := range r.foreseen {
		f()
	}
	r.foreseen = nil
}

// pieces are the tasks that a row group was divided into: the first that begins tells the store, and the last that ends
// ends that.
type pieces struct {
	left  atomic.Int32
	first sync.Once
	end   func() // nil: the store makes no use of it
}

func (p *pieces) begin(ctx context.Context, foresee func() func()) (done func()) {
	p.first.Do(func() {
		if f := foresee(); f != nil {
			p.end = sync.OnceFunc(f)
			context.AfterFunc(ctx, p.end) // the scan may end before all pieces have begun
		}
	})
	return func() {
		if p.left.Add(-1) == 0 && p.end != nil {
			p.end()
		}
	}
}
