package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/look"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/pieces"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/rerun"
	"stoa/cmd/stoa/internal/source"
	"stoa/cmd/stoa/internal/survey"
	"stoa/fault"
	"stoa/format"
	"stoa/internal/arrowschema"
	"stoa/internal/content"
	"stoa/region"
	"stoa/store/remote"
)

// summaryDoc reports what was written, in -f json.
type summaryDoc struct {
	Source   string         `json:"source,omitempty"` // with --all
	Output   string         `json:"output"`
	Rows     int64          `json:"rows"`
	Bytes    int64          `json:"bytes"`
	Files    int            `json:"files"`
	Seconds  float64        `json:"seconds"`
	Losses   int            `json:"losses"`
	Added    int64          `json:"added,omitempty"`     // rows, with --catch-up
	Deleted  int64          `json:"deleted,omitempty"`   // the same
	Moments  int            `json:"snapshots,omitempty"` // with --snapshots
	Accounts *stoa.Accounts `json:"accounts,omitempty"`
	Checked  bool           `json:"checked"` // it was read back, and all columns but those below equal the input
	Copied   bool           `json:"pages_copied,omitempty"`
	PagesCut int64          `json:"pages_cut,omitempty"`

	Unchecked []string         `json:"unchecked_columns,omitempty"`
	Altered   []format.Altered `json:"altered,omitempty"` // because options asked for it
	Notes     []string         `json:"notes,omitempty"`

	Readback *readback     `json:"read_back,omitempty"` // with --all
	Pieces   []pieces.File `json:"pieces,omitempty"`    // with --file-size

	// Catalogues are the changes of each, if a table with --catch-up has two.
	Catalogues []catalogueDoc `json:"catalogues,omitempty"`

	retyped []string // columns that are read with another type
}

// catalogueDoc is what --catch-up has changed in a catalogue.
type catalogueDoc struct {
	Catalogue string `json:"catalogue"`
	Added     int64  `json:"added"`
	Deleted   int64  `json:"deleted"`
}

// options returns the writer's options. Larger limits for reading also apply to writing.
func (c *conversion) options(a *cli.App) (stoa.CreateOptions, error) {
	c.sinceBackup(a)
	o, err := c.writeFlags.options(a)
	if err != nil {
		return o, err
	}
	o.Limits, err = c.AllLimits()
	return o, err
}

// conversion is the part that convert and recover have in common.
type conversion struct {
	source.SourceFlags
	source.SelectFlags
	reading.DamageFlags
	writeFlags

	salvage  bool                      // the sources are opened as recover does
	accounts *stoa.Accounts            // of recover
	about    func(region.Finding) bool // for rescue: whether a finding of a place is about the table; nil: all are
	aside    []region.Finding          // findings that are not about the table
	rows     int64                     // rows written
	noticed  []region.Finding
	altered  []region.Finding // what the output does not hold as it was in the source
	unread   []region.Finding // errors in data that no reader needs, such as bounds, and in pages that are not copied

	// With --all: the table, the label of its progress, and what is recorded for the reconciliation.
	source, label string
	all           bool
	opening       stoa.OpenOptions // of the table
	failed        func() error     // what a store has not answered since the table was opened
	// number of directories in the output, below its place, that tables then share (format.Format.Levels)
	levels     int
	ext        string // of the format: what follows it in c.out is part of a name, whatever it looks like
	sum        *content.Summer
	sc         *arrow.Schema // of the rows
	partitions []string      // columns that became directories
	stamp      string        // of the table's files
	goOn       bool          // continue after an earlier run
	target     int64         // of --file-size; 0: not given
	total      *content.Sum  // of a table that was written as several files
	files      []pieces.File // the files it was written as
	reached    map[string]format.Reach
	earlier    *rerun.Table // at an address, where it is not to be replaced by less
	summary    summaryDoc
	// announce is called before the table appears, and vacant before anything is written, with its place; with --all
	announce func(format.Summary) error
	vacant   func(place string) error
	force    bool           // what is in the way may be replaced
	same     bool           // the source is as an earlier run has read it
	surveyed bool           // dates and times are counted while they are written
	seen     *survey.Survey // what was counted
}

// run converts. With salvage it opens the sources as recover does.
func (c *conversion) run(ctx context.Context, a *cli.App, paths []string, salvage bool) error {
	c.failed = a.Answered()
	c.salvage = salvage
	if last := paths[len(paths)-1]; c.out == "" && len(paths) > 1 {
		if _, err := os.Lstat(last); errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(last, "*?[#") {
			return &cli.UseError{Message: "-o says where to write; it is missing",
				Hint: "if " + last + " is the output: -o " + last}
		}
	}
	wo, err := c.options(a)
	if err != nil {
		return err
	}
	spec, err := c.SelectFlags.Spec()
	if err != nil {
		return err
	}
	if err := c.DamageFlags.Apply(&spec); err != nil {
		return err
	}
	oo := c.opening
	if !c.all { // runAll has done this
		if oo, err = c.SourceFlags.Options(ctx, a, paths); err != nil {
			return err
		}
		if err := a.CheckOutputs(nil, c.out, c.Manifest); err != nil { // even if opening would fail
			return err
		}
	}
	oo.Recover = salvage
	if err := c.findCatalogue(ctx); err != nil {
		return err
	}
	t, err := source.OpenAll(a, ctx, paths, oo)
	if salvage && errors.Is(err, fault.Corrupt) {
		return c.noRows(ctx, a, paths, err)
	}
	if err != nil {
		return err
	}
	defer t.Close()
	if err := a.CheckOutputs(t.Sources(), c.out, c.Manifest); err != nil {
		return err
	}
	if spec.Columns, err = source.ExpandColumns(t.Schema().Fields(), spec.Columns); err != nil {
		return err
	}
	err = c.write(ctx, a, t, spec, wo)
	if err == nil && salvage && mayLack(t.Findings()) && len(c.Losses) == 0 {
		a.Note("stoa: what is left of the file does not show whether more rows are missing")
	}
	c.noticed = slices.Concat(t.Findings(), c.altered)
	if err == nil {
		err = c.verifySources(a, ctx, t, paths, oo, spec)
	}
	return c.DamageFlags.Report(ctx, a, paths, c.noticed, err)
}

// noRows reports that recovery found no rows, and why. Everything in a source that could not be opened is lost.
func (c *conversion) noRows(ctx context.Context, a *cli.App, paths []string, err error) error {
	var unrecovered *stoa.Unrecovered
	if errors.As(err, &unrecovered) {
		c.noticed = unrecovered.Findings
	}
	if c.Manifest == "" {
		reading.ReportFindings(a, c.noticed)
		return err
	}
	if err := a.CheckOutputs(nil, c.out, c.Manifest); err != nil {
		return err
	}
	lost := region.Loss{Part: paths[0], Rows: [2]int64{-1, -1}, Err: err}
	var at *fault.Error
	if errors.As(err, &at) && at.At.Object != "" {
		lost.Part = at.At.Object
	}
	c.Losses = append(c.Losses, lost)
	return c.DamageFlags.Report(ctx, a, paths, c.noticed, err)
}

// mayLack reports whether any of the findings is an error about rows that are or may be lost.
func mayLack(fs []region.Finding) bool {
	return slices.ContainsFunc(fs, func(f region.Finding) bool { return f.Severity == region.Error && f.Lost != 0 })
}

func (c *conversion) write(ctx context.Context, a *cli.App, t *stoa.Table, spec stoa.ScanSpec,
	wo stoa.CreateOptions) error {
	began := time.Now()
	c.reportConflicts(a, t, wo)
	if c.all && c.target > 0 && len(t.Sources()[0].Layout.Partitions) == 0 {
		return c.inPieces(ctx, a, t, spec, wo)
	}
	if err := c.failed(); err != nil {
		return err
	}
	if done, err := c.copyPages(ctx, a, t, spec, wo, began); done || err != nil {
		return err
	}
	sc, err := t.ScanSchema(spec)
	if err != nil {
		return err
	}
	c.Wide = sc.NumFields() > 1
	if wo.Opts, err = c.fromSource(t, sc, wo.Opts, c.all); err != nil {
		return err
	}
	wo.Rows = c.expected(ctx, t, spec)
	if c.all {
		wo.Publish = c.announce
		c.watch(sc)
	}
	w, rows, before, err := c.begin(ctx, a, t, sc, spec, wo)
	if err != nil {
		return err
	}
	p := a.Progress(ctx, t, wo.Rows, c.label)
	p.Rows.Add(before)
	err = reading.CopyRows(ctx, c.summed(p.Count(rows)), w)
	if err == nil && c.salvage {
		err = c.account(ctx, a, t, spec, p.Rows.Load())
	}
	if err == nil && c.out != cli.Dash {
		err = c.failed()
	}
	if c.rows = p.Rows.Load(); err == nil && c.all {
		err = c.notPoorer(ctx, t)
	}
	var s format.Summary
	if err == nil {
		s, err = w.Close(ctx)
		err = fault.OfRows(err)
	}
	p.Stop()
	if err != nil {
		return errors.Join(err, w.Abort(ctx))
	}
	return c.written(ctx, a, s, p.Rows.Load(), began)
}

// begin begins the output, and returns the rows that are to be written to it: all, or those after the rows, before of
// them, that an earlier run has written.
func (c *conversion) begin(ctx context.Context, a *cli.App, t *stoa.Table, sc *arrow.Schema, spec stoa.ScanSpec,
	wo stoa.CreateOptions) (w output.RowWriter, rows cli.Batches, before int64, err error) {
	long, err := c.long(ctx, a, t, spec, wo)
	switch {
	case err != nil:
	case long != nil:
		c.sc, c.partitions = sc, nil
		return long, long.Rows(ctx), long.Before(), nil
	case c.all:
		w, err = c.createOne(ctx, a, t, sc, wo)
	default:
		w, err = c.createOnly(ctx, a, sc, wo)
	}
	return w, t.Scan(ctx, spec), 0, err
}

// written reports what was written, and registers it.
func (c *conversion) written(ctx context.Context, a *cli.App, s format.Summary, rows int64, began time.Time) error {
	s.Notes = append(s.Notes, c.flat...)
	c.rows, c.altered = rows, slices.Concat(c.altered, c.unread, s.Altered)
	c.summary = summaryDoc{Source: c.source, Output: c.out, Rows: rows, Bytes: s.Bytes,
		Files: max(1, len(s.Files)), Seconds: time.Since(began).Seconds(),
		Losses: len(c.Losses), Accounts: c.accounts, Checked: s.Checked, Unchecked: s.Unchecked,
		Altered: s.ByOption, Notes: s.Notes, retyped: s.Retyped}
	reportUnchecked(a, c.out, s)
	output.ReportAltered(a, c.out, s.ByOption)
	if n := len(s.Retyped); n > 0 {
		a.Note("%s: %s will be read as another type, as the output does not keep which it was: %s", c.out,
			display.Count(int64(n), "column"), output.FirstNames(s.Retyped))
	}
	if c.form == "json" && c.all {
		return nil // reported after reading the output back
	}
	if c.form == "json" {
		return errors.Join(c.enrol(ctx, a), output.WriteSummary(a, c.summary))
	}
	a.Note("%s", c.done(s, rows, time.Since(began)))
	if c.all {
		return nil
	}
	return c.enrol(ctx, a)
}

// copyPages copies pages instead of decoding them, where that is possible.
func (c *conversion) copyPages(ctx context.Context, a *cli.App, t *stoa.Table, spec stoa.ScanSpec,
	wo stoa.CreateOptions, began time.Time) (done bool, err error) {
	if c.all || c.salvage || len(c.by) > 0 {
		return false, nil
	}
	// rewriting rows replaces their bounds, which no reader needs, and so removes faults in the bounds: they are
	// reported
	wo.Found = func(f region.Finding) {
		if f.Severity == region.Error {
			c.unread = append(c.unread, f)
		}
	}
	s, why, err := output.CopyTable(a, ctx, c.out, t, spec, wo)
	if why != "" && a.Verbose {
		a.Note("%s: pages are not copied: %s", c.out, why)
	}
	if why != "" || err != nil {
		return false, err
	}
	c.rows = s.Rows
	c.summary = summaryDoc{Output: c.out, Rows: s.Rows, Bytes: s.Bytes, Files: max(1, len(s.Files)),
		Seconds: time.Since(began).Seconds(), Checked: s.Checked, Copied: true, PagesCut: s.PagesCut}
	if c.form == "json" {
		return true, output.WriteSummary(a, c.summary)
	}
	cut := ""
	if s.PagesCut > 0 {
		cut = fmt.Sprintf(", %s cut", display.Count(s.PagesCut, "page"))
	}
	a.Note("%s, pages copied%s", c.done(s, s.Rows, time.Since(began)), cut)
	return true, nil
}

// reportConflicts reports key/value metadata for which sources have different values, if the output has such metadata
// at all and no option sets it. The first value is written.
func (c *conversion) reportConflicts(a *cli.App, t *stoa.Table, wo stoa.CreateOptions) {
	const set, drop = "metadata", "drop-metadata"
	to := a.Format(c.to)
	if c.to == "" {
		to = stoa.ByExtension(a.Formats, c.out)
	}
	if to == nil || !slices.ContainsFunc(to.WriteKeys, func(k format.OptionKey) bool { return k.Name == set }) {
		return
	}
	given := strings.ReplaceAll(","+wo.Opts[set]+","+wo.Opts[drop]+",", `"`, "")
	type taken struct{ value, source string }
	first := map[string]taken{}
	for _, src := range t.Sources() {
		for _, p := range src.Meta {
			key, ok := strings.CutPrefix(p.Key, "metadata: ")
			if !ok || strings.Contains(given, ","+key+"=") || strings.Contains(given, ","+key+",") {
				continue
			}
			if was, ok := first[key]; !ok {
				first[key] = taken{p.Value, src.Name}
			} else if was.value != p.Value {
				a.Note("%s: metadata %s are those of %s; %s has others", c.out, key, was.source, src.Name)
			}
		}
	}
}

// reportUnchecked prints the writer's notes, and names the columns of an output that could not be compared with the
// input.
func reportUnchecked(a *cli.App, out string, s format.Summary) {
	for _, note := range s.Notes {
		a.Note("%s: %s", out, note)
	}
	if n := len(s.Unchecked); n > 0 {
		a.Note("%s: %s could not be compared with what went in: %s", out, display.Count(int64(n), "column"),
			output.FirstNames(s.Unchecked))
	}
}

// piecesTarget returns the size of --file-size, or 0. A format that writes directories divides tables itself.
func (c *conversion) piecesTarget(to *format.Format) (int64, error) {
	if c.fileSize == "" {
		return 0, nil
	}
	if to == nil || len(to.Extensions) == 0 || to.Owns != nil || to.Levels > 0 || to.Create == nil {
		return 0, &cli.UseError{Message: "--file-size is for formats whose tables are files; " + c.to + " is none",
			Hint: "for example --to parquet"}
	}
	if remote.Is(c.out) {
		return 0, cli.WrongUse("--file-size is for local directories, not for addresses")
	}
	n, err := cli.ParseSize("--file-size", c.fileSize)
	if err == nil && n < 1 {
		err = cli.WrongUse("--file-size %s: a file has at least a byte", c.fileSize)
	}
	return n, err
}

// inPieces writes the table as files of about the size of --file-size, measured as stored in the source.
func (c *conversion) inPieces(ctx context.Context, a *cli.App, t *stoa.Table, spec stoa.ScanSpec,
	wo stoa.CreateOptions) (err error) {
	began := time.Now()
	if c.sc, err = t.ScanSchema(spec); err != nil {
		return err
	}
	ext := c.ext
	c.sum, c.out = nil, strings.TrimSuffix(c.out, ext)
	if err := c.vacant(c.out); err != nil {
		return err
	}
	o := pieces.Options{Out: c.out, Ext: ext, Create: wo, Target: c.target, Parallel: c.SelectFlags.Parallel,
		Resume: c.goOn, Of: append(c.settings(), c.source, c.stamp), Source: c.source, Label: c.label}
	written := rerun.Table{}
	if written.Arrow, err = arrowschema.Encode(c.sc); err != nil {
		return err
	}
	o.Same = func(ctx context.Context, name string, f pieces.File) (bool, error) {
		b, err := written.ReadPiece(ctx, a, name, f, wo)
		if errors.Is(err, fault.Unsupported) { // the format can only be written
			return true, nil
		}
		return err == nil && !b.Other && b.Sum.Rows == f.Rows && (!b.Whole || b.Sum.String() == f.Checksum), ctx.Err()
	}
	o.Before = func(r pieces.Result) error {
		if c.salvage {
			if err := c.account(ctx, a, t, spec, r.Sum.Rows); err != nil {
				return err
			}
		}
		c.files, c.rows, c.total = r.Files, r.Sum.Rows, &r.Sum
		if err := c.notPoorer(ctx, t); err != nil {
			return err
		}
		return c.announce(r.Summary)
	}
	r, err := pieces.Write(ctx, a, t, spec, o)
	if err != nil {
		return err
	}
	s := r.Summary
	c.altered = slices.Concat(c.altered, c.unread, s.Altered)
	c.summary = summaryDoc{Source: c.source, Output: c.out, Rows: c.rows, Bytes: s.Bytes, Files: len(c.files),
		Seconds: time.Since(began).Seconds(), Losses: len(c.Losses), Accounts: c.accounts, Checked: s.Checked,
		Unchecked: s.Unchecked, Altered: s.ByOption, Notes: s.Notes, Pieces: c.files}
	reportUnchecked(a, c.out, s)
	output.ReportAltered(a, c.out, s.ByOption)
	if c.form != "json" {
		a.Note("%s", c.done(s, c.rows, time.Since(began)))
	}
	return nil
}

// watch begins the checksum of the rows, and the count of their dates and times.
func (c *conversion) watch(sc *arrow.Schema) {
	c.sum = content.Same(sc).Summer(0)
	if c.surveyed {
		c.seen = survey.New(sc, nil)
	}
}

// dates returns the dates and times that were counted, if any are.
func (c *conversion) dates() []survey.Column {
	if c.seen == nil {
		return nil
	}
	return c.seen.Counts()
}

// summed adds the rows that pass through seq to the checksum.
func (c *conversion) summed(seq cli.Batches) cli.Batches {
	if c.sum == nil {
		return seq
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		for b, err := range seq {
			if err == nil {
				c.sum.Add(b)
				if c.seen != nil {
					c.seen.Add(b)
				}
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// expected returns how many rows will come; -1 if that is not known in advance.
func (c *conversion) expected(ctx context.Context, t *stoa.Table, spec stoa.ScanSpec) int64 {
	if spec.Filter != nil {
		return -1
	}
	n, err := t.Rows(ctx)
	if err != nil || n < 0 {
		return -1
	}
	if r := look.LastOf(spec.Rows, n, n); spec.Limit > 0 {
		return min(r.Len(), spec.Limit)
	} else {
		return r.Len()
	}
}

// done returns the line that reports what was written.
func (c *conversion) done(s format.Summary, rows int64, d time.Duration) string {
	out := c.out
	if out == cli.Dash {
		out = "standard output"
	}
	text := fmt.Sprintf("%s: %s", out, display.Count(rows, "row"))
	if s.Bytes > 0 {
		text += ", " + display.BytesText(s.Bytes)
	}
	if n := len(s.Files); n > 1 {
		text += ", " + display.Count(int64(n), "file")
	}
	return text + ", " + display.Seconds(d)
}
