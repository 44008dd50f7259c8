package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu/internal/codes"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/table"
	"stoa/internal/pb"
	"stoa/internal/sorted"
	"stoa/region"
	"stoa/wire"
)

// A master keeps its metadata in sys.catalog, a table of one tablet: entry_type (int8), entry_id (string), and
// metadata, a message whose type depends on entry_type. It lists all tables and tablets of the cluster, under their
// current names.
const (
	catalogTable  = 1 // SysTablesEntryPB; entry_id is the table's id
	catalogTablet = 2 // SysTabletsEntryPB; entry_id is the tablet's id
)

// catalog is the content of sys.catalog.
type catalog struct {
	tables  map[string]catalogEntry   // by table id
	tablets map[string]catalogEntry   // by tablet id
	parts   map[string][]catalogEntry // tablets, by table id
}

// catalogEntry is an entry of a table or a tablet.
type catalogEntry struct {
	id        string
	name      string // name of a table
	table     string // id of the tablet's table
	partition meta.Partition
	schema    meta.Schema // of a table
	gone      bool        // removed, deleted or replaced; or not yet created
}

// States of entries: of tables 0 unknown, 1 preparing, 2 running, 3 altering, 4 removed, 5 soft-deleted; of tablets
// 0 preparing, 1 creating, 2 running, 3 replaced, 4 deleted, 999 unknown.

// ParseCatalogTable reads a SysTablesEntryPB.
func ParseCatalogTable(c *wire.Cursor, id string) (e catalogEntry) {
	e.id = id
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			e.name = r.String("name")
		case 3:
			m := r.Message("schema")
			e.schema = meta.ParseSchema(m)
			r.Join(m)
		case 6:
			e.gone = r.Int32("state") == 4
		default:
			r.Unknown()
		}
	}
	return e
}

// ParseCatalogTablet reads a SysTabletsEntryPB.
func ParseCatalogTablet(c *wire.Cursor, id string) (e catalogEntry) {
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
			e.partition = meta.ParsePartition(m)
			r.Join(m)
		default:
			r.Unknown()
		}
	}
	return e
}

// readCatalog reads the catalogue if a master's directory is present. Damage in it is a finding.
func (s *Servers) readCatalog(ctx context.Context, tg format.Target, o format.OpenOptions, ro table.Options) error {
	i := slices.IndexFunc(s.Tablets, func(tb *table.Tablet) bool {
		return tb.ID == meta.SystemCatalogID &&
			tb.HasData()
	})
	if i < 0 {
		return nil
	}
	tb := s.Tablets[i]
	if err := tb.Choose(ctx, true, table.Options{At: table.Latest}); err != nil {
		return err
	}
	ro.At, ro.Partial, ro.NoWAL = table.Latest, true, false // with the log: most of it is never flushed
	o.Opts, o.Tracer = nil, nil
	c := &catalog{tables: map[string]catalogEntry{}, tablets: map[string]catalogEntry{},
		parts: map[string][]catalogEntry{}}
	bad := func(err error) error {
		if !errors.As(err, new(*fault.Error)) {
			return err
		}
		s.Findings = append(s.Findings, codes.Finding("kudu.catalog.damaged", err, meta.SystemCatalogID))
		return nil
	}
	t, err := table.New(tg.Tree, []*table.Tablet{tb}, o, ro)
	if err != nil {
		return bad(err)
	}
	kind, id, metadata := t.Stored.FindName("entry_type"), t.Stored.FindName("entry_id"), t.Stored.FindName("metadata")
	if kind < 0 || id < 0 || metadata < 0 {
		return bad(fault.Corruptf(tb.At, "schema", "not the schema of a catalogue"))
	}
	err = c.read(ctx, t, tb, [3]int{kind, id, metadata})
	gone := false
	for _, x := range t.Findings() {
		gone = gone || x.Code == "kudu.wal.missing" || x.Code == "kudu.wal.deleted"
		if x.Severity >= region.Warning {
			s.Findings = append(s.Findings, x)
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

// read reads the entries. columns are the positions of entry_type, entry_id and metadata.
func (c *catalog) read(ctx context.Context, t *table.Table, tb *table.Tablet, columns [3]int) error {
	return t.Each(ctx, tb, func(cells [][]byte) error {
		kind, id, metadata := cells[columns[0]], string(cells[columns[1]]), cells[columns[2]]
		cur := wire.NewInnerCursor(metadata, fault.Span{Object: tb.Object}, "catalog entry "+id)
		switch {
		case len(kind) != 1:
		case kind[0] == catalogTable:
			c.tables[id] = ParseCatalogTable(cur, id)
		case kind[0] == catalogTablet:
			e := ParseCatalogTablet(cur, id)
			c.tablets[id] = e
			c.parts[e.table] = append(c.parts[e.table], e)
		}
		return cur.Err()
	})
}

// unknown reports each table whose tablets are present but which the catalogue, read from tb, does not list. That says
// nothing about the tables that it lists.
func (s *Servers) unknown(tb *table.Tablet) {
	for _, ts := range s.Tables() {
		if top := table.Newest(ts); top.ID != meta.SystemCatalogID && top.HasData() &&
			s.catalog.tables[top.TableID].id == "" {
			s.Findings = append(s.Findings, codes.Codes.Finding("kudu.catalog.behind", fault.Span{Object: tb.Object},
				top.ID, fmt.Sprintf("the master's catalogue lacks table %s, which is here", top.Table)))
		}
	}
}

// any reports whether the catalogue lists a table.
func (c *catalog) any() bool {
	if c != nil {
		for _, e := range c.tables {
			if !e.gone {
				return true
			}
		}
	}
	return false
}

// absent returns the tablets of a table that the catalogue lists but here does not contain, in the order of partitions.
func (c *catalog) absent(tableID string, here []*table.Tablet) (out []catalogEntry) {
	if c == nil || c.tables[tableID].gone {
		return nil
	}
	for _, e := range c.parts[tableID] {
		ready := func(tb *table.Tablet) bool { return tb.ID == e.id && tb.State == meta.TabletReady }
		if !e.gone && !slices.ContainsFunc(here, ready) {
			out = append(out, e)
		}
	}
	sorted.By(out, func(a, b catalogEntry) int {
		return cmp.Or(slices.Compare(a.partition.Start, b.partition.Start), cmp.Compare(a.id, b.id))
	})
	return out
}
