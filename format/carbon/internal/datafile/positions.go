package datafile

import (
	"context"
	"io"

	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/vec"
)

// With the option positions each row has its data file and its number in it: by them rows are deleted.
const (
	FileColumn = "stoa_file" // the name of the data file
	RowColumn  = "stoa_row"  // the row's number in it, deleted rows counted
)

var (
	FileNames = &schema.Column{ColumnSchema: &layout.ColumnSchema{Typ: layout.TypeString, Name: FileColumn,
		Id: "\x00file"}, Card: -1}
	RowNumbers = &schema.Column{ColumnSchema: &layout.ColumnSchema{Typ: layout.TypeLong, Name: RowColumn,
		Id: "\x00row"}, Card: -1}
)

// Positions gives the pages of such a column of a blocklet; nil if p is none.
func (f *DataFile) Positions(p *schema.Physical, g int, rows vec.Range) format.Chunk {
	n := f.Footer.Blocklet[g].Rows
	switch p.Root {
	case FileNames:
		return schema.NewConstChunk(schema.Constant{S: f.At.Object}, p.Type, n, rows, false)
	case RowNumbers:
		base := int64(0)
		for i := range g {
			base += f.Footer.Blocklet[i].Rows
		}
		return &countChunk{schema.NewConstChunk(schema.Constant{}, p.Type, n, rows, false), base}
	}
	return nil
}

// countChunk counts rows. It is a format.Chunk.
type countChunk struct {
	*schema.ConstChunk
	base int64
}

func (c *countChunk) Next(ctx context.Context) (format.Page, error) {
	p, err := c.ConstChunk.Next(ctx)
	if err == io.EOF {
		return p, err
	}
	p.Bounds = nil
	return p, err
}

func (c *countChunk) Decode(t *format.Task, dst *vec.Vector) error {
	at := dst.Extend(int(t.N))
	for i := range vec.Fixed[int64](dst, at) {
		vec.Fixed[int64](dst, at)[i] = c.base + t.Page.First + int64(i)
	}
	return nil
}
