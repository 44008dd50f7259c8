package change

import (
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"

	"github.com/spf13/cobra"

	"stoa"
)

func DropCmd(a *cli.App) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "drop STORE#DATABASE.TABLE --yes",
		Short: "Remove a CarbonData table with all its files",
		Long: `Remove a CarbonData table: its directory with everything in it. This cannot be undone, so
--yes is required. ModifiedTime.mdt of the store is touched, so that other programs notice.`,
		Example: "  stoa drop store#sales.orders --yes\n  stoa drop work/orders --yes",
		Args:    cli.Wants(cobra.ExactArgs(1)),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it")
	return onTable(a, cmd, func(t *target) error {
		if !yes && !t.dry {
			return &cli.UseError{Message: "drop removes " + t.Place().Dir + ", which cannot be undone",
				Hint: "add --yes to do it"}
		}
		if err := t.withoutJobs(); err != nil {
			return err
		}
		d, err := t.Drop(t.ctx, stoa.DropOptions{DryRun: t.dry})
		if err == nil {
			t.FileCount, t.Bytes = count(d.Files), count(d.Bytes)
			t.noteOf(d.Dir, "%s, %s %s", display.Count(d.Files, "file"), display.BytesText(d.Bytes),
				would(t.dry, "removed"))
		}
		return err
	}, "yes", "dry-run")
}

func DropColumnCmd(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drop-column STORE#DATABASE.TABLE COLUMN",
		Short: "Remove a column from a CarbonData table",
		Long: `Remove a column from a CarbonData table. Its values stay in the files but are not read, and
later loads do not have it. Sort, bucket and partition columns cannot be removed.`,
		Example: "  stoa drop-column store#sales.orders note\n  stoa drop-column work/orders note",
		Args:    cli.Wants(cobra.ExactArgs(2)),
	}
	return onTable(a, cmd, func(t *target) error {
		err := t.DropColumn(t.ctx, stoa.DropColumnOptions{Column: t.args[0], DryRun: t.dry})
		return t.wouldBe(err, "column %s would be removed", t.args[0])
	}, "dry-run")
}
