package convert

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/look"
	"stoa/cmd/stoa/internal/ls"
	"stoa/cmd/stoa/internal/pieces"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/report"
	"stoa/cmd/stoa/internal/rerun"
	"stoa/internal/sorted"
	"stoa/region"
)

// rescueDoc is the report of a rescue.
type rescueDoc struct {
	Stoa     string               `json:"stoa"` // "rescue"
	Roots    []string             `json:"roots"`
	Output   string               `json:"output"`
	To       string               `json:"to"`
	At       string               `json:"at,omitempty"`
	Damaged  string               `json:"damaged"` // the damage policy
	Began    time.Time            `json:"began"`
	Seconds  float64              `json:"seconds"`
	Whole    bool                 `json:"whole"` // everything that any sign points to is in the output
	Why      []string             `json:"why_not,omitempty"`
	Tables   []*rescuedTable      `json:"tables"`
	Unnamed  []unnamedDoc         `json:"unnamed"`              // signs of tablets and rows that are in no table
	Blocks   int64                `json:"rows_unclaimed"`       // in blocks in unnamed: lost, or read from elsewhere
	Exact    bool                 `json:"rows_unclaimed_exact"` // there are no such blocks
	Left     []leftDoc            `json:"left_out"`
	Findings []reading.FindingDoc `json:"findings"`
	Sources  []sourceDoc          `json:"sources"`

	place, form string
	seen        map[region.Finding]bool
}

// rescuedTable is a table of the report. Numbers that are not known are null.
type rescuedTable struct {
	Table    string               `json:"table"`
	ID       string               `json:"table_id,omitempty"`
	Output   string               `json:"output,omitempty"` // name in the output; "": nothing could be written
	Rows     *int64               `json:"rows"`             // in the output
	Lost     *int64               `json:"rows_lost"`        // as far as they can be counted
	Exact    bool                 `json:"rows_lost_exact"`  // no other rows are lost
	Whole    bool                 `json:"whole"`
	Why      []string             `json:"why_not,omitempty"`
	Bytes    int64                `json:"bytes"`
	Files    int                  `json:"files"`
	Pieces   []pieces.File        `json:"pieces,omitempty"` // the files of the output, with --file-size
	Readback *readback            `json:"read_back,omitempty"`
	First    *look.Moment         `json:"first_operation,omitempty"`
	From     *look.Moment         `json:"exact_from,omitempty"` // snapshots are exact from this moment on
	Last     *look.Moment         `json:"last_operation,omitempty"`
	Replayed *int64               `json:"replayed_operations"` // row operations that only logs had
	ReadTo   []readTo             `json:"read_to,omitempty"`   // the last operation of each tablet that was read
	Tablets  []*look.CensusTablet `json:"tablets,omitempty"`
	LostIn   []lostPart           `json:"lost_in,omitempty"`
	Losses   []string             `json:"losses,omitempty"`

	kept bool // it is of an earlier run, and not what the sources have
}

// tell adds the moments of what was written.
func (t *rescuedTable) tell(m *rerun.Moments) {
	t.First, t.From, t.Last, t.Replayed = m.First, m.Exact, m.Last, &m.Logged
}

// readTo is how far a tablet was read.
type readTo struct {
	Part string `json:"part"`
	look.Moment
}

// lostPart is how many rows a tablet or a file has lost.
type lostPart struct {
	Part  string `json:"part"`
	Rows  int64  `json:"rows"`
	Exact bool   `json:"exact"`
}

// unnamedDoc is a sign of data that are in no table.
type unnamedDoc struct {
	State  string `json:"state"`
	Table  string `json:"table,omitempty"`
	Tablet string `json:"tablet,omitempty"`
	Server string `json:"server,omitempty"`
	Place  string `json:"place,omitempty"`
	Why    string `json:"why"`

	Rows    *int64   `json:"rows"`                // that unclaimed blocks have; null: not known
	MayBeOf []string `json:"may_be_of,omitempty"` // ids of tables with their columns
}

// leftDoc is a file that belongs to no table.
type leftDoc struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// sourceDoc is a source file.
type sourceDoc struct {
	File     string `json:"file"`
	Kind     string `json:"kind"`
	Bytes    int64  `json:"bytes"`
	Checksum string `json:"checksum,omitempty"`
	Link     string `json:"link,omitempty"`
	Problem  string `json:"problem,omitempty"`
}

// miss records that something is not in the output, and why.
func (d *rescueDoc) miss(why string) {
	d.Whole = false
	for _, w := range d.Why {
		if w == why {
			return
		}
	}
	d.Why = append(d.Why, why)
}

// addFindings adds findings above notes, without duplicates. Errors mean that the output is incomplete.
func (d *rescueDoc) addFindings(all []region.Finding) {
	if d.seen == nil {
		d.seen = map[region.Finding]bool{}
	}
	for _, f := range rerun.Costless(all) {
		if f.Severity == region.Note || d.seen[f] {
			continue
		}
		d.seen[f] = true
		d.Findings = append(d.Findings, reading.DocOfFinding(f))
		if f.Severity >= region.Error {
			d.miss("an error was found: " + f.Code)
		} else if rerun.NoLog(f) {
			d.miss("rows that were not flushed may be lost: " + f.Code)
		} else if rerun.Undecided(f) {
			d.miss("the end of a log leaves open which operations were committed: " + f.Code)
		}
	}
}

// table returns the table of a name and id, or nil if it is not known yet.
func (d *rescueDoc) table(name, id string) *rescuedTable {
	for _, t := range d.Tables {
		if t.Table == name && (t.ID == id || t.ID == "" || id == "") {
			return t
		}
	}
	return nil
}

// add adds the outcome of a table.
func (d *rescueDoc) add(t oneTable, o *tableOutcome) {
	x := &rescuedTable{Table: cmp.Or(t.table, t.source), ID: t.id, Whole: true, Bytes: o.summary.Bytes,
		Files: o.summary.Files, Readback: o.summary.Readback, Pieces: o.summary.Pieces}
	if o.kept == nil {
		x.Replayed = new(int64)
	} else if x.kept = true; o.kept.Moments != nil {
		x.tell(o.kept.Moments)
	}
	d.Tables = append(d.Tables, x)
	d.addFindings(o.findings)
	d.addFindings(o.aside)
	for _, f := range o.findings {
		if rerun.NoLog(f) {
			x.miss(f.Code + ": " + f.Message + "; --no-wal if that is expected")
		} else if f.Severity >= region.Error || rerun.Undecided(f) && t.holds(f.Part) {
			x.miss(f.Code + ": " + cli.InFlags(f.Message))
		}
	}
	if o.err != nil && !errors.Is(o.err, cli.ErrDamage) {
		x.miss(cli.InFlags(cli.Line(o.err)))
	}
	lost, exact := region.LostRows(o.losses)
	if len(o.losses) > 0 {
		more := ""
		if !exact {
			more = " that can be counted, and more"
		}
		x.miss(display.Count(lost, "row") + " lost" + more)
	}
	x.losses(o.losses)
	for _, part := range slices.Sorted(maps.Keys(o.reached)) {
		at := o.reached[part]
		x.ReadTo = append(x.ReadTo, readTo{part, look.Moment{Hybrid: strconv.FormatUint(at.Known, 10), Time: at.Time}})
	}
	if o.summary.Output == "" {
		d.miss("tables of which there is no output")
		return
	}
	x.Output = o.summary.Output
	if table, ok := strings.CutPrefix(x.Output, d.Output+"#"); ok {
		x.Output = "#" + table
	} else if rel, err := filepath.Rel(d.Output, x.Output); err == nil {
		x.Output = rel
	}
	x.Rows, x.Lost, x.Exact = reading.Known(o.summary.Rows), &lost, exact
	for _, f := range o.findings {
		x.Exact = x.Exact && !rerun.NoLog(f) && !(rerun.Undecided(f) && t.holds(f.Part)) &&
			(f.Severity < region.Error || f.Lost >= 0)
	}
	if b := x.Readback; b.Verdict == verdictDiffers || b.Verdict == verdictMissing {
		x.miss("what was read back " + b.why())
	}
	if errors.Is(o.err, cli.ErrDamage) && x.Whole {
		x.miss("not all of the source is sound")
	}
}

// miss records why a table is not whole.
func (t *rescuedTable) miss(why string) {
	t.Whole = false
	for _, w := range t.Why {
		if w == why {
			return
		}
	}
	t.Why = append(t.Why, why)
}

// maxShown is how many losses of a table the report lists one by one.
const maxShown = 1000

// losses adds what was lost, by tablet or file.
func (t *rescuedTable) losses(all []region.Loss) {
	of := map[string][]region.Loss{}
	var parts []string
	all = slices.Clone(all)
	sorted.StablyBy(all, func(a, b region.Loss) int { // several threads met them
		return cmp.Or(cmp.Compare(a.Part, b.Part), slices.Compare(a.Rows[:], b.Rows[:]),
			cmp.Compare(reading.LossLine(a), reading.LossLine(b)))
	})
	for i, l := range all {
		if of[l.Part] == nil {
			parts = append(parts, l.Part)
		}
		of[l.Part] = append(of[l.Part], l)
		if i < maxShown {
			t.Losses = append(t.Losses, reading.LossLine(l))
		} else if i == maxShown {
			t.Losses = append(t.Losses, fmt.Sprintf("and %d more", len(all)-i))
		}
	}
	for _, p := range parts {
		rows, exact := region.LostRows(of[p])
		t.LostIn = append(t.LostIn, lostPart{p, rows, exact})
	}
}

// addCensus adds the tablets of tables, and those tablets of the census that are in no table.
func (d *rescueDoc) addCensus(all []*look.CensusTable) {
	for _, c := range all {
		t := d.table(c.Table, c.ID)
		stray := false
		for _, tb := range c.Tablets {
			for _, r := range tb.Replicas {
				if r.State == "unclaimed" && t != nil && t.Rows != nil && d.At == "" { // they were read with it
					d.mayLack(r, t.ID)
					continue
				}
				if t == nil && r.State == "lost" || r.State == "unclaimed" {
					stray = stray || t == nil
					d.Unnamed = append(d.Unnamed, unnamedDoc{r.State, c.Table, tb.ID, r.Server, r.Place, r.Why,
						r.Rows, r.MayBeOf})
					d.miss("tablets, or blocks with rows, that no table claims")
					if r.State == "unclaimed" {
						d.unclaimed(r)
					}
				}
			}
		}
		if stray {
			continue
		}
		if t == nil {
			t = &rescuedTable{Table: cmp.Or(c.Table, c.ID), ID: c.ID, Whole: true}
			d.Tables = append(d.Tables, t)
			t.miss("nothing of it could be read")
			d.miss("tables of which there is no output")
		}
		t.Tablets = c.Tablets
		if c.Complete {
			continue
		}
		d.miss("tables that are not here as a whole")
		for _, tb := range c.Tablets {
			for _, r := range tb.Replicas {
				if r.State != "whole" && r.State != "uncovered" && r.State != "unclaimed" {
					t.miss(strings.TrimSuffix(fmt.Sprintf("tablet %s is %s: %s", cmp.Or(tb.ID, tb.Partition), r.State,
						r.Why), ": "))
				}
			}
		}
	}
}

// unclaimed adds blocks that no superblock names. Nothing says whose their rows are, and whether these are read from
// elsewhere: they are counted by themselves, and tables that have such columns may lack them.
func (d *rescueDoc) unclaimed(r look.CensusReplica) {
	d.Blocks, d.Exact = d.Blocks+max(0, ls.Number(r.Rows)), false
	d.mayLack(r, "")
}

// mayLack records that tables, but for the one with the id reader, may lack rows that are in unclaimed blocks.
func (d *rescueDoc) mayLack(r look.CensusReplica, reader string) {
	for _, t := range d.Tables {
		if slices.Contains(r.MayBeOf, t.ID) && t.ID != reader {
			t.Exact = false
			t.miss("it may lack rows: blocks that no superblock names may be of it")
		}
	}
}

// settle draws the conclusions: the place is not whole if any of its tables is not. The first of them are named, with
// a reason.
func (d *rescueDoc) settle() {
	const named = 20
	var not []string
	for _, t := range d.Tables {
		if !t.Whole {
			why := append(t.Why, "an error was reported")
			not = append(not, t.Table+" is not whole: "+why[0])
		}
	}
	more := len(not) - named
	d.Why = append(not[:min(len(not), named)], d.Why...)
	if more > 0 {
		d.miss(display.Count(int64(more), "more table") + " not whole")
	}
	if d.Whole = d.Whole && len(not) == 0; !d.Whole && len(d.Why) == 0 {
		d.miss("an error was reported for a table")
	}
}

// JSON implements report.Doc.
func (d *rescueDoc) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(d, "", "  ")
	return append(b, '\n'), err
}

// verdict says in words whether everything was rescued.
func (d *rescueDoc) verdict() string {
	whole := 0
	for _, t := range d.Tables {
		if t.Whole {
			whole++
		}
	}
	if d.Whole {
		return "all that any sign points to was rescued"
	}
	return fmt.Sprintf("NOT ALL was rescued: %d of %s are whole", whole, display.Count(int64(len(d.Tables)), "table"))
}

// rows returns the rows of all tables.
func (d *rescueDoc) rows() (n int64) {
	for _, t := range d.Tables {
		n += max(0, ls.Number(t.Rows))
	}
	return n
}

// lostRows says how many rows are known to be lost, and in how many tables more may be.
func (d *rescueDoc) lostRows() string {
	lost, unknown := int64(0), int64(0)
	for _, t := range d.Tables {
		lost += max(0, ls.Number(t.Lost))
		if ls.Number(t.Lost) < 0 || !t.Exact && !t.Whole {
			unknown++
		}
	}
	text := display.Thousands(lost)
	if unknown > 0 {
		text += ", and an unknown number in " + display.Count(unknown, "table")
	}
	if d.Blocks == 0 && !d.Exact {
		text += "; blocks that no table claims may have more"
	} else if d.Blocks > 0 {
		text += "; blocks that no table claims have about " + display.Count(d.Blocks, "row")
	}
	return text
}

// lostWord says what lost rows are: with null-cells most of them are written.
func (d *rescueDoc) lostWord() string {
	if d.Damaged == "null-cells" {
		return "lost or with lost cells"
	}
	return "lost"
}

// lostText says how many rows are lost, as far as that is known.
func (t *rescuedTable) lostText() string {
	switch n := ls.Number(t.Lost); {
	case n < 0:
		return "?"
	case !t.Exact && !t.Whole:
		return display.Thousands(n) + " or more"
	default:
		return display.Thousands(n)
	}
}

// facts returns other facts about a table, one per line.
func (t *rescuedTable) facts() (out [][2]string) {
	add := func(k, v string) { out = append(out, [2]string{k, v}) }
	if t.Readback != nil {
		add("read back", t.Readback.Verdict+"  "+t.Readback.Checksum)
	}
	moment := func(k string, m *look.Moment) {
		if m != nil {
			add(k, m.Time+"  "+m.Hybrid)
		}
	}
	moment("first operation", t.First)
	moment("exact from", t.From)
	moment("last operation", t.Last)
	if n := ls.Number(t.Replayed); n > 0 {
		add("replayed", display.Count(n, "row operation")+" that only logs had")
	}
	states, what := map[string]int{}, "replicas"
	var order []string
	for _, tb := range t.Tablets {
		servers := map[string]bool{}
		for _, r := range tb.Replicas {
			if servers[r.Server] && r.Server != "" {
				what = "replicas and copies of them"
			}
			servers[r.Server] = true
			if states[r.State]++; states[r.State] == 1 {
				order = append(order, r.State)
			}
		}
	}
	for i, s := range order {
		order[i] = fmt.Sprintf("%d %s", states[s], s)
	}
	if len(t.Tablets) > 0 {
		add("tablets", fmt.Sprintf("%d; %s: %s", look.TabletsOf(t.Tablets), what, strings.Join(order, ", ")))
	}
	for _, p := range t.LostIn {
		add("lost in", p.Part+": "+display.Count(p.Rows, "row")+map[bool]string{true: "", false: ", and more"}[p.Exact])
	}
	for _, w := range t.Why {
		add("not whole", w)
	}
	return out
}

// Text implements report.Doc.
func (d *rescueDoc) Text() ([]byte, error) {
	var b report.Lines
	line := b.Line
	line(0, "", d.verdict())
	line(0, "", fmt.Sprintf("%s written to %s as %s; known to be %s: %s", display.Count(d.rows(), "row"), d.Output,
		d.To, d.lostWord(), d.lostRows()))
	for _, w := range d.Why {
		line(0, "why not", w)
	}
	for _, r := range d.Roots {
		line(0, "root", r)
	}
	for _, t := range d.Tables {
		what := "whole"
		if !t.Whole {
			what = "NOT WHOLE"
		}
		b.WriteString("\n")
		line(0, "", t.Table+"  "+what)
		line(2, "rows", cmp.Or(display.Maybe(ls.Number(t.Rows)), "none")+" written, "+t.lostText()+" "+d.lostWord())
		line(2, "output", cmp.Or(t.Output, "none"))
		for _, f := range t.facts() {
			line(2, f[0], f[1])
		}
	}
	if len(d.Unnamed)+len(d.Left) > 0 {
		b.WriteString("\n")
	}
	for _, u := range d.Unnamed {
		line(0, u.State, strings.TrimSpace(cmp.Or(u.Tablet, u.Place)+" "+u.Table)+": "+u.Why)
	}
	for _, l := range d.Left {
		line(0, "left out", l.Why)
	}
	var size int64
	for _, s := range d.Sources {
		size += s.Bytes
		if s.Problem != "" {
			line(0, "unreadable", s.Problem)
		}
	}
	b.WriteString("\n")
	line(0, "", fmt.Sprintf("%s of %s were there; %s has their checksums and all losses",
		display.Count(int64(len(d.Sources)), "file"), display.BytesText(size), report.JSON))
	return b.Bytes(), nil
}
