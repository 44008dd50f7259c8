package check

import (
	"errors"
	"fmt"

	"stoa/fault"
	"stoa/region"
)

// Undeclared returns the finding that damage, why, makes the number of rows of a table unknown.
func Undeclared(table string, why error) *region.Finding {
	f := &region.Finding{Code: "output.rows.undeclared", Severity: region.Error, Part: table, Rows: unknown, Lost: -1,
		Message: "the number of rows that there were is unknown, because what states it is damaged: more may be " +
			"missing than were reported as lost"}
	f.At.Object = table
	var e *fault.Error
	if errors.As(why, &e) {
		f.At = e.At
	}
	return f
}

// RowSum are numbers of rows of a recovered table that do not add up.
type RowSum struct {
	Table           string
	By              string // the file that states Declared; "": the table's own metadata
	Declared, Found int64  // -1: not known
	Out, Lost       int64
}

// Finding returns the finding that they do not add up. It says who declares how many: the metadata may be another
// table's.
func (s *RowSum) Finding() *region.Finding {
	whole, states := s.Declared, "the metadata of "+s.Table+" declare"
	switch {
	case whole < 0:
		whole, states = s.Found, "recovery found"
	case s.By != "":
		states = s.By + " declares"
	}
	f := &region.Finding{Code: "output.rows.sum", Severity: region.Error, Part: s.Table, Rows: unknown,
		Lost: max(-1, whole-s.Out-s.Lost)}
	f.At.Object = s.Table
	f.Message = fmt.Sprintf("%s %s, %d came out, and %d were reported as lost", states, fault.Count(whole, "row"),
		s.Out, s.Lost)
	if s.Declared >= 0 && s.Found >= 0 && s.Declared != s.Found {
		wrong := "rows are missing"
		if s.Found > s.Declared {
			wrong = "there are rows of something else"
		}
		f.Message += fmt.Sprintf("; recovery found %d: %s, or the metadata are another table's", s.Found, wrong)
	}
	return f
}
