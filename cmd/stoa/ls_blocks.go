package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/fault"
	"stoa/format/kudu"
	"stoa/region"
)

// lsBlocks lists the blocks of Kudu directories, with the fields and in the order of `kudu fs list`. A block that is missing, or
// whose footer cannot be read, has empty fields; why is told on standard error, and the status is 3.
func (a *app) lsBlocks(cmd *cobra.Command, args []string, src *sourceFlags, out *outputFlags) error {
	ctx := cmd.Context()
	if err := out.check(reportForms); err != nil {
		return err
	}
	o, err := src.options(ctx, a, args)
	if err != nil {
		return err
	}
	r := &report{}
	for _, f := range kudu.ListFields {
		r.cols = append(r.cols, reportColumn{name: f})
	}
	var findings []region.Finding
	failed := a.eachPath(ctx, cmd, args, func(p string) error {
		some, err := a.blocksOf(ctx, p, o, r)
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
	if failed == nil && lostFindings(findings) {
		return errDamage
	}
	return failed
}

// blocksOf adds the blocks of one path to r.
func (a *app) blocksOf(ctx context.Context, name string, o stoa.OpenOptions, r *report) ([]region.Finding, error) {
	place := withoutTable(name)
	table := strings.TrimPrefix(name[len(place):], "#")
	fo := kudu.FSOptions{Limits: o.Limits, NoVerify: o.NoVerify}
	layouts := []kudu.Layout{{WALDir: o.Opts["wal-dir"], MetaDir: o.Opts["meta-dir"]}}
	if dirs := o.Opts["data-dirs"]; dirs != "" {
		layouts[0].DataDirs = strings.Split(dirs, ",")
	} else if layouts[0].WALDir == "" && layouts[0].MetaDir == "" {
		var err error
		if layouts, err = kudu.FindServers(ctx, o.Tree, place, fo); err != nil {
			return nil, err
		}
	}
	if len(layouts) == 0 {
		return nil, fault.Unsupportedf(fault.Span{Object: place}, "", "--blocks is for Kudu directories, and there is none here")
	}
	var findings []region.Finding
	listed := false
	for _, l := range layouts {
		f, err := kudu.OpenFS(ctx, o.Tree, l, fo)
		if err != nil {
			return findings, err
		}
		all, err := f.Tablets(ctx)
		if err != nil {
			return findings, err
		}
		var tablets []*kudu.Tablet
		for _, t := range all {
			if table == "" || table == t.Table || table == t.TableID || table == t.ID {
				tablets = append(tablets, t)
				listed = true
			}
		}
		err = f.ListBlocks(ctx, tablets, true, func(l kudu.BlockLine) bool {
			doc := pairs{}
			for i, name := range kudu.ListFields {
				doc = append(doc, [2]string{name, l.Values[i]})
			}
			r.add(doc, l.Values[:]...)
			if l.Err != nil && l.Place.At.Object != "" { // the others CheckBlocks tells
				if x, ok := findingOf(l.Tablet.ID, l.Err); ok {
					findings = append(findings, x)
				}
			}
			return true
		})
		if err == nil {
			err = f.CheckBlocks(ctx, tablets)
		}
		findings = append(findings, f.Findings...)
		if err != nil {
			return findings, err
		}
	}
	if !listed && table != "" {
		return findings, fault.Invalidf("there is no table or tablet %q in %s", table, place)
	}
	return findings, nil
}
