package table

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/vec"
)

// RowGroups is format.Reader.RowGroups: a row group is a blocklet.
func (t *Table) RowGroups(ctx context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	if x, ok := t.gone[p.Ref]; ok {
		return nil, x.err
	}
	f, err := t.File(ctx, p.Ref)
	if err == nil && t.saved == nil {
		err = checkRows(f, t.partOf(p.Ref))
	}
	if err != nil {
		return nil, err
	}
	return t.groups(ctx, f, &Part{Name: p.Ref}, q)
}

// groups returns the blocklets of a file as row groups.
func (t *Table) groups(ctx context.Context, f *datafile.DataFile, p *Part, q format.Query) ([]format.RowGroup, error) {
	out := make([]format.RowGroup, len(f.Footer.Blocklet))
	for i := range out {
		b := &f.Footer.Blocklet[i]
		out[i] = format.RowGroup{Part: p.Name, Index: i, Rows: b.Rows, Bytes: t.stored(f, i, q.Cols),
			Bounds: t.groupBounds(ctx, f, p, i, q)}
	}
	return out, nil
}

// stored returns the size of the columns in a blocklet. Where a file does not say it, or without columns, it is that of
// the whole blocklet.
func (t *Table) stored(f *datafile.DataFile, g int, cols []int) (sum int64) {
	if len(cols) == 0 {
		return f.BlockletBytes(g)
	}
	seen := map[int]bool{}
	for _, c := range cols {
		p := &t.Phys[c]
		fc := t.Match(f, p.Root, p.Col)
		if fc == nil || seen[fc.Chunk] { // a constant, or a chunk that several columns share
			continue
		}
		seen[fc.Chunk] = true
		n := f.ChunkBytes(g, fc.Chunk)
		if n < 0 {
			return f.BlockletBytes(g)
		}
		sum += n
	}
	return sum
}

// Chunk is format.Reader.Chunk.
func (t *Table) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	return t.chunk(ctx, g, &Part{Name: g.Part}, col, rows)
}

func (t *Table) chunk(ctx context.Context, g format.RowGroup, part *Part, col int, rows vec.Range) (format.Chunk,
	error) {
	if col < 0 || col >= len(t.Phys) {
		return nil, fault.Invalidf("there is no column %d", col)
	}
	f, err := t.File(ctx, g.Part)
	if err != nil {
		return nil, err
	}
	if g.Index < 0 || g.Index >= len(f.Footer.Blocklet) {
		return nil, fault.Invalidf("%s has no blocklet %d", g.Part, g.Index)
	}
	p := &t.Phys[col]
	n := f.Footer.Blocklet[g.Index].Rows
	if g.Rows >= 0 && g.Rows != n { // the row group was planned from the index file
		return nil, fault.Corruptf(f.FootSpan(), fmt.Sprintf("footer.blocklet[%d].num_rows", g.Index),
			"expected %d by the index file, found %d", g.Rows, n)
	}
	if c := f.Positions(p, g.Index, rows); c != nil {
		return c, nil
	}
	if text, ok := part.partition(p.Root.Name); ok {
		v, err := schema.PartitionValue(p.Root, text, t.Zone)
		if err != nil {
			return nil, fault.Locate(err, fault.Span{Object: g.Part}, true, "partition")
		}
		return schema.NewConstChunk(v, p.Type, n, rows, false), nil
	}
	fc := t.Match(f, p.Root, p.Col)
	if fc == nil && t.Ids == nil {
		return nil, fault.Corruptf(f.At, "", "the file has no column %s, which the first file of %s has", p.Name,
			t.Name)
	}
	if fc == nil {
		if err := t.ambiguous[p.Root.ID]; err != nil {
			return nil, err
		}
		v, err := schema.DefaultValue(p.Col)
		if err != nil {
			return nil, fault.Locate(err, fault.Span{Object: t.Name}, true, "schema")
		}
		return schema.NewConstChunk(v, p.Type, n, rows, p.Parent >= 0), nil
	}
	if err := t.Fits(f, p); err != nil {
		return nil, err
	}
	if f.Stream != nil {
		return t.newStreamChunk(f, g.Index, fc)
	}
	return t.NewChunk(ctx, f, g.Index, p, fc, rows)
}

// Fits returns Corrupt if the type of a file's column is neither that of the table's column nor one that a schema
// change could have turned into it: then one of the two is damaged.
func (t *Table) Fits(f *datafile.DataFile, p *schema.Physical) error {
	fc := t.Match(f, p.Root, p.Col)
	if fc == nil || fc.Type == p.Col.Type || widens(fc.Type, p.Col.Type) {
		return nil
	}
	return fault.Corruptf(f.At, "column_schema", "column %s: expected type %s, which the table has, found %s", p.Name,
		p.Col.Type, fc.Type)
}

// widens reports whether type b can hold every value of type a.
func widens(a, b layout.DataType) bool {
	rank := map[layout.DataType]int{layout.TypeByte: 1, layout.TypeShort: 2, layout.TypeInt: 3, layout.TypeLong: 4}
	switch {
	case rank[a] > 0 && rank[b] > 0:
		return rank[a] <= rank[b]
	case a == layout.TypeFloat && b == layout.TypeDouble, a == layout.TypeString &&
		b == layout.TypeVarchar, a == layout.TypeVarchar && b == layout.TypeString:
		return true
	}
	return false
}

// partOf returns the part for a data file, with its entry in an index if there is one.
func (t *Table) partOf(name string) *Part {
	if i := slices.IndexFunc(t.parts, func(p Part) bool { return p.Name == name }); i >= 0 {
		return &t.parts[i]
	}
	return &Part{Name: name}
}

// checkParts opens every data file of a directory, so that recovery reports losses immediately.
func (t *Table) checkParts(ctx context.Context) error {
	for i := range t.parts {
		if err := t.checkPart(ctx, &t.parts[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkPart reports, in recovery, a data file that contradicts its index. Damage inside the file is reported by the
// file's reader.
func (t *Table) checkPart(ctx context.Context, p *Part) error {
	f, err := t.File(ctx, p.Name)
	if err != nil && !errors.Is(err, fault.Corrupt) {
		return err
	}
	if err == nil && f.FootAt > 0 {
		if err := checkRows(f, p); err != nil {
			t.saved.Emit(layout.Findingf("carbon.index.disagree", f.FootSpan(), p.Name,
				"%v: the rows of the data file are read; it may not be the one that was loaded", err))
		}
	}
	return nil
}
