package change

import (
	"strings"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
)

func AddPartitionCmd(a *cli.App) *cobra.Command {
	var location string
	cmd := &cobra.Command{
		Use:   "add-partition STORE#DATABASE.TABLE NAME=VALUE...",
		Short: "Add a partition to a CarbonData table",
		Long: `Add a partition without rows or, with --location, one with the data files of a
directory: they stay where they are, as a segment of the table. Give each partition column a value; NAME
alone means null.`,
		Example: `  stoa add-partition store#sales.returns country=SE
  stoa add-partition store#sales.returns country=FR --dry-run`,
		Args: cli.Wants(cobra.MinimumNArgs(2)),
	}
	cmd.Flags().StringVar(&location, "location", "", "use the data files of `DIR` as the partition")
	return onTable(a, cmd, func(t *target) error {
		o := stoa.PartitionOptions{Location: location, DryRun: t.dry}
		var err error
		if o.Partition, err = partitionOf(t.args); err != nil {
			return err
		}
		segment, err := t.AddPartition(t.ctx, o)
		if segment != "" {
			t.Segments = []string{segment}
		}
		switch {
		case err != nil:
		case t.dry:
			t.note("partition %s would be added", strings.Join(t.args, "/"))
		case segment != "":
			t.note("segment %s is partition %s", segment, strings.Join(t.args, "/"))
		}
		return err
	}, "location", "dry-run")
}

func DropPartitionCmd(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drop-partition STORE#DATABASE.TABLE NAME=VALUE...",
		Short: "Remove partitions of a CarbonData table",
		Long: `Remove the rows of all partitions that have these values; give values of some or all
partition columns. NAME alone means null. No data file is read or written.`,
		Example: `  stoa drop-partition store#sales.returns country=DE --dry-run
  stoa drop-partition store#sales.returns country=DE`,
		Args: cli.Wants(cobra.MinimumNArgs(2)),
	}
	return onTable(a, cmd, func(t *target) error {
		o := stoa.PartitionOptions{DryRun: t.dry}
		var err error
		if o.Partition, err = partitionOf(t.args); err != nil {
			return err
		}
		d, err := t.DropPartition(t.ctx, o)
		if err == nil {
			t.Partitions, t.Segments = d.Partitions, d.Segments
			t.note("%s, %s, %s", would(t.dry, "removed"), strings.Join(d.Partitions, ", "),
				display.Count(int64(len(d.Segments)), "segment"))
		}
		return err
	}, "dry-run")
}

func AddSegmentCmd(a *cli.App) *cobra.Command {
	var form string
	cmd := &cobra.Command{
		Use:   "add-segment STORE#DATABASE.TABLE DIR",
		Short: "Make the files of a directory a segment of a CarbonData table",
		Long: `Make the data files in a directory a segment of a table, as ALTER TABLE … ADD SEGMENT
does: they stay where they are, and must not be moved. They need the table's columns, with the same names
and types. If the directory is outside of the table, every reader of the table needs --allow-external.
Parquet files that Spark 3.1 cannot read are refused: other codecs than Snappy and gzip, other encodings
than plain and dictionary (see convert --opt encoding=plain), dates before 1582 and times before 1900 of
files without Spark 3's mark.`,
		Example: `  stoa add-segment store#sales.orders more/ --dry-run
  stoa add-segment store#sales.orders more/`,
		Args: cli.Wants(cobra.ExactArgs(2)),
	}
	cmd.Flags().StringVar(&form, "form", "carbon", "the files are in `FORM`: carbon or parquet")
	return onTable(a, cmd, func(t *target) error {
		o := stoa.AddSegmentOptions{DryRun: t.dry}
		o.Path, o.Format = t.args[0], form
		segment, err := t.AddSegment(t.ctx, o)
		if err == nil {
			t.Segments = []string{segment}
			t.note("%s %s segment %s", t.args[0], map[bool]string{true: "would become", false: "is"}[t.dry], segment)
		}
		return err
	}, "form", "dry-run")
}

func TruncateCmd(a *cli.App) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "truncate STORE#DATABASE.TABLE --yes",
		Short: "Remove all rows of a CarbonData table",
		Long: `Remove all segments from a table; its columns and properties stay. stoa clean removes the
files later; until then, stoa cat --segments all still shows the rows.`,
		Example: "  stoa truncate store#sales.orders --dry-run\n  stoa truncate work/orders --yes",
		Args:    cli.Wants(cobra.ExactArgs(1)),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it")
	return onTable(a, cmd, func(t *target) error {
		if !yes && !t.dry {
			return &cli.UseError{Message: "truncate removes all rows of " + t.Place().Dir,
				Hint: "add --yes to do it"}
		}
		names, err := t.Truncate(t.ctx, stoa.TruncateOptions{DryRun: t.dry})
		if err == nil {
			t.Segments = names
			t.note("%s %s", display.Count(int64(len(names)), "segment"), would(t.dry, "removed"))
		}
		return err
	}, "yes", "dry-run")
}
