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
	a.UserConfig = true
	status, _ := verbs.RunWith(stoa.Session(ctx), a, verbs.SQLWords(os.Args[1:]), session.Run)
	os.Exit(status)
}

// signals returns a context that Ctrl-C and SIGTERM cancel.
func signals() (context.Context, context.CancelFunc) {
	signal.Ignore(syscall.SIGPIPE) // if a reader closes early, writes fail with EPIPE
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		// A second signal ends the process at once. But on a terminal both this process and stoa get a Ctrl-C, and stoa
		// passes it on.
		time.Sleep(time.Second)
		stop()
	})
	return ctx, stop
}
