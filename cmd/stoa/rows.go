package main

import (
	"bytes"
	"context"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"stoa"
	"stoa/format"
	"stoa/internal/cells"
)

// rowForms are the forms in which rows are written (-f).
var rowForms = []string{"table", "vertical", "jsonl", "json", "csv", "tsv", "arrow", "parquet"}

// asTable is the form of rows on a terminal when no other is asked for: a table if it fits, else a block a row.
const asTable = "table or vertical"

// outputFlags say where the output goes and in which form.
type outputFlags struct {
	form string
	file string
}

func (f *outputFlags) register(cmd *cobra.Command, forms []string, preset string) {
	usage := "write as `FORM`: " + strings.Join(forms, ", ") + " (" + preset + ")"
	cmd.Flags().StringVarP(&f.form, "format", "f", "", usage)
	cmd.Flags().StringVarP(&f.file, "output", "o", "",
		"write to `FILE`, which appears only when it is complete (- is standard output)")
	complete(cmd, "format", func() []string { return forms })
}

// toFile reports whether the output goes elsewhere than to standard output.
func (f *outputFlags) toFile() bool { return f.file != "" && f.file != dash }

func (f *outputFlags) path() string {
	if f.file == "" {
		return dash
	}
	return f.file
}

// check refuses a form that is not among forms. Where there is text, table means the same.
func (f *outputFlags) check(forms []string) error {
	if f.form == "table" && slices.Contains(forms, "text") {
		f.form = "text"
	}
	if f.form != "" && !slices.Contains(forms, f.form) {
		return &useError{"-f " + f.form + " is not a form of this output", "the forms are " + strings.Join(forms, ", ")}
	}
	return nil
}

// rowForm decides the form of rows: -f, else the file's extension, else a table on a terminal and JSON lines elsewhere.
func (f *outputFlags) rowForm(a *app) (string, error) {
	if err := f.check(rowForms); err != nil {
		return "", err
	}
	switch {
	case f.form != "":
		if a.tty && !f.toFile() && (f.form == "arrow" || f.form == "parquet") {
			return "", &useError{f.form + " is not for a terminal", "use -o FILE or a pipe"}
		}
		return f.form, nil
	case f.toFile():
		return f.formOfFile(a)
	case a.tty:
		return asTable, nil
	}
	return "jsonl", nil
}

func (f *outputFlags) formOfFile(a *app) (string, error) {
	ext := strings.ToLower(path.Ext(filepath.ToSlash(f.file)))
	switch ext {
	case ".json":
		return "json", nil
	case ".txt":
		return "table", nil
	}
	if fm := stoa.ByExtension(a.formats, f.file); fm != nil && slices.Contains(rowForms, fm.Name) {
		return fm.Name, nil
	}
	return "", &useError{"-o " + f.file + ": the extension does not say in which form to write",
		"use -f; stoa convert writes other formats"}
}

// rowWriter takes the batches of a scan.
type rowWriter interface {
	Write(ctx context.Context, b arrow.RecordBatch) error
	Close(ctx context.Context) (format.Summary, error)
	Abort(ctx context.Context) error // after Close it does nothing
}

// rowWriter begins the output of rows of schema sc.
func (a *app) rowWriter(ctx context.Context, f *outputFlags, form string, sc *arrow.Schema) (rowWriter, error) {
	switch form {
	case "table", "vertical", asTable, "json":
		p, err := a.create(ctx, f.path())
		if err != nil {
			return nil, err
		}
		if form == "json" {
			return &textRows{place: p, rows: newJSONArray(p, sc)}, nil
		}
		style := a.style(f)
		style.layout = map[string]layout{"table": across, "vertical": upAlong, asTable: asFits}[form]
		return &textRows{place: p, rows: newTable(p, sc, style)}, nil
	}
	o := stoa.CreateOptions{Formats: a.formats, To: form, Alloc: pool}
	if form == "arrow" && !f.toFile() {
		o.Opts = map[string]string{"stream": "true"} // a reader of a pipe cannot begin at the end
	}
	return a.createTable(ctx, f.path(), sc, o)
}

// createTable is stoa.Create for places of every kind.
func (a *app) createTable(ctx context.Context, uri string, sc *arrow.Schema, o stoa.CreateOptions) (rowWriter, error) {
	sink, real, err := a.sink(uri)
	if err != nil {
		return nil, err
	}
	if o.To == "" && uri != real {
		if fm := stoa.ByExtension(a.formats, uri); fm != nil {
			o.To = fm.Name
		}
	}
	if o.To == "" && uri == dash {
		return nil, wrongUse("for standard output, --to says which format to write")
	}
	o.Sink = sink
	return stoa.Create(ctx, real, sc, o)
}

// textRows are the forms that are no formats: tables and JSON arrays.
type textRows struct {
	place *place
	rows  interface {
		Write(arrow.RecordBatch) error
		Close() error
	}
	n    int64
	done bool
}

func (t *textRows) Write(ctx context.Context, b arrow.RecordBatch) error {
	t.n += b.NumRows()
	return t.rows.Write(b)
}

func (t *textRows) Close(ctx context.Context) (format.Summary, error) {
	if err := t.rows.Close(); err != nil {
		return format.Summary{}, err
	}
	t.done = true
	return format.Summary{Rows: t.n}, t.place.commit(ctx)
}

// Abort shows what a table has, where it can be seen at all.
func (t *textRows) Abort(ctx context.Context) error {
	if t.done {
		return nil
	}
	t.done = true
	if tb, ok := t.rows.(*table); ok {
		if _, ok := t.place.sink.(*streamSink); ok {
			tb.flush()
		}
	}
	return t.place.abort(ctx)
}

// jsonArray writes rows as one JSON array, a row a line.
type jsonArray struct {
	w     io.Writer
	lines *cells.JSONLWriter
	any   bool
}

func newJSONArray(w io.Writer, sc *arrow.Schema) *jsonArray {
	a := &jsonArray{w: w}
	a.lines = cells.NewJSONLWriter(joiner{a}, sc)
	return a
}

func (a *jsonArray) Write(b arrow.RecordBatch) error { return a.lines.Write(b) }

func (a *jsonArray) Close() error {
	if err := a.lines.Flush(); err != nil {
		return err
	}
	return a.end()
}

func (a *jsonArray) end() error {
	end := "[]\n"
	if a.any {
		end = "\n]\n"
	}
	_, err := io.WriteString(a.w, end)
	return err
}

// joiner makes an array's elements of whole lines.
type joiner struct{ a *jsonArray }

func (j joiner) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		sep := ",\n"
		if !j.a.any {
			sep = "[\n"
		}
		j.a.any = true
		if _, err := io.WriteString(j.a.w, sep); err != nil {
			return 0, err
		}
		if _, err := j.a.w.Write(p[:i]); err != nil {
			return 0, err
		}
		p = p[i+1:]
	}
	return n, nil
}
