// Command stoa-sql is stoa with a database, DuckDB: what `stoa sql` runs. It has all verbs of stoa.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/sql/session"
)

func main() {
	signal.Ignore(syscall.SIGPIPE) // a reader that has enough makes writes fail with EPIPE
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	a := verbs.NewApp(os.Stdin, os.Stdout, os.Stderr)
	status, _ := verbs.RunWith(stoa.Session(ctx), a, verbs.SQLWords(os.Args[1:]), session.Run)
	os.Exit(status)
}
