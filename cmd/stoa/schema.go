package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/spf13/cobra"

	"stoa/format"
)

var schemaForms = []string{"text", "json", "ddl", "avro", "arrow"}

func (a *app) schemaCmd() *cobra.Command {
	var src sourceFlags
	var out outputFlags
	var words string
	cmd := &cobra.Command{
		Use:   "schema PATH...",
		Short: "Show the columns and their types",
		Long: `Show the columns of a table: names, types, whether they can be null, and what the file says about them.

-f json is complete: names, types, nullability, metadata, children. -f ddl is a CREATE TABLE in DuckDB's dialect, or
--dialect spark or iceberg, with partitions, buckets and order where the table has them (CarbonData): of an empty table to be
filled; -f avro an Avro schema, -f arrow the Arrow IPC message (for pyarrow.ipc.read_schema).`,
		Example: "  stoa schema block.cfile\n  stoa schema -f ddl sales.parquet > sales.sql\n  stoa schema -f " +
			"ddl --dialect iceberg store#sales.orders",
		Args: a.paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(schemaForms); err != nil {
				return err
			}
			if dialects[words] == nil {
				return &useError{"--dialect: there is no dialect \"" + words + "\"",
					"the dialects are " + strings.Join(dialectNames, ", ")}
			}
			if cmd.Flags().Changed("dialect") && out.form != "ddl" {
				return wrongUse("--dialect goes with -f ddl")
			}
			if a.tty && !out.toFile() && out.form == "arrow" {
				return &useError{"arrow is not for a terminal", "use -o FILE or a pipe"}
			}
			t, err := src.open(cmd.Context(), a, args)
			if err != nil {
				return err
			}
			defer t.Close()
			if err := spare(out.file, t.Sources()); err != nil {
				return err
			}
			b, err := schemaBytes(out.form, t.Schema(), tableName(args[0]), t.Sources()[0].Layout, dialects[words])
			if err != nil {
				return err
			}
			if out.form == "" || out.form == "text" {
				b = schemaText(t.Schema(), a.style(&out))
			}
			return a.put(cmd.Context(), &out, func(w io.Writer) error {
				_, err := w.Write(b)
				return err
			})
		},
	}
	src.register(a, cmd)
	out.register(cmd, schemaForms, "default text")
	cmd.Flags().StringVar(&words, "dialect", "duckdb", "with -f ddl: the `DIALECT` of SQL, duckdb, spark or iceberg")
	complete(cmd, "dialect", func() []string { return dialectNames })
	return cmd
}

// schemaBytes is a schema in one of the forms; l and d are for ddl.
func schemaBytes(form string, sc *arrow.Schema, name string, l format.Layout, d *dialect) ([]byte, error) {
	switch form {
	case "json":
		return indented(schemaDoc(sc))
	case "ddl":
		return []byte(ddl(sc, name, l, d)), nil
	case "avro":
		doc, err := avroSchema(sc, name)
		if err != nil {
			return nil, err
		}
		return indented(doc)
	case "arrow":
		var b bytes.Buffer
		err := ipc.NewWriter(&b, ipc.WithSchema(sc)).Close()
		return b.Bytes(), err
	}
	return schemaText(sc, tableStyle{}), nil
}

func indented(doc any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(doc)
	return b.Bytes(), err
}

// tableName makes a name of a path: what stands behind #, or the file's name without its extension.
func tableName(path string) string {
	if path == dash {
		return "stdin"
	}
	if i := strings.LastIndexByte(path, '#'); i >= 0 && i < len(path)-1 {
		return path[i+1:]
	}
	path = strings.TrimRight(path, "/")
	base := path[strings.LastIndexByte(path, '/')+1:]
	if i := strings.IndexByte(base, '.'); i > 0 {
		base = base[:i]
	}
	return base
}

// schemaText is the schema for people: a line a column, children indented.
func schemaText(sc *arrow.Schema, style tableStyle) []byte {
	r := report{cols: []reportColumn{{name: "column"}, {name: "type"}, {name: "null"}, {name: "says the file"}}}
	addFields(&r, sc.Fields(), 0)
	var b bytes.Buffer
	r.writeTable(&b, style)
	if m := facts(sc.Metadata()); m != "" {
		b.WriteString("\n" + strings.Join(folded(oneLine(m), style.width, 0), "\n") + "\n")
	}
	return b.Bytes()
}

func addFields(r *report, fields []arrow.Field, depth int) {
	for _, f := range fields {
		null := "null"
		if !f.Nullable {
			null = "not null"
		}
		kids := childFields(f.Type)
		if f.Type.ID() == arrow.DICTIONARY || f.Type.ID() == arrow.EXTENSION || flat(kids) &&
			f.Type.ID() != arrow.STRUCT {
			kids = nil
		}
		name := typeName(f.Type)
		if len(kids) > 0 {
			name = typeWord(f.Type)
		}
		r.add(nil, indent(depth)+f.Name, name, null, facts(f.Metadata))
		addFields(r, kids, depth+1)
	}
}

// flat reports whether none of the fields has children: then the type fits on its parent's line.
func flat(fields []arrow.Field) bool {
	for _, f := range fields {
		if len(childFields(f.Type)) > 0 {
			return false
		}
	}
	return true
}

// facts are metadata on one line, without the long ones.
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
