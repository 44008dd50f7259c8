package soak

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/parquet/file"

	"stoa"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/store"
	"stoa/vec"
)

// place is a range of bytes of a file that stores these rows of a column.
type place struct {
	file     string
	from, to int64
	column   int // of the table; -1: all
	rows     []int64
	group    int
}

// layout is where an undamaged table stores its cells, in file order. groups has the rows of each row group.
type layout struct {
	places []place
	groups [][]int64
}

// layoutOf finds the spans of pages: with the format's reader; for Parquet and Arrow with arrow-go; for text, of lines.
// nil: unknown.
func (s *soak) layoutOf(w *writer, name string, opts, read map[string]string) (*layout, error) {
	switch {
	case w == carbonTable:
		return s.carbonLayout(name)
	case w.name == "parquet":
		return parquetLayout(name)
	case w.name == "arrow":
		return arrowLayout(name)
	case w.ext == ".jsonl":
		return linesLayout(name)
	case w.ext == ".csv" || w.ext == ".tsv":
		return &layout{}, nil // see touched.records
	case !w.typed:
		return nil, nil
	}
	i := slices.IndexFunc(formats, func(f format.Format) bool { return f.Name == w.name })
	r, err := formats[i].Open(s.ctx, format.Target{Tree: store.Local{}, Name: name},
		format.OpenOptions{Limits: format.Limits{}.WithDefaults(), Opts: read})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return s.pageLayout(r)
}

// ids returns the numbers in [from, to).
func ids(from, to int64) []int64 {
	out := make([]int64, 0, max(0, to-from))
	for ; from < to; from++ {
		out = append(out, from)
	}
	return out
}

func (s *soak) pageLayout(r format.Reader) (*layout, error) {
	l := &layout{}
	first := int64(0)
	for p, err := range r.Parts(s.ctx, format.Query{}) {
		if err != nil {
			return nil, err
		}
		groups, err := r.RowGroups(s.ctx, p, format.Query{})
		if err != nil {
			return nil, err
		}
		for _, g := range groups {
			if g.Rows < 0 {
				return nil, fmt.Errorf("a row group of an intact file has an unknown number of rows")
			}
			l.groups = append(l.groups, ids(first, first+g.Rows))
			for k, c := range r.Columns() {
				if err := s.chunkLayout(l, r, g, k, c, first); err != nil {
					return nil, err
				}
			}
			first += g.Rows
		}
	}
	return l, nil
}

// chunkLayout adds the pages of a column of a row group. A page whose rows are unknown may hold all rows that no page
// before it has, and, if rows repeat, the last row before it as well. If lengths are in a column of their own, losing a
// page of them costs every page of the items that they count: practically all rows of the field.
func (s *soak) chunkLayout(l *layout, r format.Reader, g format.RowGroup, k int, c format.Column, first int64) error {
	ch, err := r.Chunk(s.ctx, g, k, vec.Range{From: 0, To: g.Rows})
	if err != nil {
		return err
	}
	from := int64(0)
	add := func(p format.Page, rows []int64) {
		for _, sp := range p.Spans {
			l.places = append(l.places, place{sp.Object, sp.Off, sp.End(), c.Path[0], rows, len(l.groups) - 1})
		}
	}
	if p, ok := ch.Dict(); ok {
		add(p, ids(first, first+g.Rows))
	}
	known := c.Parent < 0
	if slices.ContainsFunc(r.Columns(), func(o format.Column) bool { return o.Parent >= 0 && o.Path[0] == c.Path[0] }) {
		known = false
	}
	for {
		p, err := ch.Next(s.ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		to := g.Rows
		if known = known && p.Rows >= 0; known {
			to = from + p.Rows
		}
		add(p, ids(first+max(0, from-1), first+to))
		if known {
			from = to
		}
	}
}

// parquetLayout: damage to any column costs whole rows, as documented for the format.
func parquetLayout(name string) (*layout, error) {
	r, err := file.OpenParquetFile(name, false)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	l := &layout{}
	first := int64(0)
	for g := range r.NumRowGroups() {
		m := r.MetaData().RowGroup(g)
		rows := ids(first, first+m.NumRows())
		first += m.NumRows()
		l.groups = append(l.groups, rows)
		for k := range m.NumColumns() {
			c, err := m.ColumnChunk(k)
			if err != nil {
				return nil, err
			}
			from := c.DataPageOffset()
			if d := c.DictionaryPageOffset(); c.HasDictionaryPage() && d > 0 && d < from {
				from = d
			}
			l.places = append(l.places, place{name, from, from + c.TotalCompressedSize(), -1, rows, g})
		}
	}
	return l, nil
}

// arrowLayout reads the file as the stream that it contains, or is.
func arrowLayout(name string) (*layout, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	base := 0
	if bytes.HasPrefix(b, []byte("ARROW1")) {
		base = 8
	}
	in := bytes.NewReader(b[base:])
	r, err := ipc.NewReader(in)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	at := func() int64 { return int64(len(b)) - int64(in.Len()) }
	l := &layout{}
	first, from := int64(0), at()
	for r.Next() {
		rows := ids(first, first+r.RecordBatch().NumRows())
		first += r.RecordBatch().NumRows()
		l.groups = append(l.groups, rows)
		l.places = append(l.places, place{name, from, at(), -1, rows, len(l.groups) - 1})
		from = at()
	}
	return l, r.Err()
}

// linesLayout: each line is a row.
func linesLayout(name string) (*layout, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	l := &layout{}
	for from := 0; from < len(b); {
		n := bytes.IndexByte(b[from:], '\n')
		if n < 0 {
			return nil, io.ErrUnexpectedEOF
		}
		g := len(l.groups)
		l.groups = append(l.groups, ids(int64(g), int64(g+1)))
		// if the end of the previous line is damaged, this line is damaged too
		l.places = append(l.places, place{name, int64(max(0, from-1)), int64(from + n + 1), -1, l.groups[g], g})
		from += n + 1
	}
	return l, nil
}

// records adds those rows of CSV that Go's library no longer finds, because a changed quote or end of line may join
// rows. nil: it finds no rows, or another header.
func (t *touched) records(w *writer, file, copied string, opts map[string]string) *touched {
	before, err := records(w, file, opts)
	if err != nil {
		return nil
	}
	after, err := records(w, copied, opts)
	if err != nil || len(before) == 0 || len(after) == 0 || before[0] != after[0] {
		return nil
	}
	left := map[string]int{}
	for _, r := range after[1:] {
		left[r]++
	}
	for i, r := range before[1:] {
		if left[r]--; left[r] < 0 {
			t.add(ids(int64(i), int64(i+1)), -1)
		}
	}
	return t
}

func records(w *writer, name string, opts map[string]string) (out []string, err error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(bytes.NewReader(b))
	r.FieldsPerRecord = -1
	if w.name == "tsv" || opts["delimiter"] == "tab" {
		r.Comma = '\t'
	} else if opts["delimiter"] == ";" {
		r.Comma = ';'
	}
	for {
		c, err := r.Read()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, fmt.Sprintf("%q", c))
	}
}

// carbonLayout returns the rows of each data file of a table. The locations of cells within a file are tested with
// single files.
func (s *soak) carbonLayout(dir string) (*layout, error) {
	t, err := stoa.Open(s.ctx, dir, stoa.OpenOptions{Formats: formats, Opts: map[string]string{"positions": "true"}})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	rows := map[string][]int64{}
	for b, err := range t.Scan(s.ctx, stoa.ScanSpec{Columns: []string{"id", carbon.FileColumn}}) {
		if err != nil {
			return nil, err
		}
		for i := range int(b.NumRows()) {
			f := strings.Clone(b.Column(1).(*array.String).Value(i))
			rows[f] = append(rows[f], b.Column(0).(*array.Int64).Value(i))
		}
	}
	l := &layout{}
	for f, r := range rows {
		name := f
		if !filepath.IsAbs(f) {
			name = filepath.Join(dir, f)
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		l.places = append(l.places, place{name, 0, info.Size(), -1, r, len(l.groups)})
		l.groups = append(l.groups, r)
	}
	slices.SortFunc(l.places, func(a, b place) int { return strings.Compare(a.file, b.file) })
	return l, nil
}
