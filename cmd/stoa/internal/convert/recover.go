package convert

import (
	"github.com/spf13/cobra"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/look"
)

func RecoverCmd(a *cli.App) *cobra.Command {
	var c conversion
	var sealed string
	var all allFlags
	cmd := &cobra.Command{
		Use:   "recover PATH -o OUT",
		Short: "Write what can still be read of a damaged file to a new one",
		Long: `Write every row that can still be read to OUT, even if the footer or an index is damaged or
lost. The source is not changed. Rows with a lost cell are left out; with --damaged null-cells they are
kept, with null in the lost cells. What was lost is listed on standard error, or in --manifest.

OUT is read back before it appears, as by stoa convert. The rows written and the rows lost must add up to
those that the source declares; otherwise that is an error, too. The status is 0 if PATH is intact, and 3
if stoa verify would find an error in it, even if every row was saved. A killed run leaves a file
.stoa-tmp-…-NAME beside its output; the next run to NAME removes it.

With --all, every table below the paths is recovered, as convert --all converts them, and so is every file
that cannot be opened. stoa rescue does the same, and writes a report.`,
		Example: "  stoa recover broken.cfile -o saved.parquet --manifest lost.json\n  stoa recover cut.cfile " +
			"-o saved.csv --source-opt type=int32\n  stoa recover cut.parquet -o saved.parquet --schema " +
			"yesterday.parquet --damaged null-cells",
		Args: a.Paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			if sealed != "" {
				return look.RepairBySeal(a, cmd.Context(), sealed, args, c.out, c.form)
			}
			if all.all {
				c.salvage = true
				return c.runAll(cmd, a, args, all)
			}
			if all.resume || c.fileSize != "" {
				return cli.WrongUse("--resume and --file-size go with --all")
			}
			return c.run(cmd.Context(), a, args, true)
		},
	}
	cmd.Flags().StringVar(&sealed, "seal", "", "restore the files of PATH... by the parity in "+
		"`FILE`, which stoa seal wrote; OUT is a directory, or a file if one was sealed")
	all.register(cmd)
	c.writeFlags.register(a, cmd)
	c.writeFlags.registerPieces(cmd)
	c.RegisterColumns(a, cmd, &c.SourceFlags)
	c.DamageFlags.Register(cmd, "skip-rows")
	c.SourceFlags.Register(a, cmd)
	return cli.First(cmd, "output", "manifest", "damaged")
}
