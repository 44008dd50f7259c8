package kudu

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu/internal/cluster"
	"stoa/format/kudu/internal/codes"
	"stoa/format/kudu/internal/table"
	"stoa/region"
)

// CensusFields are the columns of the list "census", which has a line for each replica, and for each tablet, range or
// block that belongs to no replica here.
var CensusFields = []string{"table", "table-id", "complete", "tablet", "partition", "server", "place", "state",
	"last-operation", "why", "rows", "may-be-of", "later-log"}

// openList opens the directories for a list of what they hold; latest: whatever moment the options name.
func openList(ctx context.Context, t format.Target, o format.OpenOptions, latest bool) (s *cluster.Servers,
	_ format.OpenOptions, ro table.Options, err error) {
	if ro, err = table.ParseOptions(o.Opts); err != nil {
		return nil, o, ro, err
	}
	if latest {
		ro.At, ro.End = table.Latest, ""
	}
	o.Opts = nil
	if s, err = cluster.Open(ctx, t, o, ro); err != nil {
		return nil, o, ro, err
	}
	if t.Table != "" {
		_, err = s.Pick(ctx, t, "")
	}
	return s, o, ro, err
}

// census lists what the directories of a cluster hold, and what they must. Its findings are those of opening them, and
// one for each table that is incomplete.
func census(ctx context.Context, t format.Target, o format.OpenOptions, add func([]string)) ([]region.Finding,
	error) {
	s, o, _, err := openList(ctx, t, o, false)
	if err != nil {
		return nil, err
	}
	var owners cluster.Owners
	if t.Table == "" {
		if owners, err = s.Owners(ctx, t, o); err != nil {
			return nil, err
		}
	}
	lines, err := s.Census(ctx, t, owners)
	if err != nil {
		return nil, err
	}
	findings := slices.Clone(s.Findings)
	reported := map[string]bool{}
	for _, l := range lines {
		last, rows := "", ""
		if l.Last > 0 {
			last = table.TimeText(l.Last)
		}
		if l.State == cluster.StateUnclaimed && l.Rows >= 0 {
			rows = strconv.FormatInt(l.Rows, 10)
		}
		add([]string{l.Table, l.TableID, strconv.FormatBool(l.Complete), l.Tablet, l.Partition, l.Server, l.Place,
			l.State, last, l.Why, rows, strings.Join(l.MayBeOf, " "),
			l.LaterLog})
		if of := cmp.Or(l.TableID, l.Tablet, l.Place); l.Broken() && !reported[of] {
			reported[of] = true
			what := cmp.Or(l.Table, l.Tablet)
			message := fmt.Sprintf("%s is incomplete here", what)
			if what == "" {
				what, message = "blocks", "there are blocks with rows of no table that is here"
			}
			findings = append(findings, codes.Codes.Finding("kudu.table.incomplete",
				fault.Span{Object: cmp.Or(l.Place, t.Name)}, what, message))
		}
	}
	return findings, nil
}
