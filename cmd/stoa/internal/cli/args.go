package cli

import (
	"fmt"

	"stoa/format"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ParseSize parses a number of bytes: 1000, 64kB, 256MB, 1GiB.
func ParseSize(flag, s string) (int64, error) {
	n, ok := format.ParseSize(s)
	if !ok || n == 0 {
		return 0, &UseError{Message: flag + " " + s + " is not a size", Hint: "for example 64MB, 256MiB or 1GB"}
	}
	return n, nil
}

// Paths checks the arguments of a verb that accepts one or more paths.
func (a *App) Paths(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return WrongUse("%s needs a path (- is standard input)", cmd.Name())
	}
	return OnceDash(args)
}

// Wants wraps a verb's rule for the number of its arguments; the error for a wrong number says which arguments the verb
// accepts.
func Wants(rule cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if rule(cmd, args) != nil {
			return &UseError{Message: fmt.Sprintf("%s takes other arguments (%d given)", cmd.Name(), len(args)),
				Hint: "write it as " + cmd.Root().Name() + " " + cmd.Use}
		}
		return nil
	}
}

func OnceDash(args []string) error {
	n := 0
	for _, p := range args {
		if p == Dash {
			n++
		}
		if p == "" {
			return WrongUse("a path is empty")
		}
	}
	if n > 1 {
		return WrongUse("standard input can be read only once")
	}
	return nil
}

func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return WrongUse("%s takes no arguments", cmd.Name())
	}
	return nil
}

// Complete completes the values of a flag from a list.
func Complete(cmd *cobra.Command, flag string, values func() []string) {
	CompleteWith(cmd, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values(), cobra.ShellCompDirectiveNoFileComp
	})
}

func CompleteWith(cmd *cobra.Command, flag string, how cobra.CompletionFunc) {
	f := cmd.Flag(flag)
	f.Value = &Completed{f.Value, how}
}

// Completed is a flag whose values can be completed.
type Completed struct {
	pflag.Value
	How cobra.CompletionFunc
}
