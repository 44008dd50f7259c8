package change

import (
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"

	"github.com/spf13/cobra"

	"stoa"
)

func DropCmd(a *cli.App) *cobra.Command {
	var yes bool
	var dry *bool
	cmd := &cobra.Command{
		Use:   "drop STORE#DATABASE.TABLE --yes",
		Short: "Remove a CarbonData table with all its files",
		Long: `Remove a CarbonData table: its directory with everything in it. There is no way back, so
--yes is needed. ModifiedTime.mdt of the store is touched, so that others notice.`,
		Example: "  stoa drop store#sales.orders --yes\n  stoa drop work/orders --yes",
		Args:    cli.Wants(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := openChanger(a, cmd, args[0])
			if err != nil {
				return err
			}
			if !yes && !*dry {
				return &cli.UseError{Message: "drop removes " + c.Place().Dir + " for ever",
					Hint: "say --yes if that is meant"}
			}
			d, err := c.Drop(cmd.Context(), stoa.DropOptions{DryRun: *dry})
			if err == nil {
				a.Note("%s: %s, %s %s", d.Dir, display.Count(d.Files, "file"), display.BytesText(d.Bytes),
					would(*dry, "removed"))
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it")
	dry = dryRun(cmd)
	limitFlags(cmd)
	return cli.First(cmd, "yes", "dry-run")
}

func DropColumnCmd(a *cli.App) *cobra.Command {
	var dry *bool
	cmd := &cobra.Command{
		Use:   "drop-column STORE#DATABASE.TABLE COLUMN",
		Short: "Take a column out of a CarbonData table",
		Long: `Remove a column from a CarbonData table. Its values stay in the files, but nobody sees
them; later loads do not have it. Sort, bucket and partition columns cannot be removed.`,
		Example: "  stoa drop-column store#sales.orders note\n  stoa drop-column work/orders note",
		Args:    cli.Wants(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := openChanger(a, cmd, args[0])
			if err != nil {
				return err
			}
			err = c.DropColumn(cmd.Context(), stoa.DropColumnOptions{Column: args[1], DryRun: *dry})
			if err == nil && *dry {
				a.Note("%s: column %s would be taken out", args[0], args[1])
			}
			return err
		},
	}
	dry = dryRun(cmd)
	limitFlags(cmd)
	return cli.First(cmd, "dry-run")
}
