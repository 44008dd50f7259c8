package table

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/vec"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// NewChunk returns column col of blocklet g as phys, from the page with row rows.From on. A missing or damaged global
// dictionary is not an error here; only the pages that need it will fail.
func (t *Table) NewChunk(ctx context.Context, f *datafile.DataFile, g int, phys *schema.Physical,
	col *schema.Column, rows vec.Range) (*datafile.Chunk, error) {
	c := &datafile.Chunk{F: f, Phys: phys, Col: col, Rows: rows, Dates: t.Dates}
	var err error
	if c.Starts, err = f.PageStarts(ctx, g); err != nil {
		return nil, err
	}
	if c.Tree, err = f.OpenTree(ctx, g, col); err != nil {
		return nil, err
	}
	if id := phys.Type.ID(); c.Tree.Dict != nil && phys.Has == format.Values && id != arrow.STRING &&
		id != arrow.BINARY {
		return nil, fault.Corruptf(c.Tree.At, c.Tree.Path+".local_dictionary",
			"a local dictionary for a column of type %s", col.Type)
	}
	if n := len(c.Starts) - 1; len(c.Tree.Pages) != n {
		return nil, fault.Corruptf(c.Tree.At, c.Tree.Path, "expected %s by the blocklet, found %d",
			fault.Count(n, "page"),
			len(c.Tree.Pages))
	}
	if phys.Has == format.Values && c.Tree.Global() {
		if c.Global, c.NoDict = t.Dicts.Global(ctx, phys.Col); c.NoDict != nil && !errors.Is(c.NoDict, fault.Corrupt) {
			return nil, c.NoDict
		}
	}
	for c.I < len(c.Tree.Pages) && c.Starts[c.I+1] <= rows.From {
		c.I++
	}
	return c, nil
}

// addPositions adds the columns stoa_file and stoa_row after the table's own.
func (t *Table) addPositions() {
	t.AddColumn(datafile.FileNames, arrow.BinaryTypes.String)
	t.AddColumn(datafile.RowNumbers, arrow.PrimitiveTypes.Int64)
}

// AddColumn adds a column after the others that is not stored: of positions, or one that each part is marked with.
func (t *Table) AddColumn(c *schema.Column, dt arrow.DataType) {
	fields := append(t.sc.Fields(), arrow.Field{Name: c.Name, Type: dt})
	t.Phys = append(t.Phys, schema.Physical{Root: c, Col: c, Column: format.Column{Name: c.Name,
		Path: []int{len(fields) - 1}, Parent: -1, Has: format.Values, Type: dt}})
	meta := t.sc.Metadata()
	t.sc = arrow.NewSchema(fields, &meta)
}

// newStreamChunk returns column col of blocklet g of a row-format file.
func (t *Table) newStreamChunk(f *datafile.DataFile, g int, col *schema.Column) (*datafile.StreamChunk, error) {
	i := slices.IndexFunc(f.Stream.Fields, func(x datafile.StreamField) bool { return x.Col == col })
	c := &datafile.StreamChunk{F: f, B: &f.Stream.Blocklets[g], Index: i,
		Path: fmt.Sprintf("blocklet[%d].%s", g, col.Name), Dates: t.Dates}
	if i < 0 || col.Type.Complex() {
		return nil, fault.Unsupportedf(c.B.At, c.Path, "lists and structs in a row-format file")
	}
	if schema.HasGlobalCodes(col) {
		return nil, fault.Unsupportedf(c.B.At, c.Path, "a global dictionary in a row-format file")
	}
	return c, nil
}

// DecodeRows decodes a column of blocklet g of a row-format file from its stored bytes, and discards the values. It
// returns how many of them are dates and times before 15 October 1582.
func (t *Table) DecodeRows(f *datafile.DataFile, g int, p *schema.Physical, stored []byte, a *vec.Arena) (old int64,
	err error) {
	c, err := t.newStreamChunk(f, g, p.Col)
	if err != nil {
		return 0, err
	}
	rows, err := c.Next(context.Background())
	if err != nil {
		return 0, nil // no rows
	}
	dst, err := vec.New(p.Type, memory.DefaultAllocator)
	if err != nil {
		return 0, err
	}
	defer dst.Release()
	defer a.Reset()
	err = c.Decode(&format.Task{Page: rows, N: rows.Entries, Bytes: [][]byte{stored}, Scratch: a,
		Limits: f.Limits}, dst)
	return page.Old(dst), err
}
