package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/codes"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/table"
	"stoa/internal/sorted"
	"stoa/region"
	"stoa/store"
)

// Blocks that no superblock names can be read with a given schema (option schema): blocks whose superblock is lost, and
// blocks in containers without metadata, which are found by their magics. They are assembled into rowsets. Blocks of
// which it is uncertain whether they belong together are left out and reported. Deltas are applied if numbers, rows and
// times leave only one rowset that they can be of. The log is not replayed, so rows may be older than they were.

// carvedID is the id and the name of the tablet to which carved rowsets are added.
const carvedID = "carved"

// loose is a block that no superblock names.
type loose struct {
	fs.Place
	seq   uint64 // number by which blocks are created; 0: not known
	Kind  cfile.Kind
	Rows  int64
	Typ   cfile.Type
	foot  cfile.Footer
	taken bool  // it has been added to a rowset
	Err   error // why the file cannot be opened
}

// assembly is what the loose blocks of a server make.
type assembly struct {
	fs    *fs.FS
	found []*loose
	sets  [][]*loose
}

// openCarved opens the blocks that no superblock names as a table.
func openCarved(ctx context.Context, tg format.Target, o format.OpenOptions, ro table.Options) (*table.Table, error) {
	if tg.Table != "" || ro.Tablet != "" {
		return nil, fault.Invalidf("option schema=FILE reads blocks that no superblock names, so no table or tablet "+
			"can be selected: leave out %s", cmp.Or(tg.Table, ro.Tablet))
	}
	if ro.At != table.Latest || ro.End != "" {
		return nil, fault.Invalidf("option schema=FILE reads blocks that no superblock names, and only what is left " +
			"of their changes, which does not show how they were at a moment: leave out at")
	}
	sc, ids, err := ReadSchemaFile(ctx, tg.Tree, ro.Schema)
	if err != nil {
		return nil, err
	}
	name := ro.Schema
	ro.Schema, ro.NoWAL, ro.At = "", true, table.Latest
	s, err := Open(ctx, tg, o, ro)
	if err != nil {
		return nil, err
	}
	var all []*assembly
	for _, f := range s.All {
		found, err := s.Loose(ctx, f)
		if err != nil {
			return nil, err
		}
		all = append(all, &assembly{fs: f, found: found, sets: group(found, sc)})
	}
	return s.carve(ctx, tg, o, ro, sc, ids, name, all, nil)
}

// carve makes a table of rowsets of blocks that no superblock names, with a schema, which comes from a file or from a
// tablet. ids reports whether the ids of its columns are known, rivals are other tables that the blocks fit as well.
func (s *Servers) carve(ctx context.Context, tg format.Target, o format.OpenOptions, ro table.Options, sc *meta.Schema,
	ids bool, name string, all []*assembly, rivals []string) (*table.Table, error) {
	c := newCarving(tg, o, sc, name)
	c.findings, c.ids = s.Findings, ids
	read := map[string]bool{} // UUIDs of servers with ids of blocks: a copy of a server gives no rows again
	for _, x := range all {
		from := len(c.tablet.RowSets)
		var mine [][]*loose
		for _, set := range x.sets {
			k := fmt.Sprint(x.fs.UUID, set[0].ID)
			if x.fs.UUID == "" || set[0].ID == 0 || !read[k] {
				mine = append(mine, set)
				c.add(set)
			}
			read[k] = true
		}
		c.noteLeft(x.found)
		if err := c.attribute(ctx, x.fs, x.found, mine, from); err != nil {
			return nil, err
		}
	}
	c.finishDeltas()
	if err := s.notReplayed(ctx, c, nil, map[string]bool{}); err != nil {
		return nil, err
	}
	if len(c.tablet.RowSets) == 0 {
		return nil, fault.New(fault.Unsupported, fault.Span{Object: tg.Name}, "",
			"no block without a superblock fits the schema in %s", name)
	}
	if ids := s.lostLike(sc); len(ids) > 1 {
		c.note("kudu.carve.mixed", fault.Span{Object: tg.Name}, "the rows may be those of %s whose "+
			"superblocks are lost, of several tables or replicas, which are read as one table: %s",
			fault.Count(len(ids), "tablet"),
			strings.Join(ids, ", "))
	} else if len(rivals) > 0 {
		c.note("kudu.carve.mixed", fault.Span{Object: tg.Name}, "the rows may be those of other tables whose "+
			"superblocks are lost, which have the same columns, and of which nothing is read from blocks: %s",
			strings.Join(rivals, ", "))
	}
	t, err := table.New(tg.Tree, []*table.Tablet{{Replica: table.Replica{FS: c.dirs, Tablet: c.tablet}}}, o, ro)
	if err != nil {
		return nil, err
	}
	t.Noticed = c.findings
	return t, nil
}

// carving is a tablet that is assembled from blocks that no superblock names.
type carving struct {
	dirs     *fs.FS // synthetic: each block is a container of its own
	tablet   *meta.Tablet
	findings []region.Finding
	at       fault.Span // the place, for findings about all of it
	ids      bool       // the ids of the schema's columns are known
	rows     []int64    // of each rowset

	redo             map[int][]*looseDeltas // by rowset
	applied, dropped deltaCount
}

// newCarving returns a carving without rows, with the schema sc, which was read from the file named name.
func newCarving(tg format.Target, o format.OpenOptions, sc *meta.Schema, name string) *carving {
	return &carving{
		dirs: &fs.FS{BlockManager: fs.LogManager, Tree: tg.Tree,
			Options: fs.FSOptions{Limits: o.Limits, NoVerify: o.NoVerify}, DataDirs: make([]fs.DataDir, 1),
			Blocks: map[uint64]fs.Placed{}},
		tablet: &meta.Tablet{ID: carvedID, Table: carvedID, TableID: carvedID, Object: name,
			State: meta.TabletReady, Schema: *sc},
		at:   fault.Span{Object: tg.Name},
		redo: map[int][]*looseDeltas{},
	}
}

func (c *carving) note(code string, at fault.Span, layout string, args ...any) {
	c.findings = append(c.findings, codes.Codes.Finding(code, at, carvedID, fmt.Sprintf(layout, args...)))
}

// add adds a rowset: its blocks, in the order of the columns.
func (c *carving) add(set []*loose) {
	rs := meta.RowSet{ID: uint64(len(c.tablet.RowSets)), LiveRows: -1}
	for i, x := range set {
		rs.Columns = append(rs.Columns,
			meta.ColumnBlock{Column: c.tablet.Schema.Columns[i].ID, BlockRef: c.ref(x)})
	}
	c.tablet.RowSets, c.rows = append(c.tablet.RowSets, rs), append(c.rows, set[0].Rows)
}

// noteLeft reports the column blocks that are in no rowset, by their number of rows, and the damaged blocks.
func (c *carving) noteLeft(found []*loose) {
	var order []int64
	byRows := map[int64][]*loose{}
	for _, x := range found {
		switch {
		case x.Err != nil:
			c.note("kudu.carve.left", x.At, "the block cannot be read, and may have had rows or changes of these: %v",
				x.Err)
		case x.Kind == cfile.KindColumn && !x.taken:
			if byRows[x.Rows] == nil {
				order = append(order, x.Rows)
			}
			byRows[x.Rows] = append(byRows[x.Rows], x)
		}
	}
	for _, rows := range order {
		var types []string
		for _, x := range byRows[rows] {
			types = append(types, meta.TypeName(x.Typ))
		}
		c.note("kudu.carve.left", byRows[rows][0].At, "%s of %s (%s) are in no rowset, as it is not certain "+
			"which belong together under this schema: rows of these are not in the output",
			fault.Count(int64(len(types)), "block"), fault.Count(rows, "value"), strings.Join(types, ", "))
	}
}

// lostLike returns the ids of the tablets whose superblocks are lost and which may have the schema sc, because their
// keys have the same types or are unknown. A tablet with several lost replicas is listed several times.
func (s *Servers) lostLike(sc *meta.Schema) (ids []string) {
	for _, b := range s.broken {
		like := len(b.Schema.Columns) == 0 || b.Schema.NumKeys == sc.NumKeys
		for i := 0; like && len(b.Schema.Columns) > 0 && i < sc.NumKeys; i++ {
			like = b.Schema.Columns[i].Type == sc.Columns[i].Type
		}
		if like {
			ids = append(ids, b.ID)
		}
	}
	return ids
}

// Loose returns a server's CFiles that no superblock names, sorted by block id: blocks of the block manager and, in
// containers whose metadata is damaged, CFiles found by their magics, with id 0.
func (s *Servers) Loose(ctx context.Context, f *fs.FS) (out []*loose, err error) {
	var tablets []*meta.Tablet
	for _, tb := range s.Tablets {
		for _, r := range tb.Replicas() {
			if r.FS == f || f.UUID != "" && r.FS.UUID == f.UUID { // a copy's superblock names them as well
				tablets = append(tablets, r.Tablet)
			}
		}
	}
	places, err := f.Unnamed(ctx, tablets)
	if err != nil {
		return nil, err
	}
	for _, c := range f.Containers {
		if !c.Unknown {
			continue
		}
		found, err := f.Carve(ctx, c)
		if err != nil {
			return nil, err
		}
		for _, x := range found {
			places = append(places, fs.Place{At: x.At, Dir: c.Dir})
		}
	}
	for _, p := range places {
		if p.At.Len == 0 {
			continue
		}
		seq := p.ID
		if f.BlockManager == fs.FileManager {
			seq &= 1<<48 - 1 // above it is the number of the data directory
		}
		r, err := cfile.OpenAt(ctx, table.NewSource(f.Tree, p.At.Object, p.At.End()), p.At,
			format.OpenOptions{Limits: f.Options.Limits, NoVerify: f.Options.NoVerify})
		if err != nil {
			if !table.Damaged(err) {
				return nil, err
			}
			out = append(out, &loose{Place: p, seq: seq, Rows: -1, Typ: -1, Err: err})
			continue
		}
		x := &loose{Place: p, seq: seq, Kind: r.Kind(), Rows: r.Len(), foot: r.Footer()}
		x.Typ = x.foot.Type
		out = append(out, x)
	}
	slices.SortStableFunc(out, func(a, b *loose) int { return cmp.Compare(a.seq, b.seq) })
	return out, nil
}

// canBe reports whether x can be a block of column c.
func (x *loose) canBe(c *meta.Column) bool {
	f := &x.foot
	return !x.taken && x.hasType(c) &&
		(c.Encoding == cfile.AutoEncoding || c.Encoding == f.Encoding) &&
		(c.Compression == cfile.DefaultCompression || c.Compression == f.Compression)
}

// hasType reports whether x is a block of a column with the type of c.
func (x *loose) hasType(c *meta.Column) bool {
	f := &x.foot
	return x.Kind == cfile.KindColumn && f.Type == c.Type && f.Nullable == c.Nullable && f.Array() == c.Array
}

// group assembles blocks, sorted by number, into rowsets. A flush or a compaction creates the blocks of a rowset
// consecutively, in column order. So a run of consecutive ids with the same number of rows is a rowset if it fits the
// schema and no further such block precedes or follows it. The remaining blocks with the same number of rows form a
// rowset if exactly one of them fits each column.
func group(all []*loose, sc *meta.Schema) (out [][]*loose) {
	n := len(sc.Columns)
	take := func(set []*loose) {
		for _, x := range set {
			x.taken = true
		}
		out = append(out, slices.Clone(set))
	}
	for i := 0; i+n <= len(all); i++ {
		run := all[i : i+n]
		ok := run[0].seq > 0 && !(i > 0 && run[0].follows(all[i-1]) && !all[i-1].taken) &&
			!(i+n < len(all) && all[i+n].follows(run[n-1]))
		for k, x := range run {
			ok = ok && x.canBe(&sc.Columns[k]) && (k == 0 || x.follows(run[k-1]))
		}
		if ok {
			take(run)
			i += n - 1
		}
	}
	byRows := map[int64][]*loose{}
	for _, x := range all {
		if x.Kind == cfile.KindColumn && !x.taken {
			byRows[x.Rows] = append(byRows[x.Rows], x)
		}
	}
	for _, rest := range byRows {
		if len(rest) != n {
			continue
		}
		set := make([]*loose, n)
		sure := true
		for _, x := range rest {
			fits := 0
			for k := range sc.Columns {
				if x.canBe(&sc.Columns[k]) {
					fits++
					sure = sure && set[k] == nil
					set[k] = x
				}
			}
			sure = sure && fits == 1
		}
		if sure {
			take(set)
		}
	}
	sorted.StablyBy(out, func(a, b []*loose) int {
		return cmp.Or(cmp.Compare(a[0].seq, b[0].seq), cmp.Compare(a[0].At.Object, b[0].At.Object),
			cmp.Compare(a[0].At.Off, b[0].At.Off))
	})
	return out
}

// again returns copies of blocks, for another schema.
func again(all []*loose) (out []*loose) {
	for _, x := range all {
		y := *x
		out = append(out, &y)
	}
	return out
}

// follows reports whether x may have been created directly after y, for the same rows.
func (x *loose) follows(y *loose) bool {
	return x.seq == y.seq+1 && x.Rows == y.Rows && x.Kind == cfile.KindColumn && y.Kind == cfile.KindColumn
}

// ReadSchemaFile reads a schema in the form that `stoa schema -f json` prints, with the field metadata stoa.type,
// stoa.key, stoa.column_id, stoa.encoding and stoa.compression. Without stoa.type the type is taken from usualType. ids
// reports whether every column has its id. The error is Invalid if the schema cannot be that of a Kudu table.
func ReadSchemaFile(ctx context.Context, tree store.Tree, name string) (sc *meta.Schema, ids bool, err error) {
	fields, err := format.ReadSchemaFile(ctx, tree, name)
	if err != nil {
		return nil, false, err
	}
	sc, ids = &meta.Schema{}, true
	for i, f := range fields {
		c := meta.Column{ID: int32(i), Name: f.Name, Nullable: f.Nullable, Key: f.Metadata[meta.MetaKey] != ""}
		word := cmp.Or(f.Metadata[cfile.MetaType], usualType[strings.SplitN(f.Type, "[", 2)[0]])
		t, ok := cfile.TypeByName(word)
		if _, err := fmt.Sscanf(f.Type, "decimal128(%d, %d)", &c.Precision, &c.Scale); err == nil && word == "" {
			t, ok = cfile.Decimal128, true
		}
		if !ok {
			return nil, false, fault.Invalidf("%s: column %q: Kudu has no type %s", name, f.Name, f.Type)
		}
		c.Type = t
		c.Encoding = cfile.EncodingByName(f.Metadata[cfile.MetaEncoding])
		c.Compression = cfile.CompressionByName(f.Metadata[cfile.MetaCompression])
		if id, err := strconv.ParseInt(f.Metadata[meta.MetaColumnID], 10, 32); err == nil {
			c.ID = int32(id)
		} else {
			ids = false
		}
		if why := c.Check(); why != "" {
			return nil, false, fault.Invalidf("%s: %s", name, why)
		}
		sc.Columns = append(sc.Columns, c)
	}
	sc.Index()
	if len(sc.Columns) == 0 || len(sc.ByID) != len(sc.Columns) {
		return nil, false, fault.Invalidf("%s: %s with %d different ids", name,
			fault.Count(len(sc.Columns), "column"), len(sc.ByID))
	}
	return sc, ids, nil
}

// usualType maps names of Arrow types to names of Kudu types.
var usualType = map[string]string{"int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64",
	"utf8": "string", "binary": "binary", "bool": "bool",
	"float32": "float", "float64": "double", "timestamp": "unixtime_micros", "date32": "date"}
