// Package verbs is the whole command, for programs that run it in their own process: cmd/stoa, and bindings to other
// languages, which thus return the same answers in the same JSON documents.
package verbs

import (
	"context"
	"fmt"
	"io"
	"strings"

	"stoa/cmd/stoa/internal/about"
	"stoa/cmd/stoa/internal/browse"
	"stoa/cmd/stoa/internal/catalogue"
	changes "stoa/cmd/stoa/internal/change"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/convert"
	"stoa/cmd/stoa/internal/flightverb"
	"stoa/cmd/stoa/internal/look"
	"stoa/cmd/stoa/internal/ls"
	"stoa/cmd/stoa/internal/mcpverb"
	"stoa/cmd/stoa/internal/serving"
	"stoa/cmd/stoa/internal/sqlverb"
	"stoa/format"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Run runs a command line, such as "verify", "x.cfile", "-f", "json". It returns the exit status and, unless that is 0,
// the error, which may have been reported on stderr already. It neither handles signals nor ends the process; to end it
// early, cancel ctx.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	return RunApp(ctx, cli.NewApp(stdin, stdout, stderr), args)
}

// RunApp is Run with the caller's App.
func RunApp(ctx context.Context, a *cli.App, args []string) (int, error) {
	return RunWith(ctx, a, args, nil)
}

// RunWith is RunApp with a database for the verb sql; nil: the program stoa-sql is run.
func RunWith(ctx context.Context, a *cli.App, args []string, sql SQLRun) (int, error) {
	return runRoot(ctx, a, args, rootWith(a, sql, nil))
}

// RunFlight is RunApp with a server for the verb flight.
func RunFlight(ctx context.Context, a *cli.App, args []string, flight FlightRun) (int, error) {
	return runRoot(ctx, a, args, rootWith(a, nil, flight))
}

func runRoot(ctx context.Context, a *cli.App, args []string, root *cobra.Command) (int, error) {
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		offerCompletions(a, root)
	}
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	return a.End(ctx, cmd, err), err
}

// Formats returns the formats that the command knows: those of stoa, and those that can only be written.
func Formats() []format.Format { return catalogue.Formats() }

// Version returns the version of the command.
func Version() string { return about.Version().Version }

// Root returns the command with all its verbs.
func Root(a *cli.App) *cobra.Command { return rootWith(a, nil, nil) }

func rootWith(a *cli.App, sql SQLRun, flight FlightRun) *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:           "stoa",
		Short:         "Columnar files without the systems that wrote them",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          func(cmd *cobra.Command, args []string) error { return noVerb(a, cmd, args) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				_, err := fmt.Fprintf(a.Stdout, "stoa %s\n", about.Version().Version)
				return err
			}
			a.Page()
			return overview(a)
		},

		PersistentPreRunE: func(cmd *cobra.Command, args []string) error { return before(a, cmd, args) },

		SuggestionsMinimumDistance: 2,
	}
	// Not cobra's own: its template would bring in text/template, and with it every method of every type that is
	// linked.
	root.Flags().BoolVar(&version, "version", false, "print the version of stoa")
	fl := root.PersistentFlags()
	fl.BoolVarP(&a.Quiet, "quiet", "q", false, "print only errors on standard error")
	fl.BoolVarP(&a.Verbose, "verbose", "v", false, "print more details")
	fl.BoolVar(&a.NoProgress, "no-progress", false, "show no progress")
	fl.BoolVar(&a.NoPager, "no-pager", false, "do not show long output page by page")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &cli.UseError{Message: flagError(err), Hint: nearFlag(cmd, err.Error())}
	})
	for i := range about.Groups {
		root.AddGroup(&about.Groups[i])
	}
	addVerbs(a, root, sql, flight)
	root.SetHelpCommandGroupID(about.GroupAbout)
	root.SetHelpCommand(helpCmd(a, root))
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		a.Page()
		if cmd == root || cmd.Name() == "help" {
			overview(a)
			return
		}
		about.WriteHelp(a, cmd)
	})
	return root
}

// helpCmd is the verb help: of a verb, or of a topic.
func helpCmd(a *cli.App, root *cobra.Command) *cobra.Command {
	return &cobra.Command{Use: "help [VERB] [-v]", Hidden: true, ValidArgsFunction: (&completer{a}).topics,
		RunE: func(cmd *cobra.Command, args []string) error {
			if text, ok := about.Topic(strings.Join(args, " ")); ok {
				a.Page()
				_, err := io.WriteString(a.Stdout, text)
				return err
			}
			verb, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return noVerb(a, root, args)
			}
			verb.InitDefaultHelpFlag()
			return verb.Help()
		}}
}

// before does what every verb begins with.
func before(a *cli.App, cmd *cobra.Command, args []string) error {
	if cmd.Name() == cobra.ShellCompRequestCmd || cmd.Name() == cobra.ShellCompNoDescRequestCmd {
		return nil // the arguments are words that are not complete
	}
	err := a.Configure(cmd, args)
	if err == nil {
		err = a.CheckReplace(cmd, args)
	}
	if err == nil {
		a.Work(cmd.Name())
		a.PageVerb(cmd)
	}
	return err
}

func addVerbs(a *cli.App, root *cobra.Command, sql SQLRun, flight FlightRun) {
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			c.DisableFlagsInUseLine = true
			if c.Name() != "migrate" { // which replaces nothing
				cli.RegisterForce(c)
			}
			root.AddCommand(c)
			a.Verbs = append(a.Verbs, c)
		}
	}
	add(about.GroupLook, ls.LsCmd(a), look.CensusCmd(a), look.HistoryCmd(a), look.SchemaCmd(a), look.MetaCmd(a),
		look.StatsCmd(a), look.AdviseCmd(a), look.DescribeCmd(a), browse.Cmd(a, RunApp),
		serving.Cmd(a, RunApp))
	add(about.GroupRows, look.CatCmd(a), look.HeadCmd(a), look.TailCmd(a), look.CountCmd(a), look.GetCmd(a),
		sqlverb.Cmd(a, sql), flightverb.Cmd(a, flight), mcpverb.Cmd(a), look.ExplainCmd(a), look.PlanCmd(a),
		look.ScanCmd(a))
	add(about.GroupWrite, convert.ConvertCmd(a), convert.MigrateCmd(a), changes.CreateCmd(a), changes.LoadCmd(a),
		changes.MergeCmd(a), changes.UpdateCmd(a), changes.DeleteCmd(a), changes.CompactCmd(a),
		changes.MergeIndexCmd(a), changes.CleanCmd(a), changes.AddColumnCmd(a), changes.DropColumnCmd(a),
		changes.RenameCmd(a), changes.SetTypeCmd(a), changes.SetPropertyCmd(a), changes.AddPartitionCmd(a),
		changes.DropPartitionCmd(a), changes.AddSegmentCmd(a), changes.TruncateCmd(a), changes.DropCmd(a))
	add(about.GroupHealth, look.VerifyCmd(a), convert.RecoverCmd(a), convert.RescueCmd(a), look.SealCmd(a),
		look.DiffCmd(a),
		about.FindingCmd(a))
	add(about.GroupAbout, about.DemoCmd(a), about.FormatsCmd(a), about.ConfigCmd(a), about.VersionCmd(a),
		about.SkillCmd(a), about.CompletionCmd(a), about.ManCmd(a))
}

// overview prints the output of `stoa` without arguments.
func overview(a *cli.App) error {
	var b strings.Builder
	b.WriteString(`stoa opens, converts, checks and recovers columnar files without the systems
that wrote them.

  stoa head block.cfile                      the first rows of a column file
  stoa convert block.cfile -o block.parquet  the same as Parquet
`)
	for _, g := range about.Groups {
		fmt.Fprintf(&b, "\n%s\n", g.Title)
		for _, c := range a.Verbs {
			if c.GroupID == g.ID {
				fmt.Fprintf(&b, "  %-14s %s\n", c.Name(),
					about.Wrap(c.Short, about.HelpWidth-17, "\n"+strings.Repeat(" ", 17)))
			}
		}
	}
	b.WriteString(`
A PATH is a file, a directory, a glob, PATH#TABLE, - for standard input, or
@FILE for several directories as one place: FILE has one name per line.
Addresses work, too: s3://BUCKET/KEY, https://HOST/PATH, hdfs://HOST/PATH.
stoa help VERB explains a verb, and stoa help VERB -v all of its flags;
stoa help predicates, what --where accepts; stoa help config -v,
defaults and named places.
`)
	_, err := io.WriteString(a.Stdout, b.String())
	return err
}

// noVerb returns the error for a first word that is not a verb, with a suggestion.
func noVerb(a *cli.App, cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	e := &cli.UseError{Message: fmt.Sprintf("there is no command %q", args[0]), Hint: "stoa --help lists them"}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		e.Hint = "did you mean " + strings.Join(near, " or ") + "?"
	} else if _, ok := about.Topic(args[0]); ok {
		e.Hint = "stoa help " + args[0] + " explains them"
	} else if a.Size(cmd.Context(), args[0]) >= 0 {
		e.Hint = "to see what is in that file: stoa head " + args[0]
	}
	return e
}

// nearFlag returns the flag that may have been meant by an unknown one; "" if none is near.
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
	best, bestDistance := "", 3 // letters that may differ
	consider := func(f *pflag.Flag) {
		n := distance(word, f.Name)
		if strings.HasPrefix(f.Name, word) {
			n = min(n, 1)
		}
		if n < bestDistance && !f.Hidden {
			best, bestDistance = f.Name, n
		}
	}
	cmd.LocalFlags().VisitAll(consider)
	cmd.InheritedFlags().VisitAll(consider)
	if best == "" {
		return ""
	}
	return "did you mean --" + best + "? stoa " + cmd.Name() + " --help lists them all"
}

// distance returns how many letters have to be inserted, removed or changed to turn a into b.
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

// flagError returns the error of a flag without the words of the library that parsed its value.
func flagError(err error) string {
	s := err.Error()
	if head, tail, ok := strings.Cut(s, " flag: strconv."); ok {
		why := tail[strings.LastIndex(tail, ": ")+2:]
		return head + " flag: " + map[string]string{"invalid syntax": "that is no number",
			"value out of range": "the number is out of range"}[why]
	}
	return s
}
