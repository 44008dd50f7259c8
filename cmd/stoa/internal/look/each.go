package look

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/source"
)

const eachUsage = "take every table of every PATH on its own, with a line for each, and the sum"

// eachTable opens the tables that ls lists in the paths, one at a time, and calls do with it. One that cannot be read
// is reported, and does not prevent the others from being read; the worst error determines the status.
func eachTable(a *cli.App, ctx context.Context, cmd *cobra.Command, paths []string, o stoa.OpenOptions,
	do func(name string, t *stoa.Table) error) error {
	var worst error
	met := func(err error) {
		a.ReportError(cmd, err)
		if worst == nil || cli.Status(err) == cli.StatusDamage {
			worst = cli.ErrFailed
			if cli.Status(err) == cli.StatusDamage {
				worst = cli.ErrDamage
			}
		}
	}
	err := source.EachPath(a, ctx, cmd, paths, func(path string) error {
		for e, err := range stoa.List(ctx, path, o) {
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil && e.Place == "":
				return &cli.OpenError{Err: err}
			case err != nil && !unreadable(err): // a file that is no table
				a.Detail("%s: %v", e.Place, err)
				continue
			case err != nil:
				met(&cli.OpenError{Err: err})
				continue
			}
			uri, by := stoa.Named(e, o)
			if err := one(a, ctx, uri, by, do); ctx.Err() != nil {
				return ctx.Err()
			} else if err != nil {
				met(err)
			}
		}
		return nil
	})
	if err == nil || errors.Is(worst, cli.ErrDamage) && ctx.Err() == nil {
		return worst
	}
	return err
}

func one(a *cli.App, ctx context.Context, uri string, o stoa.OpenOptions,
	do func(name string, t *stoa.Table) error) error {
	t, err := source.OpenAll(a, ctx, []string{uri}, o)
	if err != nil {
		return err
	}
	defer t.Close()
	return do(uri, t)
}
