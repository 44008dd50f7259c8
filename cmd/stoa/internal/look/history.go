package look

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/source"
	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"

	"github.com/spf13/cobra"
)

// Moment is a point in a table's history. A hybrid time is a string because it has more digits than JSON numbers keep.
type Moment struct {
	Hybrid string `json:"hybrid"`
	Time   string `json:"time"` // RFC 3339
}

// TableHistory is a table in the document of -f json. Unknown moments are null.
type TableHistory struct {
	Table   string           `json:"table"`
	ID      string           `json:"table_id"`
	First   *Moment          `json:"first"`
	Exact   *Moment          `json:"exact_from"` // snapshots are exact from then on
	Last    *Moment          `json:"last"`
	Logged  int64            `json:"logged_operations"` // row operations that only the log has
	Schema  []historyEvent   `json:"schema_changes"`
	Tablets []*tabletHistory `json:"tablets"`

	firstUnknown bool    // a tablet's first operation is not known
	whole        *Moment // the earliest one from which a tablet is exact without history having been removed
}

type tabletHistory struct {
	ID        string         `json:"tablet"`
	Partition string         `json:"partition"`
	Server    string         `json:"server,omitempty"`
	Events    []historyEvent `json:"events"`
}

type historyEvent struct {
	Event      string  `json:"event"`
	At         *Moment `json:"at"`
	What       string  `json:"what,omitempty"`
	Operations *int64  `json:"operations,omitempty"`
}

func HistoryCmd(a *cli.App) *cobra.Command {
	var src source.SourceFlags
	var out output.OutputFlags
	cmd := &cobra.Command{
		Use:   "history TABLE",
		Short: "Show how far back a Kudu table can be read",
		Long: `Show which points in a Kudu table's past can be read (--at TIME of other verbs), for the
whole table and for each tablet: its first and its last operation, the time from which snapshots are
exact, the changes of the schema that the write-ahead log still has, and the number of row operations that
are only in the log. TABLE is DIR#TABLE; without #TABLE, all tables of the place are shown. Several places
are read as one, as by stoa census.

A time is printed as Kudu's hybrid time, which --at accepts, and in RFC 3339, to the microsecond. Before
the time from which snapshots are exact, history was removed, or may have been: Kudu keeps a week of it
unless the table or the server is configured otherwise, and its directories have only the table's setting.

Other verbs refuse an --at outside of this range; with --partial they read what there is, and report it.`,
		Example: "  stoa history kudu#d_major\n  stoa history kudu -f json",
		Args:    a.Paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			if src.OptionValue("at") != "" {
				return cli.WrongUse("history says which moments there are: --at is for reading one of them (stoa " +
					"count --at TIME)")
			}
			return writeJoined(cmd.Context(), a, args, &src, &out, HistoryOf, writeHistory)
		},
	}
	out.Register(cmd, censusForms, "default text")
	out.RegisterRaw(cmd)
	src.Register(a, cmd)
	return cli.First(cli.Hide(cmd, "at"), "format", "output")
}

// listJoined reads a list of the places, combined into one.
func listJoined(ctx context.Context, list string, places []string, o stoa.OpenOptions, add func([]string)) (
	[]region.Finding, error) {
	how, err := stoa.Listing(list, o)
	if err != nil {
		return nil, err
	}
	roots := slices.Clone(places)
	table := ""
	for i, p := range places {
		if roots[i] = cli.WithoutTable(p); i == 0 {
			table = p[len(roots[i]):]
		} else if p[len(roots[i]):] != table {
			return nil, cli.WrongUse("%s and %s name different tables", places[0], p)
		}
	}
	tree, name, err := store.Joined(o.Tree, roots)
	if err != nil {
		return nil, fault.Invalidf("%v", err)
	}
	tg := format.Target{Tree: tree, Name: name, Table: strings.TrimPrefix(table, "#"), Opts: o.Opts, Limits: o.Limits}
	return how.List(ctx, tg, format.OpenOptions{Limits: o.Limits, NoVerify: o.NoVerify, Opts: o.Opts}, add)
}

// HistoryOf returns the history of the tables of the places, combined into one.
func HistoryOf(ctx context.Context, places []string, o stoa.OpenOptions) (tables []*TableHistory,
	findings []region.Finding, err error) {
	findings, err = listJoined(ctx, "history", places, o, func(v []string) { tables = addToHistory(tables, v) })
	for _, t := range tables {
		if t.Exact == nil && t.First != nil {
			t.Exact = t.whole
		}
	}
	return tables, findings, err
}

// addToHistory adds an event of a tablet, whose values are in the order of kudu.HistoryFields.
func addToHistory(tables []*TableHistory, v []string) []*TableHistory {
	n := len(tables)
	if n == 0 || tables[n-1].ID != v[1] || tables[n-1].Table != v[0] {
		tables = append(tables, &TableHistory{Table: v[0], ID: v[1], Schema: []historyEvent{}})
		n++
	}
	t := tables[n-1]
	k := len(t.Tablets)
	if k == 0 || t.Tablets[k-1].ID != v[2] {
		t.Tablets = append(t.Tablets, &tabletHistory{ID: v[2], Partition: v[3], Server: v[4]})
		k++
	}
	e := historyEvent{Event: v[5], What: v[8]}
	if v[6] != "" {
		e.At = &Moment{v[6], v[7]}
	}
	if ops, err := strconv.ParseInt(v[9], 10, 64); err == nil {
		e.Operations = &ops
		t.Logged += ops
	}
	t.Tablets[k-1].Events = append(t.Tablets[k-1].Events, e)
	t.take(e)
	return tables
}

// take applies an event of a tablet to the table.
func (t *TableHistory) take(e historyEvent) {
	later := func(a, b *Moment) *Moment {
		if a == nil || b != nil && cmp.Or(cmp.Compare(len(b.Hybrid), len(a.Hybrid)),
			cmp.Compare(b.Hybrid, a.Hybrid)) > 0 {
			return b
		}
		return a
	}
	switch e.Event {
	case "first":
		switch {
		case e.At == nil && strings.HasPrefix(e.What, "not known"):
			t.firstUnknown, t.First = true, nil
		case e.At != nil && !t.firstUnknown && (t.First == nil || later(t.First, e.At) == t.First):
			t.First = e.At
		}
	case "exact":
		switch {
		case e.At == nil:
		case !strings.HasPrefix(e.What, "the whole"): // history was removed, or is damaged
			t.Exact = later(t.Exact, e.At)
		case t.whole == nil || later(t.whole, e.At) == t.whole:
			t.whole = e.At
		}
	case "last":
		t.Last = later(t.Last, e.At)
	case "schema":
		for _, x := range t.Schema {
			if x.What == e.What {
				return
			}
		}
		t.Schema = append(t.Schema, e)
	}
}

// writeHistory writes one table after another: its moments, and below them those of its tablets.
func writeHistory(w io.Writer, tables []*TableHistory, raw bool) error {
	var b strings.Builder
	line, number := cutLines(&b, raw), (&output.OutputFlags{Raw: raw}).Number
	event := func(indent int, label string, at *Moment, what string) {
		text := fmt.Sprintf("%-15s", label)
		if at != nil {
			text += "  " + at.Hybrid + "  " + at.Time
		} else if what != "" {
			text, what = text+"  "+what, ""
		}
		line(indent, text)
		if what != "" {
			line(indent+17, what)
		}
	}
	for _, t := range tables {
		line(0, t.Table+"  "+display.Count(int64(len(t.Tablets)), "tablet"))
		for _, x := range []struct {
			label string
			at    *Moment
		}{{"first operation", t.First}, {"exact from", t.Exact}, {"last operation", t.Last}} {
			if x.at == nil {
				event(2, x.label, nil, "not known")
				continue
			}
			event(2, x.label, x.at, "")
		}
		for _, e := range t.Schema {
			event(2, "schema", e.At, e.What)
		}
		if t.Logged > 0 {
			event(2, "only in the log", nil, display.Count(t.Logged, "row operation"))
		}
		for _, x := range t.Tablets {
			line(2, x.ID+"  "+x.Partition)
			for _, e := range x.Events {
				if e.Operations != nil {
					e.What = number(*e.Operations) + " " + e.What
				}
				event(4, e.Event, e.At, e.What)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
