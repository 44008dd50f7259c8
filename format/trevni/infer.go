package trevni

import (
	"context"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/nest"
	"stoa/internal/typewords"
	"stoa/store"
	"stoa/vec"
)

// What is looked at of a file to infer its schema: opening it is to stay quick.
const (
	mostSeen = 64 << 20  // stored bytes
	mostWork = 256 << 20 // steps of nest.Seen
)

// plan chooses how the file is shown.
func (t *table) plan(ctx context.Context, tree store.Tree, o readOptions) error {
	if o.schema == "" {
		return t.infer(ctx)
	}
	h := &t.f.header
	if h.Dialect == Avro {
		return fault.Invalidf("schema=%s: a file in Avro's dialect says its schema itself", o.schema)
	}
	fields, err := format.ReadSchemaFile(ctx, tree, o.schema)
	if err != nil {
		return err
	}
	sc, err := typewords.Of(fields)
	if err != nil {
		return err
	}
	if t.p = planLeaves(h, sc.Fields()); t.p == nil {
		return fault.Invalidf("schema=%s: the columns of %s are not of this schema: their number, types or "+
			"greatest levels are others", o.schema, t.name)
	}
	t.p.how = "schema=" + o.schema
	for _, ph := range t.p.phys {
		name, top := h.Columns[ph.column].Name, sc.Field(ph.Path[0]).Name
		if name != top && !strings.HasPrefix(name, top+".") {
			return fault.Invalidf("schema=%s: where it has %q the file has a column %q", o.schema, top, name)
		}
	}
	return nil
}

// infer plans how the file is shown by what it says itself. Where names and greatest levels leave a choice in
// what repeats, the entries are looked at.
func (t *table) infer(ctx context.Context) error {
	h := &t.f.header
	if t.p = planOf(h, nil); t.p == nil || len(t.p.open) == 0 {
		return nil
	}
	l := &looker{f: t.f, left: mostSeen, work: mostWork, seen: make([]*nest.Seen, len(h.Columns))}
	for _, field := range t.p.open {
		for _, i := range field {
			if h.Columns[i].MaxRep == 0 {
				continue // which may be null never contradicts the plainest
			}
			if err := l.column(ctx, i, len(field) > 1); err != nil {
				return err
			}
		}
	}
	t.p = planOf(h, l.seen)
	if l.cut {
		t.partly = ", not all of whose entries were looked at"
	}
	return nil
}

// looker looks at the levels of columns.
type looker struct {
	f          *file
	left, work int64
	cut        bool // there is more than may be looked at
	seen       []*nest.Seen
	arena      vec.Arena
}

// column looks at column i. What cannot be read is passed over: who reads it tells.
func (l *looker) column(ctx context.Context, i int, together bool) error {
	c := &l.f.header.Columns[i]
	cb, err := l.f.blocks(ctx, i)
	if err != nil {
		if isFault(err) {
			return nil
		}
		return err
	}
	s := nest.NewSeen(c.MaxDef, c.MaxRep, together)
	l.seen[i] = s
	for k := range cb.blocks {
		b := &cb.blocks[k]
		if l.left -= b.at.Len; l.left < 0 || l.work < b.rows*s.Work() {
			s.Skip()
			l.cut = true
			return nil
		}
		l.work -= b.rows * s.Work()
		def, rep, err := l.block(ctx, c, b)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			s.Skip()
		default:
			s.Add(def, rep)
		}
	}
	return nil
}

// block gives the levels of a block, until the next one.
func (l *looker) block(ctx context.Context, c *Column, b *block) (def, rep []byte, err error) {
	if b.lost != nil {
		return nil, nil, b.lost
	}
	if most := l.f.limits.Page; b.at.Len > most || b.rows > most {
		return nil, nil, fault.Limitf(b.at, "", "more than a page may have")
	}
	l.arena.Reset()
	stored := l.arena.Bytes(int(b.at.Len))
	if err := format.ReadFull(ctx, l.f.src, b.at, "block", stored); err != nil {
		return nil, nil, err
	}
	o, err := l.f.openBlock(c, b, stored, &l.arena, false)
	if err != nil {
		return nil, nil, err
	}
	at, err := lay(l.f.header.Dialect, o.raw, b.rows, c.MaxDef, c.MaxRep)
	if err != nil {
		return nil, nil, err
	}
	def, rep = l.arena.Bytes(int(b.rows)), l.arena.Bytes(int(b.rows))
	if err := levelsOf(def, at.def, c.MaxDef, "definition-array", 0); err != nil {
		return nil, nil, err
	}
	return def, rep, levelsOf(rep, at.rep, c.MaxRep, "repetition-array", 0)
}
