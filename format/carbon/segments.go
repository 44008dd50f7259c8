package carbon

import (
	"context"
	"strconv"
	"time"

	"stoa/fault"
	"stoa/format"
)

// Segment is an entry of a table's status file: a load, or what several loads were compacted into.
type Segment struct {
	Name       string
	Status     string    // as the file has it: Success, Compacted, Marked for Delete, …
	Read       bool      // it counts: a reader without options reads it
	Began      time.Time // of the load; zero if it is not said
	Ended      time.Time
	Changed    time.Time // when it was last merged, deleted or updated; zero if it never was
	Files      int       // data files that are there; -1 not known
	Rows       int64     // in them, deleted ones too; -1 not known: only reading the files of formats 1 and 2 and row-format files tells
	Deleted    int64     // rows of them that delete deltas take away
	Data       int64     // bytes of data files; -1 not known
	Index      int64     // bytes of index files; -1 not known
	MergedInto string    // the segment that has its rows now
	Merged     []string  // the segments whose rows it has
	Format     string    // "" is Carbon's own columnar format
	Path       string    // "" is the usual place
	Err        error     // why its files cannot be listed; nil if they can, or if the segment does not count and was cleaned away
}

// Segments lists the loads of the table that tg names (a table's directory, or a table of a store), in the order of the status
// file. Options are those of Open. A place that is no such table is Unsupported.
func Segments(ctx context.Context, tg format.Target, op format.OpenOptions) ([]Segment, error) {
	o, err := parseOptions(op.Opts)
	if err != nil {
		return nil, err
	}
	tg, k, err := resolve(ctx, tg, &o)
	if err != nil {
		return nil, err
	}
	if k != kindTable {
		return nil, fault.Unsupportedf(fault.Span{Object: tg.Name}, "", "not a table's directory: it has no segments")
	}
	t, err := openManaged(ctx, tg.Tree, tg.Name, op, o, nil)
	if err != nil {
		return nil, err
	}
	out := make([]Segment, len(t.loads))
	for i := range t.loads {
		if out[i], err = t.segment(ctx, &t.loads[i]); err != nil {
			return nil, err
		}
		for _, l := range t.loads { // merged ones name their target, not the other way round
			if l.Merged == out[i].Name && l.Name != out[i].Name {
				out[i].Merged = append(out[i].Merged, l.Name)
			}
		}
	}
	return out, nil
}

// segment tells a load, and looks its files up. Only errors that are nobody's damage end it.
func (t *managed) segment(ctx context.Context, l *load) (Segment, error) {
	s := Segment{Name: l.Name, Status: l.Status, Read: t.o.wants(l), MergedInto: l.Merged, Format: l.FileFormat, Path: l.Path, Files: -1, Rows: -1,
		Began: instantOf(l.Start), Ended: instantOf(l.Timestamp), Changed: instantOf(l.changed()), Data: count64(l.DataSize), Index: count64(l.IndexSize)}
	if s.MergedInto == l.Name {
		s.MergedInto = ""
	}
	parts, err := t.segmentParts(ctx, l)
	switch {
	case err != nil && ctx.Err() != nil:
		return s, ctx.Err()
	case err != nil:
		if l.counts() {
			s.Err = err
		}
		return s, nil
	}
	s.Files, s.Rows = len(parts), 0
	var data int64
	for i := range parts {
		data += parts[i].bytes
		if u := parts[i].update; u != nil {
			s.Deleted += max(count64(u.Deleted), 0)
		}
		if s.Rows >= 0 && parts[i].rows >= 0 {
			s.Rows += parts[i].rows
		} else {
			s.Rows = -1
		}
	}
	if s.Data < 0 {
		s.Data = data
	}
	return s, nil
}

// changed is when a load was last merged, deleted or updated.
func (l *load) changed() string {
	if l.Changed != "" {
		return l.Changed
	}
	return l.Changed1
}

func instantOf(s string) time.Time {
	if ms, ok := millis(s); ok && ms > 0 {
		return time.UnixMilli(ms).UTC()
	}
	return time.Time{}
}

func count64(s string) int64 {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	return -1
}
