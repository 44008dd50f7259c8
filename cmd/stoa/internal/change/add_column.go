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
	var dry *bool
	cmd := &cobra.Command{
		Use:   "add-column STORE#DATABASE.TABLE COLUMN TYPE",
		Short: "Give a CarbonData table another column",
		Long: `Add a column to a CarbonData table, of a type as stoa create has them. Existing files are
not touched: their rows have the default in it, or null.`,
		Example: `  stoa add-column store#sales.orders discount "decimal(10,2)" --default 0
  stoa add-column store#sales.orders tags "array<string>"`,
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
			o := stoa.AddColumnOptions{DryRun: *dry}
			if cmd.Flags().Changed("default") {
				o.Default = &def
			}
			if err = c.AddColumn(cmd.Context(), f, o); err == nil && *dry {
				a.Note("%s: column %s (%s) would be added", args[0], f.Name, f.Type)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&def, "default", "", "the `VALUE` in existing rows")
	dry = dryRun(cmd)
	limitFlags(cmd)
	return cli.First(cmd, "default", "dry-run")
}
