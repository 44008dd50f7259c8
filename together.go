package stoa

import (
	"context"
	"errors"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
)

// together replaces targets that name the same table in several places of a format whose places may be parts of one by
// one target, where the first of them was.
func together(targets []found) (out []found, err error) {
	for i, tg := range targets {
		same := func(x found) bool { return x.format == tg.format && x.Table == tg.Table }
		switch {
		case !tg.format.Together:
			out = append(out, tg)
			continue
		case slices.ContainsFunc(targets[:i], same):
			continue
		}
		var places []string
		for _, x := range targets {
			if same(x) {
				places = append(places, x.Name)
			}
		}
		if len(places) > 1 {
			if tg.Tree, tg.Name, err = store.Joined(tg.Tree, places); err != nil {
				return nil, fault.Invalidf("these places are read as one: %v", err)
			}
		}
		out = append(out, tg)
	}
	return out, nil
}

// openTogether opens targets as one table, with places that may be parts of one place as one. If these hold several
// tables to which the names apply, each place is opened by itself.
func openTogether(ctx context.Context, targets []found, o OpenOptions) (*Table, error) {
	joined, err := together(targets)
	if err != nil {
		return nil, err
	}
	t, err := openTargets(ctx, joined, o)
	if len(joined) < len(targets) && errors.Is(err, fault.Invalid) {
		t, err = openTargets(ctx, targets, o)
	}
	if err != nil {
		return nil, err
	}
	if err := t.checkCopies(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// checkCopies returns an error if two sources hold the same rows.
func (t *Table) checkCopies() error {
	in := map[string]string{}
	for _, s := range t.sources {
		c, ok := s.reader.(format.Copied)
		if !ok {
			continue
		}
		for _, id := range c.Copies() {
			if other, ok := in[id]; ok {
				return fault.Invalidf("%s and %s both hold %s, whose rows would come twice: name its table "+
					"in the same way for each place, by its id if several tables have its name", other, s.name, id)
			}
			in[id] = s.name
		}
	}
	return nil
}
