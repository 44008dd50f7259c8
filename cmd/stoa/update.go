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
change. A VALUE is text as in CSV; null without quotes is null.`,
		Example: `  stoa update store#sales.orders --set status=paid --set "note=by hand" --where "id = 4711"
  stoa update store#sales.orders --set discount=null --where "day < date '2020-01-01'"`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, _, err := existingTable(args[0])
			if err != nil {
				return err
			}
			if len(sets) == 0 {
				return &useError{"--set says what changes; it is missing", "for example --set status=paid"}
			}
			values, err := keyValues("--set", sets)
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
func (a *app) update(ctx context.Context, dir, where string, values map[string]string) (int64, error) {
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
	if err := errors.Join(checkSets(sc, values), t.Close()); err != nil {
		return 0, err
	}
	var l *carbon.Load
	rows, err := a.matching(ctx, dir, where, func(b arrow.RecordBatch) error {
		if l == nil {
			if l, err = carbon.BeginUpdate(ctx, dir, sc, carbon.LoadOptions{}); err != nil {
				return err
			}
		}
		changed, err := withValues(sc, b, values)
		if err != nil {
			return err
		}
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

func checkSets(sc *arrow.Schema, values map[string]string) error {
	for name, v := range values {
		at := fieldNamed(sc, name)
		if at < 0 {
			return wrongUse("--set: there is no column %q", name)
		}
		c, err := constantColumn(sc.Field(at).Type, v, 1)
		if err != nil {
			return wrongUse("--set %s=%s: %v", name, v, err)
		}
		c.Release()
	}
	return nil
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
func withValues(sc *arrow.Schema, b arrow.RecordBatch, values map[string]string) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, sc.NumFields())
	for i := range cols {
		cols[i] = b.Column(i)
	}
	for name, v := range values {
		at := fieldNamed(sc, name)
		c, err := constantColumn(sc.Field(at).Type, v, int(b.NumRows()))
		if err != nil {
			return nil, err
		}
		defer c.Release()
		cols[at] = c
	}
	return array.NewRecordBatch(sc, cols, b.NumRows()), nil
}

// constantColumn is a value n times.
func constantColumn(t arrow.DataType, v string, n int) (arrow.Array, error) {
	b := array.NewBuilder(pool, t)
	defer b.Release()
	for range n {
		if v == "null" {
			b.AppendNull()
		} else if err := b.AppendValueFromString(v); err != nil {
			return nil, err
		}
	}
	return b.NewArray(), nil
}
