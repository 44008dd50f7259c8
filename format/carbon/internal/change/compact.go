package change

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/status"
	"stoa/format/carbon/internal/table"
	"stoa/internal/sorted"
	"stoa/store"

	"github.com/apache/arrow-go/v18/arrow"
)

// Compaction are segments and the name of the one that they are compacted into.
type Compaction = format.Compaction

// BeginCompaction begins the compaction of the segments in from to a segment named to. The caller writes their rows and
// closes the load. major is recorded in tablestatus.
func BeginCompaction(ctx context.Context, dir string, sc *arrow.Schema, from []string, to string, major bool,
	o LoadOptions) (*Load, error) {
	if _, _, merged := strings.Cut(to, "."); merged { // else a load's number, which begin assigns
		o.segment, o.hidden = to, true
	}
	o.kept = true
	unlock, err := lockStreams(ctx, dir, from)
	if err != nil {
		return nil, err
	}
	l, err := BeginLoad(ctx, dir, sc, o)
	if err != nil {
		unlock()
		return nil, err
	}
	l.alsoUnlock(unlock)
	l.then = func(l *Load, s *status.StatusFile, entry status.StatusEntry) error {
		if !l.o.hidden {
			if err := sameRows(ctx, dir, from, l.rows); err != nil {
				return err
			}
		}
		for _, n := range from {
			e := s.Find(n)
			if e == nil || !e.Counts() {
				return fault.Invalidf("segment %s of %s changed while it was compacted", n, dir)
			}
			e["loadStatus"], e["modificationOrDeletionTimestamp"] = status.StatusCompacted,
				status.FormatMillis(status.NowMillis())
			e["mergedLoadName"] = l.segment
		}
		if major {
			entry["majorCompacted"] = "true"
		}
		return nil
	}
	return l, nil
}

// policyOf reads the policy from the file settings, unless it is "", and from the table's properties, which have
// precedence, as in CarbonData. A value that CarbonData does not accept is Invalid.
func policyOf(dir, settings string) (p policy, err error) {
	t, err := ReadTableSchema(dir)
	if err != nil {
		return p, err
	}
	given := map[string]string{}
	if settings != "" {
		b, err := os.ReadFile(settings)
		if err != nil {
			return p, err
		}
		given = table.Properties(b)
	}
	p.levels = []int{4, 3}
	for _, x := range policyProperties {
		key, v := x.file, given[x.file]
		for k, own := range t.Properties {
			if strings.EqualFold(k, x.own) {
				key, v = x.own, own
			}
		}
		if v == "" {
			continue
		}
		list, err := x.numbers(key, v)
		if err != nil {
			return p, err
		}
		x.set(&p, list)
	}
	return p, nil
}

// PlanCompaction plans compactions of the table in dir: of the segments ids or, if ids is nil, as the policy of the
// table has it.
func PlanCompaction(dir string, major bool, ids []string) ([]Compaction, error) {
	return planCompaction(dir, format.CompactOptions{Major: major, Segments: ids})
}

// planCompaction plans compactions of the table in dir: of the segments that o names, or of all that the policy permits
// (major), or of each four loads and each three results of minor compactions, which are CarbonData's default
// thresholds. A segment whose rows are not part of the table is Invalid.
func planCompaction(dir string, o format.CompactOptions) ([]Compaction, error) {
	s, err := readStatus(dir)
	if err != nil {
		return nil, err
	}
	history, err := status.ReadEntries(status.HistoryPath(dir))
	if err != nil {
		return nil, err
	}
	known := slices.Concat(s, history)
	if o.Streams {
		return planStreams(dir, s, o.Close)
	}
	var all []status.StatusEntry
	for _, x := range s {
		if e := status.StatusEntry(x); e.Counts() && e.Text("fileFormat") == "" {
			all = append(all, e)
		}
	}
	for i, n := range o.Segments {
		if !slices.ContainsFunc(all, func(e status.StatusEntry) bool { return e.Text("loadName") == n }) {
			return nil, fault.Invalidf("%s has no segment %s that counts", dir, n)
		}
		if slices.Contains(o.Segments[:i], n) {
			return nil, fault.Invalidf("segment %s is named twice", n)
		}
	}
	if o.Segments != nil { // oldest first
		ids := names(slices.DeleteFunc(all, func(e status.StatusEntry) bool {
			return !slices.Contains(o.Segments, e.Text("loadName"))
		}))
		return []Compaction{{From: ids, To: mergedName(known, ids[0], 1)}}, nil
	}
	p, err := policyOf(dir, o.Settings)
	if err != nil {
		return nil, err
	}
	var out []Compaction
	all = p.permitted(all)
	if o.Major {
		for _, list := range p.bySize(all) {
			out = append(out, Compaction{From: list, To: mergedName(known, list[0], 1)})
		}
		return out, nil
	}
	for level, list := range byLevel(all) {
		if level >= len(p.levels) || p.levels[level] < 2 {
			continue
		}
		for need := p.levels[level]; len(list) >= need; list = list[need:] {
			out = append(out, Compaction{From: list[:need], To: mergedName(known, list[0], level+1)})
		}
	}
	return out, nil
}

func names(list []status.StatusEntry) (out []string) {
	for _, e := range list {
		out = append(out, e.Text("loadName"))
	}
	return out
}

// byLevel returns the loads, and the results of compactions of loads. Others are not compacted again.
func byLevel(list []status.StatusEntry) (out [2][]string) {
	for _, e := range list {
		name := e.Text("loadName")
		_, level, merged := strings.Cut(name, ".")
		switch {
		case !merged:
			out[0] = append(out[0], name)
		case level == "1" && e.Text("majorCompacted") != "true":
			out[1] = append(out[1], name)
		}
	}
	return out
}

// permitted returns the segments that may be compacted: without the newest, if these are preserved, and of those the
// first that were loaded within the allowed days, if there are two.
func (p policy) permitted(list []status.StatusEntry) []status.StatusEntry {
	list = slices.Clone(list)
	sorted.StablyBy(list, func(a, b status.StatusEntry) int {
		x, _ := strconv.ParseFloat(a.Text("loadName"), 64)
		y, _ := strconv.ParseFloat(b.Text("loadName"), 64)
		return cmp.Compare(x, y)
	})
	list = list[:max(0, len(list)-p.preserve)]
	if p.days == 0 {
		return list
	}
	day := func(e status.StatusEntry) int64 {
		at, _ := status.Millis(e.Text("loadStartTime"))
		return at / (24 * 60 * 60 * 1000)
	}
	var near []status.StatusEntry
	for _, e := range list {
		switch {
		case len(near) == 0 || day(e)-day(near[0]) < int64(p.days):
			near = append(near, e)
		case len(near) < 2:
			near = []status.StatusEntry{e}
		default:
			return near
		}
	}
	return near
}

// bySize divides segments into runs of two or more that have less than p.size bytes together.
func (p policy) bySize(list []status.StatusEntry) (out [][]string) {
	var run []status.StatusEntry
	total := int64(0)
	end := func() {
		if len(run) > 1 {
			out = append(out, names(run))
		}
		run, total = nil, 0
	}
	for _, e := range list {
		n := max(status.ParseCount(e.Text("dataSize")), 0)
		if p.size > 0 && total+n >= p.size {
			end()
		}
		if p.size > 0 && n >= p.size {
			continue
		}
		run, total = append(run, e), total+n
	}
	end()
	return out
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

// lockStreaming is the lock that a stream of Spark holds while it appends to a table.
const lockStreaming = "streaming.lock"

// rowFormat is the fileFormat of streaming segments.
const rowFormat = "row_v1"

// planStreams plans to rewrite each finished streaming segment as a segment of its own, as CarbonData does; with end
// also those that are not finished. A stream that is running makes that Invalid.
func planStreams(dir string, s status.StatusFile, end bool) (out []Compaction, err error) {
	next := 0
	for _, x := range s {
		e := status.StatusEntry(x)
		switch state := e.Text("loadStatus"); {
		case !strings.EqualFold(e.Text("fileFormat"), rowFormat):
		case state == status.StatusFinish, state == status.StatusStreaming && end:
			if state == status.StatusStreaming && !status.Free(dir, lockStreaming) {
				return nil, streamRuns(dir, e.Text("loadName"))
			}
			if next == 0 {
				first, err := s.NewSegment(dir)
				if err == nil {
					next, err = strconv.Atoi(first)
				}
				if err != nil {
					return nil, err
				}
			}
			out = append(out, Compaction{From: []string{e.Text("loadName")}, To: strconv.Itoa(next)})
			next++
		}
	}
	return out, nil
}

func streamRuns(dir, segment string) error {
	return fault.Invalidf("a stream appends to segment %s of %s: stop it first", segment, dir)
}

// lockStreams excludes streams while segments to which they may append are compacted.
func lockStreams(ctx context.Context, dir string, from []string) (unlock func(), err error) {
	s, err := readStatus(dir)
	if err != nil {
		return nil, err
	}
	for _, n := range from {
		if e := s.Find(n); e != nil && e.Text("loadStatus") == status.StatusStreaming {
			if unlock, err = status.Lock(ctx, dir, lockStreaming, 0); err != nil {
				return nil, streamRuns(dir, n)
			}
			return unlock, nil
		}
	}
	return func() {}, nil
}

// alsoUnlock has f called when the load ends.
func (l *Load) alsoUnlock(f func()) {
	own := l.unlock
	l.unlock = func() { own(); f() }
}

// sameRows returns Invalid if the segments do not have so many rows: a stream appended to them after they were opened.
func sameRows(ctx context.Context, dir string, from []string, rows int64) error {
	list, err := table.Segments(ctx, format.Target{Tree: store.Local{}, Name: filepath.ToSlash(dir)},
		format.OpenOptions{Opts: map[string]string{"external": "true"}})
	if err != nil {
		return err
	}
	for _, g := range list {
		if slices.Contains(from, g.Name) {
			rows -= g.Rows
		}
	}
	if rows != 0 {
		return fault.Invalidf("segment %s of %s grew while it was read: nothing is changed", strings.Join(from, ", "),
			dir)
	}
	return nil
}

// checkNoStreams returns Invalid if a segment of the table has rows of a stream.
func checkNoStreams(dir string) error {
	s, err := readStatus(dir)
	for _, x := range s {
		if e := status.StatusEntry(x); e.Counts() && strings.EqualFold(e.Text("fileFormat"), rowFormat) {
			return fault.Invalidf("segment %s of %s is that of a stream: rewrite it first (stoa compact "+
				"--close-streaming)", e.Text("loadName"), dir)
		}
	}
	return err
}
