package health

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/check"
	"stoa/internal/scan"
	"stoa/region"
)

// ByFormat passes on what a format's own verification finds; it returns false if the consumer stopped. An exceeded
// budget, and wrong use, are errors.
func ByFormat(ctx context.Context, f *format.Format, tg format.Target, o format.OpenOptions,
	yield func(region.Finding) bool) (more bool, err error) {
	var limit error // the first budget that was exceeded
	for x := range f.Verify(ctx, tg, o) {
		switch x.Class {
		case fault.Limit:
			limit = cmp.Or(limit, error(fault.Limitf(x.At, x.Path, "%s", x.Message)))
			continue
		case fault.Invalid:
			return true, fault.Invalidf("%s", x.Message)
		}
		if !yield(x) {
			return false, nil
		}
	}
	return true, cmp.Or(ctx.Err(), limit)
}

// Table verifies the files that a table consists of (format.Composite), each by its own format, and then the table.
func Table(ctx context.Context, src scan.Source, tg format.Target, o format.OpenOptions, r *check.Reporter) error {
	var damaged []fault.Span
	var limit error
	if c, ok := src.Reader.(format.Composite); ok {
		for _, m := range c.Members() {
			found, err := member(ctx, m, tg, o, r)
			if fault.OverBudget(err) { // other files may be smaller
				limit, err = cmp.Or(limit, err), nil
			}
			if err != nil || r.Stopped() {
				return err
			}
			damaged = append(damaged, found...)
		}
	}
	// reading runs into the same damage
	again := check.New(ctx, tg.Name, nil, func(f region.Finding) bool {
		if !slices.ContainsFunc(damaged, func(at fault.Span) bool { return overlap(at, f.At) }) {
			r.Emit(f)
		}
		return !r.Stopped()
	})
	return cmp.Or(Verify(ctx, src, o.Depth, again), limit)
}

// member verifies a file, and returns where it is damaged.
func member(ctx context.Context, m format.Member, tg format.Target, o format.OpenOptions,
	r *check.Reporter) (damaged []fault.Span, err error) {
	if _, err := tg.Tree.Stat(ctx, m.Name); m.Format.Verify == nil || errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a file that is missing is damage of the table
	}
	at, own := m.Target(tg, o)
	_, err = ByFormat(ctx, m.Format, at, own, func(f region.Finding) bool {
		if f.Severity == region.Error {
			damaged = append(damaged, f.At)
		}
		f.Part = cmp.Or(f.Part, m.Name)
		r.Emit(f)
		return !r.Stopped()
	})
	return damaged, err
}

func overlap(a, b fault.Span) bool {
	return a.Object == b.Object && (a == b || a.Off < b.End() && b.Off < a.End())
}
