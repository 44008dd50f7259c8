package change

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/format"
)

// badRecords handles rows that the table cannot hold during a load.
type badRecords struct {
	app          *cli.App
	file, action string
	out          *stoa.Writer // of the file; nil: there is no file
	rows         int64
	done         bool   // the file is complete
	of           string // of what rows are counted, for messages
	texts        badTexts
	first        func(number int64, why []format.Misfit) error // if not nil, gets the bad rows, and nothing else does
}

// badActions are the actions, in CarbonData's terms.
var badActions = []string{"fail", "force", "redirect", "ignore"}

// maxReported is how many bad rows are reported one by one.
const maxReported = 10

func (x *badRecords) flags(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&x.file, "bad-records", "", "leave out rows with a value that its column cannot hold, and write them "+
		"to `FILE`, a .csv, .tsv or .jsonl, every value as the text that it came as")
	fl.StringVar(&x.action, "bad-action", "", "what to do with rows that have a value that its column cannot "+
		"hold, `ACTION`: fail "+
		"(default), force (make it null), redirect (to --bad-records), ignore (leave the row out)")
	cli.Complete(cmd, "bad-action", func() []string { return badActions })
}

// asked reports whether the load continues after bad rows.
func (x *badRecords) asked() bool { return x.file != "" || x.action != "" && x.action != "fail" }

// begin sets the options of a load of rows with schema sc into a table.
func (x *badRecords) begin(ctx context.Context, a *cli.App, table string, sc *arrow.Schema,
	o *stoa.AppendOptions) error {
	if x.action == "" && x.file != "" {
		x.action = "redirect"
	}
	switch {
	case x.action != "" && !slices.Contains(badActions, x.action):
		return &cli.UseError{Message: "--bad-action " + x.action + " is none",
			Hint: "the actions are " + strings.Join(badActions, ", ")}
	case x.action == "redirect" && x.file == "":
		return cli.WrongUse("--bad-action redirect needs --bad-records FILE")
	case x.file != "" && (x.action == "fail" || x.action == "ignore"):
		return cli.WrongUse("--bad-records goes with --bad-action redirect or force")
	}
	switch x.action {
	case "", "fail":
		return nil
	case "force":
		o.Bad = stoa.BadForce
	default:
		o.Bad = stoa.BadIgnore
	}
	x.app, o.OnBad = a, x.add
	if x.file == "" {
		return nil
	}
	a.Reads(table) // otherwise the file would count as a stray part of the table
	if err := a.CheckOutputs(nil, x.file); err != nil {
		return err
	}
	if _, err := os.Lstat(x.file); err == nil {
		return &cli.UseError{Message: x.file + " exists", Hint: "name another file for the bad rows, or remove it"}
	}
	if o.DryRun { // nothing is written, but it must be possible
		if f := stoa.ByExtension(a.Formats, x.file); f == nil {
			return cli.WrongUse("%s: the extension does not say which format to write", x.file)
		}
		_, err := os.Stat(filepath.Dir(x.file))
		return err
	}
	var err error
	x.out, err = stoa.Create(ctx, x.file, sc, stoa.CreateOptions{Formats: a.Formats, NoCheck: true})
	return err
}

// report reports a bad row, which is as it came, and its number among all rows.
func (x *badRecords) report(number int64, row arrow.RecordBatch, why []format.Misfit) error {
	if x.first != nil {
		return x.first(number, why)
	}
	if x.rows++; x.rows <= maxReported {
		for _, m := range why {
			x.app.Note("row %d%s: column %s: %s", number, x.of, m.Column, m.Reason)
		}
	}
	if x.out == nil {
		return nil
	}
	return x.out.Write(context.Background(), row)
}

// written closes the file of bad rows after all rows were read and before the load is committed, so that no row is
// missing from both.
func (x *badRecords) written(ctx context.Context) error {
	if x.out == nil || x.rows == 0 || x.done {
		return nil
	}
	x.done = true
	_, err := x.out.Close(ctx)
	return err
}

// end reports what was done with the bad rows, after a load that ended with err.
func (x *badRecords) end(ctx context.Context, err error, dry bool) error {
	if x.out != nil && !x.done {
		err = errors.Join(err, x.out.Abort(context.WithoutCancel(ctx)))
	}
	if err == nil && x.rows > 0 {
		what := map[string]string{"force": "loaded with nulls", "ignore": "left out"}[x.action]
		if x.action == "redirect" {
			what = "written to " + x.file
		}
		x.app.Note("%s %s", display.Count(x.rows, "bad row"), would(dry, what))
	}
	return err
}
