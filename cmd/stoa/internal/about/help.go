package about

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/format"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// HelpWidth is the maximum width of a line of help in cells, the default width of a terminal.
const HelpWidth = 80

// helpLines is the maximum number of lines of a verb's help: the height of a terminal that nobody resized.
const helpLines = 24

// WriteHelp writes the help of a verb: on one screen, with the most important flags and only the names of the others;
// with --verbose in full.
func WriteHelp(a *cli.App, cmd *cobra.Command) error {
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	first, groups := flagGroups(a, cmd)
	if !a.Verbose {
		_, err := io.WriteString(a.Stdout, shortHelp(cmd, long, first, groups))
		return err
	}
	var b strings.Builder
	b.WriteString(reflow(long, HelpWidth) + "\n\nUsage:\n  " +
		strings.ReplaceAll(ShellFold("stoa "+cmd.Use, HelpWidth-2), "\n", "\n  ") + "\n")
	if cmd.Example != "" {
		b.WriteString("\nExamples:\n" + strings.Join(examples(cmd, HelpWidth), "\n") + "\n")
	}
	helpFlags(&b, "Flags", first)
	for _, g := range groups {
		helpFlags(&b, g.title, g.flags)
	}
	_, err := io.WriteString(a.Stdout, b.String())
	return err
}

// flagGroup is the flags of one topic.
type flagGroup struct {
	title string
	flags []*pflag.Flag
}

// shared are the flags that many verbs have, by topic, without those of formats.
var shared = []struct {
	title string
	names []string
}{
	{"Rows", []string{"columns", "where", "limit", "sample", "seed", "rows", "unordered"}},
	{"Output", []string{"output", "force", "to", "format", "raw", "opt", "manifest", "no-check", "dry-run"}},
	{"Source", []string{"from", "from-a", "from-b", "source-opt", "schema", "damaged", "partial", "no-verify"}},
	{"Limits", []string{"memory", "parallel", "max-page", "max-metadata", "max-fields", "max-depth",
		"max-requests"}},
}

// flagGroups divides the flags of a verb: first those that the verb declares as most important, or else all of its own,
// then groups of the others.
func flagGroups(a *cli.App, cmd *cobra.Command) (first []*pflag.Flag, groups []flagGroup) {
	left := map[string]*pflag.Flag{}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			left[f.Name] = f
		}
	})
	take := func(names []string) (out []*pflag.Flag) {
		for _, n := range names {
			if f := left[n]; f != nil {
				out = append(out, f)
				delete(left, n)
			}
		}
		return out
	}
	first = take(cli.FirstFlags(cmd))
	add := func(title string, names []string) {
		if flags := take(names); len(flags) > 0 {
			groups = append(groups, flagGroup{title, flags})
		}
	}
	for _, g := range shared {
		add(g.title, g.names)
	}
	if left["source-opt"] != nil || cmd.Flags().Lookup("source-opt") != nil {
		for _, f := range a.Formats {
			add(f.Name, wordsOf(a.Formats, f))
		}
	}
	var own flagGroup
	own.flags = take(slices.Sorted(maps.Keys(left)))
	if len(first) == 0 {
		first, own.flags = own.flags, nil
	}
	if own.title = "This verb"; len(own.flags) > 0 {
		groups = slices.Insert(groups, 0, own)
	}
	if cmd.HasAvailableInheritedFlags() {
		all := flagGroup{title: "All verbs", flags: []*pflag.Flag{cmd.Flags().Lookup("help")}}
		cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { all.flags = append(all.flags, f) })
		groups = append(groups, all)
	}
	return first, groups
}

// wordsOf returns the flags for reading options that only one system has, for the first of its formats that has them.
func wordsOf(formats []format.Format, of format.Format) (names []string) {
	for _, w := range cli.NewOptionFlags() {
		has := func(f format.Format) bool {
			return slices.ContainsFunc(f.ReadKeys, func(k format.OptionKey) bool { return k.Name == w.Key })
		}
		first := slices.IndexFunc(formats, has)
		other := func(f format.Format) bool { return f.System() != of.System() && has(f) }
		if first >= 0 && formats[first].Name == of.Name && !slices.ContainsFunc(formats, other) {
			names = append(names, w.Flag)
		}
	}
	return names
}

// flagName returns a flag as it is written on a command line, and its usage.
func flagName(f *pflag.Flag) (name, usage string) {
	value, usage := pflag.UnquoteUsage(f)
	name = "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if value != "" {
		name += " " + value
	}
	if preset := f.DefValue; preset != "" && preset != "false" && preset != "[]" && preset != "0" &&
		!strings.Contains(usage, "default") {
		usage += " (default " + preset + ")"
	}
	return name, usage
}

// helpFlags lists flags with their usage: on the same line if the name is short, else below it.
func helpFlags(b *strings.Builder, title string, flags []*pflag.Flag) {
	if len(flags) == 0 {
		return
	}
	const at = 24 // column where usages start
	fmt.Fprintf(b, "\n%s:\n", title)
	for _, f := range flags {
		name, usage := flagName(f)
		if name = "  " + name; f.Shorthand == "" {
			name = "    " + name
		}
		b.WriteString(name)
		switch n := display.DisplayWidth(name); {
		case n > at-2:
			b.WriteString("\n" + strings.Repeat(" ", at))
		default:
			b.WriteString(strings.Repeat(" ", at-n))
		}
		b.WriteString(Wrap(usage, HelpWidth-at, "\n"+strings.Repeat(" ", at)) + "\n")
	}
}

// reflow breaks text between words. It keeps the ends of lines that end a sentence, are empty, or are indented.
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

// examples returns the examples of a verb, with long lines broken.
func examples(cmd *cobra.Command, width int) (out []string) {
	for _, l := range strings.Split(cmd.Example, "\n") {
		l = strings.TrimPrefix(l, "  ")
		out = append(out, "  "+strings.ReplaceAll(ShellFold(l, width-2), "\n", "\n  "))
	}
	return out
}

// ShellFold breaks a command line between words such that a shell still reads it as one command.
func ShellFold(s string, width int) string {
	const indent, more = "    ", ` \`
	var b strings.Builder
	for room := width; display.DisplayWidth(s) > room; room = width - len(indent) {
		cut, quote := -1, rune(0) // after flags and their values, if that leaves more than half of the line
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
