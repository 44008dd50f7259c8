package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"stoa"
)

var metaForms = []string{"text", "json", "jsonl"}

// metaDoc is what -f json has for each source.
type metaDoc struct {
	Name    string `json:"name"`
	Format  string `json:"format"`
	Rows    *int64 `json:"rows"`
	Columns int    `json:"columns"`
	Bytes   *int64 `json:"bytes"`
	Facts   pairs  `json:"facts"`
}

func (a *app) metaCmd() *cobra.Command {
	var src sourceFlags
	var out outputFlags
	cmd := &cobra.Command{
		Use:   "meta PATH...",
		Short: "Show what a file says about itself",
		Long: `Show what a file says about itself: its format, rows, columns, size, and the facts of its header and footer, in the
format's own words. -f json is an array with an object a file.`,
		Example: "  stoa meta block.cfile\n  stoa meta sales.parquet block.cfile -f json",
		Args:    a.paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if err := out.check(metaForms); err != nil {
				return err
			}
			docs := []metaDoc{}
			failed := src.each(ctx, a, cmd, args, func(path string, t *stoa.Table) error {
				if err := spare(out.file, t.Sources()); err != nil {
					return err
				}
				docs = append(docs, a.metaOf(ctx, t)...)
				return nil
			})
			if failed != nil && len(docs) == 0 {
				return failed
			}
			if err := a.put(ctx, &out, func(w io.Writer) error {
				return writeMeta(w, out.form, docs,
					a.style(&out))
			}); err != nil {
				return err
			}
			return failed
		},
	}
	out.register(cmd, metaForms, "default text")
	src.register(a, cmd)
	return cmd
}

func (a *app) metaOf(ctx context.Context, t *stoa.Table) []metaDoc {
	var out []metaDoc
	for i, s := range t.Sources() {
		bytes := int64(-1) // of a table in a place that may hold others
		if withoutTable(s.Name) == s.Name {
			bytes = a.size(ctx, s.Name)
		}
		d := metaDoc{Name: s.Name, Format: s.Format, Bytes: known(bytes), Columns: t.Schema().NumFields(),
			Facts: pairs{}}
		if rows, err := t.SourceRows(ctx, i); err == nil {
			d.Rows = known(rows)
		}
		for _, m := range s.Meta {
			d.Facts = append(d.Facts, [2]string{m.Key, m.Value})
		}
		out = append(out, d)
	}
	return out
}

// says reports whether the format itself tells a fact.
func (d *metaDoc) says(key string) bool {
	return slices.ContainsFunc(d.Facts, func(f [2]string) bool { return f[0] == key })
}

func writeMeta(w io.Writer, form string, docs []metaDoc, style tableStyle) error {
	switch form {
	case "json":
		return writeArray(w, docs)
	case "jsonl":
		return writeLines(w, docs)
	}
	for i, d := range docs {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, oneLine(d.Name))
		r := report{cols: []reportColumn{{}, {}}}
		r.add(nil, "read as", d.Format)
		if d.Rows != nil && !d.says("rows") {
			r.add(nil, "rows", thousands(*d.Rows))
		}
		if !d.says("columns") {
			r.add(nil, "columns", strconv.Itoa(d.Columns))
		}
		if d.Bytes != nil {
			r.add(nil, "size", bytesText(*d.Bytes)+exactly(*d.Bytes))
		}
		for _, f := range d.Facts {
			r.add(nil, f[0], f[1])
		}
		if err := r.writeTable(w, style); err != nil {
			return err
		}
	}
	return nil
}

// exactly is the exact number of bytes where bytesText rounds.
func exactly(n int64) string {
	if n < 1000 {
		return ""
	}
	return " (" + thousands(n) + " bytes)"
}
