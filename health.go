package stoa

import (
	"context"
	"errors"
	"iter"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
)

// DescribeOptions say what Describe tells.
type DescribeOptions struct {
	OpenOptions
	Pages bool // inside the data pages, too
}

// Describe streams the anatomy of a file: every byte has an owner. Nodes come in pre-order, children with Depth+1.
// When the file is damaged, the nodes that could be read come first and the error last.
func Describe(ctx context.Context, uri string, o DescribeOptions) iter.Seq2[region.Node, error] {
	return func(yield func(region.Node, error) bool) {
		targets, err := resolveAll(ctx, []string{uri}, o.OpenOptions)
		if err != nil {
			yield(region.Node{}, err)
			return
		}
		for _, tg := range targets {
			if tg.format.Describe == nil {
				yield(region.Node{}, fault.Unsupportedf(fault.Span{Object: tg.Name}, "", "the anatomy of %s files is not described", tg.format.Name))
				return
			}
			fo := format.DescribeOptions{OpenOptions: o.internal(), Pages: o.Pages}
			for n, err := range tg.format.Describe(ctx, tg.Target, fo) {
				if !yield(n, err) || err != nil {
					return
				}
			}
		}
	}
}

// Verify reads everything and streams what is wrong or odd: checksums, structure, cross-checks, and bytes that no
// structure claims. It ends with an error only if it could not do its work.
func Verify(ctx context.Context, uri string, o OpenOptions) iter.Seq2[region.Finding, error] {
	return func(yield func(region.Finding, error) bool) {
		targets, err := resolveAll(ctx, []string{uri}, o)
		if err != nil {
			yield(region.Finding{}, err)
			return
		}
		for _, tg := range targets {
			for f, err := range verifyOne(ctx, tg, o) {
				if f.Part == "" {
					f.Part = tg.Name
				}
				if !yield(f, err) || err != nil {
					return
				}
			}
		}
	}
}

func verifyOne(ctx context.Context, tg found, o OpenOptions) iter.Seq2[region.Finding, error] {
	return func(yield func(region.Finding, error) bool) {
		if tg.format.Verify != nil {
			for f := range tg.format.Verify(ctx, tg.Target, o.internal()) {
				if !yield(f, nil) {
					return
				}
			}
			if err := ctx.Err(); err != nil {
				yield(region.Finding{}, err)
			}
			return
		}
		if err := readAll(ctx, tg, o); err != nil {
			f, ok := findingOf(err)
			if !ok {
				yield(region.Finding{}, err)
				return
			}
			yield(f, nil)
		}
	}
}

// readAll is the verification of a format that has none of its own.
func readAll(ctx context.Context, tg found, o OpenOptions) error {
	s, _, err := openOne(ctx, tg, o)
	if err != nil {
		return err
	}
	t := &Table{schema: s.reader.Schema(), sources: []*source{s}}
	defer t.Close()
	for _, err := range t.Scan(ctx, ScanSpec{Alloc: NewPool()}) {
		if err != nil {
			return err
		}
	}
	return nil
}

// findingOf makes a finding of damage; other errors are no findings.
func findingOf(err error) (region.Finding, bool) {
	var e *fault.Error
	if !errors.As(err, &e) || e.Class != fault.Corrupt && e.Class != fault.Limit {
		return region.Finding{}, false
	}
	return region.Finding{Code: "file.unreadable", Severity: region.Error, At: e.At, Path: e.Path, Message: e.Reason,
		Rows: [2]int64{-1, -1}, Lost: -1}, true
}
