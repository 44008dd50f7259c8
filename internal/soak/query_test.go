package soak

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/format/formattest"
	"stoa/pred"
)

// asks compares query results of the file with the table: rows by filters, counts, splits, and diff with the table's
// first file.
func (s *soak) asks(w *writer, file string, opts, read map[string]string) {
	t, err := stoa.Open(s.ctx, file, stoa.OpenOptions{Formats: formats, Opts: read})
	if err != nil {
		s.fail(w, opts, "open: %v", err)
		return
	}
	defer t.Close()
	for range 3 {
		text, holds := s.filter()
		want := map[int64]string{}
		for _, b := range s.batches {
			for i, l := range formattest.Lines(b) {
				if id := b.Column(0).(*array.Int64).Value(i); s.lines[id] != "" && holds(b, i) {
					want[id] = l
				}
			}
		}
		s.query(w, t, opts, text, want)
		if s.r.IntN(2) == 0 {
			s.union(w, t, opts, text, want)
		}
	}
	s.differs(w, t, opts)
}

// filter returns a random filter as text, and as a function.
func (s *soak) filter() (text string, holds func(b arrow.RecordBatch, i int) bool) {
	c := s.r.IntN(s.schema.NumFields())
	f := s.schema.Field(c)
	name := f.Name
	sample := s.batches[s.r.IntN(len(s.batches))]
	row := s.r.IntN(int(sample.NumRows()))
	switch a := sample.Column(c).(type) {
	case *array.Int64, *array.Int32, *array.Int16, *array.Int8:
		if !a.IsNull(row) {
			x := integer(a, row)
			op := []string{"<", "<=", "=", ">=", ">", "!="}[s.r.IntN(6)]
			return fmt.Sprintf("%s %s %d", name, op, x), func(b arrow.RecordBatch, i int) bool {
				return !b.Column(c).IsNull(i) && compares(integer(b.Column(c), i), op, x)
			}
		}
	case *array.String:
		if !a.IsNull(row) {
			x := a.Value(row)
			quoted := "'" + strings.ReplaceAll(x, "'", "''") + "'"
			if n := strings.IndexAny(x, "%_\\"); n < 0 && len(x) > 1 && x[1] < 128 && s.r.IntN(2) == 0 {
				return fmt.Sprintf("%s like '%s%%'", name, strings.ReplaceAll(x[:1], "'", "''")),
					func(b arrow.RecordBatch, i int) bool {
						return !b.Column(c).IsNull(i) && strings.HasPrefix(b.Column(c).(*array.String).Value(i), x[:1])
					}
			}
			return fmt.Sprintf("%s in (%s, 'no such word')", name, quoted), func(b arrow.RecordBatch, i int) bool {
				return !b.Column(c).IsNull(i) && b.Column(c).(*array.String).Value(i) == x
			}
		}
	}
	from, to := s.r.Int64N(700), s.r.Int64N(700)
	if arrow.IsNested(f.Type.ID()) {
		name, c = "id", 0
	}
	return fmt.Sprintf("%s is not null and id between %d and %d or id = 3 and not %s is null", name, from, to,
			name), func(b arrow.RecordBatch, i int) bool {
			id := b.Column(0).(*array.Int64).Value(i)
			return !b.Column(c).IsNull(i) && (from <= id && id <= to || id == 3)
		}
}

func integer(a arrow.Array, i int) int64 {
	switch a := a.(type) {
	case *array.Int8:
		return int64(a.Value(i))
	case *array.Int16:
		return int64(a.Value(i))
	case *array.Int32:
		return int64(a.Value(i))
	}
	return a.(*array.Int64).Value(i)
}

func compares(a int64, op string, b int64) bool {
	switch op {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case "=":
		return a == b
	case ">=":
		return a >= b
	case ">":
		return a > b
	}
	return a != b
}

// query: the filter selects the right rows, whatever the batches and workers, and Count counts them.
func (s *soak) query(w *writer, t *stoa.Table, opts map[string]string, text string, want map[int64]string) {
	e, err := pred.Parse(text)
	if err != nil {
		s.fail(w, opts, "%s: %v", text, err)
		return
	}
	s.ops["query"]++
	spec := stoa.ScanSpec{Filter: e, Batch: []int{0, 1, 33}[s.r.IntN(3)], Parallel: s.r.IntN(3)}
	got := map[int64]string{}
	for b, err := range t.Scan(s.ctx, spec) {
		if err != nil {
			s.fail(w, opts, "%s: %v", text, err)
			return
		}
		s.take(b, got)
	}
	if bad := unlike(got, want); bad != "" {
		s.fail(w, opts, "%s: %s", text, bad)
	}
	if n, err := t.Count(s.ctx, stoa.ScanSpec{Filter: e}); err != nil || n != int64(len(want)) {
		s.fail(w, opts, "%s: Count gives %d rows, want %d, %v", text, n, len(want), err)
	}
}

func (s *soak) take(b arrow.RecordBatch, into map[int64]string) {
	for i, l := range formattest.Lines(b) {
		into[b.Column(0).(*array.Int64).Value(i)] += l // a repeated row does not equal the line
	}
}

func unlike(got, want map[int64]string) string {
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if got[id] != want[id] {
			return fmt.Sprintf("%d rows, want %d; row %d: got %q, want %q", len(got), len(want), id, got[id],
				want[id])
		}
	}
	if len(got) > len(want) {
		return fmt.Sprintf("%d rows, want %d", len(got), len(want))
	}
	return ""
}

// union: the splits of a plan, each opened from its JSON, together return the rows of the scan, each once.
func (s *soak) union(w *writer, t *stoa.Table, opts map[string]string, text string, want map[int64]string) {
	e, err := pred.Parse(text)
	if err != nil {
		return
	}
	s.ops["splits"]++
	got := map[int64]string{}
	for sp, err := range t.Plan(s.ctx, stoa.ScanSpec{Filter: e}, []int64{1, 200, 1 << 20}[s.r.IntN(3)]) {
		if err == nil {
			err = s.part(sp, got)
		}
		if err != nil {
			s.fail(w, opts, "splits of %s: %v", text, err)
			return
		}
	}
	if bad := unlike(got, want); bad != "" {
		s.fail(w, opts, "splits of %s: %s", text, bad)
	}
}

func (s *soak) part(sp stoa.Split, into map[int64]string) error {
	text, err := json.Marshal(sp)
	if err != nil {
		return err
	}
	var back stoa.Split
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&back); err != nil {
		return err
	}
	t, err := stoa.OpenSplit(s.ctx, back, stoa.OpenOptions{Formats: formats})
	if err != nil {
		return err
	}
	defer t.Close()
	for b, err := range t.Scan(s.ctx, stoa.ScanSpec{}) {
		if err != nil {
			return err
		}
		s.take(b, into)
	}
	return nil
}

// differs: diff finds no difference between the file and the table's first file, and if one row is filtered out, only
// that row.
func (s *soak) differs(w *writer, t *stoa.Table, opts map[string]string) {
	if s.first == "" || len(s.lines) == 0 {
		return
	}
	other, err := stoa.Open(s.ctx, s.first, stoa.OpenOptions{Formats: formats, Opts: s.firstRead})
	if err != nil {
		s.fail(w, opts, "open %s: %v", s.first, err)
		return
	}
	defer other.Close()
	s.ops["diff"]++
	var on []string
	if s.r.IntN(2) == 0 || w == carbonTable {
		on = []string{"id"}
	}
	d, err := stoa.Diff(s.ctx, t, other, stoa.DiffOptions{On: on})
	n := int64(len(s.lines))
	if err != nil || d.Same != n || d.Changed != 0 || d.Only != [2]int64{0, int64(len(s.rowCells)) - n} {
		s.fail(w, opts, "diff with %s by %v: %+v, %v", s.first, on, d, err)
	}
	at := s.r.Int64N(n)
	gone, err := pred.Parse(fmt.Sprintf("id != %d", s.ids[at]))
	if err != nil {
		s.t.Fatal(err)
	}
	left := stoa.ScanSpec{Filter: gone}
	if d, err = stoa.Diff(s.ctx, t, other, stoa.DiffOptions{On: []string{"id"}, Scan: left}); err != nil ||
		d.Same != n-1 || d.Changed != 0 {
		s.fail(w, opts, "diff with %s where id != %d: %+v, %v", s.first, s.ids[at], d, err)
	}
}
