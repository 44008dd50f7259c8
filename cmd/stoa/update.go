package main

import (
	"context"
	"errors"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/spf13/cobra"

	"stoa/format/carbon"
)

func (a *app) updateCmd() *cobra.Command {
	var where string
	var sets []string
	cmd := &cobra.Command{
		Use:   "update STORE#DATABASE.TABLE --set COLUMN=VALUE --where PREDICATE",
		Short: "Change rows of a CarbonData table",
		Long: `Give columns of the rows that a predicate chooses new values: the rows are deleted and added again in a new segment, in one
change. A VALUE is text as in CSV, or 'quoted' as in a PREDICATE, and must be a value of the column exactly; null without quotes is null.
Columns of lists, maps, structs and bytes can be set to null only.`,
		Example: `  stoa update store#sales.orders --set status=paid --set "note=by hand" --where "id = 4711"
  stoa update store#sales.orders --set note=null --where "day < date '2020-01-01'"`,
		Args: wants(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, _, err := existingTable(args[0])
			if err != nil {
				return err
			}
			if len(sets) == 0 {
				return &useError{"--set says what changes; it is missing", "for example --set status=paid"}
			}
			values, err := setValues(sets)
			if err != nil {
				return err
			}
			n, err := a.update(cmd.Context(), dir, where, values)
			if err == nil {
				a.note("%s: %s changed", args[0], count(n, "row"))
			}
			return err
		},
	}
	cmd.Flags().StringArrayVar(&sets, "set", nil, "give a column a value, `COLUMN=VALUE`; repeatable")
	cmd.Flags().StringVar(&where, "where", "", "change the rows for which `PREDICATE` is true (needed)")
	return cmd
}

// update changes rows: what passes the filter is written anew while it is found, and counts when all of it is there.
func (a *app) update(ctx context.Context, dir, where string, values map[string]*string) (int64, error) {
	unlock, err := carbon.LockUpdate(ctx, dir)
	if err != nil {
		return 0, err
	}
	defer unlock()
	t, err := a.openCarbon(ctx, dir, nil)
	if err != nil {
		return 0, err
	}
	sc := t.Schema()
	sc, err = written(dir, sc, values)
	if err := errors.Join(err, t.Close()); err != nil {
		return 0, err
	}
	var l *carbon.Load
	rows, err := a.matching(ctx, dir, where, func(b arrow.RecordBatch) error {
		if l == nil {
			if l, err = carbon.BeginUpdate(ctx, dir, sc, carbon.LoadOptions{}); err != nil {
				return err
			}
		}
		changed := withValues(sc, b, values)
		defer changed.Release()
		return l.Write(ctx, changed)
	})
	if l == nil {
		return 0, err
	}
	if err == nil {
		_, err = carbon.UpdateRows(ctx, dir, rows, l)
	}
	if err != nil {
		err = errors.Join(err, l.Abort(context.WithoutCancel(ctx)))
	}
	return deletedRows(rows), err
}

// setValues reads COLUMN=VALUE. nil is null.
func setValues(sets []string) (map[string]*string, error) {
	out := map[string]*string{}
	for _, s := range sets {
		name, v, ok := strings.Cut(s, "=")
		if strings.HasSuffix(name, " ") { // COLUMN = VALUE, as in a predicate
			v = strings.TrimSpace(v)
		}
		name = strings.ToLower(strings.TrimSpace(name))
		if _, twice := out[name]; twice || !ok || name == "" {
			return nil, wrongUse("--set %s: write it as COLUMN=VALUE, each column once", s)
		}
		switch {
		case v == "null":
			out[name] = nil
			continue
		case len(v) > 1 && v[0] == v[len(v)-1] && (v[0] == '"' || v[0] == '\''):
			v = strings.ReplaceAll(v[1:len(v)-1], v[:1]+v[:1], v[:1])
		}
		out[name] = &v
	}
	return out, nil
}

// written is the schema of the rows that are written: columns that get a value are texts, which the load reads exactly.
func written(dir string, sc *arrow.Schema, values map[string]*string) (*arrow.Schema, error) {
	fields := sc.Fields()
	for name, v := range values {
		at := fieldNamed(sc, name)
		if at < 0 {
			return nil, wrongUse("--set: there is no column %q", name)
		}
		if v == nil {
			continue
		}
		switch t := fields[at].Type; t.ID() {
		case arrow.LIST, arrow.MAP, arrow.STRUCT, arrow.BINARY:
			return nil, wrongUse("--set %s: a column of type %s can be set to null only", name, t)
		}
		if err := carbon.CheckText(dir, name, *v); err != nil {
			return nil, wrongUse("--set %s=%s: %v", name, *v, err)
		}
		fields[at].Type = arrow.BinaryTypes.String
	}
	return arrow.NewSchema(fields, nil), nil
}

func fieldNamed(sc *arrow.Schema, name string) int {
	for i, f := range sc.Fields() {
		if strings.EqualFold(f.Name, name) {
			return i
		}
	}
	return -1
}

// withValues are rows of the table's columns with the new values.
func withValues(sc *arrow.Schema, b arrow.RecordBatch, values map[string]*string) arrow.RecordBatch {
	cols := make([]arrow.Array, sc.NumFields())
	for i := range cols {
		cols[i] = b.Column(i)
	}
	for name, v := range values {
		at := fieldNamed(sc, name)
		cols[at] = constantColumn(sc.Field(at).Type, v, int(b.NumRows()))
		defer cols[at].Release()
	}
	return array.NewRecordBatch(sc, cols, b.NumRows())
}

// constantColumn is a text, or null, n times.
func constantColumn(t arrow.DataType, v *string, n int) arrow.Array {
	b := array.NewBuilder(pool, t)
	defer b.Release()
	if v == nil {
		b.AppendNulls(n)
		return b.NewArray()
	}
	for range n {
		b.(*array.StringBuilder).Append(*v)
	}
	return b.NewArray()
}
