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
	cmd := &cobra.Command{
		Use:     "merge-index STORE#DATABASE.TABLE [--segments N,N]",
		Aliases: []string{"carbonindexmerge"},
		Short:   "Merge the index files of a CarbonData table's segments",
		Long: `Merge the .carbonindex files in each directory of a segment into one .carbonindexmerge, as
newer releases of CarbonData (and stoa load) do when they load: a reader then opens one file instead of
one per task.
No row changes.`,
		Example: "  stoa merge-index store#sales.orders\n  stoa merge-index store#sales.orders --segments 0,1",
		Args:    cli.Wants(cobra.ExactArgs(1)),
	}
	cmd.Flags().StringVar(&segments, "segments", "", "merge only in these segments, `N,N` (default: all of "+
		"the table)")
	return onTable(a, cmd, func(t *target) error {
		o := stoa.MergeIndexesOptions{DryRun: t.dry}
		if segments != "" {
			o.Segments = strings.Split(segments, ",")
		}
		m, err := t.MergeIndexes(t.ctx, o)
		if err != nil {
			return err
		}
		t.Segments, t.FileCount = m.Segments, count(m.Files)
		t.note("%s of %s %s", display.Count(int64(m.Files), "index file"),
			display.Count(int64(len(m.Segments)), "segment"), would(t.dry, "merged"))
		return nil
	}, "segments", "dry-run")
}
