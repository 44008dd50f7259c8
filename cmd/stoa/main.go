// Command stoa opens, converts, checks and recovers columnar files. `stoa` alone tells more.
//
// Data goes to standard output, everything else to standard error. The exit status is
//
//	0  fine
//	1  could not do it: I/O, not supported, not found
//	2  wrong use: a flag, a column, a predicate
//	3  damage: found by verify, met by a reading verb, or something was lost in recover;
//	   or a difference, by diff
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signal.Ignore(syscall.SIGPIPE) // a reader that has enough makes writes fail with EPIPE; see errEnough
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole command; it returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	return newApp(stdin, stdout, stderr).run(ctx, args)
}

func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	return a.end(ctx, cmd, err)
}
