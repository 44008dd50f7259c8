package redfile

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
	"stoa/vec"
)

func (f *file) Schema() *arrow.Schema { return f.schema }
func (f *file) Order() []format.Key   { return nil }

func (f *file) Columns() []format.Column {
	out := make([]format.Column, len(f.leaves))
	for i := range f.leaves {
		out[i] = f.leaves[i].column
		out[i].Facts = f.facts(i)
	}
	return out
}

// facts are those of the first row group, if its metadata was read.
func (f *file) facts(col int) (out format.ColumnFacts) {
	if len(f.meta.groups) == 0 {
		return out
	}
	m := f.knownMeta(0, col)
	if m == nil {
		return out
	}
	for i, e := range m.encodings {
		if i > 0 {
			out.Encoding += ","
		}
		out.Encoding += e.String()
	}
	out.Codec = m.codec.String()
	return out
}

// Parts is the file.
func (f *file) Parts(ctx context.Context, _ format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		yield(format.Part{Ref: f.at.Object, Stamp: f.stampOfAll(ctx), Rows: f.meta.rows, Bytes: f.at.Len}, nil)
	}
}

// stampOfAll is of the file and of those in which its chunks lie.
func (f *file) stampOfAll(ctx context.Context) string {
	seen, sum := map[string]bool{}, sha256.New()
	for _, g := range f.meta.groups {
		for _, c := range g.columns {
			name, err := f.inside(c.file)
			if c.file == "" || err != nil || seen[name] {
				continue
			}
			seen[name] = true
			fmt.Fprintln(sum, stampOf(ctx, format.Target{Tree: f.tree, Name: name}))
		}
	}
	if len(seen) == 0 {
		return f.stamp
	}
	return f.stamp + " parts " + hex.EncodeToString(sum.Sum(nil)[:8])
}

// RowGroups lists the row groups. In generation A they do not say how many rows they have: a column that does
// not repeat does.
func (f *file) RowGroups(ctx context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	if err := f.rowsAgree(ctx); err != nil {
		return nil, err
	}
	out := make([]format.RowGroup, len(f.meta.groups))
	for i := range out {
		rows, err := f.rowsOf(ctx, i)
		if err != nil {
			return nil, err
		}
		out[i] = format.RowGroup{Part: p.Ref, Index: i, Rows: rows, Bytes: f.stored(i, q.Cols)}
	}
	return out, nil
}

// rowsAgree holds the file's number of rows against its row groups: where they differ one is damaged, and if it
// is the list of row groups, rows would be missing without a word. What does not say its rows is not held
// against anything.
func (f *file) rowsAgree(ctx context.Context) error {
	if f.meta.rows < 0 {
		return nil // put together again: nothing told of a number
	}
	total := int64(0)
	for i := range f.meta.groups {
		rows := f.meta.groups[i].rows
		if rows < 0 {
			rows = f.rowsOfColumn(ctx, i)
		}
		if rows < 0 {
			return ctx.Err() // reading the chunk tells what is wrong there
		}
		total += rows
	}
	err := f.meta.agree(total, f.metaAt)
	if err != nil && f.outvoted(ctx) {
		return ctx.Err() // it is a column that is damaged, and is lost alone
	}
	return err
}

// rowsOfColumn is how many rows a row group has by the metadata of its first column that does not repeat, and
// that can be read; -1: there is none.
func (f *file) rowsOfColumn(ctx context.Context, group int) int64 {
	f.mu.Lock()
	rows, ok := f.voted[group]
	f.mu.Unlock()
	if ok {
		return rows
	}
	for col := range f.leaves {
		if f.leaves[col].maxRep > 0 {
			continue
		}
		if m, err := f.columnMeta(ctx, group, col); err == nil {
			return m.values
		} else if ctx.Err() != nil {
			return -1
		}
	}
	return -1
}

// outvoted reports whether columns of a row group that does not say its rows itself contradict each other. The
// row groups have the rows then that most of their columns have, or those with which all have as many as the file.
func (f *file) outvoted(ctx context.Context) (differ bool) {
	votes := make([]map[int64]int, len(f.meta.groups))
	most, total := make([]int64, len(votes)), int64(0)
	for i := range votes {
		votes[i] = map[int64]int{}
		if most[i] = f.meta.groups[i].rows; most[i] >= 0 {
			total += most[i]
			continue
		}
		for col := range f.leaves {
			if m, err := f.columnMeta(ctx, i, col); f.leaves[col].maxRep == 0 && err == nil {
				if votes[i][m.values]++; votes[i][m.values] > votes[i][most[i]] {
					most[i] = m.values
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
		if other := f.meta.rows - total + most[i]; votes[i][other] == votes[i][most[i]] && votes[i][other] > 0 {
			total, most[i] = f.meta.rows, other
		}
		if len(votes[i]) > 1 {
			f.voted[i] = most[i]
		}
	}
	return differ
}

// recount gives row groups the rows that their columns have, if these add up to as many as the file has: then it is a
// row group's own number that is damaged. It reports whether that was so.
func (f *file) recount(ctx context.Context) bool {
	said := slices.Clone(f.meta.groups)
	for i := range f.meta.groups {
		if n := f.rowsOfColumn(ctx, i); n >= 0 {
			f.meta.groups[i].rows = n
		}
	}
	if f.rowsAgree(ctx) == nil && ctx.Err() == nil {
		return true
	}
	f.meta.groups = said
	return false
}

// stored is the size of the columns' pages in a row group, without their headers; 0 if it is not known, as only
// the metadata at the chunks says it. The row group's own total_byte_size counts raw bytes.
func (f *file) stored(group int, cols []int) (sum int64) {
	for _, c := range cols {
		m := f.meta.groups[group].columns[c].meta
		if m == nil || m.stored < 0 || m.stored > f.at.Len {
			return 0
		}
		sum += m.stored
	}
	return sum
}

// rowsOf is how many rows a row group has; -1 if only its levels tell.
func (f *file) rowsOf(ctx context.Context, group int) (int64, error) {
	switch g := &f.meta.groups[group]; {
	case g.rows >= 0:
		return g.rows, nil
	case len(f.meta.groups) == 1 && f.meta.rows >= 0:
		return f.meta.rows, nil
	}
	rows := f.rowsOfColumn(ctx, group)
	return rows, ctx.Err()
}

// Meta is the facts of the file.
func (f *file) Meta() []format.KeyValue {
	m := &f.meta
	out := []format.KeyValue{
		{Key: "generation", Value: m.gen.String()},
		{Key: "protocol", Value: m.protocol.String()},
		{Key: "version", Value: strconv.Itoa(int(m.version))},
		{Key: "rows", Value: strconv.FormatInt(m.rows, 10)},
		{Key: "row groups", Value: strconv.Itoa(len(m.groups))},
		{Key: "columns", Value: strconv.Itoa(len(f.leaves))},
	}
	if m.hasCRC {
		out = append(out, format.KeyValue{Key: "meta_data_crc", Value: fmt.Sprintf("%#08x", m.crc)})
	}
	if f.literal {
		out = append(out, format.KeyValue{Key: "footer", Value: "offset from the end, not length"})
	}
	if f.guessed != "" {
		out = append(out, format.KeyValue{Key: "schema",
			Value: "inferred from the paths and levels of the columns: " + f.guessed})
	}
	for _, kv := range m.pairs {
		if kv.key != schemaKey && kv.key != sumKey {
			out = append(out, format.KeyValue{Key: "metadata " + kv.key, Value: kv.value})
		}
	}
	for i, g := range m.groups {
		out = append(out, format.KeyValue{Key: fmt.Sprintf("row group %d", i),
			Value: fmt.Sprintf("%d rows, %d bytes", g.rows, g.bytes)})
		for k, c := range g.columns {
			if c.meta != nil {
				out = append(out, format.KeyValue{Key: fmt.Sprintf("row group %d column %s", i,
					strings.Join(f.leaves[k].path, ".")),
					Value: fmt.Sprintf("%s, %v, %s, %d values, %d bytes stored, %d raw", c.meta.typ,
						c.meta.encodings, c.meta.codec, c.meta.values, c.meta.stored, c.meta.raw)})
			}
		}
	}
	return out
}

// Chunk gives the pages of a chunk, from the one that holds rows.From on where that is known.
func (f *file) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	if g.Index < 0 || g.Index >= len(f.meta.groups) || col < 0 || col >= len(f.leaves) {
		return nil, fault.Bugf("redfile: there is no column %d of row group %d", col, g.Index)
	}
	t, err := f.table(ctx, g.Index, col)
	if err != nil {
		return nil, err
	}
	return newChunk(t, rows), nil
}
