// Command stoa opens, converts, checks and recovers columnar files. `stoa` alone lists its verbs.
//
// Data goes to standard output, everything else to standard error. The exit status is
//
//	0  fine
//	1  could not do it: I/O, not supported, not found, changed while it was read
//	2  wrong use: a flag, a column, a predicate
//	3  damage: found by verify, met by a reading verb, or something was lost in recover;
//	   or a difference, by diff
//	130  ended by Ctrl-C or SIGTERM
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"stoa"

	"github.com/spf13/cobra"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/verbs"
	"stoa/store"
)

func main() {
	signal.Ignore(syscall.SIGPIPE) // a reader that stops early makes writes fail with EPIPE; see cli.ErrEnough
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole command; it returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := cli.NewApp(stdin, stdout, stderr)
	a.UserConfig = true
	ended := make(chan struct{})
	outer := ctx
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer close(ended)
	context.AfterFunc(ctx, func() {
		stop() // a second signal ends the process at once
		if outer.Err() == nil {
			forceExit(ended, a)
		}
	})
	return runArgs(a, stoa.Session(ctx), args)
}

// grace is how long a verb has, after a signal, to end in an orderly way.
const grace = time.Second

// forceExit ends the process when a verb has not ended in time: a library may work for a long time without checking the
// context.
func forceExit(ended <-chan struct{}, a *cli.App) {
	before := store.Committed.Load()
	select {
	case <-ended:
		return
	case <-time.After(grace):
	}
	store.AbortAll()
	if store.Committed.Load() > before { // the output became whole, and the verb is about to say so
		select {
		case <-ended:
			return
		case <-time.After(grace):
		}
	}
	_ = a.EndPager() // it would go on with the terminal
	a.Warn("stoa: interrupted")
	os.Exit(cli.StatusStopped)
}

func runArgs(a *cli.App, ctx context.Context, args []string) int {
	status, _ := verbs.RunApp(ctx, a, args)
	return status
}

func rootCmd(a *cli.App) *cobra.Command { return verbs.Root(a) }
