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
	cmd := &cobra.Command{
		Use:   "delete STORE#DATABASE.TABLE (--where PREDICATE | --segment N)",
		Short: "Delete rows or segments of a CarbonData table",
		Long: `Delete the rows of a CarbonData table that a predicate selects: this is recorded beside the
data files, which stay. Or delete whole segments; stoa clean removes their files later.`,
		Example: `  stoa delete store#sales.orders --where "status = 'void'"
  stoa delete store#sales.orders --segment 1 --segment 2`,
		Args: cli.Wants(cobra.ExactArgs(1)),
	}
	cmd.Flags().StringVar(&where, "where", "", "delete the rows for which `PREDICATE` is true")
	cmd.Flags().StringArrayVar(&segments, "segment", nil, "delete segment `N`; repeatable")
	return onTable(a, cmd, func(t *target) error {
		if (len(segments) > 0) == cmd.Flags().Changed("where") {
			return cli.WrongUse("delete needs --where or --segment, not both")
		}
		if len(segments) > 0 {
			t.Segments = segments
			err := t.DeleteSegments(t.ctx, stoa.DeleteSegmentsOptions{Segments: segments, DryRun: t.dry})
			noun := "segment"
			if len(segments) > 1 {
				noun = "segments"
			}
			return t.wouldBe(err, "%s %s would be deleted", noun, strings.Join(segments, ", "))
		}
		if err := wantsWhere(where); err != nil {
			return err
		}
		n, err := t.Delete(t.ctx, stoa.DeleteOptions{Where: where, DryRun: t.dry})
		if err == nil {
			t.Rows = count(n)
			t.note("%s %s", display.Count(n, "row"), would(t.dry, "deleted"))
		}
		return err
	}, "where", "segment", "dry-run")
}
