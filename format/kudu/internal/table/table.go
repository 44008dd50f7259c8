package table

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/vec"
)

func (t *Table) Schema() *arrow.Schema    { return t.sc }
func (t *Table) Columns() []format.Column { return t.Cols }
func (t *Table) Meta() []format.KeyValue  { return t.meta }

// Layout implements format.Layouter: the columns and the number of the buckets of the first hash dimension.
func (t *Table) Layout() format.Layout { return t.layout }

// Close closes the files that recovery opened; nothing else is kept open.
func (t *Table) Close() error {
	if t.Recovered != nil {
		return t.Recovered.close()
	}
	return nil
}

// Findings returns the findings made while the directories were opened and the logs were read.
func (t *Table) Findings() []region.Finding {
	out := slices.Clone(t.Noticed)
	for _, tb := range t.Tablets {
		tb.mu.Lock()
		out = append(out, tb.Findings...)
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
	out := make([]format.Key, t.Stored.NumKeys)
	for i := range out {
		out[i] = format.Key{Column: i}
	}
	return out
}

// Shared reports whether a server may be running, which appends to containers and logs.
func (t *Table) Shared() bool { return t.Opts.Live }

// Parts yields the tablets in which q.Filter may be true. Their numbers of rows are unknown until they are read.
func (t *Table) Parts(ctx context.Context, q format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		for _, tb := range t.Tablets {
			if why := t.outside(tb, q.Filter); why != "" {
				format.Skipped(ctx, format.Skip{Level: format.LevelPart, Why: why, Bytes: tb.FS.BlockBytes(tb.Tablet)})
				continue
			}
			p := format.Part{Ref: tb.ID, Stamp: t.stamp(ctx, tb), Rows: -1, Bytes: tb.FS.BlockBytes(tb.Tablet),
				Bucket: t.bucket(tb)}
			if !yield(p, nil) {
				return
			}
		}
	}
}

// bucket is format.Part.Bucket: by the first hash dimension. The ranges of a table may be hashed in several ways.
func (t *Table) bucket(tb *Tablet) int {
	dims := tb.Partitioning.HashOf(tb.Partition.Lower())
	if len(t.hash) == 0 || len(dims) == 0 || len(dims) != len(tb.Partition.Buckets) {
		return 0
	}
	a, b := t.hash[0], dims[0]
	if a.Buckets != b.Buckets || a.Seed != b.Seed || !slices.Equal(a.Columns, b.Columns) {
		return 0
	}
	return int(tb.Partition.Buckets[0]) + 1
}

// Copies returns the ids of the tablets.
func (t *Table) Copies() (out []string) {
	for _, tb := range t.Tablets {
		out = append(out, tb.ID)
	}
	return out
}

// stamp returns the modification stamps of the superblock and, if the log is read, of its last segment. Every change of
// a tablet changes one of them.
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

// RowGroups returns a tablet's DiskRowSets, and a row group for the rows that only its log has.
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
		out = append(out, format.RowGroup{Part: p.Ref, Index: s.index, Name: fmt.Sprintf("rowset %d", s.ID),
			Rows: s.Rows, Bytes: t.storedIn(ctx, s, q.Cols), Low: s.Low, High: s.High})
	}
	if m := tb.logged; m != nil && len(m.keys) > 0 {
		out = append(out, format.RowGroup{Part: p.Ref, Index: len(tb.Sets), Name: "the log",
			Rows: int64(len(m.keys)), Low: m.keys[0], High: m.keys[len(m.keys)-1]})
	}
	return out, nil
}

// Added returns the number of rows of tablets that have no superblock.
func (t *Table) Added(ctx context.Context) (rows int64, err error) {
	for _, tb := range t.Tablets {
		if !tb.Rebuilt {
			continue
		}
		groups, err := t.RowGroups(ctx, format.Part{Ref: tb.ID}, format.Query{})
		if err != nil {
			return rows, err
		}
		for _, g := range groups {
			rows += max(0, g.Rows)
		}
	}
	return rows, nil
}

// storedIn returns the size in bytes of the blocks of a rowset's columns, not counting missing blocks.
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

// Chunk returns a column of a row group, limited to rows.
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
