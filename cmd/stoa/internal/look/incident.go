package look

import (
	"fmt"
	"io"
	"strings"

	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/reading"
	"stoa/internal/check"
	"stoa/region"
)

// mostHeld is how many findings are held until incidents are made of them.
const mostHeld = 1 << 16

// incidentDoc is an incident in verify -f json.
type incidentDoc struct {
	Finding  int               `json:"finding"` // the gravest, as an index into findings
	Findings int               `json:"findings"`
	Codes    []check.CodeCount `json:"codes"`
	Object   string            `json:"object"`
	Offset   int64             `json:"offset"`
	Length   int64             `json:"length"`
	Parts    []string          `json:"parts"`
	Columns  []string          `json:"columns"`
	Lost     *int64            `json:"lost"`
	Next     string            `json:"next,omitempty"`
}

// incidentDocs are the incidents of all findings of a report.
func incidentDocs(findings []region.Finding, sources []string) []incidentDoc {
	out := []incidentDoc{}
	for _, in := range check.Fold(findings) {
		d := incidentDoc{Findings: in.N, Codes: in.Codes, Object: in.At.Object, Offset: in.At.Off, Length: in.At.Len,
			Parts: in.Parts, Columns: in.Columns, Lost: reading.Known(in.Lost), Next: nextCommand(in, sources)}
		for _, i := range in.Listed {
			if findings[i] == in.First {
				d.Finding = i
				break
			}
		}
		out = append(out, d)
	}
	return out
}

// nextCommand is what to do about an incident; "" if nothing has to be done.
func nextCommand(in check.Incident, sources []string) string {
	if in.First.Severity < region.Error || len(sources) == 0 {
		return ""
	}
	source := sources[0]
	for _, s := range sources {
		if strings.HasPrefix(in.First.At.Object, s) || strings.HasPrefix(in.First.Part, s) {
			source = s
		}
	}
	return "stoa recover " + display.ShellWord(source) + " -o DIR/"
}

// writeIncidents writes the findings that are held as text, those of one cause as one.
func (d *VerifyDoc) writeIncidents(form string, w io.Writer) error {
	if form == "json" || form == "jsonl" {
		return nil
	}
	held := d.held
	d.held = nil
	if d.allFindings {
		for _, f := range held {
			if _, err := fmt.Fprintln(w, display.Hanging(reading.FindingLine(f), d.width)); err != nil {
				return err
			}
		}
		return nil
	}
	for _, in := range check.Fold(held) {
		if _, err := fmt.Fprintln(w, display.Hanging(reading.FindingLine(in.First), d.width)); err != nil {
			return err
		}
		if in.N == 1 {
			continue
		}
		d.folded += in.N - 1
		if _, err := fmt.Fprintln(w, display.Hanging("  "+d.incidentLine(in), d.width)); err != nil {
			return err
		}
	}
	return nil
}

// incidentLine says what an incident is besides its first finding.
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
	if len(in.Parts) > 1 {
		parts = append(parts, "of "+names(in.Parts))
	}
	if len(in.Columns) > 0 {
		parts = append(parts, "columns "+names(in.Columns))
	}
	if in.Lost > 0 {
		parts = append(parts, display.Thousands(in.Lost)+" rows or cells lost")
	}
	if next := nextCommand(in, d.Sources); next != "" {
		parts = append(parts, "next: "+next)
	}
	return strings.Join(parts, "; ")
}

// names joins names; of many the first.
func names(all []string) string {
	const most = 6
	if len(all) > most {
		return fmt.Sprintf("%s and more", strings.Join(all[:most], ", "))
	}
	return strings.Join(all, ", ")
}
