package change

import (
	"strings"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"

	"github.com/spf13/cobra"

	"stoa"
)

func DeleteCmd(a *cli.App) *cobra.Command {
	var where string
	var segments []string
	var dry *bool
	cmd := &cobra.Command{
		Use:   "delete STORE#DATABASE.TABLE (--where PREDICATE | --segment N)",
		Short: "Delete rows or segments of a CarbonData table",
		Long: `Delete the rows of a CarbonData table that a predicate selects: they are recorded beside
the data files. Or delete whole segments: stoa clean then removes their files.`,
		Example: `  stoa delete store#sales.orders --where "status = 'void'"
  stoa delete store#sales.orders --segment 1 --segment 2`,
		Args: cli.Wants(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			c, err := openChanger(a, cmd, args[0])
			if err != nil {
				return err
			}
			if (len(segments) > 0) == cmd.Flags().Changed("where") {
				return cli.WrongUse("delete needs --where or --segment, not both")
			}
			if len(segments) > 0 {
				err = c.DeleteSegments(ctx, stoa.DeleteSegmentsOptions{Segments: segments, DryRun: *dry})
				if err == nil && *dry {
					a.Note("%s: segments %s would be deleted", args[0], strings.Join(segments, ", "))
				}
				return err
			}
			if err := wantsWhere(where); err != nil {
				return err
			}
			n, err := c.Delete(ctx, stoa.DeleteOptions{Where: where, DryRun: *dry})
			if err == nil {
				a.Note("%s: %s %s", args[0], display.Count(n, "row"), would(*dry, "deleted"))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&where, "where", "", "delete the rows for which `PREDICATE` is true")
	cmd.Flags().StringArrayVar(&segments, "segment", nil, "delete segment `N`; repeatable")
	dry = dryRun(cmd)
	limitFlags(cmd)
	return cli.First(cmd, "where", "segment", "dry-run")
}
