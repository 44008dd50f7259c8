package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/table"
	"stoa/region"
)

// elsewhere is the cause of errors about tables that the master's catalogue lists but that are in no directory here.
type elsewhere struct{}

func (elsewhere) Error() string {
	return "look in the directories of its tablet servers, which must be given as well"
}

func (elsewhere) Is(target error) bool { return target == format.ErrElsewhere }

// leftovers is the cause of errors about tables that the master's catalogue lists and of which no superblock is left.
type leftovers struct{}

func (leftovers) Error() string {
	return "stoa recover, or rescue, makes rows of their logs and blocks"
}

func (leftovers) Is(target error) bool { return target == errLost }

// Pick finds the tablets of the table that the target names: by name or id, or by the id of a tablet, which is then the
// only tablet returned. "" selects the only table present, not counting sys.catalog. If only is not "", it is the id of
// the one tablet to return.
func (s *Servers) Pick(ctx context.Context, tg format.Target, only string) ([]*table.Tablet, error) {
	what := tg.Table
	var found [][]*table.Tablet
	for _, ts := range s.tablesNamed(what) {
		name := s.NameOf(ts)
		if what == "" && name != meta.SystemCatalog || what == name || what == ts[0].TableID {
			found = append(found, ts)
			continue
		}
		for _, tb := range ts {
			if tb.ID == what {
				found = append(found, []*table.Tablet{tb})
			}
		}
	}
	if what == "" && len(found) == 0 && len(s.broken) == 0 && s.catalog.any() {
		err := fault.Corruptf(fault.Span{Object: s.All[0].MetaDir}, "",
			"the master's catalogue has tables, but none of their tablets is here")
		err.Cause = elsewhere{}
		return nil, err
	}
	if s.catalog != nil && len(found) == 0 {
		for id, e := range s.catalog.tables {
			if ids := s.catalog.named(e, id, what); !e.gone && what != "" && ids != nil {
				if slices.ContainsFunc(ids, s.isBroken) {
					err := fault.Corruptf(fault.Span{Object: s.All[0].MetaDir}, "", "no superblock of table %s can be "+
						"read, which the master's catalogue has (tablets %s)", e.name, strings.Join(ids, ", "))
					err.Cause = leftovers{}
					return nil, err
				}
				what := fmt.Sprintf("table %s, but none of its tablets is here (%s)", e.name, strings.Join(ids, ", "))
				if e.name != tg.Table && id != tg.Table {
					what = fmt.Sprintf("tablet %s of table %s, which is not here", tg.Table, e.name)
				}
				err := fault.Corruptf(fault.Span{Object: s.All[0].MetaDir}, "", "the master's catalogue has %s", what)
				err.Cause = elsewhere{}
				return nil, err
			}
		}
	}
	if len(found) == 0 && what != "" {
		if err := s.lostTable(ctx, what); err != nil {
			return nil, err
		}
	}
	switch {
	case len(found) == 1 && only == "":
		return found[0], nil
	case len(found) == 1:
		for _, tb := range found[0] {
			if tb.ID == only {
				return []*table.Tablet{tb}, nil
			}
		}
		return nil, fault.Invalidf("table %s has no tablet %s here", s.NameOf(found[0]), only)
	}
	return nil, s.unpicked(tg, found)
}

// unpicked returns the error for a target that does not name exactly one table; found are the tables that it may mean.
func (s *Servers) unpicked(tg format.Target, found [][]*table.Tablet) error {
	what := tg.Table
	var names []string
	for _, ts := range s.Tables() {
		name := s.NameOf(ts)
		if ts[0].TableID != meta.SystemCatalogID && !(name == meta.SystemCatalog && ts[0].ID == meta.SystemCatalogID) {
			names = append(names, name)
		}
	}
	switch {
	case len(found) == 0 && len(s.broken) > 0:
		if what != "" {
			what = fmt.Sprintf(" %q", what)
		}
		return fault.Corruptf(fault.Span{Object: s.broken[0].Object}, "superblock",
			"no table or tablet%s with readable superblocks is here; there are %s, and %s whose "+
				"superblocks cannot be read; with the table's schema, rows can be assembled from the blocks: "+
				"option schema=FILE (as stoa schema -f json prints it)",
			what, cmp.Or(strings.Join(names, ", "), "no others"), fault.Count(len(s.broken), "tablet"))
	case len(found) == 0 && len(names) == 0:
		return fault.Invalidf("there are no tablets here, so no tables")
	case len(found) == 0:
		return fault.Invalidf("there is no table or tablet %q; tables are %s", what, strings.Join(names, ", "))
	case what == "":
		for i, n := range names {
			names[i] = tg.Name + "#" + n
		}
		return format.Several(tg.Name, names)
	}
	var ids []string
	for _, ts := range found {
		ids = append(ids, tg.Name+"#"+ts[0].TableID)
	}
	return fault.Invalidf("%d tables are named %q, as of two clusters; their ids tell them apart: %s", len(found), what,
		strings.Join(ids, ", "))
}

// OpenTable opens the table that the target names or, with option schema, the blocks that no superblock names. Problems
// noticed while opening are in the table's findings.
func OpenTable(ctx context.Context, tg format.Target, o format.OpenOptions, ro table.Options) (*table.Table, error) {
	if ro.Schema != "" {
		return openCarved(ctx, tg, o, ro)
	}
	s, ts, done, err := opened(ctx, tg, o, ro)
	if err != nil {
		return nil, err
	}
	defer done()
	for _, tb := range ts {
		if err := tb.Choose(ctx, true, ro); err != nil {
			return nil, err
		}
	}
	whole := Whole(ts, tg.Table, ro)
	gaps, err := s.gapsOf(ctx, ts, whole, ro)
	if err != nil {
		return nil, err
	}
	if whole && len(gaps) == 0 && !ro.Blocks {
		if gaps, err = s.UnclaimedOf(ctx, ts, tg.Table != ""); err != nil {
			return nil, err
		}
	}
	more, found, err := s.more(ctx, tg, o, ts, ro)
	if err != nil {
		return nil, err
	}
	ts, logs, err := s.withoutBlocks(ctx, tg.Tree, ts, ro)
	if err != nil {
		return nil, err
	}
	gaps = slices.Concat(gaps, found, logs)
	ts = slices.DeleteFunc(slices.Concat(ts, more), func(tb *table.Tablet) bool { return !tb.HasData() })
	if len(ts) == 0 {
		return nil, fault.New(fault.Unsupported, fault.Span{Object: tg.Name}, "",
			"all tablets of table %s here are tombstones: they were deleted from this server", tg.Table)
	}
	t, err := table.New(tg.Tree, ts, o, ro)
	if err == nil && ro.End != "" {
		if ro.At, err = endOf(ctx, t, ro.End); err == nil {
			t, err = table.New(tg.Tree, ts, o, ro)
		}
	}
	if err != nil {
		return nil, err
	}
	outside, err := s.moment(ctx, t)
	if err != nil {
		return nil, err
	}
	about, err := s.About(ctx, ts)
	if err != nil {
		return nil, err
	}
	if t.Noticed = slices.Concat(about, gaps); outside != nil {
		t.Noticed = append(t.Noticed, *outside)
	}
	return t, nil
}

// gapsOf is Gaps as the options ask for it, or, for a tablet alone, a finding if it is not ready.
func (s *Servers) gapsOf(ctx context.Context, ts []*table.Tablet, whole bool, ro table.Options) ([]region.Finding,
	error) {
	switch {
	case ro.Gaps:
		return nil, nil
	case whole:
		return s.Gaps(ctx, ts)
	case ts[0].State == meta.TabletReady:
		return nil, nil
	}
	return []region.Finding{ts[0].Note("kudu.tablet.missing", ts[0].At, "no replica here is whole: the state of the "+
		"one that is read is "+ts[0].State.String()+"; partial=true if that is expected")}, nil
}

// Whole reports whether the tablets found by the name what and the options are read as a whole table and not as one
// tablet of it.
func Whole(ts []*table.Tablet, what string, ro table.Options) bool {
	return len(ts) > 1 || ro.Tablet == "" && what != ts[0].ID
}

// RecoverTable opens what is left of a table. Missing tablets are left out. The pages of each block are recovered by
// package cfile, which needs no intact index or footer; the table's schema replaces a lost footer.
func RecoverTable(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, []region.Finding,
	error) {
	ro, err := table.ParseOptions(o.Opts)
	if err != nil {
		return nil, nil, err
	}
	ro.Partial, ro.Rebuild = true, true
	t, err := OpenTable(ctx, tg, o, ro)
	if errors.Is(err, errLost) || errors.Is(err, format.ErrElsewhere) {
		t, err = rebuilt(ctx, tg, o, ro, err)
	}
	if err != nil {
		return nil, nil, err
	}
	t.Recovered, t.Vote = &table.Recovered{Files: map[table.BlockOf]table.RecoveredFile{}}, true
	return t, t.Noticed, nil
}
