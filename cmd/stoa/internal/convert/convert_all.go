package convert

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/ls"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/pieces"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/rerun"
	"stoa/cmd/stoa/internal/survey"
	"stoa/fault"
	"stoa/format"
	"stoa/internal/arrowschema"
	"stoa/region"
	"stoa/store"
	"stoa/store/remote"
)

// allFlags are the flags of convert for many tables.
type allFlags struct{ all, resume bool }

func (f *allFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.all, "all", false, "write every table below the PATHs; OUT is a directory")
	cmd.Flags().BoolVar(&f.resume, "resume", false,
		"go on after what an earlier run has finished, with --all or --to iceberg, delta")
}

// runAll converts every table of the places.
func (c *conversion) runAll(cmd *cobra.Command, a *cli.App, paths []string, f allFlags) error {
	ctx := cmd.Context()
	if c.to == "" {
		c.to = "parquet"
	}
	wo, err := c.options(a)
	if err != nil {
		return err
	}
	c.levels, c.ext, c.goOn = a.Format(wo.To).Levels, extOf(a.Format(wo.To)), f.resume
	if c.target, err = c.piecesTarget(a.Format(wo.To)); err != nil {
		return err
	}
	if c.out == cli.Dash {
		return cli.WrongUse("--all writes a directory, not standard output")
	}
	dir := strings.TrimRight(c.out, "/")
	if err := cli.CheckWritable(dir); err != nil {
		return err
	}
	if remote.Is(dir) && (c.levels > 0 || a.Format(wo.To).Assemble != nil) {
		return cli.WrongUse("several tables as %s share a directory, which cannot be added to at an address", c.to)
	}
	if err := cli.CheckOutput(dir, cli.PlacesOf(paths)); err != nil {
		return err
	}
	oo, err := c.SourceFlags.Options(ctx, a, paths)
	if err != nil {
		return err
	}
	if oo.Opts["schema"] != "" {
		return &cli.UseError{Message: "--all converts tables that have names; what --schema reads has none",
			Hint: cli.BySchema(paths[0])}
	}
	oo.Recover = c.salvage
	tables, left, oo, err := gather(ctx, a, paths, oo, wo)
	stamps := &pieces.Stamper{Tree: oo.Tree}
	if c.salvage {
		tables, left = unopened(ctx, tables, left, oo, a.Format(wo.To), stamps)
	}
	if err != nil && len(tables) == 0 {
		return err
	}
	keepFree(tables, a.Format(wo.To))
	st, err := rerun.OpenState(ctx, a, dir, f.resume, c.settings(), paths...)
	if err != nil {
		return err
	}
	if c.levels == 0 { // otherwise the name is only that of the root that a table shares with the others: see shareRoot
		keepNames(st, tables, c.ext)
	}
	return c.convertAll(ctx, cmd, a, dir, tables, left, st)
}

// settings returns the flags that determine the contents of the outputs: a run can be resumed only with the same ones.
func (c *conversion) settings() []string {
	out := []string{"to=" + c.to, "columns=" + strings.Join(c.Columns, ","), "where=" + c.Where,
		"rows=" + c.SelectFlags.Rows, fmt.Sprintf("limit=%d", c.Limit), "damaged=" + c.Damaged}
	opts := append(slices.Clone(c.writeFlags.opts), c.SourceFlags.Opts...)
	for _, w := range c.OptionFlags {
		if c.Changed(w.Flag) && w.Flag != "partial" && w.Flag != "live" {
			opts = append(opts, w.Flag+"="+w.Given)
		}
	}
	if c.fileSize != "" {
		opts = append(opts, "file-size="+c.fileSize)
	}
	if c.writeFlags.partitions != "" {
		opts = append(opts, "partition-by="+c.writeFlags.partitions)
	}
	slices.Sort(opts)
	return append(out, opts...)
}

// convertAll converts the tables that are not done yet, and reads all of them back. A failure of one table does not
// prevent the conversion of the others. left are the files that are not converted, with the reasons.
func (c *conversion) convertAll(ctx context.Context, cmd *cobra.Command, a *cli.App, dir string, tables []oneTable,
	left []leftTable, st *rerun.State) error {
	r := &allRun{c: c, a: a, cmd: cmd, dir: dir, state: st, began: time.Now()}
	failed, err := r.tables(ctx, tables, left)
	if err != nil {
		return err
	}
	if err := r.finish(ctx, len(tables)+failed); err != nil {
		return err
	}
	if c.Manifest == "" {
		return r.worst
	}
	c.Losses = r.losses
	return errors.Join(reading.WriteManifest(a, ctx, c.Manifest, c.Document(sourcesOf(tables), r.findings, nil),
		c.Losses),
		r.worst)
}

// allRun is a run of convertAll.
type allRun struct {
	c     *conversion
	a     *cli.App
	cmd   *cobra.Command
	dir   string
	state *rerun.State
	began time.Time

	rows, done, before int64
	findings           []region.Finding
	losses             []region.Loss
	report             output.Report
	worst              error
	left               []leftTable // files that are not tables and that recovery could not read

	converted func(t oneTable, o *tableOutcome)     // called with the outcome of each table; may be nil
	moments   func(table, id string) *rerun.Moments // of a table as its source has them; may be nil

	assembly format.Assembly // makes one place of all tables; nil: each is a place

	parallel int // tables that are converted at a time; 0 means 1
	mu       sync.Mutex
}

// tableOutcome is the outcome of converting a table.
type tableOutcome struct {
	summary  summaryDoc // the zero value means that there is no output
	losses   []region.Loss
	findings []region.Finding
	aside    []region.Finding // findings of its place that are about other tables
	err      error            // why it was not written, or not all of it could be read
	dates    []survey.Column  // dates and times that were counted
	again    bool             // an earlier run has written it
	kept     *rerun.Table     // what an earlier run has written, and the sources do not have any more
	reached  map[string]format.Reach
}

// outcome is that of a table of which err is.
func (c *conversion) outcome(err error) tableOutcome {
	return tableOutcome{losses: c.Losses, findings: c.noticed, aside: c.aside, err: err, dates: c.dates(),
		reached: c.reached}
}

// noteTable passes on the outcome of a table.
func (r *allRun) noteTable(t oneTable, o tableOutcome) {
	if r.converted != nil {
		r.converted(t, &o)
	}
}

// tellAgain reports a table that an earlier run has finished, as that run did.
func (r *allRun) tellAgain(t oneTable, d rerun.Table, back outcome) error {
	r.a.Detail("%s: done before", t.source)
	r.before++
	out := tableOutcome{again: true, reached: d.Reached, summary: summaryDoc{Source: t.source,
		Output: remote.Shown(d.Place(r.dir)),
		Rows:   d.Rows, Files: back.files, Bytes: back.bytes, Readback: &back.readback, Pieces: d.Pieces}}
	if n := d.Noted; n != nil {
		out.summary.Altered, out.summary.Notes, out.summary.retyped = n.Altered, n.Notes, n.Retyped
		out.summary.Seconds, out.dates = n.Seconds, n.Dates
	}
	if d.Damaged {
		out.err = cli.ErrDamage
		r.printError(out.err)
	}
	if d.Told != nil {
		out.findings, out.aside, out.losses = d.Told.Findings, d.Told.Aside, d.Told.Lost()
		r.lost(out)
	}
	if d.Taken && d.Told != nil { // they cannot be told from those of the other tables
		out.summary.Files, out.summary.Bytes = d.Told.Files, d.Told.Bytes
	}
	r.noteTable(t, out)
	return r.add(out.summary)
}

// lost adds what was lost and found in a table to that of all.
func (r *allRun) lost(out tableOutcome) {
	r.losses = append(append(r.losses, out.losses...), reading.Unmet(out.findings)...)
	r.findings = append(r.findings, out.findings...)
}

// tables reports what is left out, and converts the tables that are not done yet. It returns an error only if the run
// has to end; failed is how many items of left failed.
func (r *allRun) tables(ctx context.Context, tables []oneTable, left []leftTable) (failed int, err error) {
	st := r.state
	st.Failed = nil
	defer st.Close()
	defer collectLess(tables)()
	if err := r.beginAssembly(ctx, tables); err != nil {
		for _, t := range tables {
			r.noteTable(t, tableOutcome{err: err})
		}
		return 0, err
	}
	ctx = r.session(ctx)
	if failed, err = r.reportLeft(left); err != nil {
		return 0, err
	}
	if err := r.each(ctx, tables); err != nil {
		return 0, err
	}
	if err := errors.Join(r.assemble(ctx), r.vanished(tables)); err != nil {
		return 0, err
	}
	if err := r.leftovers(tables); err != nil {
		return 0, err
	}
	// A run that did nothing a later one could use leaves no state file.
	finished := r.worst == nil
	if st.Kept && (len(st.Failed) > 0 || finished != st.Finished || st.Pending()) {
		st.Finished = finished
		return failed, st.Finish(ctx, r.a, r.dir)
	}
	return failed, nil
}

// Of many small tables little is kept and much is garbage: the collector took a sixth of the time of 3,000 tables.
const manyTables, smallTable = 256, 1 << 20 // bytes, on average

// collectLess lets the garbage collector run half as often if there are many small tables and the environment does not
// say how often. The function that it returns undoes that.
func collectLess(tables []oneTable) (restore func()) {
	bytes := int64(0)
	for _, t := range tables {
		if t.entry.Bytes < 0 {
			return func() {}
		}
		bytes += t.entry.Bytes
	}
	if n := int64(len(tables)); n < manyTables || bytes/n > smallTable || os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(200)
	return func() { debug.SetGCPercent(before) }
}

// each converts the tables, several at a time. It ends with the first error for which the run has to end.
func (r *allRun) each(ctx context.Context, tables []oneTable) error {
	next, failed := make(chan int), make(chan error, max(1, r.parallel))
	whole := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for range max(1, r.parallel) {
		go func() {
			var err error
			for i := range next {
				label := fmt.Sprintf("%d/%d %s  ", i+1, len(tables), tables[i].source)
				if err == nil {
					err = r.table(ctx, tables[i], label)
				}
				if err != nil {
					cancel()
				}
			}
			failed <- err
		}()
	}
	for i := range tables {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	first := whole.Err()
	for range max(1, r.parallel) {
		if err := <-failed; err != nil && (first == nil || errors.Is(first, context.Canceled)) {
			first = err
		}
	}
	return first
}

// unlocked calls do while other tables may be recorded.
func (r *allRun) unlocked(do func()) {
	r.mu.Unlock()
	defer r.mu.Lock()
	do()
}

// one returns the conversion of one table.
func (r *allRun) one(t oneTable) *conversion {
	one := *r.c
	one.out, one.source = remote.Shown(filepath.Join(r.dir, t.output)), t.source
	one.Manifest, one.Losses, one.Later, one.all = "", nil, r.c.Manifest != "" || r.converted != nil, true
	one.opening, one.stamp, one.force = t.opening, t.stamp, r.forced()
	if r.converted != nil {
		one.about = t.about
	}
	return &one
}

// convert converts one table, with the state unlocked.
func (r *allRun) convert(ctx context.Context, t oneTable, label string) (one *conversion, err error) {
	one = r.one(t)
	one.label = label
	r.assembled(one, t)
	one.announce = func(s format.Summary) error { return r.announce(ctx, t, one, s) }
	one.vacant = func(place string) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.vacant(ctx, t, place)
	}
	if d := r.state.Find(t.source); d != nil {
		one.same = t.stamped(d.Stamp)
		if remote.Is(r.dir) {
			earlier := *d // others are recorded meanwhile
			one.earlier = &earlier
		}
	}
	r.unlocked(func() { err = one.run(ctx, r.a, []string{t.source}, one.salvage) })
	if remote.IsUnfinished(err) {
		err = errUnfinished(t, one.out)
	}
	return one, err
}

// table converts one table, unless it is done, and reads it back. It returns an error only if the run has to end.
func (r *allRun) table(ctx context.Context, t oneTable, label string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.state.Find(t.source) != nil
	if done, err := r.doneBefore(ctx, t); done || err != nil {
		return err
	}
	if !known && isLake(r.c.to) {
		if err := r.unknownLake(ctx, t); err != nil {
			r.noteTable(t, tableOutcome{err: err})
			return r.failed(t.source, err)
		}
	}
	one, err := r.convert(ctx, t, label)
	out := one.outcome(err)
	if kept, end := r.kept(ctx, t, one, err); kept || end != nil {
		return end
	}
	r.lost(out)
	if errors.Is(err, cli.ErrDamage) {
		r.printError(err)
	} else if err != nil { // it was not written
		if r.left = append(r.left, leftTable{t.source, t.opening.From, err}); !t.unopened {
			r.left = r.left[:len(r.left)-1]
			r.noteTable(t, out)
		}
		return r.failed(t.source, err)
	}
	if ended, end := r.share(ctx, t, one, out, known); ended {
		return end
	}
	done, err := r.entry(t, one, errors.Is(err, cli.ErrDamage))
	if err != nil {
		return err
	}
	if err := r.fits(ctx, t, one, out, &done); err != nil {
		return r.failed(t.source, err)
	}
	var back outcome
	r.unlocked(func() { back = r.proven(ctx, one, done) })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	one.summary.Readback = &back.readback
	out.summary = one.summary
	r.noteTable(t, out)
	done.Told = reading.Tell(out.summary.Files, out.summary.Bytes, out.findings, out.aside, out.losses)
	if err := r.add(one.summary); err != nil {
		return err
	}
	if back.Verdict == verdictDiffers || back.Verdict == verdictMissing {
		return nil
	}
	r.rows += one.rows
	r.done++
	if err := r.record(ctx, &done, back); err != nil || len(done.Pieces) == 0 {
		return err
	}
	return pieces.Forget(one.out)
}

// entry returns what is recorded of a table.
func (r *allRun) entry(t oneTable, one *conversion, damaged bool) (d rerun.Table, err error) {
	d = rerun.Table{Source: t.source, Output: one.output(r.dir), Stamp: t.stamp, Rows: one.rows,
		Checksum: one.checksum(), Partitions: one.partitions, Pieces: one.files, Damaged: damaged, Name: t.table,
		ID: t.id, Parts: t.parts, Reached: one.reached}
	if r.moments != nil {
		d.Moments = r.moments(t.table, t.id)
	}
	if s := one.summary; one.surveyed {
		d.Noted = &rerun.Noted{Retyped: s.retyped, Dates: one.dates(), Altered: s.Altered, Notes: s.Notes,
			Seconds: s.Seconds, Files: s.Files, Bytes: s.Bytes}
	}
	d.Arrow, err = arrowschema.Encode(one.sc)
	return d, err
}

// reportLeft reports the files of directories that are not converted, and returns how many of them may be tables.
func (r *allRun) reportLeft(left []leftTable) (failed int, err error) {
	for _, l := range left {
		if errors.As(l.err, new(*store.Irregular)) || l.format == "" && errors.Is(l.err, fault.Unsupported) {
			r.a.Note("left out: %s", cli.Line(l.err))
			continue
		}
		if err := r.failed(l.source, l.err); err != nil {
			return failed, err
		}
		failed++
	}
	return failed, nil
}

// proven returns the outcome for an output that was just written: it was read back before it appeared, unless that was
// not possible.
func (r *allRun) proven(ctx context.Context, c *conversion, d rerun.Table) (out outcome) {
	if !c.summary.Checked && !c.unchecked {
		return r.readBack(ctx, d)
	}
	out.files, out.bytes, out.retyped = c.summary.Files, c.summary.Bytes, len(c.summary.retyped) > 0
	out.Checksum, out.Rows, out.Verdict = d.Checksum, reading.Known(d.Rows), verdictEqual
	switch {
	case c.unchecked:
		out.Rows, out.Verdict = nil, verdictUnread
	case len(c.summary.Unchecked) > 0:
		out.Verdict = verdictRows
	default:
		out.ReadChecksum = d.Checksum
	}
	return out
}

// printError prints an error that does not end the run.
func (r *allRun) printError(err error) {
	r.a.ReportError(r.cmd, err)
	r.worst = cli.Worse(r.worst, err)
}

// failed records, in the report and in the state, a table without an output and the reason.
func (r *allRun) failed(source string, err error) error {
	d := rerun.Failed{Source: source, Failed: cli.InFlags(cli.Line(err))}
	r.state.Failed = append(r.state.Failed, d)
	r.report.Add(d, source, "", "", "", "", "failed: "+d.Failed)
	if !strings.Contains(err.Error(), source) {
		err = &tableError{source, err}
	}
	r.printError(err)
	if r.c.form == "json" {
		return output.WriteSummary(r.a, d)
	}
	return nil
}

// tableError adds the table to an error that does not name it.
type tableError struct {
	source string
	err    error
}

func (e *tableError) Error() string { return e.source + ": " + cli.Line(e.err) }
func (e *tableError) Unwrap() error { return e.err }

// add adds a table to the reconciliation.
func (r *allRun) add(d summaryDoc) error {
	back := d.Readback
	if back.Verdict == verdictDiffers || back.Verdict == verdictMissing {
		r.printError(fmt.Errorf("%s: what was read back of %s %s", d.Source, d.Output, back.why()))
		r.worst = cli.Worse(r.worst, cli.ErrDamage)
	}
	sum := back.Checksum
	if back.ReadChecksum != "" && back.ReadChecksum != sum {
		sum += " / " + back.ReadChecksum
	}
	r.report.Add(d, d.Source, d.Output, fmt.Sprint(d.Rows), display.Maybe(ls.Number(back.Rows)), sum, back.Verdict)
	if r.c.form == "json" {
		return output.WriteSummary(r.a, d)
	}
	return nil
}

// finish ends the run with the reconciliation and a final line.
func (r *allRun) finish(ctx context.Context, tables int) error {
	if r.c.form == "json" {
		return nil
	}
	if len(r.report.Rows) > 0 {
		r.report.Cols = []output.ReportColumn{{Name: "table"}, {Name: "output"}, {Name: "rows", Right: true},
			{Name: "read back", Right: true},
			{Name: "checksum"}, {Name: "verdict"}}
		if err := r.report.Write(ctx, r.a, &output.OutputFlags{}); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("%s/: %s of %d, %s, %s", r.dir, display.Count(r.done, "table"), tables,
		display.Count(r.rows, "row"),
		display.Seconds(time.Since(r.began)))
	if r.before > 0 {
		text += fmt.Sprintf("; %d were done before", r.before)
	}
	r.a.Note("%s", text)
	return nil
}

func sourcesOf(tables []oneTable) (out []string) {
	for _, t := range tables {
		out = append(out, t.source)
	}
	return out
}
