package scan

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan/internal/emit"
	"stoa/internal/scan/internal/plan"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// task is the unit of reading; with several workers, one of them reads it.
type task struct {
	groups   []format.RowGroup
	rows     vec.Range    // of groups[0], if it is the only one; zero = all
	upcoming *upcoming    // groups[0], for the store; nil: it is not told
	lost     *region.Loss // a part that could not be opened, instead of groups
	out      chan result
	whole    bool // all results are in out; valid once out is closed
}

// tasks divides the scan into tasks.
func (r *run) tasks(ctx context.Context) iter.Seq2[*task, error] {
	return func(yield func(*task, error) bool) {
		yieldTask := func(t *task) error {
			for _, one := range r.cut(t) {
				if !yield(one, nil) {
					return emit.ErrLeft
				}
			}
			return nil
		}
		all := r.parts
		if r.Plan.Spec.Pieces != nil {
			all = r.pieces
		}
		if err := all(ctx, yieldTask); err != nil && err != emit.ErrLeft {
			yield(&task{}, err)
		}
	}
}

// parts yields the row groups of all parts as tasks: one by one, or together if they must be merged.
func (r *run) parts(ctx context.Context, yield func(*task) error) error {
	for part, err := range r.Src.Reader.Parts(ctx, r.Plan.Query) {
		if err != nil {
			return err
		}
		groups, lost, err := r.groups(ctx, part)
		if err != nil {
			return err
		}
		if lost != nil {
			if err := yield(&task{lost: lost}); err != nil {
				return err
			}
		}
		clusters := r.Plan.Clusters(groups, r.Src.Reader.Order())
		upcoming := upcomingOf(clusters)
		for i, c := range clusters {
			t := &task{groups: c, upcoming: upcoming[i]}
			if err := yield(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxTasks is the maximum number of tasks that a row group is divided into. A row group that declares more rows is read
// by one worker, as the declared number may be damaged.
const maxTasks = 1 << 16

// workers reports whether several workers read. Positions have to be counted by a single one.
func (r *run) workers() bool { return r.Plan.Spec.Parallel > 1 && r.Plan.Spec.Rows == (vec.Range{}) }

// cut divides t for several workers, if it is a row group of many rows.
func (r *run) cut(t *task) []*task {
	if !r.workers() || t.lost != nil || len(t.groups) > 1 || r.Plan.Batched {
		return []*task{t}
	}
	step := int64(plan.TaskWindows * r.Plan.Spec.Batch)
	all := t.rows
	if all == (vec.Range{}) {
		all.To = t.groups[0].Rows
	}
	if all.Len() <= step || all.Len()/step > maxTasks {
		return []*task{t}
	}
	var out []*task
	for at := all.From; at < all.To; at += step {
		out = append(out, &task{groups: t.groups, rows: vec.Range{From: at, To: min(at+step, all.To)},
			upcoming: t.upcoming})
	}
	if t.upcoming != nil {
		t.upcoming.tasks.Store(int32(len(out)))
	}
	return out
}

// groups returns the row groups of a part. If they cannot even be listed, the whole part is lost, provided the damage
// policy continues.
func (r *run) groups(ctx context.Context, part format.Part) ([]format.RowGroup, *region.Loss, error) {
	groups, err := r.Src.Reader.RowGroups(ctx, part, r.Plan.Query)
	if err == nil || !r.Tolerates(err) {
		return groups, nil, err
	}
	l := &region.Loss{Part: part.Ref, Rows: [2]int64{-1, -1}, Err: err}
	if part.Rows >= 0 {
		l.Rows, l.Exact = [2]int64{0, part.Rows}, true
	}
	return nil, l, nil
}

// pieces yields the pieces that the spec names as tasks, in order.
func (r *run) pieces(ctx context.Context, yield func(*task) error) error {
	left := r.Plan.Spec.Pieces
	for part, err := range r.Src.Reader.Parts(ctx, r.Plan.Query) {
		if err != nil {
			return err
		}
		if len(left) == 0 {
			return nil
		}
		if left[0].Part != part.Ref {
			continue
		}
		groups, lost, err := r.groups(ctx, part)
		if err != nil {
			return err
		}
		if lost != nil {
			if err := yield(&task{lost: lost}); err != nil {
				return err
			}
			left = left[1:]
			for len(left) > 0 && left[0].Part == part.Ref {
				left = left[1:]
			}
			continue
		}
		for len(left) > 0 && left[0].Part == part.Ref {
			if err := r.piece(part, groups, left[0], yield); err != nil {
				return err
			}
			left = left[1:]
		}
	}
	if len(left) > 0 {
		return &fault.Error{Class: fault.Invalid, At: fault.Span{Object: left[0].Part},
			Cause: fmt.Errorf("the table %w since the split was planned: the part is not there, or not in this place",
				store.ErrChanged)}
	}
	return nil
}

func (r *run) piece(part format.Part, groups []format.RowGroup, p plan.Piece, yield func(*task) error) error {
	if err := p.Check("piece"); err != nil {
		return err
	}
	if part.Stamp != p.Stamp {
		return &fault.Error{Class: fault.Invalid, At: fault.Span{Object: part.Ref},
			Cause: fmt.Errorf("it %w since the split was planned: it was %s, now it is %s", store.ErrChanged,
				p.Stamp, part.Stamp)}
	}
	var chosen []format.RowGroup
	for _, i := range p.Groups {
		k := slices.IndexFunc(groups, func(g format.RowGroup) bool { return g.Index == i })
		if k < 0 {
			return fault.New(fault.Invalid, fault.Span{Object: part.Ref}, "",
				"the split names row group %d, which is not there", i)
		}
		chosen = append(chosen, groups[k])
	}
	upcoming := upcomingOf([][]format.RowGroup{chosen})[0]
	if p.Rows == (vec.Range{}) {
		return yield(&task{groups: chosen, upcoming: upcoming})
	}
	g := chosen[0]
	if g.Rows >= 0 && p.Rows.To > g.Rows {
		return fault.New(fault.Invalid, fault.Span{Object: part.Ref}, "",
			"the split names rows %d to %d, the row group has %d", p.Rows.From, p.Rows.To, g.Rows)
	}
	return yield(&task{groups: chosen, rows: p.Rows, upcoming: upcoming})
}
