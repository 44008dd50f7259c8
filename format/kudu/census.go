package kudu

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

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
	"last-operation", "why"}

// census lists what the directories of a cluster hold, and what they must. Its findings are those of opening them, and
// one for each table that is incomplete.
func census(ctx context.Context, t format.Target, o format.OpenOptions, add func([]string)) ([]region.Finding,
	error) {
	ro, err := table.ParseOptions(o.Opts)
	if err != nil {
		return nil, err
	}
	o.Opts = nil
	s, err := cluster.Open(ctx, t, o, ro)
	if err != nil {
		return nil, err
	}
	if t.Table != "" {
		if _, err := s.Pick(ctx, t, ""); err != nil {
			return nil, err
		}
	}
	lines, err := s.Census(ctx, t)
	if err != nil {
		return nil, err
	}
	findings := slices.Clone(s.Findings)
	reported := map[string]bool{}
	for _, l := range lines {
		last := ""
		if l.Last > 0 {
			last = table.TimeText(l.Last)
		}
		add([]string{l.Table, l.TableID, strconv.FormatBool(l.Complete), l.Tablet, l.Partition, l.Server, l.Place,
			l.State, last, l.Why})
		if of := cmp.Or(l.TableID, l.Tablet, l.Place); l.Broken() && !reported[of] {
			reported[of] = true
			what := cmp.Or(l.Table, l.Tablet, "blocks")
			findings = append(findings, codes.Codes.Finding("kudu.table.incomplete",
				fault.Span{Object: cmp.Or(l.Place, t.Name)}, what, fmt.Sprintf("%s is incomplete here", what)))
		}
	}
	return findings, nil
}
