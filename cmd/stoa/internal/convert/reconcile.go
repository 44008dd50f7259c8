package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/ls"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/pieces"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/rerun"
	"stoa/fault"
	"stoa/format"
	"stoa/store"
	"stoa/store/remote"
)

// readback compares what was read from a table's output with what was written.
type readback struct {
	Rows         *int64 `json:"rows"` // null: the output could not be read
	Checksum     string `json:"checksum"`
	ReadChecksum string `json:"read_checksum,omitempty"`
	Verdict      string `json:"verdict"`
	Problem      string `json:"problem,omitempty"`
}

// The verdicts. Only the first one means that every value came back.
const (
	verdictEqual   = "equal"
	verdictRows    = "rows equal, types differ" // the format has no such types: a checksum proves nothing
	verdictDiffers = "differs"
	verdictMissing = "missing"
	verdictLater   = "changed since" // by others, or by --catch-up
	verdictUnread  = "not read back" // the format can only be written
)

// outcome is a readback with further fields for internal use.
type outcome struct {
	readback
	files int
	bytes int64

	retyped bool  // it is read with other types than were written
	half    error // it has one catalogue of two, and why it stays so
	columns error // how they differ from those of the source

	now    *rerun.Read // what the source has, whose files have changed; nil: it was not read
	unread error       // why not all of it could be read
}

// why returns what is wrong.
func (b *readback) why() string {
	switch {
	case b.Problem != "":
		return "could not be read: " + b.Problem
	case b.Verdict == verdictMissing:
		return "is missing"
	case b.ReadChecksum == "":
		return "is not what was written"
	}
	return fmt.Sprintf("differs from what went in: %s rows, checksum %s, want %s", display.Maybe(ls.Number(b.Rows)),
		b.ReadChecksum, b.Checksum)
}

// createOne begins the output of a table: a directory of partitions, if the table has partitions and their columns are
// selected.
func (c *conversion) createOne(ctx context.Context, a *cli.App, t *stoa.Table, sc *arrow.Schema,
	wo stoa.CreateOptions) (output.RowWriter, error) {
	c.sc, c.partitions = sc, nil
	columns := t.Sources()[0].Layout.Partitions
	for _, p := range columns {
		if !slices.ContainsFunc(sc.Fields(), func(f arrow.Field) bool { return strings.EqualFold(f.Name, p) }) {
			columns = nil
			break
		}
	}
	ext := c.ext
	switch {
	case len(c.by) > 0 && ext != "":
		columns = c.by
	case len(columns) == 0 || ext == "" || len(columns) == sc.NumFields() || len(t.Sources()) > 1:
		if err := c.vacant(c.out); err != nil {
			return nil, err
		}
		return output.CreateTable(a, ctx, c.out, sc, wo)
	}
	c.partitions = columns
	c.out = strings.TrimSuffix(c.out, ext)
	if err := c.vacant(c.out); err != nil {
		return nil, err
	}
	return pieces.CreatePartitioned(ctx, a, c.out, ext, sc, columns, wo)
}

// createOnly begins the output of the only table.
func (c *conversion) createOnly(ctx context.Context, a *cli.App, sc *arrow.Schema,
	wo stoa.CreateOptions) (output.RowWriter, error) {
	if len(c.by) == 0 {
		return output.CreateTable(a, ctx, c.out, sc, wo)
	}
	to := a.Format(wo.To)
	return pieces.CreatePartitioned(ctx, a, strings.TrimRight(c.out, "/"), to.Extensions[0], sc, c.by, wo)
}

// output returns where the table was written, relative to dir.
func (c *conversion) output(dir string) string {
	if rel, err := filepath.Rel(dir, c.out); err == nil {
		return rel
	}
	return c.out
}

// readBack reads the output of a table, and compares it with what was written: its rows or, if its types do not allow
// that, its bytes, as far as they were recorded.
func (r *allRun) readBack(ctx context.Context, d rerun.Table) (out outcome) {
	out.Checksum, out.Verdict = d.Checksum, verdictDiffers
	a, name := r.a, d.Place(r.dir)
	if _, err := a.Stat(ctx, cli.WithoutTable(name)); errors.Is(err, fs.ErrNotExist) {
		out.Verdict = verdictMissing
		return out
	}
	if !d.Taken {
		out.files, out.bytes = sizes(ctx, a, name)
	}
	wo, err := r.c.writeFlags.options(a)
	var back rerun.Back
	if err == nil {
		back, err = d.ReadBack(ctx, a, name, wo)
	}
	if back.Other && isLake(r.c.to) { // a later version, of a catch-up, may have other columns
		o, err := r.lake(ctx, d)
		back.Other = err != nil || !o.Home.Later(ctx)
	}
	sum := back.Sum
	switch {
	case errors.Is(err, fault.Unsupported):
		out.Verdict = verdictUnread
	case err != nil:
		out.Problem = ls.Problem(err)
	case sum.Rows != d.Rows:
		out.Rows, out.ReadChecksum = reading.Known(sum.Rows), sum.String()
	case back.Other:
		out.Rows = reading.Known(sum.Rows)
	case back.Whole && sum.String() == d.Checksum:
		out.Rows, out.ReadChecksum, out.Verdict = reading.Known(sum.Rows), sum.String(), verdictEqual
	default:
		out.Rows = reading.Known(sum.Rows)
		same := d.Digest == "" && !back.Whole
		if d.Digest != "" {
			digest, err := d.DigestOf(ctx, a, r.dir)
			same = err == nil && digest == d.Digest
		}
		if same {
			out.Verdict = verdictRows
		} else if back.Whole {
			out.ReadChecksum = sum.String()
		}
	}
	return out
}

// record saves a table that is done. A later run, which reads its output with the types that it guesses, may not be
// able to tell whether the rows are those that were written: then its bytes tell.
func (r *allRun) record(ctx context.Context, d *rerun.Table, back outcome) (err error) {
	guessed := rerun.Guesses(r.a.Format(r.c.to)) || back.Verdict == verdictRows || back.retyped
	if guessed && !d.Taken && r.c.ext != "" && r.c.levels == 0 && !isLake(r.c.to) {
		r.unlocked(func() { d.Digest, err = d.DigestOf(ctx, r.a, r.dir) })
	}
	if err != nil {
		return err
	}
	return r.state.Record(ctx, r.a, r.dir, *d)
}

// readLake is readBack for a table that may be of a lake, where a file, or a directory without a catalogue, is not the
// table, whatever its rows are, unless the table was only begun. Nor is what is of no format that the run writes.
func (r *allRun) readLake(ctx context.Context, d rerun.Table) outcome {
	back := r.readBack(ctx, d)
	if !isLake(r.c.to) && back.Verdict == verdictUnread && r.foreign(ctx, d) {
		back.Verdict = verdictDiffers
	}
	if !isLake(r.c.to) || back.Verdict == verdictMissing || back.Problem != "" {
		return back
	}
	other := back.Verdict == verdictUnread
	if !other && !remote.Is(r.dir) {
		kinds, _ := r.kinds(ctx, d.Output) // below a file nothing can be listed
		_, err := os.Lstat(filepath.Join(d.Place(r.dir), pieces.JournalFile))
		other = len(kinds) == 0 && err != nil
	}
	if other {
		back.Verdict, back.Problem = verdictDiffers, "something else is there, and no table of "+r.c.to
	}
	return back
}

// checksum returns the checksum over the rows written.
func (c *conversion) checksum() string {
	if c.total != nil {
		return c.total.String()
	}
	return c.sum.Sum().String()
}

// sizes returns the number of files at a place, and their total size in bytes.
func sizes(ctx context.Context, a *cli.App, name string) (files int, size int64) {
	_ = a.Walk(ctx, name, func(f store.Info) error {
		files, size = files+1, size+f.Size
		return nil
	})
	return files, size
}

// account compares the rows written and those reported as lost with the declared ones, before the output is visible.
func (c *conversion) account(ctx context.Context, a *cli.App, t *stoa.Table, spec stoa.ScanSpec, out int64) error {
	sum, err := t.Account(ctx, spec.Damaged, out, c.Losses)
	if err != nil {
		return err
	}
	if c.accounts = &sum; !sum.Balanced() {
		c.altered = append(c.altered, *sum.Finding())
	}
	if f := sum.Undeclared(); f != nil {
		c.altered = append(c.altered, *f)
	}
	return nil
}

// verifySources adds the errors that verify finds in the sources, and reading did not meet. Recovery always looks for
// them; a conversion of whole tables, where no checksum covers the values.
func (c *conversion) verifySources(a *cli.App, ctx context.Context, t *stoa.Table, paths []string,
	o stoa.OpenOptions, spec stoa.ScanSpec) error {
	if !c.salvage {
		// what is selected may be little, and pages that were to be copied have been verified
		if c.writeFlags.unchecked || c.selects(spec) || c.summary.Copied || len(c.unread) > 0 {
			return nil
		}
		if unproven, err := unproven(a, ctx, t, o); err != nil || !unproven {
			return err
		}
	}
	found, err := c.Doubts(ctx, paths, o, c.noticed)
	for _, f := range found {
		if c.about != nil && !c.about(f) {
			c.aside = append(c.aside, f)
			continue
		}
		c.noticed = append(c.noticed, f)
	}
	if c.about != nil {
		c.noticed, c.aside = rerun.Costless(c.noticed), rerun.Costless(c.aside)
	}
	if err != nil && !c.salvage && fault.OverBudget(err) {
		a.Note("stoa: the source was read whole, but could not be verified: %s", cli.Line(err))
		return nil
	}
	return err
}

// selects reports whether the scan leaves out rows or columns.
func (c *conversion) selects(spec stoa.ScanSpec) bool {
	return spec.Filter != nil || spec.Limit > 0 || len(spec.Columns) > 0 || c.SelectFlags.Rows != ""
}

// unproven reports whether a source has values that no checksum covers, and states more about them than reading
// compares with them, such as bounds.
func unproven(a *cli.App, ctx context.Context, t *stoa.Table, o stoa.OpenOptions) (bool, error) {
	for _, s := range t.Sources() {
		f := a.Format(s.Format)
		if f == nil || !f.Bounds || f.Unchecked == nil {
			continue
		}
		place := cli.WithoutTable(s.Name)
		what, err := f.Unchecked(ctx, format.Target{Tree: o.Tree, Name: place,
			Table: strings.TrimPrefix(s.Name[len(place):], "#"), Limits: o.Limits},
			format.OpenOptions{Limits: o.Limits, Opts: o.Opts})
		if err != nil || what != "" {
			return what != "", err
		}
	}
	return false, nil
}
