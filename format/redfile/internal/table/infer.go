package table

import (
	"context"
	"errors"
	"io"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/page"
	"stoa/format/redfile/internal/schema"
	"stoa/internal/nest"
	"stoa/vec"
)

// Limits on the bytes read to infer a schema, so that opening a file remains fast.
const (
	maxSeen = 64 << 20  // stored bytes
	maxWork = 256 << 20 // steps of nest.Seen
)

// infer makes the schema of a file of generation A or B from the paths and maximum levels of its leaves. If these do
// not determine which groups repeat, it also reads the levels of entries.
func (f *File) infer(ctx context.Context, stored []schema.Leaf) error {
	l := &levelSampler{f: f, left: maxSeen, work: maxWork, seen: make([]*nest.Seen, len(stored))}
	open, err := f.guess(stored, l.seen)
	if err != nil {
		return err
	}
	for _, field := range open {
		for _, col := range field {
			if stored[col].MaxRep == 0 {
				continue // levels of flat columns never contradict the simplest schema
			}
			l.seen[col] = nest.NewSeen(int(stored[col].MaxDef), int(stored[col].MaxRep), len(field) > 1)
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
		f.Guessed = "no other schema has these levels"
	case l.truncated:
		f.Guessed = "other schemas may have these levels, too, and not all entries were read"
	default:
		f.Guessed = "other schemas would have these levels, too, and the simplest was chosen"
	}
	return nil
}

// guess makes the simplest schema that is consistent with paths, levels and seen entries. It returns the columns of
// each field for which other schemas would be consistent as well.
func (f *File) guess(stored []schema.Leaf, seen []*nest.Seen) (open [][]int, err error) {
	paths := make([]nest.Path, len(stored))
	for i, l := range stored {
		paths[i] = nest.Path{Steps: l.Path, MaxDef: int(l.MaxDef), MaxRep: int(l.MaxRep), Seen: seen[i]}
	}
	steps, ok := nest.Infer(paths, func(s *nest.Step, depth int) bool {
		return depth > 0 && len(s.Children) > 0 && (s.Name == "list" || s.Name == "map")
	})
	if !ok {
		return nil, fault.Unsupportedf(f.MetaAt, "file_metadata",
			"the levels of the columns fit no schema of their paths")
	}
	f.schemaTree = &schema.Node{Name: "schema", Type: -1, Converted: layout.ConvNone}
	for _, s := range steps {
		f.schemaTree.Children = append(f.schemaTree.Children, nodeOfStep(s, stored))
		if s.Open {
			open = append(open, s.Columns(nil))
		}
	}
	clear(f.tables) // these tables belong to the leaves of an earlier guess
	return open, f.makeArrow(stored)
}

func nodeOfStep(s *nest.Step, stored []schema.Leaf) *schema.Node {
	n := &schema.Node{Name: s.Name, Repetition: map[nest.Kind]layout.Repetition{nest.Optional: layout.Optional,
		nest.Repeated: layout.Repeated}[s.Kind], Type: -1, Converted: layout.ConvNone}
	if s.Column >= 0 {
		n.Type, n.Converted = stored[s.Column].Type, stored[s.Column].Converted
		return n
	}
	for _, c := range s.Children {
		n.Children = append(n.Children, nodeOfStep(c, stored))
	}
	n.Annotate()
	return n
}

// levelSampler reads the levels of columns, up to the limits above.
type levelSampler struct {
	f          *File
	left, work int64        // remaining of maxSeen and maxWork
	truncated  bool         // left or work is exhausted
	seen       []*nest.Seen // by column
	arena      vec.Arena
}

// column reads the levels of a column. Chunks that cannot be read are skipped: the error is reported when they are
// read.
func (l *levelSampler) column(ctx context.Context, col int) error {
	for g := range l.f.Footer.Groups {
		t, err := l.f.Table(ctx, g, col)
		for i := 0; err == nil; i++ {
			err = l.page(ctx, t, col, i)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case l.left < 0 || l.work < 0:
			l.seen[col].Skip()
			l.truncated = true
			return nil
		case !errors.Is(err, io.EOF):
			l.seen[col].Skip()
		}
	}
	return nil
}

// page reads the levels of page i of a chunk; io.EOF after the last one.
func (l *levelSampler) page(ctx context.Context, t *page.Table, col, i int) error {
	p, err := t.Get(ctx, i)
	if err != nil {
		return err
	}
	l.left -= p.Size
	l.work -= p.Values * l.seen[col].Work()
	at := t.At.Sub(p.Off, p.Size)
	if l.left < 0 || l.work < 0 {
		return fault.Limitf(at, "", "more than is read to infer a schema")
	}
	l.arena.Reset()
	b, err := format.ReadPage(ctx, t.Src, at, l.f.Limits, "page", l.arena.Bytes)
	if err != nil {
		return err
	}
	def, rep, err := t.Levels(p, b, &l.arena)
	if err == nil {
		l.seen[col].Add(def, rep)
	}
	return err
}
