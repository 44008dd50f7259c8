package main

import (
	"context"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/format"
	"stoa/region"
)

// lsBlocks lists the blocks of Kudu directories.
func (a *app) lsBlocks(cmd *cobra.Command, args []string, src *sourceFlags, out *outputFlags, which string) error {
	ctx := cmd.Context()
	if err := out.check(reportForms); err != nil {
		return err
	}
	o, err := src.options(ctx, a, args)
	if err != nil {
		return err
	}
	how, err := stoa.Listing(which, o)
	if err != nil {
		return err
	}
	r := &report{}
	for _, f := range how.Columns {
		r.cols = append(r.cols, reportColumn{name: f})
	}
	var findings []region.Finding
	failed := a.eachPath(ctx, cmd, args, func(p string) error {
		some, err := blocksOf(ctx, p, o, how, r)
		findings = append(findings, some...)
		return err
	})
	if failed != nil && len(r.rows) == 0 {
		return failed
	}
	if err := r.write(ctx, a, out); err != nil {
		return err
	}
	a.tellFindings(findings)
	if failed == nil && damaged(findings) {
		return errDamage
	}
	return failed
}

// blocksOf adds the blocks of one path to r.
func blocksOf(ctx context.Context, name string, o stoa.OpenOptions, how format.Listing,
	r *report) ([]region.Finding, error) {
	of := format.OpenOptions{Limits: o.Limits, NoVerify: o.NoVerify, Opts: o.Opts}
	return how.List(ctx, targetOf(o, name), of, func(values []string) {
		doc := pairs{}
		for i, name := range how.Columns {
			doc = append(doc, [2]string{name, values[i]})
		}
		r.add(doc, values...)
	})
}
