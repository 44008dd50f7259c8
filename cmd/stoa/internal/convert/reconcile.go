package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/ls"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/reading"
	"stoa/fault"
	"stoa/internal/arrowschema"
	"stoa/internal/content"
	"stoa/store"
)

// readback is what became of a table: what went in, and what was read of the output.
type readback struct {
	Rows         *int64 `json:"rows"` // null: it could not be read
	Checksum     string `json:"checksum"`
	ReadChecksum string `json:"read_checksum,omitempty"`
	Verdict      string `json:"verdict"`
	Problem      string `json:"problem,omitempty"`
}

// The verdicts. Only the first says that every value came back.
const (
	verdictEqual   = "equal"
	verdictRows    = "rows equal, types differ" // the format has no such types: a checksum over the values says nothing
	verdictDiffers = "differs"
	verdictMissing = "missing"
	verdictUnread  = "not read back" // the format can only be written
)

// outcome is a readback with what is only of interest here.
type outcome struct {
	readback
	files int
	bytes int64
}

// why says what is wrong.
func (b *readback) why() string {
	switch {
	case b.Problem != "":
		return "could not be read: " + b.Problem
	case b.Verdict == verdictMissing:
		return "is missing"
	}
	return fmt.Sprintf("differs from what went in: %s rows, checksum %s, want %s", display.Maybe(ls.Number(b.Rows)),
		b.ReadChecksum, b.Checksum)
}

// createOne begins the output of a table: a directory of partitions if the table has them and they are among
// the columns.
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
	ext := filepath.Ext(c.out)
	if len(columns) == 0 || ext == "" || len(columns) == sc.NumFields() || len(t.Sources()) > 1 {
		return output.CreateTable(a, ctx, c.out, sc, wo)
	}
	c.partitions = columns
	c.out = strings.TrimSuffix(c.out, ext)
	return createPartitioned(ctx, a, c.out, ext, sc, columns, wo)
}

// output is where the table was written, in dir.
func (c *conversion) output(dir string) string {
	if rel, err := filepath.Rel(dir, c.out); err == nil {
		return rel
	}
	return c.out
}

// readBack reads what was written of a table, and compares.
func readBack(a *cli.App, ctx context.Context, dir string, d doneTable) (out outcome) {
	out.Checksum, out.Verdict = d.Checksum, verdictDiffers
	name := filepath.Join(dir, d.Output)
	if _, err := a.Stat(ctx, name); errors.Is(err, fs.ErrNotExist) {
		out.Verdict = verdictMissing
		return out
	}
	out.files, out.bytes = sizes(ctx, a, name)
	sum, whole, err := sumOfAll(a, ctx, name, d)
	switch {
	case errors.Is(err, fault.Unsupported):
		out.Verdict = verdictUnread
	case err != nil:
		out.Problem = ls.Problem(err)
	case sum.Rows != d.Rows:
		out.Rows, out.ReadChecksum = reading.Known(sum.Rows), sum.String()
	case !whole:
		out.Rows, out.Verdict = reading.Known(sum.Rows), verdictRows
	default:
		out.Rows, out.ReadChecksum = reading.Known(sum.Rows), sum.String()
		if out.ReadChecksum == d.Checksum {
			out.Verdict = verdictEqual
		}
	}
	return out
}

// checksum is that over the rows that went in.
func (c *conversion) checksum() string {
	if c.total != nil {
		return c.total.String()
	}
	return c.sum.Sum().String()
}

// sumOfAll is sumOf an output that may be several files.
func sumOfAll(a *cli.App, ctx context.Context, name string, d doneTable) (sum content.Sum, whole bool, err error) {
	if len(d.Pieces) == 0 {
		return sumOf(a, ctx, name, d)
	}
	all := true
	for _, p := range d.Pieces {
		if !filepath.IsLocal(p.Name) {
			return sum, false, fault.Invalidf("%s: expected a file in %s", p.Name, name)
		}
		one, whole, err := sumOf(a, ctx, filepath.Join(name, p.Name), d)
		if err != nil {
			return sum, false, err
		}
		sum, all = sum.Plus(one), all && whole
	}
	return sum, all, nil
}

// sumOf sums an output up; whole reports whether its types let the sum be compared.
func sumOf(a *cli.App, ctx context.Context, name string, d doneTable) (sum content.Sum, whole bool, err error) {
	o := stoa.OpenOptions{Formats: a.Formats, Tree: store.Roots(cli.Tree{A: a})}
	sc, err := arrowschema.Decode(d.Arrow)
	if err != nil {
		return sum, false, err
	}
	out := sc
	rows := cli.Batches(nil)
	if len(d.Partitions) > 0 {
		rows = readPartitioned(a, ctx, name, sc, d.Partitions, o)
	} else {
		t, err := stoa.Open(ctx, name, o)
		if err != nil {
			return sum, false, err
		}
		defer t.Close()
		out, rows = t.Schema(), cli.Batches(t.Scan(ctx, stoa.ScanSpec{Alloc: cli.Pool, Unordered: true}))
	}
	plan := content.Same(sc).Reading(sc, out)
	s := plan.Summer(1)
	for b, err := range rows {
		if err != nil {
			return sum, false, err
		}
		s.Add(b)
	}
	return s.Sum(), len(plan.Incomparable()) == 0, nil
}

// sizes counts the files of a place, and their bytes.
func sizes(ctx context.Context, a *cli.App, name string) (files int, size int64) {
	_ = a.Walk(ctx, name, func(f store.Info) error {
		files, size = files+1, size+f.Size
		return nil
	})
	return files, size
}
