package about

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"stoa/cmd/stoa/internal/cli"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ManWidth is how many cells man leaves for an indented line that it does not fill, on a terminal of 80 cells.
const ManWidth = HelpWidth - 7 - 1

func ManCmd(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages",
		Long: "Write a manual page for stoa and one for each of its verbs to DIR, which is created if it is not " +
			"there, in the form that man reads. Pages of that name are replaced.",
		Example: "  stoa man ~/.local/share/man/man1\n  stoa man . && man ./stoa-verify.1",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &cli.UseError{Message: "man needs a directory to write to",
					Hint: "for example: stoa man /usr/local/share/man/man1"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if err := os.MkdirAll(args[0], 0o777); err != nil {
				return err
			}
			for name, text := range ManPages(a, root) {
				w, err := a.Create(cmd.Context(), filepath.Join(args[0], name))
				if err != nil {
					return err
				}
				if _, err = w.Write([]byte(text)); err == nil {
					err = w.Commit(cmd.Context())
				}
				if err != nil {
					w.Abort(cmd.Context())
					return err
				}
			}
			return nil
		},
	}
}

// ManPages returns all pages, by file name.
func ManPages(a *cli.App, root *cobra.Command) map[string]string {
	pages := map[string]string{"stoa.1": manRoot(a, root)}
	for _, c := range a.Verbs {
		pages["stoa-"+c.Name()+".1"] = manPage(c)
	}
	return pages
}

// roff escapes text for a manual page: backslashes, and dots and quotes at the beginning of lines.
func roff(s string) string {
	s = strings.ReplaceAll(s, `\`, `\e`)
	s = strings.ReplaceAll(s, "-", `\-`)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	var b strings.Builder
	for _, r := range strings.Join(lines, "\n") {
		if r < 0x80 {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		}
	}
	return b.String()
}

func manHead(b *strings.Builder, name, short, synopsis string) {
	fmt.Fprintf(b, ".TH %s 1\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n", strings.ToUpper(roff(name)), roff(name),
		roff(short), roff(synopsis))
}

func manRoot(a *cli.App, root *cobra.Command) string {
	var b strings.Builder
	manHead(&b, "stoa", root.Short, "stoa VERB [flags] [PATH...]")
	b.WriteString(".SH DESCRIPTION\n" + roff("stoa opens, converts, checks and recovers columnar files without "+
		"the systems that wrote them. A PATH is a file, a directory, a glob, PATH#TABLE, - for standard "+
		"input, or @FILE for several directories as one place: FILE has their names, one a line.") + "\n")
	for _, g := range Groups {
		fmt.Fprintf(&b, ".SH %s\n", strings.ToUpper(g.Title))
		for _, c := range a.Verbs {
			if c.GroupID == g.ID {
				fmt.Fprintf(&b, ".TP\n.BR stoa\\-%s (1)\n%s\n", roff(c.Name()), roff(c.Short))
			}
		}
	}
	manFlags(&b, "FLAGS OF ALL VERBS", root.PersistentFlags())
	b.WriteString(".SH EXIT STATUS\n.TP\n0\nfine\n.TP\n1\ncould not do it\n.TP\n2\nwrong use\n.TP\n3\ndamage " +
		"was found or met, something was lost, or tables differ\n.TP\n130\nended by Ctrl-C or SIGTERM\n" +
		".SH ENVIRONMENT\n.TP\nNO_COLOR\nno colours, whatever the terminal can\n")
	return b.String()
}

func manPage(c *cobra.Command) string {
	var b strings.Builder
	manHead(&b, "stoa-"+c.Name(), c.Short, "stoa "+c.Use+" [flags]")
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	b.WriteString(".SH DESCRIPTION\n")
	for _, p := range strings.Split(long, "\n\n") {
		b.WriteString(".PP\n")
		if strings.HasPrefix(p, "  ") {
			b.WriteString(".nf\n" + roff(p) + "\n.fi\n")
			continue
		}
		b.WriteString(roff(p) + "\n")
	}
	manFlags(&b, "OPTIONS", c.LocalNonPersistentFlags())
	b.WriteString(".SH EXAMPLES\n.nf\n" + roff(strings.Join(examples(c, ManWidth), "\n")) + "\n.fi\n")
	b.WriteString(".SH SEE ALSO\n.BR stoa (1)\n")
	return b.String()
}

func manFlags(b *strings.Builder, title string, fs *pflag.FlagSet) {
	if !fs.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(name+" "+value)), roff(usage))
	})
}
