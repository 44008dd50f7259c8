package mixed

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/change"
	"stoa/format/carbon/internal/table"
	"stoa/format/internal/lake"
	"stoa/format/parquet"
	"stoa/store"
	"stoa/vec"
)

// Check returns an error if table m cannot return the rows of a Parquet file: the types of the file's columns must be
// convertible to those of the table's. With each, which gets them, it also reads the rows, so that a value that does
// not fit is an error.
func Check(ctx context.Context, m *table.Managed, f table.ForeignFile, op format.OpenOptions,
	each func(arrow.RecordBatch) error) (rows int64, err error) {
	in, err := parquetFile(m, f)
	if err != nil {
		return 0, err
	}
	t := lake.New(lake.Config{Catalogue: "the segment file", Tree: m.Tree, Schema: m.Schema(), Match: byName,
		Files: []*lake.Input{in}, Open: op})
	defer func() { err = errors.Join(err, t.Close()) }()
	q := format.Query{Cols: make([]int, m.Schema().NumFields()), Batch: 1 << 20}
	for i := range q.Cols {
		q.Cols[i] = i
	}
	groups, err := t.RowGroups(ctx, format.Part{Ref: f.Name}, q)
	if err != nil {
		return 0, err
	}
	for _, g := range groups {
		if rows += g.Rows; each == nil {
			continue
		}
		for b, err := range t.Batches(ctx, g, q, vec.Range{To: g.Rows}, memory.NewGoAllocator()) {
			if err == nil {
				err = each(b)
			}
			if err != nil {
				return rows, err
			}
		}
	}
	return rows, nil
}

// Segments is format.Changer.Segments: the segments as in package table, with the row counts of Parquet files added; of
// data files without a table, what was written to them.
func Segments(ctx context.Context, tg format.Target, op format.OpenOptions) ([]format.Segment, error) {
	o, err := table.ParseOptions(op.Opts)
	if err != nil {
		return nil, err
	}
	if at, k, err := table.Resolve(ctx, tg, &o); err == nil && (k == table.KindFiles || k == table.KindFile) {
		return folderSegments(ctx, at, op, k)
	}
	list, err := table.Segments(ctx, tg, op)
	for i := range list {
		s := &list[i]
		if err != nil || s.Err != nil || s.Format != change.Parquet {
			continue
		}
		s.Files, s.Rows, s.Data, s.Err = counted(ctx, tg, op, s.Name)
		if err = ctx.Err(); err == nil && !s.Read { // the segment's files may be gone
			s.Err = nil
		}
	}
	return list, err
}

// counted counts the files, rows and bytes of a Parquet segment.
func counted(ctx context.Context, tg format.Target, op format.OpenOptions, name string) (files int, rows,
	size int64, err error) {
	m, err := table.At(ctx, tg, op)
	if err != nil {
		return -1, -1, -1, err
	}
	for i := range m.Loads {
		if m.Loads[i].Name != name {
			continue
		}
		list, err := m.ForeignFiles(ctx, &m.Loads[i])
		if err != nil {
			return -1, -1, -1, err
		}
		for _, f := range list {
			n, err := Check(ctx, m, f, format.OpenOptions{Limits: op.Limits}, nil)
			if err != nil {
				return len(list), -1, -1, err
			}
			rows, size = rows+n, size+f.Bytes
		}
		files = len(list)
	}
	return files, rows, size, nil
}

// Changer returns change.Changer extended to Parquet segments.
func Changer() *format.Changer {
	c := change.Changer
	c.Segments = Segments
	c.AddSegment = func(ctx context.Context, p format.TablePlace, s format.NewSegment, dry bool) (string, error) {
		if s.Format != change.Parquet {
			return change.Changer.AddSegment(ctx, p, s, dry)
		}
		return addSegment(ctx, p, s, dry)
	}
	return &c
}

// addSegment makes the Parquet files of a directory a segment, after reading all their rows.
func addSegment(ctx context.Context, p format.TablePlace, s format.NewSegment, dry bool) (string, error) {
	m, err := table.At(ctx, format.Target{Tree: store.Local{}, Name: p.Dir}, format.OpenOptions{})
	if err != nil {
		return "", err
	}
	return change.AddForeign(ctx, p, s, dry, func(name string) error { return fits(ctx, m, name) })
}

// fits returns an error if a Parquet file cannot be a segment of a table: for stoa, or for CarbonData under Spark,
// which then fails on the whole table.
func fits(ctx context.Context, m *table.Managed, name string) error {
	if strings.Contains(path.Base(name), ":") {
		return fault.Unsupportedf(fault.Span{Object: name}, "", "its name has a colon, which Hadoop takes for the "+
			"end of a scheme%s", wayOut)
	}
	r, err := parquet.Format.Open(ctx, format.Target{Tree: m.Tree, Name: name}, format.OpenOptions{Opts: AsSpark})
	if err != nil {
		return err
	}
	defer r.Close()
	columns, err := complete(m, name, r)
	if err != nil {
		return err
	}
	if err := sparkReads(ctx, name, r, columns); err != nil {
		return err
	}
	safe := gregorian(r, columns)
	_, err = Check(ctx, m, table.ForeignFile{Name: name}, format.OpenOptions{}, func(b arrow.RecordBatch) error {
		for i, c := range b.Columns() {
			if !safe[i] && old(c) {
				return fault.Unsupportedf(fault.Span{Object: name}, b.ColumnName(i), "a date before 1582-10-15, or a "+
					"time before 1900, without the mark of Spark 3.0 (INT96: 3.1): Spark fails on it, or reads "+
					"another one; `stoa load` copies the rows into the table")
			}
		}
		return nil
	})
	return err
}

// complete returns the columns of a Parquet file that are those of the table. It returns Invalid if one is not there,
// which would be null in all its rows, or is there twice, or has another type: CarbonData under Spark refuses such a
// segment, or cannot read the table with most of them.
func complete(m *table.Managed, name string, r format.Reader) (columns []int, err error) {
	fields := r.Schema().Fields()
	for _, f := range m.Schema().Fields() {
		at := byName(f, fields, nil)
		if at < 0 {
			return nil, fault.Invalidf("%s: expected a column %s of the table, found none", name, f.Name)
		}
		for i, x := range fields {
			if i != at && strings.EqualFold(x.Name, f.Name) {
				return nil, fault.Invalidf("%s: expected one column %s, found also %s: Spark does not tell them apart",
					name, f.Name, x.Name)
			}
		}
		if f.Type.ID() == arrow.INT8 {
			return nil, fault.Unsupportedf(fault.Span{Object: name}, f.Name, "a column of bytes: CarbonData under "+
				"Spark has no such type; `stoa load` copies the rows into the table")
		}
		if have := fields[at].Type; !sameType(f.Type, have) {
			return nil, fault.Invalidf("%s: column %s: expected the table's type %s, found %s; `stoa load` "+
				"converts the rows", name, f.Name, f.Type, have)
		}
		columns = append(columns, at)
	}
	return columns, nil
}

// sameType reports whether two types are one in Spark: units of times and names of list items do not count.
func sameType(a, b arrow.DataType) bool {
	x, nested := a.(arrow.NestedType)
	if y, ok := b.(arrow.NestedType); nested && ok && a.ID() == b.ID() && x.NumFields() == y.NumFields() {
		for i, f := range x.Fields() {
			g := y.Fields()[i]
			if !sameType(f.Type, g.Type) || a.ID() == arrow.STRUCT && !strings.EqualFold(f.Name, g.Name) {
				return false
			}
		}
		return true
	}
	return arrow.TypeEqual(a, b) || a.ID() == arrow.TIMESTAMP && b.ID() == arrow.TIMESTAMP
}
