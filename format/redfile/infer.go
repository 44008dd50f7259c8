package redfile

import (
	"context"
	"errors"
	"io"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/nest"
	"stoa/vec"
)

// What is looked at of a file to infer its schema: opening it is to stay quick.
const (
	mostSeen = 64 << 20  // stored bytes
	mostWork = 256 << 20 // steps of nest.Seen
)

// infer makes the schema of a file of generation A or B, which says of it the paths of the leaves and their
// greatest levels. Where these leave a choice in what repeats, the entries are looked at.
func (f *file) infer(ctx context.Context, stored []leaf) error {
	l := &looker{f: f, left: mostSeen, work: mostWork, seen: make([]*nest.Seen, len(stored))}
	open, err := f.guess(stored, l.seen)
	if err != nil {
		return err
	}
	for _, field := range open {
		for _, col := range field {
			if stored[col].maxRep == 0 {
				continue // which may be null never contradicts the plainest
			}
			l.seen[col] = nest.NewSeen(int(stored[col].maxDef), int(stored[col].maxRep), len(field) > 1)
			if err := l.column(ctx, col); err != nil {
				return err
			}
		}
	}
	if len(open) > 0 {
		if open, err = f.guess(stored, l.seen); err != nil {
			return err
		}
	}
	switch {
	case len(open) == 0:
		f.guessed = "no other has these levels"
	case l.cut:
		f.guessed = "others may have these levels, too, and not all entries were looked at"
	default:
		f.guessed = "others would have these levels, too, and the plainest was taken"
	}
	return nil
}

// guess takes the plainest schema that the paths and levels of the leaves allow, and gives the columns of the
// fields of which there are others.
func (f *file) guess(stored []leaf, seen []*nest.Seen) (open [][]int, err error) {
	paths := make([]nest.Path, len(stored))
	for i, l := range stored {
		paths[i] = nest.Path{Steps: l.path, MaxDef: int(l.maxDef), MaxRep: int(l.maxRep), Seen: seen[i]}
	}
	steps, ok := nest.Infer(paths, func(s *nest.Step, depth int) bool {
		return depth > 0 && len(s.Children) > 0 && (s.Name == "list" || s.Name == "map")
	})
	if !ok {
		return nil, fault.Unsupportedf(f.metaAt, "file_metadata",
			"the levels of the columns fit no schema of their paths")
	}
	f.tree0 = &node{name: "schema", typ: -1, conv: convNone}
	for _, s := range steps {
		f.tree0.children = append(f.tree0.children, nodeOfStep(s, stored))
		if s.Open {
			open = append(open, s.Columns(nil))
		}
	}
	clear(f.tables) // of columns as they were taken for before
	return open, f.makeArrow(stored)
}

func nodeOfStep(s *nest.Step, stored []leaf) *node {
	n := &node{name: s.Name, rep: map[nest.Kind]repetition{nest.Optional: optional,
		nest.Repeated: repeated}[s.Kind], typ: -1, conv: convNone}
	if s.Column >= 0 {
		n.typ, n.conv = stored[s.Column].typ, stored[s.Column].conv
		return n
	}
	for _, c := range s.Children {
		n.children = append(n.children, nodeOfStep(c, stored))
	}
	n.annotate()
	return n
}

// looker looks at the levels of columns.
type looker struct {
	f          *file
	left, work int64
	cut        bool // there is more than may be looked at
	seen       []*nest.Seen
	arena      vec.Arena
}

// column looks at a column. What cannot be read is passed over: who reads it tells.
func (l *looker) column(ctx context.Context, col int) error {
	for g := range l.f.meta.groups {
		t, err := l.f.table(ctx, g, col)
		for i := 0; err == nil; i++ {
			err = l.page(ctx, t, col, i)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case l.left < 0 || l.work < 0:
			l.seen[col].Skip()
			l.cut = true
			return nil
		case !errors.Is(err, io.EOF):
			l.seen[col].Skip()
		}
	}
	return nil
}

// page looks at page i of a chunk; io.EOF behind the last one.
func (l *looker) page(ctx context.Context, t *pageTable, col, i int) error {
	p, err := t.get(ctx, i)
	if err != nil {
		return err
	}
	l.left -= p.size
	l.work -= p.values * l.seen[col].Work()
	if most := l.f.limits.Page; l.left < 0 || l.work < 0 || p.size > most {
		return fault.Limitf(t.at.Sub(p.off, p.size), "", "more than is looked at")
	}
	l.arena.Reset()
	b, at := l.arena.Bytes(int(p.size)), t.at.Sub(p.off, p.size)
	if err := format.ReadFull(ctx, t.src, at, "page", b); err != nil {
		return err
	}
	def, rep, err := t.levels(p, b, &l.arena)
	if err == nil {
		l.seen[col].Add(def, rep)
	}
	return err
}
