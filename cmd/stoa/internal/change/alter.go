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
	cmd := &cobra.Command{
		Use:   "rename STORE#DATABASE.TABLE NEW [--column COLUMN]",
		Short: "Rename a CarbonData table, or a column of it",
		Long: `Rename a table to NEW, such as STORE#DATABASE.NAME: its directory moves, and there must be
nothing at the new place. With --column, a column of the table is renamed to NEW; no data file is
changed. Bucket and partition columns cannot be renamed.

The Hive metastore is not updated: register the table there again (REFRESH TABLE).`,
		Example: `  stoa rename store#sales.orders store#sales.purchases --dry-run
  stoa rename store#sales.orders remark --column note --dry-run`,
		Args: cli.Wants(cobra.ExactArgs(2)),
	}
	cmd.Flags().StringVar(&column, "column", "", "rename this `COLUMN` instead of the table")
	return onTable(a, cmd, func(t *target) error {
		if strings.TrimSpace(t.args[0]) == "" {
			return cli.WrongUse("the new name is blank")
		}
		if column == "" {
			if err := t.withoutJobs(); err != nil {
				return err
			}
			err := t.Rename(t.ctx, stoa.RenameOptions{To: t.args[0], DryRun: t.dry})
			return t.wouldBe(ofName(err), "it would be renamed to %s", t.args[0])
		}
		o := stoa.AlterColumnOptions{DryRun: t.dry}
		o.Column, o.Name = column, t.args[0]
		return t.wouldBe(t.AlterColumn(t.ctx, o), "column %s would be renamed to %s", column, t.args[0])
	}, "column", "dry-run")
}

func SetTypeCmd(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set-type STORE#DATABASE.TABLE COLUMN TYPE",
		Short: "Give a column of a CarbonData table a wider type",
		Long: `Give a column a wider type, which holds all its values: bigint for int, or a decimal with
more digits for a decimal. No data file is changed: values are widened when they are read.
The types of bucket and partition columns cannot be changed.`,
		Example: `  stoa set-type store#sales.orders price "decimal(14,4)" --dry-run
  stoa set-type store#sales.orders price "decimal(12,2)"`,
		Args: cli.Wants(cobra.MinimumNArgs(3)),
	}
	return onTable(a, cmd, func(t *target) error {
		f, err := schemafmt.ParseColumn("`" + t.args[0] + "` " + strings.Join(t.args[1:], " "))
		if err != nil {
			return err
		}
		o := stoa.AlterColumnOptions{DryRun: t.dry}
		o.Column, o.Type = t.args[0], &f
		return t.wouldBe(t.AlterColumn(t.ctx, o), "column %s would be of type %s", t.args[0], f.Type)
	}, "dry-run")
}

func SetPropertyCmd(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set-property STORE#DATABASE.TABLE KEY=VALUE...",
		Short: "Set properties of a CarbonData table",
		Long: `Set properties of a table, which later loads follow; a KEY without = removes the
property. Properties that describe what is in the files, such as sort_columns and long_string_columns,
cannot be set.`,
		Example: `  stoa set-property store#sales.orders table_blocksize=256 comment=purchases
  stoa set-property store#sales.orders comment --dry-run`,
		Args: cli.Wants(cobra.MinimumNArgs(2)),
	}
	return onTable(a, cmd, func(t *target) error {
		values, err := assignments(t.args, "KEY=VALUE, each KEY once")
		if err != nil {
			return err
		}
		o := stoa.SetPropertiesOptions{Properties: values, DryRun: t.dry}
		return t.wouldBe(t.SetProperties(t.ctx, o), "%s would be set", strings.Join(t.args, ", "))
	}, "dry-run")
}

// partitionOf parses values of partition columns: NAME=VALUE, or NAME alone for null.
func partitionOf(list []string) (format.PartitionValues, error) {
	return assignments(list, "NAME=VALUE, each partition column once")
}

// assignments parses values by name: NAME=VALUE, or NAME alone for nil.
func assignments(list []string, expected string) (map[string]*string, error) {
	out := map[string]*string{}
	for _, s := range list {
		k, v, set := strings.Cut(s, "=")
		if _, duplicate := out[k]; k == "" || duplicate {
			return nil, cli.WrongUse("%s: expected %s", s, expected)
		}
		if out[k] = nil; set {
			out[k] = &v
		}
	}
	return out, nil
}
