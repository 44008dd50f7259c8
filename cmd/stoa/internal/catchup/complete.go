package catchup

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/format/delta"
	"stoa/format/iceberg"
	"stoa/format/icebergdelta"
	"stoa/internal/content"
	"stoa/store"
	"stoa/store/remote"
)

// read computes the sum of the rows of the table, whose columns are paired with those of the source by m.
func (m *pairs) read(ctx context.Context, o Options, tree store.Tree) (sum content.Sum, err error) {
	t, err := o.open(ctx, tree)
	if err != nil {
		return sum, err
	}
	defer t.Close()
	s := m.plan.Summer(1)
	for b, err := range t.Scan(ctx, stoa.ScanSpec{Unordered: true}) {
		if err != nil {
			return sum, err
		}
		s.Add(b)
	}
	return s.Sum(), nil
}

// open opens the table by the catalogue that the options name.
func (o Options) open(ctx context.Context, tree store.Tree) (*stoa.Table, error) {
	from := iceberg.Format.Name
	if o.Delta {
		from = delta.Format.Name
	}
	return stoa.Open(ctx, filepath.ToSlash(o.Home.dir), stoa.OpenOptions{Formats: o.Formats, From: from, KeepPages: -1,
		Tree: tree})
}

// sum reads the table, and returns its schema and the sum of its rows.
func (o Options) sum(ctx context.Context) (*arrow.Schema, string, error) {
	t, err := o.open(ctx, o.Home.tree)
	if err != nil {
		return nil, "", err
	}
	sc := t.Schema()
	if err := t.Close(); err != nil {
		return nil, "", err
	}
	sum, err := (&pairs{plan: content.Same(sc)}).read(ctx, o, o.Home.tree)
	return sc, sum.String(), err
}

// Same reports whether a table has the rows of its source already. Columns are known by their names, in any order.
func Same(ctx context.Context, o Options) (bool, error) {
	t, err := o.open(ctx, o.Home.tree)
	if err != nil {
		return false, err
	}
	out := t.Schema()
	if err := t.Close(); err != nil {
		return false, err
	}
	m, err := o.mapping(out)
	if err != nil {
		return false, err
	}
	want := m.plan.Summer(0)
	for b, err := range o.fitted() {
		if err != nil {
			return false, err
		}
		want.Add(b)
	}
	got, err := m.read(ctx, o, o.Home.tree)
	return err == nil && want.Sum().Equal(got), err
}

// Refused returns why Run would refuse to change the table, by any of its catalogues; nil if it would not. Without
// o.Schema, columns are not compared.
func Refused(ctx context.Context, o Options) error {
	kinds, err := o.Home.Kinds(ctx)
	if err != nil {
		return err
	}
	o.DryRun = true
	for _, kind := range kinds {
		o.Delta = kind == delta.Format.Name
		c, err := begin(ctx, o, &adding{home: o.Home})
		if err != nil {
			return err
		}
		if o.Schema != nil {
			_, err = o.mapping(c.Schema())
		}
		if err = errors.Join(err, c.Abort(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// Complete gives a table that has only the catalogue of Iceberg, as the run wrote it that was then killed, that of
// Delta over the same files. o.Schema is that of the rows that the run wrote, and want their sum, by which the new
// catalogue is checked before it appears; without them it is checked by what is read through that of Iceberg.
func Complete(ctx context.Context, o Options, want string) error {
	h := o.Home
	name, log, err := icebergdelta.Complete(ctx, h.tree, filepath.ToSlash(h.dir))
	if err != nil {
		return err
	}
	if want == "" {
		if o.Schema, want, err = o.sum(ctx); err != nil {
			return err
		}
	}
	o.Delta = true
	tree := h.with(name, log)
	t, err := o.open(ctx, tree)
	if err != nil {
		return err
	}
	m := &pairs{plan: content.Same(o.Schema).Reading(o.Schema, t.Schema())}
	if err := t.Close(); err != nil {
		return err
	}
	sum, err := m.read(ctx, o, tree)
	if err != nil {
		return err
	}
	if got := sum.String(); len(m.plan.Incomparable()) == 0 && got != want {
		return fmt.Errorf("%s: the rows are not those that were written: checksum %s, want %s", remote.Shown(h.dir),
			got, want)
	}
	if err := h.check(ctx); err != nil {
		return err
	}
	if err := h.commit(ctx, name, log); err != nil {
		return err
	}
	return h.Forget(ctx)
}

// Reread reports whether the rows are those, with this checksum, from which an earlier run wrote a table: in columns of
// the same names and types, in any order.
func Reread(was *arrow.Schema, checksum string, sc *arrow.Schema, rows iter.Seq2[arrow.RecordBatch, error]) bool {
	if was.NumFields() != sc.NumFields() {
		return false
	}
	for _, f := range was.Fields() {
		i := sc.FieldIndices(f.Name)
		if len(i) != 1 || !arrow.TypeEqual(f.Type, sc.Field(i[0]).Type) {
			return false
		}
	}
	sum := content.Between(was, sc).Summer(1)
	for b, err := range rows {
		if err != nil {
			return false
		}
		sum.Add(b)
	}
	return sum.Sum().String() == checksum
}
