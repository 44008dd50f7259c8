package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"strings"

	"github.com/mattn/go-runewidth"
)

// reportForms are the forms of the verbs that tell about files rather than print their rows. A report is text
// wherever it goes; programs ask for -f json.
var reportForms = []string{"text", "json", "jsonl", "csv", "tsv"}

// report is a small table that is known as a whole.
type report struct {
	cols []reportColumn
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
		style := tableStyle{}
		if !out.toFile() {
			style = tableStyle{width: a.width, colour: a.colour()}
		}
		return r.writeTable(w, style)
	})
}

// put writes the output of a verb: all of it or, in a file, nothing.
func (a *app) put(ctx context.Context, out *outputFlags, write func(io.Writer) error) error {
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

// writeTable writes columns as wide as they need; on a terminal only the last one is cut.
func (r *report) writeTable(w io.Writer, style tableStyle) error {
	widths := make([]int, len(r.cols))
	for k, c := range r.cols {
		widths[k] = cells(c.name)
	}
	for _, row := range r.rows {
		for k := range row {
			row[k] = oneLine(row[k])
			widths[k] = max(widths[k], cells(row[k]))
		}
	}
	var b []byte
	head := make([]string, len(r.cols))
	for k, c := range r.cols {
		head[k] = c.name
	}
	if strings.Join(head, "") != "" {
		b = r.line(b, head, widths, tableStyle{}, style.colour)
	}
	for _, row := range r.rows {
		b = r.line(b, row, widths, style, false)
	}
	_, err := w.Write(b)
	return err
}

func (r *report) line(b []byte, row []string, widths []int, style tableStyle, dim bool) []byte {
	start := len(b)
	if dim {
		b = append(b, "\x1b[2m"...)
	}
	at := 0
	for k, s := range row {
		if k > 0 {
			b = append(b, gutter...)
			at += len(gutter)
		}
		if k == len(row)-1 && style.width > at+narrowest {
			s = runewidth.Truncate(s, style.width-at, "…")
		}
		fill := widths[k] - cells(s)
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
	return append(b, '\n')
}
