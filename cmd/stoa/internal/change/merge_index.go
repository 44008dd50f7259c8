package change

import (
	"strings"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"

	"github.com/spf13/cobra"

	"stoa"
)

func MergeIndexCmd(a *cli.App) *cobra.Command {
	var segments string
	var dry *bool
	cmd := &cobra.Command{
		Use:     "merge-index STORE#DATABASE.TABLE [--segments N,N]",
		Aliases: []string{"carbonindexmerge"},
		Short:   "Merge the index files of a CarbonData table's segments",
		Long: `Merge the .carbonindex files of each directory of a segment into one .carbonindexmerge, as
newer releases of CarbonData (and stoa load) do at once: a reader opens one file instead of one per task.
No row changes.`,
		Example: "  stoa merge-index store#sales.orders\n  stoa merge-index store#sales.orders --segments 0,1",
		Args:    cli.Wants(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := openChanger(a, cmd, args[0])
			if err != nil {
				return err
			}
			o := stoa.MergeIndexesOptions{DryRun: *dry}
			if segments != "" {
				o.Segments = strings.Split(segments, ",")
			}
			m, err := c.MergeIndexes(cmd.Context(), o)
			if err != nil {
				return err
			}
			a.Note("%s: %s of %s %s", args[0], display.Count(int64(m.Files), "index file"),
				display.Count(int64(len(m.Segments)), "segment"), would(*dry, "merged"))
			return nil
		},
	}
	cmd.Flags().StringVar(&segments, "segments", "", "only these segments, `N,N` (default: all that count)")
	dry = dryRun(cmd)
	limitFlags(cmd)
	return cli.First(cmd, "segments", "dry-run")
}
