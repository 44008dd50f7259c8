package change

import (
	"context"
	"fmt"
	"time"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/store/remote"
)

func CleanCmd(a *cli.App) *cobra.Command {
	var dry *bool
	var older time.Duration
	cmd := &cobra.Command{
		Use:   "clean STORE#DATABASE.TABLE [--dry-run]",
		Short: "Remove files that are no longer part of a CarbonData table",
		Long: `Remove the files that are no longer part of a CarbonData table: segments that were deleted
or compacted, loads that were cut off, delete files that newer ones replaced, temporary files. Loads that
are running are left alone. The removed files are listed.

At an address (s3://BUCKET/PREFIX), remove what killed runs of stoa have left there: uploads that were not
completed, which are invisible and take space, and the objects of incomplete directories. What was begun
in the last 24 hours (--older-than) is kept, because a running process may still write it. Uploads of
other programs are also kept.`,
		Example: "  stoa clean store#sales.orders --dry-run\n  stoa clean store#sales.orders\n" +
			"  stoa clean s3://bucket/backup --dry-run",
		Args: cli.Wants(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if remote.Is(args[0]) {
				return cleanAddress(a, cmd.Context(), args[0], older, *dry)
			}
			t, err := openChanger(a, cmd, args[0])
			if err != nil {
				return err
			}
			c, err := t.Clean(cmd.Context(), stoa.CleanOptions{DryRun: *dry})
			for _, f := range c.Files {
				fmt.Fprintln(a.Stdout, f)
			}
			if err == nil {
				a.Note("%s: %s, %s, %s %s", args[0], display.Count(int64(len(c.Segments)), "segment"),
					display.Count(int64(len(c.Files)), "file"), display.BytesText(c.Bytes), would(*dry, "removed"))
			}
			return err
		},
	}
	dry = dryRun(cmd)
	cmd.Flags().DurationVar(&older, "older-than", 24*time.Hour, "at an address: remove only what was begun "+
		"`TIME` ago or earlier, such as 90m")
	limitFlags(cmd)
	return cli.First(cmd, "dry-run", "older-than")
}

// cleanAddress removes what killed processes have left behind at an address.
func cleanAddress(a *cli.App, ctx context.Context, address string, older time.Duration, dry bool) error {
	uploads, objects := 0, 0
	err := a.Remote().Clean(ctx, address, time.Now().Add(-older), dry, func(l remote.Leftover) error {
		what := ""
		switch {
		case l.Upload:
			what = "  (an upload that was not completed)"
			uploads++
		case l.Complete:
			what = "  (what it is about is whole)"
			objects++
		default:
			objects++
		}
		_, err := fmt.Fprintf(a.Stdout, "%s%s\n", l.Name, what)
		return err
	})
	if err == nil {
		a.Note("%s: %s, %s %s", cli.ShownAddress(address), display.Count(int64(uploads), "upload"),
			display.Count(int64(objects), "object"), would(dry, "removed"))
	}
	return err
}
