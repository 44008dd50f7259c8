package change

import (
	"strings"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/schemafmt"
	"stoa/format"
)

func RenameCmd(a *cli.App) *cobra.Command {
	var column string
	var dry *bool
	cmd := &cobra.Command{
		Use:   "rename STORE#DATABASE.TABLE NEW [--column COLUMN]",
		Short: "Give a CarbonData table, or a column of it, another name",
		Long: `Give a table another name, NEW, such as STORE#DATABASE.NAME: its directory moves, and nothing
may be at its new place. With --column a column of the table is called NEW; no data file is touched, and
bucket and partition columns keep their names.

Hive's metastore is not told of either: there the table has to be registered anew (REFRESH TABLE).`,
		Example: `  stoa rename store#sales.orders store#sales.purchases --dry-run
  stoa rename store#sales.orders remark --column note --dry-run`,
		Args: cli.Wants(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := openChanger(a, cmd, args[0])
			if err != nil {
				return err
			}
			if column == "" {
				err = c.Rename(cmd.Context(), stoa.RenameOptions{To: args[1], DryRun: *dry})
			} else {
				o := stoa.AlterColumnOptions{DryRun: *dry}
				o.Column, o.Name = column, args[1]
				err = c.AlterColumn(cmd.Context(), o)
			}
			if err == nil && *dry {
				what := args[0]
				if column != "" {
					what += ": column " + column
				}
				a.Note("%s would be called %s", what, args[1])
			}
			return ofName(err)
		},
	}
	cmd.Flags().StringVar(&column, "column", "", "rename this `COLUMN`, and not the table")
	dry = dryRun(cmd)
	limitFlags(cmd)
	return cli.First(cmd, "column", "dry-run")
}

func SetTypeCmd(a *cli.App) *cobra.Command {
	var dry *bool
	cmd := &cobra.Command{
		Use:   "set-type STORE#DATABASE.TABLE COLUMN TYPE",
		Short: "Give a column of a CarbonData table a wider type",
		Long: `Give a column a type that holds all values of its present one: bigint for int, and a decimal
with more digits for a decimal. No data file is touched: what is there is widened when it is read.
Bucket and partition columns keep their types.`,
		Example: `  stoa set-type store#sales.orders price "decimal(14,4)" --dry-run
  stoa set-type store#sales.orders price "decimal(12,2)"`,
		Args: cli.Wants(cobra.MinimumNArgs(3)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := openChanger(a, cmd, args[0])
			if err != nil {
				return err
			}
			f, err := schemafmt.ParseColumn("`" + args[1] + "` " + strings.Join(args[2:], " "))
			if err != nil {
				return err
			}
			o := stoa.AlterColumnOptions{DryRun: *dry}
			o.Column, o.Type = args[1], &f
			if err = c.AlterColumn(cmd.Context(), o); err == nil && *dry {
				a.Note("%s: column %s would be of type %s", args[0], args[1], f.Type)
			}
			return err
		},
	}
	dry = dryRun(cmd)
	limitFlags(cmd)
	return cli.First(cmd, "dry-run")
}

func SetPropertyCmd(a *cli.App) *cobra.Command {
	var dry *bool
	cmd := &cobra.Command{
		Use:   "set-property STORE#DATABASE.TABLE KEY=VALUE...",
		Short: "Set properties of a CarbonData table",
		Long: `Set properties of a table, which later loads follow; a KEY without = removes one. Properties that
describe what is in the files, such as sort_columns and long_string_columns, cannot be set.`,
		Example: `  stoa set-property store#sales.orders table_blocksize=256 comment=purchases
  stoa set-property store#sales.orders comment --dry-run`,
		Args: cli.Wants(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := openChanger(a, cmd, args[0])
			if err != nil {
				return err
			}
			o := stoa.SetPropertiesOptions{Properties: map[string]*string{}, DryRun: *dry}
			for _, s := range args[1:] {
				k, v, set := strings.Cut(s, "=")
				if _, twice := o.Properties[k]; k == "" || twice {
					return cli.WrongUse("%s: expected KEY=VALUE, each KEY once", s)
				}
				if o.Properties[k] = nil; set {
					o.Properties[k] = &v
				}
			}
			if err = c.SetProperties(cmd.Context(), o); err == nil && *dry {
				a.Note("%s: %s would be set", args[0], strings.Join(args[1:], ", "))
			}
			return err
		},
	}
	dry = dryRun(cmd)
	limitFlags(cmd)
	return cli.First(cmd, "dry-run")
}

// partitionOf reads values of partition columns: NAME=VALUE, or NAME alone for null.
func partitionOf(list []string) (format.PartitionValues, error) {
	out := format.PartitionValues{}
	for _, s := range list {
		k, v, set := strings.Cut(s, "=")
		if _, twice := out[k]; k == "" || twice {
			return nil, cli.WrongUse("%s: expected NAME=VALUE, each partition column once", s)
		}
		if out[k] = nil; set {
			out[k] = &v
		}
	}
	return out, nil
}
