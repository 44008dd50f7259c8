package convert

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/ls"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/report"
	"stoa/cmd/stoa/internal/rerun"
	"stoa/cmd/stoa/internal/survey"
	"stoa/region"
)

// migrateDoc is the plan of a migration, or its report.
type migrateDoc struct {
	Stoa     string           `json:"stoa"` // "migrate"
	Roots    []string         `json:"roots"`
	Output   string           `json:"output"`
	To       string           `json:"to"`
	At       string           `json:"at,omitempty"`
	Damaged  string           `json:"damaged"` // the damage policy
	DryRun   bool             `json:"dry_run"` // it is a plan: nothing was written
	Began    time.Time        `json:"began"`
	Seconds  float64          `json:"seconds"`
	Estimate float64          `json:"estimated_seconds,omitempty"` // of a plan: what the run may take
	Complete bool             `json:"complete"`                    // every table is there, and equal to what was read
	Tables   []*migratedTable `json:"tables"`
	Left     []leftDoc        `json:"left_out"`

	form string
}

// migratedTable is a table of the report. Numbers that are not known are null.
type migratedTable struct {
	Source      string   `json:"source"`
	Table       string   `json:"table,omitempty"`
	ID          string   `json:"table_id,omitempty"`
	Format      string   `json:"format"`
	Output      string   `json:"output"` // name in the output
	State       string   `json:"state"`  // planned, written, done before, failed
	Why         []string `json:"why_not,omitempty"`
	SourceBytes int64    `json:"source_bytes"`
	Parts       int      `json:"parts"` // tablets or segments, if these have names
	Rows        *int64   `json:"rows"`
	Lost        *int64   `json:"rows_lost,omitempty"`
	Bytes       int64    `json:"bytes,omitempty"`
	Files       int      `json:"files,omitempty"`
	Seconds     float64  `json:"seconds,omitempty"`
	Estimate    float64  `json:"estimated_seconds,omitempty"`

	Types    []typeChange    `json:"types_changed"`
	Collides string          `json:"name_taken,omitempty"` // the name that another table has
	Dates    []survey.Column `json:"dates,omitempty"`
	Changed  []changedColumn `json:"values_changed,omitempty"`
	Notes    []string        `json:"notes,omitempty"`
	Readback *readback       `json:"read_back,omitempty"`

	state migrateState
}

// typeChange is a column that will be read with another type.
type typeChange struct {
	Column string `json:"column"`
	From   string `json:"from"`
	To     string `json:"to"`
}

// changedColumn is a column in which the output has other values than the source.
type changedColumn struct {
	Column string `json:"column"`
	Values int64  `json:"values"` // -1: not counted
	Why    string `json:"why"`
}

type migrateState int

const (
	statePlanned migrateState = iota
	stateWritten
	stateBefore
	stateFailed
)

var stateNames = []string{"planned", "written", "done before", "failed"}

func (t *migratedTable) note(s string) {
	if !slices.Contains(t.Notes, s) {
		t.Notes = append(t.Notes, s)
	}
}

// fail records why a table is not there, or not as it was.
func (t *migratedTable) fail(why string) {
	t.state = stateFailed
	if !slices.Contains(t.Why, why) {
		t.Why = append(t.Why, why)
	}
}

// dates adds what was counted in dates and times.
func (t *migratedTable) dates(list []survey.Column) {
	t.Dates = list
	for _, c := range t.Dates {
		if c.Inexact > 0 {
			t.fail(fmt.Sprintf("%s: %s cannot be stored exactly as the type of the output", c.Column,
				display.Count(c.Inexact, "value")))
		}
	}
}

// add adds the outcome of a table.
func (d *migrateDoc) add(t oneTable, o *tableOutcome) {
	i := slices.IndexFunc(d.Tables, func(x *migratedTable) bool { return x.Source == t.source })
	if i < 0 { // of an earlier run
		i = len(d.Tables)
		d.Tables = append(d.Tables, &migratedTable{Source: t.source, Table: t.table, ID: t.id, Types: []typeChange{},
			Output: o.summary.Output})
	}
	x := d.Tables[i]
	if x.state = stateWritten; o.again {
		x.state = stateBefore
	}
	x.dates(o.dates)
	for _, f := range slices.Concat(o.findings, o.aside) {
		if f.Severity > region.Note {
			x.note(f.Code + ": " + cli.InFlags(f.Message))
		}
	}
	if o.err != nil && !errors.Is(o.err, cli.ErrDamage) {
		x.fail(cli.InFlags(cli.Line(o.err)))
	}
	if len(o.losses) > 0 {
		lost, _ := region.LostRows(o.losses)
		x.Lost = &lost
		x.fail(display.Count(lost, "row") + " lost")
	} else if errors.Is(o.err, cli.ErrDamage) {
		x.fail("not all of the source is sound")
	}
	s := o.summary
	if s.Output == "" {
		x.Output, x.Rows = "", nil
		return
	}
	x.Rows, x.Bytes, x.Files, x.Seconds, x.Readback = reading.Known(s.Rows), s.Bytes, s.Files, s.Seconds, s.Readback
	for _, a := range s.Altered {
		x.Changed = append(x.Changed, changedColumn{a.Column, a.Values, "--opt " + a.Option})
	}
	for _, c := range s.retyped {
		x.Types = append(x.Types, typeChangeOf(c))
	}
	for _, n := range s.Notes {
		x.note(n)
	}
	for _, c := range s.Unchecked {
		x.note("column " + c + " could not be compared with what went in")
	}
	fine := []string{verdictEqual, verdictRows, verdictLater}
	if b := x.Readback; b != nil && !slices.Contains(fine, b.Verdict) {
		x.fail("what was read back " + b.why())
	}
}

// typeChangeOf parses a text such as "h (int8 as int32)".
func typeChangeOf(s string) typeChange {
	name, rest, ok := strings.Cut(s, " (")
	from, to, as := strings.Cut(strings.TrimSuffix(rest, ")"), " as ")
	if !ok || !as {
		return typeChange{Column: s}
	}
	return typeChange{name, from, to}
}

// settle draws the conclusions. failed are tables, or what may be tables, that are not there.
func (d *migrateDoc) settle(failed []rerun.Failed) {
	for _, f := range failed {
		d.Left = slices.DeleteFunc(d.Left, func(l leftDoc) bool { return l.File == f.Source })
		i := slices.IndexFunc(d.Tables, func(x *migratedTable) bool { return x.Source == f.Source })
		if i < 0 {
			d.Tables = append(d.Tables, &migratedTable{Source: f.Source, Types: []typeChange{}, state: stateFailed,
				Why: []string{f.Failed}})
		}
	}
	for _, t := range d.Tables {
		if t.State = stateNames[t.state]; t.state == stateFailed {
			d.Complete = false
		}
	}
}

// estimate estimates how long the run takes. Tables that were not sampled are assumed to be as fast, by their bytes.
func (d *migrateDoc) estimate(parallel int) {
	var seconds, bytes, rest float64
	longest := 0.0
	for _, t := range d.Tables {
		longest = max(longest, t.Estimate)
		if t.Estimate > 0 {
			seconds, bytes = seconds+t.Estimate, bytes+float64(t.SourceBytes)
		} else {
			rest += float64(t.SourceBytes)
		}
	}
	if bytes > 0 {
		seconds *= 1 + rest/bytes
	}
	d.Estimate = max(longest, seconds/float64(max(1, parallel)))
}

// JSON implements report.Doc.
func (d *migrateDoc) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(d, "", "  ")
	return append(b, '\n'), err
}

// count returns how many tables are in a state.
func (d *migrateDoc) count(s migrateState) (n int64) {
	for _, t := range d.Tables {
		if t.state == s {
			n++
		}
	}
	return n
}

// verdict says in words what the document reports.
func (d *migrateDoc) verdict() string {
	all, failed := int64(len(d.Tables)), d.count(stateFailed)
	switch {
	case d.DryRun && failed > 0:
		return fmt.Sprintf("%d of %s cannot be migrated", failed, display.Count(all, "table"))
	case d.DryRun:
		return display.Count(all, "table") + " can be migrated"
	case failed > 0:
		return fmt.Sprintf("NOT ALL was migrated: %d of %s failed", failed, display.Count(all, "table"))
	}
	later := int64(0)
	for _, t := range d.Tables {
		if t.Readback != nil && t.Readback.Verdict == verdictLater {
			later++
		}
	}
	s := display.Count(all-later, "table") + " migrated, each equal to what was read"
	if later > 0 {
		s += "; " + display.Count(later, "table") + " changed since, and left as it is"
	}
	return s
}

// total says how much there is.
func (d *migrateDoc) total() string {
	var rows, bytes, from int64
	for _, t := range d.Tables {
		rows, bytes, from = rows+max(0, ls.Number(t.Rows)), bytes+t.Bytes, from+t.SourceBytes
	}
	s := fmt.Sprintf("%s, %s stored", display.Count(rows, "row"), display.BytesText(from))
	if !d.DryRun {
		return s + fmt.Sprintf("; written to %s as %s: %s in %s", d.Output, d.To, display.BytesText(bytes),
			display.Seconds(time.Duration(d.Seconds*float64(time.Second))))
	}
	if d.Estimate > 0 {
		s += "; about " + display.Seconds(time.Duration(d.Estimate*float64(time.Second))) + " for the run"
	}
	return s
}

// facts returns what is known about a table, one fact per line.
func (t *migratedTable) facts() (out [][2]string) {
	add := func(k, v string) { out = append(out, [2]string{k, v}) }
	rows := cmp.Or(display.Maybe(ls.Number(t.Rows)), "?")
	if t.Lost != nil {
		rows += ", " + display.Thousands(*t.Lost) + " lost"
	}
	add("rows", rows)
	size := display.BytesText(t.SourceBytes) + " " + t.Format
	if t.Parts > 1 {
		size += " in " + display.Count(int64(t.Parts), "part")
	}
	add("source", size)
	if t.Output != "" {
		size = t.Output
		if t.Files > 0 {
			size += fmt.Sprintf(", %s in %s", display.BytesText(t.Bytes), display.Count(int64(t.Files), "file"))
		}
		add("output", size)
	}
	if t.Estimate > 0 {
		add("time", "about "+display.Seconds(time.Duration(t.Estimate*float64(time.Second))))
	}
	if b := t.Readback; b != nil {
		sums := b.Checksum
		if b.ReadChecksum != "" {
			sums += ", read back " + b.ReadChecksum
		}
		add("checksum", b.Verdict+": "+sums)
	}
	for _, w := range t.Why {
		add("failed", w)
	}
	for _, c := range t.Types {
		add("type", fmt.Sprintf("%s: %s becomes %s", c.Column, c.From, c.To))
	}
	for _, c := range t.Changed {
		add("changed", fmt.Sprintf("%s of %s: %s", display.Count(c.Values, "value"), c.Column, c.Why))
	}
	for _, c := range t.Dates {
		s := fmt.Sprintf("%s: %s to %s", c.Column, c.First, c.Last)
		if c.Julian > 0 {
			s += fmt.Sprintf("; %s before 1582-10-15: written by the Gregorian calendar",
				display.Count(c.Julian, "value"))
		}
		if c.Far > 0 {
			s += fmt.Sprintf("; %s outside of the years 1 to 9999", display.Count(c.Far, "value"))
		}
		add("dates", s)
	}
	for _, n := range t.Notes {
		add("note", n)
	}
	return out
}

// Text implements report.Doc.
func (d *migrateDoc) Text() ([]byte, error) {
	var b report.Lines
	b.Line(0, "", d.verdict())
	b.Line(0, "", d.total())
	for _, r := range d.Roots {
		b.Line(0, "from", r)
	}
	for _, t := range d.Tables {
		state := stateNames[t.state]
		if t.state == stateFailed {
			state = "FAILED"
		}
		b.WriteString("\n")
		b.Line(0, "", t.Source+"  "+state)
		for _, f := range t.facts() {
			b.Line(2, f[0], f[1])
		}
	}
	if len(d.Left) > 0 {
		b.WriteString("\n")
	}
	for _, l := range d.Left {
		b.Line(0, "left out", l.Why)
	}
	return b.Bytes(), nil
}

// HTML implements report.Doc.
func (d *migrateDoc) HTML() ([]byte, error) {
	var p page
	class := map[bool]string{true: "good", false: "bad"}
	p.Put(report.PageHead, "Migration of "+strings.Join(d.Roots, ", "))
	p.Put("<h1 class=\"%s\">%s</h1>\n<p>%s</p>\n<dl>", class[d.Complete], d.verdict(), d.total())
	for _, r := range d.Roots {
		p.Put("<dt>from</dt><dd><code>%s</code></dd>\n", r)
	}
	p.Put("<dt>begun</dt><dd>%s</dd>\n", d.Began.Format("2006-01-02T15:04:05Z07:00"))
	if d.At != "" {
		p.Put("<dt>as of</dt><dd>%s</dd>\n", d.At)
	}
	p.Put("</dl>\n<h2>Tables</h2>\n<table>\n<tr><th>table</th><th class=\"n\">rows</th><th>state</th>" +
		"<th>output</th></tr>\n")
	for _, t := range d.Tables {
		p.Put("<tr><td><b>%s</b></td><td class=\"n\">%s</td><td class=\"%s\">%s</td><td><code>%s</code></td></tr>\n",
			t.Source, display.Maybe(ls.Number(t.Rows)), class[t.state != stateFailed], stateNames[t.state],
			cmp.Or(t.Output, "none"))
		p.Put("<tr><td colspan=\"4\"><details%s><summary>checksums, types, values, notes</summary>\n<dl>",
			map[bool]string{true: " open"}[t.state == stateFailed])
		for _, f := range t.facts() {
			p.Put("<dt>%s</dt><dd>%s</dd>\n", f[0], f[1])
		}
		p.Put("</dl>\n</details></td></tr>\n")
	}
	p.Put("</table>\n")
	p.leftOut(d.Left)
	p.Put("</body>\n</html>\n")
	return p.Bytes(), nil
}
