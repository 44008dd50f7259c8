package cluster

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/codes"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/table"
	"stoa/region"
)

// absent is a tablet that a table must have but that is not here.
type absent struct {
	id   string // "": unknown, because only a master knows it
	what string // its partition
}

func (a absent) String() string {
	if a.id == "" {
		return a.what
	}
	return fmt.Sprintf("%s (tablet %s)", a.what, a.id)
}

// Missing returns the tablets that a table must have, according to the catalogue or else the partition schema, but that
// are not here. uncovered has ranges of keys without a tablet; the table may have been created with such gaps. more is
// the number of missing tablets that are not listed.
func (s *Servers) Missing(ts []*table.Tablet) (missing []absent, uncovered []string, more int64) {
	top := table.Newest(ts)
	if s.catalog != nil && s.catalog.tables[top.TableID].id != "" { // the catalogue has all tablets
		for _, e := range s.catalog.absent(top.TableID, ts) {
			missing = append(missing, absent{e.id,
				cmp.Or(top.Partitioning.Text(&top.Schema, &e.partition), "all rows")})
		}
		return missing, nil, 0
	}
	var have []*meta.Tablet
	for _, tb := range ts {
		have = append(have, tb.Tablet)
	}
	sure, perhaps, more := meta.Missing(have)
	for _, g := range sure {
		missing = append(missing, absent{"", cmp.Or(g.Text, "all rows")})
	}
	for _, g := range perhaps {
		uncovered = append(uncovered, g.Text)
	}
	return missing, uncovered, more
}

// WhereTablets returns the span of the directory with superblocks, for findings about missing tablets.
func (s *Servers) WhereTablets() fault.Span {
	return fault.Span{Object: path.Join(s.All[0].MetaDir, fs.TabletMetaDir)}
}

// About returns the findings that may concern a table: all except those about tablets that certainly belong to other
// tables.
func (s *Servers) About(ctx context.Context, ts []*table.Tablet) (out []region.Finding, err error) {
	top := table.Newest(ts).Tablet
	missing, uncovered, _ := s.Missing(ts)
	whole := len(missing)+len(uncovered) == 0
	foreign := map[string]bool{}
	for _, b := range s.broken {
		may := false
		if !whole {
			if may, err = s.mayBeOf(ctx, b, top); err != nil {
				return nil, err
			}
		}
		foreign[b.ID] = !may
	}
	for _, x := range s.Findings {
		tb := s.byID[x.Part]
		other := foreign[x.Part]
		if tb != nil {
			other = tb.TableID != top.TableID
		} else if whole && !other {
			other = s.elsewhere(x, ts)
		}
		if !other || x.Part == meta.SystemCatalogID {
			out = append(out, x)
		}
	}
	return out, nil
}

// elsewhere reports whether a finding is about the directories of servers that hold no tablet of a table.
func (s *Servers) elsewhere(x region.Finding, ts []*table.Tablet) bool {
	found := false
	for _, f := range s.All {
		if !f.Noted(x) {
			continue
		}
		for _, tb := range ts {
			for _, r := range tb.Replicas() {
				if r.FS.Layout.MetaDir == f.MetaDir {
					return false
				}
			}
		}
		found = true
	}
	return found
}

// mayBeOf reports whether tablet b, whose superblock is lost, may belong to the table of tb. If nothing says what its
// columns are, the blocks that no superblock claims do: each rowset has a block for every key column, and for all
// columns if the schema was never changed. If there is no block with rows, or one that cannot be read, any table may
// have it. Another replica of b, if its superblock can be read, says whose it is.
func (s *Servers) mayBeOf(ctx context.Context, b, tb *meta.Tablet) (bool, error) {
	if r := s.byID[b.ID]; r != nil && !r.Rebuilt {
		return r.TableID == tb.TableID, nil
	}
	if !b.MayBeOf(tb) || b.TableID != "" || len(b.Schema.Columns) > 0 {
		return b.MayBeOf(tb), nil
	}
	if s.strays == nil {
		s.strays = []*loose{}
		for _, f := range s.All {
			found, err := s.Loose(ctx, f)
			if err != nil {
				return true, err
			}
			s.strays = append(s.strays, found...)
		}
	}
	known := false
	for _, x := range s.strays {
		if x.Err != nil {
			return true, nil
		}
		known = known || x.Kind == cfile.KindColumn && x.Rows > 0
	}
	need := tb.Schema.Columns
	if tb.SchemaVersion > 0 {
		need = need[:tb.Schema.NumKeys]
	}
	for i := range need {
		if known && !slices.ContainsFunc(s.strays, func(x *loose) bool { return x.hasType(&need[i]) }) {
			return false, nil
		}
	}
	return true, nil
}

// Gaps returns a finding if a table must have tablets that are not here. The tablets that are here are still read;
// option partial suppresses the finding.
func (s *Servers) Gaps(ctx context.Context, ts []*table.Tablet) ([]region.Finding, error) {
	report := func(code string, at fault.Span, layout string, args ...any) ([]region.Finding, error) {
		return []region.Finding{codes.Codes.Finding(code, at, s.NameOf(ts), fmt.Sprintf(layout, args...))}, nil
	}
	missing, uncovered, more := s.Missing(ts)
	if n := int64(len(missing)) + more; n > 0 {
		const most = 8
		var names []string
		for _, g := range missing[:min(len(missing), most)] {
			names = append(names, g.String())
		}
		if n > most {
			names = append(names, "…")
		}
		are := "tablets are"
		if n == 1 {
			are = "tablet is"
		}
		return report("kudu.tablet.missing", s.WhereTablets(),
			"table %s: %d %s not here: %s; partial=true if that is expected", s.NameOf(ts), n, are,
			strings.Join(names, "; "))
	}
	if len(uncovered) == 0 {
		return nil, nil
	}
	for _, b := range s.broken {
		may, err := s.mayBeOf(ctx, b, table.Newest(ts).Tablet)
		if err != nil {
			return nil, err
		}
		if may {
			return report("kudu.tablet.missing", fault.Span{Object: b.Object}, "tablet %s, whose superblock "+
				"cannot be read, may hold rows of table %s (%s); partial=true if that is expected",
				b.ID, s.NameOf(ts), cmp.Or(uncovered[0], "a range"))
		}
	}
	return nil, nil
}
