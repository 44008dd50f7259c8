// Command stoa-sql is stoa with a database, DuckDB: what `stoa sql` runs. It has all verbs of stoa.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/sql/session"
)

func main() {
	ctx, _ := signals()
	a := verbs.NewApp(os.Stdin, os.Stdout, os.Stderr)
	status, _ := verbs.RunWith(stoa.Session(ctx), a, verbs.SQLWords(os.Args[1:]), session.Run)
	os.Exit(status)
}

// signals is a context that Ctrl-C and SIGTERM end.
func signals() (context.Context, context.CancelFunc) {
	signal.Ignore(syscall.SIGPIPE) // a reader that has enough makes writes fail with EPIPE
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		// A second signal ends the process at once; but on a terminal Ctrl-C comes here and to stoa, which passes it
		// on.
		time.Sleep(time.Second)
		stop()
	})
	return ctx, stop
}
