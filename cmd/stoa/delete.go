package main

import (
	"github.com/spf13/cobra"

	"stoa/format/carbon"
)

func (a *app) deleteCmd() *cobra.Command {
	var where string
	var segments []string
	cmd := &cobra.Command{
		Use:   "delete STORE#DATABASE.TABLE (--where PREDICATE | --segment N)",
		Short: "Delete rows or segments of a CarbonData table",
		Long: `Delete the rows of a CarbonData table that a predicate chooses: they are noted beside the data files. Or delete whole
segments: stoa clean then removes their files.`,
		Example: `  stoa delete store#sales.orders --where "status = 'void'"
  stoa delete store#sales.orders --segment 1 --segment 2`,
		Args: wants(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			dir, _, err := existingTable(args[0])
			if err != nil {
				return err
			}
			if (len(segments) > 0) == cmd.Flags().Changed("where") {
				return wrongUse("delete needs --where or --segment, not both")
			}
			if len(segments) > 0 {
				return carbon.DeleteSegments(ctx, dir, segments)
			}
			unlock, err := carbon.LockUpdate(ctx, dir)
			if err != nil {
				return err
			}
			defer unlock()
			rows, err := a.matching(ctx, dir, where, nil)
			if err != nil {
				return err
			}
			n, err := carbon.DeleteRows(ctx, dir, rows)
			if err == nil {
				a.note("%s: %s deleted", args[0], count(n, "row"))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&where, "where", "", "delete the rows for which `PREDICATE` is true")
	cmd.Flags().StringArrayVar(&segments, "segment", nil, "delete segment `N`; repeatable")
	return cmd
}
