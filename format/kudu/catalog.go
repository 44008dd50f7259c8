package kudu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/internal/pb"
	"stoa/region"
	"stoa/vec"
	"stoa/wire"
)

// A master keeps what it knows in a table of one tablet, sys.catalog: entry_type (int8), entry_id (string), metadata, a message by the
// type. The tables and tablets in it say what there must be, under which name, wherever it is.
const (
	catalogTable  = 1 // SysTablesEntryPB; entry_id is the table's id
	catalogTablet = 2 // SysTabletsEntryPB; entry_id is the tablet's id
)

// catalog is what a master's directory tells.
type catalog struct {
	tables  map[string]catalogEntry // by table id
	tablets map[string]catalogEntry // by tablet id
}

// catalogEntry is an entry of a table or a tablet.
type catalogEntry struct {
	id        string
	name      string // of a table
	table     string // id of the tablet's table
	partition Partition
	gone      bool // removed, deleted or replaced; or not yet made
}

// The states of entries: of tables 0 unknown, 1 preparing, 2 running, 3 altering, 4 removed, 5 soft-deleted; of tablets 0 preparing,
// 1 creating, 2 running, 3 replaced, 4 deleted, 999 unknown.

// parseCatalogTable reads a SysTablesEntryPB.
func parseCatalogTable(c *wire.Cursor, id string) (e catalogEntry) {
	e.id = id
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			e.name = r.String("name")
		case 6:
			e.gone = r.Int32("state") == 4
		default:
			r.Unknown()
		}
	}
	return e
}

// parseCatalogTablet reads a SysTabletsEntryPB.
func parseCatalogTablet(c *wire.Cursor, id string) (e catalogEntry) {
	e.id = id
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 4:
			state := r.Int32("state")
			e.gone = state != 2 && state != 999
		case 6:
			e.table = r.String("table_id")
		case 7:
			m := r.Message("partition")
			e.partition = parsePartition(m)
			r.Join(m)
		default:
			r.Unknown()
		}
	}
	return e
}

// readCatalog reads the catalogue, if a master's directory is there. Damage in it is a finding.
func (s *servers) readCatalog(ctx context.Context, tg format.Target, o format.OpenOptions, ro readOptions) error {
	i := slices.IndexFunc(s.tablets, func(tb *tablet) bool { return tb.ID == systemCatalogID && tb.HasData() })
	if i < 0 {
		return nil
	}
	tb := s.tablets[i]
	if err := tb.choose(ctx, true, readOptions{at: latest}); err != nil {
		return err
	}
	ro.at, ro.partial, ro.noWAL = latest, true, false // most of it is never flushed
	o.Opts, o.Tracer = nil, nil
	c := &catalog{tables: map[string]catalogEntry{}, tablets: map[string]catalogEntry{}}
	bad := func(err error) error {
		if !errors.As(err, new(*fault.Error)) {
			return err
		}
		x := findingOf("kudu.catalog.damaged", err, systemCatalogID)
		x.Severity, x.Rows, x.Lost = severity(x.Code), [2]int64{-1, -1}, -1
		s.findings = append(s.findings, x)
		return nil
	}
	t, err := newTable(tg.Tree, []*tablet{tb}, o, ro)
	if err != nil {
		return bad(err)
	}
	kind, id, metadata := t.schema.FindName("entry_type"), t.schema.FindName("entry_id"), t.schema.FindName("metadata")
	if kind < 0 || id < 0 || metadata < 0 {
		return bad(fault.Corruptf(tb.At, "schema", "not the schema of a catalogue"))
	}
	err = t.each(ctx, tb, func(cells [][]byte) error {
		cur := wire.NewInnerCursor(cells[metadata], fault.Span{Object: tb.Object}, "catalog entry "+string(cells[id]))
		switch {
		case len(cells[kind]) != 1:
		case cells[kind][0] == catalogTable:
			e := parseCatalogTable(cur, string(cells[id]))
			c.tables[e.id] = e
		case cells[kind][0] == catalogTablet:
			e := parseCatalogTablet(cur, string(cells[id]))
			c.tablets[e.id] = e
		}
		return cur.Err()
	})
	gone := false
	for _, x := range t.Findings() {
		gone = gone || x.Code == "kudu.wal.missing" || x.Code == "kudu.wal.deleted"
		if x.Severity >= region.Warning {
			s.findings = append(s.findings, x)
		}
	}
	if err != nil {
		return bad(err)
	}
	s.catalog = c
	if !gone {
		s.unknown(tb)
	}
	for _, b := range s.broken {
		if e, ok := c.tablets[b.ID]; ok && b.TableID == "" {
			b.TableID = e.table
		}
	}
	return nil
}

// unknown tells of a table of which tablets are here and that the catalogue, which is kept in tb, does not know.
func (s *servers) unknown(tb *tablet) {
	var names []string
	for _, ts := range s.tables() {
		if top := newest(ts); top.ID != systemCatalogID && top.HasData() && s.catalog.tables[top.TableID].id == "" {
			names = append(names, top.Table)
		}
	}
	if n := len(names); n > 0 {
		const most = 8
		if n > most {
			names = append(names[:most], "…")
		}
		s.findings = append(s.findings, tb.note("kudu.catalog.behind", fault.Span{Object: tb.Object}, fmt.Sprintf("the master does not know %d of the tables that are here: %s", n, strings.Join(names, ", "))))
	}
}

// each calls f with the cells of each live row of a small tablet; nil is NULL.
func (t *table) each(ctx context.Context, tb *tablet, f func(cells [][]byte) error) error {
	if err := t.load(ctx, tb); err != nil {
		return err
	}
	for _, s := range tb.sets {
		if err := t.eachOf(ctx, s, f); err != nil {
			return err
		}
	}
	m := tb.logged
	if m == nil {
		return nil
	}
	cells := make([][]byte, len(t.columns))
	for row := range m.keys {
		for i, v := range m.cells {
			cells[i] = cellOf(v, row, &t.schema.Columns[i])
		}
		if err := f(cells); err != nil {
			return err
		}
	}
	return nil
}

// eachOf is each of a rowset.
func (t *table) eachOf(ctx context.Context, s *rowSet, f func(cells [][]byte) error) error {
	cols := make([]int, len(t.columns))
	base := make([]*values, len(t.columns))
	v := verifier{ctx: ctx, tree: t.tree}
	for i := range cols {
		cols[i] = i
		b, ok := s.Block(t.schema.Columns[i].ID)
		if !ok {
			continue
		}
		x, err := v.values(t, s, b)
		if err != nil {
			return err
		}
		defer x.it.Close()
		base[i] = x
	}
	rows := vec.Range{To: max(s.rows, 0)}
	var p *vec.Patch
	o, err := t.changesOf(ctx, s, cols, t.o.at)
	if err == nil && o != nil {
		p, err = t.patchAll(ctx, o, rows)
	}
	if err != nil {
		return err
	}
	next := make([]int, len(t.columns)) // place in the patch's column
	cells := make([][]byte, len(t.columns))
	for row := range s.rows {
		for i := range cells {
			cells[i] = t.schema.Columns[i].ReadDefault
			if base[i] != nil {
				if cells[i], err = base[i].next(ctx); err != nil {
					return err
				}
			}
		}
		if p != nil {
			for k, c := range p.Cols {
				if n := next[k]; n < len(c.Rows) && int64(c.Rows[n]) == row {
					cells[c.Col] = cellOf(c.Vals, n, &t.schema.Columns[c.Col])
					next[k]++
				}
			}
			if p.Drop != nil && p.Drop.Has(int(row)) {
				continue
			}
		}
		if err := f(cells); err != nil {
			return err
		}
	}
	return nil
}

// patchAll reads what an overlay needs for rows, and gives its patch. What is suspect is an error.
func (t *table) patchAll(ctx context.Context, o *overlay, rows vec.Range) (*vec.Patch, error) {
	var stored [][]byte
	for _, at := range o.Spans(rows) {
		b := make([]byte, at.Len)
		if err := format.ReadFull(ctx, source{t.tree, at.Object, at.End()}, at, "deltas", b); err != nil {
			return nil, err
		}
		stored = append(stored, b)
	}
	p, err := o.Patch(ctx, rows, stored)
	if err == nil && len(p.Suspect) > 0 {
		return nil, p.Suspect[0].Err
	}
	return p, err
}

// cellOf is an entry of a vector of a column's values, as a block stores it; nil is NULL.
func cellOf(v *vec.Vector, i int, c *Column) []byte {
	switch {
	case !v.Valid(i):
		return nil
	case c.Type == cfile.Bool:
		return []byte{v.Bits()[i/8] >> (i % 8) & 1}
	case c.Type.IsBinary():
		o := v.Offsets(i)
		if v.StringBytes() == nil {
			return []byte{}
		}
		return v.StringBytes()[o[0]:o[1]:o[1]]
	}
	return v.Data(i)[:c.Type.Width()]
}

// absent are the tablets of a table that the catalogue has and no directory here holds.
func (c *catalog) absent(table string, here []*tablet) (out []catalogEntry) {
	if c == nil || c.tables[table].gone {
		return nil
	}
	for _, e := range c.tablets {
		if e.table == table && !e.gone && !slices.ContainsFunc(here, func(tb *tablet) bool { return tb.ID == e.id && tb.HasData() }) {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b catalogEntry) int { return slices.Compare(a.partition.Start, b.partition.Start) })
	return out
}
