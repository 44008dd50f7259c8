package change

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/fault"
	"stoa/format"
	"stoa/store/remote"
)

// openChanger opens the table that a verb changes.
func openChanger(a *cli.App, cmd *cobra.Command, name string) (*stoa.Changer, error) {
	l, err := limitsOf(cmd)
	if err != nil {
		return nil, err
	}
	o := stoa.OpenOptions{Formats: a.Formats, Limits: l}
	if f := cmd.Flags().Lookup("allow-external"); f != nil && f.Value.String() == "true" {
		o.Opts = map[string]string{"external": "true"}
	}
	if f := cmd.Flags().Lookup("assume-single-writer"); f != nil && f.Value.String() == "true" {
		o.SingleWriter = true
	}
	if name, err = enter(a, cmd, name, &o); err != nil {
		return nil, err
	}
	c, err := stoa.OpenChanger(cmd.Context(), name, o)
	if err != nil {
		return nil, ofName(err)
	}
	if err := a.RemoteFailure(); err != nil { // somebody may have gone on without
		return nil, err
	}
	a.Detail("%s: %s", c.Place().Dir, c.Format())
	c.Alloc = cli.Pool
	if f := cmd.Flags().Lookup("disable-dependents"); f != nil && f.Value.String() == "true" {
		dry := cmd.Flags().Lookup("dry-run").Value.String() == "true"
		names, err := c.DisableDependents(cmd.Context(), dry)
		for _, n := range names {
			switch {
			case err != nil:
			case n == format.IndexTables && cmd.Name() == "drop":
				a.Note("%s: its %s stay: drop them with CarbonData", name, n)
			case n == format.IndexTables:
				a.Note("%s: its %s are not changed; CarbonData 2.2 and later read what they lack without them", name, n)
			default:
				a.Note("%s: view %s %s; REFRESH MATERIALIZED VIEW enables it again", name, n, would(dry, "disabled"))
			}
		}
		return c, err
	}
	return c, nil
}

// enter returns the name of a table in the tree that o gets: the command's tree of addresses, if it is at one.
func enter(a *cli.App, cmd *cobra.Command, name string, o *stoa.OpenOptions) (string, error) {
	if !remote.Is(name) {
		return name, nil
	}
	o.Tree = a.Remote()
	return a.Remote().Enter(cmd.Context(), name)
}

// ofName turns an error about a name that no table can have into wrong use.
func ofName(err error) error {
	var e *fault.Error
	if errors.As(err, &e) && e.Class == fault.Invalid && strings.Contains(e.Reason, " names no table") {
		return cli.WrongUse("%s", e.Reason)
	}
	return err
}

// target is the table that a verb changes.
type target struct {
	*stoa.Changer
	reporter
	ctx  context.Context
	args []string // the arguments after the name
	dry  bool
}

// onTable makes run the action of a verb on the table that its first argument names. The verb gets the flags that all
// such verbs have; the flags in first come first in its help.
func onTable(a *cli.App, cmd *cobra.Command, run func(t *target) error, first ...string) *cobra.Command {
	dry, form := dryRun(cmd), formFlag(cmd)
	limitFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkForm(*form); err != nil {
			return err
		}
		c, err := openChanger(a, cmd, args[0])
		if err != nil {
			return err
		}
		r := reporter{app: a, form: *form, result: result{Verb: cmd.Name(), Table: args[0], DryRun: *dry}}
		t := &target{c, r, cmd.Context(), args[1:], *dry}
		return t.end(run(t))
	}
	return cli.First(cmd, first...)
}

// wouldBe returns err. After a dry run without an error it says what would be done.
func (t *target) wouldBe(err error, format string, args ...any) error {
	if err == nil && t.dry {
		t.note(format, args...)
	}
	return err
}

// dryRun adds the flag --dry-run to a verb: the same checks and the same messages, but nothing is changed.
func dryRun(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("dry-run", false, "check, and print what would be done; change nothing")
}

// would returns the words for what was done or, in a dry run, would be done.
func would(dry bool, done string) string {
	if dry {
		return "would be " + done
	}
	return done
}

// wantsWhere refuses a missing predicate: selecting all rows must be explicit.
func wantsWhere(where string) error {
	if strings.TrimSpace(where) == "" {
		return &cli.UseError{Message: "--where says which rows; it is missing", Hint: `--where true means all of them`}
	}
	return nil
}

// withOption returns opts with one more option.
func withOption(opts map[string]string, key, v string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, opts)
	out[key] = v
	return out
}
