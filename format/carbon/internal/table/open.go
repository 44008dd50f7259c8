package table

import (
	"context"
	"errors"
	"path"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/dict"
	"stoa/internal/check"
	"stoa/store"
)

// Open opens tg, which may be a data file, a directory of data files, a table, an index file or a dictionary file.
func Open(ctx context.Context, tg format.Target, op format.OpenOptions) (format.Reader, error) {
	o, err := ParseOptions(op.Opts)
	if err != nil {
		return nil, err
	}
	if err := o.Complete(ctx, tg.Tree, op.Limits); err != nil {
		return nil, err
	}
	tg, k, err := Resolve(ctx, tg, &o)
	if err != nil {
		return nil, err
	}
	switch k {
	case KindFile:
		return OpenFiles(ctx, tg, op, o, []string{tg.Name}, nil)
	case KindFiles:
		return openFolder(ctx, tg, op, o, nil)
	case KindTable:
		t, err := OpenManaged(ctx, tg.Tree, tg.Name, op, o, nil)
		if err != nil {
			return nil, err
		}
		return t.reader(), nil
	case KindDict, KindDictMeta, KindSort:
		return OpenDictionary(ctx, tg, op)
	}
	return openIndex(ctx, tg, op)
}

// OpenManaged opens the table in directory dir. saved receives the findings of recovery; if it is nil, damage is an
// error.
func OpenManaged(ctx context.Context, tree store.Tree, dir string, op format.OpenOptions, o ReadOptions,
	saved *check.Reporter) (*Managed, error) {
	op.Limits = op.Limits.Together()
	t := &Managed{Path: dir, O: o}
	t.Table = &Table{saved: saved, Tree: tree, Name: dir, Opts: op, Files: map[string]*datafile.DataFile{},
		Zone: o.Zone, Blocklet: o.Blocklet, Calendar: o.Calendar}
	t.Opts.Tracer = nil
	var err error
	if t.Dates, err = o.Rule(); err != nil {
		return nil, err
	}
	if t.Status, t.Versioned, err = CurrentStatus(ctx, tree, dir); err != nil {
		return nil, err
	}
	noSchema := t.readSchema(ctx)
	if noSchema != nil && (saved == nil || !errors.Is(noSchema, fault.Corrupt)) {
		return nil, noSchema
	}
	if noSchema == nil && saved != nil {
		if err := t.adoptIDs(ctx); err != nil {
			return nil, err
		}
	}
	err = t.readStatus(ctx)
	for n := 1; errors.Is(err, fault.Corrupt) && n < listings; n++ {
		changed, again := t.readAgain(ctx)
		if !changed {
			break
		}
		err = again
	}
	if err != nil {
		if saved == nil || !errors.Is(err, fault.Corrupt) {
			return nil, err
		}
		if err := t.guessStatus(ctx, err); err != nil {
			return nil, err
		}
	}
	if err := t.askedFor(ctx); err != nil {
		return nil, err
	}
	if noSchema != nil {
		if err := t.guessSchema(ctx, noSchema); err != nil {
			return nil, err
		}
	}
	if o.positions {
		t.addPositions()
	}
	t.Dicts = dict.NewDictionaries(tree, path.Join(dir, "Metadata"), op)
	t.facts()
	return t, nil
}
