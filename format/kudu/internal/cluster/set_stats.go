package cluster

import (
	"context"

	"stoa/format"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/table"
)

// TabletStats are the statistics of a tablet: its rowsets and log.
type TabletStats struct {
	Table  string
	Tablet *table.Tablet
	Sets   []table.SetStats
	Log    int64 // bytes
}

// Stats returns the statistics of the tablets that a target names, for each the replica that is read.
func (s *Servers) Stats(ctx context.Context, tg format.Target, o format.OpenOptions, ro table.Options,
	yield func(TabletStats)) error {
	for _, ts := range s.tablesNamed(tg.Table) {
		if ts[0].ID == meta.SystemCatalogID && tg.Table == "" {
			continue
		}
		for _, tb := range ts {
			if tg.Table != "" && tg.Table != tb.ID && tg.Table != s.NameOf(ts) && tg.Table != tb.TableID ||
				ro.Tablet != "" && ro.Tablet != tb.ID {
				continue
			}
			if err := tb.Choose(ctx, true, ro); err != nil {
				return err
			}
			if !tb.HasData() {
				continue
			}
			t, err := table.New(tg.Tree, []*table.Tablet{tb}, o, ro)
			if err != nil {
				return err
			}
			x := TabletStats{Table: s.NameOf(ts), Tablet: tb}
			if x.Sets, err = t.SetStats(ctx, tb); err != nil {
				return err
			}
			x.Log = tb.FS.LogBytes(ctx, tb.ID)
			yield(x)
		}
	}
	return ctx.Err()
}
