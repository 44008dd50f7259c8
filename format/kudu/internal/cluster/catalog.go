package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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

// catalog is the content of sys.catalog, of all clusters that are here.
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

// readCatalog reads the catalogues of the masters that are here: one a cluster. A table is in one of them, so together
// they are what the masters know. Damage in them is a finding.
func (s *Servers) readCatalog(ctx context.Context, tg format.Target, o format.OpenOptions, ro table.Options) error {
	i := slices.IndexFunc(s.Tablets, func(tb *table.Tablet) bool { return tb.ID == meta.SystemCatalogID })
	if i < 0 {
		return nil
	}
	all := clusters(s.Tablets[i])
	sure := true // of what the masters do not know
	for _, tb := range all {
		c, whole, err := s.catalogOf(ctx, tb, tg, o, ro)
		var bad *fault.Error
		switch {
		case errors.As(err, &bad):
			s.Findings = append(s.Findings, codes.Finding("kudu.catalog.damaged", err, meta.SystemCatalogID))
		case err != nil:
			return err
		case s.catalog == nil:
			s.catalog = c
		default:
			s.catalog.add(c)
		}
		sure = sure && whole
	}
	if s.catalog == nil {
		return nil
	}
	if sure {
		s.unknown(all)
	}
	for _, b := range s.broken {
		if e, ok := s.catalog.tablets[b.ID]; ok && b.TableID == "" {
			b.TableID = e.table
		}
	}
	return nil
}

// clusters divides the replicas of the catalogue by cluster: its tablet has the same id in each. Masters are of one
// cluster if a Raft configuration names both, or one of each names a third.
func clusters(catalog *table.Tablet) (out []*table.Tablet) {
	var members []map[string]bool
	for _, r := range catalog.Replicas() {
		if !r.HasData() {
			continue
		}
		tb, of := &table.Tablet{Replica: r}, map[string]bool{r.FS.UUID: true}
		if r.Consensus != nil {
			for _, p := range r.Consensus.Peers {
				of[p.UUID] = true
			}
		}
		delete(of, "")
		for i := len(out) - 1; i >= 0; i-- {
			apart := true
			for id := range of {
				apart = apart && !members[i][id]
			}
			if apart {
				continue
			}
			tb = &table.Tablet{Replica: out[i].Replica, Others: append(out[i].Others, tb.Replicas()...)}
			maps.Copy(of, members[i])
			out, members = slices.Delete(out, i, i+1), slices.Delete(members, i, i+1)
		}
		out, members = append(out, tb), append(members, of)
	}
	if len(out) == 1 {
		return []*table.Tablet{catalog}
	}
	return out
}

// catalogOf reads the catalogue of a cluster. whole is false if tables may be missing from it.
func (s *Servers) catalogOf(ctx context.Context, tb *table.Tablet, tg format.Target, o format.OpenOptions,
	ro table.Options) (c *catalog, whole bool, err error) {
	if err := tb.Choose(ctx, true, table.Options{At: table.Latest}); err != nil {
		return nil, false, err
	}
	ro.At, ro.Partial, ro.NoWAL = table.Latest, true, false // with the log: most of it is never flushed
	o.Opts, o.Tracer = nil, nil
	c = &catalog{tables: map[string]catalogEntry{}, tablets: map[string]catalogEntry{},
		parts: map[string][]catalogEntry{}}
	t, err := table.New(tg.Tree, []*table.Tablet{tb}, o, ro)
	if err != nil {
		return nil, false, err
	}
	kind, id, metadata := t.Stored.FindName("entry_type"), t.Stored.FindName("entry_id"), t.Stored.FindName("metadata")
	if kind < 0 || id < 0 || metadata < 0 {
		return nil, false, fault.Corruptf(tb.At, "schema", "not the schema of a catalogue")
	}
	err = c.read(ctx, t, tb, [3]int{kind, id, metadata})
	whole = err == nil
	for _, x := range t.Findings() {
		whole = whole && x.Code != "kudu.wal.missing" && x.Code != "kudu.wal.deleted"
		if x.Severity >= region.Warning {
			s.Findings = append(s.Findings, x)
		}
	}
	return c, whole, err
}

// add adds the entries of another cluster's catalogue. Of a table in both, which only copies can be, the one that was
// not deleted counts.
func (c *catalog) add(more *catalog) {
	for id, e := range more.tables {
		if old, ok := c.tables[id]; !ok || old.gone {
			c.tables[id] = e
		}
	}
	for _, parts := range more.parts {
		for _, e := range parts {
			if old, ok := c.tablets[e.id]; ok && !old.gone {
				continue
			}
			c.tablets[e.id] = e
			c.parts[e.table] = append(slices.DeleteFunc(c.parts[e.table],
				func(x catalogEntry) bool { return x.id == e.id }), e)
		}
	}
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

// unknown reports each table whose tablets are present but which no catalogue, of those read from all, lists. That says
// nothing about the tables that they list.
func (s *Servers) unknown(all []*table.Tablet) {
	who := "the master's catalogue lacks"
	if len(all) > 1 {
		who = fmt.Sprintf("the catalogues of %d clusters lack", len(all))
	}
	for _, ts := range s.Tables() {
		if top := table.Newest(ts); top.ID != meta.SystemCatalogID && top.HasData() &&
			s.catalog.tables[top.TableID].id == "" {
			s.Findings = append(s.Findings, codes.Codes.Finding("kudu.catalog.behind",
				fault.Span{Object: all[0].Object}, top.ID, fmt.Sprintf("%s table %s, which is here", who, top.Table)))
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

// named returns the ids of the tablets that the catalogue lists of a table with a name or id, or the one with that id;
// nil if the name is of another table.
func (c *catalog) named(table catalogEntry, id, name string) []string {
	ids := []string{}
	for _, tb := range c.absent(id, nil) {
		if tb.id == name {
			return []string{name}
		}
		ids = append(ids, tb.id)
	}
	if table.name == name || id == name {
		return ids
	}
	return nil
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
