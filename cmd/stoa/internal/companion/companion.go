// Package companion runs programs that are verbs of the command and modules of their own, because of what they depend
// on: stoa-sql, stoa-mcp. They lie next to stoa, or on the PATH.
package companion

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"stoa/cmd/stoa/internal/cli"
)

// Find returns the path of a program.
func Find(program string) (string, error) {
	if self, err := os.Executable(); err == nil {
		for _, dir := range []string{filepath.Dir(self), linked(self)} {
			if p, err := exec.LookPath(filepath.Join(dir, program)); dir != "" && err == nil {
				return p, nil
			}
		}
	}
	return exec.LookPath(program)
}

// linked returns the directory of the target of a program's symbolic link; "" if it is not a link.
func linked(self string) string {
	real, err := filepath.EvalSymlinks(self)
	if err != nil {
		return ""
	}
	return filepath.Dir(real)
}

// SQL is the program that has a database.
const SQL = "stoa-sql"

// Query runs a query, or statements, of somebody who may read only what lies below places, and gives its rows in a form
// of -f. It returns the exit status, and 1 with a note if the program is missing.
// The database is a process of its own: it ends with ctx, or when it takes too much memory.
func Query(ctx context.Context, places []string, query, form string, out, notes io.Writer) int {
	path, err := Find(SQL)
	if err != nil {
		fmt.Fprintf(notes, "stoa: the program %s is neither in the directory of stoa nor on the PATH\n", SQL)
		return cli.StatusCannot
	}
	args := []string{"sql", "-q", "--memory=1GB", "--threads=2"}
	for _, p := range places {
		args = append(args, "--within="+p)
	}
	c := exec.CommandContext(ctx, path, append(args, "--format="+form, "--", query)...)
	c.Stdout, c.Stderr = out, notes
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 2 * time.Second
	large, err := watch(c)
	if large {
		fmt.Fprintf(notes, "stoa: %s: the query took more than %d MiB of memory, and was stopped\n", SQL,
			mostResident>>20)
		return cli.StatusCannot
	}
	if exit := new(exec.ExitError); errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintf(notes, "stoa: %s: %v\n", SQL, err)
		return cli.StatusCannot
	}
	return cli.StatusFine
}

// Run runs a program, which `make target` builds, with the streams of a. Its status becomes the error of this verb; it
// has reported the reason itself.
func Run(cmd *cobra.Command, a *cli.App, program, target string, args ...string) error {
	path, err := Find(program)
	if err != nil {
		return errors.New("the program " + program + " is neither in the directory of stoa nor on the PATH: " +
			"in stoa's sources, `make " + target + "` builds it there")
	}
	c := exec.CommandContext(cmd.Context(), path, args...)
	c.Stdin, c.Stdout, c.Stderr = a.In, a.Out, a.Stderr
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 2 * time.Second
	err = c.Run()
	exit := new(exec.ExitError)
	said := errors.As(err, &exit) && exit.Exited()
	switch {
	case err == nil:
		return nil
	case cmd.Context().Err() != nil && !said:
		return cmd.Context().Err()
	case !said:
		return err
	}
	switch exit.ExitCode() {
	case cli.StatusUse:
		return cli.ErrUse
	case cli.StatusDamage:
		return cli.ErrDamage
	case cli.StatusStopped:
		return cli.ErrStopped
	}
	return cli.ErrFailed
}
