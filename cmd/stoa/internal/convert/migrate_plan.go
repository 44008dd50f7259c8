package convert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/report"
	"stoa/cmd/stoa/internal/rerun"
	"stoa/cmd/stoa/internal/source"
	"stoa/cmd/stoa/internal/survey"
	"stoa/pred"
	"stoa/store"
)

// plan prints what a run would write. A table that cannot be read or written makes the status 1.
func (m *migration) plan(ctx context.Context, tables []oneTable, left []leftTable, wo stoa.CreateOptions) error {
	began := time.Now()
	for i := range tables {
		x := m.tableDoc(&tables[i])
		m.doc.Tables = append(m.doc.Tables, x)
		if err := m.planTable(ctx, &tables[i], x, wo); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			x.fail(cli.InFlags(cli.Line(err)))
		}
	}
	all := &allRun{c: m.c, a: m.a, cmd: m.cmd, state: &rerun.State{}}
	if _, err := all.reportLeft(left); err != nil {
		return err
	}
	m.doc.settle(all.state.Failed)
	m.doc.estimate(m.parallel)
	m.doc.Seconds = time.Since(began).Seconds()
	if err := report.Print(m.a, &m.doc, m.doc.form); err != nil {
		return err
	}
	if all.worst == nil && !m.doc.Complete {
		return cli.ErrFailed
	}
	return all.worst
}

// planTable adds to the plan what is known about a table before it is written.
func (m *migration) planTable(ctx context.Context, t *oneTable, x *migratedTable, wo stoa.CreateOptions) error {
	spec, err := m.c.SelectFlags.Spec()
	if err != nil {
		return err
	}
	if err := m.c.DamageFlags.Apply(&spec); err != nil {
		return err
	}
	table, err := source.OpenAll(m.a, ctx, []string{t.source}, t.opening)
	if err != nil {
		return err
	}
	defer table.Close()
	if n, err := table.Rows(ctx); err == nil && n >= 0 {
		x.Rows = &n
	}
	sc, err := table.ScanSchema(spec)
	if err != nil {
		return err
	}
	out, err := m.outSchema(ctx, sc, wo)
	if err != nil {
		return err
	}
	x.compare(sc, out)
	if m.quick {
		return nil
	}
	if err := m.survey(ctx, table, spec, sc, out, x); err != nil {
		return err
	}
	if x.Rows == nil {
		n, err := table.Count(ctx, spec)
		if err != nil {
			return err
		}
		x.Rows = &n
	}
	return m.sample(ctx, table, spec, sc, wo, x)
}

// trial is the name of a table in memory.
const trial = "trial"

// outSchema returns the schema with which a table is read back, by writing one without rows.
func (m *migration) outSchema(ctx context.Context, sc *arrow.Schema, wo stoa.CreateOptions) (*arrow.Schema, error) {
	tree := store.NewMemory(nil)
	name := trial
	if f := m.a.Format(wo.To); len(f.Extensions) > 0 {
		name += f.Extensions[0]
	}
	wo.Sink, wo.Rows = tree.Sink(name), 0
	w, err := stoa.Create(ctx, name, sc, wo)
	if err != nil {
		return nil, err
	}
	if _, err := w.Close(ctx); err != nil {
		return nil, errors.Join(err, w.Abort(ctx))
	}
	t, err := stoa.Open(ctx, name, stoa.OpenOptions{Formats: m.a.Formats, Tree: tree})
	if err != nil {
		return nil, nil // the format can only be written
	}
	defer t.Close()
	return t.Schema(), nil
}

// survey counts the dates and times of a table.
func (m *migration) survey(ctx context.Context, t *stoa.Table, spec stoa.ScanSpec, sc, out *arrow.Schema,
	x *migratedTable) error {
	all := survey.New(sc, out)
	if !all.Any() {
		return nil
	}
	var fields []arrow.Field
	for _, c := range all.Columns(sc) {
		at := sc.FieldIndices(c)
		if len(at) > 1 {
			return nil // columns of one name: the output will say what it does with them
		}
		fields, spec.Columns = append(fields, sc.Field(at[0])), append(spec.Columns, pred.JoinPath(c))
	}
	spec.Unordered = true
	s := survey.New(arrow.NewSchema(fields, nil), part(fields, out))
	for b, err := range t.Scan(ctx, spec) {
		if err != nil {
			return err
		}
		s.Add(b)
	}
	x.dates(s.Counts())
	return nil
}

// part returns the fields of out with the names of fields; nil if out is nil.
func part(fields []arrow.Field, out *arrow.Schema) *arrow.Schema {
	if out == nil {
		return nil
	}
	list := slices.Clone(fields)
	for i, f := range fields {
		if at := out.FieldIndices(f.Name); len(at) == 1 {
			list[i] = out.Field(at[0])
		}
	}
	return arrow.NewSchema(list, nil)
}

const (
	sampleRows = 20_000
	// sampled is how many tables are sampled; the largest would be better, but sizes are not always known.
	sampled = 50
)

// sample writes the first rows of a table to memory, which shows how long a row takes, and whether values cannot be
// written.
func (m *migration) sample(ctx context.Context, t *stoa.Table, spec stoa.ScanSpec, sc *arrow.Schema,
	wo stoa.CreateOptions, x *migratedTable) error {
	if m.samples++; m.samples > sampled {
		return nil
	}
	spec.Limit = sampleRows
	name := trial
	if f := m.a.Format(wo.To); len(f.Extensions) > 0 {
		name += f.Extensions[0]
	}
	wo.Sink = store.NewMemory(nil).Sink(name)
	began := time.Now()
	w, err := stoa.Create(ctx, name, sc, wo)
	if err != nil {
		return err
	}
	rows := int64(0)
	for b, err := range t.Scan(ctx, spec) {
		if err == nil {
			rows += b.NumRows()
			err = w.Write(ctx, b)
		}
		if err != nil {
			return errors.Join(err, w.Abort(ctx))
		}
	}
	if _, err := w.Close(ctx); err != nil {
		return errors.Join(err, w.Abort(ctx))
	}
	if rows > 0 && x.Rows != nil {
		x.Estimate = time.Since(began).Seconds() * float64(max(*x.Rows, rows)) / float64(rows)
	}
	return nil
}

// compare notes the columns that will have another type, and names that some systems take for one.
func (x *migratedTable) compare(in, out *arrow.Schema) {
	lower := map[string]string{}
	for i, f := range in.Fields() {
		l := strings.ToLower(f.Name)
		if other, ok := lower[l]; ok && other != f.Name {
			x.note(fmt.Sprintf("columns %s and %s differ in capitals only: Spark and Hive take them for one",
				other, f.Name))
		}
		lower[l] = f.Name
		if out == nil || i >= out.NumFields() {
			continue
		}
		if from, to := typeName(f.Type), typeName(out.Field(i).Type); from != to {
			x.Types = append(x.Types, typeChange{f.Name, from, to})
		}
	}
}

// typeName returns the name of a type without its memory layout.
func typeName(t arrow.DataType) string {
	return strings.NewReplacer("large_utf8", "utf8", "utf8_view", "utf8", "string_view", "utf8", "large_binary",
		"binary", "binary_view", "binary", "large_list", "list", "list_view", "list").Replace(display.TypeName(t))
}
