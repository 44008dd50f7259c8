package main

import "github.com/spf13/cobra"

func (a *app) headCmd() *cobra.Command {
	r := reading{}
	cmd := &cobra.Command{
		Use:     "head PATH...",
		Short:   "Print the first rows",
		Long:    "Print the first rows (of those that --where and --rows leave); 10 unless -n says otherwise.",
		Example: "  stoa head -n 3 block.cfile\n  stoa head kudu#d_major --columns id,b,v",
		Args:    a.paths,
		RunE:    func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), a, args, wholeScan) },
	}
	r.register(a, cmd)
	r.registerLimit(cmd, 10, "print the first `N` rows")
	return cmd
}
