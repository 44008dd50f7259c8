package about

import (
	"io"
	"slices"
	"strings"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/output"
	"stoa/region"

	"github.com/spf13/cobra"
)

// CodeDoc explains a code of findings.
type CodeDoc struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Means    string `json:"means"`
	Cost     string `json:"cost"`
	Cause    string `json:"cause"` // the likely cause
	Next     string `json:"next"`  // a command, and what it does
}

// Costs are the consequences of a finding, by severity.
var Costs = [...]string{
	region.Note:    "Nothing: it is unusual, but allowed.",
	region.Warning: "Nothing here is lost, but something may be missing, or another reader may go wrong.",
	region.Error:   "Data is lost or wrong, or some readers will miss some.",
}

func FindingCmd(a *cli.App) *cobra.Command {
	var out output.OutputFlags
	cmd := &cobra.Command{
		Use:   "finding [CODE]",
		Short: "Explain a code that verify reports",
		Long: `Explain a code that verify or recover reports: what happened, what it costs, the likely
cause, and the next command. With a group of codes (cfile.block), or without CODE, list the codes.
-f json prints an array with one object per code.`,
		Example: "  stoa finding cfile.block.checksum\n  stoa finding cfile.block -f json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.WrongUse("finding takes one code, not %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, c := range CodeDocs(a) {
				names = append(names, c.Code)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := findCodes(a, args)
			if err != nil {
				return err
			}
			r := &output.Report{Cols: []output.ReportColumn{{Name: "code"}, {Name: "severity"},
				{Name: "what it means"}}}
			for _, c := range found {
				r.Add(c, c.Code, c.Severity, c.Means)
			}
			if len(found) == 1 && (out.Form == "" || out.Form == "text") {
				return output.PutDoc(a, cmd.Context(), &out, func(w io.Writer) error {
					_, err := io.WriteString(w, found[0].text())
					return err
				})
			}
			return r.Write(cmd.Context(), a, &out)
		},
	}
	out.Register(cmd, output.ReportForms, "default text")
	return cmd
}

// text explains a code for people: what happened, what it costs, the likely cause, and what to do.
func (c CodeDoc) text() string {
	wrapped := func(s string) string {
		return display.Indent(1) + Wrap(s, HelpWidth-2, "\n"+display.Indent(1)) + "\n"
	}
	return c.Code + " (" + c.Severity + ")\n" + wrapped(c.Means) + wrapped("Cost: "+c.Cost) +
		wrapped("Likely cause: "+c.Cause) + wrapped("Next: "+c.Next)
}

// findCodes returns the code, or the codes of the group, that args names; without args all codes.
func findCodes(a *cli.App, args []string) ([]CodeDoc, error) {
	all := CodeDocs(a)
	if len(args) == 0 {
		return all, nil
	}
	if i := slices.IndexFunc(all, func(c CodeDoc) bool { return c.Code == args[0] }); i >= 0 {
		return all[i : i+1], nil
	}
	var out []CodeDoc
	for _, c := range all {
		if strings.HasPrefix(c.Code, strings.TrimSuffix(args[0], ".")+".") {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, &cli.UseError{Message: "there is no finding with the code " + args[0],
			Hint: "stoa finding lists the codes"}
	}
	return out, nil
}

// Wrap breaks text between words.
func Wrap(s string, width int, nl string) string {
	var b strings.Builder
	n := 0
	for i, w := range strings.Fields(s) {
		switch {
		case i == 0:
		case n+1+display.DisplayWidth(w) > width:
			b.WriteString(nl)
			n = 0
		default:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(w)
		n += display.DisplayWidth(w)
	}
	return b.String()
}
