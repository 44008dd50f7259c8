package carbon

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/vec"
)

// With the option positions each row has its data file and its number in it: by them rows are deleted.
const (
	FileColumn = "stoa_file" // the name of the data file
	RowColumn  = "stoa_row"  // the row's number in it, deleted rows counted
)

var (
	fileColumn = &column{columnSchema: &columnSchema{typ: typeString, name: FileColumn, id: "\x00file"}, card: -1}
	rowColumn  = &column{columnSchema: &columnSchema{typ: typeLong, name: RowColumn, id: "\x00row"}, card: -1}
)

// addPositions adds the two columns behind the table's own.
func (t *table) addPositions() {
	fields := append(t.sc.Fields(), arrow.Field{Name: FileColumn, Type: arrow.BinaryTypes.String}, arrow.Field{Name: RowColumn, Type: arrow.PrimitiveTypes.Int64})
	for i, c := range []*column{fileColumn, rowColumn} {
		f := fields[len(fields)-2+i]
		t.phys = append(t.phys, physical{root: c, col: c, Column: format.Column{Name: f.Name, Path: []int{len(fields) - 2 + i}, Parent: -1, Has: format.Values, Type: f.Type}})
	}
	meta := t.sc.Metadata()
	t.sc = arrow.NewSchema(fields, &meta)
}

// positions gives the pages of such a column of a blocklet; nil if p is none.
func (f *dataFile) positions(p *physical, g int, rows vec.Range) format.Chunk {
	n := f.footer.blocklet[g].rows
	switch p.root {
	case fileColumn:
		return newConstChunk(constant{s: f.at.Object}, p.Type, n, rows, false)
	case rowColumn:
		base := int64(0)
		for i := range g {
			base += f.footer.blocklet[i].rows
		}
		return &countChunk{newConstChunk(constant{}, p.Type, n, rows, false), base}
	}
	return nil
}

// countChunk counts rows. It is a format.Chunk.
type countChunk struct {
	*constChunk
	base int64
}

func (c *countChunk) Next(ctx context.Context) (format.Page, error) {
	p, err := c.constChunk.Next(ctx)
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
