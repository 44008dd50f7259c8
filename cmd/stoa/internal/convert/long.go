package convert

import (
	"context"
	"errors"
	"path/filepath"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/pieces"
	"stoa/store/remote"
	"stoa/vec"
)

const (
	lakeFile = 512 << 20 // the default size of a file
	// perPartition: files end where a run may be resumed, and a table with partitions would have many small ones.
	perPartition = 8
)

// long begins a large table of Iceberg or Delta such that the run can be resumed, or goes on with one; nil for others.
func (c *conversion) long(ctx context.Context, a *cli.App, t *stoa.Table, spec stoa.ScanSpec, wo stoa.CreateOptions,
) (*pieces.Long, error) {
	if !isLake(wo.To) || spec.Limit > 0 || spec.Rows != (vec.Range{}) || len(c.by) > 0 || c.out == cli.Dash {
		return nil, nil
	}
	o := pieces.Options{Out: c.out, Create: wo, Target: lakeFile, Resume: c.goOn, Of: append(c.settings(), c.source,
		c.stamp)}
	if size := wo.Opts["file-size"]; size != "" {
		n, err := cli.ParseSize("file-size", size)
		if err != nil {
			return nil, err
		}
		o.Target = max(1, n)
	}
	if wo.Opts["partition-by"] != "" {
		o.Target *= perPartition
	}
	if !remote.Is(c.out) {
		if real, err := filepath.EvalSymlinks(c.out); err == nil {
			o.Out = real
		}
	}
	l, err := pieces.Begin(ctx, a, t, spec, c.sum, o)
	if l == nil || err != nil {
		return nil, err
	}
	if l.Before() > 0 {
		a.Note("%s: %s were written by an earlier run", c.out, display.Count(l.Before(), "row"))
	}
	if c.seen != nil && c.seen.Any() {
		for b, err := range l.Written(ctx) {
			if err != nil {
				return nil, errors.Join(err, l.Abort(ctx))
			}
			c.seen.Add(b)
		}
	}
	return l, nil
}
