package change

import (
	"context"
	"fmt"
	"strings"
	"time"

	"stoa/cmd/stoa/internal/catchup"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/output"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/store/remote"
)

func CleanCmd(a *cli.App) *cobra.Command {
	var dry *bool
	var form *string
	var older time.Duration
	cmd := &cobra.Command{
		Use:   "clean STORE#DATABASE.TABLE [--dry-run]",
		Short: "Remove files that are not, or no longer, part of a table",
		Long: `Remove the files that are no longer part of a CarbonData table: segments that were deleted
or compacted, loads that were cut off, delete files that newer ones replaced, temporary files. Loads that
are running are left alone. The removed files are listed.

Of a table of Iceberg or Delta, in a directory or at an address, remove what runs of stoa that were killed
have left: files of which no snapshot or version has any, in none of the table's catalogues. If one of
these is from the last 24 hours (--older-than), or if stoa is writing there, all are kept.

At an address (s3://BUCKET/PREFIX), remove what killed runs of stoa have left there: uploads that were not
completed, which are invisible and take space, and the objects of incomplete directories; of a table that
can be read already, only the mark that it is incomplete, or what the run has recorded (_stoa/). A table
of Iceberg and Delta that a killed run left with one catalogue alone gets the other one. What was
begun in the last 24 hours is kept (--older-than), because a running process may still write it. Uploads
of other programs are also kept.`,
		Example: "  stoa clean store#sales.orders --dry-run\n  stoa clean s3://bucket/backup --dry-run",
		Args:    cli.Wants(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkForm(*form); err != nil {
				return err
			}
			r := &reporter{app: a, form: *form, result: result{Verb: cmd.Name(), Table: args[0], DryRun: *dry}}
			return r.end(r.clean(cmd, args[0], older))
		},
	}
	dry, form = dryRun(cmd), formFlag(cmd)
	cmd.Flags().DurationVar(&older, "older-than", 24*time.Hour, "at an address, or of a table of Iceberg or "+
		"Delta: remove only what was begun `TIME` ago or earlier, such as 90m")
	limitFlags(cmd)
	return cli.First(cmd, "dry-run", "older-than")
}

// clean removes what does not belong to the table, or to what is at an address.
func (r *reporter) clean(cmd *cobra.Command, name string, older time.Duration) error {
	a, ctx := r.app, cmd.Context()
	leftovers, place := 0, name
	if remote.Is(name) {
		r.Table, place = cli.ShownAddress(name), cli.WithoutTable(name)
		var err error
		if leftovers, err = cleanAddress(r, ctx, place, older); err != nil {
			return err
		}
	}
	if lake, err := cleanLake(r, ctx, place, older, leftovers); lake || err != nil {
		return err
	}
	t, err := openChanger(a, cmd, name)
	if remote.Is(name) && place == name && (err != nil || !cleans(a, t)) { // anything else may be there
		return nil
	}
	if err != nil {
		return err
	}
	c, err := t.Clean(ctx, stoa.CleanOptions{DryRun: r.DryRun, OlderThan: max(older, 1)})
	for _, f := range c.Files {
		r.list(f, "")
	}
	if err == nil {
		r.Segments, r.FileCount, r.Bytes = c.Segments, count(len(c.Files)+leftovers), count(c.Bytes)
		r.note("%s, %s, %s %s", display.Count(int64(len(c.Segments)), "segment"),
			display.Count(int64(len(c.Files)), "file"), display.BytesText(c.Bytes), would(r.DryRun, "removed"))
	}
	return err
}

// cleans reports whether the format of a table knows files that do not belong to it any more.
func cleans(a *cli.App, t *stoa.Changer) bool {
	f := a.Format(t.Format())
	return f != nil && f.Change != nil && f.Change.Clean != nil
}

// cleanAddress removes what killed processes have left behind at an address.
func cleanAddress(r *reporter, ctx context.Context, address string, older time.Duration) (n int, err error) {
	uploads, objects, added := 0, 0, 0
	var half []remote.Leftover // tables with one of two catalogues
	listed := map[string]bool{}
	err = r.app.Remote().Clean(ctx, address, time.Now().Add(-older), r.DryRun, func(l remote.Leftover) error {
		what := ""
		switch {
		case l.Upload:
			what = "  (an upload that was not completed)"
			uploads++
		case l.Added:
			what = "  (written, not removed: the second catalogue of a table that can be read by the first)"
			added++
		case l.Complete:
			what = "  (what it is about can be read)"
			objects++
		default:
			objects++
		}
		if l.Lacks != "" {
			half = append(half, l)
		}
		listed[l.Name] = true
		if l.Added && r.form == "json" {
			return nil // these are the removed ones
		}
		return r.list(l.Name, what)
	})
	if err == nil {
		r.FileCount = count(uploads + objects)
		r.note("%s, %s %s", display.Count(int64(uploads), "upload"), display.Count(int64(objects), "object"),
			would(r.DryRun, "removed"))
		if added > 0 {
			r.note("%s of a second catalogue %s, which a killed run had not written: the table has both then",
				display.Count(int64(added), "object"), would(r.DryRun, "added"))
		}
		for _, l := range half {
			r.halfMade(l)
		}
		err = keptRecent(r, ctx, address, older, listed)
	}
	return uploads + objects, err
}

// halfMade says of a table that was to have two catalogues, and has that of Iceberg alone, why it is left so, and what
// to do.
func (r *reporter) halfMade(l remote.Leftover) {
	table, _, _ := strings.Cut(cli.ShownAddress(l.Lacks), "/_delta_log/")
	why, next := "and was too large for the mark of the killed run", "the command that wrote it, with --resume, "+
		"writes that over the same files: stoa convert SRC --to iceberg,delta -o "+table+" --resume"
	if l.Used {
		why = "and others have used the table since, so that it is not written any more"
		next = "as a table of its own: stoa convert " + table + " --from iceberg --to delta -o OTHER"
	}
	r.noteOf(table, "left with the catalogue of Iceberg alone: that of Delta is missing, %s; %s", why, next)
}

// cleanLake removes what killed runs have left in the directory of a table of Iceberg or Delta; lake: it is one. more
// is how many files were removed there before.
func cleanLake(r *reporter, ctx context.Context, place string, older time.Duration, more int) (lake bool, err error) {
	home, err := catchup.At(ctx, r.app.Remote(), strings.TrimRight(place, "/"), true)
	if err != nil {
		return false, err
	}
	kinds, err := home.Kinds(ctx)
	if remote.IsUnfinished(err) || !remote.Is(place) && err != nil {
		return false, nil // no table, or none yet
	}
	if len(kinds) == 0 || err != nil {
		return false, err
	}
	left, busy, err := home.Leftovers(ctx, r.app.Formats, time.Now().Add(-older))
	if err != nil {
		return true, fmt.Errorf("nothing is removed, as it is not known which files belong to the table: %w", err)
	}
	if busy {
		var names []string
		for _, l := range left {
			names = append(names, l.Name)
		}
		r.note("all is kept, as a running process may still write or commit what is from the last %s (--older-than), "+
			"or while stoa is writing there: %s", older, output.FirstNames(names))
		left = nil
	}
	bytes := int64(0)
	for _, l := range left {
		bytes += l.Bytes
		if err = r.list(l.Name, ""); err == nil && !r.DryRun {
			err = home.RemoveLeftover(ctx, l)
		}
		if err != nil {
			return true, err
		}
	}
	r.FileCount, r.Bytes = count(len(left)+more), count(bytes)
	r.note("%s, of which no snapshot or version has any, %s %s", display.Count(int64(len(left)), "file"),
		display.BytesText(bytes), would(r.DryRun, "removed"))
	return true, nil
}

// keptRecent says what is kept because it is not old enough.
func keptRecent(r *reporter, ctx context.Context, address string, older time.Duration, gone map[string]bool) error {
	var kept []string
	err := r.app.Remote().Clean(ctx, address, time.Now(), true, func(l remote.Leftover) error {
		if !gone[l.Name] {
			kept = append(kept, l.Name)
		}
		return nil
	})
	if len(kept) > 0 {
		r.note("kept, as a running process may still write what was begun in the last %s (--older-than): %s", older,
			output.FirstNames(kept))
	}
	return err
}

// list prints the name of a file that is removed, or keeps it for the object.
func (r *reporter) list(name, remark string) error {
	if r.form == "json" {
		r.Files = append(r.Files, name)
		return nil
	}
	_, err := fmt.Fprintf(r.app.Stdout, "%s%s\n", name, remark)
	return err
}
