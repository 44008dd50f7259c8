package ls

import (
	"context"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/schemafmt"
	"stoa/cmd/stoa/internal/source"
	"stoa/format"
	"stoa/region"
	"stoa/store/remote"
)

// lsBlocks lists the blocks of Kudu directories.
func lsBlocks(a *cli.App, cmd *cobra.Command, args []string, src *source.SourceFlags, out *output.OutputFlags,
	which string) error {
	ctx := cmd.Context()
	if err := out.Check(output.ReportForms); err != nil {
		return err
	}
	o, err := src.Options(ctx, a, args)
	if err != nil {
		return err
	}
	how, err := stoa.Listing(which, o)
	if err != nil {
		return err
	}
	if args, o, err = source.Together(a, ctx, args, o); err != nil {
		return err
	}
	r := &output.Report{}
	for _, f := range how.Columns {
		r.Cols = append(r.Cols, output.ReportColumn{Name: f})
	}
	var findings []region.Finding
	failed := source.EachPath(a, ctx, cmd, args, func(p string) error {
		some, err := blocksOf(ctx, p, o, how, r)
		findings = append(findings, some...)
		return err
	})
	if failed != nil && len(r.Rows) == 0 {
		return failed
	}
	if err := r.Write(ctx, a, out); err != nil {
		return err
	}
	reading.ReportFindings(a, findings)
	if failed == nil && reading.Damaged(findings) {
		return cli.ErrDamage
	}
	return failed
}

// blocksOf adds the blocks of one path to r.
func blocksOf(ctx context.Context, name string, o stoa.OpenOptions, how format.Listing,
	r *output.Report) ([]region.Finding, error) {
	of := format.OpenOptions{Limits: o.Limits, NoVerify: o.NoVerify, Opts: o.Opts}
	return how.List(ctx, targetOf(o, name), of, func(values []string) {
		doc := schemafmt.Pairs{}
		for i, name := range how.Columns {
			if name == "object" {
				values[i] = remote.Shown(values[i])
			}
			doc = append(doc, [2]string{name, values[i]})
		}
		r.Add(doc, values...)
	})
}
