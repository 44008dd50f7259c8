package datafile

import (
	"context"
	"io"

	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/vec"
)

// Columns that the option positions adds to a table: they identify the rows to be deleted.
const (
	FileColumn = "stoa_file" // the name of the data file
	RowColumn  = "stoa_row"  // ordinal of the row in the data file, from 0, counting deleted rows
)

// FileNames and RowNumbers describe these columns.
var (
	FileNames = &schema.Column{ColumnSchema: &layout.ColumnSchema{Type: layout.TypeString, Name: FileColumn,
		ID: "\x00file"}, Cardinality: -1}
	RowNumbers = &schema.Column{ColumnSchema: &layout.ColumnSchema{Type: layout.TypeLong, Name: RowColumn,
		ID: "\x00row"}, Cardinality: -1}
)

// Positions returns the chunk of FileNames or RowNumbers in blocklet g; nil if p is neither.
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

// countChunk is a format.Chunk: the ordinals of the rows in the data file.
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
