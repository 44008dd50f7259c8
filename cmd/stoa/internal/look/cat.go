package look

import (
	"github.com/spf13/cobra"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/reading"
)

func CatCmd(a *cli.App) *cobra.Command {
	r := reading.Reading{Whole: true}
	var sample sampleFlags
	cmd := &cobra.Command{
		Use:   "cat PATH...",
		Short: "Print the rows",
		Long: `Print the rows of a table: on a terminal as a table (or a line per cell, if that is too
wide), elsewhere as JSON lines; -f says otherwise. Several paths, a glob or a directory of files with the
same columns are one table.

Status 0 means that everything was written. In a pipe, only the status shows that lines (jsonl, csv, tsv)
are incomplete; a JSON array, an Arrow stream or a Parquet file that was cut off shows it. A file of -o
appears only when it is complete.`,
		Example: `  stoa cat sales.parquet --columns day,price --where "price > 3.50 and name like 'a%'"
  stoa cat block.cfile -f csv -o block.csv`,
		Args: a.Paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			return sample.run(cmd, a, &r, args, reading.WholeScan)
		},
	}
	r.Register(a, cmd)
	r.RegisterLimit(cmd, 0, "print `N` rows at most")
	sample.register(cmd)
	return cli.First(cmd, "where", "columns", "format")
}
