package look

import (
	"github.com/spf13/cobra"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/reading"
)

func HeadCmd(a *cli.App) *cobra.Command {
	r := reading.Reading{}
	cmd := &cobra.Command{
		Use:   "head PATH...",
		Short: "Print the first rows",
		Long: `Print the first rows (of those that --where and --rows select), 10 unless -n says
otherwise.`,
		Example: "  stoa head -n 3 block.cfile\n  stoa head kudu#d_major --columns id,b,v",
		Args:    a.Paths,
		RunE: func(cmd *cobra.Command,
			args []string) error {
			return r.Run(cmd.Context(), a, args, reading.WholeScan)
		},
	}
	r.Register(a, cmd)
	r.RegisterLimit(cmd, 10, "print the first `N` rows")
	return cli.First(cmd, "limit", "columns", "where")
}
