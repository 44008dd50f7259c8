package table

import (
	"context"
	"errors"
	"path"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/internal/check"
	"stoa/region"
	"stoa/store"
)

// Recovery finds the blocklets of a data file whose header or footer is damaged: see datafile.RecoverFile. In a table
// it also handles a damaged tablestatus (every segment with a directory is read), a damaged update status (the newest
// intact one is used, with all newer delete deltas), a damaged delete delta (the block's older deltas are used, and
// rows that only the damaged one deletes reappear), and a damaged schema (data files list their columns). A data file
// of format 1 without its footer is lost.

// RecoverTable opens as much of a target as can be read. The findings are about damage and losses found while opening.
func RecoverTable(ctx context.Context, tg format.Target, op format.OpenOptions) (format.Reader, []region.Finding,
	error) {
	var all []region.Finding
	opened := false
	r, err := reopen(ctx, tg, op, check.New(ctx, tg.Name, layout.Codes, func(f region.Finding) bool {
		if !opened { // damage found later is subject to the damage policy
			all = append(all, f)
		}
		return !opened
	}))
	opened = true
	return r, all, err
}

func reopen(ctx context.Context, tg format.Target, op format.OpenOptions,
	saved *check.Reporter) (format.Reader, error) {
	o, err := ParseOptions(op.Opts)
	if err == nil {
		err = o.Complete(ctx, tg.Tree, op.Limits)
	}
	if err != nil {
		return nil, err
	}
	at := tg
	tg, k, err := Resolve(ctx, at, &o)
	// too uncertain for Resolve, but the user asked for a table
	if err != nil && k == KindNone && at.Table == "" && !store.Failing(err) {
		if is, failed := holdsPartitions(ctx, at.Tree, at.Name); failed != nil || is {
			k, err = KindTable, failed
		}
	}
	if err != nil {
		return nil, err
	}
	switch k {
	case KindFile:
		return OpenFiles(ctx, tg, op, o, []string{tg.Name}, saved)
	case KindFiles:
		t, err := openFolder(ctx, tg, op, o, saved)
		if err != nil {
			return nil, err
		}
		return t, t.checkParts(ctx)
	case KindTable:
		t, err := OpenManaged(ctx, tg.Tree, tg.Name, op, o, saved)
		if err != nil {
			return withoutSchema(ctx, tg, op, o, saved, err)
		}
		if list, err := t.all(ctx); err == nil {
			for _, p := range list { // so that losses are reported now and not when rows are read
				if err := t.checkPart(ctx, p); err != nil {
					return nil, err
				}
				if p.Update != nil {
					if _, err := t.ReadDeletes(ctx, p.Update, path.Dir(p.Name)); err != nil {
						return nil, err
					}
				}
			}
		}
		return t.reader(), nil
	}
	return Open(ctx, tg, op)
}

// withoutSchema opens the data files of a table whose schema cannot be read and whose segments cannot be found.
func withoutSchema(ctx context.Context, tg format.Target, op format.OpenOptions, o ReadOptions,
	saved *check.Reporter, why error) (format.Reader, error) {
	var e *fault.Error
	if !errors.As(why, &e) || e.Class != fault.Corrupt || path.Base(e.At.Object) != "schema" {
		return nil, why
	}
	names, err := FilesBelow(ctx, tg.Tree, tg.Name, 8)
	if err == nil && len(names) == 0 {
		err = why
	}
	if err != nil {
		return nil, err
	}
	saved.Emit(layout.Findingf("carbon.schema.damaged", e.At, tg.Name, "%v: all data files are read "+
		"with their own columns; partitions, deletes and tablestatus are ignored", why))
	return OpenFiles(ctx, tg, op, o, names, saved)
}
