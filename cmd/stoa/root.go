package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The groups of verbs in the overview.
const (
	groupLook   = "look"
	groupRows   = "rows"
	groupWrite  = "write"
	groupHealth = "health"
	groupAbout  = "about"
)

var groups = []cobra.Group{
	{ID: groupLook, Title: "Look"},
	{ID: groupRows, Title: "Read rows"},
	{ID: groupWrite, Title: "Write"},
	{ID: groupHealth, Title: "Health"},
	{ID: groupAbout, Title: "About stoa"},
}

// root is the command with all its verbs.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "stoa",
		Short:         "Columnar files without the systems that wrote them",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          a.noVerb,
		RunE:          func(cmd *cobra.Command, _ []string) error { return a.overview() },
		Version:       version().Version,

		SuggestionsMinimumDistance: 2,
	}
	root.SetVersionTemplate("stoa {{.Version}}\n")
	fl := root.PersistentFlags()
	fl.BoolVarP(&a.quiet, "quiet", "q", false, "say nothing on standard error but errors")
	fl.BoolVarP(&a.verbose, "verbose", "v", false, "say more")
	fl.BoolVar(&a.noProgress, "no-progress", false, "show no progress")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &useError{flagError(err), nearFlag(cmd, err.Error())}
	})
	for i := range groups {
		root.AddGroup(&groups[i])
	}
	a.addVerbs(root)
	root.SetHelpCommandGroupID(groupAbout)
	root.SetHelpCommand(&cobra.Command{Use: "help [VERB]", Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			verb, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return a.noVerb(root, args)
			}
			verb.InitDefaultHelpFlag()
			return verb.Help()
		}})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		if cmd == root || cmd.Name() == "help" {
			a.overview()
			return
		}
		a.help(cmd)
	})
	return root
}

func (a *app) addVerbs(root *cobra.Command) {
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			c.DisableFlagsInUseLine = true
			root.AddCommand(c)
			a.verbs = append(a.verbs, c)
		}
	}
	add(groupLook, a.lsCmd(), a.schemaCmd(), a.metaCmd(), a.statsCmd(), a.describeCmd())
	add(groupRows, a.catCmd(), a.headCmd(), a.tailCmd(), a.countCmd(), a.getCmd(), a.explainCmd(), a.planCmd(),
		a.scanCmd())
	add(groupWrite, a.convertCmd(), a.createCmd(), a.loadCmd(), a.updateCmd(), a.deleteCmd(), a.compactCmd(),
		a.mergeIndexCmd(), a.cleanCmd(), a.addColumnCmd(), a.dropColumnCmd(), a.dropCmd())
	add(groupHealth, a.verifyCmd(), a.recoverCmd(), a.sealCmd(), a.diffCmd(), a.findingCmd())
	add(groupAbout, a.demoCmd(), a.formatsCmd(), a.versionCmd(), a.completionCmd(), a.manCmd())
}

// overview is what `stoa` alone says.
func (a *app) overview() error {
	var b strings.Builder
	b.WriteString(`stoa opens, converts, checks and recovers columnar files without the systems
that wrote them.

  stoa head block.cfile                      the first rows of a column file
  stoa convert block.cfile -o block.parquet  the same as Parquet
`)
	for _, g := range groups {
		fmt.Fprintf(&b, "\n%s\n", g.Title)
		for _, c := range a.verbs {
			if c.GroupID == g.ID {
				fmt.Fprintf(&b, "  %-11s %s\n", c.Name(), wrap(c.Short, helpWidth-14, "\n"+strings.Repeat(" ", 14)))
			}
		}
	}
	b.WriteString(`
A PATH is a file, a directory, a glob, PATH#TABLE, or - for standard input.
stoa VERB --help tells more.
`)
	_, err := io.WriteString(a.stdout, b.String())
	return err
}

// noVerb says what was meant when the first word is no verb.
func (a *app) noVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	e := &useError{message: fmt.Sprintf("there is no command %q", args[0]), hint: "stoa --help lists them"}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		e.hint = "did you mean " + strings.Join(near, " or ") + "?"
	} else if a.size(cmd.Context(), args[0]) >= 0 {
		e.hint = "to see what is in that file: stoa head " + args[0]
	}
	return e
}

// paths are the arguments of a verb that takes one path or more.
func (a *app) paths(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return wrongUse("%s needs a path (- is standard input)", cmd.Name())
	}
	return onceDash(args)
}

// wants is a verb's rule for the number of its arguments; what is wrong is told with what the verb takes.
func wants(rule cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if rule(cmd, args) != nil {
			return &useError{fmt.Sprintf("%s takes other arguments (%d given)", cmd.Name(), len(args)),
				"write it as " + cmd.Root().Name() + " " + cmd.Use}
		}
		return nil
	}
}

func onceDash(args []string) error {
	n := 0
	for _, p := range args {
		if p == dash {
			n++
		}
		if p == "" {
			return wrongUse("a path is empty")
		}
	}
	if n > 1 {
		return wrongUse("standard input can be read only once")
	}
	return nil
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return wrongUse("%s takes no arguments", cmd.Name())
	}
	return nil
}

// complete completes a flag from a list.
func complete(cmd *cobra.Command, flag string, values func() []string) {
	completeWith(cmd, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values(), cobra.ShellCompDirectiveNoFileComp
	})
}

// completed is a flag that can be completed.
type completed struct {
	pflag.Value
	how cobra.CompletionFunc
}

func completeWith(cmd *cobra.Command, flag string, how cobra.CompletionFunc) {
	f := cmd.Flag(flag)
	f.Value = &completed{f.Value, how}
}

// offerCompletions makes the completions of flags known to cobra. It keeps them, and with them all that a
// command line has, for as long as the process lives: so it is told of them only when a shell asks.
func offerCompletions(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if c, ok := f.Value.(*completed); ok {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, c.how)
		}
	})
	for _, c := range cmd.Commands() {
		offerCompletions(c)
	}
}

// nearFlag names the flag that may have been meant where there is none; "" if none is near.
func nearFlag(cmd *cobra.Command, err string) string {
	word := ""
	if name, ok := strings.CutPrefix(err, "unknown flag: --"); ok {
		word = name
	} else if i := strings.Index(err, "' in -"); strings.HasPrefix(err, "unknown shorthand flag: ") && i >= 0 {
		word = err[i+len("' in -"):]
	}
	if len(word) < 2 {
		return ""
	}
	best, least := "", 3 // letters that may differ
	consider := func(f *pflag.Flag) {
		n := distance(word, f.Name)
		if strings.HasPrefix(f.Name, word) {
			n = min(n, 1)
		}
		if n < least && !f.Hidden {
			best, least = f.Name, n
		}
	}
	cmd.LocalFlags().VisitAll(consider)
	cmd.InheritedFlags().VisitAll(consider)
	if best == "" {
		return ""
	}
	return "did you mean --" + best + "? stoa " + cmd.Name() + " --help lists them all"
}

// distance is how many letters have to be put in, taken out or changed to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// flagError is what is wrong with a flag, without the words of the library that read its value.
func flagError(err error) string {
	s := err.Error()
	if head, tail, ok := strings.Cut(s, " flag: strconv."); ok {
		why := tail[strings.LastIndex(tail, ": ")+2:]
		return head + " flag: " + map[string]string{"invalid syntax": "that is no number",
			"value out of range": "the number is out of range"}[why]
	}
	return s
}
