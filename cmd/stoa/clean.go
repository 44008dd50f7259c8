package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"stoa"
)

func (a *app) cleanCmd() *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "clean STORE#DATABASE.TABLE [--dry-run]",
		Short: "Remove files that are no part of a CarbonData table any more",
		Long: `Remove what is no part of a CarbonData table any more: segments that were deleted or compacted, loads that were cut off,
notes of deletes that newer ones replaced, temporary files. Loads that go on are left alone. What is removed is listed.`,
		Example: "  stoa clean store#sales.orders --dry-run\n  stoa clean store#sales.orders",
		Args:    wants(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.changer(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			c, err := t.Clean(cmd.Context(), stoa.CleanOptions{DryRun: dry})
			for _, f := range c.Files {
				fmt.Fprintln(a.stdout, f)
			}
			if err == nil {
				a.note("%s: %s, %s, %s", args[0], count(int64(len(c.Segments)), "segment"),
					count(int64(len(c.Files)), "file"), bytesText(c.Bytes))
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "list what would be removed, and remove nothing")
	return cmd
}
