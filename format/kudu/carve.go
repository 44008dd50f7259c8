package kudu

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
	"stoa/region"
	"stoa/store"
)

// Blocks that no superblock names can be read with a schema that is given (option schema): those whose superblock is lost, and those in
// containers without records, which are found by their magics. They are put together to rowsets again; where it is not certain which
// blocks belong together they are left alone, and told. Deltas and the log are not applied: nothing says to which rowset they belong. So
// what is shown is the rows as they were flushed or compacted, deleted ones included.

// carvedID is the tablet of carved rowsets.
const carvedID = "carved"

// loose is a column block that nothing names.
type loose struct {
	Place
	kind  cfile.Kind
	rows  int64
	typ   cfile.Type
	foot  cfile.Footer
	taken bool
	err   error // why the file cannot be opened
}

// openCarved opens the blocks that no superblock names as a table.
func openCarved(ctx context.Context, tg format.Target, o format.OpenOptions, ro readOptions) (*table, error) {
	if tg.Table != "" || ro.tablet != "" {
		return nil, fault.Invalidf("option schema=FILE reads the blocks that no superblock names, so of no table or tablet that has a name: without #%s", cmp.Or(tg.Table, ro.tablet))
	}
	sc, err := readSchemaFile(ctx, tg.Tree, ro.schema)
	if err != nil {
		return nil, err
	}
	name := ro.schema
	ro.schema, ro.noWAL, ro.at = "", true, latest
	s, err := openServers(ctx, tg, o, ro)
	if err != nil {
		return nil, err
	}
	dirs := &FS{BlockManager: "log", tree: tg.Tree, o: FSOptions{Limits: o.Limits, NoVerify: o.NoVerify}, DataDirs: make([]DataDir, 1), blocks: map[uint64]placed{}}
	tb := &Tablet{ID: carvedID, Table: carvedID, TableID: carvedID, Object: name, State: TabletReady, Schema: *sc}
	findings := s.findings
	note := func(code string, at fault.Span, layout string, args ...any) {
		findings = append(findings, region.Finding{Code: code, Severity: severity(code), At: at, Part: carvedID, Message: fmt.Sprintf(layout, args...), Rows: [2]int64{-1, -1}, Lost: -1})
	}
	deltas := 0
	for _, f := range s.all {
		found, err := s.loose(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, set := range group(found, sc) {
			rs := RowSet{ID: uint64(len(tb.RowSets)), LiveRows: -1}
			for i, x := range set {
				id := uint64(len(dirs.Containers) + 1)
				dirs.blocks[id] = placed{off: x.At.Off, len: x.At.Len, container: int32(len(dirs.Containers))}
				dirs.Containers = append(dirs.Containers, &Container{Data: x.At.Object})
				rs.Columns = append(rs.Columns, ColumnBlock{sc.Columns[i].ID, BlockRef{ID: id}})
			}
			tb.RowSets = append(tb.RowSets, rs)
		}
		for _, x := range found {
			switch {
			case x.kind == cfile.KindDelta:
				deltas++
			case x.kind == cfile.KindColumn && !x.taken:
				note("kudu.carve.left", x.At, "%d values of type %s: it is not certain to which rowset they belong", x.rows, typeName(x.typ))
			}
		}
	}
	if len(tb.RowSets) == 0 {
		return nil, fault.New(fault.Unsupported, fault.Span{Object: tg.Name}, "", "no blocks that no superblock names fit the schema in %s", name)
	}
	if ids := s.lostLike(sc); len(ids) > 1 {
		note("kudu.carve.mixed", fault.Span{Object: tg.Name}, "the rows may be those of %d tablets whose superblocks are lost, of several tables or replicas, and are read as one table: %s", len(ids), strings.Join(ids, ", "))
	}
	if deltas > 0 {
		note("kudu.carve.deltas", fault.Span{Object: tg.Name}, "%d files of changes are not applied: nothing says of which rowset they are", deltas)
	}
	t, err := newTable(tg.Tree, []*tablet{{replica: replica{dirs, tb}}}, o, ro)
	if err != nil {
		return nil, err
	}
	t.findings = findings
	return t, nil
}

// lostLike are the tablets whose superblocks are lost and that may have a schema: the keys in their logs' headers have the same types. A tablet
// of which several replicas are lost is there several times.
func (s *servers) lostLike(sc *Schema) (ids []string) {
	for _, b := range s.broken {
		like := len(b.Schema.Columns) == 0 || b.Schema.keys == sc.keys
		for i := 0; like && len(b.Schema.Columns) > 0 && i < sc.keys; i++ {
			like = b.Schema.Columns[i].Type == sc.Columns[i].Type
		}
		if like {
			ids = append(ids, b.ID)
		}
	}
	return ids
}

// loose are a server's files that no superblock names: by the block manager's word, and by their magics where its records are lost.
func (s *servers) loose(ctx context.Context, f *FS) (out []*loose, err error) {
	var tablets []*Tablet
	for _, tb := range s.tablets {
		for _, r := range append([]replica{tb.replica}, tb.others...) {
			if r.fs == f {
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
			places = append(places, Place{At: x.At, Dir: c.Dir})
		}
	}
	for _, p := range places {
		if p.At.Len == 0 {
			continue
		}
		r, err := cfile.OpenAt(ctx, source{f.tree, p.At.Object, p.At.End()}, p.At, format.OpenOptions{Limits: f.o.Limits, NoVerify: f.o.NoVerify})
		if err != nil {
			if !damaged(err) {
				return nil, err
			}
			out = append(out, &loose{Place: p, rows: -1, typ: -1, err: err})
			continue
		}
		x := &loose{Place: p, kind: r.Kind(), rows: r.Len(), foot: r.Footer()}
		x.typ = x.foot.Type
		out = append(out, x)
	}
	slices.SortStableFunc(out, func(a, b *loose) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// fits reports whether a file can be that of a column.
func (x *loose) fits(c *Column) bool {
	f := &x.foot
	return x.kind == cfile.KindColumn && !x.taken && f.Type == c.Type && f.Nullable == c.Nullable && f.Array() == c.Array &&
		(c.Encoding == cfile.AutoEncoding || c.Encoding == f.Encoding) && (c.Compression == cfile.DefaultCompression || c.Compression == f.Compression)
}

// group puts blocks, sorted by number, together to rowsets. A flush or a compaction makes the blocks of a rowset one after the other, in the
// order of columns: a run of consecutive numbers with as many rows each, that fits the schema and has no such neighbours, is one. Of the
// rest, blocks with as many rows are one if there is exactly one for each column, and no two columns are alike.
func group(all []*loose, sc *Schema) (out [][]*loose) {
	n := len(sc.Columns)
	take := func(set []*loose) {
		for _, x := range set {
			x.taken = true
		}
		out = append(out, slices.Clone(set))
	}
	for i := 0; i+n <= len(all); i++ {
		run := all[i : i+n]
		ok := run[0].ID > 0 && !(i > 0 && run[0].follows(all[i-1]) && !all[i-1].taken) && !(i+n < len(all) && all[i+n].follows(run[n-1]))
		for k, x := range run {
			ok = ok && x.fits(&sc.Columns[k]) && (k == 0 || x.follows(run[k-1]))
		}
		if ok {
			take(run)
			i += n - 1
		}
	}
	byRows := map[int64][]*loose{}
	for _, x := range all {
		if x.kind == cfile.KindColumn && !x.taken {
			byRows[x.rows] = append(byRows[x.rows], x)
		}
	}
	for _, rest := range byRows {
		if len(rest) != n {
			continue
		}
		set := make([]*loose, n)
		sure := true
		for _, x := range rest {
			places := 0
			for k := range sc.Columns {
				if x.fits(&sc.Columns[k]) {
					places++
					sure = sure && set[k] == nil
					set[k] = x
				}
			}
			sure = sure && places == 1
		}
		if sure {
			take(set)
		}
	}
	slices.SortStableFunc(out, func(a, b []*loose) int {
		return cmp.Or(cmp.Compare(a[0].ID, b[0].ID), cmp.Compare(a[0].At.Object, b[0].At.Object), cmp.Compare(a[0].At.Off, b[0].At.Off))
	})
	return out
}

// follows reports whether x was made right after y, for the same rows.
func (x *loose) follows(y *loose) bool {
	return x.ID == y.ID+1 && x.rows == y.rows && x.kind == cfile.KindColumn && y.kind == cfile.KindColumn
}

// readSchemaFile reads a schema as `stoa schema -f json` prints it. The metadata stoa.type, stoa.key, stoa.column_id, stoa.encoding and
// stoa.compression say what Arrow's types do not; without stoa.type it is the usual type.
func readSchemaFile(ctx context.Context, tree store.Tree, name string) (*Schema, error) {
	fields, err := format.ReadSchemaFile(ctx, tree, name)
	if err != nil {
		return nil, err
	}
	sc := &Schema{}
	for i, f := range fields {
		c := Column{ID: int32(i), Name: f.Name, Nullable: f.Nullable, Key: f.Metadata[MetaKey] != ""}
		word := cmp.Or(f.Metadata[cfile.MetaType], usualType[strings.SplitN(f.Type, "[", 2)[0]])
		t, ok := cfile.TypeByName(word)
		if _, err := fmt.Sscanf(f.Type, "decimal128(%d, %d)", &c.Precision, &c.Scale); err == nil && word == "" {
			t, ok = cfile.Decimal128, true
		}
		if !ok {
			return nil, fault.Invalidf("%s: column %q: %s is no type of Kudu's", name, f.Name, f.Type)
		}
		c.Type = t
		c.Encoding = cfile.EncodingByName(f.Metadata[cfile.MetaEncoding])
		c.Compression = cfile.CompressionByName(f.Metadata[cfile.MetaCompression])
		if id, err := strconv.ParseInt(f.Metadata[MetaColumnID], 10, 32); err == nil {
			c.ID = int32(id)
		}
		if why := c.check(); why != "" {
			return nil, fault.Invalidf("%s: %s", name, why)
		}
		sc.Columns = append(sc.Columns, c)
	}
	sc.index()
	if len(sc.Columns) == 0 || len(sc.byID) != len(sc.Columns) {
		return nil, fault.Invalidf("%s: %d columns with %d ids", name, len(sc.Columns), len(sc.byID))
	}
	return sc, nil
}

// usualType is Kudu's type of an Arrow type, by their names.
var usualType = map[string]string{"int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64", "utf8": "string", "binary": "binary", "bool": "bool",
	"float32": "float", "float64": "double", "timestamp": "unixtime_micros", "date32": "date"}
