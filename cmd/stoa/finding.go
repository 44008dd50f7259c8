package main

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// codeDoc explains one code of a finding.
type codeDoc struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Means    string `json:"means"`
}

func (a *app) findingCmd() *cobra.Command {
	var out outputFlags
	cmd := &cobra.Command{
		Use:   "finding [CODE]",
		Short: "Explain a code of verify",
		Long: `Explain a code that verify printed, or a group of them (cfile.block), or list all.
-f json is an array with an object a code.`,
		Example: "  stoa finding cfile.block.checksum\n  stoa finding cfile.block -f json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return wrongUse("finding takes one code, not %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, c := range a.codeDocs() {
				names = append(names, c.Code)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := a.findCodes(args)
			if err != nil {
				return err
			}
			r := &report{cols: []reportColumn{{name: "code"}, {name: "severity"}, {name: "what it means"}}}
			for _, c := range found {
				r.add(c, c.Code, c.Severity, c.Means)
			}
			if len(found) == 1 && (out.form == "" || out.form == "text") {
				return a.put(cmd.Context(), &out, func(w io.Writer) error {
					_, err := io.WriteString(w,
						found[0].Code+" ("+found[0].Severity+")\n"+indent(1)+wrap(found[0].Means, helpWidth-2,
							"\n"+indent(1))+"\n")
					return err
				})
			}
			return r.write(cmd.Context(), a, &out)
		},
	}
	out.register(cmd, reportForms, "default text")
	return cmd
}

// findCodes are the codes that equal args or begin with it; all without args.
func (a *app) findCodes(args []string) ([]codeDoc, error) {
	all := a.codeDocs()
	if len(args) == 0 {
		return all, nil
	}
	if i := slices.IndexFunc(all, func(c codeDoc) bool { return c.Code == args[0] }); i >= 0 {
		return all[i : i+1], nil
	}
	var out []codeDoc
	for _, c := range all {
		if strings.HasPrefix(c.Code, strings.TrimSuffix(args[0], ".")+".") {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, &useError{"there is no finding with the code " + args[0], "stoa finding lists the codes"}
	}
	return out, nil
}

// wrap breaks text between words.
func wrap(s string, width int, nl string) string {
	var b strings.Builder
	n := 0
	for i, w := range strings.Fields(s) {
		switch {
		case i == 0:
		case n+1+displayWidth(w) > width:
			b.WriteString(nl)
			n = 0
		default:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(w)
		n += displayWidth(w)
	}
	return b.String()
}
