package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/table"
	"stoa/internal/sorted"
	"stoa/region"
	"stoa/store"
)

// Incomplete returns a Corrupt error if only some of a server's directories are present, so that no table can be read.
// The usual cause is that the user named one of them instead of their parent.
func (s *Servers) Incomplete(ctx context.Context, tg format.Target) error {
	if slices.ContainsFunc(s.Tablets, func(tb *table.Tablet) bool {
		return tb.ID != meta.SystemCatalogID &&
			slices.ContainsFunc(tb.Replicas(), func(r table.Replica) bool { return len(r.FS.DataDirs) > 0 })
	}) {
		return nil
	}
	for _, f := range s.All {
		at := fault.Span{Object: tg.Name}
		switch parentHint := s.parentHint(ctx, f.Tree, tg.Name); {
		case f.MetaDir == "" && len(f.Layout.DataDirs) > 0:
			return fault.Corruptf(at, "", "there are blocks but no superblocks (%s/), so no tables: superblocks "+
				"are in the server's WAL or metadata directory%s; without them stoa ls --unnamed lists the "+
				"blocks, and option schema=FILE reads them",
				fs.TabletMetaDir, parentHint)
		case f.MetaDir != "" && len(f.DataDirs) == 0:
			return fault.Corruptf(at, "",
				"there are superblocks but no blocks, so no rows: blocks are in the server's data directories%s",
				parentHint)
		}
	}
	return nil
}

// parentHint returns text to be appended to a message, which tells where the rest of a server's directories may be: in
// the parent of dir, if that has both metadata and data, else where options name it.
func (s *Servers) parentHint(ctx context.Context, tree store.Tree, dir string) string {
	for up := path.Dir(dir); dir != "" && up != dir && len(up) > 1; dir, up = up, path.Dir(up) {
		ls, err := fs.FindServers(ctx, tree, up, fs.FSOptions{Shallow: true})
		if err != nil {
			return ""
		}
		for _, l := range ls {
			if l.MetaDir != "" && len(l.DataDirs) > 0 || l.MetaDir == "" && l.WALDir != "" && len(l.DataDirs) > 0 {
				return fmt.Sprintf(": %s has both", up)
			}
		}
		if path.Base(up) != fs.DataSubdir {
			break
		}
	}
	return ", which option meta-dir=DIR, option wal-dir=DIR and option data-dirs=DIRS name"
}

// ToList returns the findings that matter in a list of tables: errors, and warnings about the catalogue, because it
// supplies names and missing tablets.
func ToList(all []region.Finding) (out []region.Finding) {
	for _, x := range all {
		if x.Severity >= region.Error || x.Part == meta.SystemCatalogID && x.Severity == region.Warning &&
			x.Code != "kudu.wal.missing" {
			out = append(out, x)
		}
	}
	return out
}

// AnyTable reports whether there is a table, here or in the catalogue.
func (s *Servers) AnyTable() bool {
	return s.catalog != nil && len(s.catalog.tables) > 0 ||
		slices.ContainsFunc(s.Tablets, func(tb *table.Tablet) bool { return tb.ID != meta.SystemCatalogID })
}

// Entry returns a table's entry in a list.
func (s *Servers) Entry(ctx context.Context, ts []*table.Tablet) (format.Entry, error) {
	top := table.Newest(ts)
	e := format.Entry{Table: s.NameOf(ts), Kind: "table"}
	add := func(k, layout string, args ...any) { e.Meta = append(e.Meta, table.Fact(k, layout, args...)) }
	add("table_id", "%s", top.TableID)
	add("tablets", "%d", len(ts))
	if top.Partitioning.Stored {
		add("partition_schema", "%s", top.Partitioning.SchemaText(&top.Schema))
	}
	sets, lost := 0, 0
	for _, tb := range ts {
		tb, err := s.chosen(ctx, tb)
		if err != nil {
			return e, err
		}
		rows, bytes, _, gone, err := tb.FS.TabletFacts(ctx, tb.Tablet)
		if err != nil && !errors.As(err, new(*fault.Error)) {
			return e, err
		}
		sets += len(tb.RowSets)
		lost += gone
		e.Bytes += bytes
		if e.Rows >= 0 && rows >= 0 {
			e.Rows += rows
		} else {
			e.Rows = -1
		}
		part, err := s.tabletEntry(ctx, tb, rows, bytes)
		if err != nil {
			return e, err
		}
		e.Parts = append(e.Parts, part)
		found, err := s.quickHealth(ctx, tb)
		if err != nil {
			return e, err
		}
		e.Findings = append(e.Findings, found...)
	}
	add("rowsets", "%d", sets)
	if lost > 0 {
		add("lost_blocks", "%d", lost)
	}
	missing, uncovered, more := s.Missing(ts)
	if n := int64(len(missing)) + more; n > 0 {
		add("missing_tablets", "%d", n)
	}
	for _, g := range missing {
		part := format.Entry{Table: cmp.Or(g.id, "?"), Kind: "tablet", Rows: -1, Bytes: -1}
		part.Meta = append(part.Meta, table.Fact("partition", "%s", g.what), s.stateOf(g.id))
		e.Parts = append(e.Parts, part)
	}
	for _, g := range uncovered[:min(len(uncovered), 20)] {
		add("uncovered", "%s", g)
	}
	return e, nil
}

// tabletEntry returns the entry of a tablet in that of its table.
func (s *Servers) tabletEntry(ctx context.Context, tb *table.Tablet, rows, bytes int64) (format.Entry, error) {
	part := format.Entry{Table: tb.ID, Kind: "tablet", Rows: rows, Bytes: bytes}
	part.Meta = append(part.Meta, table.Fact("partition", "%s",
		cmp.Or(tb.Partitioning.Text(&tb.Schema, &tb.Partition), "all rows")),
		table.Fact("state", "%s", tb.State),
		table.Fact("rowsets", "%d", len(tb.RowSets)),
		table.Fact("server", "%s", cmp.Or(tb.FS.UUID, "unknown")))
	others, err := s.othersOf(ctx, tb)
	part.Meta = append(part.Meta, others...)
	if n := tb.FS.LogBytes(ctx, tb.ID); n > 0 {
		part.Meta = append(part.Meta, table.Fact("log_bytes", "%d", n))
	}
	return part, err
}

// copied reports whether several copies of one server have a tablet.
func copied(tb *table.Tablet) bool {
	at := map[string]string{}
	for _, r := range tb.Replicas() {
		if dir, ok := at[r.FS.UUID]; ok && r.FS.UUID != "" && dir != r.FS.MetaDir {
			return true
		}
		at[r.FS.UUID] = r.FS.MetaDir
	}
	return false
}

// chosen returns a tablet with the replica first that reading it as of now takes, if several copies of a server have
// it: an earlier copy may come first.
func (s *Servers) chosen(ctx context.Context, tb *table.Tablet) (*table.Tablet, error) {
	if !copied(tb) {
		return tb, nil
	}
	x := &table.Tablet{Replica: tb.Replica, Others: tb.Others, Findings: tb.Findings}
	err := x.Choose(ctx, true, table.Options{At: table.Latest, NoWAL: s.noWAL})
	if err != nil && !table.Damaged(err) {
		return nil, err
	}
	return x, nil
}

// othersOf returns how many servers have a replica of a tablet, if several have, and how many copies of a server have
// it, with the states of those that are not whole.
func (s *Servers) othersOf(ctx context.Context, tb *table.Tablet) (out []format.KeyValue, err error) {
	servers := map[string]bool{}
	for _, r := range tb.Replicas() {
		servers[cmp.Or(r.FS.UUID, r.FS.MetaDir)] = true
	}
	if len(servers) > 1 {
		out = append(out, table.Fact("replicas", "%d", len(servers)))
	}
	if !copied(tb) {
		return out, nil
	}
	lines, _, err := s.replicas(ctx, CensusLine{}, tb)
	copies, text := map[string]bool{}, ""
	for _, l := range lines {
		if copies[l.Place] = true; l.State != StateWhole {
			text += "; " + l.State + ": " + l.Place
		}
	}
	return append(out, table.Fact("copies", "%d%s", len(copies), text)), err
}

// stateOf is the state of a tablet that is not here, as a list shows it.
func (s *Servers) stateOf(id string) format.KeyValue {
	if s.isBroken(id) {
		return table.Fact("state", "LOST")
	}
	return table.Fact("state", "MISSING")
}

// Matches reports whether what selects the table: it is "", the name or id of the table, or the id of one of its
// tablets.
func (s *Servers) Matches(what string, ts []*table.Tablet) bool {
	return what == "" || what == s.NameOf(ts) || what == ts[0].TableID ||
		slices.ContainsFunc(ts, func(tb *table.Tablet) bool { return tb.ID == what })
}

// holds reports whether a tablet of the table is here.
func (s *Servers) holds(tableID string) bool {
	s.Tables()
	return slices.ContainsFunc(s.index[tableID], func(i int) bool { return s.tables[i][0].TableID == tableID })
}

// AbsentTables yields, by name, the entries of tables that the catalogue lists but of which no tablet is here. If what
// is not "", only the table with that name or id. It returns false if yield did.
func (s *Servers) AbsentTables(what string, yield func(format.Entry, error) bool) bool {
	if s.catalog == nil {
		return true
	}
	var out []format.Entry
	for id, e := range s.catalog.tables {
		if e.gone || s.holds(id) ||
			what != "" && what != e.name && what != id {
			continue
		}
		x := format.Entry{Table: e.name, Kind: "table", Rows: -1, Bytes: -1}
		missing := s.catalog.absent(id, nil)
		x.Meta = append(x.Meta, table.Fact("table_id", "%s", id), table.Fact("tablets", "0"),
			table.Fact("missing_tablets", "%d", len(missing)))
		for _, tb := range missing {
			x.Parts = append(x.Parts, format.Entry{Table: tb.id, Kind: "tablet", Rows: -1, Bytes: -1,
				Meta: []format.KeyValue{s.stateOf(tb.id)}})
		}
		out = append(out, x)
	}
	sorted.By(out, func(a, b format.Entry) int { return cmp.Compare(a.Table, b.Table) })
	for _, e := range out {
		if !yield(e, nil) {
			return false
		}
	}
	return true
}
