package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/fault"
	"stoa/store"
)

// loadFile names the segment of a commit that is about to become visible.
const loadFile = "load.json"

// errUnclear: the segment was there, and is not now.
var errUnclear = errors.New("it is not known what became of a commit")

type loadMark struct {
	Segment string    `json:"segment"`
	Time    time.Time `json:"time"` // when it was written, before the commit
}

// load adds the rows of the chosen attempts to a table as one load: its metadata change once.
func (j *Job) load(ctx context.Context, o Options, won []Attempt, out Result) (Result, error) {
	if o.Changer == nil {
		return out, fault.Invalidf("%s: job %s is a load of a table that is changed in place", j.Place, j.Name)
	}
	segment, done, err := j.loaded(ctx, o.Changer)
	if err != nil || done {
		out.Segment, out.Repeated = segment, done
		return out, err
	}
	if len(won) == 0 {
		return out, nil
	}
	var names []string
	for _, a := range won {
		names = append(names, filepath.ToSlash(j.path(a)))
	}
	t, err := stoa.OpenAll(ctx, names, stoa.OpenOptions{Formats: o.Open.Formats, Limits: o.Open.Limits,
		Tree: store.Local{}})
	if err != nil {
		return out, err
	}
	defer t.Close()
	r, err := o.Changer.Append(ctx, t.Schema(), t.Scan(ctx, stoa.ScanSpec{}), stoa.AppendOptions{Opts: j.Spec.Opts,
		Overwrite: j.Spec.Overwrite, Dictionary: j.Spec.Dictionary, Partition: j.Spec.Partition,
		Before: func(_ context.Context, segment string) error {
			return writeJSON(filepath.Join(j.dir, loadFile), loadMark{segment, time.Now()})
		}})
	out.Segment = r.Segment
	return out, err
}

// loaded reports whether a commit that was interrupted had added its segment: it has the name that was noted, and began
// before that note was written. A later load, which may have taken the name of a segment that never became visible,
// began after it.
func (j *Job) loaded(ctx context.Context, c *stoa.Changer) (segment string, done bool, err error) {
	var m loadMark
	if err := readJSON(filepath.Join(j.dir, loadFile), &m); errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	} else if err != nil {
		return "", false, err
	}
	if c == nil {
		return "", false, fault.Invalidf("%s: job %s is a load of a table that is changed in place", j.Place, j.Name)
	}
	all, err := stoa.Segments(ctx, filepath.ToSlash(c.Place().Dir), stoa.OpenOptions{})
	if err != nil {
		return "", false, err
	}
	for _, s := range all {
		if s.Name != m.Segment || s.Began.After(m.Time) {
			continue
		}
		if s.Read || s.MergedInto != "" {
			return m.Segment, true, nil
		}
		if s.Ended.IsZero() { // it never became visible
			continue
		}
		why := fault.Invalidf("%s: a commit of job %s was interrupted, and segment %s, which it may have added, is %s "+
			"now: abort the job if its rows were deleted since, and load them again if not", j.Place, j.Name,
			m.Segment, s.Status)
		return "", false, fmt.Errorf("%w: %w", errUnclear, why)
	}
	return "", false, nil
}

// CheckLoad returns the error with which the commit would refuse these columns or options.
func CheckLoad(ctx context.Context, c *stoa.Changer, sc *arrow.Schema, s Spec) error {
	none := func(func(arrow.RecordBatch, error) bool) {}
	_, err := c.Append(ctx, sc, none, stoa.AppendOptions{Opts: s.Opts, Overwrite: s.Overwrite, Dictionary: s.Dictionary,
		Partition: s.Partition, DryRun: true})
	return err
}
