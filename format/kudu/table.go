package kudu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// table is an open table. It is a format.Reader, Narrower and Overlayer: parts are tablets, row groups DiskRowSets, and what only the
// log has is one more row group, or changes of the others.
type table struct {
	tree     store.Tree
	o        readOptions
	limits   format.Limits
	noVerify bool

	schema   Schema
	sc       *arrow.Schema
	columns  []format.Column
	tablets  []*tablet // in the order of partitions
	byID     map[string]*tablet
	meta     []format.KeyValue
	findings []region.Finding

	recovered *recovered // nil: indexes and footers must be sound
	vote      bool       // how many rows a rowset has is asked of all its blocks, not of the first
}

// tablet is a tablet that is read: one replica of it.
type tablet struct {
	replica
	others []replica // of other servers

	mu     sync.Mutex
	loaded bool
	sets   []*rowSet
	logged *logRows // rows that only the log has; nil: none
	filler filler
	notes  []region.Finding
}

// replica is a tablet as one server has it.
type replica struct {
	fs *FS
	*Tablet
}

// rowSet is a DiskRowSet that is read.
type rowSet struct {
	*RowSet
	tablet    *tablet
	index     int
	rows      int64 // -1: no block that can be read tells
	low, high []byte
	changes   []LoggedChange // only in the log; ascending by row
	unplaced  []UnplacedChange
	twins     []twin
}

func (t *table) Schema() *arrow.Schema    { return t.sc }
func (t *table) Columns() []format.Column { return t.columns }
func (t *table) Meta() []format.KeyValue  { return t.meta }

// Close closes nothing but what recovery opened: the tree's owner closes the rest.
func (t *table) Close() error {
	if t.recovered != nil {
		return t.recovered.close()
	}
	return nil
}

// Findings are what was noticed while the directories were opened and the logs read.
func (t *table) Findings() []region.Finding {
	out := slices.Clone(t.findings)
	for _, tb := range t.tablets {
		tb.mu.Lock()
		out = append(out, tb.notes...)
		if tb.logged != nil {
			out = append(out, tb.logged.findings...)
		}
		tb.mu.Unlock()
	}
	if x := t.recovered; x != nil {
		x.mu.Lock()
		out = append(out, x.findings...)
		x.mu.Unlock()
	}
	return out
}

// Order is the primary key.
func (t *table) Order() []format.Key {
	out := make([]format.Key, t.schema.Keys())
	for i := range out {
		out[i] = format.Key{Column: i}
	}
	return out
}

// Shared reports whether a server may be at work: it appends to containers and logs.
func (t *table) Shared() bool { return t.o.live }

// Parts are the tablets. Their live rows are known only when all is read.
func (t *table) Parts(ctx context.Context, q format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		for _, tb := range t.tablets {
			if why := t.outside(tb, q.Filter); why != "" {
				format.Skipped(ctx, format.Skip{Level: format.LevelPart, Why: why, Bytes: tb.fs.stored(tb.Tablet)})
				continue
			}
			if !yield(format.Part{Ref: tb.ID, Stamp: t.stamp(ctx, tb), Rows: -1, Bytes: tb.fs.stored(tb.Tablet)}, nil) {
				return
			}
		}
	}
}

// stamp is that of the superblock, and of the log's last segment if the log is read: every change of a tablet changes one of them.
func (t *table) stamp(ctx context.Context, tb *tablet) (stamp string) {
	if info, err := t.tree.Stat(ctx, tb.Object); err == nil {
		stamp = info.Stamp
	}
	if t.o.noWAL {
		return stamp
	}
	if segments, err := tb.fs.WALSegments(ctx, tb.ID); err == nil && len(segments) > 0 {
		stamp += " " + segments[len(segments)-1].Stamp
	}
	return stamp
}

// RowGroups are a tablet's DiskRowSets, and the rows that only its log has.
func (t *table) RowGroups(ctx context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	tb := t.byID[p.Ref]
	if tb == nil {
		return nil, fault.Invalidf("table %s has no tablet %s", t.name(), p.Ref)
	}
	if err := t.load(ctx, tb); err != nil {
		return nil, err
	}
	if err := tb.stale(); q.Strict && err != nil {
		return nil, err
	}
	var out []format.RowGroup
	for _, s := range tb.sets {
		out = append(out, format.RowGroup{Part: p.Ref, Index: s.index, Name: fmt.Sprintf("rowset %d", s.ID), Rows: s.rows, Bytes: t.storedIn(ctx, s, q.Cols), Low: s.low, High: s.high})
	}
	if m := tb.logged; m != nil && len(m.keys) > 0 {
		out = append(out, format.RowGroup{Part: p.Ref, Index: len(tb.sets), Name: "the log", Rows: int64(len(m.keys)), Low: m.keys[0], High: m.keys[len(m.keys)-1]})
	}
	return out, nil
}

// storedIn is how many bytes the blocks of a rowset's columns have. Those that are missing count for nothing.
func (t *table) storedIn(ctx context.Context, s *rowSet, cols []int) (n int64) {
	for _, c := range cols {
		if b, ok := s.Block(t.schema.Columns[c].ID); ok {
			if p, err := s.tablet.fs.PlaceOf(ctx, s.tablet.Tablet, b); err == nil {
				n += p.At.Len
			}
		}
	}
	return n
}

func (t *table) name() string {
	if len(t.tablets) == 0 {
		return ""
	}
	return t.tablets[0].Table
}

// load looks at a tablet's rowsets and reads its log, once.
func (t *table) load(ctx context.Context, tb *tablet) error {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	if tb.loaded {
		return nil
	}
	tb.sets = nil
	var notes, odd []region.Finding
	var gone error
	for i := range tb.RowSets {
		s := &rowSet{RowSet: &tb.RowSets[i], tablet: tb, index: i, rows: -1}
		if err := t.findTwins(ctx, s); err != nil {
			return err
		}
		if err := t.measure(ctx, s); err != nil {
			return err
		}
		found, err := t.agree(ctx, s)
		if err != nil {
			return err
		}
		odd = append(odd, found...)
		x, err := t.checkHistory(ctx, s)
		switch {
		case errors.Is(err, fault.Unsupported):
			gone = cmp.Or(gone, err)
		case err != nil:
			return err
		case x != nil:
			notes = append(notes, *x)
		}
		tb.sets = append(tb.sets, s)
	}
	newest, err := t.logOf(ctx, tb)
	if err != nil {
		return err
	}
	if m := tb.logged; m != nil && m.last > 0 && t.o.at > m.last { // the snapshot is the latest state: no history is asked for
		gone, notes = nil, nil
	}
	if gone != nil {
		return gone
	}
	if x := tb.tooOld(t.o.at, newest); x != nil {
		notes = append(notes, *x)
	}
	tb.notes, tb.loaded = slices.Concat(tb.notes, odd, notes), true
	return nil
}

// logOf reads the tablet's log, if it is wanted. newest is the time of the tablet's latest operation, as far as a snapshot asks for it.
func (t *table) logOf(ctx context.Context, tb *tablet) (newest uint64, err error) {
	switch {
	case !t.o.noWAL:
		return t.replay(ctx, tb)
	case t.o.at != latest:
		return t.flushed(ctx, tb, tb.RowSets)
	}
	return 0, nil
}

// measure finds out how many rows a rowset has, and between which keys they lie: from the column or index that holds the keys, or, if
// that is damaged, from what else there is. With vote most blocks say how many rows it has: one may be another rowset's.
func (t *table) measure(ctx context.Context, s *rowSet) error {
	s.low, s.high = s.MinKey, s.MaxKey
	refs := []BlockRef{}
	if t.schema.Keys() > 1 && !s.Adhoc.IsNull() {
		refs = append(refs, s.Adhoc)
	}
	for i := range t.schema.Columns {
		if b, ok := s.Block(t.schema.Columns[i].ID); ok {
			refs = append(refs, b)
		}
	}
	for _, c := range s.Columns { // of a dropped column
		refs = append(refs, c.BlockRef)
	}
	votes := map[int64]int{}
	rows := int64(-1)
	for _, b := range refs {
		r, err := t.openBlock(ctx, s, b)
		if err != nil {
			if !errors.Is(err, fault.Corrupt) {
				return err
			}
			continue
		}
		n := r.Len()
		if votes[n]++; rows < 0 || votes[n] > votes[rows] {
			rows = n
		}
		footer := r.Footer()
		if low, ok := footer.Get(metaMinKey); ok && s.low == nil {
			s.low = low
		}
		if high, ok := footer.Get(metaMaxKey); ok && s.high == nil {
			s.high = high
		}
		if !t.vote {
			break
		}
	}
	s.rows = rows
	return nil
}

func (t *table) cfileOptions() format.OpenOptions {
	return format.OpenOptions{Limits: t.limits, NoVerify: t.noVerify}
}

// source reads an object of a tree and keeps nothing open: a table may have more blocks, each a file, than a process may have files.
type source struct {
	tree store.Tree
	name string
	size int64
}

func (s source) Size() int64  { return s.size }
func (s source) Close() error { return nil }
func (s source) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	src, err := s.tree.Open(ctx, s.name)
	if err != nil {
		return 0, err
	}
	defer src.Close()
	return src.ReadAt(ctx, p, off)
}

// set finds the rowset that g names; nil for the rows of the log.
func (t *table) set(ctx context.Context, g format.RowGroup) (*tablet, *rowSet, error) {
	tb := t.byID[g.Part]
	if tb == nil {
		return nil, nil, fault.Invalidf("table %s has no tablet %s", t.name(), g.Part)
	}
	if err := t.load(ctx, tb); err != nil {
		return nil, nil, err
	}
	switch {
	case g.Index >= 0 && g.Index < len(tb.sets):
		return tb, tb.sets[g.Index], nil
	case g.Index == len(tb.sets) && tb.logged != nil:
		return tb, nil, nil
	}
	return nil, nil, fault.Invalidf("tablet %s has no row group %d", g.Part, g.Index)
}

// Chunk is a column of a rowset.
func (t *table) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	if col < 0 || col >= len(t.columns) {
		return nil, fault.Invalidf("there is no column %d", col)
	}
	tb, s, err := t.set(ctx, g)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return &memoryChunk{cells: tb.logged.cells[col], rows: rows}, nil
	}
	return t.chunk(ctx, s, col, rows)
}

// newTable makes the reader of a table from its tablets.
func newTable(tree store.Tree, tablets []*tablet, o format.OpenOptions, ro readOptions) (*table, error) {
	t := &table{tree: tree, o: ro, limits: o.Limits.WithDefaults(), noVerify: o.NoVerify, tablets: tablets, byID: map[string]*tablet{}}
	newest := tablets[0]
	for _, tb := range tablets {
		t.byID[tb.ID] = tb
		if tb.SchemaVersion > newest.SchemaVersion {
			newest = tb
		}
	}
	t.schema = newest.Schema
	var err error
	if t.sc, err = t.schema.Arrow(); err != nil {
		return nil, err
	}
	t.sc = withTableMeta(t.sc, &t.schema, tablets)
	for i := range t.schema.Columns {
		c := &t.schema.Columns[i]
		has := format.Values
		if c.Array {
			has |= format.Lengths
		}
		t.columns = append(t.columns, format.Column{Name: c.Name, Path: []int{i}, Parent: -1, Has: has, Type: t.sc.Field(i).Type,
			Facts: format.ColumnFacts{Encoding: c.Encoding.String(), Codec: c.Compression.String()}})
	}
	t.meta = t.facts(newest)
	return t, nil
}

// facts are what `stoa meta` prints of a table.
func (t *table) facts(newest *tablet) []format.KeyValue {
	var out []format.KeyValue
	add := func(k, format string, args ...any) {
		out = append(out, format2(k, format, args...))
	}
	add("format", "Apache Kudu table")
	add("kind", "table")
	add("table", "%s", newest.Table)
	add("table_id", "%s", newest.TableID)
	add("schema_version", "%d", newest.SchemaVersion)
	var key []string
	for _, c := range t.schema.Columns[:t.schema.Keys()] {
		key = append(key, c.Name)
	}
	add("primary_key", "%s", strings.Join(key, ", "))
	if newest.Partitioning.stored {
		add("partition_schema", "%s", newest.Partitioning.SchemaText(&newest.Schema))
	}
	if t.o.at != latest {
		add("at", "%s", timeText(t.o.at))
	}
	add("tablets", "%d", len(t.tablets))
	for _, tb := range t.tablets {
		add("tablet."+tb.ID, "%s; %d rowsets; server %s", cmp.Or(tb.Partitioning.Text(&tb.Schema, &tb.Partition), "all rows"), len(tb.RowSets), cmp.Or(tb.fs.UUID, "unknown"))
	}
	return out
}

// format2 is one fact.
func format2(k, layout string, args ...any) format.KeyValue {
	return format.KeyValue{Key: k, Value: fmt.Sprintf(layout, args...)}
}
