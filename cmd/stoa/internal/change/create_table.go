package change

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/schemafmt"
	"stoa/cmd/stoa/internal/source"
	"stoa/format"
	"stoa/internal/typewords"
	"stoa/store/remote"
)

func CreateCmd(a *cli.App) *cobra.Command {
	var f createFlags
	var dry *bool
	var form *string
	cmd := &cobra.Command{
		Use:   "create STORE#DATABASE.TABLE --schema FILE",
		Short: "Create an empty CarbonData table",
		Long: `Create an empty CarbonData table in a store, or in a directory of its own. FILE has the
columns: a line of name and type for each, with the types of Spark; or the output of schema -f json; or it
is any table that stoa can open. Sort columns, buckets and partitions apply to every load.

The types are boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), string, varchar,
binary, date, timestamp, array<T>, map<K,V> and struct<name:T,...>. Names are converted to lower case.`,
		Example: "  stoa create store#sales.orders --schema orders.txt --sort-columns day,customer " +
			"--property table_blocksize=256\n" +
			`  stoa create store#sales.visits --schema visits.parquet --partition country --bucket 8:customer
  stoa create store#sales.visits --schema visits.parquet --property dictionary_include=country,browser`,
		Args: cli.Wants(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := reporter{app: a, form: *form, result: result{Verb: cmd.Name(), Table: args[0], DryRun: *dry}}
			if err := checkForm(*form); err != nil {
				return err
			}
			if f.schema == "" {
				return &cli.UseError{Message: "--schema says which columns the table has; it is missing",
					Hint: "for example a file with lines like: price decimal(10,2)"}
			}
			sc, err := columnsOf(a, cmd, f.schema)
			if err != nil {
				return err
			}
			spec, err := f.options(*dry)
			if err != nil {
				return err
			}
			o := stoa.OpenOptions{Formats: a.Formats, SingleWriter: f.single}
			if r.Table, err = enter(a, cmd, args[0], &o); err == nil {
				err = stoa.CreateTable(cmd.Context(), r.Table, sc, spec, o)
			}
			if err == nil && *dry {
				r.note("a table of %s would be made", display.Count(int64(sc.NumFields()), "column"))
			}
			return r.end(ofName(err))
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.schema, "schema", "", "take the columns from `FILE` (required)")
	fl.StringVar(&f.sort, "sort-columns", "", "sort the rows of each load by these columns, `A,B`")
	fl.StringVar(&f.inverted, "inverted-index", "", "give these sort columns an inverted index, `A,B`")
	fl.StringVar(&f.long, "long-strings", "", "allow these string columns, `A,B`, more than 32,765 bytes per value")
	fl.StringVar(&f.partition, "partition", "", "partition by these columns, `A,B`: a directory for each value")
	fl.StringVar(&f.bucket, "bucket", "", "put rows into N buckets by the hash of these columns, `N:A,B`")
	fl.StringArrayVar(&f.props, "property", nil, "set a property of the table, `KEY=VALUE`; repeatable")
	fl.BoolVar(&f.single, "assume-single-writer", false, "at an address: make the table even if its store cannot "+
		"exclude a second writer")
	dry, form = dryRun(cmd), formFlag(cmd)
	return cli.First(cmd, "schema", "sort-columns", "partition")
}

// createFlags are the flags of create.
type createFlags struct {
	schema, sort, inverted, long, partition, bucket string
	props                                           []string
	single                                          bool
}

func (f *createFlags) options(dry bool) (spec stoa.CreateTableOptions, err error) {
	spec.DryRun = dry
	spec.SortColumns, spec.Inverted, spec.LongStrings, spec.Partition = listed(f.sort), listed(f.inverted),
		listed(f.long), listed(f.partition)
	if spec.Properties, err = source.KeyValues("--property", f.props); err != nil || f.bucket == "" {
		return spec, err
	}
	n, by, ok := strings.Cut(f.bucket, ":")
	if spec.Buckets, err = strconv.Atoi(n); err != nil || !ok || spec.Buckets < 1 {
		return spec, cli.WrongUse("--bucket %s: write it as N:COLUMN,...", f.bucket)
	}
	spec.BucketBy = listed(by)
	return spec, nil
}

// listed splits names at commas.
func listed(s string) []string {
	if s == "" {
		return nil
	}
	names := strings.Split(strings.ToLower(s), ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return names
}

// listsColumns reports whether a file is small enough to be a list of columns.
func listsColumns(a *cli.App, ctx context.Context, name string) bool {
	if remote.Is(name) {
		at, err := a.Stat(ctx, name)
		return err == nil && !at.Dir && at.Size <= source.MaxSchema
	}
	st, err := os.Stat(name)
	return err == nil && st.Mode().IsRegular() && st.Size() <= source.MaxSchema
}

// columnsOf reads columns from a table, or from a file that lists them in Spark's syntax or as schema -f json prints
// them.
func columnsOf(a *cli.App, cmd *cobra.Command, name string) (*arrow.Schema, error) {
	if listsColumns(a, cmd.Context(), name) {
		b, err := a.ReadFile(cmd.Context(), name)
		if err != nil {
			return nil, err
		}
		if fields, err := format.ParseSchema(name, b); err == nil {
			return typewords.Of(fields)
		}
		if fields, err := schemafmt.ParseColumns(string(b)); err == nil {
			return arrow.NewSchema(fields, nil), nil
		} else if !strings.ContainsRune(string(b), 0) && strings.HasSuffix(name, ".txt") {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	t, err := source.OpenAll(a, cmd.Context(), []string{name}, stoa.OpenOptions{Formats: a.Formats})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return t.Schema(), nil
}
