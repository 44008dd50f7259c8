package about

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/output"
	"stoa/format"
)

// formatDoc is a format in -f json.
type formatDoc struct {
	Name         string      `json:"name"`
	Title        string      `json:"title"`
	Extensions   []string    `json:"extensions"`
	Read         bool        `json:"read"`
	Write        bool        `json:"write"`
	List         bool        `json:"list"`
	Describe     bool        `json:"describe"`
	Verify       bool        `json:"verify"`
	Recover      bool        `json:"recover"`
	ReadOptions  []optionDoc `json:"read_options"`
	WriteOptions []optionDoc `json:"write_options"`
}

type optionDoc struct {
	Name   string `json:"name"`
	Values string `json:"values"`
	Help   string `json:"help"`
}

func FormatsCmd(a *cli.App) *cobra.Command {
	var out output.OutputFlags
	cmd := &cobra.Command{
		Use:   "formats [NAME...]",
		Short: "List the formats, what stoa can do with each, and their options",
		Long: `List the formats and what stoa can do with each. With a NAME, or -v, list their
options: --source-opt sets those of reading, --opt those of writing.`,
		Example: "  stoa formats parquet\n  stoa formats -f json",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return a.FormatNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := chooseFormats(a, args)
			if err != nil {
				return err
			}
			switch forPeople := out.Form == "" || out.Form == "text" || out.Form == "table"; {
			case forPeople && (len(args) > 0 || a.Verbose):
				return optionReport(chosen).Write(cmd.Context(), a, &out)
			case forPeople:
				return output.PutDoc(a, cmd.Context(), &out,
					func(w io.Writer) error { return writeMatrix(w, chosen, output.StyleOf(a, &out)) })
			}
			return Matrix(chosen).Write(cmd.Context(), a, &out)
		},
	}
	out.Register(cmd, output.ReportForms, "default text")
	return cmd
}

// chooseFormats returns the formats with these names, or all without names.
func chooseFormats(a *cli.App, names []string) ([]format.Format, error) {
	if len(names) == 0 {
		return a.Formats, nil
	}
	var out []format.Format
	for _, n := range names {
		f := a.Format(n)
		if f == nil {
			return nil, &cli.UseError{Message: "there is no format \"" + n + "\"",
				Hint: "the formats are " + strings.Join(a.FormatNames(), ", ")}
		}
		out = append(out, *f)
	}
	return out, nil
}

func docOfFormat(f format.Format) formatDoc {
	pages := f.ByPages()
	return formatDoc{Name: f.Name, Title: f.Title, Extensions: append([]string{}, f.Extensions...),
		Read: f.Open != nil, Write: f.Create != nil, List: pages || f.List != nil, Describe: pages || f.Describe != nil,
		Verify: pages || f.Verify != nil, Recover: pages || f.Recover != nil,
		ReadOptions: docsOfOptions(f.ReadKeys), WriteOptions: docsOfOptions(f.WriteKeys)}
}

func docsOfOptions(keys []format.OptionKey) []optionDoc {
	out := []optionDoc{}
	for _, k := range keys {
		out = append(out, optionDoc{k.Name, k.Values, k.Help})
	}
	return out
}

// Matrix returns a report with a line per format and the functions that it has.
func Matrix(formats []format.Format) *output.Report {
	r := &output.Report{Cols: []output.ReportColumn{{Name: "format"}, {Name: "read"}, {Name: "write"}, {Name: "list"},
		{Name: "describe"}, {Name: "verify"},
		{Name: "recover"}, {Name: "extensions"}, {Name: "what it is"}}}
	for _, f := range formats {
		d := docOfFormat(f)
		r.Add(d, d.Name, yes(d.Read), yes(d.Write), yes(d.List), yes(d.Describe), yes(d.Verify), yes(d.Recover),
			strings.Join(d.Extensions, " "), d.Title)
	}
	return r
}

// writeMatrix writes the matrix for people, as two narrow tables: what stoa can do with each format, and what the
// format is.
func writeMatrix(w io.Writer, formats []format.Format, style display.TableStyle) error {
	all := Matrix(formats)
	last := len(all.Cols) - 2 // the last two columns, extensions and description
	can, what := &output.Report{Cols: all.Cols[:last]}, &output.Report{Cols: append(all.Cols[:1:1], all.Cols[last:]...)}
	for _, row := range all.Rows {
		can.Add(nil, row[:last]...)
		what.Add(nil, append(row[:1:1], row[last:]...)...)
	}
	if err := can.WriteTable(w, style); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return what.WriteTable(w, style)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "-"
}

// optionReport returns a report of the formats' options, for people.
func optionReport(formats []format.Format) *output.Report {
	r := &output.Report{Keys: 2, Cols: []output.ReportColumn{{Name: "format"}, {Name: "option"}, {Name: "values"},
		{Name: "what it does"}}}
	for _, f := range formats {
		d := docOfFormat(f)
		r.Add(d, d.Name, "", strings.Join(d.Extensions, " "), d.Title)
		for _, o := range d.ReadOptions {
			r.Add(nil, "", "--source-opt "+o.Name, o.Values, o.Help)
		}
		for _, o := range d.WriteOptions {
			r.Add(nil, "", "--opt "+o.Name, o.Values, o.Help)
		}
	}
	return r
}
