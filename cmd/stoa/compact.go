package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/format/carbon"
)

func (a *app) compactCmd() *cobra.Command {
	var major, minor bool
	var segments string
	cmd := &cobra.Command{
		Use:   "compact STORE#DATABASE.TABLE (--minor | --major | --segments N,N)",
		Short: "Make one segment of several of a CarbonData table",
		Long: `Write the rows of several segments, without the deleted ones, as one new segment that takes their place. --minor takes four
loads each, then three results each, as CarbonData does by default; --major takes all. stoa clean removes what was compacted.`,
		Example: `  stoa compact store#sales.orders --minor
  stoa compact store#sales.orders --segments 0,2`,
		Args: wants(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			dir, _, err := existingTable(args[0])
			if err != nil {
				return err
			}
			var ids []string
			if segments != "" {
				ids = strings.Split(segments, ",")
			}
			if b := map[bool]int{true: 1}; b[major]+b[minor]+b[ids != nil] != 1 {
				return wrongUse("compact needs one of --minor, --major and --segments")
			}
			unlock, err := carbon.LockUpdate(ctx, dir)
			if err != nil {
				return err
			}
			defer unlock()
			done := 0
			for {
				plan, err := carbon.PlanCompaction(dir, major, ids)
				if err != nil {
					return err
				}
				if len(plan) == 0 {
					break
				}
				for _, c := range plan {
					if err := a.compact(ctx, dir, c, major); err != nil {
						return err
					}
					done++
					a.note("%s: segments %s became segment %s", args[0], strings.Join(c.From, ", "), c.To)
				}
				if !minor { // results of a minor compaction may be compacted again
					break
				}
			}
			if done == 0 {
				a.note("%s: nothing to compact", args[0])
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&minor, "minor", false, "compact four loads, or three results, each")
	cmd.Flags().BoolVar(&major, "major", false, "compact all segments")
	cmd.Flags().StringVar(&segments, "segments", "", "compact these segments, `N,N`")
	return cmd
}

func (a *app) compact(ctx context.Context, dir string, c carbon.Compaction, major bool) error {
	t, err := a.openCarbon(ctx, dir, map[string]string{"segments": strings.Join(c.From, ",")})
	if err != nil {
		return err
	}
	defer t.Close()
	l, err := carbon.BeginCompaction(ctx, dir, t.Schema(), c.From, c.To, major, carbon.LoadOptions{})
	if err != nil {
		return err
	}
	_, err = fill(ctx, l, batches(t.Scan(ctx, stoa.ScanSpec{Alloc: pool})))
	return err
}
