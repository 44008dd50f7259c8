package stoa

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/check"
	"stoa/internal/positions"
	"stoa/region"
)

// Accounts compares the rows that recovery returned with those that the place declares. By the law of conservation, the
// rows returned and those reported as lost add up to the declared rows.
type Accounts struct {
	// rows that the place's own structures declare, opened without recovery; -1 if that number is lost (see Why) or
	// known only by reading
	Declared int64
	Why      error // the damage that makes Declared unknown, or nil
	Found    int64 // rows of the row groups that recovery found; -1: known only by reading
	Out      int64 // rows returned
	Lost     int64 // distinct rows that were reported as lost
	// Exact: Lost counts everything that was reported as lost. Otherwise an unknown number of rows comes on top.
	Exact bool

	table    string
	by       string // the file that states Declared; "": the table's own metadata
	reported int64  // rows that findings of opening report as lost; some may also be in Lost
	dropped  int64  // rows, not in Lost, that may have been dropped because their lost cell cannot be null
}

// Account returns the accounts of a scan of all rows of a table that was opened with OpenOptions.Recover. The scan
// returned out rows and reported losses. Under NullCells, rows with lost cells are among those returned.
func (t *Table) Account(ctx context.Context, damaged Damaged, out int64, losses []region.Loss) (Accounts, error) {
	a := Accounts{Found: -1, Out: out, table: t.name()}
	a.Lost, a.Exact = region.LostRows(losses)
	if damaged == NullCells {
		all := a.Lost
		a.Lost, a.Exact = region.LostRows(slices.DeleteFunc(slices.Clone(losses),
			func(l region.Loss) bool { return l.Column != "" }))
		if slices.ContainsFunc(t.schema.Fields(), alwaysDropped) {
			a.dropped = all - a.Lost
		}
	}
	for _, f := range t.Findings() {
		switch {
		case f.Severity < region.Error:
		case f.Lost < 0:
			a.Exact = false
		default:
			a.reported += f.Lost
		}
	}
	n, err := t.Rows(ctx)
	switch {
	case err == nil:
		a.Found = n
	case !errors.Is(err, fault.Corrupt):
		return a, err
	}
	a.Declared, a.by, err = t.declared(ctx)
	if errors.Is(err, fault.Corrupt) {
		a.Declared, a.Why, err = -1, err, nil
	}
	return a, err
}

// Undeclared returns a finding if damage makes the expected number of rows unknown in a table that was opened with
// OpenOptions.Recover: the rows returned and those reported as lost may then not be all. It returns nil if the number
// is known, or known only by reading.
func (t *Table) Undeclared(ctx context.Context) (*region.Finding, error) {
	if !t.opened.Recover {
		return nil, nil
	}
	_, _, err := t.declared(ctx)
	if !errors.Is(err, fault.Corrupt) {
		return nil, err
	}
	return check.Undeclared(t.name(), err), nil
}

// Undeclared returns the finding that the declared number of rows is lost, or nil if it is not.
func (a *Accounts) Undeclared() *region.Finding {
	if a.Why == nil {
		return nil
	}
	return check.Undeclared(a.table, a.Why)
}

// MarshalJSON encodes the members declared (null if lost or known only by reading), out, lost, and exact (lost counts
// everything that was reported as lost).
func (a *Accounts) MarshalJSON() ([]byte, error) {
	doc := struct {
		Declared *int64 `json:"declared"`
		Out      int64  `json:"out"`
		Lost     int64  `json:"lost"`
		Exact    bool   `json:"exact"`
	}{&a.Declared, a.Out, a.Lost, a.Exact}
	if a.Declared < 0 {
		doc.Declared = nil
	}
	return json.Marshal(doc)
}

// alwaysDropped reports whether rows with a lost cell in a column are dropped even under NullCells: a union has no
// null, and a null fixed-size list may be larger than any page.
func alwaysDropped(f arrow.Field) bool {
	return f.Type.ID() == arrow.DENSE_UNION || f.Type.ID() == arrow.FIXED_SIZE_LIST
}

// name returns the table's name for messages.
func (t *Table) name() string {
	var names []string
	for _, s := range t.sources {
		names = append(names, s.name)
	}
	const limit = 3
	if n := len(names); n > limit {
		names = append(names[:limit], fmt.Sprintf("%d more", n-limit))
	}
	return strings.Join(names, ", ")
}

// declared returns how many rows the sources declare without recovery; -1 if that is known only by reading. by is the
// file that states it, if a reader names one.
func (t *Table) declared(ctx context.Context) (sum int64, by string, err error) {
	for i, s := range t.sources {
		n := int64(-1)
		if !t.opened.Recover || s.format.Recover == nil { // the reader was opened without recovery
			n, err = t.SourceRows(ctx, i)
		} else {
			n, err = s.declared(ctx)
			d, ok := s.reader.(format.Declarer)
			if ok && errors.Is(err, fault.Corrupt) {
				if rows, file := d.Declared(); rows >= 0 {
					n, by, err = rows, file, nil
				}
			}
			if more, ok := s.reader.(format.Adder); ok && err == nil && n >= 0 {
				var rows int64
				rows, err = more.Added(ctx)
				n += rows
			}
		}
		if err != nil || n < 0 {
			return -1, "", err
		}
		sum += n
	}
	return sum, by, nil
}

// Balanced reports whether the sum is right, as far as that can be known.
func (a *Accounts) Balanced() bool {
	balanced := func(whole, reported int64) bool {
		missing := whole - a.Out
		return whole < 0 || missing >= a.Lost && (!a.Exact || missing <= a.Lost+a.dropped+reported)
	}
	// rows that findings report as lost are missing from Found already
	return balanced(a.Found, 0) && balanced(a.Declared, a.reported)
}

// Finding returns a violation of the law, or nil.
func (a *Accounts) Finding() *region.Finding {
	if a.Balanced() {
		return nil
	}
	s := check.RowSum{Table: a.table, By: a.by, Declared: a.Declared, Found: a.Found, Out: a.Out, Lost: a.Lost}
	return s.Finding()
}

// Positions tells which rows of the table a loss is about: the rows of a region.Loss count within its row group, those
// of ScanSpec.Rows within the table.
type Positions = positions.Positions

// Positions lists the row groups in the order in which an unfiltered scan reads them.
func (t *Table) Positions(ctx context.Context) (*Positions, error) {
	p := &Positions{}
	for _, s := range t.sources {
		if err := p.Add(ctx, s.reader); err != nil {
			return nil, err
		}
	}
	return p, nil
}
