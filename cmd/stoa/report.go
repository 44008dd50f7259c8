package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

// reportForms are the forms of the verbs that tell about files rather than print their rows. A report is text
// wherever it goes; programs ask for -f json.
var reportForms = []string{"text", "json", "jsonl", "csv", "tsv"}

// report is a small table that is known as a whole.
type report struct {
	cols []reportColumn
	keys int // leading columns that say what a row is about; 0 means 1
	rows [][]string
	docs []any // what -f json has for each row
}

type reportColumn struct {
	name  string
	right bool
}

func (r *report) add(doc any, cells ...string) {
	r.rows = append(r.rows, cells)
	r.docs = append(r.docs, doc)
}

// write writes the report to where out says, in the form that it says.
func (r *report) write(ctx context.Context, a *app, out *outputFlags) error {
	if err := out.check(reportForms); err != nil {
		return err
	}
	return a.put(ctx, out, func(w io.Writer) error {
		switch out.form {
		case "json":
			return writeArray(w, r.docs)
		case "jsonl":
			return writeLines(w, r.docs)
		case "csv", "tsv":
			return r.writeCSV(w, out.form)
		}
		return r.writeTable(w, a.style(out))
	})
}

// style is what an output is shown on.
func (a *app) style(out *outputFlags) tableStyle {
	if out.toFile() {
		return tableStyle{}
	}
	return tableStyle{width: a.width, colour: a.colour()}
}

// put writes the output of a verb: all of it or, in a file, nothing.
func (a *app) put(ctx context.Context, out *outputFlags, write func(io.Writer) error) error {
	err := a.putWhole(ctx, out, func(w io.Writer) error { return write(&asLongAsRead{w: w}) })
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// putWhole is put for what must be read to its end: a reader that goes away is errEnough.
func (a *app) putWhole(ctx context.Context, out *outputFlags, write func(io.Writer) error) error {
	p, err := a.create(ctx, out.path())
	if err != nil {
		return err
	}
	defer p.abort(ctx)
	if err := write(p); err != nil {
		return err
	}
	return p.commit(ctx)
}

// asLongAsRead writes for a reader that may go away. What is written goes on then: the status is that of what
// is found, not of what was looked at.
type asLongAsRead struct {
	w    io.Writer
	gone bool
}

func (l *asLongAsRead) Write(b []byte) (int, error) {
	if l.gone {
		return len(b), nil
	}
	n, err := l.w.Write(b)
	if l.gone = errors.Is(err, errEnough); l.gone {
		return len(b), nil
	}
	return n, err
}

// jsonLine is a document on one line.
func jsonLine(doc any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(doc)
	return b.Bytes(), err
}

func writeLines[T any](w io.Writer, docs []T) error {
	for _, d := range docs {
		b, err := jsonLine(d)
		if err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// writeArray writes a JSON array, an element a line.
func writeArray[T any](w io.Writer, docs []T) error {
	j := &jsonArray{w: w}
	if err := writeLines(joiner{j}, docs); err != nil {
		return err
	}
	return j.end()
}

// writeCSV writes the names in lower case, without blanks, and the cells of the documents where there are any.
func (r *report) writeCSV(w io.Writer, form string) error {
	c := csv.NewWriter(w)
	if form == "tsv" {
		c.Comma = '\t'
	}
	var head []string
	for _, col := range r.cols {
		head = append(head, strings.ReplaceAll(col.name, " ", "_"))
	}
	if err := c.Write(head); err != nil {
		return err
	}
	return c.WriteAll(r.rows)
}

// writeTable writes columns as wide as they need; those that say nothing are left out. What is too wide for the
// terminal stands in several tables, one below the other, each with the keys; a text at the end of a line goes
// on below itself.
func (r *report) writeTable(w io.Writer, style tableStyle) error {
	shown := r.shown()
	widths := make([]int, len(r.cols))
	for _, k := range shown {
		widths[k] = displayWidth(r.cols[k].name)
		for _, row := range r.rows {
			row[k] = oneLine(row[k])
			widths[k] = max(widths[k], displayWidth(row[k]))
		}
	}
	tables := r.split(shown, widths, style.width)
	if len(tables) > 1 && (len(r.rows) <= 2 || r.keyWidth(shown, widths) > style.width/2) {
		return r.writeBlocks(w, shown, style)
	}
	head := make([]string, len(r.cols))
	for k, c := range r.cols {
		head[k] = c.name
	}
	var b []byte
	for i, t := range tables {
		if i > 0 {
			b = append(b, '\n')
		}
		if strings.Join(head, "") != "" {
			b = r.line(b, head, t, widths, style.colour)
		}
		for _, row := range r.rows {
			b = r.line(b, row, t, widths, false)
		}
	}
	_, err := w.Write(b)
	return err
}

// shown are the columns that say something in at least one row.
func (r *report) shown() (out []int) {
	for k := range r.cols {
		if len(r.rows) == 0 || slices.ContainsFunc(r.rows, func(row []string) bool { return row[k] != "" }) {
			out = append(out, k)
		}
	}
	return out
}

// keysOf are the columns with which every table begins.
func (r *report) keysOf(shown []int) []int {
	n := 0
	for n < len(shown) && shown[n] < max(1, r.keys) {
		n++
	}
	return shown[:min(len(shown), max(1, n))]
}

// keyWidth is how wide they are together.
func (r *report) keyWidth(shown, widths []int) int {
	sum := -len(gutter)
	for _, k := range r.keysOf(shown) {
		sum += len(gutter) + widths[k]
	}
	return sum
}

// split divides the columns into tables that fit in width cells. The last text of a table is folded where that
// leaves it enough room.
func (r *report) split(shown, widths []int, width int) [][]int {
	if width <= 0 || len(shown) == 0 {
		return [][]int{shown}
	}
	keys := r.keysOf(shown)
	for _, k := range keys {
		widths[k] = min(widths[k], max(narrowest, width))
	}
	start := r.keyWidth(shown, widths)
	out := [][]int{slices.Clone(keys)}
	at := start
	for _, k := range shown[len(keys):] {
		left := width - at - len(gutter)
		if widths[k] > left && (r.cols[k].right || left < foldRoom) {
			out = append(out, slices.Clone(keys))
			at = start
			left = max(narrowest, width-at-len(gutter))
		}
		widths[k] = min(widths[k], left)
		at += len(gutter) + widths[k]
		out[len(out)-1] = append(out[len(out)-1], k)
	}
	return out
}

// writeBlocks shows each row as a block of lines.
func (r *report) writeBlocks(w io.Writer, shown []int, style tableStyle) error {
	names := make([]string, len(r.cols))
	for k, c := range r.cols {
		names[k] = c.name
	}
	u := newUpright(names, style.width)
	dim := (&table{style: style}).dim
	var b []byte
	for i, row := range r.rows {
		if i > 0 {
			b = append(b, '\n')
		}
		for _, k := range shown {
			if row[k] != "" {
				b = u.append(b, k, row[k], 0, dim)
			}
		}
	}
	_, err := w.Write(b)
	return err
}

// line shows a row: the columns of one table. What is wider than its column goes on below itself if it is the
// last, else it is cut.
func (r *report) line(b []byte, row []string, table, widths []int, dim bool) []byte {
	start := len(b)
	if dim {
		b = append(b, "\x1b[2m"...)
	}
	var more []string
	at := 0
	for i, k := range table {
		s := row[k]
		if i > 0 {
			b = append(b, gutter...)
			at += len(gutter)
		}
		if displayWidth(s) > widths[k] {
			if i < len(table)-1 {
				s = runewidth.Truncate(s, widths[k], "…")
			} else {
				more = folded(s, widths[k], 0)
				s, more = more[0], more[1:]
			}
		}
		fill := widths[k] - displayWidth(s)
		if r.cols[k].right {
			b = pad(b, fill)
		}
		b = append(b, s...)
		if !r.cols[k].right {
			b = pad(b, fill)
		}
		at += widths[k]
	}
	b = append(b[:start], trimRight(b[start:])...)
	if dim {
		b = append(b, "\x1b[0m"...)
	}
	b = append(b, '\n')
	for _, m := range more {
		b = append(append(pad(b, at-widths[table[len(table)-1]]), m...), '\n')
	}
	return b
}
