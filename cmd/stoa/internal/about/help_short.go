package about

import (
	"fmt"
	"strings"

	"stoa/cmd/stoa/internal/display"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// shortHelp returns the help of a verb on one screen: as many sentences and examples as fit, at least one of each, the
// first flags with the beginning of their usage, and the names of all others.
func shortHelp(cmd *cobra.Command, long string, first []*pflag.Flag, groups []flagGroup) string {
	var b strings.Builder
	const margin = "           " // of commands
	fmt.Fprintf(&b, "\nUsage:     %s\n",
		strings.ReplaceAll(ShellFold("stoa "+cmd.Use, HelpWidth-len(margin)), "\n", "\n"+margin))
	usage := b.String()
	b.Reset()
	if len(first) > 0 {
		b.WriteByte('\n')
	}
	at := 26 // column where usages start
	for _, f := range first {
		name, _ := flagName(f)
		at = min(max(at, display.DisplayWidth("      "+strings.TrimPrefix(name, "-"+f.Shorthand+", "))+2), 30)
	}
	for _, f := range first {
		beginOfUsage(&b, f, at)
	}
	namesOfFlags(&b, cmd.Name(), groups)
	flags := b.String()

	room := helpLines - strings.Count(usage+flags, "\n")
	var shown []string // examples
	if cmd.Example != "" {
		for _, l := range strings.Split(cmd.Example, "\n") {
			l = margin + ShellFold(strings.TrimSpace(l), HelpWidth-len(margin))
			shown = append(shown, strings.ReplaceAll(l, "\n", "\n"+margin))
		}
		shown[0] = strings.Replace(shown[0], margin, "Examples:  ", 1)
	}
	text, _, _ := strings.Cut(long, "\n\n")
	sentences := strings.SplitAfter(reflow(text, 1<<20), ". ")
	for {
		text = strings.TrimSpace(strings.Join(sentences, "")) + "\n"
		out := reflow(text, HelpWidth) + usage + strings.Join(append(shown, ""), "\n")
		switch {
		case strings.Count(out, "\n")-strings.Count(usage, "\n") <= room:
			return out + flags
		case len(sentences) > 1 && (len(shown) < 3 || len(sentences) > 2):
			sentences = sentences[:len(sentences)-1]
		case len(shown) > 1:
			shown = shown[:len(shown)-1]
		default:
			return out + flags
		}
	}
}

// beginOfUsage writes a flag and what its usage says before details: the text up to a colon, a semicolon or a bracket,
// and its default. Usages start in column at.
func beginOfUsage(b *strings.Builder, f *pflag.Flag, at int) {
	name, usage := flagName(f)
	if name = "  " + name; f.Shorthand == "" {
		name = "    " + name
	}
	note := ""
	if i := strings.LastIndex(usage, " ("); i > 0 && strings.HasSuffix(usage, ")") &&
		(strings.HasPrefix(usage[i:], " (default") || strings.HasPrefix(usage[i:], " (required")) {
		usage, note = usage[:i], usage[i:]
	}
	if room := HelpWidth - at - display.DisplayWidth(note); display.DisplayWidth(usage) > room {
		value, _ := pflag.UnquoteUsage(f)
		for _, end := range []string{";", ":", " (", ", such as", ", " + value} {
			usage, _, _ = strings.Cut(usage, end)
		}
	}
	if n := display.DisplayWidth(name); n > at-2 {
		name += "\n" + strings.Repeat(" ", at)
	} else {
		name += strings.Repeat(" ", at-n)
	}
	b.WriteString(name + Wrap(usage+note, HelpWidth-at, "\n"+strings.Repeat(" ", at)) + "\n")
}

// namesOfFlags lists flags by name only, without their values.
func namesOfFlags(b *strings.Builder, verb string, groups []flagGroup) {
	const at = 13 // column where names start
	fmt.Fprintf(b, "\nMore flags (stoa help %s -v explains them):\n", verb)
	for _, g := range groups {
		line := "  " + g.title
		line += strings.Repeat(" ", at-display.DisplayWidth(line))
		var names []string
		for _, f := range g.flags {
			if f.Shorthand != "" && g.title == "All verbs" {
				names = append(names, "-"+f.Shorthand)
				continue
			}
			names = append(names, "--"+f.Name)
		}
		b.WriteString(line + Wrap(strings.Join(names, " "), HelpWidth-at, "\n"+strings.Repeat(" ", at)) + "\n")
	}
}
