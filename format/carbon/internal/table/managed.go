package table

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/dict"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// Managed is a table with a directory of its own: schema, status, segments.
type Managed struct {
	*Table
	Path        string
	O           ReadOptions
	TableSchema layout.TableSchema
	Status      string // name of tablestatus
	Loads       []status.Load
	Updates     string // name of the update status; "" if there is none
	changes     map[string]*status.Update

	noting sync.Mutex
	Notes  []region.Finding

	once  sync.Mutex
	found map[string]*Part // by name; nil: not looked yet
	list  []*Part
	bad   map[string]error // segments of which something is gone, by what stands for them among the parts

	Guessed *guessedDeletes // recovering: the update status is not the one that tablestatus names
	told    map[string]bool // recovering: delete deltas and segment files of which was told

	partitions map[string][]Place // recovering: directories of partitions by segment; nil: not looked yet
}

// OpenManaged opens a table directory.
func OpenManaged(ctx context.Context, tree store.Tree, dir string, op format.OpenOptions, o ReadOptions,
	saved func([]region.Finding)) (*Managed, error) {
	op.Limits = op.Limits.Together()
	t := &Managed{Path: dir, O: o, Status: path.Join(dir, "Metadata", "tablestatus")}
	t.Table = &Table{saved: saved, Tree: tree, Name: dir, Opts: op, Files: map[string]*datafile.DataFile{},
		Zone: o.Zone, Blocklet: o.Blocklet}
	t.Opts.Tracer = nil
	var err error
	if t.Dates, err = o.Rule(); err != nil {
		return nil, err
	}
	noSchema := t.readSchema(ctx)
	if noSchema != nil && (saved == nil || !errors.Is(noSchema, fault.Corrupt)) {
		return nil, noSchema
	}
	if noSchema == nil && saved != nil {
		if err := t.adoptIDs(ctx); err != nil {
			return nil, err
		}
	}
	if err := t.readStatus(ctx); err != nil {
		if saved == nil || !errors.Is(err, fault.Corrupt) {
			return nil, err
		}
		if err := t.guessStatus(ctx, err); err != nil {
			return nil, err
		}
	}
	if noSchema != nil {
		if err := t.guessSchema(ctx, noSchema); err != nil {
			return nil, err
		}
	}
	if o.positions {
		t.addPositions()
	}
	t.Dicts = dict.NewDictionaries(tree, path.Join(dir, "Metadata"), op)
	t.facts()
	return t, nil
}

// readSchema reads Metadata/schema.
func (t *Managed) readSchema(ctx context.Context) error {
	name := path.Join(t.Path, "Metadata", "schema")
	obj, err := layout.OpenObject(ctx, t.Tree, name, t.Opts.Limits)
	if errors.Is(err, fs.ErrNotExist) {
		is, err := isTable(ctx, t.Tree, t.Path)
		if err != nil {
			return err
		}
		if !is {
			return fault.Corruptf(fault.Span{Object: name}, "", "it looks like a partitioned table (data files "+
				"of segments in directories NAME=VALUE), but its schema is missing")
		}
		return fault.Corruptf(fault.Span{Object: name}, "", "the table has segments, but its schema is missing")
	}
	if err != nil {
		return err
	}
	b, err := obj.Read(ctx, 0, obj.At.Len, "schema")
	if err != nil {
		return err
	}
	c := obj.Cursor(b, obj.At, "schema")
	t.TableSchema = layout.ParseTableInfo(thrift.NewReader(c, thrift.Compact), "")
	if c.Err() != nil {
		return c.Err()
	}
	switch n := c.Left(); {
	case t.TableSchema.Id == "" || len(t.TableSchema.Columns) == 0:
		return fault.Corruptf(obj.At, "schema.fact_table",
			"it has no table_id or no table_columns, which every table has")
	case n > 0:
		return fault.Corruptf(obj.At.Sub(int64(c.Pos()), int64(n)), "schema", "%d bytes behind its end", n)
	}
	t.Ids = map[string]bool{}
	for _, list := range append([][]layout.ColumnSchema{t.TableSchema.Columns}, t.TableSchema.Past()...) {
		for i := range list {
			t.Ids[list[i].Id] = true
		}
	}
	roots, _, err := schema.ColumnTree(t.TableSchema.Columns, obj.At, "schema.table_columns")
	if err == nil {
		err = schema.Fit(roots, t.Opts.Limits, obj.At, "schema.table_columns")
	}
	if err != nil {
		return err
	}
	if err := t.drifted(ctx, obj.At); err != nil {
		return err
	}
	return t.AllColumns(roots, obj.At, "schema.table_columns")
}

// readStatus reads tablestatus and what it names. A table without one is empty, unless it has segments: then
// nobody knows which of them count, and an empty answer would be a silent loss.
func (t *Managed) readStatus(ctx context.Context) error {
	loads, err := t.readLoads(ctx)
	if err != nil {
		return err
	}
	t.Loads, t.changes = loads, map[string]*status.Update{}
	if len(loads) == 0 || loads[0].Updates == "" {
		return t.checkUpdates(ctx, nil)
	}
	t.Updates = path.Join(t.Path, "Metadata", loads[0].Updates)
	var list []status.Update
	if err := status.ReadJSON(ctx, t.Tree, t.Updates, t.Opts.Limits, &list); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fault.Corruptf(fault.Span{Object: t.Updates}, "",
				"the update status is missing that tablestatus names: deleted rows would come back")
		}
		return err
	}
	t.take(list)
	return t.checkUpdates(ctx, list)
}

// take makes the entries of an update status those that hold.
func (t *Managed) take(list []status.Update) {
	t.changes = map[string]*status.Update{}
	for i := range list {
		u := &list[i]
		t.changes[u.Segment+"/"+u.Block] = u
	}
}

// readLoads reads tablestatus itself.
func (t *Managed) readLoads(ctx context.Context) (loads []status.Load, err error) {
	err = status.ReadJSON(ctx, t.Tree, t.Status, t.Opts.Limits, &loads)
	if errors.Is(err, fs.ErrNotExist) {
		if found, err := t.guessLoads(ctx); err != nil || len(found) == 0 {
			return nil, err
		}
		return nil, fault.Corruptf(fault.Span{Object: t.Status}, "",
			"the table has segments, but no tablestatus that says which of them count")
	}
	if err != nil {
		return nil, err
	}
	for i := range loads { // unknown is not "left out": that would be a silent loss
		switch l := &loads[i]; {
		case l.Name == "":
			return nil, fault.Corruptf(fault.Span{Object: t.Status}, fmt.Sprintf("[%d].loadName", i), "it is missing")
		case !status.KnownStatus(l.Status):
			return nil, fault.Corruptf(fault.Span{Object: t.Status}, fmt.Sprintf("[%d].loadStatus", i),
				"segment %s: load status %q is unknown", l.Name, l.Status)
		}
		for _, x := range [][2]string{{"loadName", loads[i].Name}, {"segmentFile", loads[i].Segment},
			{"updateStatusFileName", loads[i].Updates}} {
			if strings.ContainsAny(x[1], "/\\\x00") || x[1] == ".." { // it would be another table's
				return nil, fault.Corruptf(fault.Span{Object: t.Status}, fmt.Sprintf("[%d].%s", i, x[0]),
					"%q is a path, where a name is wanted", x[1])
			}
		}
	}
	if err := t.twice(loads); err != nil && t.saved == nil { // recovery looks at each entry by itself
		return nil, err
	}
	return loads, nil
}

// twice is an error if two entries that count name the same segment file: one is not what was written, and
// however many there are, their files are not looked for again and again.
func (t *Managed) twice(loads []status.Load) error {
	by := map[string]int{}
	for i := range loads {
		l := &loads[i]
		if l.Segment == "" || !l.Counts() {
			continue
		}
		if k, ok := by[l.Segment]; ok {
			return fault.Corruptf(fault.Span{Object: t.Status}, fmt.Sprintf("[%d].segmentFile", i),
				"segment %s: %s is that of segment %s, too", l.Name, l.Segment, loads[k].Name)
		}
		by[l.Segment] = i
	}
	return nil
}

// checkUpdates holds the update status against tablestatus: see checkEntries; a segment with deletes that has
// no entry would let rows come back, too. Which files the entries are of is found out with the files; see fit.
func (t *Managed) checkUpdates(ctx context.Context, list []status.Update) error {
	if err := t.checkEntries(ctx, list); err != nil {
		return err
	}
	has := map[string]bool{}
	for i := range list {
		has[list[i].Segment] = true
	}
	for i := range t.Loads {
		if l := &t.Loads[i]; l.Counts() && l.UpdateFrom != "" && !has[l.Id()] {
			return fault.Corruptf(fault.Span{Object: t.Status}, fmt.Sprintf("[%d].updateDeltaStartTimestamp", i),
				"segment %s has deleted rows, and no update status says which", l.Name)
		}
	}
	return nil
}

// checkEntries looks at each entry of an update status: one without its members (the real writer always writes
// them), or of a segment that never was, would let deleted rows come back.
func (t *Managed) checkEntries(ctx context.Context, list []status.Update) error {
	known := map[string]bool{}
	for i := range t.Loads {
		known[t.Loads[i].Name], known[t.Loads[i].Id()] = true, true
	}
	for i := range list {
		u := &list[i]
		if err := t.checkUpdate(u, i); err != nil {
			return err
		}
		if known[u.Segment] {
			continue
		}
		var past []status.Load // what was cleaned away
		if err := status.ReadJSON(ctx, t.Tree, t.Status+".history", t.Opts.Limits, &past); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for k := range past {
			known[past[k].Name] = true
		}
		if !known[u.Segment] {
			return fault.Corruptf(fault.Span{Object: t.Updates}, fmt.Sprintf("[%d].segmentName", i),
				"%q is no segment of the table", u.Segment)
		}
	}
	return nil
}

// checkUpdate looks whether the entry has what it needs.
func (t *Managed) checkUpdate(u *status.Update, i int) error {
	bad := func(member, value string) error {
		return fault.Corruptf(fault.Span{Object: t.Updates}, fmt.Sprintf("[%d].%s", i, member),
			"%q: it is missing, or impossible", value)
	}
	n := status.Count64(u.Deleted)
	_, from := status.Millis(u.From)
	_, to := status.Millis(u.To)
	switch {
	case u.Segment == "":
		return bad("segmentName", u.Segment)
	case u.Block == "":
		return bad("blockName", u.Block)
	case u.Status != "" && !status.KnownStatus(u.Status):
		return bad("segmentStatus", u.Status)
	case u.Gone():
	case n < 0:
		return bad("deletedRowsInBlock", u.Deleted)
	case n == 0 && (u.From != "" && u.From != "0" || u.To != "" && u.To != "0"):
		return bad("deletedRowsInBlock", u.Deleted)
	case n > 0 && !from:
		return bad("deleteDeltaStartTimestamp", u.From)
	case n > 0 && !to:
		return bad("deleteDeltaEndTimestamp", u.To)
	}
	return nil
}

// reader is t as a format.Reader; with deletes it has overlays.
func (t *Managed) reader() format.Reader {
	if (len(t.changes) > 0 || t.Guessed != nil) && !t.O.deleted {
		return withDeletes{t}
	}
	return t
}

// facts are what `stoa meta` prints of the table.
func (t *Managed) facts() {
	add := func(k string, v any) { t.meta = append(t.meta, format.KeyValue{Key: k, Value: fmt.Sprint(v)}) }
	add("format", "CarbonData table")
	t.TableSchema.Facts(add)
	for i := range t.Loads {
		l := &t.Loads[i]
		add("segment."+l.Name, l.Words())
	}
	if t.Updates != "" {
		add("update_status", path.Base(t.Updates))
	}
}

// Layout is how the schema has the rows laid out.
func (t *Managed) Layout() format.Layout {
	l := format.Layout{Buckets: int(t.TableSchema.Buckets), Sorted: t.Table.Layout().Sorted}
	for i := range t.TableSchema.BucketBy {
		l.BucketBy = append(l.BucketBy, t.TableSchema.BucketBy[i].Name)
	}
	// of the other kinds no directory tells the value
	if p := t.TableSchema.Partition; p != nil && p.Kind == layout.NativeHive {
		for i := range p.Columns {
			l.Partitions = append(l.Partitions, p.Columns[i].Name)
		}
	}
	return l
}

// all finds the data files of all wanted segments, once.
func (t *Managed) all(ctx context.Context) ([]*Part, error) {
	t.once.Lock()
	defer t.once.Unlock()
	if t.found != nil {
		return t.list, nil
	}
	found, list, bad := map[string]*Part{}, []*Part(nil), map[string]error{}
	if err := t.CheckWanted(); err != nil {
		return nil, err
	}
	for i := range t.Loads {
		l := &t.Loads[i]
		if !t.O.Wants(l) {
			continue
		}
		parts, h, err := t.SegmentHolding(ctx, l)
		if err == nil && h.Unknown {
			err = t.others(ctx, l, parts)
		}
		if err != nil {
			if t.O.allSegments && !l.Counts() { // its files may have been cleaned away
				continue
			}
			if !errors.Is(err, fault.Corrupt) {
				return nil, err
			}
			bad["segment "+l.Name] = err
			if m := (*misfit)(nil); t.saved == nil && errors.As(err, &m) { // rows that were deleted could come back
				continue
			}
		}
		if err != nil && t.saved != nil {
			t.saved([]region.Finding{layout.Saying("carbon.segment.missing", fault.Span{Object: t.Status}, t.Path,
				"%v: what is there of segment %s is read", err, l.Name)})
		}
		for k := range parts {
			p := &parts[k]
			if found[p.Name] == nil {
				found[p.Name] = p
				list = append(list, p)
			}
		}
	}
	if err := t.Untied(ctx, list); err != nil {
		return nil, err
	}
	if t.saved != nil { // it was told
		bad = nil
	}
	t.found, t.list, t.bad = found, list, bad
	return list, nil
}

// others is the error of a segment without index files whose data files are not its own; see tied. Recovery
// tells it, and reads them.
func (t *Managed) others(ctx context.Context, l *status.Load, parts []Part) error {
	err := t.Tied(ctx, l, parts)
	switch {
	case err == nil:
		return nil
	case t.saved == nil:
		return &misfit{err}
	}
	var e *fault.Error
	errors.As(err, &e)
	t.saved([]region.Finding{layout.Saying("carbon.segment.minmax", e.At, t.Path,
		"%v: the data files that are there are read; one may be another segment's", err)})
	return nil
}

// CheckWanted refuses segments that are not there.
func (t *Managed) CheckWanted() error {
	for _, s := range t.O.Segments {
		ok := false
		for i := range t.Loads {
			ok = ok || t.Loads[i].Name == s || t.Loads[i].Id() == s
		}
		if !ok {
			return fault.Invalidf("%s has no segment %s", t.Path, s)
		}
	}
	return nil
}

// Parts are the data files, and something for each segment of which files are missing or nobody knows which
// they are: its row groups are the error, so that a scan ends there, or passes over what is lost and tells it.
func (t *Managed) Parts(ctx context.Context, _ format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		list, err := t.all(ctx)
		if err != nil {
			yield(format.Part{}, err)
			return
		}
		for _, name := range layout.Sorted(t.bad) { // first: without a policy for damage nothing is read
			if !yield(format.Part{Ref: name, Rows: -1}, nil) {
				return
			}
		}
		for _, p := range list {
			if !yield(format.Part{Ref: p.Name, Stamp: p.stampText(t), Rows: p.rows, Bytes: p.bytes}, nil) {
				return
			}
		}
	}
}

// missing is why there is no such file, but something that stands for it among the parts.
func (t *Managed) missing(ref string) error { return t.bad[ref] }

// stampText is what a part was planned with: its file's stamp, and the deletes that hold.
func (p *Part) stampText(t *Managed) string {
	s := p.stamp
	if p.Update != nil {
		s += " " + path.Base(t.Updates)
	}
	return s
}

// Part finds a part by its name.
func (t *Managed) Part(ctx context.Context, name string) (*Part, error) {
	if _, err := t.all(ctx); err != nil {
		return nil, err
	}
	if p := t.found[name]; p != nil {
		return p, nil
	}
	if err := t.bad[name]; err != nil {
		return nil, err
	}
	return nil, fault.Invalidf("%s is not a file of the table", name)
}

func (t *Managed) RowGroups(ctx context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	mine, err := t.Part(ctx, p.Ref)
	if err != nil {
		return nil, err
	}
	if f := mine.hollow(); q.Filter != nil && f != nil {
		return t.groups(ctx, f, mine, q)
	}
	f, err := t.File(ctx, p.Ref)
	if err == nil && t.saved == nil { // when recovering, the footer may not be the file's own
		err = fitsPart(f, mine)
	}
	if err != nil {
		return nil, err
	}
	return t.groups(ctx, f, mine, q)
}

// fitsPart holds the rows of a file against what its index file says: with another number the file is not the
// one that was loaded, or one of the two is damaged. Files of rows may have grown since.
func fitsPart(f *datafile.DataFile, p *Part) error {
	if f.Stream != nil || len(p.blocks) == 0 {
		return nil
	}
	for i := range p.blocks {
		b := &p.blocks[i]
		if b.Offset != f.FootAt && !f.Rebuilt { // files of other columns have no bounds that could be compared
			return fault.Corruptf(f.FootSpan(), "footer",
				"the index file has it at byte %d: one is damaged, or of another file", b.Offset)
		}
		if b.Info == nil || i >= len(f.Footer.Blocklet) {
			continue
		}
		if n := f.Footer.Blocklet[i].Rows; n != b.Count() {
			return fault.Corruptf(f.FootSpan(), fmt.Sprintf("footer.blocklet[%d].num_rows", i),
				"%d, the index file says %d", n, b.Count())
		}
		if i < len(f.Footer.Index) && !layout.SameBounds(b.Index.MinMax, f.Footer.Index[i].MinMax) {
			return fault.Corruptf(f.FootSpan(), fmt.Sprintf("footer.blocklet_index_list[%d]", i),
				"the least and greatest values are others than in the index file: one is damaged, or of another file")
		}
	}
	if f.Footer.Rows != p.rows {
		return fault.Corruptf(f.FootSpan(), "footer.num_rows", "%d, the index file says %d", f.Footer.Rows, p.rows)
	}
	return nil
}

// hollow is the file as its index file knows it: enough to tell what a filter needs of it without opening it.
// nil if the index does not know the blocklets, as in old tables. Who then opens the file compares.
func (p *Part) hollow() *datafile.DataFile {
	f := &datafile.DataFile{Version: 3}
	f.At.Object = p.Name
	for i := range p.blocks {
		b := &p.blocks[i]
		if b.Info == nil {
			return nil
		}
		f.Footer.Blocklet = append(f.Footer.Blocklet, *b.Info)
		f.Footer.Index = append(f.Footer.Index, b.Index)
		f.FootAt = b.Offset
	}
	var err error
	if f.Roots, _, err = schema.ColumnTree(p.columns, f.At, "table_columns"); err != nil ||
		len(f.Footer.Blocklet) == 0 {
		return nil
	}
	for i := range f.Footer.Blocklet {
		if b := &f.Footer.Blocklet[i]; len(b.Offsets) != len(p.columns) || b.Rows < 0 {
			return nil
		}
	}
	return f
}

func (t *Managed) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	mine, err := t.Part(ctx, g.Part)
	if err != nil {
		return nil, err
	}
	if t.saved == nil && atomic.LoadInt32(&mine.agreed) == 0 { // the index may have planned it alone
		f, err := t.File(ctx, g.Part)
		if err == nil {
			err = fitsPart(f, mine)
		}
		if err != nil {
			return nil, err
		}
		atomic.StoreInt32(&mine.agreed, 1)
	}
	return t.chunk(ctx, g, mine, col, rows)
}

// partition is the text of a partition column's value in a part; ok is false if the column is none.
func (p *Part) partition(name string) (text string, ok bool) {
	for _, v := range p.values {
		if k, x, found := strings.Cut(v, "="); found && schema.Unescape(k) == name {
			return x, true
		}
	}
	return "", false
}
