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
	var dry *bool
	cmd := &cobra.Command{
		Use:   "add-partition STORE#DATABASE.TABLE NAME=VALUE...",
		Short: "Give a CarbonData table another partition",
		Long: `Make a partition without rows, or, with --location, make the data files of a directory one: they
stay where they are, as a segment of the table. Each partition column needs a value; NAME alone means null.`,
		Example: `  stoa add-partition store#sales.returns country=SE
  stoa add-partition store#sales.returns country=FR --dry-run`,
		Args: cli.Wants(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := openChanger(a, cmd, args[0])
			if err != nil {
				return err
			}
			o := stoa.PartitionOptions{Location: location, DryRun: *dry}
			if o.Partition, err = partitionOf(args[1:]); err != nil {
				return err
			}
			segment, err := c.AddPartition(cmd.Context(), o)
			switch {
			case err != nil:
			case *dry:
				a.Note("%s: partition %s would be added", args[0], strings.Join(args[1:], "/"))
			case segment != "":
				a.Note("%s: segment %s is partition %s", args[0], segment, strings.Join(args[1:], "/"))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&location, "location", "", "the data files of this `DIR` are the partition")
	dry = dryRun(cmd)
	limitFlags(cmd)
	return cli.First(cmd, "location", "dry-run")
}

func DropPartitionCmd(a *cli.App) *cobra.Command {
	var dry *bool
	cmd := &cobra.Command{
		Use:   "drop-partition STORE#DATABASE.TABLE NAME=VALUE...",
		Short: "Remove partitions of a CarbonData table",
		Long: `Remove the rows of all partitions that have these values, of some partition columns or of all;
NAME alone means null. No data file is read or written.`,
		Example: `  stoa drop-partition store#sales.returns country=DE --dry-run
  stoa drop-partition store#sales.returns country=DE`,
		Args: cli.Wants(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := openChanger(a, cmd, args[0])
			if err != nil {
				return err
			}
			o := stoa.PartitionOptions{DryRun: *dry}
			if o.Partition, err = partitionOf(args[1:]); err != nil {
				return err
			}
			d, err := c.DropPartition(cmd.Context(), o)
			if err == nil {
				a.Note("%s: %s, %s, %s", args[0], would(*dry, "removed"), strings.Join(d.Partitions, ", "),
					display.Count(int64(len(d.Segments)), "segment"))
			}
			return err
		},
	}
	dry = dryRun(cmd)
	limitFlags(cmd)
	return cli.First(cmd, "dry-run")
}

func AddSegmentCmd(a *cli.App) *cobra.Command {
	var form string
	var dry *bool
	cmd := &cobra.Command{
		Use:   "add-segment STORE#DATABASE.TABLE DIR",
		Short: "Make the files of a directory a segment of a CarbonData table",
		Long: `Make the data files in a directory a segment of a table, as ALTER TABLE … ADD SEGMENT does: they
stay where they are, and must stay there. They need the table's columns, by names and types. Whoever reads
the table needs --allow-external where the directory is outside of it.`,
		Example: `  stoa add-segment store#sales.orders more/ --dry-run
  stoa add-segment store#sales.orders more/`,
		Args: cli.Wants(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := openChanger(a, cmd, args[0])
			if err != nil {
				return err
			}
			o := stoa.AddSegmentOptions{DryRun: *dry}
			o.Path, o.Format = args[1], form
			segment, err := c.AddSegment(cmd.Context(), o)
			if err == nil {
				a.Note("%s: %s %s segment %s", args[0], args[1],
					map[bool]string{true: "would become", false: "is"}[*dry],
					segment)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&form, "form", "carbon", "the `FORM` of the files: carbon or parquet")
	dry = dryRun(cmd)
	limitFlags(cmd)
	return cli.First(cmd, "form", "dry-run")
}

func TruncateCmd(a *cli.App) *cobra.Command {
	var yes bool
	var dry *bool
	cmd := &cobra.Command{
		Use:   "truncate STORE#DATABASE.TABLE --yes",
		Short: "Remove all rows of a CarbonData table",
		Long: `Remove all segments from a table; its columns and properties stay. stoa clean removes the files
afterwards, and until then stoa cat --segments shows the rows.`,
		Example: "  stoa truncate store#sales.orders --dry-run\n  stoa truncate work/orders --yes",
		Args:    cli.Wants(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := openChanger(a, cmd, args[0])
			if err != nil {
				return err
			}
			if !yes && !*dry {
				return &cli.UseError{Message: "truncate removes all rows of " + c.Place().Dir,
					Hint: "say --yes if that is meant"}
			}
			names, err := c.Truncate(cmd.Context(), stoa.TruncateOptions{DryRun: *dry})
			if err == nil {
				a.Note("%s: %s %s", args[0], display.Count(int64(len(names)), "segment"), would(*dry, "removed"))
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it")
	dry = dryRun(cmd)
	limitFlags(cmd)
	return cli.First(cmd, "yes", "dry-run")
}
