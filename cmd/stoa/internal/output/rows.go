package output

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/fault"
	"stoa/format"
	"stoa/internal/cells"
)

// RowForms are the forms in which rows are written (-f).
var RowForms = []string{"table", "vertical", "jsonl", "json", "csv", "tsv", "markdown", "arrow", "parquet"}

// asTable is the default form of rows on a terminal: a table if it fits, else a block per row.
const asTable = "table or vertical"

// OutputFlags determine the destination and form of the output.
type OutputFlags struct {
	Form string
	File string
	Raw  bool // numbers as they are: bytes, and digits without separators
	// Within are the limits for tables that are written; the zero value means the defaults.
	Within format.Limits
}

func (f *OutputFlags) Register(cmd *cobra.Command, forms []string, preset string) {
	usage := "write as `FORM`: " + strings.Join(forms, ", ") + " (" + preset + ")"
	cmd.Flags().StringVarP(&f.Form, "format", "f", "", usage)
	cmd.Flags().StringVarP(&f.File, "output", "o", "",
		"write to `FILE`, which appears only when it is complete (-: standard output)")
	cli.Complete(cmd, "format", func() []string { return forms })
}

// RegisterRaw adds --raw to a verb that prints numbers for people.
func (f *OutputFlags) RegisterRaw(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.Raw, "raw", false, "print exact numbers: bytes, no separators, nothing cut or rounded; "+
		"times in RFC 3339")
}

// Bytes formats a number of bytes, "" if it is not known.
func (f *OutputFlags) Bytes(n int64) string {
	if f.Raw {
		return f.Number(n)
	}
	return display.BytesText(n)
}

// Number formats a number, "" if it is not known.
func (f *OutputFlags) Number(n int64) string {
	if f.Raw && n >= 0 {
		return strconv.FormatInt(n, 10)
	}
	return display.Maybe(n)
}

// ToFile reports whether the output goes somewhere other than standard output.
func (f *OutputFlags) ToFile() bool { return f.File != "" && f.File != cli.Dash }

func (f *OutputFlags) Path() string {
	if f.File == "" {
		return cli.Dash
	}
	return f.File
}

// Check returns an error if the form is not among forms. If forms include text, table is a synonym.
func (f *OutputFlags) Check(forms []string) error {
	if f.Form == "table" && slices.Contains(forms, "text") {
		f.Form = "text"
	}
	if f.Form != "" && !slices.Contains(forms, f.Form) {
		return &cli.UseError{Message: "-f " + f.Form + " is not a form of this output",
			Hint: "the forms are " + strings.Join(forms, ", ")}
	}
	return nil
}

// RowForm determines the form of rows: -f, else the file's extension, else a table on a terminal and JSON lines
// elsewhere.
func (f *OutputFlags) RowForm(a *cli.App) (string, error) {
	if err := f.Check(RowForms); err != nil {
		return "", err
	}
	switch {
	case f.Form != "":
		if a.Tty && !f.ToFile() && (f.Form == "arrow" || f.Form == "parquet") {
			return "", &cli.UseError{Message: f.Form + " is not for a terminal", Hint: "use -o FILE or a pipe"}
		}
		return f.Form, nil
	case f.ToFile():
		return f.formOfFile(a)
	case a.Tty:
		return cmp.Or(a.Display, asTable), nil
	}
	return "jsonl", nil
}

func (f *OutputFlags) formOfFile(a *cli.App) (string, error) {
	ext := strings.ToLower(path.Ext(filepath.ToSlash(f.File)))
	switch ext {
	case ".json":
		return "json", nil
	case ".txt":
		return "table", nil
	case ".md":
		return "markdown", nil
	}
	if fm := stoa.ByExtension(a.Formats, f.File); fm != nil && slices.Contains(RowForms, fm.Name) {
		return fm.Name, nil
	}
	return "", &cli.UseError{Message: "-o " + f.File + ": the extension does not say in which form to write",
		Hint: "use -f; stoa convert writes other formats"}
}

// RowWriter writes the batches of a scan.
type RowWriter interface {
	Write(ctx context.Context, b arrow.RecordBatch) error
	Close(ctx context.Context) (format.Summary, error)
	Abort(ctx context.Context) error // after Close it does nothing
}

// OpenRowWriter begins the output of rows of schema sc.
func OpenRowWriter(a *cli.App, ctx context.Context, f *OutputFlags, form string, sc *arrow.Schema) (RowWriter, error) {
	switch form {
	case "table", "vertical", asTable, "json", "markdown":
		if form == "json" {
			if err := cells.Distinct(sc.Fields(), ""); err != nil {
				return nil, err
			}
		}
		p, err := a.Create(ctx, f.Path())
		if err != nil {
			return nil, err
		}
		if form == "json" {
			return &textRows{place: p, rows: newJSONArray(p, sc)}, nil
		}
		if form == "markdown" {
			return &textRows{place: p, rows: newMarkdown(p, sc)}, nil
		}
		style := StyleOf(a, f)
		style.Layout = map[string]display.Layout{"table": display.Horizontal, "vertical": display.Vertical,
			asTable: display.AsFits}[form]
		return &textRows{place: p, rows: display.NewTable(p, sc, style)}, nil
	}
	o := stoa.CreateOptions{Formats: a.Formats, To: form, Alloc: cli.Pool, Limits: f.Within}
	if form == "arrow" && !f.ToFile() {
		o.Opts = map[string]string{"stream": "true"} // the reader of a pipe cannot start at the end
	}
	return CreateTable(a, ctx, f.Path(), sc, o)
}

// CreateTable is stoa.Create for places of every kind.
func CreateTable(a *cli.App, ctx context.Context, uri string, sc *arrow.Schema, o stoa.CreateOptions) (RowWriter,
	error) {
	real, err := sinkOf(ctx, a, uri, &o)
	if err != nil {
		return nil, err
	}
	if o.To == "" && uri == cli.Dash {
		return nil, cli.WrongUse("for standard output, --to says which format to write")
	}
	return stoa.Create(ctx, real, sc, o)
}

// sinkOf sets o.Sink for a place and returns the place's real name. It returns an error if nothing determines the
// format.
func sinkOf(ctx context.Context, a *cli.App, uri string, o *stoa.CreateOptions) (real string, err error) {
	if o.Sink, real, err = a.Sink(ctx, uri); err == nil && o.To == "" && uri != real {
		if fm := stoa.ByExtension(a.Formats, uri); fm != nil {
			o.To = fm.Name
		}
	}
	if err == nil && o.To == "" && uri != cli.Dash && stoa.ByExtension(a.Formats, real) == nil {
		err = fault.Invalidf("%s: the extension %q does not say which format to write; use --to", uri,
			path.Ext(strings.TrimSuffix(filepath.ToSlash(uri), "/")))
	}
	return real, err
}

// CopyTable is stoa.Copy for places of every kind but standard output.
func CopyTable(a *cli.App, ctx context.Context, uri string, t *stoa.Table, spec stoa.ScanSpec,
	o stoa.CreateOptions) (s format.Summary, why string, err error) {
	if uri == cli.Dash {
		return s, "it goes to standard output", nil
	}
	real, err := sinkOf(ctx, a, uri, &o)
	if err != nil {
		return s, "", err
	}
	return stoa.Copy(ctx, t, spec, real, o)
}

// textRows are the forms that are not formats: tables and JSON arrays.
type textRows struct {
	place *cli.Place
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
	return format.Summary{Rows: t.n}, t.place.Commit(ctx)
}

// Abort prints the pending rows of a table, if earlier ones have been printed already.
func (t *textRows) Abort(ctx context.Context) error {
	if t.done {
		return nil
	}
	t.done = true
	if tb, ok := t.rows.(*display.Table); ok {
		if _, ok := t.place.Sink.(*cli.StreamSink); ok {
			tb.Flush()
		}
	}
	return t.place.Abort(ctx)
}

// JsonArray writes rows as one JSON array, with one row per line.
type JsonArray struct {
	W     io.Writer
	lines *cells.JSONLWriter
	any   bool
}

func newJSONArray(w io.Writer, sc *arrow.Schema) *JsonArray {
	a := &JsonArray{W: w}
	a.lines = cells.NewJSONLWriter(Joiner{A: a}, sc)
	return a
}

func (a *JsonArray) Write(b arrow.RecordBatch) error { return a.lines.Write(b) }

func (a *JsonArray) Close() error {
	if err := a.lines.Flush(); err != nil {
		return err
	}
	return a.End()
}

func (a *JsonArray) End() error {
	end := "[]\n"
	if a.any {
		end = "\n]\n"
	}
	_, err := io.WriteString(a.W, end)
	return err
}

// Joiner turns whole lines into elements of an array.
type Joiner struct{ A *JsonArray }

func (j Joiner) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		sep := ",\n"
		if !j.A.any {
			sep = "[\n"
		}
		j.A.any = true
		if _, err := io.WriteString(j.A.W, sep); err != nil {
			return 0, err
		}
		if _, err := j.A.W.Write(p[:i]); err != nil {
			return 0, err
		}
		p = p[i+1:]
	}
	return n, nil
}
