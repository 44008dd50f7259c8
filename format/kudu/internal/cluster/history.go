package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/table"
)

// The events of a history.
const (
	EventFirst  = "first"  // the first operation
	EventExact  = "exact"  // the start of complete history: later snapshots are exact
	EventSchema = "schema" // the schema was changed
	EventLast   = "last"   // the last operation
	EventLog    = "log"    // operations that only the write-ahead log has; they have no time
)

// HistoryLine is an event of a tablet.
type HistoryLine struct {
	Table, TableID            string
	Tablet, Partition, Server string
	Event, What               string
	Time                      uint64 // hybrid; 0: unknown
	Ops                       int64  // of EventLog: row operations; -1: unknown
}

// History returns the known events of the tables that a target names; for each tablet, those of the replica that is
// read. Operations that only logs have count if a snapshot at ro.Until, or at the end of the table, has them.
func (s *Servers) History(ctx context.Context, tg format.Target, o format.OpenOptions, ro table.Options) (
	out []HistoryLine, err error) {
	for _, ts := range s.tablesNamed(tg.Table) {
		if ts[0].ID == meta.SystemCatalogID && tg.Table == "" {
			continue
		}
		ro.Until, err = s.untilOf(ctx, tg, ts, o, ro)
		if err != nil {
			return nil, err
		}
		for _, tb := range ts {
			if tg.Table != "" && tg.Table != tb.ID && tg.Table != s.NameOf(ts) && tg.Table != tb.TableID ||
				ro.Tablet != "" && ro.Tablet != tb.ID {
				continue
			}
			if err := tb.Choose(ctx, true, ro); err != nil {
				return nil, err
			}
			if !tb.HasData() {
				continue
			}
			t, err := table.New(tg.Tree, []*table.Tablet{tb}, o, ro)
			if err != nil {
				return nil, err
			}
			moments, err := t.TabletMoments(ctx, tb)
			if err != nil {
				return nil, err
			}
			moments, err = s.readUndo(ctx, t, tb, moments)
			if err != nil {
				return nil, err
			}
			base := HistoryLine{Table: s.NameOf(ts), TableID: tb.TableID, Tablet: tb.ID, Server: tb.FS.UUID,
				Partition: cmp.Or(tb.Partitioning.Text(&tb.Schema, &tb.Partition), "all rows")}
			out = append(out, eventsOf(base, tb, moments)...)
		}
	}
	return out, ctx.Err()
}

// untilOf returns the hybrid time of the snapshot of a table to which ro.Until and ro.End refer.
func (s *Servers) untilOf(ctx context.Context, tg format.Target, ts []*table.Tablet, o format.OpenOptions,
	ro table.Options) (uint64, error) {
	if ro.End == "" {
		return ro.Until, nil
	}
	t, err := table.New(tg.Tree, ts, o, ro)
	if err != nil {
		return 0, err
	}
	at, err := endOf(ctx, t, ro.End)
	if errors.Is(err, fault.Unsupported) {
		return 1, nil // it cannot be read, so no operation is applied
	}
	return at, err
}

// readUndo reads the deltas from which the earlier states of a tablet follow, reports those that are damaged, and moves
// the start of complete history behind them.
func (s *Servers) readUndo(ctx context.Context, t *table.Table, tb *table.Tablet,
	m table.TabletMoments) (table.TabletMoments, error) {
	newest := m.Last
	if m.Log != nil {
		newest = max(newest, m.Log.LastTime)
	}
	exact, found, err := t.CheckUndo(ctx, tb, newest)
	s.Findings = append(s.Findings, found...)
	if exact > m.Exact {
		m.Exact, m.Damaged = exact, true
	}
	return m, err
}

// eventsOf returns the events of a tablet.
func eventsOf(base HistoryLine, tb *table.Tablet, moments table.TabletMoments) (out []HistoryLine) {
	add := func(event string, time uint64, what string) *HistoryLine {
		l := base
		l.Event, l.Time, l.What = event, time, what
		out = append(out, l)
		return &out[len(out)-1]
	}
	switch {
	case moments.First != table.Latest:
		add(EventFirst, moments.First, "")
	case moments.Last == 0:
		add(EventFirst, 0, "no operation on rows is known")
	default:
		add(EventFirst, 0, "not known: the records of it are removed or damaged")
	}
	switch {
	case moments.Damaged:
		add(EventExact, moments.Exact, "history before is damaged")
	case moments.Exact > 0:
		add(EventExact, moments.Exact, "history before was removed, or may have been")
	case moments.First != table.Latest:
		add(EventExact, moments.First+1, "the whole history is here") // before, there is no table
	}
	known := uint32(0)
	if moments.Log != nil {
		for _, a := range moments.Log.Alters {
			add(EventSchema, a.Time, alterText(a.Version, a.Name, a.Changes, a.Known))
			known++
		}
	}
	if more := tb.SchemaVersion - min(tb.SchemaVersion, known); more > 0 {
		add(EventSchema, 0, fmt.Sprintf("version %d: %d older, when is not known", tb.SchemaVersion, more))
	}
	switch {
	case moments.Last > 0 && moments.Log != nil && moments.Log.Missing:
		add(EventLast, moments.Last, "the log is not here: there may be later ones")
	case moments.Last > 0:
		add(EventLast, moments.Last, "")
	}
	switch {
	case moments.Log == nil:
	case moments.Log.Missing:
		add(EventLog, 0, "not here: what was not flushed is not, either").Ops = -1
	default:
		add(EventLog, 0, "row operations that were never flushed").Ops = moments.Log.Ops
	}
	return out
}

func alterText(version uint32, name string, changes []string, known bool) string {
	if name != "" {
		changes = append([]string{"table named " + name}, changes...)
	}
	text := strings.Join(changes, "; ")
	if text == "" && known {
		text = "no column; the table's name or properties"
	} else if text == "" {
		text = "the version before is not known"
	}
	return fmt.Sprintf("version %d: %s", version, text)
}
