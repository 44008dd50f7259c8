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
		part := format.Entry{Table: tb.ID, Kind: "tablet", Rows: rows, Bytes: bytes}
		part.Meta = append(part.Meta, table.Fact("partition", "%s",
			cmp.Or(tb.Partitioning.Text(&tb.Schema, &tb.Partition), "all rows")),
			table.Fact("state", "%s", tb.State),
			table.Fact("rowsets", "%d", len(tb.RowSets)),
			table.Fact("server", "%s", cmp.Or(tb.FS.UUID, "unknown")))
		if n := len(tb.Others); n > 0 {
			part.Meta = append(part.Meta, table.Fact("replicas", "%d", n+1))
		}
		if n := tb.FS.LogBytes(ctx, tb.ID); n > 0 {
			part.Meta = append(part.Meta, table.Fact("log_bytes", "%d", n))
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
