package look

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/source"
	"stoa/region"

	"github.com/spf13/cobra"
)

// The forms of a census.
var censusForms = []string{"text", "json"}

// CensusTable is a table in the document of -f json, with its tablets and their replicas.
type CensusTable struct {
	Table    string          `json:"table"` // "": not known
	ID       string          `json:"table_id,omitempty"`
	Complete bool            `json:"complete"`
	Tablets  []*CensusTablet `json:"tablets"`
}

type CensusTablet struct {
	ID        string          `json:"tablet,omitempty"` // "": not known
	Partition string          `json:"partition,omitempty"`
	Replicas  []CensusReplica `json:"replicas"`
}

type CensusReplica struct {
	State  string `json:"state"`
	Server string `json:"server,omitempty"`
	Place  string `json:"place,omitempty"`
	Last   string `json:"last_operation,omitempty"`
	Why    string `json:"why,omitempty"`
	Later  string `json:"later_log,omitempty"` // a log of a later state, which is not joined with the replica

	Rows    *int64   `json:"rows,omitempty"`      // in unclaimed blocks, as their footers tell
	MayBeOf []string `json:"may_be_of,omitempty"` // ids of the tables that unclaimed blocks may be of
}

func CensusCmd(a *cli.App) *cobra.Command {
	var src source.SourceFlags
	var out output.OutputFlags
	cmd := &cobra.Command{
		Use:   "census ROOT...",
		Short: "Show what is left of a Kudu cluster, table by table",
		Long: `Compare what the directories of a Kudu cluster hold with what they should hold: each table,
its tablets, and their replicas on all servers and disks. All ROOTs together are one cluster: servers and
masters are found below them at any depth, and a server's data directories may be anywhere among them.

The states of a replica:
  whole      no damage is visible without reading rows (stoa verify reads them)
  behind     another replica has later operations
  damaged    damage is visible without reading rows
  copying    the server had not finished copying or deleting it
  tombstone  the server deleted it
  stranger   it was evicted: its server is not among the tablet's peers
Where there is no replica, or none with a readable superblock:
  missing    the tablet must exist, and is not here
  uncovered  no tablet here holds this range; the table may have been created
             without it
  lost       only a log, consensus metadata or a damaged superblock is left
  unclaimed  blocks with rows that no superblock names
"later log" names a log of a later state than the replica above it, as of another copy of the server: it is
not joined with that replica.

If a master is among the ROOTs, its catalogue says which tables must exist. A table is complete if each of
its tablets has a whole replica. The status is 3 if a table is not, or if anything is missing, lost or
unclaimed.`,
		Example: "  stoa census kudu/wal kudu/data\n  stoa census @roots.txt -f json",
		Args:    a.Paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			if src.OptionValue("at") != "" {
				return cli.WrongUse("census shows what is there now: --at is for reading a table's past (stoa " +
					"count --at TIME)")
			}
			return writeJoined(cmd.Context(), a, args, &src, &out, CensusOf, writeCensus)
		},
	}
	out.Register(cmd, censusForms, "default text")
	out.RegisterRaw(cmd)
	src.Register(a, cmd)
	return cli.First(cli.Hide(cmd, "at"), "format", "output")
}

// writeJoined writes what read returns for the places, combined into one. The status is 3 if its findings include
// errors.
func writeJoined[T any](ctx context.Context, a *cli.App, args []string, src *source.SourceFlags,
	out *output.OutputFlags, read func(context.Context, []string, stoa.OpenOptions) ([]T, []region.Finding, error),
	write func(io.Writer, []T, bool) error) error {
	if err := out.Check(censusForms); err != nil {
		return err
	}
	o, err := src.Options(ctx, a, args)
	if err != nil {
		return err
	}
	if err := a.CheckOutputs(nil, out.File); err != nil {
		return err
	}
	tables, findings, err := read(ctx, args, o)
	if err != nil {
		return err
	}
	reading.ReportFindings(a, findings)
	err = output.PutDoc(a, ctx, out, func(w io.Writer) error {
		if out.Form == "json" {
			return output.WriteArray(w, tables)
		}
		return write(w, tables, out.Raw)
	})
	if err == nil && reading.Damaged(findings) {
		err = cli.ErrDamage
	}
	return err
}

// CensusOf returns the census of the places, combined into one.
func CensusOf(ctx context.Context, places []string, o stoa.OpenOptions) (tables []*CensusTable,
	findings []region.Finding, err error) {
	findings, err = listJoined(ctx, "census", places, o, func(v []string) { tables = addToCensus(tables, v) })
	return tables, findings, err
}

// addToCensus adds a line, whose values are in the order of kudu.CensusFields.
func addToCensus(tables []*CensusTable, v []string) []*CensusTable {
	n := len(tables)
	if n == 0 || tables[n-1].Table != v[0] || tables[n-1].ID != v[1] || v[1] == "" {
		tables = append(tables, &CensusTable{Table: v[0], ID: v[1], Complete: v[2] == "true"})
		n++
	}
	t := tables[n-1]
	k := len(t.Tablets)
	if k == 0 || t.Tablets[k-1].ID != v[3] || v[3] == "" {
		t.Tablets = append(t.Tablets, &CensusTablet{ID: v[3], Partition: v[4]})
		k++
	}
	x := t.Tablets[k-1]
	r := CensusReplica{State: v[7], Server: v[5], Place: v[6], Last: v[8], Why: v[9], Later: v[12],
		MayBeOf: strings.Fields(v[11])}
	if n, err := strconv.ParseInt(v[10], 10, 64); err == nil {
		r.Rows = &n
	}
	x.Replicas = append(x.Replicas, r)
	return tables
}

// censusWidth is the maximum width of the text.
const censusWidth = 80

// writeCensus writes one table after another: a line per tablet, and one per replica, with the reason below it if it is
// not whole. Raw lines are not cut, and have the whole ID of the server and the replica's last operation.
func writeCensus(w io.Writer, tables []*CensusTable, raw bool) error {
	var b strings.Builder
	line := cutLines(&b, raw)
	whole := 0
	for _, t := range tables {
		what := "INCOMPLETE"
		if t.Complete {
			what = "complete"
			whole++
		}
		line(0, cmp.Or(t.Table, "?")+"  "+what+"  "+display.Count(TabletsOf(t.Tablets), "tablet"))
		for _, x := range t.Tablets {
			line(2, cmp.Or(x.ID, "?")+"  "+x.Partition)
			for _, r := range x.Replicas {
				server, last := cutID(r.Server), ""
				if raw {
					server, last = r.Server, strings.TrimRight("  "+r.Last, " ")
				}
				line(4, fmt.Sprintf("%-9s  %-8s  %s%s", r.State, server, r.Place, last))
				if r.Why != "" {
					line(15, r.Why)
				}
				if r.Later != "" {
					line(15, "later log: "+r.Later)
				}
			}
		}
	}
	line(0, fmt.Sprintf("%s, %d complete, as far as that shows without reading rows",
		display.Count(int64(len(tables)), "table"), whole))
	_, err := io.WriteString(w, b.String())
	return err
}

// TabletsOf counts tablets: not the ranges that none covers, nor blocks of which no tablet is known.
func TabletsOf(all []*CensusTablet) (n int64) {
	for _, t := range all {
		if s := t.Replicas[0].State; s != "uncovered" && s != "unclaimed" {
			n++
		}
	}
	return n
}

// cutLines returns a function that writes an indented line; if it is not raw, it is cut to the width of a terminal.
func cutLines(b *strings.Builder, raw bool) func(indent int, text string) {
	return func(indent int, text string) {
		if text = display.OneLine(text); !raw {
			text = cutTo(text, censusWidth-indent)
		}
		b.WriteString(strings.Repeat(" ", indent) + text + "\n")
	}
}

// cutID returns the beginning of a UUID, by which people recognize a server.
func cutID(id string) string { return id[:min(len(id), 8)] }

// cutTo truncates a text to width.
func cutTo(s string, width int) string {
	r := []rune(s)
	if display.DisplayWidth(s) <= width {
		return s
	}
	for len(r) > 0 && display.DisplayWidth(string(r)) > width-1 {
		r = r[:len(r)-1]
	}
	return string(r) + "…"
}
