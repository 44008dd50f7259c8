package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"stoa"
)

// getFlags say which rows are sought.
type getFlags struct {
	rows []int64
	keys []string
}

func (a *app) getCmd() *cobra.Command {
	r := reading{}
	var g getFlags
	cmd := &cobra.Command{
		Use:   "get PATH... (--row N | --key VALUE,...)",
		Short: "Print the row at a position or with a key",
		Long: `Print the row at a position (the first is 0), or the rows with a key. Where the format has an index, only the pages
that are needed are read. A key is that of the table's promised order, or its first column; the first values of a
key of several columns are enough. Text may be written without quotes. Both flags can be repeated.
The status is 1 if there is no such row.`,
		Example: "  stoa get block.cfile --row 123\n  stoa get events.parquet --key 2024-02-29",
		Args:    a.paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(g.rows)+len(g.keys) == 0 {
				return &useError{"get needs --row N or --key VALUE", "for example: stoa get " + args[0] + " --row 0"}
			}
			if len(g.rows) > 0 && len(g.keys) > 0 {
				return wrongUse("--row and --key do not go together")
			}
			for _, n := range g.rows {
				if n < 0 {
					return wrongUse("--row %d: the first row is 0", n)
				}
			}
			return r.run(cmd.Context(), a, args, g.seek)
		},
	}
	cmd.Flags().Int64SliceVar(&g.rows, "row", nil, "the row at position `N`; repeatable")
	cmd.Flags().StringArrayVar(&g.keys, "key", nil, "the rows whose key has these `VALUES`, separated by commas; repeatable")
	r.registerColumns(a, cmd, &r.sourceFlags)
	r.outputFlags.register(cmd, rowForms, "default: what the extension of -o says, else table (vertical if it is too wide) on a terminal and jsonl elsewhere")
	r.damageFlags.register(cmd, "fail")
	r.sourceFlags.register(a, cmd)
	return cmd
}

// seek is the rows that are sought, one after the other.
func (g *getFlags) seek(ctx context.Context, t *stoa.Table, spec stoa.ScanSpec) (batches, error) {
	var all []batches
	var names []string
	for _, n := range g.rows {
		all, names = append(all, t.Row(ctx, n, spec)), append(names, fmt.Sprintf("there is no row %d", n))
	}
	for _, k := range g.keys {
		values := splitKey(k, len(t.Keys()))
		all, names = append(all, t.Seek(ctx, values, spec)), append(names, noKey(t, values))
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		var missing []error
		for i, seq := range all {
			n := int64(0)
			for b, err := range seq {
				if err == nil {
					n += b.NumRows()
				}
				if !yield(b, err) || err != nil {
					return
				}
			}
			if n == 0 {
				missing = append(missing, errors.New(names[i]))
			}
		}
		if len(missing) > 0 {
			yield(nil, &missingError{errors.Join(missing...)})
		}
	}, nil
}

// noKey says that a key was not found, and where it was looked for.
func noKey(t *stoa.Table, values []string) string {
	keys, key := t.Keys(), strings.Join(values, ", ")
	if !t.Keyed() && len(keys) > 0 {
		return fmt.Sprintf("the table has no key, and no row has %s in its first column, %s; --where of stoa cat looks in others", key, keys[0])
	}
	return fmt.Sprintf("no row has the key (%s): the key is (%s)", key, strings.Join(keys, ", "))
}

// missingError ends get after the rows that were found have been printed.
type missingError struct{ error }

func (e *missingError) Unwrap() error { return e.error }

// splitKey splits at commas outside of single quotes. The key of a single column is not split.
func splitKey(s string, columns int) []string {
	if columns <= 1 {
		return []string{s}
	}
	var out []string
	for {
		v, rest, more := cutQuoted(s, '\'')
		out = append(out, strings.TrimSpace(v))
		if !more {
			return out
		}
		s = rest
	}
}
