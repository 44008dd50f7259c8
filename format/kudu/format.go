package kudu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/region"
	"stoa/store"
)

// Format is Kudu's directories as the front of stoa sees them.
var Format = format.Format{
	Name:     "kudu",
	Title:    "Apache Kudu data directories: tables of whole tablets, with their history and write-ahead log",
	Probe:    probe,
	List:     list,
	Open:     open,
	Describe: describe,
	Verify:   verify,
	Claims:   claims,
	Recover:  recoverTable,
	ReadKeys: readKeys,
	Codes:    Codes,

	Unchecked: unchecked,
}

// probe looks for a server's directories.
func probe(ctx context.Context, tg format.Target) (format.Match, error) {
	info, err := tg.Tree.Stat(ctx, tg.Name)
	if err != nil && tg.Name != "" || err == nil && !info.Dir {
		return format.No, nil
	}
	ls, err := FindServers(ctx, tg.Tree, tg.Name, FSOptions{})
	if err != nil || len(ls) == 0 {
		return format.No, ctx.Err()
	}
	for _, l := range ls {
		for _, dir := range append([]string{l.WALDir, l.MetaDir}, l.DataDirs...) {
			for _, name := range []string{instanceFile, dirInstanceFile, path.Join(dataDir, dirInstanceFile)} {
				if _, err := tg.Tree.Stat(ctx, path.Join(dir, name)); dir != "" && err == nil {
					return format.Certain, nil
				}
			}
		}
	}
	return format.Likely, nil
}

// systemCatalog is the table in which a master keeps what it knows; every master has it in one tablet of this id.
const (
	systemCatalog   = "sys.catalog"
	systemCatalogID = "00000000000000000000000000000000"
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

// unused is an error, Invalid, if a server runs on the directories.
func (f *FS) unused() error {
	if len(f.Users) == 0 {
		return nil
	}
	u := f.Users[0]
	who := "a server"
	if u.PID > 0 {
		who = fmt.Sprintf("a server (process %d)", u.PID)
	}
	return fault.New(fault.Invalid, fault.Span{Object: u.Object}, "", "%s runs on this directory; stop it, copy the directory, or set live=true", who)
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
			f.schemaOfLog(ctx, t)
		}
		s.broken = append(s.broken, t)
	}
	return ctx.Err()
}

// schemaOfLog takes the schema of a tablet whose superblock is lost from the header of its log.
func (f *FS) schemaOfLog(ctx context.Context, t *Tablet) {
	segments, err := f.logSegments(ctx, t.ID)
	if err != nil || len(segments) == 0 {
		return
	}
	src, err := f.tree.Open(ctx, segments[len(segments)-1].Name)
	if err != nil {
		return
	}
	defer src.Close()
	if r, _, err := openWAL(ctx, src, segments[len(segments)-1].Name, f.o.pbc(), cfile.LZ4); err == nil && r.head.TabletID == t.ID {
		t.Schema, t.SchemaVersion = r.head.Schema, r.head.SchemaVersion
	}
}

// mayBeOf reports whether a tablet whose superblock is lost may be one of the table of which tb is one.
func (t *Tablet) mayBeOf(tb *Tablet) bool {
	switch {
	case t.TableID != "":
		return t.TableID == tb.TableID
	case len(t.Schema.Columns) == 0: // nothing tells
		return true
	case t.SchemaVersion == tb.SchemaVersion:
		return tb.Schema.differs(&t.Schema) == ""
	}
	return tb.Schema.conflicts(&t.Schema) == ""
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

// newest is the tablet whose schema is the newest.
func newest(ts []*tablet) *tablet {
	out := ts[0]
	for _, tb := range ts {
		if tb.HasData() && (!out.HasData() || tb.SchemaVersion > out.SchemaVersion) {
			out = tb
		}
	}
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

// absent is a tablet that a table must have and that is not here.
type absent struct {
	id   string // "" if it is not known: only a master tells
	what string // its partition
}

func (a absent) String() string {
	if a.id == "" {
		return a.what
	}
	return fmt.Sprintf("%s (tablet %s)", a.what, a.id)
}

// missing are the tablets that a table must have and that are not here: what the partition schema says, or the master;
// uncovered are ranges of keys without a tablet, which may be meant to have none; more is how many are not listed.
func (s *servers) missing(ts []*tablet) (missing []absent, uncovered []string, more int64) {
	top := newest(ts)
	if s.catalog != nil && s.catalog.tables[top.TableID].id != "" { // the master knows
		for _, e := range s.catalog.absent(top.TableID, ts) {
			missing = append(missing, absent{e.id, cmp.Or(top.Partitioning.Text(&top.Schema, &e.partition), "all rows")})
		}
		return missing, nil, 0
	}
	var have []*Tablet
	for _, tb := range ts {
		have = append(have, tb.Tablet)
	}
	sure, perhaps, more := Missing(have)
	for _, g := range sure {
		missing = append(missing, absent{"", cmp.Or(g.Text, "all rows")})
	}
	for _, g := range perhaps {
		uncovered = append(uncovered, g.Text)
	}
	return missing, uncovered, more
}

// whereTablets is where a tablet that is missing would be.
func (s *servers) whereTablets() fault.Span {
	return fault.Span{Object: path.Join(s.all[0].MetaDir, tabletMetaDir)}
}

// ErrElsewhere is the cause of errors about tables of which a master's directory knows, and nothing else is here.
var ErrElsewhere = errors.New("they are in the directories of its tablet servers, which must be given, too")

// pick finds the table that the target names: by its name, its id, or the id of one of its tablets, which is then the only one that is read.
// "" is the only table there is. Masters' own tables must be named.
func (s *servers) pick(ctx context.Context, tg format.Target, only string) ([]*tablet, error) {
	what := tg.Table
	var found [][]*tablet
	var names []string
	for _, ts := range s.tables() {
		name := s.nameOf(ts)
		if ts[0].TableID != systemCatalogID && !(name == systemCatalog && ts[0].ID == systemCatalogID) {
			names = append(names, name)
		}
		if what == "" && name != systemCatalog || what == name || what == ts[0].TableID {
			found = append(found, ts)
			continue
		}
		for _, tb := range ts {
			if tb.ID == what {
				found = append(found, []*tablet{tb})
			}
		}
	}
	if s.catalog != nil && len(found) == 0 {
		for id, e := range s.catalog.tables {
			if !e.gone && what != "" && (e.name == what || id == what) {
				var ids []string
				for _, tb := range s.catalog.absent(id, nil) {
					ids = append(ids, tb.id)
				}
				none := fault.Corruptf(fault.Span{Object: s.all[0].MetaDir}, "", "the master knows table %s, and none of its tablets is here (%s)", e.name, strings.Join(ids, ", "))
				none.Cause = ErrElsewhere
				return nil, none
			}
		}
	}
	if len(found) == 0 && what != "" {
		if err := s.lostTable(ctx, what); err != nil {
			return nil, err
		}
	}
	switch {
	case len(found) == 1 && only == "":
		return found[0], nil
	case len(found) == 1:
		for _, tb := range found[0] {
			if tb.ID == only {
				return []*tablet{tb}, nil
			}
		}
		return nil, fault.Invalidf("table %s has no tablet %s here", s.nameOf(found[0]), only)
	case len(found) == 0 && len(s.broken) > 0:
		if what != "" {
			what = fmt.Sprintf(" %q", what)
		}
		return nil, fault.Corruptf(fault.Span{Object: s.broken[0].Object}, "superblock", "no table or tablet%s is here whose superblocks can be read; there are %s, and %d tablets whose superblocks cannot be read; with a table's schema their rows are put together from the blocks: --schema FILE (what stoa schema -f json prints)",
			what, cmp.Or(strings.Join(names, ", "), "no others"), len(s.broken))
	case len(found) == 0 && len(names) == 0:
		return nil, fault.Invalidf("no tablet is here, so no table")
	case len(found) == 0:
		return nil, fault.Invalidf("there is no table or tablet %q; there are %s", what, strings.Join(names, ", "))
	case what == "":
		for i, n := range names {
			names[i] = tg.Name + "#" + n
		}
		return nil, format.Several(tg.Name, names)
	}
	var ids []string
	for _, ts := range found {
		ids = append(ids, ts[0].TableID)
	}
	return nil, fault.Invalidf("%d tables are named %q: name one by its id: %s", len(found), what, strings.Join(ids, ", "))
}

// open opens a table.
func open(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, error) {
	ro, err := parseOptions(o.Opts)
	if err != nil {
		return nil, err
	}
	t, err := openTable(ctx, tg, o, ro)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func openTable(ctx context.Context, tg format.Target, o format.OpenOptions, ro readOptions) (*table, error) {
	if ro.schema != "" {
		return openCarved(ctx, tg, o, ro)
	}
	s, err := openServers(ctx, tg, o, ro)
	if err != nil {
		return nil, err
	}
	ts, err := s.pick(ctx, tg, ro.tablet)
	if err != nil {
		return nil, err
	}
	for _, tb := range ts {
		if err := tb.choose(ctx, true, ro); err != nil {
			return nil, err
		}
	}
	whole := len(ts) > 1 || ro.tablet == "" && tg.Table != ts[0].ID
	var gaps []region.Finding
	if whole && !ro.gaps {
		gaps = s.gaps(ts)
		if len(gaps) == 0 {
			if gaps, err = s.unclaimedOf(ctx, ts, tg.Table != ""); err != nil {
				return nil, err
			}
		}
	}
	ts = slices.DeleteFunc(slices.Clone(ts), func(tb *tablet) bool { return !tb.HasData() })
	if len(ts) == 0 {
		return nil, fault.New(fault.Unsupported, fault.Span{Object: tg.Name}, "", "of table %s there are only tombstones here: tablets that were deleted from this server", tg.Table)
	}
	t, err := newTable(tg.Tree, ts, o, ro)
	if err != nil {
		return nil, err
	}
	outside, err := s.moment(ctx, t)
	if err != nil {
		return nil, err
	}
	if t.findings = slices.Concat(s.about(ts), gaps); outside != nil {
		t.findings = append(t.findings, *outside)
	}
	return t, nil
}

// about are the findings that matter to a table: not those about tablets of which it is certain that they are other tables'.
func (s *servers) about(ts []*tablet) (out []region.Finding) {
	top := newest(ts).Tablet
	missing, uncovered, _ := s.missing(ts)
	whole := len(missing)+len(uncovered) == 0
	foreign := map[string]bool{}
	for _, b := range s.broken {
		foreign[b.ID] = whole || !b.mayBeOf(top)
	}
	for _, tb := range s.tablets {
		foreign[tb.ID] = tb.TableID != top.TableID
	}
	foreign[systemCatalogID] = false
	for _, x := range s.findings {
		if !foreign[x.Part] {
			out = append(out, x)
		}
	}
	return out
}

// gaps tells of the tablets that a table must have and that are not here. What there is is read all the same: who reads asks for
// the findings, and partial=true says that no more was expected.
func (s *servers) gaps(ts []*tablet) []region.Finding {
	tell := func(code string, at fault.Span, layout string, args ...any) []region.Finding {
		return []region.Finding{{Code: code, Severity: severity(code), At: at, Part: s.nameOf(ts), Message: fmt.Sprintf(layout, args...), Rows: [2]int64{-1, -1}, Lost: -1}}
	}
	missing, uncovered, more := s.missing(ts)
	if n := int64(len(missing)) + more; n > 0 {
		const most = 8
		var names []string
		for _, g := range missing[:min(len(missing), most)] {
			names = append(names, g.String())
		}
		if n > most {
			names = append(names, "…")
		}
		are := "tablets are"
		if n == 1 {
			are = "tablet is"
		}
		return tell("kudu.tablet.missing", s.whereTablets(), "table %s: %d %s not here: %s; partial=true says that this is known", s.nameOf(ts), n, are, strings.Join(names, "; "))
	}
	if len(uncovered) == 0 {
		return nil
	}
	for _, b := range s.broken {
		if b.mayBeOf(newest(ts).Tablet) {
			return tell("kudu.tablet.missing", fault.Span{Object: b.Object}, "tablet %s, whose superblock cannot be read, may hold rows of table %s (%s); partial=true says that this is known",
				b.ID, s.nameOf(ts), cmp.Or(uncovered[0], "a range"))
		}
	}
	return nil
}

// logBytes is the size of a tablet's log. Its rows and changes are not counted by List, which would have to replay it.
func (f *FS) logBytes(ctx context.Context, tablet string) (n int64) {
	segments, err := f.logSegments(ctx, tablet)
	if err != nil {
		return 0
	}
	for _, s := range segments {
		n += s.Size
	}
	return n
}

// halves is an error if servers' directories are here only in part, so that no table can be read: most often those above were meant.
func (s *servers) halves(ctx context.Context, tg format.Target) error {
	if slices.ContainsFunc(s.tablets, func(tb *tablet) bool { return tb.ID != systemCatalogID && len(tb.fs.DataDirs) > 0 }) {
		return nil
	}
	for _, f := range s.all {
		at := fault.Span{Object: tg.Name}
		switch beside := s.beside(ctx, f.tree, tg.Name); {
		case f.MetaDir == "" && len(f.Layout.DataDirs) > 0:
			return fault.Corruptf(at, "", "there are blocks and no superblocks (%s/), so no tables: superblocks are in the server's WAL or metadata directory%s; without them ls --unnamed lists the blocks, and --schema reads them",
				tabletMetaDir, beside)
		case f.MetaDir != "" && len(f.DataDirs) == 0:
			return fault.Corruptf(at, "", "there are superblocks and no blocks, so no rows: blocks are in the server's data directories%s", beside)
		}
	}
	return nil
}

// beside is what to say if the directory above dir holds more of a server than dir.
func (s *servers) beside(ctx context.Context, tree store.Tree, dir string) string {
	for up := path.Dir(dir); dir != "" && up != dir && len(up) > 1; dir, up = up, path.Dir(up) {
		ls, err := FindServers(ctx, tree, up, FSOptions{})
		if err != nil {
			return ""
		}
		for _, l := range ls {
			if l.MetaDir != "" && len(l.DataDirs) > 0 || l.MetaDir == "" && l.WALDir != "" && len(l.DataDirs) > 0 {
				return fmt.Sprintf(": %s has both", up)
			}
		}
		if path.Base(up) != dataDir {
			break
		}
	}
	return ", --meta-dir, --wal-dir and --data-dirs name them"
}

// list gives the tables of all servers, and their tablets.
func list(ctx context.Context, tg format.Target) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		if tg.Opts["schema"] != "" {
			yield(format.Entry{}, fault.Invalidf("a list has no use for option schema=FILE: the blocks that it reads have no table (ls --unnamed lists them)"))
			return
		}
		ro := readOptions{at: latest}
		for _, k := range []string{"wal", "partial", "wal-dir", "data-dirs", "meta-dir"} {
			if v, ok := tg.Opts[k]; ok {
				ro.set(k, v)
			}
		}
		ro.live = true // the server is named when the tables are opened
		s, err := openServers(ctx, tg, format.OpenOptions{}, ro)
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		var loose []region.Finding
		if tg.Table == "" && !ro.gaps || tg.Table == unclaimedName {
			if loose, err = s.unclaimed(ctx); err != nil {
				yield(format.Entry{}, err)
				return
			}
			s.findings = append(s.findings, loose...)
		}
		named := tg.Table == ""
		for _, ts := range s.tables() {
			if !s.means(tg.Table, ts) || tg.Table == "" && ts[0].ID == systemCatalogID {
				continue // a master's own can be read by its name
			}
			named = true
			e, err := s.entry(ctx, ts)
			if err == nil && !ro.gaps && tg.Table != ts[0].ID {
				e.Findings = append(s.gaps(ts), e.Findings...)
			}
			about := s.findings
			if tg.Table != "" {
				about = s.about(ts)
			}
			if e.Findings = append(toList(about), e.Findings...); !yield(e, err) || err != nil {
				return
			}
		}
		if !named {
			if _, err := s.pick(ctx, tg, ""); errors.Is(err, fault.Invalid) {
				yield(format.Entry{}, err)
				return
			}
		}
		if !s.elsewhere(tg.Table, yield) {
			return
		}
		lost := s.lostEntries(tg.Table, loose)
		for _, e := range lost {
			if !yield(e, nil) {
				return
			}
		}
		if err := s.halves(ctx, tg); err != nil {
			yield(format.Entry{}, err)
			return
		}
		if s.anyTable() || len(lost) > 0 {
			return
		}
		for _, x := range s.findings { // why there is none
			if x.Severity >= region.Error || x.Part == systemCatalogID && x.Severity == region.Warning {
				yield(format.Entry{}, fault.Corruptf(x.At, x.Path, "%s", x.Message))
				return
			}
		}
	}
}

// toList are the findings about the directories that who lists them must know: errors, and what makes the catalogue, from which names and
// missing tablets come, doubtful.
func toList(all []region.Finding) (out []region.Finding) {
	for _, x := range all {
		if x.Severity >= region.Error || x.Part == systemCatalogID && x.Severity == region.Warning && x.Code != "kudu.wal.missing" {
			out = append(out, x)
		}
	}
	return out
}

// anyTable reports whether there is a table that List gives.
func (s *servers) anyTable() bool {
	return s.catalog != nil && len(s.catalog.tables) > 0 || slices.ContainsFunc(s.tablets, func(tb *tablet) bool { return tb.ID != systemCatalogID })
}

// entry is what List tells of a table.
func (s *servers) entry(ctx context.Context, ts []*tablet) (format.Entry, error) {
	top := newest(ts)
	e := format.Entry{Table: s.nameOf(ts), Kind: "table"}
	add := func(k, layout string, args ...any) { e.Meta = append(e.Meta, format2(k, layout, args...)) }
	add("table_id", "%s", top.TableID)
	add("tablets", "%d", len(ts))
	if top.Partitioning.stored {
		add("partition_schema", "%s", top.Partitioning.SchemaText(&top.Schema))
	}
	sets, lost := 0, 0
	for _, tb := range ts {
		rows, bytes, _, gone, err := tb.fs.TabletFacts(ctx, tb.Tablet)
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
		part.Meta = append(part.Meta, format2("partition", "%s", cmp.Or(tb.Partitioning.Text(&tb.Schema, &tb.Partition), "all rows")), format2("state", "%s", tb.State),
			format2("rowsets", "%d", len(tb.RowSets)), format2("server", "%s", cmp.Or(tb.fs.UUID, "unknown")))
		if n := len(tb.others); n > 0 {
			part.Meta = append(part.Meta, format2("replicas", "%d", n+1))
		}
		if n := tb.fs.logBytes(ctx, tb.ID); n > 0 {
			part.Meta = append(part.Meta, format2("log_bytes", "%d", n))
		}
		e.Parts = append(e.Parts, part)
		found, err := s.glance(ctx, tb)
		if err != nil {
			return e, err
		}
		e.Findings = append(e.Findings, found...)
	}
	add("rowsets", "%d", sets)
	if lost > 0 {
		add("lost_blocks", "%d", lost)
	}
	missing, uncovered, more := s.missing(ts)
	if n := int64(len(missing)) + more; n > 0 {
		add("missing_tablets", "%d", n)
	}
	for _, g := range missing {
		part := format.Entry{Table: cmp.Or(g.id, "?"), Kind: "tablet", Rows: -1, Bytes: -1}
		part.Meta = append(part.Meta, format2("partition", "%s", g.what), format2("state", "MISSING"))
		e.Parts = append(e.Parts, part)
	}
	for _, g := range uncovered[:min(len(uncovered), 20)] {
		add("uncovered", "%s", g)
	}
	return e, nil
}

// means reports whether what, if it is anything, names a table or one of its tablets.
func (s *servers) means(what string, ts []*tablet) bool {
	return what == "" || what == s.nameOf(ts) || what == ts[0].TableID || slices.ContainsFunc(ts, func(tb *tablet) bool { return tb.ID == what })
}

// elsewhere gives the tables that the master knows, and of which nothing is here; false if yield wants no more.
func (s *servers) elsewhere(what string, yield func(format.Entry, error) bool) bool {
	if s.catalog == nil {
		return true
	}
	var out []format.Entry
	for id, e := range s.catalog.tables {
		if e.gone || slices.ContainsFunc(s.tablets, func(tb *tablet) bool { return tb.TableID == id }) || what != "" && what != e.name && what != id {
			continue
		}
		x := format.Entry{Table: e.name, Kind: "table", Rows: -1, Bytes: -1}
		none := s.catalog.absent(id, nil)
		x.Meta = append(x.Meta, format2("table_id", "%s", id), format2("tablets", "0"), format2("missing_tablets", "%d", len(none)))
		for _, tb := range none {
			x.Parts = append(x.Parts, format.Entry{Table: tb.id, Kind: "tablet", Rows: -1, Bytes: -1, Meta: []format.KeyValue{{Key: "state", Value: "MISSING"}}})
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b format.Entry) int { return cmp.Compare(a.Table, b.Table) })
	for _, e := range out {
		if !yield(e, nil) {
			return false
		}
	}
	return true
}
