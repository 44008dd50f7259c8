package verbs

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/companion"
	"stoa/cmd/stoa/internal/flightverb"
	"stoa/cmd/stoa/internal/look"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/sqlverb"
	"stoa/fault"
)

// The parts of the programs stoa-sql and stoa-flight besides their database and server: each is the command, and rows
// of SQL look like those of cat.
type (
	App         = cli.App
	SQLFlags    = sqlverb.Flags
	SQLRun      = sqlverb.Run
	FlightFlags = flightverb.Flags
	FlightRun   = flightverb.Run
	OutputFlags = output.OutputFlags
	DamageFlags = reading.DamageFlags
	RowWriter   = output.RowWriter
	Batches     = cli.Batches
)

// ErrEnough means that the reader of the output has stopped reading.
var ErrEnough = cli.ErrEnough

// NewApp returns a run of the command.
func NewApp(stdin io.Reader, stdout, stderr io.Writer) *App { return cli.NewApp(stdin, stdout, stderr) }

// WrongUsef returns an error about the command line.
func WrongUsef(format string, args ...any) error { return cli.WrongUse(format, args...) }

// SQLWords returns the arguments of the verb sql, with or without its name in front.
func SQLWords(args []string) []string { return sqlverb.Words(args) }

// HasSQL reports whether the program stoa-sql is there.
func HasSQL() bool {
	_, err := companion.Find(companion.SQL)
	return err == nil
}

// The exit statuses of Query that say more than that it failed.
const (
	StatusUse    = cli.StatusUse
	StatusDamage = cli.StatusDamage
)

// Query has the program stoa-sql run a query that may read only what lies below places, and writes its rows in a form
// of -f. It returns the exit status.
func Query(ctx context.Context, places []string, query, form string, out, notes io.Writer) int {
	return companion.Query(ctx, places, query, form, out, notes)
}

// WriteRows writes rows of schema sc as determined by -f, -o and the terminal.
func WriteRows(a *App, ctx context.Context, out *OutputFlags, form string, sc *arrow.Schema, rows Batches) error {
	altered, err := reading.WriteRows(a, ctx, out, form, sc, rows)
	return reading.NoticedIn(a, altered, err)
}

// BeginFile writes rows of schema sc to the file of -o, which appears with EndFile.
func BeginFile(a *App, ctx context.Context, out *OutputFlags, form string, sc *arrow.Schema, rows Batches) (RowWriter,
	error) {
	w, err := output.OpenRowWriter(a, ctx, out, form, sc)
	if err != nil {
		return nil, err
	}
	if err := reading.CopyRows(ctx, rows, w); err != nil {
		return nil, errors.Join(err, w.Abort(ctx))
	}
	return w, nil
}

// EndFile has the file that BeginFile wrote appear.
func EndFile(a *App, ctx context.Context, w RowWriter) error {
	s, err := w.Close(ctx)
	if err != nil {
		return errors.Join(fault.OfRows(err), w.Abort(ctx))
	}
	return reading.NoticedIn(a, s.Altered, nil)
}

// ExplanationDoc is an explanation as stoa explain -f json has it.
func ExplanationDoc(x *stoa.Explanation) any { return look.DocOfExplanation(x) }

// CreateTable is stoa.Create for places of every kind.
func CreateTable(a *App, ctx context.Context, uri string, sc *arrow.Schema, o stoa.CreateOptions) (RowWriter, error) {
	return output.CreateTable(a, ctx, uri, sc, o)
}
