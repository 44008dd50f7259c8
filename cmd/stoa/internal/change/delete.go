package change

import (
	"github.com/spf13/cobra"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"

	"stoa"
)

func DeleteCmd(a *cli.App) *cobra.Command {
	var where string
	var segments []string
	cmd := &cobra.Command{
		Use:   "delete STORE#DATABASE.TABLE (--where PREDICATE | --segment N)",
		Short: "Delete rows or segments of a CarbonData table",
		Long: `Delete the rows of a CarbonData table that a predicate chooses: they are noted beside the data
files. Or delete whole segments: stoa clean then removes their files.`,
		Example: `  stoa delete store#sales.orders --where "status = 'void'"
  stoa delete store#sales.orders --segment 1 --segment 2`,
		Args: cli.Wants(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			c, err := openChanger(a, ctx, args[0])
			if err != nil {
				return err
			}
			if (len(segments) > 0) == cmd.Flags().Changed("where") {
				return cli.WrongUse("delete needs --where or --segment, not both")
			}
			if len(segments) > 0 {
				return c.DeleteSegments(ctx, stoa.DeleteSegmentsOptions{Segments: segments})
			}
			if err := wantsWhere(where); err != nil {
				return err
			}
			n, err := c.Delete(ctx, stoa.DeleteOptions{Where: where})
			if err == nil {
				a.Note("%s: %s deleted", args[0], display.Count(n, "row"))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&where, "where", "", "delete the rows for which `PREDICATE` is true")
	cmd.Flags().StringArrayVar(&segments, "segment", nil, "delete segment `N`; repeatable")
	return cmd
}
