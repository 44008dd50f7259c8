package table

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
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/wal"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// Table is an open table. It is a format.Reader, Narrower and Overlayer: parts are tablets, row groups DiskRowSets, and what only the
// log has is one more row group, or changes of the others.
type Table struct {
	Tree     store.Tree
	Opts     Options
	Limits   format.Limits
	NoVerify bool

	Stored  meta.Schema
	sc      *arrow.Schema
	Cols    []format.Column
	Tablets []*Tablet // in the order of partitions
	byID    map[string]*Tablet
	meta    []format.KeyValue
	Noticed []region.Finding

	Recovered *Recovered // nil: indexes and footers must be sound
	Vote      bool       // how many rows a rowset has is asked of all its blocks, not of the first
}

// Tablet is a tablet that is read: one replica of it.
type Tablet struct {
	Replica
	Others []Replica // of other servers

	mu     sync.Mutex
	Loaded bool
	Sets   []*RowSet
	logged *logRows // rows that only the log has; nil: none
	filler filler
	Told   []region.Finding
}

// Replica is a tablet as one server has it.
type Replica struct {
	FS *fs.FS
	*meta.Tablet
}

// RowSet is a DiskRowSet that is read.
type RowSet struct {
	*meta.RowSet
	Tablet    *Tablet
	index     int
	Rows      int64 // -1: no block that can be read tells
	Low, High []byte
	Changes   []wal.LoggedChange // only in the log; ascending by row
	unplaced  []wal.UnplacedChange
	twins     []twin
}

func (t *Table) Schema() *arrow.Schema    { return t.sc }
func (t *Table) Columns() []format.Column { return t.Cols }
func (t *Table) Meta() []format.KeyValue  { return t.meta }

// Close closes nothing but what recovery opened: the tree's owner closes the rest.
func (t *Table) Close() error {
	if t.Recovered != nil {
		return t.Recovered.close()
	}
	return nil
}

// Findings are what was noticed while the directories were opened and the logs read.
func (t *Table) Findings() []region.Finding {
	out := slices.Clone(t.Noticed)
	for _, tb := range t.Tablets {
		tb.mu.Lock()
		out = append(out, tb.Told...)
		if tb.logged != nil {
			out = append(out, tb.logged.findings...)
		}
		tb.mu.Unlock()
	}
	if x := t.Recovered; x != nil {
		x.mu.Lock()
		out = append(out, x.findings...)
		x.mu.Unlock()
	}
	return out
}

// Order is the primary key.
func (t *Table) Order() []format.Key {
	out := make([]format.Key, t.Stored.Keys())
	for i := range out {
		out[i] = format.Key{Column: i}
	}
	return out
}

// Shared reports whether a server may be at work: it appends to containers and logs.
func (t *Table) Shared() bool { return t.Opts.Live }

// Parts are the tablets. Their live rows are known only when all is read.
func (t *Table) Parts(ctx context.Context, q format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		for _, tb := range t.Tablets {
			if why := t.outside(tb, q.Filter); why != "" {
				format.Skipped(ctx, format.Skip{Level: format.LevelPart, Why: why, Bytes: tb.FS.Stored(tb.Tablet)})
				continue
			}
			if !yield(format.Part{Ref: tb.ID, Stamp: t.stamp(ctx, tb), Rows: -1, Bytes: tb.FS.Stored(tb.Tablet)}, nil) {
				return
			}
		}
	}
}

// stamp is that of the superblock, and of the log's last segment if the log is read: every change of a tablet changes one of them.
func (t *Table) stamp(ctx context.Context, tb *Tablet) (stamp string) {
	if info, err := t.Tree.Stat(ctx, tb.Object); err == nil {
		stamp = info.Stamp
	}
	if t.Opts.NoWAL {
		return stamp
	}
	if segments, err := tb.FS.WALSegments(ctx, tb.ID); err == nil && len(segments) > 0 {
		stamp += " " + segments[len(segments)-1].Stamp
	}
	return stamp
}

// RowGroups are a tablet's DiskRowSets, and the rows that only its log has.
func (t *Table) RowGroups(ctx context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	tb := t.byID[p.Ref]
	if tb == nil {
		return nil, fault.Invalidf("table %s has no tablet %s", t.Name(), p.Ref)
	}
	if err := t.Load(ctx, tb); err != nil {
		return nil, err
	}
	if err := tb.stale(); q.Strict && err != nil {
		return nil, err
	}
	var out []format.RowGroup
	for _, s := range tb.Sets {
		out = append(out, format.RowGroup{Part: p.Ref, Index: s.index, Name: fmt.Sprintf("rowset %d", s.ID), Rows: s.Rows, Bytes: t.storedIn(ctx, s, q.Cols), Low: s.Low, High: s.High})
	}
	if m := tb.logged; m != nil && len(m.keys) > 0 {
		out = append(out, format.RowGroup{Part: p.Ref, Index: len(tb.Sets), Name: "the log", Rows: int64(len(m.keys)), Low: m.keys[0], High: m.keys[len(m.keys)-1]})
	}
	return out, nil
}

// storedIn is how many bytes the blocks of a rowset's columns have. Those that are missing count for nothing.
func (t *Table) storedIn(ctx context.Context, s *RowSet, cols []int) (n int64) {
	for _, c := range cols {
		if b, ok := s.Block(t.Stored.Columns[c].ID); ok {
			if p, err := s.Tablet.FS.PlaceOf(ctx, s.Tablet.Tablet, b); err == nil {
				n += p.At.Len
			}
		}
	}
	return n
}

func (t *Table) Name() string {
	if len(t.Tablets) == 0 {
		return ""
	}
	return t.Tablets[0].Table
}

// Load looks at a tablet's rowsets and reads its log, once.
func (t *Table) Load(ctx context.Context, tb *Tablet) error {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	if tb.Loaded {
		return nil
	}
	tb.Sets = nil
	var notes, odd []region.Finding
	var gone error
	for i := range tb.RowSets {
		s := &RowSet{RowSet: &tb.RowSets[i], Tablet: tb, index: i, Rows: -1}
		if err := t.findTwins(ctx, s); err != nil {
			return err
		}
		if err := t.measure(ctx, s); err != nil {
			return err
		}
		found, err := t.Agree(ctx, s)
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
		tb.Sets = append(tb.Sets, s)
	}
	newest, err := t.logOf(ctx, tb)
	if err != nil {
		return err
	}
	if m := tb.logged; m != nil && m.last > 0 && t.Opts.At > m.last { // the snapshot is the latest state: no history is asked for
		gone, notes = nil, nil
	}
	if gone != nil {
		return gone
	}
	if x := tb.TooOld(t.Opts.At, newest); x != nil {
		notes = append(notes, *x)
	}
	tb.Told, tb.Loaded = slices.Concat(tb.Told, odd, notes), true
	return nil
}

// logOf reads the tablet's log, if it is wanted. newest is the time of the tablet's latest operation, as far as a snapshot asks for it.
func (t *Table) logOf(ctx context.Context, tb *Tablet) (newest uint64, err error) {
	switch {
	case !t.Opts.NoWAL:
		return t.replay(ctx, tb)
	case t.Opts.At != Latest:
		return t.Flushed(ctx, tb, tb.RowSets)
	}
	return 0, nil
}

// measure finds out how many rows a rowset has, and between which keys they lie: from the column or index that holds the keys, or, if
// that is damaged, from what else there is. With vote most blocks say how many rows it has: one may be another rowset's.
func (t *Table) measure(ctx context.Context, s *RowSet) error {
	s.Low, s.High = s.MinKey, s.MaxKey
	refs := []meta.BlockRef{}
	if t.Stored.Keys() > 1 && !s.Adhoc.IsNull() {
		refs = append(refs, s.Adhoc)
	}
	for i := range t.Stored.Columns {
		if b, ok := s.Block(t.Stored.Columns[i].ID); ok {
			refs = append(refs, b)
		}
	}
	for _, c := range s.Columns { // of a dropped column
		refs = append(refs, c.BlockRef)
	}
	votes := map[int64]int{}
	rows := int64(-1)
	for _, b := range refs {
		r, err := t.OpenBlock(ctx, s, b)
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
		if low, ok := footer.Get(meta.KeyMin); ok && s.Low == nil {
			s.Low = low
		}
		if high, ok := footer.Get(meta.KeyMax); ok && s.High == nil {
			s.High = high
		}
		if !t.Vote {
			break
		}
	}
	s.Rows = rows
	return nil
}

func (t *Table) cfileOptions() format.OpenOptions {
	return format.OpenOptions{Limits: t.Limits, NoVerify: t.NoVerify}
}

// Source reads an object of a tree and keeps nothing open: a table may have more blocks, each a file, than a process may have files.
type Source struct {
	tree store.Tree
	name string
	size int64
}

// NewSource is the object of a tree, as far as size bytes.
func NewSource(tree store.Tree, name string, size int64) Source { return Source{tree, name, size} }

func (s Source) Size() int64  { return s.size }
func (s Source) Close() error { return nil }
func (s Source) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	src, err := s.tree.Open(ctx, s.name)
	if err != nil {
		return 0, err
	}
	defer src.Close()
	return src.ReadAt(ctx, p, off)
}

// set finds the rowset that g names; nil for the rows of the log.
func (t *Table) set(ctx context.Context, g format.RowGroup) (*Tablet, *RowSet, error) {
	tb := t.byID[g.Part]
	if tb == nil {
		return nil, nil, fault.Invalidf("table %s has no tablet %s", t.Name(), g.Part)
	}
	if err := t.Load(ctx, tb); err != nil {
		return nil, nil, err
	}
	switch {
	case g.Index >= 0 && g.Index < len(tb.Sets):
		return tb, tb.Sets[g.Index], nil
	case g.Index == len(tb.Sets) && tb.logged != nil:
		return tb, nil, nil
	}
	return nil, nil, fault.Invalidf("tablet %s has no row group %d", g.Part, g.Index)
}

// Chunk is a column of a rowset.
func (t *Table) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	if col < 0 || col >= len(t.Cols) {
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

// New makes the reader of a table from its tablets.
func New(tree store.Tree, tablets []*Tablet, o format.OpenOptions, ro Options) (*Table, error) {
	t := &Table{Tree: tree, Opts: ro, Limits: o.Limits.WithDefaults(), NoVerify: o.NoVerify, Tablets: tablets, byID: map[string]*Tablet{}}
	newest := tablets[0]
	for _, tb := range tablets {
		t.byID[tb.ID] = tb
		if tb.SchemaVersion > newest.SchemaVersion {
			newest = tb
		}
	}
	t.Stored = newest.Schema
	var err error
	if t.sc, err = t.Stored.Arrow(); err != nil {
		return nil, err
	}
	t.sc = withTableMeta(t.sc, &t.Stored, tablets)
	for i := range t.Stored.Columns {
		c := &t.Stored.Columns[i]
		has := format.Values
		if c.Array {
			has |= format.Lengths
		}
		t.Cols = append(t.Cols, format.Column{Name: c.Name, Path: []int{i}, Parent: -1, Has: has, Type: t.sc.Field(i).Type,
			Facts: format.ColumnFacts{Encoding: c.Encoding.String(), Codec: c.Compression.String()}})
	}
	t.meta = t.facts(newest)
	return t, nil
}

// facts are what `stoa meta` prints of a table.
func (t *Table) facts(newest *Tablet) []format.KeyValue {
	var out []format.KeyValue
	add := func(k, format string, args ...any) {
		out = append(out, Format2(k, format, args...))
	}
	add("format", "Apache Kudu table")
	add("kind", "table")
	add("table", "%s", newest.Table)
	add("table_id", "%s", newest.TableID)
	add("schema_version", "%d", newest.SchemaVersion)
	var key []string
	for _, c := range t.Stored.Columns[:t.Stored.Keys()] {
		key = append(key, c.Name)
	}
	add("primary_key", "%s", strings.Join(key, ", "))
	if newest.Partitioning.Stored {
		add("partition_schema", "%s", newest.Partitioning.SchemaText(&newest.Schema))
	}
	if t.Opts.At != Latest {
		add("at", "%s", TimeText(t.Opts.At))
	}
	add("tablets", "%d", len(t.Tablets))
	for _, tb := range t.Tablets {
		add("tablet."+tb.ID, "%s; %d rowsets; server %s", cmp.Or(tb.Partitioning.Text(&tb.Schema, &tb.Partition), "all rows"), len(tb.RowSets), cmp.Or(tb.FS.UUID, "unknown"))
	}
	return out
}

// Format2 is one fact.
func Format2(k, layout string, args ...any) format.KeyValue {
	return format.KeyValue{Key: k, Value: fmt.Sprintf(layout, args...)}
}
