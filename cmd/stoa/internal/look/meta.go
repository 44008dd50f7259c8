package look

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/schemafmt"
	"stoa/cmd/stoa/internal/source"
	"stoa/fault"
	"stoa/region"

	"github.com/spf13/cobra"

	"stoa"
)

var metaForms = []string{"text", "json", "jsonl"}

// metaDoc is what -f json prints for each source.
type metaDoc struct {
	Name    string          `json:"name"`
	Format  string          `json:"format"`
	Rows    *int64          `json:"rows"`
	Columns int             `json:"columns"`
	Bytes   *int64          `json:"bytes"`
	Facts   schemafmt.Pairs `json:"facts"`
}

func MetaCmd(a *cli.App) *cobra.Command {
	var src source.SourceFlags
	var out output.OutputFlags
	cmd := &cobra.Command{
		Use:   "meta PATH...",
		Short: "Show the metadata of a file or table",
		Long: `Show the metadata of a file or table: format, rows, columns, size, and the fields of its
header and footer, by the names that the format gives them. -f json prints an array with an object per
file.`,
		Example: "  stoa meta block.cfile\n  stoa meta sales.parquet block.cfile -f json",
		Args:    a.Paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if err := out.Check(metaForms); err != nil {
				return err
			}
			docs := []metaDoc{}
			var noticed []region.Finding
			failed := src.Each(ctx, a, cmd, args, func(path string, t *stoa.Table) error {
				if err := cli.CheckOutput(out.File, t.Sources()); err != nil {
					return err
				}
				some, err := metaOf(a, ctx, t)
				docs, noticed = append(docs, some...), append(noticed, t.Findings()...)
				return err
			})
			if failed != nil && len(docs) == 0 {
				return failed
			}
			if err := output.PutDoc(a, ctx, &out, func(w io.Writer) error {
				return writeMeta(w, out.Form, docs,
					output.StyleOf(a, &out))
			}); err != nil {
				return err
			}
			return reading.NoticedIn(a, noticed, failed)
		},
	}
	out.Register(cmd, metaForms, "default text")
	src.Register(a, cmd)
	return cli.First(cmd, "format", "output", "from")
}

// metaOf returns the documents of a table's sources. damage is why the rows of a source could not be counted.
func metaOf(a *cli.App, ctx context.Context, t *stoa.Table) (out []metaDoc, damage error) {
	for i, s := range t.Sources() {
		bytes := int64(-1) // for a table in a place that may hold others
		if cli.WithoutTable(s.Name) == s.Name {
			bytes = a.Size(ctx, s.Name)
		}
		d := metaDoc{Name: s.Name, Format: s.Format, Bytes: reading.Known(bytes), Columns: t.Schema().NumFields(),
			Facts: schemafmt.Pairs{}}
		rows, err := t.SourceRows(ctx, i)
		if err == nil {
			d.Rows = reading.Known(rows)
		} else if errors.Is(err, fault.Corrupt) {
			damage = err
		}
		for _, m := range s.Meta {
			d.Facts = append(d.Facts, [2]string{m.Key, m.Value})
		}
		out = append(out, d)
	}
	return out, damage
}

// has reports whether the format itself reports a fact.
func (d *metaDoc) has(key string) bool {
	return slices.ContainsFunc(d.Facts, func(f [2]string) bool { return f[0] == key })
}

func writeMeta(w io.Writer, form string, docs []metaDoc, style display.TableStyle) error {
	switch form {
	case "json":
		return output.WriteArray(w, docs)
	case "jsonl":
		return output.WriteLines(w, docs)
	}
	for i, d := range docs {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, display.OneLine(d.Name))
		r := output.Report{Cols: []output.ReportColumn{{}, {}}}
		r.Add(nil, "read as", d.Format)
		if d.Rows != nil && !d.has("rows") {
			r.Add(nil, "rows", display.Thousands(*d.Rows))
		}
		if !d.has("columns") {
			r.Add(nil, "columns", strconv.Itoa(d.Columns))
		}
		if d.Bytes != nil {
			r.Add(nil, "size", display.BytesText(*d.Bytes)+exactly(*d.Bytes))
		}
		for _, f := range d.Facts {
			r.Add(nil, f[0], f[1])
		}
		if err := r.WriteTable(w, style); err != nil {
			return err
		}
	}
	return nil
}

// exactly returns the exact number of bytes where BytesText rounds.
func exactly(n int64) string {
	if n < 1000 {
		return ""
	}
	return " (" + display.Thousands(n) + " bytes)"
}
