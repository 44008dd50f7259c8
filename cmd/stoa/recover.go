package main

import (
	"github.com/spf13/cobra"
)

func (a *app) recoverCmd() *cobra.Command {
	var c conversion
	var sealed string
	cmd := &cobra.Command{
		Use:   "recover PATH -o OUT",
		Short: "Write what can still be read of a damaged file to another",
		Long: `Find again what a damaged footer or index does not tell, and write every row that can be read to OUT. The source is
not touched. Rows with a lost cell are left out; with --damaged null-cells they stay, and the lost cells are null.
A writer that was killed leaves its file beside the place where it wrote, as .stoa-tmp-…-NAME, until the next run to NAME.
OUT is read back before it appears, as convert does it. What was lost is told on standard error, or written to --manifest. The status is 3 if something was lost.`,
		Example: "  stoa recover broken.cfile -o saved.parquet --manifest lost.json\n  stoa recover cut.cfile " +
			"-o saved.csv --source-opt type=int32\n  stoa recover cut.parquet -o saved.parquet --schema " +
			"yesterday.parquet --damaged null-cells",
		Args: a.paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			if sealed != "" {
				return a.mend(cmd.Context(), sealed, args, c.out)
			}
			return c.run(cmd.Context(), a, args, true)
		},
	}
	cmd.Flags().StringVar(&sealed, "seal", "", "make the files of PATH... as they were by the parity of this "+
		"`FILE`, which stoa seal wrote; OUT is a directory, or a file")
	c.writeFlags.register(a, cmd)
	c.registerColumns(a, cmd, &c.sourceFlags)
	c.damageFlags.register(cmd, "skip-rows")
	c.sourceFlags.register(a, cmd)
	return cmd
}
