package scan

import (
	"context"
	"sync"
	"sync/atomic"

	"stoa/format"
	"stoa/store"
	"stoa/vec"
)

// foresee tells the store which bytes of a task's row group will be read, and of those after it as far as the store has
// room, which are then under way while the first is decoded. Scans that want only some rows of a row group, or have a
// filter, do not know before they have read others.
func (r *run) foresee(ctx context.Context, t *task, ranges vec.Ranges) {
	g, want := t.upcoming, t.rows
	if g == nil {
		return
	}
	if want == (vec.Range{}) {
		want.To = g.group.Rows
	}
	p, ok := r.Src.Reader.(format.Placed)
	if ok && r.Plan.Filter == nil && r.Plan.Spec.Rows == (vec.Range{}) && g.group.Rows > 0 && len(ranges) == 1 &&
		ranges[0] == want {
		for told := true; told && g != nil; g = g.next {
			told = g.tell(ctx, r, p)
		}
	}
}

// upcoming is what the tasks of a row group share: whether the store was told that it will be read.
type upcoming struct {
	group format.RowGroup
	next  *upcoming    // the row group that is read after it; nil: not known
	tasks atomic.Int32 // not read yet

	mu   sync.Mutex
	end  func() // ends what the store was told; nil: it was not told, or had no room
	over bool
}

// upcomingOf returns what the tasks of row groups that follow each other share.
func upcomingOf(clusters [][]format.RowGroup) []*upcoming {
	out := make([]*upcoming, len(clusters))
	for i := len(clusters) - 1; i >= 0; i-- {
		out[i] = &upcoming{group: clusters[i][0]}
		out[i].tasks.Store(1)
		if i+1 < len(out) {
			out[i].next = out[i+1]
		}
	}
	return out
}

// tell tells the store, unless that was done, and reports whether the store makes use of it. What is not read before
// the scan ends, ends with its context.
func (u *upcoming) tell(ctx context.Context, r *run, p format.Placed) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.end != nil || u.over {
		return true
	}
	f := r.foreseeGroup(ctx, p, u.group)
	if f == nil {
		return false
	}
	f = sync.OnceFunc(f)
	stop := context.AfterFunc(ctx, f)
	u.end = func() {
		stop()
		f()
	}
	return true
}

// read is called after each task; the last one ends what the store was told.
func (u *upcoming) read() {
	if u == nil || u.tasks.Add(-1) > 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over = true; u.end != nil {
		u.end()
	}
}

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
