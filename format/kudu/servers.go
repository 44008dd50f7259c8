package kudu

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
	"strings"
)

// servers are the directories of one server or several.
type servers struct {
	all      []*FS
	tablets  []*tablet // one a tablet id; of all tables; those that hold rows, and then tombstones
	findings []region.Finding
	catalog  *catalog  // what a master says; nil: none is here
	broken   []*Tablet // superblocks that cannot be read, with what could be understood
	noWAL    bool
}

// openServers opens all that is in the target.
func openServers(ctx context.Context, tg format.Target, o format.OpenOptions, ro readOptions) (*servers, error) {
	fo := FSOptions{Limits: o.Limits, NoVerify: o.NoVerify}
	layouts, err := Layouts(ctx, tg.Tree, tg.Name, ro.layout, fo)
	if err != nil {
		return nil, err
	}
	if len(layouts) == 0 {
		return nil, fault.New(fault.Invalid, fault.Span{Object: tg.Name}, "", "no directory of a Kudu server is there")
	}
	s := &servers{noWAL: ro.noWAL}
	var first error
	for _, l := range layouts {
		err := s.add(ctx, tg.Tree, l, fo, ro)
		switch {
		case errors.Is(err, fault.Unsupported): // the others are read
			first = cmp.Or(first, err)
			s.findings = append(s.findings, Unreadable(l, err))
		case err != nil:
			return nil, err
		}
	}
	if len(s.all) == 0 && first != nil {
		return nil, first
	}
	for _, tb := range s.tablets {
		if err := tb.choose(ctx, false, ro); err != nil {
			return nil, err
		}
	}
	return s, s.readCatalog(ctx, tg, o, ro)
}

// Unreadable is the finding about one server of several whose directories cannot be read, because they are encrypted, or their block
// manager is none that can be: which tablets it holds, and up to which operation, is not known.
func Unreadable(l Layout, err error) region.Finding {
	x := findingOf("kudu.unsupported", err, cmp.Or(l.MetaDir, l.WALDir, firstOf(l.DataDirs)))
	x.Severity, x.Message, x.Rows, x.Lost = severity(x.Code), "the directories of this server are not read: "+x.Message, [2]int64{-1, -1}, -1
	return x
}

// add opens one server's directories.
func (s *servers) add(ctx context.Context, tree store.Tree, l Layout, fo FSOptions, ro readOptions) error {
	f, err := OpenFS(ctx, tree, l, fo)
	if err != nil {
		return err
	}
	if err := f.unused(); err != nil && !ro.live {
		return err
	}
	tablets, err := f.Tablets(ctx)
	if err != nil {
		return err
	}
	if err := s.orphans(ctx, f, tablets); err != nil {
		return err
	}
	s.all = append(s.all, f)
	for _, t := range tablets {
		s.replica(replica{f, t})
	}
	s.findings = append(s.findings, f.Findings...)
	return nil
}

// CheckUnused is an error, of class Invalid, if a server runs on the directories at a place, and option live is not true. All that is not
// about that is no error here.
func CheckUnused(ctx context.Context, tree store.Tree, name string, opts map[string]string) error {
	ro, err := parseOptions(opts)
	if err != nil || ro.live {
		return nil
	}
	tree = orLocal(tree)
	layouts, err := Layouts(ctx, tree, name, ro.layout, FSOptions{})
	if err != nil {
		return ctx.Err()
	}
	for _, l := range layouts {
		f := &FS{Layout: l, tree: tree}
		if f.readDataDirs(ctx) == nil {
			f.findUsers()
		}
		if err := f.unused(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// replica takes in one server's replica of a tablet.
func (s *servers) replica(r replica) {
	for _, tb := range s.tablets {
		if tb.ID == r.ID {
			tb.others = append(tb.others, r)
			return
		}
	}
	s.tablets = append(s.tablets, &tablet{replica: r})
}

// orphans looks for tablets that have a log, or consensus metadata, and no superblock that can be read.
func (s *servers) orphans(ctx context.Context, f *FS, tablets []*Tablet) error {
	known := map[string]bool{}
	for _, t := range tablets {
		known[t.ID] = true
	}
	var lost []string
	for _, dir := range []string{path.Join(f.MetaDir, tabletMetaDir), path.Join(f.MetaDir, consensusDir), path.Join(f.WALDir, walsDir)} {
		for info, err := range f.tree.List(ctx, dir) {
			if err != nil {
				break // what is missing was noted
			}
			id := strings.TrimSuffix(path.Base(info.Name), recoverySuffix)
			if isUUID(id) && !known[id] {
				known[id] = true
				lost = append(lost, id)
			}
		}
	}
	slices.Sort(lost)
	for _, id := range lost {
		t := &Tablet{ID: id, Object: path.Join(f.MetaDir, tabletMetaDir, id)}
		if _, err := f.tree.Stat(ctx, t.Object); gone(err) {
			f.note("kudu.superblock.missing", fault.Span{Object: t.Object}, id, "the tablet has a log or consensus metadata, and no superblock")
		} else if read, err := f.Tablet(ctx, id); err != nil && read != nil {
			t = read
			t.ID = id
		}
		if len(t.Schema.Columns) == 0 {
			schemaOfLog(ctx, f, t)
		}
		s.broken = append(s.broken, t)
	}
	return ctx.Err()
}

// tables groups tablets by table: by id, in the order of names.
func (s *servers) tables() [][]*tablet {
	at := map[string]int{}
	var out [][]*tablet
	for _, tb := range s.tablets {
		i, ok := at[tb.TableID]
		if !ok {
			i, at[tb.TableID] = len(out), len(out)
			out = append(out, nil)
		}
		out[i] = append(out[i], tb)
	}
	for _, ts := range out {
		slices.SortStableFunc(ts, func(a, b *tablet) int {
			return cmp.Or(cmp.Compare(string(a.Partition.Start), string(b.Partition.Start)), cmp.Compare(a.ID, b.ID))
		})
	}
	slices.SortStableFunc(out, func(a, b []*tablet) int {
		return cmp.Or(cmp.Compare(s.nameOf(a), s.nameOf(b)), cmp.Compare(a[0].TableID, b[0].TableID))
	})
	return out
}

// nameOf is the name of a table: the master's word, or that of the tablet with the newest schema.
func (s *servers) nameOf(ts []*tablet) string {
	if s.catalog != nil {
		if e := s.catalog.tables[ts[0].TableID]; e.name != "" {
			return e.name
		}
	}
	return newest(ts).Table
}
