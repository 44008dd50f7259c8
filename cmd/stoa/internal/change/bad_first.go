package change

import (
	"context"
	"errors"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/vec"
)

// firstBad returns why a load of t failed with err. Who notices that a column cannot hold a value, and how, depends on
// the types guessed from the texts: so the texts are read once more, without guessing, for the file and the row.
func (l *loading) firstBad(ctx context.Context, c *stoa.Changer, t *stoa.Table, spec stoa.ScanSpec,
	oo stoa.OpenOptions, o stoa.AppendOptions, err error) error {
	switch {
	case !errors.Is(err, fault.Invalid) && !errors.Is(err, fault.Corrupt), !isGuessed(t, oo), l.bad.asked(),
		spec.Filter != nil, spec.Limit > 0, spec.Rows != vec.Range{}: // positions in the file are not those of the rows
		return err
	}
	oo.Opts = withOption(oo.Opts, "types", "string")
	o.DryRun, o.Tasks, o.Bad = true, 1, stoa.BadIgnore
	for _, s := range t.Sources() {
		var bad error
		x := badRecords{action: "ignore", first: func(row int64, why []format.Misfit) error {
			bad = fault.Invalidf("%s: row %d: column %s: %s", s.Name, row, why[0].Column, why[0].Reason)
			return bad
		}}
		o.OnBad = x.add
		if other := l.dryLoad(ctx, c, s.Name, spec, oo, o, &x); bad != nil {
			return bad
		} else if other != nil {
			break
		}
	}
	return err
}

// dryLoad loads one source, without its bad rows.
func (l *loading) dryLoad(ctx context.Context, c *stoa.Changer, path string, spec stoa.ScanSpec, oo stoa.OpenOptions,
	o stoa.AppendOptions, bad *badRecords) error {
	t, err := openFor(l.app, ctx, c, []string{path}, oo, bad)
	if err != nil {
		return err
	}
	defer t.Close()
	sc, err := t.ScanSchema(spec)
	if err != nil {
		return err
	}
	sc = bad.schema(sc)
	_, err = c.Append(ctx, sc, bad.parsed(sc, t.Scan(ctx, spec)), o)
	return err
}
