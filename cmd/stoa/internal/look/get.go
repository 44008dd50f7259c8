package look

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/reading"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"stoa"
)

// getFlags say which rows to look up.
type getFlags struct {
	rows []int64
	keys []string
}

func GetCmd(a *cli.App) *cobra.Command {
	r := reading.Reading{}
	var g getFlags
	cmd := &cobra.Command{
		Use:   "get PATH... (--row N | --key VALUE,...)",
		Short: "Print the row at a position or with a key",
		Long: `Print the row at a position (the first is 0), or the rows with a key: the columns of the
table's declared order (also Parquet's sorting columns and CarbonData's sort columns) or, if there is
none, its first column. If the format has an index, only the necessary pages are read. The
status is 1 if there is no such row.

For a key of several columns, the first values are enough. A key of one column is taken literally: quotes,
commas and spaces are part of it. A key of several columns is a CSV record: put a value with a comma or a
double quote in double quotes, and double those inside it. Text is not interpreted: 'x' has three
characters. To look up bytes that cannot be typed, use stoa cat --where "k = x'00ff'", which uses the same
index.`,
		Example: "  stoa get block.cfile --row 123\n  stoa get events.parquet --key 2024-02-29",
		Args:    a.Paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(g.rows)+len(g.keys) == 0 {
				return &cli.UseError{Message: "get needs --row N or --key VALUE",
					Hint: "for example: stoa get " + args[0] + " --row 0"}
			}
			if len(g.rows) > 0 && len(g.keys) > 0 {
				return cli.WrongUse("--row and --key do not go together")
			}
			for _, n := range g.rows {
				if n < 0 {
					return cli.WrongUse("--row %d: the first row is 0", n)
				}
			}
			return r.Run(cmd.Context(), a, args, g.seek)
		},
	}
	cmd.Flags().Int64SliceVar(&g.rows, "row", nil, "print the row at position `N`; repeatable")
	cmd.Flags().StringArrayVar(&g.keys, "key", nil,
		"print the rows with the key `VALUE`; if it has several columns, as CSV: a,\"b,c\"; repeatable")
	r.RegisterColumns(a, cmd, &r.SourceFlags)
	r.OutputFlags.Register(cmd, output.RowForms, "default: what the extension of -o says, else table (vertical if it "+
		"is too wide) on a terminal and jsonl elsewhere")
	r.DamageFlags.Register(cmd, "fail")
	r.SourceFlags.Register(a, cmd)
	return cli.First(cmd, "row", "key", "columns")
}

// seek yields the rows that are looked up, one after another.
func (g *getFlags) seek(ctx context.Context, t *stoa.Table, spec stoa.ScanSpec) (cli.Batches, error) {
	var all []cli.Batches
	var names []string
	for _, n := range g.rows {
		all, names = append(all, t.Row(ctx, n, spec)), append(names, fmt.Sprintf("there is no row %d", n))
	}
	for _, k := range g.keys {
		texts, err := SplitKey(k, len(t.Keys()))
		if err != nil {
			return nil, err
		}
		key, err := t.ParseKey(texts)
		if err != nil {
			return nil, err
		}
		all, names = append(all, t.Seek(ctx, key, spec)), append(names, noKey(t, texts))
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
			yield(nil, &cli.MissingError{Err: errors.Join(missing...)})
		}
	}, nil
}

// noKey says that a key was not found, and where it was looked up.
func noKey(t *stoa.Table, values []string) string {
	keys, key := t.Keys(), strings.Join(values, ", ")
	if !t.Keyed() && len(keys) > 0 {
		return fmt.Sprintf("the table has no key, and no row has %s in its first column, %s; --where of stoa "+
			"cat looks in others", key, keys[0])
	}
	return fmt.Sprintf("no row has the key (%s): the key is (%s)", key, strings.Join(keys, ", "))
}

// SplitKey parses a key of several columns as a record of CSV. The key of a single column is used unchanged.
func SplitKey(key string, columns int) (values []string, err error) {
	if columns <= 1 {
		return []string{key}, nil
	}
	for rest, more := key, true; more; {
		var v string
		if !strings.HasPrefix(rest, `"`) {
			v, rest, more = strings.Cut(rest, ",")
			values = append(values, v)
			continue
		}
		rest = rest[1:]
		for {
			part, after, closed := strings.Cut(rest, `"`)
			v, rest = v+part, after
			if !closed {
				return nil, cli.WrongUse("--key %s: a double quote that begins a value is not closed", key)
			}
			if !strings.HasPrefix(rest, `"`) {
				break
			}
			v, rest = v+`"`, rest[1:]
		}
		if more = strings.HasPrefix(rest, ","); !more && rest != "" {
			return nil, cli.WrongUse("--key %s: a value in double quotes is followed by a comma", key)
		}
		values, rest = append(values, v), strings.TrimPrefix(rest, ",")
	}
	return values, nil
}
