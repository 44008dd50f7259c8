package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/meta"
	"stoa/region"
	"stoa/store"
)

// Load opens a tablet's rowsets and reads its log, once. It may be called concurrently.
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
	// the snapshot is the latest state: it needs no history
	if m := tb.logged; m != nil && m.last > 0 && t.Opts.At > m.last {
		gone, notes = nil, nil
	}
	if gone != nil {
		return gone
	}
	if x := tb.TooOld(t.Opts.At, newest); x != nil {
		notes = append(notes, *x)
	}
	tb.Findings, tb.Loaded = slices.Concat(tb.Findings, odd, notes), true
	return nil
}

// logOf reads the tablet's log unless option wal is false. newest is the hybrid time of the tablet's latest operation;
// 0 if not needed.
func (t *Table) logOf(ctx context.Context, tb *Tablet) (newest uint64, err error) {
	switch {
	case !t.Opts.NoWAL:
		return t.replay(ctx, tb)
	case t.Opts.At != Latest:
		return t.Flushed(ctx, tb, tb.RowSets)
	}
	return 0, nil
}

// measure determines a rowset's number of rows and its first and last key, from the block with the keys or, if that is
// damaged, from another block. With t.Vote the majority of the blocks decides the number, because a single block may be
// another rowset's.
func (t *Table) measure(ctx context.Context, s *RowSet) error {
	s.Low, s.High = s.MinKey, s.MaxKey
	refs := []meta.BlockRef{}
	if t.Stored.NumKeys > 1 && !s.Adhoc.IsNull() {
		refs = append(refs, s.Adhoc)
	}
	for i := range t.Stored.Columns {
		if b, ok := s.Block(t.Stored.Columns[i].ID); ok {
			refs = append(refs, b)
		}
	}
	for _, c := range s.Columns { // including dropped columns
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

// set finds the rowset of a row group; nil if it has the rows of the log.
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

// New returns a Table of tablets, of which there must be at least one, with the newest of their schemas. It reads
// nothing.
func New(tree store.Tree, tablets []*Tablet, o format.OpenOptions, ro Options) (*Table, error) {
	t := &Table{Tree: tree, Opts: ro, Limits: o.Limits.WithDefaults(), NoVerify: o.NoVerify, Tablets: tablets,
		byID: map[string]*Tablet{}}
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
		t.Cols = append(t.Cols, format.Column{Name: c.Name, Path: []int{i}, Parent: -1, Has: has,
			Type:  t.sc.Field(i).Type,
			Coded: c.Encoding == cfile.Dict || c.Encoding == cfile.AutoEncoding,
			Facts: format.ColumnFacts{Encoding: c.Encoding.String(), Codec: c.Compression.String()}})
	}
	t.meta = t.facts(newest)
	var parts []meta.Partition
	for _, tb := range tablets {
		parts = append(parts, tb.Partition)
	}
	t.layout.RangeBy = newest.Partitioning.RangeTerm(&newest.Schema, parts)
	if p := newest.Partitioning; p.Stored && len(p.Hash) > 0 {
		t.hash = p.Hash
		t.layout.Buckets, t.layout.BucketHash = int(p.Hash[0].Buckets), fmt.Sprint("kudu ", p.Hash[0].Seed)
		for _, id := range p.Hash[0].Columns {
			t.layout.BucketBy = append(t.layout.BucketBy, newest.Schema.NameOf(id))
		}
	}
	return t, nil
}

// facts are what `stoa meta` prints about a table.
func (t *Table) facts(newest *Tablet) []format.KeyValue {
	var out []format.KeyValue
	add := func(k, format string, args ...any) {
		out = append(out, Fact(k, format, args...))
	}
	add("format", "Apache Kudu table")
	add("kind", "table")
	add("table", "%s", newest.Table)
	add("table_id", "%s", newest.TableID)
	add("schema_version", "%d", newest.SchemaVersion)
	var key []string
	for _, c := range t.Stored.Columns[:t.Stored.NumKeys] {
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
		add("tablet."+tb.ID, "%s; %d rowsets; server %s",
			cmp.Or(tb.Partitioning.Text(&tb.Schema, &tb.Partition), "all rows"), len(tb.RowSets),
			cmp.Or(tb.FS.UUID, "unknown"))
	}
	return out
}

// Fact is a key with a formatted value.
func Fact(k, layout string, args ...any) format.KeyValue {
	return format.KeyValue{Key: k, Value: fmt.Sprintf(layout, args...)}
}
