package look

import (
	"context"
	"fmt"
	"io"
	"strings"

	"stoa"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/reading"
	"stoa/internal/check"
	"stoa/region"
)

// maxHeld is how many findings are held before they are grouped into incidents.
const maxHeld = 1 << 16

// incidentDoc is an incident in verify -f json.
type incidentDoc struct {
	Finding  int               `json:"finding"` // the most severe one, as an index into findings
	Findings int               `json:"findings"`
	Codes    []check.CodeCount `json:"codes"`
	Object   string            `json:"object"`
	Offset   int64             `json:"offset"`
	Length   int64             `json:"length"`
	Tables   []string          `json:"tables,omitempty"`
	Parts    []string          `json:"parts"`
	Columns  []string          `json:"columns"`
	Lost     *int64            `json:"lost"`
	Next     string            `json:"next,omitempty"`
}

// incidentDocs returns the incidents of all findings of a report.
func (d *VerifyDoc) incidentDocs() []incidentDoc {
	findings := d.held
	out := []incidentDoc{}
	for _, in := range check.Fold(findings) {
		one := incidentDoc{Findings: in.N, Codes: in.Codes, Object: in.At.Object, Offset: in.At.Off, Length: in.At.Len,
			Tables: in.Tables, Parts: append([]string{}, in.Parts...), Columns: append([]string{}, in.Columns...),
			Lost: reading.Known(in.Lost), Next: d.nextCommand(in)}
		for _, i := range in.Listed {
			if findings[i] == in.First {
				one.Finding = i
				break
			}
		}
		out = append(out, one)
	}
	return out
}

// nextCommand returns the command for dealing with an incident; "" if nothing has to be done.
func (d *VerifyDoc) nextCommand(in check.Incident) string {
	if in.First.Severity < region.Error || in.First.Class != 0 || len(d.Sources) == 0 {
		return ""
	}
	if in.First.Code == "seal.damaged" { // the sealed files may be whole
		return "stoa seal " + display.ShellWord(d.Sources[0]) +
			" -o FILE.seal, if the files are known to be as they were"
	}
	source, best := d.Sources[0], -1
	for _, s := range d.Sources {
		within := strings.HasPrefix(in.First.At.Object, s) || strings.HasPrefix(in.First.Part, s)
		if within && len(s) > best {
			source, best = s, len(s)
		}
	}
	if d.several != nil && d.several(source) { // recover accepts one table at a time
		return "stoa rescue " + display.ShellWord(source) + " -o DIR/"
	}
	return "stoa recover " + display.ShellWord(source) + " -o FILE.parquet"
}

// severalTables returns a function that reports whether a place holds more than one table. It examines each place once.
func severalTables(ctx context.Context, o stoa.OpenOptions) func(place string) bool {
	known := map[string]bool{}
	return func(place string) bool {
		if several, ok := known[place]; ok {
			return several
		}
		n := 0
		for e, err := range stoa.List(ctx, place, o) {
			if err == nil && (e.Table != "" || e.Place != place) {
				n++
			}
		}
		known[place] = n > 1
		return n > 1
	}
}

// writeIncidents writes the held findings as text, grouping those of one cause.
func (d *VerifyDoc) writeIncidents(form string, w io.Writer) error {
	if form == "json" || form == "jsonl" {
		return nil
	}
	held := d.held
	d.held = nil
	if d.allFindings {
		for _, f := range held {
			if _, err := fmt.Fprintln(w, d.line(f)); err != nil {
				return err
			}
		}
		return nil
	}
	for _, in := range check.Fold(held) {
		if _, err := fmt.Fprintln(w, d.line(in.First)); err != nil {
			return err
		}
		more := d.incidentLine(in)
		if in.N == 1 {
			if more = d.nextCommand(in); more == "" {
				continue
			}
			more = "next: " + more
		}
		d.folded += in.N - 1
		if _, err := fmt.Fprintln(w, display.Hanging("  "+more, d.style.Width)); err != nil {
			return err
		}
	}
	return nil
}

// line returns the lines of a finding for the terminal.
func (d *VerifyDoc) line(f region.Finding) string {
	return display.Graded(display.Hanging(reading.FindingLine(f), d.style.Width), d.style.Colour)
}

// incidentLine describes an incident beyond its first finding.
func (d *VerifyDoc) incidentLine(in check.Incident) string {
	parts := []string{fmt.Sprintf("one of %s of one cause", display.Count(int64(in.N), "finding"))}
	if in.At.Len > 0 {
		parts[0] += ", at " + in.At.String()
	}
	var codes []string
	for _, c := range in.Codes {
		codes = append(codes, fmt.Sprintf("%s %s", c.Code, display.Thousands(int64(c.N))))
	}
	parts = append(parts, strings.Join(codes, ", "))
	switch {
	case len(in.Tables) > 1:
		parts = append(parts, "tables "+names(in.Tables))
	case len(in.Parts) > 1:
		parts = append(parts, "of "+names(in.Parts))
	}
	if len(in.Columns) > 0 {
		parts = append(parts, "columns "+names(in.Columns))
	}
	if in.Lost > 0 {
		what := " rows or cells lost"
		if in.Lost == 1 {
			what = " row or cell lost"
		}
		parts = append(parts, display.Thousands(in.Lost)+what)
	}
	if next := d.nextCommand(in); next != "" {
		parts = append(parts, "next: "+next)
	}
	return strings.Join(parts, "; ")
}

// names joins names; of many it joins only the first.
func names(all []string) string {
	const maxNames = 6
	if len(all) > maxNames {
		return fmt.Sprintf("%s and more", strings.Join(all[:maxNames], ", "))
	}
	return strings.Join(all, ", ")
}
