package change

import (
	"strings"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/format"
)

func CompactCmd(a *cli.App) *cobra.Command {
	var major, minor, streams, end bool
	var segments string
	cmd := &cobra.Command{
		Use:   "compact STORE#DATABASE.TABLE (--minor | --major | --segments N,N | --streaming)",
		Short: "Merge segments of a CarbonData table into one",
		Long: `Write the rows of several segments, without deleted rows, as one new segment that replaces
them. --minor compacts each four loads, and then each three results, as CarbonData does by default;
--major compacts all segments. stoa clean removes the files of the old segments.

The table's properties COMPACTION_LEVEL_THRESHOLD, COMPACTION_PRESERVE_SEGMENTS,
ALLOWED_COMPACTION_DAYS and MAJOR_COMPACTION_SIZE decide otherwise, as in CarbonData, and so do the
corresponding ones of --carbon-properties, which the table's have precedence over.

--streaming rewrites each finished streaming segment as a segment of columns; --close-streaming also those
that are not finished, if no stream appends to them.`,
		Example: `  stoa compact store#sales.orders --minor
  stoa compact store#sales.orders --segments 0,2`,
		Args: cli.Wants(cobra.ExactArgs(1)),
	}
	cmd.Flags().BoolVar(&minor, "minor", false, "compact each four loads, and each three results of that")
	cmd.Flags().BoolVar(&major, "major", false, "compact all segments")
	cmd.Flags().StringVar(&segments, "segments", "", "compact these segments, `N,N`")
	cmd.Flags().BoolVar(&streams, "streaming", false, "rewrite each finished streaming segment as one of columns")
	cmd.Flags().BoolVar(&end, "close-streaming", false, "also those that are not finished")
	settings := cmd.Flags().String("carbon-properties", "", "take the policy of compactions from `FILE`, a "+
		"carbon.properties, as far as the table has none")
	return onTable(a, cmd, func(t *target) error {
		o := stoa.CompactOptions{DryRun: t.dry}
		o.Settings = *settings
		if o.Major = major; segments != "" {
			o.Segments = strings.Split(segments, ",")
		}
		o.Streams, o.Close = streams || end, end
		if b := map[bool]int{true: 1}; b[major]+b[minor]+b[o.Segments != nil]+b[o.Streams] != 1 {
			return cli.WrongUse("compact needs one of --minor, --major, --segments and --streaming")
		}
		o.Done = func(c format.Compaction) {
			t.note("segments %s became segment %s", strings.Join(c.From, ", "), c.To)
		}
		done, err := t.Compact(t.ctx, o)
		t.Compacted = done
		for _, c := range done {
			if t.dry {
				t.note("segments %s would become segment %s", strings.Join(c.From, ", "), c.To)
			}
		}
		if t.dry && minor && len(done) > 0 {
			t.note("and what they become would be compacted again, three at a time, as long as there are three")
		}
		if err == nil && len(done) == 0 {
			t.note("nothing to compact")
		}
		return err
	}, "minor", "major", "dry-run")
}
