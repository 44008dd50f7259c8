package change

import (
	"fmt"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"

	"github.com/spf13/cobra"

	"stoa"
)

func CleanCmd(a *cli.App) *cobra.Command {
	var dry *bool
	cmd := &cobra.Command{
		Use:   "clean STORE#DATABASE.TABLE [--dry-run]",
		Short: "Remove files that are no part of a CarbonData table any more",
		Long: `Remove what is no longer part of a CarbonData table: segments that were deleted or
compacted, loads that were cut off, delete files that newer ones replaced, temporary files. Loads that are
running are left alone. What is removed is listed.`,
		Example: "  stoa clean store#sales.orders --dry-run\n  stoa clean store#sales.orders",
		Args:    cli.Wants(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
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
	limitFlags(cmd)
	return cli.First(cmd, "dry-run")
}
