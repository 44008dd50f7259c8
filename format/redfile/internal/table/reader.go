package table

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/page"
	"stoa/format/redfile/internal/schema"
	"stoa/vec"
)

func (f *File) Schema() *arrow.Schema { return f.Shown }
func (f *File) Order() []format.Key   { return nil }

func (f *File) Columns() []format.Column {
	out := make([]format.Column, len(f.Leaves))
	for i := range f.Leaves {
		out[i] = f.Leaves[i].Column
		out[i].Facts = f.facts(i)
	}
	return out
}

// facts returns encodings and codec of the column's chunk in the first row group, if its metadata has been read.
func (f *File) facts(col int) (out format.ColumnFacts) {
	if len(f.Footer.Groups) == 0 {
		return out
	}
	m := f.KnownMeta(0, col)
	if m == nil {
		return out
	}
	for i, e := range m.Encodings {
		if i > 0 {
			out.Encoding += ","
		}
		out.Encoding += e.String()
	}
	out.Codec = m.Codec.String()
	return out
}

// Parts returns the file as the only part.
func (f *File) Parts(ctx context.Context, _ format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		rows := f.Footer.Rows
		if f.RowsAgree(ctx) != nil { // the list of row groups is damaged: the number of lost rows is unknown
			rows = -1
		}
		yield(format.Part{Ref: f.At.Object, Stamp: f.stampOfAll(ctx), Rows: rows, Bytes: f.At.Len}, nil)
	}
}

// stampOfAll returns a stamp that changes if the file, or another file with chunks of it, changes.
func (f *File) stampOfAll(ctx context.Context) string {
	seen, sum := map[string]bool{}, sha256.New()
	for _, g := range f.Footer.Groups {
		for _, c := range g.Columns {
			name, err := f.ObjectOf(c.File)
			if c.File == "" || err != nil || seen[name] {
				continue
			}
			seen[name] = true
			fmt.Fprintln(sum, StampOf(ctx, format.Target{Tree: f.Tree, Name: name}))
		}
	}
	if len(seen) == 0 {
		return f.Stamp
	}
	return f.Stamp + " parts " + hex.EncodeToString(sum.Sum(nil)[:8])
}

// RowGroups returns the row groups. An error of class Corrupt means that their rows do not add up to num_rows.
func (f *File) RowGroups(ctx context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	if err := f.RowsAgree(ctx); err != nil {
		return nil, err
	}
	out := make([]format.RowGroup, len(f.Footer.Groups))
	for i := range out {
		rows, err := f.RowsOf(ctx, i)
		if err != nil {
			return nil, err
		}
		out[i] = format.RowGroup{Part: p.Ref, Index: i, Rows: rows, Bytes: f.stored(i, q.Cols)}
	}
	return out, nil
}

// RowsAgree returns an error unless num_rows is the sum over the row groups. One of the two is damaged, and if that is
// the list of row groups, rows would be missing without an error. Row groups of unknown size are not compared.
func (f *File) RowsAgree(ctx context.Context) error {
	if f.Footer.Rows < 0 {
		return nil // it was reassembled, so no total is stored
	}
	total := int64(0)
	for i := range f.Footer.Groups {
		rows := f.Footer.Groups[i].Rows
		if rows < 0 {
			rows = f.rowsOfColumn(ctx, i)
		}
		if rows < 0 {
			return ctx.Err() // reading the chunk reports the error
		}
		total += rows
	}
	err := f.Footer.Agree(total, f.MetaAt)
	if err != nil && f.outvoted(ctx) {
		return ctx.Err() // only one column is damaged, and only that column is lost
	}
	return err
}

// rowsOfColumn returns the number of rows of a row group according to the metadata of its first flat column that can be
// read; -1 if there is none.
func (f *File) rowsOfColumn(ctx context.Context, group int) int64 {
	f.mu.Lock()
	rows, ok := f.voted[group]
	f.mu.Unlock()
	if ok {
		return rows
	}
	for col := range f.Leaves {
		if f.Leaves[col].MaxRep > 0 {
			continue
		}
		if m, err := f.ColumnMeta(ctx, group, col); err == nil {
			return m.Values
		} else if ctx.Err() != nil {
			return -1
		}
	}
	return -1
}

// outvoted reports whether columns contradict each other in a row group that does not state its rows. Such row groups
// get the number of rows that most of their columns have, or the number with which the sum equals num_rows.
func (f *File) outvoted(ctx context.Context) (differ bool) {
	votes := make([]map[int64]int, len(f.Footer.Groups))
	most, total := make([]int64, len(votes)), int64(0)
	for i := range votes {
		votes[i] = map[int64]int{}
		if most[i] = f.Footer.Groups[i].Rows; most[i] >= 0 {
			total += most[i]
			continue
		}
		for col := range f.Leaves {
			if m, err := f.ColumnMeta(ctx, i, col); f.Leaves[col].MaxRep == 0 && err == nil {
				if votes[i][m.Values]++; votes[i][m.Values] > votes[i][most[i]] {
					most[i] = m.Values
				}
			}
		}
		differ = differ || len(votes[i]) > 1
		total += most[i]
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.voted = map[int]int64{}
	for i := range votes {
		if other := f.Footer.Rows - total + most[i]; votes[i][other] == votes[i][most[i]] && votes[i][other] > 0 {
			total, most[i] = f.Footer.Rows, other
		}
		if len(votes[i]) > 1 {
			f.voted[i] = most[i]
		}
	}
	return differ
}

// Recount sets the rows of the row groups to those of their columns, and returns true, if these add up to num_rows:
// then the number stated by a row group is the damaged one.
func (f *File) Recount(ctx context.Context) bool {
	stated := slices.Clone(f.Footer.Groups)
	for i := range f.Footer.Groups {
		if n := f.rowsOfColumn(ctx, i); n >= 0 {
			f.Footer.Groups[i].Rows = n
		}
	}
	if f.RowsAgree(ctx) == nil && ctx.Err() == nil {
		return true
	}
	f.Footer.Groups = stated
	return false
}

// stored returns the size in bytes of the columns' pages in a row group, without headers; 0 if that is stated only in
// the metadata after the pages. total_byte_size would be of no use because it counts raw bytes.
func (f *File) stored(group int, cols []int) (sum int64) {
	for _, c := range cols {
		chunk := &f.Footer.Groups[group].Columns[c]
		m := chunk.Meta
		if m == nil || m.Stored < 0 || m.Stored > f.At.Len && chunk.File == "" {
			return 0
		}
		sum += m.Stored
	}
	return sum
}

// RowsOf returns the number of rows of a row group; -1 if only the levels of its columns determine it.
func (f *File) RowsOf(ctx context.Context, group int) (int64, error) {
	switch g := &f.Footer.Groups[group]; {
	case g.Rows >= 0:
		return g.Rows, nil
	case len(f.Footer.Groups) == 1 && f.Footer.Rows >= 0:
		return f.Footer.Rows, nil
	}
	rows := f.rowsOfColumn(ctx, group)
	return rows, ctx.Err()
}

// Meta returns the metadata of the file as keys and values.
func (f *File) Meta() []format.KeyValue {
	m := &f.Footer
	out := []format.KeyValue{
		{Key: "generation", Value: m.Gen.String()},
		{Key: "protocol", Value: m.Protocol.String()},
		{Key: "version", Value: strconv.Itoa(int(m.Version))},
		{Key: "rows", Value: strconv.FormatInt(m.Rows, 10)},
		{Key: "row groups", Value: strconv.Itoa(len(m.Groups))},
		{Key: "columns", Value: strconv.Itoa(len(f.Leaves))},
	}
	if m.HasCRC {
		out = append(out, format.KeyValue{Key: "meta_data_crc", Value: fmt.Sprintf("%#08x", m.CRC)})
	}
	if f.Literal {
		out = append(out, format.KeyValue{Key: "footer", Value: "offset from the end, not length"})
	}
	if f.Guessed != "" {
		out = append(out, format.KeyValue{Key: "schema",
			Value: "inferred from the paths and levels of the columns: " + f.Guessed})
	}
	for _, kv := range m.Pairs {
		if kv.Key != schema.SchemaKey && kv.Key != schema.SumKey {
			out = append(out, format.KeyValue{Key: "metadata " + kv.Key, Value: kv.Value})
		}
	}
	for i, g := range m.Groups {
		out = append(out, format.KeyValue{Key: fmt.Sprintf("row group %d", i),
			Value: fmt.Sprintf("%s, %d bytes", fault.Count(g.Rows, "row"), g.Bytes)})
		for k, c := range g.Columns {
			if c.Meta != nil {
				out = append(out, format.KeyValue{Key: fmt.Sprintf("row group %d column %s", i,
					strings.Join(f.Leaves[k].Path, ".")),
					Value: fmt.Sprintf("%s, %v, %s, %s, %d bytes stored, %d raw", c.Meta.Type,
						c.Meta.Encodings, c.Meta.Codec, fault.Count(c.Meta.Values, "value"), c.Meta.Stored,
						c.Meta.Raw)})
			}
		}
	}
	return out
}

// Chunk returns the pages of a chunk, from the one that contains row rows.From, if that is known.
func (f *File) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	if g.Index < 0 || g.Index >= len(f.Footer.Groups) || col < 0 || col >= len(f.Leaves) {
		return nil, fault.Bugf("redfile: there is no column %d of row group %d", col, g.Index)
	}
	t, err := f.Table(ctx, g.Index, col)
	if err != nil {
		return nil, err
	}
	return page.NewChunk(t, rows), nil
}
