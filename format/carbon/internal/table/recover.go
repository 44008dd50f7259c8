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

// Recovery finds the blocklets of a data file of format 3 whose header or footer is damaged: with the index file beside
// it, or one column chunk after the other from the header on, as each says how long its pages are. In a table it also
// copes with a damaged tablestatus (every segment with a directory is taken), a damaged update status (the newest
// intact one is taken, with the delete deltas that are newer), a damaged delete delta (the older ones of its block
// hold, and the rows it deleted come back), and a damaged schema (the data files contain their columns). In formats 1
// and 2 everything is in the footer: without it nothing is found.

// RecoverTable opens as much as can be read of a target.
func RecoverTable(ctx context.Context, tg format.Target, op format.OpenOptions) (format.Reader, []region.Finding,
	error) {
	var all []region.Finding
	opened := false
	r, err := reopen(ctx, tg, op, check.New(ctx, tg.Name, layout.Codes, func(f region.Finding) bool {
		if !opened { // the damage policy covers what reading meets later
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
	// a user who says that it is a table is trusted
	if err != nil && k == KindNone && at.Table == "" && !store.Failing(err) {
		if is, failed := holdsPartitions(ctx, at.Tree, at.Name); failed != nil || is {
			k, err = KindTable, failed
		}
	}
	if err != nil {
		return nil, err
	}
	switch k {
	case kindFile:
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
			for _, p := range list { // so that losses are reported now, and not while rows are read
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

// withoutSchema opens the data files of a table whose schema cannot be read, and whose segments cannot be found.
func withoutSchema(ctx context.Context, tg format.Target, op format.OpenOptions, o ReadOptions,
	saved *check.Reporter, why error) (format.Reader, error) {
	var e *fault.Error
	if !errors.As(why, &e) || e.Class != fault.Corrupt || path.Base(e.At.Object) != "schema" {
		return nil, why
	}
	names, err := FilesBelow(ctx, tg.Tree, tg.Name, 8)
	if err == nil && len(names) == 0 {
		err = why // nothing is left of the table
	}
	if err != nil {
		return nil, err
	}
	saved.Emit(layout.Findingf("carbon.schema.damaged", e.At, tg.Name, "%v: all data files are read "+
		"by the columns that they say; partitions, deletes and the status are not looked at", why))
	return OpenFiles(ctx, tg, op, o, names, saved)
}
