package change

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/status"

	"github.com/apache/arrow-go/v18/arrow"
)

// Compaction are segments and the name of the one that they are compacted into.
type Compaction = format.Compaction

// BeginCompaction begins the compaction of the segments in from to a segment named to. The caller writes their rows and
// closes the load. major is recorded in tablestatus.
func BeginCompaction(ctx context.Context, dir string, sc *arrow.Schema, from []string, to string, major bool,
	o LoadOptions) (*Load, error) {
	o.segment, o.hidden = to, true
	l, err := BeginLoad(ctx, dir, sc, o)
	if err != nil {
		return nil, err
	}
	l.then = func(l *Load, s *status.StatusFile, entry status.StatusEntry) error {
		for _, n := range from {
			e := s.Find(n)
			if e == nil || !e.Counts() {
				return fault.Invalidf("segment %s of %s changed while it was compacted", n, dir)
			}
			e["loadStatus"], e["mergedLoadName"], e["modificationOrDeletionTimestamp"] = status.StatusCompacted, to,
				status.FormatMillis(status.NowMillis())
		}
		if major {
			entry["majorCompacted"] = "true"
		}
		return nil
	}
	return l, nil
}

// PlanCompaction plans compactions of the table in dir: of the segments ids or, if ids is nil, of all segments (major),
// or of each four loads and each three results of minor compactions, which are CarbonData's default thresholds. A
// segment whose rows are not part of the table is Invalid.
func PlanCompaction(dir string, major bool, ids []string) ([]Compaction, error) {
	s, err := readStatus(dir)
	if err != nil {
		return nil, err
	}
	history, err := status.ReadEntries(status.HistoryPath(dir))
	if err != nil {
		return nil, err
	}
	known := slices.Concat(s, history)
	var levels [3][]string
	var all []string
	for _, x := range s {
		e := status.StatusEntry(x)
		name := e.Text("loadName")
		if !e.Counts() || e.Text("fileFormat") != "" {
			continue
		}
		all = append(all, name)
		if _, level, ok := strings.Cut(name, "."); !ok {
			levels[0] = append(levels[0], name)
		} else if n, err := strconv.Atoi(level); err == nil && n <= 2 && e.Text("majorCompacted") != "true" {
			levels[n] = append(levels[n], name)
		}
	}
	for i, n := range ids {
		if !slices.Contains(all, n) {
			return nil, fault.Invalidf("%s has no segment %s that counts", dir, n)
		}
		if slices.Contains(ids[:i], n) {
			return nil, fault.Invalidf("segment %s is named twice", n)
		}
	}
	if ids != nil { // oldest first
		ids = slices.DeleteFunc(slices.Clone(all), func(n string) bool { return !slices.Contains(ids, n) })
	}
	switch {
	case ids != nil:
		return []Compaction{{From: ids, To: mergedName(known, ids[0], 1)}}, nil
	case major && len(all) > 1:
		return []Compaction{{From: all, To: mergedName(known, all[0], 1)}}, nil
	case major:
		return nil, nil
	}
	var out []Compaction
	for level, need := range []int{4, 3} {
		for list := levels[level]; len(list) >= need; list = list[need:] {
			out = append(out, Compaction{From: list[:need], To: mergedName(known, list[0], level+1)})
		}
	}
	return out, nil
}

// mergedName returns the name of the segment that first and others are compacted to: the number of the first, with the
// next level that has never been used.
func mergedName(s status.StatusFile, first string, level int) string {
	whole, _, _ := strings.Cut(first, ".")
	for ; ; level++ {
		if name := fmt.Sprintf("%s.%d", whole, level); s.Find(name) == nil {
			return name
		}
	}
}
