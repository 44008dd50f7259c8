package convert

import (
	"context"
	"strings"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/look"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/fault"
	"stoa/format"
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

// account compares the rows written and those reported as lost with the declared ones, before the output is visible.
func (c *conversion) account(ctx context.Context, a *cli.App, t *stoa.Table, spec stoa.ScanSpec, out int64) error {
	sum, err := t.Account(ctx, spec.Damaged, out, c.Losses)
	if err != nil {
		return err
	}
	if c.accounts = &sum; !sum.Balanced() {
		c.altered = append(c.altered, *sum.Finding())
	}
	if f := sum.Undeclared(); f != nil {
		c.altered = append(c.altered, *f)
	}
	return nil
}

// verifySources adds the errors that verify finds in the sources, and reading did not meet. Recovery always looks for
// them; a conversion of whole tables, where no checksum covers the values.
func (c *conversion) verifySources(a *cli.App, ctx context.Context, t *stoa.Table, paths []string,
	o stoa.OpenOptions, spec stoa.ScanSpec) error {
	if !c.salvage {
		// what is selected may be little, and pages that were to be copied have been verified
		if c.writeFlags.unchecked || c.selects(spec) || c.summary.Copied || len(c.unread) > 0 {
			return nil
		}
		if unproven, err := unproven(a, ctx, t, o); err != nil || !unproven {
			return err
		}
	}
	found, err := c.Doubts(ctx, paths, o, c.noticed)
	for _, f := range found {
		if c.about != nil && !c.about(f) {
			c.aside = append(c.aside, f)
			continue
		}
		c.noticed = append(c.noticed, f)
	}
	if err != nil && !c.salvage && fault.OverBudget(err) {
		a.Note("stoa: the source was read whole, but could not be verified: %s", cli.Line(err))
		return nil
	}
	return err
}

// selects reports whether the scan leaves out rows or columns.
func (c *conversion) selects(spec stoa.ScanSpec) bool {
	return spec.Filter != nil || spec.Limit > 0 || len(spec.Columns) > 0 || c.SelectFlags.Rows != ""
}

// unproven reports whether a source has values that no checksum covers, and states more about them than reading
// compares with them, such as bounds.
func unproven(a *cli.App, ctx context.Context, t *stoa.Table, o stoa.OpenOptions) (bool, error) {
	for _, s := range t.Sources() {
		f := a.Format(s.Format)
		if f == nil || !f.Bounds || f.Unchecked == nil {
			continue
		}
		place := cli.WithoutTable(s.Name)
		what, err := f.Unchecked(ctx, format.Target{Tree: o.Tree, Name: place,
			Table: strings.TrimPrefix(s.Name[len(place):], "#"), Limits: o.Limits},
			format.OpenOptions{Limits: o.Limits, Opts: o.Opts})
		if err != nil || what != "" {
			return what != "", err
		}
	}
	return false, nil
}
