package look

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/spf13/cobra"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/schemafmt"
	"stoa/cmd/stoa/internal/source"
	"stoa/format"
)

var schemaForms = []string{"text", "json", "ddl", "avro", "arrow"}

func SchemaCmd(a *cli.App) *cobra.Command {
	var src source.SourceFlags
	var out output.OutputFlags
	var words string
	cmd := &cobra.Command{
		Use:   "schema PATH...",
		Short: "Show the columns and their types",
		Long: `Show the columns of a table: names, types, nullability, and what the file says about them.

-f json has everything: names, types, nullability, metadata, children. -f ddl is a CREATE TABLE statement
for DuckDB or, with --dialect, for Spark, Iceberg or CarbonData, with the table's partitions, buckets and
sort order if it has them (CarbonData). -f avro is an Avro schema; -f arrow is an Arrow IPC message, for
pyarrow.ipc.read_schema.`,
		Example: "  stoa schema block.cfile\n  stoa schema -f ddl sales.parquet > sales.sql\n  stoa schema -f " +
			"ddl --dialect iceberg store#sales.orders",
		Args: a.Paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runSchema(cmd, a, args, &src, &out, words)
		},
	}
	src.Register(a, cmd)
	out.Register(cmd, schemaForms, "default text")
	cmd.Flags().StringVar(&words, "dialect", "duckdb",
		"with -f ddl: the SQL `DIALECT`: duckdb, spark, iceberg, carbon")
	cli.Complete(cmd, "dialect", func() []string { return schemafmt.DialectNames })
	return cli.First(cmd, "format", "dialect", "output")
}

// runSchema writes the schema of a table.
func runSchema(cmd *cobra.Command, a *cli.App, args []string, src *source.SourceFlags, out *output.OutputFlags,
	dialect string) error {
	if err := out.Check(schemaForms); err != nil {
		return err
	}
	if schemafmt.Dialects[dialect] == nil {
		return &cli.UseError{Message: "--dialect: there is no dialect \"" + dialect + "\"",
			Hint: "the dialects are " + strings.Join(schemafmt.DialectNames, ", ")}
	}
	if cmd.Flags().Changed("dialect") && out.Form != "ddl" {
		return cli.WrongUse("--dialect goes with -f ddl")
	}
	if a.Tty && !out.ToFile() && out.Form == "arrow" {
		return &cli.UseError{Message: "arrow is not for a terminal", Hint: "use -o FILE or a pipe"}
	}
	t, err := src.Open(cmd.Context(), a, args)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := cli.CheckOutput(out.File, t.Sources()); err != nil {
		return err
	}
	b, err := SchemaBytes(out.Form, t.Schema(), tableName(args[0]), t.Sources()[0].Layout,
		schemafmt.Dialects[dialect])
	if err != nil {
		return err
	}
	if out.Form == "" || out.Form == "text" {
		b = schemaText(t.Schema(), output.StyleOf(a, out))
	}
	err = output.PutDoc(a, cmd.Context(), out, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
	if err == nil { // the schema is shown even if files that a table names are missing
		_, err = t.Rows(cmd.Context())
	}
	return reading.NoticedIn(a, t.Findings(), err)
}

// SchemaBytes returns a schema in one of the forms; l and d are for ddl.
func SchemaBytes(form string, sc *arrow.Schema, name string, l format.Layout, d *schemafmt.Dialect) ([]byte, error) {
	switch form {
	case "json":
		return indented(schemafmt.SchemaDoc(sc))
	case "ddl":
		return []byte(schemafmt.Ddl(sc, name, l, d)), nil
	case "avro":
		doc, err := schemafmt.AvroSchema(sc, name)
		if err != nil {
			return nil, err
		}
		return indented(doc)
	case "arrow":
		var b bytes.Buffer
		err := ipc.NewWriter(&b, ipc.WithSchema(sc)).Close()
		return b.Bytes(), err
	}
	return schemaText(sc, display.TableStyle{}), nil
}

func indented(doc any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(doc)
	return b.Bytes(), err
}

// tableName derives a name from a path: the part after #, or the file's name without its extension.
func tableName(path string) string {
	if path == cli.Dash {
		return "stdin"
	}
	if i := len(cli.WithoutTable(path)); i < len(path)-1 {
		return path[i+1:]
	}
	path = strings.TrimRight(path, "/")
	base := path[strings.LastIndexByte(path, '/')+1:]
	if i := strings.IndexByte(base, '.'); i > 0 {
		base = base[:i]
	}
	return base
}

// schemaText returns the schema for people: a line per column, with children indented.
func schemaText(sc *arrow.Schema, style display.TableStyle) []byte {
	r := output.Report{One: true, Cols: []output.ReportColumn{{Name: "column"}, {Name: "type"}, {Name: "null"},
		{Name: "says the file", Below: true}}}
	addFields(&r, sc.Fields(), 0)
	var b bytes.Buffer
	r.WriteTable(&b, style)
	if m := facts(sc.Metadata()); m != "" {
		b.WriteString("\n" + strings.Join(display.Folded(display.OneLine(m), style.Width, 0), "\n") + "\n")
	}
	return b.Bytes()
}

func addFields(r *output.Report, fields []arrow.Field, depth int) {
	for _, f := range fields {
		null := "null"
		if !f.Nullable {
			null = "not null"
		}
		children := display.ChildFields(f.Type)
		if f.Type.ID() == arrow.DICTIONARY || f.Type.ID() == arrow.EXTENSION || flat(children) &&
			f.Type.ID() != arrow.STRUCT {
			children = nil
		}
		name := display.TypeName(f.Type)
		if len(children) > 0 {
			name = display.TypeWord(f.Type)
		}
		r.Add(nil, display.Indent(depth)+f.Name, name, null, facts(f.Metadata))
		addFields(r, children, depth+1)
	}
}

// flat reports whether none of the fields has children, so that the type fits on its parent's line.
func flat(fields []arrow.Field) bool {
	for _, f := range fields {
		if len(display.ChildFields(f.Type)) > 0 {
			return false
		}
	}
	return true
}

// facts returns metadata on one line, without long values.
func facts(m arrow.Metadata) string {
	var parts []string
	for i, k := range m.Keys() {
		v := m.Values()[i]
		if len(v) > 80 {
			v = v[:77] + "…"
		}
		parts = append(parts, strings.TrimPrefix(k, "stoa.")+"="+v)
	}
	return strings.Join(parts, " ")
}
