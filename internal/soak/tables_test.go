package soak

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/fault"
	"stoa/format/carbon"
	"stoa/format/kudubackup"
	"stoa/pred"
)

// carbonTable represents a CarbonData table that is changed in place.
var carbonTable = &writer{name: "carbon", ext: ".table", typed: true}

// changed makes a CarbonData table of the rows, in one or several loads, and changes it in place: it deletes rows,
// compacts segments and merges indexes. After each change it is verified and compared; at the end copies of it are
// damaged and recovered.
func (s *soak) changed(n int) {
	dir := filepath.Join(s.dir, "table"+strconv.Itoa(n))
	spec := carbon.TableSpec{Schema: s.schema}
	if s.r.IntN(3) == 0 {
		spec.SortColumns = []string{"id"}
	}
	if s.r.IntN(4) == 0 {
		spec.Buckets, spec.BucketBy = 1+s.r.IntN(3), []string{"id"}
	}
	opts := map[string]string{"sort columns": fmt.Sprint(spec.SortColumns), "buckets": strconv.Itoa(spec.Buckets)}
	whole := s.lines
	defer func() { s.lines = whole; s.index() }()
	err := carbon.CreateTable(dir, s.dir, spec)
	if err == nil {
		err = s.loads(dir)
	}
	if errors.Is(err, fault.Unsupported) || errors.Is(err, fault.Invalid) {
		s.ops["refused by tables of carbon"]++
		return
	}
	if err != nil {
		s.fail(carbonTable, opts, "load: %v", err)
		return
	}
	s.ops["write"]++
	s.ops["written as table of carbon"]++
	s.same(dir, opts, "load")
	for range s.r.IntN(4) {
		name, change := "delete", s.deleted
		switch s.r.IntN(3) {
		case 1:
			name, change = "compact", s.compacted
		case 2:
			name, change = "merge indexes",
				func(dir string) error { _, err := carbon.MergeIndexes(s.ctx, dir, nil); return err }
		}
		if err := change(dir); err != nil {
			s.fail(carbonTable, opts, "%s: %v", name, err)
			return
		}
		s.ops["change"]++
		s.ops["table of carbon: "+name]++
		s.same(dir, opts, name)
	}
	for range 2 {
		if !s.t.Failed() {
			s.damage(carbonTable, dir, opts, nil)
		}
	}
}

// same: the table is healthy and has the expected rows.
func (s *soak) same(dir string, opts map[string]string, after string) {
	opts["after"] = after
	s.healthy(carbonTable, dir, opts, nil)
	s.compare(carbonTable, dir, opts, nil)
	s.asks(carbonTable, dir, opts, nil)
}

// loads loads the batches into the table: all in one load, or each in a load of its own.
func (s *soak) loads(dir string) error {
	o := carbon.LoadOptions{Tasks: 1 + s.r.IntN(2),
		Opts: map[string]string{"page-rows": strconv.Itoa(1 + s.r.IntN(200))}}
	each := s.r.IntN(2) == 0
	var l *carbon.Load
	for i, b := range s.batches {
		if l == nil {
			var err error
			if l, err = carbon.BeginLoad(s.ctx, dir, s.schema, o); err != nil {
				return err
			}
		}
		if err := l.Write(s.ctx, b); err != nil {
			return errors.Join(err, l.Abort(s.ctx))
		}
		if each || i == len(s.batches)-1 {
			if _, err := l.Close(s.ctx); err != nil {
				return err
			}
			l = nil
		}
	}
	return nil
}

// deleted deletes the rows with ids in a random range.
func (s *soak) deleted(dir string) error {
	from := s.r.IntN(600)
	to := from + s.r.IntN(100)
	filter, err := pred.Parse(fmt.Sprintf("id >= %d and id < %d", from, to))
	if err != nil {
		return err
	}
	t, err := stoa.Open(s.ctx, dir, stoa.OpenOptions{Formats: formats, Opts: map[string]string{"positions": "true"}})
	if err != nil {
		return err
	}
	defer t.Close()
	gone := map[string][]int64{}
	count := int64(0)
	for b, err := range t.Scan(s.ctx, stoa.ScanSpec{Columns: []string{carbon.FileColumn, carbon.RowColumn},
		Filter: filter}) {
		if err != nil {
			return err
		}
		for i := range int(b.NumRows()) {
			file := b.Column(0).(*array.String).Value(i)
			gone[strings.Clone(file)] = append(gone[file], b.Column(1).(*array.Int64).Value(i))
			count++
		}
	}
	left := maps.Clone(s.lines)
	maps.DeleteFunc(left, func(id int64, _ string) bool { return id >= int64(from) && id < int64(to) })
	if want := int64(len(s.lines) - len(left)); count != want {
		return fmt.Errorf("%d rows are to be deleted, the filter found %d", want, count)
	}
	if count == 0 {
		return nil
	}
	var rows []carbon.Deleted
	for _, f := range slices.Sorted(maps.Keys(gone)) {
		slices.Sort(gone[f])
		rows = append(rows, carbon.Deleted{File: f, Rows: gone[f]})
	}
	if n, err := carbon.DeleteRows(s.ctx, dir, rows); err != nil || n != count {
		return fmt.Errorf("%d of %d rows deleted: %v", n, count, err)
	}
	s.lines = left
	s.index()
	return nil
}

// compacted compacts all segments into one.
func (s *soak) compacted(dir string) error {
	plan, err := carbon.PlanCompaction(dir, true, nil)
	if err != nil {
		return err
	}
	for _, c := range plan {
		t, err := stoa.Open(s.ctx, dir, stoa.OpenOptions{Formats: formats,
			Opts: map[string]string{"segments": strings.Join(c.From, ",")}})
		if err != nil {
			return err
		}
		defer t.Close()
		l, err := carbon.BeginCompaction(s.ctx, dir, t.Schema(), c.From, c.To, true, carbon.LoadOptions{})
		if err != nil {
			return err
		}
		for b, err := range t.Scan(s.ctx, stoa.ScanSpec{}) {
			if err == nil {
				err = l.Write(s.ctx, b)
			}
			if err != nil {
				return errors.Join(err, l.Abort(s.ctx))
			}
		}
		if _, err := l.Close(s.ctx); err != nil {
			return err
		}
	}
	return nil
}

// backup writes a Kudu backup, and compares the rows of its Parquet files with the table.
func (s *soak) backup(n int) {
	out := filepath.Join(s.dir, "backup"+strconv.Itoa(n))
	w := &writer{name: kudubackup.Format.Name, typed: true}
	opts := map[string]string{"key": "id", "table": "t", "part-rows": strconv.Itoa(1 + s.r.IntN(300))}
	err := s.create(out, stoa.CreateOptions{Formats: append(slices.Clone(formats), kudubackup.Format), To: w.name,
		Opts: opts})
	if errors.Is(err, fault.Unsupported) || errors.Is(err, fault.Invalid) {
		s.ops["refused by "+w.name]++
		return
	}
	if err != nil {
		s.fail(w, opts, "write: %v", err)
		return
	}
	s.ops["write"]++
	s.ops["written as "+w.name]++
	s.ops["compare"]++
	got := map[int64]string{}
	err = filepath.WalkDir(out, func(p string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(p) != ".parquet" {
			return err
		}
		rows, err := s.rows(p, stoa.OpenOptions{Formats: formats}, stoa.Fail)
		maps.Copy(got, rows)
		return err
	})
	if err != nil || len(got) != len(s.lines) || s.wrong(got) != "" {
		s.fail(w, opts, "%d rows of %d, %v, %s", len(got), len(s.lines), err, s.wrong(got))
	}
}
