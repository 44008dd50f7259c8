package table

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
)

// indexRow is an entry of an index file, presented as a row.
type indexRow struct {
	index   string // name of the index file
	number  int32  // ordinal among the entries for the same data file, which is the blocklet if the entry is for one
	entry   *layout.BlockIndex
	columns []*schema.Column // those with bounds
}

// openIndex opens a .carbonindex or .carbonindexmerge as a table with a row for each entry:
//
//	index_file, file_name, blocklet (null if the entry is for the whole file), num_rows, offset (of the footer),
//	file_size, min_NAME and max_NAME (texts) for each column that is not nested
func openIndex(ctx context.Context, tg format.Target, op format.OpenOptions) (format.Reader, error) {
	s, c, err := openAuxiliary(ctx, tg, op.Limits, "index file")
	if err != nil {
		return nil, err
	}
	c.Trace(op.Tracer, 0)
	var files []layout.IndexFile
	if strings.HasSuffix(tg.Name, layout.MergedExt) {
		files = layout.ParseMergedIndex(c, nil)
	} else {
		files = []layout.IndexFile{layout.ParseIndex(c)}
		files[0].Name = path.Base(tg.Name)
	}
	return s, s.indexTable(files, c.Err())
}

func (s *auxiliary) indexTable(files []layout.IndexFile, damage error) error {
	var rows []indexRow
	var names []string
	seen := map[string]int32{}
	s.fact("index_files", len(files))
	for _, f := range files {
		roots, _, err := schema.ColumnTree(f.Header.Columns, s.Object.At, "table_columns")
		if err != nil {
			return err
		}
		var flat []*schema.Column
		for _, r := range roots {
			if !r.Type.Complex() {
				flat = append(flat, r)
			}
		}
		if names == nil {
			for _, r := range flat {
				names = append(names, r.Name)
			}
			s.fact("version", f.Header.Version)
			s.fact("columns", len(f.Header.Columns))
		}
		for i := range f.Blocks {
			b := &f.Blocks[i]
			rows = append(rows, indexRow{f.Name, seen[b.File], b, flat})
			seen[b.File]++
		}
	}
	s.fact("data_files", len(seen))
	fields := []arrow.Field{{Name: "index_file", Type: arrow.BinaryTypes.String},
		{Name: "file_name", Type: arrow.BinaryTypes.String},
		{Name: "blocklet", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "num_rows", Type: arrow.PrimitiveTypes.Int64},
		{Name: "offset", Type: arrow.PrimitiveTypes.Int64},
		{Name: "file_size", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}
	for _, n := range names {
		fields = append(fields, arrow.Field{Name: "min_" + n, Type: arrow.BinaryTypes.String, Nullable: true},
			arrow.Field{Name: "max_" + n, Type: arrow.BinaryTypes.String, Nullable: true})
	}
	s.Fields = arrow.NewSchema(fields, nil)
	s.MakeRows(len(rows), damage, func(b *array.RecordBuilder, row int) { rows[row].fill(b, names) })
	return nil
}

func (r *indexRow) fill(b *array.RecordBuilder, names []string) {
	e := r.entry
	b.Field(0).(*array.StringBuilder).Append(r.index)
	b.Field(1).(*array.StringBuilder).Append(e.File)
	if e.Info != nil {
		b.Field(2).(*array.Int32Builder).Append(r.number)
	} else {
		b.Field(2).AppendNull()
	}
	b.Field(3).(*array.Int64Builder).Append(e.Count())
	b.Field(4).(*array.Int64Builder).Append(e.Offset)
	if e.Size > 0 {
		b.Field(5).(*array.Int64Builder).Append(e.Size)
	} else {
		b.Field(5).AppendNull()
	}
	for i, n := range names {
		lo, hi := b.Field(6+2*i).(*array.StringBuilder), b.Field(7+2*i).(*array.StringBuilder)
		var c *schema.Column
		for _, x := range r.columns {
			if x.Name == n {
				c = x
			}
		}
		if c == nil {
			lo.AppendNull()
			hi.AppendNull()
			continue
		}
		a, z, ok := e.Index.MinMax.At(c.Chunk)
		boundText(lo, c, a, ok, e.Info != nil)
		boundText(hi, c, z, ok, e.Info != nil)
	}
}

// boundText appends a bound as text; null if there is none. It is formatted as a value if it can be parsed, else in
// hexadecimal. own states that the entry is for a blocklet of format 3.
func boundText(b *array.StringBuilder, c *schema.Column, v []byte, ok, own bool) {
	if !ok {
		b.AppendNull()
		return
	}
	if x, ok := datafile.BoundOf(c, v); ok && own {
		b.Append(fmt.Sprint(x))
		return
	}
	b.Append(fmt.Sprintf("%x", v))
}
