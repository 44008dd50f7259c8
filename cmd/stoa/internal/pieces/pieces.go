package pieces

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/output"
	"stoa/fault"
	"stoa/format"
	"stoa/internal/content"
	"stoa/internal/scan"
	"stoa/pred"
	"stoa/region"
)

// Options say how a table is written.
type Options struct {
	Out, Ext string // the directory, and the extension of the files in it
	Create   stoa.CreateOptions
	Target   int64 // the size of a file, measured as stored in the source
	Parallel int   // files that are written at a time; 0: one per core
	Resume   bool  // continue after an earlier run
	Of       any   // anything else the files depend on: source, flags. Files written with another Of are void
	Source   string
	Label    string // of the progress line
	// Same reports whether a file that an earlier run has written has the rows that it wrote.
	Same func(ctx context.Context, name string, f File) (bool, error)
	// Before, if not nil, is called with what was written before the directory gets its name.
	Before func(Result) error
}

// Result reports what was written.
type Result struct {
	Files   []File
	Sum     content.Sum // over the rows of all files
	Summary format.Summary
}

// pieces writes a table by units: parts of a scan that can be read on their own. Each file is read back before it
// appears, and is then recorded in a journal, so that another run can continue after it.
type pieces struct {
	Options
	a     *cli.App
	t     *stoa.Table
	spec  stoa.ScanSpec
	sc    *arrow.Schema
	dir   string // of the files until all are complete
	key   []int  // columns of the primary key; nil: an unfinished unit is written again from its beginning
	units []stoa.Split
	p     *cli.Progress

	mu      sync.Mutex // guards the following fields
	journal *pieceJournal
	done    []unitDone
	losses  [][]region.Loss // by unit
	summary format.Summary
}

// pieceName matches the names of the files: unit, and number within it.
var pieceName = regexp.MustCompile(`^\d{5,}-\d{5,}\.`)

// Write writes the rows of a scan of a table as files. Losses are passed to spec.Lost, in row order. The journal
// remains in the directory until Forget.
func Write(ctx context.Context, a *cli.App, t *stoa.Table, spec stoa.ScanSpec, o Options) (out Result, err error) {
	sc, err := t.ScanSchema(spec)
	if err != nil {
		return out, err
	}
	o.Create.Rows = -1
	r := &pieces{Options: o, a: a, t: t, spec: spec, sc: sc, dir: o.Out + unfinished}
	if err := r.plan(ctx); err != nil {
		return out, err
	}
	if err := r.open(ctx); err != nil {
		return out, err
	}
	defer r.journal.close()
	r.begin(ctx)
	err = r.all(ctx)
	r.p.Stop()
	if err != nil {
		return out, err
	}
	return r.finish(ctx)
}

// Forget removes the journal of a table that is complete, and is recorded as such elsewhere.
func Forget(dir string) error { return os.Remove(filepath.Join(dir, JournalFile)) }

// plan divides the scan into units: consecutive pieces of one part (a tablet, a file) that together have the size of a
// file, or a single piece that cannot be divided.
func (r *pieces) plan(ctx context.Context) error {
	for s, err := range r.t.PlanBy(ctx, r.spec, stoa.PlanOptions{Target: r.Target, Here: true}) {
		if err != nil {
			return err
		}
		for _, src := range s.Sources {
			for _, p := range src.Pieces {
				r.addUnit(s, src, p)
			}
		}
	}
	if r.spec.Unordered || r.spec.Damaged == stoa.NullCells { // after a null key cell it is not known which rows follow
		return nil
	}
	for _, k := range r.t.PrimaryKey() {
		at := r.sc.FieldIndices(k)
		if len(at) != 1 {
			r.key = nil
			return nil
		}
		r.key = append(r.key, at[0])
	}
	return nil
}

func (r *pieces) addUnit(s stoa.Split, src stoa.SplitSource, p scan.Piece) {
	if n := len(r.units); n > 0 {
		u := &r.units[n-1]
		last := &u.Sources[0]
		if last.URI == src.URI && last.Pieces[0].Part == p.Part && u.Bytes+p.Bytes <= r.Target && u.Rows >= 0 &&
			p.Count >= 0 {
			last.Pieces = append(last.Pieces, p)
			u.Bytes, u.Rows = u.Bytes+p.Bytes, u.Rows+p.Count
			return
		}
	}
	src.Pieces = []scan.Piece{p}
	s.Sources, s.Bytes, s.Rows, s.N = []stoa.SplitSource{src}, p.Bytes, p.Count, len(r.units)
	r.units = append(r.units, s)
}

// open opens the journal.
func (r *pieces) open(ctx context.Context) error {
	if list, err := os.ReadDir(r.Out); err == nil {
		// it is complete, but the run ended before the table was recorded as done; or it is to be replaced
		own := !slices.ContainsFunc(list, func(d fs.DirEntry) bool {
			return d.Name() != JournalFile && !pieceName.MatchString(d.Name())
		})
		journal := slices.ContainsFunc(list, func(d fs.DirEntry) bool { return d.Name() == JournalFile })
		switch {
		case !own:
			return fault.Invalidf("%s holds files of others", r.Out)
		case journal:
			err = os.Rename(r.Out, r.dir)
		default:
			err = os.RemoveAll(r.Out)
		}
		if err != nil {
			return err
		}
	}
	of, err := sumOfValues(r.Of, r.Ext, r.units)
	if err != nil {
		return err
	}
	r.losses = make([][]region.Loss, len(r.units))
	r.journal, r.done, err = openPieces(r.dir, of, len(r.units), r.Resume,
		func(lines []pieceLine) (map[string]bool, error) { return r.differing(ctx, lines) })
	return err
}

// differing returns the files of an earlier run that do not have the rows that it wrote: they are read again.
func (r *pieces) differing(ctx context.Context, lines []pieceLine) (map[string]bool, error) {
	out := map[string]bool{}
	var mu sync.Mutex
	return out, r.inParallel(ctx, len(lines), func(ctx context.Context, i int) error {
		p := lines[i].Piece
		if p == nil || !filepath.IsLocal(p.Name) {
			return nil
		}
		same, err := r.Same(ctx, filepath.Join(r.dir, p.Name), *p)
		if err == nil && !same {
			mu.Lock()
			defer mu.Unlock()
			out[p.Name] = true
			r.a.Note("%s: %s differs from what an earlier run has written: it is written again", r.Source, p.Name)
		}
		return err
	})
}

// begin shows the progress, by stored bytes.
func (r *pieces) begin(ctx context.Context) {
	var done, total, rows int64
	for i, u := range r.units {
		total += max(1, u.Bytes)
		rows += r.done[i].rows()
		if r.done[i].end {
			done += max(1, u.Bytes)
		}
	}
	if rows > 0 {
		r.a.Note("%s: %s were written by an earlier run", r.Source, display.Count(rows, "row"))
	}
	r.p = r.a.ProgressInPieces(ctx, r.t, r.Label, done, total, rows)
}

// all writes the unfinished units, several at a time.
func (r *pieces) all(ctx context.Context) error {
	if r.workers(len(r.units)) > 1 {
		r.spec.Parallel = 1
	}
	return r.inParallel(ctx, len(r.units), func(ctx context.Context, i int) error {
		if r.done[i].end {
			return nil
		}
		return r.unit(ctx, i)
	})
}

func (r *pieces) workers(n int) int { return min(cmp.Or(r.Parallel, runtime.NumCPU()), n) }

// inParallel calls do with the numbers from 0 to n-1, several at a time, until one call fails.
func (r *pieces) inParallel(ctx context.Context, n int, do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wait sync.WaitGroup
	for range r.workers(n) {
		wait.Go(func() {
			for i := range next {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wait.Wait()
	return context.Cause(ctx)
}

// unitWriter writes the files of a unit.
type unitWriter struct {
	r       *pieces
	n       int
	perFile int64 // maximum number of rows in a file; 0: no limit

	file   string
	w      output.RowWriter // nil: no file is open
	rows   int64            // in the open file
	sum    *content.Summer
	last   []pred.Value
	losses []region.Loss
}

// unit writes the rest of a unit.
func (r *pieces) unit(ctx context.Context, n int) (err error) {
	u := &unitWriter{r: r, n: n}
	s, spec := r.units[n], r.spec
	if s.Bytes > r.Target && s.Rows > 0 {
		u.perFile = max(1, int64(float64(s.Rows)*float64(r.Target)/float64(s.Bytes)))
	}
	if done := &r.done[n]; len(done.files) > 0 {
		if len(done.last) == len(r.key) && len(r.key) > 0 {
			spec.Filter = afterKey(spec.Filter, r.sc, r.key, done.last)
		} else {
			*done = unitDone{}
		}
	}
	spec.Lost = func(l region.Loss) { u.losses = region.Keep(u.losses, l) }
	defer func() {
		if u.w != nil {
			_ = u.w.Abort(context.WithoutCancel(ctx))
		}
	}()
	for b, err := range r.t.ScanSplit(ctx, s, spec) {
		if err == nil {
			err = u.write(ctx, b)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		r.p.Rows.Add(b.NumRows())
		if s.Rows > 0 {
			r.p.Done.Add(int64(float64(max(1, s.Bytes)) * float64(b.NumRows()) / float64(s.Rows)))
		}
	}
	return u.end(ctx)
}

// write writes rows, to as many files as necessary.
func (u *unitWriter) write(ctx context.Context, b arrow.RecordBatch) error {
	for from := int64(0); from < b.NumRows(); {
		if u.w == nil {
			if err := u.begin(ctx); err != nil {
				return err
			}
		}
		to := b.NumRows()
		if u.perFile > 0 {
			to = min(to, from+u.perFile-u.rows)
		}
		part := b.NewSlice(from, to)
		err := fault.OfRows(u.w.Write(ctx, part))
		u.sum.Add(part)
		u.last = keyOf(part, u.r.key)
		part.Release()
		if err != nil {
			return err
		}
		u.rows, from = u.rows+to-from, to
		if u.rows == u.perFile {
			if err := u.finish(ctx, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin begins the next file.
func (u *unitWriter) begin(ctx context.Context) error {
	u.file = fmt.Sprintf("%05d-%05d%s", u.n, len(u.r.done[u.n].files), u.r.Ext)
	u.sum, u.rows = content.Same(u.r.sc).Summer(0), 0
	w, err := output.CreateTable(u.r.a, ctx, filepath.Join(u.r.dir, u.file), u.r.sc, u.r.Create)
	if err != nil {
		return err
	}
	u.w = w
	return nil
}

// finish closes a file, and records it in the journal unless rows were lost: the next run has to report losses, too.
func (u *unitWriter) finish(ctx context.Context, end bool) error {
	s, err := u.w.Close(ctx)
	if err != nil {
		return fault.OfRows(err)
	}
	u.w = nil
	sum := u.sum.Sum()
	p := File{Name: u.file, Rows: sum.Rows, Bytes: s.Bytes, Checksum: sum.String()}
	r := u.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(u.losses) == 0 {
		err = r.journal.append(pieceLine{Unit: u.n, Piece: &p, Last: u.last, End: end})
	}
	r.done[u.n].files = append(r.done[u.n].files, p)
	r.summary.Altered = append(r.summary.Altered, s.Altered...)
	r.summary.ByOption = append(r.summary.ByOption, s.ByOption...)
	if r.summary.Files == nil {
		r.summary.Files = []string{}
		r.summary.Checked, r.summary.Unchecked = s.Checked, s.Unchecked
		r.summary.Notes, r.summary.Retyped = s.Notes, s.Retyped
	}
	r.summary.Checked = r.summary.Checked && s.Checked
	return err
}

// end ends the unit.
func (u *unitWriter) end(ctx context.Context) (err error) {
	if u.w != nil {
		err = u.finish(ctx, true)
	} else if len(u.losses) == 0 {
		u.r.mu.Lock()
		err = u.r.journal.append(pieceLine{Unit: u.n, End: true})
		u.r.mu.Unlock()
	}
	u.r.mu.Lock()
	defer u.r.mu.Unlock()
	u.r.done[u.n].end, u.r.losses[u.n] = true, u.losses
	return err
}

// finish gives the directory its name, and adds up the results.
func (r *pieces) finish(ctx context.Context) (out Result, err error) {
	for _, losses := range r.losses {
		for _, l := range losses {
			r.spec.Lost(l)
		}
	}
	for _, u := range r.done {
		out.Files = append(out.Files, u.files...)
	}
	if len(out.Files) == 0 {
		if out.Files, err = r.empty(ctx); err != nil {
			return out, err
		}
	}
	for _, f := range out.Files {
		one, err := content.Parse(f.Rows, f.Checksum)
		if err != nil {
			return out, err
		}
		out.Sum = out.Sum.Plus(one)
		r.summary.Bytes += f.Bytes
	}
	out.Summary = r.summary
	if out.Summary.Files == nil { // all were written, and proved, by an earlier run
		out.Summary.Checked = !r.Create.NoCheck
	}
	out.Summary.Files = nil
	for _, f := range out.Files {
		out.Summary.Files = append(out.Summary.Files, f.Name)
	}
	if err := r.sweep(out.Files); err != nil {
		return out, err
	}
	if r.Before != nil {
		if err := r.Before(out); err != nil {
			return out, err
		}
	}
	if info, err := os.Lstat(r.Out); err == nil && !info.IsDir() { // it may be replaced, or Before would have refused
		if err := os.Remove(r.Out); err != nil {
			return out, err
		}
	}
	return out, os.Rename(r.dir, r.Out)
}

// empty writes a file without rows, because something must record the columns.
func (r *pieces) empty(ctx context.Context) ([]File, error) {
	r.done, r.losses = []unitDone{{}}, make([][]region.Loss, 1)
	u := &unitWriter{r: r}
	if err := u.begin(ctx); err != nil {
		return nil, err
	}
	err := u.finish(ctx, true)
	return r.done[0].files, err
}

// sweep removes files that an earlier run wrote and that are not part of this run's output.
func (r *pieces) sweep(files []File) error {
	list, err := os.ReadDir(r.dir)
	if err != nil {
		return err
	}
	keep := map[string]bool{JournalFile: true}
	for _, f := range files {
		keep[f.Name] = true
	}
	for _, d := range list {
		if !keep[d.Name()] {
			if err := os.RemoveAll(filepath.Join(r.dir, d.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// keyOf returns the primary key of the last row; nil if it has none that a filter can express.
func keyOf(b arrow.RecordBatch, key []int) (out []pred.Value) {
	for _, k := range key {
		v, ok := lastValue(b.Column(k))
		if !ok {
			return nil
		}
		out = append(out, v)
	}
	return out
}

// lastValue returns the last cell of a column as a literal of a filter.
func lastValue(col arrow.Array) (v pred.Value, ok bool) {
	i := col.Len() - 1
	if i < 0 || col.IsNull(i) {
		return v, false
	}
	switch a := col.(type) {
	case *array.String:
		return pred.String(strings.Clone(a.Value(i))), true
	case *array.Binary:
		return pred.Bytes(slices.Clone(a.Value(i))), true
	case *array.Decimal128:
		return pred.Decimal(a.Value(i), a.DataType().(*arrow.Decimal128Type).Scale), true
	case *array.Int8:
		return pred.Int(int64(a.Value(i))), true
	case *array.Int16:
		return pred.Int(int64(a.Value(i))), true
	case *array.Int32:
		return pred.Int(int64(a.Value(i))), true
	case *array.Int64:
		return pred.Int(a.Value(i)), true
	case *array.Date32:
		return pred.Date(int64(a.Value(i))), true
	case *array.Timestamp:
		return pred.Typed(a.DataType(), int64(a.Value(i))), true
	}
	return v, false
}

// afterKey returns filter, restricted to rows whose primary key is greater than last.
func afterKey(filter *pred.Expr, sc *arrow.Schema, key []int, last []pred.Value) *pred.Expr {
	name := func(i int) string { return pred.JoinPath(sc.Field(key[i]).Name) }
	n := len(key) - 1
	after := pred.Test(name(n), pred.OpGt, last[n])
	for i := n - 1; i >= 0; i-- { // the bound of the first column alone allows a reader to skip earlier rows
		after = pred.And(pred.Test(name(i), pred.OpGe, last[i]),
			pred.Or(pred.Test(name(i), pred.OpGt, last[i]), after))
	}
	if filter == nil {
		return after
	}
	return pred.And(filter, after)
}
