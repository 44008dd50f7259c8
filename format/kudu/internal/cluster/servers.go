package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu/internal/codes"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/table"
	"stoa/format/kudu/internal/wal"
	"stoa/internal/sorted"
	"stoa/region"
	"stoa/store"
)

// Servers are the directories of one server or several.
type Servers struct {
	All      []*fs.FS
	Tablets  []*table.Tablet // of all tables, one for each tablet id
	Findings []region.Finding
	catalog  *catalog       // catalogue of a master; nil: no master is here
	broken   []*meta.Tablet // tablets without a readable superblock, with what could be parsed
	strays   []*loose       // blocks that no superblock claims, once mayBeOf has asked for them
	memo     map[string]any // what is found out once
	noWAL    bool

	mu   *sync.Mutex // held while a table is opened
	kept bool        // it belongs to a session

	byID   map[string]*table.Tablet
	tables [][]*table.Tablet // see Tables; nil: not yet computed
	index  map[string][]int  // into tables, by name, id and the ids of tablets
}

// Open opens all servers' directories in the target. If some cannot be read because they are encrypted or their block
// manager is not supported, that is a finding, provided that others can be read.
func Open(ctx context.Context, tg format.Target, o format.OpenOptions, ro table.Options) (*Servers, error) {
	fo := fs.FSOptions{Limits: o.Limits, NoVerify: o.NoVerify}
	layouts, err := fs.Layouts(ctx, tg.Tree, tg.Name, ro.Layout, fo)
	if err != nil {
		return nil, err
	}
	if len(layouts) == 0 {
		return nil, fault.New(fault.Invalid, fault.Span{Object: tg.Name}, "",
			"no directories of a Kudu server are here")
	}
	s := &Servers{noWAL: ro.NoWAL, memo: map[string]any{}, byID: map[string]*table.Tablet{}, mu: new(sync.Mutex)}
	var first error
	for _, l := range layouts {
		err := s.add(ctx, tg.Tree, l, fo, ro)
		switch {
		case errors.Is(err, fault.Unsupported): // the other servers are read
			first = cmp.Or(first, err)
			s.Findings = append(s.Findings, Unreadable(l, err))
		case err != nil:
			return nil, err
		}
	}
	if len(s.All) == 0 && first != nil {
		return nil, first
	}
	for _, f := range s.All {
		for _, c := range s.All {
			if c != f && f.UUID != "" && c.UUID == f.UUID {
				f.Copies = append(f.Copies, c)
			}
		}
	}
	for _, tb := range s.Tablets {
		if err := tb.Choose(ctx, false, ro); err != nil {
			return nil, err
		}
	}
	for i := range s.Findings {
		if x := &s.Findings[i]; x.Code == "kudu.superblock.missing" && s.copied(x) {
			x.Severity, x.Message = region.Warning, x.Message+"; it is read from a copy of the server's directories"
		}
	}
	err = s.readCatalog(ctx, tg, o, ro)
	for _, ts := range s.Tables() {
		s.otherNames(ts)
	}
	return s, err
}

// otherNames reports superblocks with the newest schema of a table that call it otherwise than most.
func (s *Servers) otherNames(ts []*table.Tablet) {
	name := table.NameOf(ts)
	for _, tb := range ts {
		for _, r := range tb.Replicas() {
			if r.Table != name && r.HasData() && r.SchemaVersion == table.Newest(ts).SchemaVersion {
				s.Findings = append(s.Findings, codes.Codes.Finding("kudu.table.names", r.At, r.ID, fmt.Sprintf(
					"the superblock calls the table %s, others of the table %s, with the same version of the schema",
					r.Table, name)))
			}
		}
	}
}

// copied reports whether the superblock that a finding is about is in a copy of the same server's directories.
func (s *Servers) copied(x *region.Finding) bool {
	tb := s.byID[x.Part]
	return tb != nil && slices.ContainsFunc(s.All, func(f *fs.FS) bool {
		return f.UUID != "" && path.Join(f.MetaDir, fs.TabletMetaDir, x.Part) == x.At.Object &&
			slices.ContainsFunc(tb.Replicas(), func(r table.Replica) bool { return r.FS.UUID == f.UUID })
	})
}

// Unreadable returns the finding about one of several servers whose directories are encrypted or have an unsupported
// block manager, so that its tablets are unknown.
func Unreadable(l fs.Layout, err error) region.Finding {
	x := codes.Finding("kudu.unsupported", err, cmp.Or(l.MetaDir, l.WALDir, fs.FirstOf(l.DataDirs)))
	x.Message = "the directories of this server are not read: " + x.Message
	return x
}

// add opens one server's directories.
func (s *Servers) add(ctx context.Context, tree store.Tree, l fs.Layout, fo fs.FSOptions, ro table.Options) error {
	f, err := fs.OpenFS(ctx, tree, l, fo)
	if err != nil {
		return err
	}
	if err := f.Unused(); err != nil && !ro.Live {
		return err
	}
	tablets, err := f.Tablets(ctx)
	if err != nil {
		return err
	}
	if err := s.orphans(ctx, f, tablets); err != nil {
		return err
	}
	s.All = append(s.All, f)
	for _, t := range tablets {
		s.replica(table.Replica{FS: f, Tablet: t})
	}
	for _, x := range f.Findings {
		known := func(o *fs.FS) bool { return o != f && o.Noted(x) } // copies of a server may share directories
		if !slices.ContainsFunc(s.All, known) {
			s.Findings = append(s.Findings, x)
		}
	}
	return nil
}

// CheckUnused returns an error, Invalid, if a server runs on the directories in name and option live is not true. Other
// errors, except that of ctx, are ignored.
func CheckUnused(ctx context.Context, tree store.Tree, name string, opts map[string]string) error {
	ro, err := table.ParseOptions(opts)
	if err != nil || ro.Live {
		return nil
	}
	tree = fs.OrLocal(tree)
	layouts, err := fs.Layouts(ctx, tree, name, ro.Layout, fs.FSOptions{})
	if err != nil {
		return ctx.Err()
	}
	for _, l := range layouts {
		f := &fs.FS{Layout: l, Tree: tree}
		if f.ReadDataDirs(ctx) == nil {
			f.FindUsers()
		}
		if err := f.Unused(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// replica adds a replica of a tablet.
func (s *Servers) replica(r table.Replica) {
	if tb := s.byID[r.ID]; tb != nil {
		tb.Others = append(tb.Others, r)
		return
	}
	tb := &table.Tablet{Replica: r}
	s.byID[r.ID] = tb
	s.Tablets = append(s.Tablets, tb)
}

// orphans finds tablets that have a log or consensus metadata, but no readable superblock.
func (s *Servers) orphans(ctx context.Context, f *fs.FS, tablets []*meta.Tablet) error {
	known := map[string]bool{}
	for _, t := range tablets {
		known[t.ID] = true
	}
	var lost []string
	for _, dir := range []string{path.Join(f.MetaDir, fs.TabletMetaDir), path.Join(f.MetaDir, fs.ConsensusDir),
		path.Join(f.WALDir, fs.WalsDir)} {
		for info, err := range f.Tree.List(ctx, dir) {
			if err != nil {
				break // missing directories have been reported
			}
			id := strings.TrimSuffix(path.Base(info.Name), fs.RecoverySuffix)
			if fs.IsUUID(id) && !known[id] {
				known[id] = true
				lost = append(lost, id)
			}
		}
	}
	slices.Sort(lost)
	for _, id := range lost {
		t := &meta.Tablet{ID: id, Object: path.Join(f.MetaDir, fs.TabletMetaDir, id)}
		if _, err := f.Tree.Stat(ctx, t.Object); fs.Gone(err) {
			f.Note("kudu.superblock.missing", fault.Span{Object: t.Object}, id,
				"the tablet has a log or consensus metadata, but no superblock")
		} else if read, err := f.Tablet(ctx, id); err != nil && read != nil {
			if t = read; t.ID != id || !fs.IsUUID(t.TableID) {
				t.TableID = "" // the bytes are of something else, and do not rule out another table
			}
			t.ID = id
		}
		if len(t.Schema.Columns) == 0 {
			wal.SchemaOfLog(ctx, f, t)
		}
		s.broken = append(s.broken, t)
	}
	return ctx.Err()
}

// isBroken reports whether there are traces of a tablet, and no superblock that can be read.
func (s *Servers) isBroken(id string) bool {
	return s.byID[id] == nil && slices.ContainsFunc(s.broken, func(b *meta.Tablet) bool { return b.ID == id })
}

// Tables returns the tablets grouped by table, sorted by name; within a table they are in the order of partitions. No
// tablet may be added after the first call.
func (s *Servers) Tables() [][]*table.Tablet {
	if s.tables != nil {
		return s.tables
	}
	s.tables, s.index = s.group(), map[string][]int{}
	for i, ts := range s.tables {
		s.index[s.NameOf(ts)] = append(s.index[s.NameOf(ts)], i)
		s.index[ts[0].TableID] = append(s.index[ts[0].TableID], i)
		for _, tb := range ts {
			s.index[tb.ID] = append(s.index[tb.ID], i)
		}
	}
	return s.tables
}

// tablesNamed returns the tables with the name or id what, or with a tablet of that id; all tables for "".
func (s *Servers) tablesNamed(what string) (out [][]*table.Tablet) {
	all := s.Tables()
	if what == "" {
		return all
	}
	for _, i := range slices.Compact(slices.Sorted(slices.Values(s.index[what]))) {
		out = append(out, all[i])
	}
	return out
}

func (s *Servers) group() [][]*table.Tablet {
	at := map[string]int{}
	var out [][]*table.Tablet
	for _, tb := range s.Tablets {
		i, ok := at[tb.TableID]
		if !ok {
			i, at[tb.TableID] = len(out), len(out)
			out = append(out, nil)
		}
		out[i] = append(out[i], tb)
	}
	for _, ts := range out {
		slices.SortStableFunc(ts, func(a, b *table.Tablet) int {
			return cmp.Or(cmp.Compare(string(a.Partition.Start), string(b.Partition.Start)), cmp.Compare(a.ID, b.ID))
		})
	}
	sorted.StablyBy(out, func(a, b []*table.Tablet) int {
		return cmp.Or(cmp.Compare(s.NameOf(a), s.NameOf(b)), cmp.Compare(a[0].TableID, b[0].TableID))
	})
	return out
}

// NameOf returns the name of a table: that in the catalogue, if the catalogue lists the table, else that in most
// superblocks with the newest schema.
func (s *Servers) NameOf(ts []*table.Tablet) string {
	if s.catalog != nil {
		if e := s.catalog.tables[ts[0].TableID]; e.name != "" {
			return e.name
		}
	}
	return table.NameOf(ts)
}
