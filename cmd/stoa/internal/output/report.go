package output

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/format"

	"github.com/mattn/go-runewidth"
)

// ReportForms are the forms of the verbs that report on files and do not print their rows. A report is text wherever it
// goes; programs use -f json.
var ReportForms = []string{"text", "json", "jsonl", "csv", "tsv"}

// Report is a small table that is held in memory.
type Report struct {
	Cols []ReportColumn
	Keys int // leading columns that identify a row; 0 means 1
	Rows [][]string
	One  bool  // keep it in one table on a narrow terminal, too: see writeOne
	Bare bool  // a table of it has no heading; the cells say what they are, with the Unit of their column
	docs []any // what -f json prints for each row
}

type ReportColumn struct {
	Name  string
	Unit  string // in a table without a heading: what a number counts, such as row
	Right bool
	Below bool // the last column: where it does not fit, its values are below their rows
}

func (r *Report) Add(doc any, cells ...string) {
	r.Rows = append(r.Rows, cells)
	r.docs = append(r.docs, doc)
}

// Write writes the report to the destination and in the form that out gives.
func (r *Report) Write(ctx context.Context, a *cli.App, out *OutputFlags) error {
	if err := out.Check(ReportForms); err != nil {
		return err
	}
	return PutDoc(a, ctx, out, func(w io.Writer) error {
		switch out.Form {
		case "json":
			return WriteArray(w, r.docs)
		case "jsonl":
			return WriteLines(w, r.docs)
		case "csv", "tsv":
			return r.writeCSV(w, out.Form)
		}
		return r.WriteTable(w, StyleOf(a, out))
	})
}

// StyleOf returns the style for an output.
func StyleOf(a *cli.App, out *OutputFlags) display.TableStyle {
	if out.ToFile() {
		return display.TableStyle{}
	}
	return display.TableStyle{Width: a.Width, Colour: a.Colour()}
}

// PutDoc writes the output of a verb. A file is written completely or not at all.
func PutDoc(a *cli.App, ctx context.Context, out *OutputFlags, write func(io.Writer) error) error {
	err := PutWhole(a, ctx, out, func(w io.Writer) error { return write(&asLongAsRead{w: w}) })
	if errors.Is(err, cli.ErrEnough) {
		return nil
	}
	return err
}

// PutWhole is PutDoc for output that must be read to its end: a reader that stops early is cli.ErrEnough.
func PutWhole(a *cli.App, ctx context.Context, out *OutputFlags, write func(io.Writer) error) error {
	p, err := a.Create(ctx, out.Path())
	if err != nil {
		return err
	}
	defer p.Abort(ctx)
	if err := write(p); err != nil {
		return err
	}
	return p.Commit(ctx)
}

// asLongAsRead writes for a reader that may stop early. The writer continues nevertheless: the status is that of
// everything that is found, not only of the part that was read.
type asLongAsRead struct {
	w    io.Writer
	gone bool
}

func (l *asLongAsRead) Write(b []byte) (int, error) {
	if l.gone {
		return len(b), nil
	}
	n, err := l.w.Write(b)
	if l.gone = errors.Is(err, cli.ErrEnough); l.gone {
		return len(b), nil
	}
	return n, err
}

// JsonLine encodes a document on one line.
func JsonLine(doc any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(doc)
	return b.Bytes(), err
}

func WriteLines[T any](w io.Writer, docs []T) error {
	for _, d := range docs {
		b, err := JsonLine(d)
		if err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// WriteArray writes a JSON array, with one element per line.
func WriteArray[T any](w io.Writer, docs []T) error {
	j := &JsonArray{W: w}
	if err := WriteLines(Joiner{A: j}, docs); err != nil {
		return err
	}
	return j.End()
}

// writeCSV writes the names, with underscores for blanks, and the rows.
func (r *Report) writeCSV(w io.Writer, form string) error {
	c := csv.NewWriter(w)
	if form == "tsv" {
		c.Comma = '\t'
	}
	var head []string
	for _, col := range r.Cols {
		head = append(head, strings.ReplaceAll(col.Name, " ", "_"))
	}
	if err := c.Write(head); err != nil {
		return err
	}
	return c.WriteAll(r.Rows)
}

// WriteTable writes columns as wide as necessary, leaving out empty ones. A report that is too wide for the terminal is
// divided into several tables, one below the other, each with the key columns; a long text at the end of a line is
// continued below itself.
func (r *Report) WriteTable(w io.Writer, style display.TableStyle) error {
	shown := r.shown()
	widths := make([]int, len(r.Cols))
	plain := r
	if r.Bare {
		r = r.withUnits()
	}
	for _, k := range shown {
		widths[k] = display.DisplayWidth(r.head()[k])
		for _, row := range r.Rows {
			row[k] = display.OneLine(row[k])
			widths[k] = max(widths[k], display.DisplayWidth(row[k]))
		}
	}
	if style.Width <= 0 { // a long value exceeds its column instead of making the others' rows as long
		for _, k := range shown {
			widths[k] = min(widths[k], maxAligned)
		}
	}
	natural := slices.Clone(widths)
	tables := r.split(shown, widths, style.Width)
	if last := len(shown) - 1; r.One && last >= 0 && (len(tables) > 1 || widths[shown[last]] < natural[shown[last]]) {
		if done, err := r.writeOne(w, shown, natural, style); done {
			return err
		}
	}
	if len(tables) > 1 && (len(r.Rows) <= 2 || r.keyWidth(shown, widths) > style.Width/2) {
		return plain.writeBlocks(w, shown, style)
	}
	head := r.head()
	var b []byte
	for i, t := range tables {
		if i > 0 {
			b = append(b, '\n')
		}
		if strings.Join(head, "") != "" {
			b = r.line(b, head, t, widths, style.Colour, style.Width <= 0)
		}
		for _, row := range r.Rows {
			b = r.line(b, row, t, widths, false, style.Width <= 0)
		}
	}
	_, err := w.Write(b)
	return err
}

// maxAligned is the width to which columns are padded outside of a terminal.
const maxAligned = 80

// head returns the heading.
func (r *Report) head() []string {
	names := make([]string, len(r.Cols))
	for k, c := range r.Cols {
		if !r.Bare {
			names[k] = c.Name
		}
	}
	return names
}

// withUnits returns the report with the unit behind each number. The digits of "1 row" end where those of "13 rows" do.
func (r *Report) withUnits() *Report {
	c := *r
	c.Rows = make([][]string, len(r.Rows))
	for i, row := range r.Rows {
		c.Rows[i] = slices.Clone(row)
		for k, cell := range row {
			switch unit := r.Cols[k].Unit; {
			case unit == "" || cell == "":
			case cell == "1":
				c.Rows[i][k] = cell + " " + unit + " "
			default:
				c.Rows[i][k] = cell + " " + unit + "s"
			}
		}
	}
	return &c
}

// shown returns the columns that are not empty in every row.
func (r *Report) shown() (out []int) {
	for k := range r.Cols {
		if len(r.Rows) == 0 || slices.ContainsFunc(r.Rows, func(row []string) bool { return row[k] != "" }) {
			out = append(out, k)
		}
	}
	return out
}

// keysOf returns the columns with which every table begins.
func (r *Report) keysOf(shown []int) []int {
	n := 0
	for n < len(shown) && shown[n] < max(1, r.Keys) {
		n++
	}
	return shown[:min(len(shown), max(1, n))]
}

// keyWidth returns the total width of these columns.
func (r *Report) keyWidth(shown, widths []int) int {
	sum := -len(display.Gutter)
	for _, k := range r.keysOf(shown) {
		sum += len(display.Gutter) + widths[k]
	}
	return sum
}

// split divides the columns into tables that fit in width cells. The last text of a table is folded if that leaves it
// enough room.
func (r *Report) split(shown, widths []int, width int) [][]int {
	if width <= 0 || len(shown) == 0 {
		return [][]int{shown}
	}
	keys := r.keysOf(shown)
	for _, k := range keys {
		widths[k] = min(widths[k], max(display.Narrowest, width))
	}
	start := r.keyWidth(shown, widths)
	out := [][]int{slices.Clone(keys)}
	at := start
	for _, k := range shown[len(keys):] {
		left := width - at - len(display.Gutter)
		if widths[k] > left && (r.Cols[k].Right || left < display.FoldRoom) {
			out = append(out, slices.Clone(keys))
			at = start
			left = max(display.Narrowest, width-at-len(display.Gutter))
		}
		widths[k] = min(widths[k], left)
		at += len(display.Gutter) + widths[k]
		out[len(out)-1] = append(out[len(out)-1], k)
	}
	return out
}

// writeBlocks writes each row as a block of lines.
func (r *Report) writeBlocks(w io.Writer, shown []int, style display.TableStyle) error {
	names := make([]string, len(r.Cols))
	for k, c := range r.Cols {
		names[k] = c.Name
	}
	u := display.NewVertical(names, style.Width)
	dim := (&display.Table{Style: style}).Dim
	var b []byte
	for i, row := range r.Rows {
		if i > 0 {
			b = append(b, '\n')
		}
		for _, k := range shown {
			if row[k] != "" {
				b = u.Append(b, k, row[k], 0, dim)
			}
		}
	}
	_, err := w.Write(b)
	return err
}

// line appends a row, with the columns of one table. A value wider than its column is continued below itself if it is
// the last one; otherwise it is cut. With whole it exceeds its column instead.
func (r *Report) line(b []byte, row []string, table, widths []int, dim, whole bool) []byte {
	start := len(b)
	if dim {
		b = append(b, "\x1b[2m"...)
	}
	var more []string
	at := 0
	for i, k := range table {
		s := row[k]
		if i > 0 {
			b = append(b, display.Gutter...)
			at += len(display.Gutter)
		}
		if display.DisplayWidth(s) > widths[k] && !whole {
			if i < len(table)-1 {
				s = runewidth.Truncate(s, widths[k], "…")
			} else {
				more = display.Folded(s, widths[k], 0)
				s, more = more[0], more[1:]
			}
		}
		fill := max(0, widths[k]-display.DisplayWidth(s))
		if r.Cols[k].Right {
			b = display.Pad(b, fill)
		}
		b = append(b, s...)
		if !r.Cols[k].Right {
			b = display.Pad(b, fill)
		}
		at += widths[k]
	}
	b = append(b[:start], display.TrimRight(b[start:])...)
	if dim {
		b = append(b, "\x1b[0m"...)
	}
	b = append(b, '\n')
	for _, m := range more {
		b = append(append(display.Pad(b, at-widths[table[len(table)-1]]), m...), '\n')
	}
	return b
}

var SummaryForms = []string{"text", "json"}

// ReportAltered reports which columns, and how many of their values, differ from the input because options asked for
// it.
func ReportAltered(a *cli.App, out string, list []format.Altered) {
	for _, x := range list {
		a.Note("%s: %s of column %s changed, as %s says", out, display.Count(x.Values, "value"), x.Column, x.Option)
	}
}

// FirstNames returns some names, and how many more there are.
func FirstNames(all []string) string {
	const maxColumns = 5
	names := strings.Join(all[:min(len(all), maxColumns)], ", ")
	if n := len(all); n > maxColumns {
		names += fmt.Sprintf(" and %d more", n-maxColumns)
	}
	return names
}

func WriteSummary(a *cli.App, d any) error {
	b, err := JsonLine(d)
	if err == nil {
		_, err = a.Stdout.Write(b)
	}
	return err
}
