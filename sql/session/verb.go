package session

import (
	"context"
	"io"
	"os"

	"stoa/cmd/stoa/verbs"
)

// Run is the verb sql.
func Run(ctx context.Context, a *verbs.App, f *verbs.SQLFlags, args []string) error {
	script, err := statements(a, f, args)
	if err != nil {
		return err
	}
	s, err := Open(ctx, a, f)
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // DuckDB says it in its own words
	}
	if err != nil {
		return err
	}
	defer s.Close()
	if f.Interactive {
		ctx = context.WithoutCancel(ctx) // Ctrl-C ends a statement, not the dialogue
		err = s.Prompt(ctx)
	} else {
		err = s.Script(ctx, script)
	}
	places, losses, findings := s.health()
	f.Losses = losses
	return f.DamageFlags.Report(ctx, a, places, findings, err)
}

// statements returns the statements to run.
func statements(a *verbs.App, f *verbs.SQLFlags, args []string) (string, error) {
	switch {
	case len(args) > 0 && f.Script != "":
		return "", verbs.WrongUsef("a query and --script do not go together")
	case f.Interactive && (len(args) > 0 || f.Script != ""):
		return "", verbs.WrongUsef("--interactive takes no query and no --script")
	case f.Interactive:
		return "", nil
	case len(args) > 0:
		return args[0], nil
	case f.Script != "" && f.Script != "-":
		b, err := os.ReadFile(f.Script)
		return string(b), err
	}
	b, err := io.ReadAll(a.In)
	return string(b), err
}
