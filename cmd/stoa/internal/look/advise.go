package look

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/advise"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/source"
)

// adviceDoc is the document of -f json: the bytes that the columns take, and those that they would take with other
// options, in ascending order.
type adviceDoc struct {
	Format  string     `json:"format"`
	Rows    int64      `json:"rows"`
	Sampled int64      `json:"sampled_rows"`
	Stored  int64      `json:"stored_bytes"`
	Columns []sizeDoc  `json:"columns"`
	Trials  []trialDoc `json:"trials"`
	Command []string   `json:"command,omitempty"`  // none: nothing saves enough
	Lost    []string   `json:"not_kept,omitempty"` // properties of the table that the output of the command would lack
}

type sizeDoc struct {
	Column   string `json:"column"`
	Encoding string `json:"encoding"`
	Codec    string `json:"codec"`
	Stored   int64  `json:"stored_bytes"`
}

type trialDoc struct {
	Options map[string]string `json:"options"`
	Stored  int64             `json:"stored_bytes"`
	Saved   int64             `json:"saved_bytes"`
	Columns []sizeDoc         `json:"columns"`
}

// worthwhile is the fraction of the bytes that other options must save to be advised.
const worthwhile = 0.01

func AdviseCmd(a *cli.App) *cobra.Command {
	var src source.SourceFlags
	var out output.OutputFlags
	var o advise.Options
	cmd := &cobra.Command{
		Use:   "advise PATH...",
		Short: "Show how much smaller a table would be, written in another way",
		Long: `Find out which compression would make a table smaller, and by how much: write a sample of
its rows, in memory only, with each compression that the format's writer has, and compare the pages of
each column with those stored now. The writer chooses encodings and dictionaries itself. The last line is
the command that writes the table in the best way; it keeps the reading options that were given and, in
the table's own format, Bloom filters, sorting columns and encryption. What it cannot keep is named.
At most --rows rows, and 64 MiB of them, are measured: all rows, if there are no more, or else rows from
four places, whose sizes are scaled to the whole table. Formats whose pages stoa cannot measure by column
(text, Arrow IPC) and formats without a choice of compression are refused.`,
		Example: "  stoa advise sales.parquet\n  stoa advise sales.parquet --rows 200000 -f json",
		Args:    a.Paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if err := out.Check(explainForms); err != nil {
				return err
			}
			if o.Rows < 1 {
				return cli.WrongUse("--rows must be at least 1")
			}
			t, err := src.Open(ctx, a, args)
			if err != nil {
				return err
			}
			defer t.Close()
			if err := cli.CheckOutput(out.File, t.Sources()); err != nil {
				return err
			}
			err = showAdvice(ctx, a, t, slices.Concat(args, src.Line()), o, &out)
			return reading.NoticedIn(a, t.Findings(), err)
		},
	}
	cmd.Flags().StringVar(&o.To, "to", "", "advise on writing the table as `FORMAT` instead of its own format")
	cmd.Flags().Int64Var(&o.Rows, "rows", 1<<20, "measure `N` rows at most")
	cli.Complete(cmd, "to", a.WritableNames)
	out.Register(cmd, explainForms, "default text")
	src.Register(a, cmd)
	return cli.First(cmd, "to", "rows", "format")
}

func showAdvice(ctx context.Context, a *cli.App, t *stoa.Table, args []string, o advise.Options,
	out *output.OutputFlags) error {
	advice, err := advise.Of(ctx, t, o)
	if err != nil {
		return err
	}
	doc := docOfAdvice(advice)
	if len(doc.Trials) > 0 && float64(doc.Trials[0].Saved) >= worthwhile*float64(doc.Stored) {
		opts := maps.Clone(advice.Kept)
		maps.Copy(opts, doc.Trials[0].Options)
		doc.Command, doc.Lost = convertLine(args, o.To, opts), notKept(advice)
	}
	return output.PutDoc(a, ctx, out, func(w io.Writer) error {
		if out.Form == "json" {
			return output.WriteLines(w, []adviceDoc{doc})
		}
		return writeAdvice(w, doc, output.StyleOf(a, out))
	})
}

// notKept says in words what the output of the advised command lacks.
func notKept(x *advise.Advice) (out []string) {
	for _, w := range [][2]string{{"bloom", "Bloom filters"}, {"sorting-columns", "sorting columns"},
		{"key-file", "encryption: it is in the clear"}} {
		if _, ok := x.Lost[w[0]]; ok {
			out = append(out, w[1])
		}
	}
	return out
}

func docOfAdvice(x *advise.Advice) adviceDoc {
	sizes := func(all []stoa.ColumnSize) (out []sizeDoc) {
		for _, c := range all {
			out = append(out, sizeDoc{Column: c.Name, Encoding: c.Encoding, Codec: c.Codec, Stored: c.Stored})
		}
		return out
	}
	d := adviceDoc{Format: x.Format, Rows: x.Rows, Sampled: x.Sampled, Stored: x.Stored(), Columns: sizes(x.Columns)}
	for _, t := range x.Trials {
		d.Trials = append(d.Trials, trialDoc{Options: t.Opts, Stored: t.Stored, Saved: d.Stored - t.Stored,
			Columns: sizes(t.Columns)})
	}
	return d
}

// convertLine returns the command that writes a table with options.
func convertLine(args []string, to string, opts map[string]string) []string {
	line := append([]string{"stoa", "convert"}, args...)
	line = append(line, "-o", "OUT")
	if to != "" {
		line = append(line, "--to", to)
	}
	for _, k := range slices.Sorted(maps.Keys(opts)) {
		line = append(line, "--opt", k+"="+opts[k])
	}
	return line
}

func writeAdvice(w io.Writer, d adviceDoc, style display.TableStyle) error {
	if len(d.Trials) == 0 {
		_, err := fmt.Fprintln(w, "there are no rows to measure")
		return err
	}
	best := d.Trials[0]
	right := func(name string) output.ReportColumn { return output.ReportColumn{Name: name, Right: true} }
	r := &output.Report{Cols: []output.ReportColumn{{Name: "column"}, {Name: "now"}, right("stored"), {Name: "best"},
		right("would be"), right("saves"), right("")}}
	for i, c := range d.Columns {
		b := best.Columns[i]
		r.Add(nil, c.Column, c.Encoding+" "+c.Codec, display.BytesText(c.Stored), b.Encoding+" "+b.Codec,
			display.BytesText(b.Stored), savedText(c.Stored-b.Stored), share(c.Stored-b.Stored, c.Stored))
	}
	if err := r.WriteTable(w, style); err != nil {
		return err
	}
	all := &output.Report{Cols: []output.ReportColumn{{Name: "all columns with"}, right("stored"), right("saves"),
		right("")}}
	for _, t := range d.Trials {
		all.Add(nil, optionsText(t.Options), display.BytesText(t.Stored), savedText(t.Saved), share(t.Saved, d.Stored))
	}
	all.Add(nil, "as it is", display.BytesText(d.Stored), "", "")
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	if err := all.WriteTable(w, style); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n"+adviceEnd(d))
	return err
}

func adviceEnd(d adviceDoc) string {
	text := fmt.Sprintf("measured on all %s\n", display.Count(d.Rows, "row"))
	if d.Sampled < d.Rows {
		text = fmt.Sprintf("measured on %s of %s\n", display.Thousands(d.Sampled), display.Count(d.Rows, "row"))
	}
	if d.Command == nil {
		return text + "nothing saves as much as 1 %\n"
	}
	words := make([]string, len(d.Command))
	for i, w := range d.Command {
		words[i] = display.ShellWord(w)
	}
	text += strings.Join(words, " ") + "\n"
	for _, what := range d.Lost {
		text += "the output does not have the table's " + what + "\n"
	}
	return text
}

func optionsText(opts map[string]string) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(opts)) {
		all = append(all, k+"="+opts[k])
	}
	return strings.Join(all, " ")
}

func savedText(n int64) string {
	if n < 0 {
		return "-" + display.BytesText(-n)
	}
	return display.BytesText(n)
}

func share(n, of int64) string {
	if of <= 0 {
		return ""
	}
	return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(of))
}
