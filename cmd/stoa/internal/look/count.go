package look

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/source"
	"stoa/region"

	"github.com/spf13/cobra"
)

var countForms = []string{"text", "json"}

func CountCmd(a *cli.App) *cobra.Command {
	var src source.SourceFlags
	var sel source.SelectFlags
	var dmg reading.DamageFlags
	var out output.OutputFlags
	var each bool
	cmd := &cobra.Command{
		Use:   "count PATH...",
		Short: "Count the rows",
		Long: `Count the rows, or those that --where and --rows select. Where the file says how many it
has, no data is read. Several files, such as a glob, are one table. With --each every table
of every PATH is counted on its own, whatever its format and columns, and a last line has the
sum. -f json prints {"rows": N}, with --each also the tables: {"tables": [{"table": NAME,
"rows": N}], "rows": N}.`,
		Example: "  stoa count block.cfile --where 'value < 0'\n  stoa count kudu#d_major -f json\n" +
			"  stoa count --each 'data/**/*.trv' kudu",
		Args: a.Paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if err := out.Check(countForms); err != nil {
				return err
			}
			spec, err := sel.Spec()
			if err != nil {
				return err
			}
			if err := dmg.Apply(&spec); err != nil {
				return err
			}
			if each {
				return countEach(a, cmd, args, &src, spec, &dmg, &out)
			}
			t, err := src.Open(ctx, a, args)
			if err != nil {
				return err
			}
			defer t.Close()
			if err := a.CheckOutputs(t.Sources(), out.File, dmg.Manifest); err != nil {
				return err
			}
			n, err := t.Count(ctx, spec)
			if err == nil {
				err = output.PutDoc(a, ctx, &out, func(w io.Writer) error { return writeCount(w, out.Form, n) })
			}
			return dmg.Report(ctx, a, args, t.Findings(), err)
		},
	}
	cmd.Flags().BoolVar(&each, "each", false, eachUsage)
	sel.RegisterRows(cmd)
	sel.RegisterParallel(cmd)
	sel.RegisterMemory(cmd)
	dmg.Register(cmd, "fail")
	out.Register(cmd, countForms, "default text")
	src.Register(a, cmd)
	return cli.First(cmd, "where", "each", "format")
}

func writeCount(w io.Writer, form string, n int64) error {
	text := "%d\n"
	if form == "json" {
		text = "{\"rows\":%d}\n"
	}
	_, err := fmt.Fprintf(w, text, n)
	return err
}

// counted is what count --each -f json prints.
type counted struct {
	Tables []countedTable `json:"tables,omitempty"` // with --each
	Rows   int64          `json:"rows"`             // of all
}

type countedTable struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
}

func countEach(a *cli.App, cmd *cobra.Command, args []string, src *source.SourceFlags, spec stoa.ScanSpec,
	dmg *reading.DamageFlags, out *output.OutputFlags) error {
	ctx := cmd.Context()
	o, err := src.Options(ctx, a, args)
	if err == nil {
		err = a.CheckOutputs(nil, out.File, dmg.Manifest)
	}
	if err != nil {
		return err
	}
	doc := counted{Tables: []countedTable{}}
	var findings []region.Finding
	err = eachTable(a, ctx, cmd, args, o, func(name string, t *stoa.Table) error {
		findings = append(findings, t.Findings()...)
		n, err := t.Count(ctx, spec)
		if err == nil {
			doc.Tables, doc.Rows = append(doc.Tables, countedTable{name, n}), doc.Rows+n
		}
		return err
	})
	if ctx.Err() == nil && len(doc.Tables) > 0 {
		perr := output.PutDoc(a, ctx, out, func(w io.Writer) error { return doc.write(w, out) })
		err = errors.Join(err, perr)
	}
	return dmg.Report(ctx, a, args, findings, err)
}

func (c *counted) write(w io.Writer, out *output.OutputFlags) error {
	if out.Form == "json" {
		b, err := json.Marshal(c)
		if err == nil {
			_, err = fmt.Fprintf(w, "%s\n", b)
		}
		return err
	}
	width := len(fmt.Sprint(c.Rows))
	for _, t := range append(c.Tables, countedTable{"(sum)", c.Rows}) {
		if _, err := fmt.Fprintf(w, "%*d  %s\n", width, t.Rows, display.OneLine(t.Table)); err != nil {
			return err
		}
	}
	return nil
}
