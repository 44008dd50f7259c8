package change

import (
	"strings"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/schemafmt"

	"github.com/spf13/cobra"

	"stoa"
)

func AddColumnCmd(a *cli.App) *cobra.Command {
	var def string
	cmd := &cobra.Command{
		Use:   "add-column STORE#DATABASE.TABLE COLUMN TYPE",
		Short: "Add a column to a CarbonData table",
		Long: `Add a column to a CarbonData table; stoa help create -v lists the types. Existing files are
not changed: in their rows the column has the default value, or is null.`,
		Example: `  stoa add-column store#sales.orders discount "decimal(10,2)" --default 0
  stoa add-column store#sales.orders tags "array<string>"`,
		Args: cli.Wants(cobra.MinimumNArgs(3)),
	}
	cmd.Flags().StringVar(&def, "default", "", "the column's `VALUE` in existing rows")
	return onTable(a, cmd, func(t *target) error {
		f, err := schemafmt.ParseColumn("`" + t.args[0] + "` " + strings.Join(t.args[1:], " "))
		if err != nil {
			return err
		}
		o := stoa.AddColumnOptions{DryRun: t.dry}
		if cmd.Flags().Changed("default") {
			o.Default = &def
		}
		return t.wouldBe(t.AddColumn(t.ctx, f, o), "column %s (%s) would be added", f.Name, f.Type)
	}, "default", "dry-run")
}
