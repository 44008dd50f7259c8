package change

import (
	"strings"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/format"
)

func CompactCmd(a *cli.App) *cobra.Command {
	var major, minor bool
	var segments string
	var dry *bool
	cmd := &cobra.Command{
		Use:   "compact STORE#DATABASE.TABLE (--minor | --major | --segments N,N)",
		Short: "Merge segments of a CarbonData table into one",
		Long: `Write the rows of several segments, without the deleted ones, as one new segment that
takes their place. --minor takes four loads each, then three results each, as CarbonData does by default;
--major takes all. stoa clean removes what was compacted.`,
		Example: `  stoa compact store#sales.orders --minor
  stoa compact store#sales.orders --segments 0,2`,
		Args: cli.Wants(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			t, err := openChanger(a, cmd, args[0])
			if err != nil {
				return err
			}
			o := stoa.CompactOptions{DryRun: *dry}
			if o.Major = major; segments != "" {
				o.Segments = strings.Split(segments, ",")
			}
			if b := map[bool]int{true: 1}; b[major]+b[minor]+b[o.Segments != nil] != 1 {
				return cli.WrongUse("compact needs one of --minor, --major and --segments")
			}
			o.Done = func(c format.Compaction) {
				a.Note("%s: segments %s became segment %s", args[0], strings.Join(c.From, ", "), c.To)
			}
			done, err := t.Compact(ctx, o)
			for _, d := range done {
				if *dry {
					a.Note("%s: segments %s would become segment %s", args[0], strings.Join(d.From, ", "), d.To)
				}
			}
			if err == nil && len(done) == 0 {
				a.Note("%s: nothing to compact", args[0])
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&minor, "minor", false, "compact four loads, or three results, each")
	cmd.Flags().BoolVar(&major, "major", false, "compact all segments")
	cmd.Flags().StringVar(&segments, "segments", "", "compact these segments, `N,N`")
	dry = dryRun(cmd)
	limitFlags(cmd)
	return cli.First(cmd, "minor", "major", "dry-run")
}
