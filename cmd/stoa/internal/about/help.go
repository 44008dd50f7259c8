package about

import (
	"fmt"
	"io"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// HelpWidth is how many cells a line of help has at most: what a terminal has that nobody made wider.
const HelpWidth = 80

// WriteHelp is what a verb says of itself.
func WriteHelp(a *cli.App, cmd *cobra.Command) error {
	var b strings.Builder
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	b.WriteString(reflow(long, HelpWidth) + "\n\nUsage:\n  " +
		strings.ReplaceAll(ShellFold("stoa "+cmd.Use, HelpWidth-2), "\n", "\n  ") + "\n")
	if cmd.Example != "" {
		b.WriteString("\nExamples:\n" + examples(cmd, HelpWidth) + "\n")
	}
	helpFlags(&b, "Flags", cmd.LocalNonPersistentFlags())
	helpFlags(&b, "Flags of all verbs", cmd.InheritedFlags())
	_, err := io.WriteString(a.Stdout, b.String())
	return err
}

// helpFlags lists flags: short ones with their usage beside them, long ones above it.
func helpFlags(b *strings.Builder, title string, fs *pflag.FlagSet) {
	if !fs.HasAvailableFlags() {
		return
	}
	const at = 24 // where usages begin
	fmt.Fprintf(b, "\n%s:\n", title)
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "      --" + f.Name
		if f.Shorthand != "" {
			name = "  -" + f.Shorthand + ", --" + f.Name
		}
		if value != "" {
			name += " " + value
		}
		if preset := f.DefValue; preset != "" && preset != "false" && preset != "[]" && preset != "0" &&
			!strings.Contains(usage, "default") {
			usage += " (default " + preset + ")"
		}
		b.WriteString(name)
		switch n := display.DisplayWidth(name); {
		case n > at-2:
			b.WriteString("\n" + strings.Repeat(" ", at))
		default:
			b.WriteString(strings.Repeat(" ", at-n))
		}
		b.WriteString(Wrap(usage, HelpWidth-at, "\n"+strings.Repeat(" ", at)) + "\n")
	})
}

// reflow breaks text between words. Lines that end a sentence, empty ones and those that are indented stay lines.
func reflow(s string, width int) string {
	var out, words []string
	flush := func() {
		if len(words) > 0 {
			out = append(out, Wrap(strings.Join(words, " "), width, "\n"))
			words = nil
		}
	}
	for _, l := range strings.Split(s, "\n") {
		if l == "" || strings.HasPrefix(l, "  ") {
			flush()
			out = append(out, l)
			continue
		}
		if words = append(words, l); strings.HasSuffix(l, ".") || strings.HasSuffix(l, ":") {
			flush()
		}
	}
	flush()
	return strings.Join(out, "\n")
}

// examples are those of a verb, in lines that are not too long.
func examples(cmd *cobra.Command, width int) string {
	var out []string
	for _, l := range strings.Split(cmd.Example, "\n") {
		l = strings.TrimPrefix(l, "  ")
		out = append(out, "  "+strings.ReplaceAll(ShellFold(l, width-2), "\n", "\n  "))
	}
	return strings.Join(out, "\n")
}

// ShellFold breaks a command line between words, so that a shell takes it all the same.
func ShellFold(s string, width int) string {
	const indent, more = "    ", ` \`
	var b strings.Builder
	for room := width; display.DisplayWidth(s) > room; room = width - len(indent) {
		cut, quote := -1, rune(0) // behind flags and their values if that leaves more than half a line
		for i, r := range s {
			if display.DisplayWidth(s[:i])+len(more) > room && cut >= 0 {
				break
			}
			switch {
			case quote != 0:
				if r == quote {
					quote = 0
				}
			case r == '\'' || r == '"':
				quote = r
			case r == ' ' && (cut < width/2 || strings.HasPrefix(s[i:], " -") || strings.HasPrefix(s[i:], " |")):
				cut = i
			}
		}
		if cut < 0 {
			break
		}
		b.WriteString(s[:cut] + more + "\n" + indent)
		s = s[cut+1:]
	}
	return b.String() + s
}

// The groups of verbs in the overview.
const (
	GroupLook   = "look"
	GroupRows   = "rows"
	GroupWrite  = "write"
	GroupHealth = "health"
	GroupAbout  = "about"
)

var Groups = []cobra.Group{
	{ID: GroupLook, Title: "Look"},
	{ID: GroupRows, Title: "Read rows"},
	{ID: GroupWrite, Title: "Write"},
	{ID: GroupHealth, Title: "Health"},
	{ID: GroupAbout, Title: "About stoa"},
}
