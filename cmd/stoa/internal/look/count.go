package look

import (
	"fmt"
	"io"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/source"

	"github.com/spf13/cobra"
)

var countForms = []string{"text", "json"}

func CountCmd(a *cli.App) *cobra.Command {
	var src source.SourceFlags
	var sel source.SelectFlags
	var dmg reading.DamageFlags
	var out output.OutputFlags
	cmd := &cobra.Command{
		Use:   "count PATH...",
		Short: "Count the rows",
		Long: `Count the rows, or those that --where and --rows select. Where the file says how many it
has, no data is read. -f json prints {"rows": N}.`,
		Example: "  stoa count block.cfile --where 'value < 0'\n  stoa count kudu#d_major -f json",
		Args:    a.Paths,
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
	sel.RegisterRows(cmd)
	sel.RegisterParallel(cmd)
	sel.RegisterMemory(cmd)
	dmg.Register(cmd, "fail")
	out.Register(cmd, countForms, "default text")
	src.Register(a, cmd)
	return cli.First(cmd, "where", "rows", "format")
}

func writeCount(w io.Writer, form string, n int64) error {
	text := "%d\n"
	if form == "json" {
		text = "{\"rows\":%d}\n"
	}
	_, err := fmt.Fprintf(w, text, n)
	return err
}
