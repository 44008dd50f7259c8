package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

var countForms = []string{"text", "json"}

func (a *app) countCmd() *cobra.Command {
	var src sourceFlags
	var sel selectFlags
	var dmg damageFlags
	var out outputFlags
	cmd := &cobra.Command{
		Use:   "count PATH...",
		Short: "Count the rows",
		Long: `Count the rows, or those that --where and --rows leave. Where the file tells how many it has, no data is read.
-f json is {"rows": N}.`,
		Example: "  stoa count block.cfile --where 'value < 0'\n  stoa count kudu#d_major -f json",
		Args:    a.paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if err := out.check(countForms); err != nil {
				return err
			}
			spec, err := sel.spec()
			if err != nil {
				return err
			}
			if err := dmg.apply(&spec); err != nil {
				return err
			}
			t, err := src.open(ctx, a, args)
			if err != nil {
				return err
			}
			defer t.Close()
			if err := a.spareAll(t.Sources(), out.file, dmg.manifest); err != nil {
				return err
			}
			n, err := t.Count(ctx, spec)
			if err == nil {
				err = a.put(ctx, &out, func(w io.Writer) error { return writeCount(w, out.form, n) })
			}
			return dmg.report(ctx, a, args, t.Findings(), err)
		},
	}
	sel.registerRows(cmd)
	sel.registerParallel(cmd)
	sel.registerMemory(cmd)
	dmg.register(cmd, "fail")
	out.register(cmd, countForms, "default text")
	src.register(a, cmd)
	return cmd
}

func writeCount(w io.Writer, form string, n int64) error {
	text := "%d\n"
	if form == "json" {
		text = "{\"rows\":%d}\n"
	}
	_, err := fmt.Fprintf(w, text, n)
	return err
}
