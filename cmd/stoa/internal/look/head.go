package look

import (
	"github.com/spf13/cobra"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/reading"
)

func HeadCmd(a *cli.App) *cobra.Command {
	r := reading.Reading{}
	r.ButLast = true
	var sample sampleFlags
	cmd := &cobra.Command{
		Use:   "head PATH...",
		Short: "Print the first rows",
		Long: `Print the first rows (of those that --where and --rows select), 10 unless -n says
otherwise. -n -3 prints all but the last 3; --sample 3 prints any 3 of all rows.`,
		Example: "  stoa head -n 3 block.cfile\n  stoa head kudu#d_major --columns id,b,v",
		Args:    a.Paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			return sample.run(cmd, a, &r, args, butLastRows)
		},
	}
	r.Register(a, cmd)
	r.RegisterLimit(cmd, 10, "print the first `N` rows; -N: all but the last N")
	sample.register(cmd)
	return cli.First(cmd, "limit", "columns", "where")
}
