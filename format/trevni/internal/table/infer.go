package table

import (
	"context"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni/internal/container"
	"stoa/format/trevni/internal/layout"
	"stoa/format/trevni/internal/page"
	"stoa/format/trevni/internal/schema"
	"stoa/internal/nest"
	"stoa/internal/typewords"
	"stoa/store"
	"stoa/vec"
)

// Limits for the data read to infer a schema, so that opening stays quick.
const (
	maxSeen = 64 << 20  // stored bytes
	maxWork = 256 << 20 // steps of nest.Seen
)

// plan determines the Arrow schema of a file, and how its columns are read.
func (t *Table) plan(ctx context.Context, tree store.Tree, o readOptions) error {
	if o.schema == "" {
		return t.infer(ctx)
	}
	h := &t.File.Header
	if h.Dialect == layout.Avro {
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
	if t.Plan = schema.PlanLeaves(h, sc.Fields()); t.Plan == nil {
		return fault.Invalidf("schema=%s: the columns of %s are not of this schema: their number, types or "+
			"max levels are others", o.schema, t.name)
	}
	t.Plan.How = "schema=" + o.schema
	for _, ph := range t.Plan.Phys {
		name, top := h.Columns[ph.Stored].Name, sc.Field(ph.Path[0]).Name
		if name != top && !strings.HasPrefix(name, top+".") {
			return fault.Invalidf("schema=%s: where it has %q the file has a column %q", o.schema, top, name)
		}
	}
	return nil
}

// infer plans from the file alone. If names and maximum levels do not determine which steps are repeated, entries are
// read.
func (t *Table) infer(ctx context.Context) error {
	h := &t.File.Header
	if t.Plan = schema.PlanOf(h, nil); t.Plan == nil || len(t.Plan.Open) == 0 {
		return nil
	}
	l := &levelSampler{f: t.File, left: maxSeen, work: maxWork, seen: make([]*nest.Seen, len(h.Columns))}
	for _, field := range t.Plan.Open {
		for _, i := range field {
			if h.Columns[i].MaxRep == 0 {
				continue // levels of flat columns never contradict the simplest schema
			}
			if err := l.column(ctx, i, len(field) > 1); err != nil {
				return err
			}
		}
	}
	t.Plan = schema.PlanOf(h, l.seen)
	if l.cut {
		t.Sampled = ", not all of whose entries were read"
	}
	return nil
}

// levelSampler reads the levels of columns, up to the limits above.
type levelSampler struct {
	f          *container.File
	left, work int64
	cut        bool // there is more than the limits allow
	seen       []*nest.Seen
	arena      vec.Arena
}

// column reads the levels of column i. Blocks that cannot be read are skipped; the scan reports them.
func (l *levelSampler) column(ctx context.Context, i int, joint bool) error {
	c := &l.f.Header.Columns[i]
	cb, err := l.f.Blocks(ctx, i)
	if err != nil {
		if container.IsFault(err) {
			return nil
		}
		return err
	}
	s := nest.NewSeen(c.MaxDef, c.MaxRep, joint)
	l.seen[i] = s
	for k := range cb.Blocks {
		b := &cb.Blocks[k]
		if l.left -= b.At.Len; l.left < 0 || l.work < b.Rows*s.Work() {
			s.Skip()
			l.cut = true
			return nil
		}
		l.work -= b.Rows * s.Work()
		def, rep, err := l.block(ctx, i, b)
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

// block returns the levels of a block, valid until the next call.
func (l *levelSampler) block(ctx context.Context, i int, b *container.Block) (def, rep []byte, err error) {
	if b.Lost != nil {
		return nil, nil, b.Lost
	}
	if b.Rows > l.f.Limits.Page {
		return nil, nil, fault.Limitf(b.At, "", "more than a page may have (page limit or memory limit)")
	}
	c := &l.f.Header.Columns[i]
	o, _, err := l.f.ReadBlock(ctx, i, b, "block", &l.arena, false)
	if err != nil {
		return nil, nil, err
	}
	at, err := page.SplitLevels(l.f.Header.Dialect, o.Raw, b.Rows, c.MaxDef, c.MaxRep)
	if err != nil {
		return nil, nil, err
	}
	def, rep = l.arena.Bytes(int(b.Rows)), l.arena.Bytes(int(b.Rows))
	if err := page.UnpackLevelsUpTo(def, at.Def, c.MaxDef, "definition-array", 0); err != nil {
		return nil, nil, err
	}
	return def, rep, page.UnpackLevelsUpTo(rep, at.Rep, c.MaxRep, "repetition-array", 0)
}
