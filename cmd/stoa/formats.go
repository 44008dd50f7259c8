package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"stoa/format"
)

// formatDoc is a format as -f json has it.
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

func (a *app) formatsCmd() *cobra.Command {
	var out outputFlags
	cmd := &cobra.Command{
		Use:   "formats [NAME...]",
		Short: "List the formats, what stoa can do with each, and their options",
		Long: `List the formats and what stoa can do with each. With a NAME, or -v, their options follow: those of reading are
set by --source-opt, those of writing by --opt. verify without a word of the format's own reads everything.`,
		Example: "  stoa formats parquet\n  stoa formats -f json",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return a.formatNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := a.choose(args)
			if err != nil {
				return err
			}
			switch forPeople := out.form == "" || out.form == "text" || out.form == "table"; {
			case forPeople && (len(args) > 0 || a.verbose):
				return optionReport(chosen).write(cmd.Context(), a, &out)
			case forPeople:
				return a.put(cmd.Context(), &out,
					func(w io.Writer) error { return writeMatrix(w, chosen, a.style(&out)) })
			}
			return matrix(chosen).write(cmd.Context(), a, &out)
		},
	}
	out.register(cmd, reportForms, "default text")
	return cmd
}

// choose finds formats by name; no name means all.
func (a *app) choose(names []string) ([]format.Format, error) {
	if len(names) == 0 {
		return a.formats, nil
	}
	var out []format.Format
	for _, n := range names {
		f := a.format(n)
		if f == nil {
			return nil, &useError{"there is no format \"" + n + "\"",
				"the formats are " + strings.Join(a.formatNames(), ", ")}
		}
		out = append(out, *f)
	}
	return out, nil
}

func docOfFormat(f format.Format) formatDoc {
	return formatDoc{Name: f.Name, Title: f.Title, Extensions: append([]string{}, f.Extensions...),
		Read: f.Open != nil, Write: f.Create != nil, List: f.List != nil, Describe: f.Describe != nil,
		Verify: f.Verify != nil, Recover: f.Recover != nil,
		ReadOptions: docsOfOptions(f.ReadKeys), WriteOptions: docsOfOptions(f.WriteKeys)}
}

func docsOfOptions(keys []format.OptionKey) []optionDoc {
	out := []optionDoc{}
	for _, k := range keys {
		out = append(out, optionDoc{k.Name, k.Values, k.Help})
	}
	return out
}

// matrix is a line a format. It says exactly which of the format's functions there are.
func matrix(formats []format.Format) *report {
	r := &report{cols: []reportColumn{{name: "format"}, {name: "read"}, {name: "write"}, {name: "list"},
		{name: "describe"}, {name: "verify"},
		{name: "recover"}, {name: "extensions"}, {name: "what it is"}}}
	for _, f := range formats {
		d := docOfFormat(f)
		r.add(d, d.Name, yes(d.Read), yes(d.Write), yes(d.List), yes(d.Describe), yes(d.Verify), yes(d.Recover),
			strings.Join(d.Extensions, " "), d.Title)
	}
	return r
}

// writeMatrix writes the matrix for people: first what can be done, then what it is, both narrow.
func writeMatrix(w io.Writer, formats []format.Format, style tableStyle) error {
	all := matrix(formats)
	last := len(all.cols) - 2 // extensions and what it is
	can, what := &report{cols: all.cols[:last]}, &report{cols: append(all.cols[:1:1], all.cols[last:]...)}
	for _, row := range all.rows {
		can.add(nil, row[:last]...)
		what.add(nil, append(row[:1:1], row[last:]...)...)
	}
	if err := can.writeTable(w, style); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return what.writeTable(w, style)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "-"
}

// optionReport is the formats with their options, for people.
func optionReport(formats []format.Format) *report {
	r := &report{keys: 2, cols: []reportColumn{{name: "format"}, {name: "option"}, {name: "values"},
		{name: "what it does"}}}
	for _, f := range formats {
		d := docOfFormat(f)
		r.add(d, d.Name, "", strings.Join(d.Extensions, " "), d.Title)
		for _, o := range d.ReadOptions {
			r.add(nil, "", "--source-opt "+o.Name, o.Values, o.Help)
		}
		for _, o := range d.WriteOptions {
			r.add(nil, "", "--opt "+o.Name, o.Values, o.Help)
		}
	}
	return r
}

func (a *app) formatNames() []string {
	var out []string
	for _, f := range a.formats {
		out = append(out, f.Name)
	}
	return out
}

func (a *app) writableNames() []string {
	var out []string
	for _, f := range a.formats {
		if f.Create != nil {
			out = append(out, f.Name)
		}
	}
	return out
}
