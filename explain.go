package stoa

import (
	"context"
	"slices"
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan"
	"stoa/vec"
)

// Explanation reports what a scan considers at each level, what it skips, and why.
type Explanation struct {
	Filter string // as it is understood; "" = none
	// Levels are the parts, the row groups and the rows of all sources, and then the dictionaries and the pages of each
	// physical column that is read, those of the filter first. Each level counts only what the previous one left; what
	// was considered and not read is counted by reason.
	Levels []ExplainLevel
	// Ran is what the scan really did; nil if it was only planned.
	Ran *Ran
}

// ExplainLevel is one level of a scan.
type ExplainLevel = scan.Tally

// Reason is why items of a level were skipped, and how many.
type Reason = scan.Reason

// Ran reports what a scan did.
type Ran struct {
	Rows    int64         // returned
	Reads   int64         // of pages; adjacent ones are read at once; -1 where a format's own reader fetches them
	Bytes   int64         // read by these; -1 as for Reads
	Elapsed time.Duration // without opening, but including metadata that is first read by the scan
}

// Explain reports, from metadata, what Scan(spec) would read; with analyze it also runs the scan and reports what was
// read. Pages that turn out to be useless only while rows are filtered then count as skipped as well. It refuses Rows
// and Limit.
func (t *Table) Explain(ctx context.Context, spec ScanSpec, analyze bool) (*Explanation, error) {
	if spec.Rows != (vec.Range{}) || spec.Limit != 0 {
		return nil, fault.Invalidf("an explanation has no rows by position and no limit")
	}
	out := &Explanation{}
	if spec.Filter != nil {
		out.Filter = spec.Filter.String()
	}
	trace := scan.NewTrace()
	for i, s := range t.sources {
		if err := trace.Start(i, s.scan.Reader, spec.internal(), false); err != nil {
			return nil, err
		}
		if err := scan.Walk(ctx, trace, s.scan); err != nil {
			return nil, err
		}
	}
	if analyze {
		out.Ran = &Ran{}
		begin := time.Now()
		for i, s := range t.sources {
			in := spec.internal()
			in.Trace = trace
			if err := trace.Start(i, s.scan.Reader, in, true); err != nil {
				return nil, err
			}
			for b, err := range s.run(ctx, in, nil) {
				if err != nil {
					return nil, err
				}
				out.Ran.Rows += b.NumRows()
			}
		}
		out.Ran.Elapsed = time.Since(begin)
		out.Ran.Reads, out.Ran.Bytes = trace.Fetched()
		if slices.ContainsFunc(t.sources, func(s *source) bool { _, own := s.reader.(format.Batcher); return own }) {
			out.Ran.Reads, out.Ran.Bytes = -1, -1
		}
	}
	out.Levels = trace.Tallies()
	return out, nil
}
