package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"stoa/fault"
)

// The limits of a query in SQL. Rows beyond them are left out, and the answer says so.
const (
	maxQuery   = 8 << 10 // bytes of the text
	maxResult  = 4 << 20 // bytes of the rows, as JSON
	maxSQLRows = 1000
)

// sqlRunner runs a query that may read only what lies below places, writes its rows as JSON lines, and returns the exit
// status.
type sqlRunner = func(ctx context.Context, places []string, query string, out, notes io.Writer) int

// sqlResult is what a query gave.
type sqlResult struct {
	Command string      `json:"command"` // the line that a person would type
	Status  int         `json:"status"`
	Columns []string    `json:"columns"`
	Rows    [][]*string `json:"rows"` // cells as texts; null is null
	Cut     bool        `json:"cut,omitempty"`
	Notes   []string    `json:"notes,omitempty"` // what the program said, such as what is wrong with the query
}

// runSQL runs a query over places.
func runSQL(ctx context.Context, run sqlRunner, places []string, text string) (*sqlResult, error) {
	switch {
	case run == nil:
		return nil, fault.Unsupportedf(fault.Span{}, "", "the program stoa-sql is neither beside stoa nor on the PATH")
	case text == "" || len(text) > maxQuery:
		return nil, asked("query: expected 1 to %d bytes, found %d", maxQuery, len(text))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	notes := &Bounded{Most: maxNotes}
	lines := &firstLines{Bounded: Bounded{Most: maxResult, Full: cancel}, left: maxSQLRows}
	r := &sqlResult{Command: shown([]string{"sql", text}), Columns: []string{}, Rows: [][]*string{}}
	r.Status = run(ctx, places, text, lines, notes)
	r.Cut, r.Notes = lines.Over, linesOf(notes)
	if r.Cut { // the program was stopped, and says so
		r.Status, r.Notes = 0, nil
	} else if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return r, r.take(lines.whole())
}

// firstLines keeps so many lines.
type firstLines struct {
	Bounded
	left int
}

func (f *firstLines) Write(p []byte) (int, error) {
	n := 0
	for n < len(p) && f.left > 0 {
		k := bytes.IndexByte(p[n:], '\n') + 1
		if k == 0 {
			k = len(p) - n
		} else {
			f.left--
		}
		if got, err := f.Bounded.Write(p[n : n+k]); err != nil {
			return n + got, err
		}
		n += k
	}
	if n < len(p) {
		f.Over = true
		f.Full()
		return n, fmt.Errorf("the first %d rows are enough", maxSQLRows)
	}
	return n, nil
}

// whole returns the lines that are complete.
func (f *firstLines) whole() []byte { return f.Bytes()[:bytes.LastIndexByte(f.Bytes(), '\n')+1] }

// take adds rows, which are JSON lines. The columns are those of all rows, in the order in which they come: statements
// one after another may have different ones.
func (r *sqlResult) take(lines []byte) error {
	d := json.NewDecoder(bytes.NewReader(lines))
	for d.More() {
		row := make([]*string, len(r.Columns))
		if t, err := d.Token(); err != nil || t != json.Delim('{') {
			return fault.Bugf("sql: a line is no object: %v %v", t, err)
		}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return fault.Bugf("sql: %v", err)
			}
			var cell json.RawMessage
			if err := d.Decode(&cell); err != nil {
				return fault.Bugf("sql: %v", err)
			}
			column, _ := name.(string)
			k := slices.Index(r.Columns, column)
			if k < 0 {
				k, r.Columns, row = len(r.Columns), append(r.Columns, column), append(row, nil)
			}
			row[k] = cellText(cell)
		}
		if _, err := d.Token(); err != nil {
			return fault.Bugf("sql: %v", err)
		}
		r.Rows = append(r.Rows, row)
	}
	for i, row := range r.Rows {
		r.Rows[i] = append(row, make([]*string, len(r.Columns)-len(row))...)
	}
	return nil
}

// cellText is a value as a text: JavaScript's numbers have 53 bits.
func cellText(cell json.RawMessage) *string {
	if string(cell) == "null" {
		return nil
	}
	var text string
	if json.Unmarshal(cell, &text) != nil {
		text = string(cell)
	}
	return &text
}
