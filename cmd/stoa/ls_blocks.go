package main

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
)

// blockList is a way of listing the blocks of a server's directories.
type blockList struct {
	cols []string
	list func(ctx context.Context, f *kudu.FS, all, wanted []*kudu.Tablet, add func(values []string)) ([]region.Finding, error)
}

// kuduBlocks lists the blocks that superblocks name, with the fields and in the order of `kudu fs list`. A block that is missing, or
// whose footer cannot be read, has empty fields; why is told on standard error, and the status is 3.
var kuduBlocks = blockList{kudu.ListFields[:], func(ctx context.Context, f *kudu.FS, _, wanted []*kudu.Tablet, add func([]string)) (findings []region.Finding, err error) {
	err = f.ListBlocks(ctx, wanted, true, func(l kudu.BlockLine) bool {
		add(l.Values[:])
		if l.Err != nil && l.Place.At.Object != "" { // the others CheckBlocks tells
			if x, ok := findingOf(l.Tablet.ID, l.Err); ok {
				findings = append(findings, x)
			}
		}
		return true
	})
	if err == nil {
		err = f.CheckBlocks(ctx, wanted)
	}
	return findings, err
}}

// kuduUnnamed lists the blocks that no superblock names, and those without a number that lie in containers whose records are lost.
var kuduUnnamed = blockList{[]string{"block-id", "object", "offset", "size", "kind", "type", "rows", "problem"},
	func(ctx context.Context, f *kudu.FS, all, _ []*kudu.Tablet, add func([]string)) ([]region.Finding, error) {
		places, err := f.Unnamed(ctx, all)
		if err != nil && !errors.As(err, new(*fault.Error)) {
			return nil, err
		}
		row := func(id string, at fault.Span, kind cfile.Kind, typ cfile.Type, rows int64, why error) {
			v := []string{id, at.Object, strconv.FormatInt(at.Off, 10), strconv.FormatInt(at.Len, 10), "", "", "", ""}
			if why == nil {
				v[4], v[5], v[6] = kind.String(), typ.String(), maybe(rows)
			} else {
				v[7] = problem(why)
			}
			add(v)
		}
		for _, p := range places {
			src, err := f.OpenBlock(ctx, p)
			if err != nil {
				return nil, err
			}
			r, err := cfile.OpenReader(ctx, src, p.At.Object, format.OpenOptions{})
			id := strconv.FormatUint(p.ID, 10)
			if err != nil {
				row(id, p.At, 0, 0, -1, err)
			} else {
				row(id, p.At, r.Kind(), r.Footer().Type, r.Len(), nil)
			}
			src.Close()
		}
		for _, c := range f.Containers {
			if c.Metadata != "" && !c.Unknown {
				continue // what it holds besides its live blocks was deleted
			}
			carved, err := f.Carve(ctx, c)
			if err != nil && !errors.As(err, new(*fault.Error)) {
				return nil, err
			}
			for _, x := range carved {
				row("", x.At, x.Kind, x.Type, x.Rows, x.Err)
			}
		}
		return nil, ctx.Err()
	}}

// lsBlocks lists the blocks of Kudu directories.
func (a *app) lsBlocks(cmd *cobra.Command, args []string, src *sourceFlags, out *outputFlags, how blockList) error {
	ctx := cmd.Context()
	if err := out.check(reportForms); err != nil {
		return err
	}
	o, err := src.options(ctx, a, args)
	if err != nil {
		return err
	}
	r := &report{}
	for _, f := range how.cols {
		r.cols = append(r.cols, reportColumn{name: f})
	}
	var findings []region.Finding
	failed := a.eachPath(ctx, cmd, args, func(p string) error {
		some, err := a.blocksOf(ctx, p, o, how, r)
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
func (a *app) blocksOf(ctx context.Context, name string, o stoa.OpenOptions, how blockList, r *report) ([]region.Finding, error) {
	place := withoutTable(name)
	table := strings.TrimPrefix(name[len(place):], "#")
	tablet := o.Opts["tablet"]
	fo := kudu.FSOptions{Limits: o.Limits, NoVerify: o.NoVerify}
	given := kudu.Layout{WALDir: o.Opts["wal-dir"], MetaDir: o.Opts["meta-dir"]}
	if dirs := o.Opts["data-dirs"]; dirs != "" {
		given.DataDirs = strings.Split(dirs, ",")
	}
	layouts, err := kudu.Layouts(ctx, o.Tree, place, given, fo)
	if err != nil {
		return nil, err
	}
	if len(layouts) == 0 {
		return nil, fault.Unsupportedf(fault.Span{Object: place}, "", "--blocks and --unnamed are for Kudu directories, and there is none here")
	}
	if err := kudu.CheckUnused(ctx, o.Tree, place, o.Opts); err != nil {
		return nil, &openError{err}
	}
	var findings []region.Finding
	listed, read := false, 0
	var first error
	for _, l := range layouts {
		f, all, err := openServer(ctx, o.Tree, l, fo)
		if errors.Is(err, fault.Unsupported) { // the others are read
			first = cmp.Or(first, err)
			findings = append(findings, kudu.Unreadable(l, err))
			continue
		}
		if err != nil {
			return findings, err
		}
		read++
		var wanted []*kudu.Tablet
		for _, t := range all {
			if (table == "" || table == t.Table || table == t.TableID || table == t.ID) && (tablet == "" || tablet == t.ID) {
				wanted = append(wanted, t)
				listed = true
			}
		}
		some, err := how.list(ctx, f, all, wanted, func(values []string) {
			doc := pairs{}
			for i, name := range how.cols {
				doc = append(doc, [2]string{name, values[i]})
			}
			r.add(doc, values...)
		})
		findings = append(append(findings, some...), f.Findings...)
		if err != nil {
			return findings, err
		}
	}
	if read == 0 {
		return nil, first
	}
	if !listed && tablet != "" {
		return findings, fault.Invalidf("there is no tablet %s of what is named in %s", tablet, place)
	}
	if !listed && table != "" {
		return findings, fault.Invalidf("there is no table or tablet %q in %s", table, place)
	}
	return findings, nil
}

// openServer opens a server's directories and reads its superblocks.
func openServer(ctx context.Context, tree store.Tree, l kudu.Layout, fo kudu.FSOptions) (*kudu.FS, []*kudu.Tablet, error) {
	f, err := kudu.OpenFS(ctx, tree, l, fo)
	if err != nil {
		return nil, nil, err
	}
	all, err := f.Tablets(ctx)
	return f, all, err
}
