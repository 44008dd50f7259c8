package carbon

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
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
	"stoa/wire"
)

// managed is a table with a directory of its own: schema, status, segments.
type managed struct {
	*table
	path    string
	o       readOptions
	schema  tableSchema
	status  string // name of tablestatus
	loads   []load
	updates string // name of the update status; "" if there is none
	changes map[string]*update

	noting sync.Mutex
	notes  []region.Finding

	once  sync.Mutex
	found map[string]*part // by name; nil: not looked yet
	list  []*part
	bad   map[string]error // segments of which something is gone, by what stands for them among the parts

	guessed *guessedDeletes // recovering: the update status is not the one that tablestatus names
	told    map[string]bool // recovering: delete deltas and segment files of which was told

	partitions map[string][]place // recovering: directories of partitions by segment; nil: not looked yet
}

// openManaged opens a table directory.
func openManaged(ctx context.Context, tree store.Tree, dir string, op format.OpenOptions, o readOptions, saved func([]region.Finding)) (*managed, error) {
	t := &managed{path: dir, o: o, status: path.Join(dir, "Metadata", "tablestatus")}
	t.table = &table{saved: saved, tree: tree, name: dir, opts: op, files: map[string]*dataFile{}, zone: o.zone, blocklet: o.blocklet}
	t.opts.Tracer = nil
	var err error
	if t.dates, err = o.rule(); err != nil {
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
	t.dicts = newDictionaries(tree, path.Join(dir, "Metadata"), op)
	t.facts()
	return t, nil
}

// readSchema reads Metadata/schema.
func (t *managed) readSchema(ctx context.Context) error {
	name := path.Join(t.path, "Metadata", "schema")
	obj, err := openObject(ctx, t.tree, name, t.opts.Limits)
	if errors.Is(err, fs.ErrNotExist) {
		if !isTable(ctx, t.tree, t.path) {
			return fault.Corruptf(fault.Span{Object: name}, "", "it looks like a partitioned table (data files of segments in directories NAME=VALUE), but its schema is missing")
		}
		return fault.Corruptf(fault.Span{Object: name}, "", "the table has segments, but its schema is missing")
	}
	if err != nil {
		return err
	}
	b, err := obj.read(ctx, 0, obj.at.Len, "schema")
	if err != nil {
		return err
	}
	c := wire.NewCursor(b, obj.at, "schema")
	t.schema = parseTableInfo(thrift.NewReader(c, thrift.Compact), "")
	if c.Err() != nil {
		return c.Err()
	}
	switch n := c.Left(); {
	case t.schema.id == "" || len(t.schema.columns) == 0:
		return fault.Corruptf(obj.at, "schema.fact_table", "it has no table_id or no table_columns, which every table has")
	case n > 0:
		return fault.Corruptf(obj.at.Sub(int64(c.Pos()), int64(n)), "schema", "%d bytes behind its end", n)
	}
	t.ids = map[string]bool{}
	for _, list := range append([][]columnSchema{t.schema.columns}, t.schema.past()...) {
		for i := range list {
			t.ids[list[i].id] = true
		}
	}
	roots, _, err := columnTree(t.schema.columns, obj.at, "schema.table_columns")
	if err != nil {
		return err
	}
	return t.columns(roots)
}

// readStatus reads tablestatus and what it names. A table without one is empty, unless it has segments: then nobody knows which of
// them count, and an empty answer would be a silent loss.
func (t *managed) readStatus(ctx context.Context) error {
	loads, err := t.readLoads(ctx)
	if err != nil {
		return err
	}
	t.loads, t.changes = loads, map[string]*update{}
	if len(loads) == 0 || loads[0].Updates == "" {
		return t.checkUpdates(ctx, nil)
	}
	t.updates = path.Join(t.path, "Metadata", loads[0].Updates)
	var list []update
	if err := readJSON(ctx, t.tree, t.updates, t.opts.Limits, &list); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fault.Corruptf(fault.Span{Object: t.updates}, "", "the update status is missing that tablestatus names: deleted rows would come back")
		}
		return err
	}
	t.take(list)
	return t.checkUpdates(ctx, list)
}

// take makes the entries of an update status those that hold.
func (t *managed) take(list []update) {
	t.changes = map[string]*update{}
	for i := range list {
		u := &list[i]
		t.changes[u.Segment+"/"+u.Block] = u
	}
}

// readLoads reads tablestatus itself.
func (t *managed) readLoads(ctx context.Context) (loads []load, err error) {
	err = readJSON(ctx, t.tree, t.status, t.opts.Limits, &loads)
	if errors.Is(err, fs.ErrNotExist) {
		if found, err := t.guessLoads(ctx); err != nil || len(found) == 0 {
			return nil, err
		}
		return nil, fault.Corruptf(fault.Span{Object: t.status}, "", "the table has segments, but no tablestatus that says which of them count")
	}
	if err != nil {
		return nil, err
	}
	for i := range loads { // unknown is not "left out": that would be a silent loss
		switch l := &loads[i]; {
		case l.Name == "":
			return nil, fault.Corruptf(fault.Span{Object: t.status}, fmt.Sprintf("[%d].loadName", i), "it is missing")
		case !knownStatus(l.Status):
			return nil, fault.Corruptf(fault.Span{Object: t.status}, fmt.Sprintf("[%d].loadStatus", i), "segment %s: load status %q is unknown", l.Name, l.Status)
		}
		for _, x := range [][2]string{{"loadName", loads[i].Name}, {"segmentFile", loads[i].Segment}, {"updateStatusFileName", loads[i].Updates}} {
			if strings.ContainsAny(x[1], "/\\\x00") || x[1] == ".." { // it would be another table's
				return nil, fault.Corruptf(fault.Span{Object: t.status}, fmt.Sprintf("[%d].%s", i, x[0]), "%q is a path, where a name is wanted", x[1])
			}
		}
	}
	if err := t.twice(loads); err != nil && t.saved == nil { // recovery looks at each entry by itself
		return nil, err
	}
	return loads, nil
}

// twice is an error if two entries that count name the same segment file: one is not what was written, and however many there are, their files are not
// looked for again and again.
func (t *managed) twice(loads []load) error {
	by := map[string]int{}
	for i := range loads {
		l := &loads[i]
		if l.Segment == "" || !l.counts() {
			continue
		}
		if k, ok := by[l.Segment]; ok {
			return fault.Corruptf(fault.Span{Object: t.status}, fmt.Sprintf("[%d].segmentFile", i), "segment %s: %s is that of segment %s, too", l.Name, l.Segment, loads[k].Name)
		}
		by[l.Segment] = i
	}
	return nil
}

// checkUpdates holds the update status against tablestatus: see checkEntries; a segment with deletes that has no entry would let rows come
// back, too. Which files the entries are of is found out with the files; see fit.
func (t *managed) checkUpdates(ctx context.Context, list []update) error {
	if err := t.checkEntries(ctx, list); err != nil {
		return err
	}
	has := map[string]bool{}
	for i := range list {
		has[list[i].Segment] = true
	}
	for i := range t.loads {
		if l := &t.loads[i]; l.counts() && l.UpdateFrom != "" && !has[l.id()] {
			return fault.Corruptf(fault.Span{Object: t.status}, fmt.Sprintf("[%d].updateDeltaStartTimestamp", i), "segment %s has deleted rows, and no update status says which", l.Name)
		}
	}
	return nil
}

// checkEntries looks at each entry of an update status: one without its members (the real writer always writes them), or of a segment that never
// was, would let deleted rows come back.
func (t *managed) checkEntries(ctx context.Context, list []update) error {
	known := map[string]bool{}
	for i := range t.loads {
		known[t.loads[i].Name], known[t.loads[i].id()] = true, true
	}
	for i := range list {
		u := &list[i]
		if err := t.checkUpdate(u, i); err != nil {
			return err
		}
		if known[u.Segment] {
			continue
		}
		var past []load // what was cleaned away
		if err := readJSON(ctx, t.tree, t.status+".history", t.opts.Limits, &past); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for k := range past {
			known[past[k].Name] = true
		}
		if !known[u.Segment] {
			return fault.Corruptf(fault.Span{Object: t.updates}, fmt.Sprintf("[%d].segmentName", i), "%q is no segment of the table", u.Segment)
		}
	}
	return nil
}

// checkUpdate looks whether the entry has what it needs.
func (t *managed) checkUpdate(u *update, i int) error {
	bad := func(member, value string) error {
		return fault.Corruptf(fault.Span{Object: t.updates}, fmt.Sprintf("[%d].%s", i, member), "%q: it is missing, or impossible", value)
	}
	n := count64(u.Deleted)
	_, from := millis(u.From)
	_, to := millis(u.To)
	switch {
	case u.Segment == "":
		return bad("segmentName", u.Segment)
	case u.Block == "":
		return bad("blockName", u.Block)
	case u.Status != "" && !knownStatus(u.Status):
		return bad("segmentStatus", u.Status)
	case u.gone():
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
func (t *managed) reader() format.Reader {
	if (len(t.changes) > 0 || t.guessed != nil) && !t.o.deleted {
		return withDeletes{t}
	}
	return t
}

// facts are what `stoa meta` prints of the table.
func (t *managed) facts() {
	add := func(k string, v any) { t.meta = append(t.meta, format.KeyValue{Key: k, Value: fmt.Sprint(v)}) }
	add("format", "CarbonData table")
	t.schema.facts(add)
	for i := range t.loads {
		l := &t.loads[i]
		add("segment."+l.Name, l.words())
	}
	if t.updates != "" {
		add("update_status", path.Base(t.updates))
	}
}

// Layout is how the schema has the rows laid out.
func (t *managed) Layout() format.Layout {
	l := format.Layout{Buckets: int(t.schema.buckets), Sorted: t.table.Layout().Sorted}
	for i := range t.schema.bucketBy {
		l.BucketBy = append(l.BucketBy, t.schema.bucketBy[i].name)
	}
	if p := t.schema.partition; p != nil && p.kind == nativeHive { // of the other kinds no directory tells the value
		for i := range p.columns {
			l.Partitions = append(l.Partitions, p.columns[i].name)
		}
	}
	return l
}

// words tells a load on a line.
func (l *load) words() string {
	s := l.Status
	for _, x := range []struct{ name, value string }{{"from", timeText(l.Start)}, {"to", timeText(l.Timestamp)}, {"data", l.DataSize}, {"index", l.IndexSize},
		{"merged into", l.Merged}, {"format", l.FileFormat}, {"path", l.Path}} {
		if x.value != "" {
			s += ", " + x.name + " " + x.value
		}
	}
	return s
}

// all finds the data files of all wanted segments, once.
func (t *managed) all(ctx context.Context) ([]*part, error) {
	t.once.Lock()
	defer t.once.Unlock()
	if t.found != nil {
		return t.list, nil
	}
	found, list, bad := map[string]*part{}, []*part(nil), map[string]error{}
	if err := t.checkWanted(); err != nil {
		return nil, err
	}
	for i := range t.loads {
		l := &t.loads[i]
		if !t.o.wants(l) {
			continue
		}
		parts, h, err := t.segmentHolding(ctx, l)
		if err == nil && h.unknown {
			err = t.others(ctx, l, parts)
		}
		if err != nil {
			if t.o.allSegments && !l.counts() { // its files may have been cleaned away
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
			t.saved([]region.Finding{saying("carbon.segment.missing", fault.Span{Object: t.status}, t.path, "%v: what is there of segment %s is read", err, l.Name)})
		}
		for k := range parts {
			p := &parts[k]
			if found[p.name] == nil {
				found[p.name] = p
				list = append(list, p)
			}
		}
	}
	if err := t.untied(ctx, list); err != nil {
		return nil, err
	}
	if t.saved != nil { // it was told
		bad = nil
	}
	t.found, t.list, t.bad = found, list, bad
	return list, nil
}

// others is the error of a segment without index files whose data files are not its own; see tied. Recovery tells it, and reads them.
func (t *managed) others(ctx context.Context, l *load, parts []part) error {
	err := t.tied(ctx, l, parts)
	switch {
	case err == nil:
		return nil
	case t.saved == nil:
		return &misfit{err}
	}
	var e *fault.Error
	errors.As(err, &e)
	t.saved([]region.Finding{saying("carbon.segment.minmax", e.At, t.path, "%v: the data files that are there are read; one may be another segment's", err)})
	return nil
}

// checkWanted refuses segments that are not there.
func (t *managed) checkWanted() error {
	for _, s := range t.o.segments {
		ok := false
		for i := range t.loads {
			ok = ok || t.loads[i].Name == s || t.loads[i].id() == s
		}
		if !ok {
			return fault.Invalidf("%s has no segment %s", t.path, s)
		}
	}
	return nil
}

// Parts are the data files, and something for each segment of which files are missing or nobody knows which they are: its row groups
// are the error, so that a scan ends there, or passes over what is lost and tells it.
func (t *managed) Parts(ctx context.Context, _ format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		list, err := t.all(ctx)
		if err != nil {
			yield(format.Part{}, err)
			return
		}
		for _, name := range sorted(t.bad) { // first: without a policy for damage nothing is read
			if !yield(format.Part{Ref: name, Rows: -1}, nil) {
				return
			}
		}
		for _, p := range list {
			if !yield(format.Part{Ref: p.name, Stamp: p.stampText(t), Rows: p.rows, Bytes: p.bytes}, nil) {
				return
			}
		}
	}
}

// stampText is what a part was planned with: its file's stamp, and the deletes that hold.
func (p *part) stampText(t *managed) string {
	s := p.stamp
	if p.update != nil {
		s += " " + path.Base(t.updates)
	}
	return s
}

// part finds a part by its name.
func (t *managed) part(ctx context.Context, name string) (*part, error) {
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

func (t *managed) RowGroups(ctx context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	mine, err := t.part(ctx, p.Ref)
	if err != nil {
		return nil, err
	}
	if f := mine.hollow(); q.Filter != nil && f != nil {
		return t.groups(ctx, f, mine, q)
	}
	f, err := t.file(ctx, p.Ref)
	if err == nil && t.saved == nil { // when recovering, the footer may not be the file's own
		err = f.agrees(mine)
	}
	if err != nil {
		return nil, err
	}
	return t.groups(ctx, f, mine, q)
}

// agrees holds the rows of a file against what its index file says: with another number the file is not the one that was loaded, or one
// of the two is damaged. Files of rows may have grown since.
func (f *dataFile) agrees(p *part) error {
	if f.stream != nil || len(p.blocks) == 0 {
		return nil
	}
	for i := range p.blocks {
		b := &p.blocks[i]
		if b.offset != f.footAt && !f.rebuilt { // files of other columns have no bounds that could be compared
			return fault.Corruptf(f.footSpan(), "footer", "the index file has it at byte %d: one is damaged, or of another file", b.offset)
		}
		if b.info == nil || i >= len(f.footer.blocklet) {
			continue
		}
		if n := f.footer.blocklet[i].rows; n != b.count() {
			return fault.Corruptf(f.footSpan(), fmt.Sprintf("footer.blocklet[%d].num_rows", i), "%d, the index file says %d", n, b.count())
		}
		if i < len(f.footer.index) && !sameBounds(b.index.minMax, f.footer.index[i].minMax) {
			return fault.Corruptf(f.footSpan(), fmt.Sprintf("footer.blocklet_index_list[%d]", i), "the least and greatest values are others than in the index file: one is damaged, or of another file")
		}
	}
	if f.footer.rows != p.rows {
		return fault.Corruptf(f.footSpan(), "footer.num_rows", "%d, the index file says %d", f.footer.rows, p.rows)
	}
	return nil
}

// hollow is the file as its index file knows it: enough to tell what a filter needs of it without opening it. nil if the index
// does not know the blocklets, as in old tables. Who then opens the file compares.
func (p *part) hollow() *dataFile {
	f := &dataFile{version: 3}
	f.at.Object = p.name
	for i := range p.blocks {
		b := &p.blocks[i]
		if b.info == nil {
			return nil
		}
		f.footer.blocklet = append(f.footer.blocklet, *b.info)
		f.footer.index = append(f.footer.index, b.index)
		f.footAt = b.offset
	}
	var err error
	if f.roots, _, err = columnTree(p.columns, f.at, "table_columns"); err != nil || len(f.footer.blocklet) == 0 {
		return nil
	}
	for i := range f.footer.blocklet {
		if b := &f.footer.blocklet[i]; len(b.offsets) != len(p.columns) || b.rows < 0 {
			return nil
		}
	}
	return f
}

func (t *managed) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	mine, err := t.part(ctx, g.Part)
	if err != nil {
		return nil, err
	}
	if t.saved == nil && atomic.LoadInt32(&mine.agreed) == 0 { // the index may have planned it alone
		f, err := t.file(ctx, g.Part)
		if err == nil {
			err = f.agrees(mine)
		}
		if err != nil {
			return nil, err
		}
		atomic.StoreInt32(&mine.agreed, 1)
	}
	return t.chunk(ctx, g, mine, col, rows)
}

// partition is the text of a partition column's value in a part; ok is false if the column is none.
func (p *part) partition(name string) (text string, ok bool) {
	for _, v := range p.values {
		if k, x, found := strings.Cut(v, "="); found && unescape(k) == name {
			return x, true
		}
	}
	return "", false
}
