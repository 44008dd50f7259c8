package reading

import (
	"fmt"
	"slices"
	"strings"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/fault"
	"stoa/region"
)

// Damaged reports whether any finding is an error. Then not everything was read, or it was found in another way than
// the place declares (a name that was guessed, a geometry that was corrected), and no verb reports it as whole.
func Damaged(fs []region.Finding) bool {
	return slices.ContainsFunc(fs, func(f region.Finding) bool { return f.Severity == region.Error })
}

// FindingDoc is what -f json prints for each finding; null means not known.
type FindingDoc struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Object   string `json:"object"`
	Offset   int64  `json:"offset"`
	Length   int64  `json:"length"`
	Path     string `json:"path,omitempty"`
	Message  string `json:"message"`
	Part     string `json:"part,omitempty"`
	Table    string `json:"table,omitempty"`
	Column   string `json:"column,omitempty"`
	From     *int64 `json:"from"`
	To       *int64 `json:"to"`
	Lost     *int64 `json:"lost"`
}

func DocOfFinding(f region.Finding) FindingDoc {
	return FindingDoc{Code: f.Code, Severity: f.Severity.String(), Object: f.At.Object, Offset: f.At.Off,
		Length: f.At.Len, Path: f.Path,
		Message: cli.InFlags(f.Message), Part: f.Part, Table: f.Table, Column: f.Column,
		From: Known(f.Rows[0]), To: Known(f.Rows[1]), Lost: Known(f.Lost)}
}

// FindingLine returns severity, code, place, message, and the table, part, column and rows that the finding is about.
func FindingLine(f region.Finding) string {
	place := f.Part
	if f.At != (fault.Span{}) {
		place = f.At.String()
	}
	s := fmt.Sprintf("%s %s %s", f.Severity, f.Code, place)
	if f.Path != "" {
		s += " " + f.Path
	}
	s += ": " + cli.InFlags(f.Message)
	var of []string
	if f.Table != "" && f.Table != f.Part {
		of = append(of, "table "+f.Table)
		if !strings.Contains(place, f.Part) {
			of = append(of, "part "+f.Part)
		}
	}
	if f.Column != "" {
		of = append(of, "column "+f.Column)
	}
	switch {
	case f.Rows[0] >= 0 && f.Rows[1] >= 0:
		rows := fmt.Sprintf("rows %d:%d", f.Rows[0], f.Rows[1])
		if f.Severity == region.Error && f.Lost == 0 && f.Rows[1] > f.Rows[0] {
			rows += ", which can be read"
		}
		of = append(of, rows)
	case f.Lost > 0:
		of = append(of, display.Count(f.Lost, "row")+" lost")
	}
	if len(of) > 0 {
		s += " (" + strings.Join(of, ", ") + ")"
	}
	return display.OneLine(s)
}
