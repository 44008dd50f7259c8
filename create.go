package stoa

import (
	"context"
	"errors"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/address"
	"stoa/internal/altered"
	"stoa/internal/fieldnames"
	"stoa/internal/fit"
	"stoa/internal/settle"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// CreateOptions are the options of Create.
type CreateOptions struct {
	Formats []format.Format   // nil = Formats
	To      string            // format name; "" = the extension of the URI decides
	Opts    map[string]string // the format's own options; `stoa formats` lists them
	// Typed are options of the format as a struct of its package, such as parquet.WriteOptions; Opts take precedence.
	// nil means none.
	Typed format.Options
	Rows  int64            // a hint; 0 or -1 = unknown
	Alloc memory.Allocator // nil = Go's
	Sink  store.Sink       // nil = the local file system, or the store of an address (store/remote)
	// NoCheck skips the proof of the output. Without it, the output is read back before it becomes visible, and
	// compared with the input by the number of rows and by checksums that do not depend on row order. On a difference
	// Close fails with an UnprovenError and leaves nothing behind. If Sink is not a store.Peeker, or the format can
	// only be written, the output cannot be checked: see format.Summary.Checked.
	NoCheck  bool
	Parallel int // workers that read the output back; 0 and 1 mean one
	// Limits are those of the eventual reader: a schema with more fields, or nested deeper, is not written (class
	// Limit), and the output is read back within them. The zero value means the defaults.
	Limits format.Limits
	// Found is called with the faults that Copy finds in pages, which it then does not copy: it checks more than a
	// reader does, such as statistics. May be nil.
	Found func(region.Finding)
	// Publish is called when the output is complete and checked, before it becomes visible, with what Close will
	// return, but for what only the end shows. After an error the output does not appear. May be nil.
	Publish func(format.Summary) error
}

// Writer writes a table. Nothing is visible before Close has returned nil, and nothing remains of a writer that was
// aborted or whose process died.
type Writer struct {
	w       format.Writer
	schema  *arrow.Schema
	proof   *proof               // nil: the output is not checked
	fit     *fit.Fitter          // nil: every value fits
	dicts   *settle.Dictionaries // nil: there are no dictionaries
	named   *arrow.Schema        // written in place of schema, which has names that are not UTF-8; else nil
	uri     string
	altered *altered.Counts
	rows    int64 // written
	paused  altered.Mark
	failed  error
	done    bool
}

// Create begins a table at uri. A uri that ends in / is a directory; CFile also makes a directory when the schema has
// several columns. When Close succeeds, the table replaces a file, or a table that stoa wrote, at uri; until then that
// stays as it is. (The command asks before it replaces anything; Create does not.)
func Create(ctx context.Context, uri string, sc *arrow.Schema, o CreateOptions) (*Writer, error) {
	f, err := o.target(uri)
	if err != nil {
		return nil, err
	}
	if f.Create == nil {
		return nil, fault.Unsupportedf(fault.Span{Object: uri}, "", "stoa does not write %s", f.Name)
	}
	sink := o.Sink
	if sink == nil {
		if sink, err = address.Sink(ctx, uri, o.owned); err != nil {
			return nil, err
		}
	}
	wo := format.WriteOptions{Rows: o.Rows, Opts: o.gzip(f, uri), Mem: o.Alloc, Dir: strings.HasSuffix(uri, "/"),
		Name: path.Base(filepath.ToSlash(uri)), Place: uri}
	if wo.Rows == 0 {
		wo.Rows = -1
	}
	given, named := sc, (*arrow.Schema)(nil)
	dicts := settle.New(sc, f.Dictionaries, o.Alloc)
	sc = dicts.Schema(sc)
	if len(fieldnames.Invalid(sc.Fields())) > 0 {
		meta := sc.Metadata()
		named = arrow.NewSchema(fieldnames.Valid(sc.Fields()), &meta)
		sc = named
	}
	if err := o.Limits.Fit(sc, fault.Span{Object: uri}, "schema"); err != nil { // it could not be read back
		return nil, errors.Join(err, sink.Abort(ctx))
	}
	var changed *altered.Counts
	if f.Alters != nil {
		changed = altered.New(sc, f.Alters(sc, wo))
	}
	out := &Writer{schema: given, dicts: dicts, named: named, uri: uri, altered: changed}
	var p *proof
	if o.Publish != nil {
		sink = store.Announced(sink, func() error { return o.Publish(out.complete(format.Written(out.w))) })
	}
	if _, ok := sink.(store.Peeker); ok && !o.NoCheck {
		if p = newProof(ctx, f, uri, sc, o, wo, changed); p != nil {
			sink = store.Before(sink, p.check)
		}
	}
	sink = store.Strict(sink)
	w, err := f.Create(ctx, sink, sc, wo)
	if err != nil {
		return nil, errors.Join(err, sink.Abort(ctx))
	}
	out.w, out.proof = w, p
	if f.UTF8 {
		out.fit = &fit.Fitter{Format: f.Name, Place: uri}
	}
	return out, nil
}

// gzip returns the options, with compression added for a text whose name ends in .gz.
func (o CreateOptions) gzip(f *format.Format, uri string) map[string]string {
	const key = "gzip"
	has := slices.ContainsFunc(f.WriteKeys, func(k format.OptionKey) bool { return k.Name == key })
	opts := o.opts()
	if _, given := opts[key]; !has || given || !strings.HasSuffix(strings.ToLower(uri), ".gz") {
		return opts
	}
	zip := map[string]string{key: "true"}
	maps.Copy(zip, opts)
	return zip
}

func (o CreateOptions) opts() map[string]string {
	return format.MergeOptions(o.Opts, o.Typed)
}

// owned reports whether a directory is a table that stoa wrote, in any format.
func (o CreateOptions) owned(dir string) bool {
	return slices.ContainsFunc(o.formats(), func(f format.Format) bool { return f.Owns != nil && f.Owns(dir) })
}

// formats returns the formats to choose from.
func (o CreateOptions) formats() []format.Format {
	if o.Formats == nil {
		return Formats
	}
	return o.Formats
}

// target returns the format to write.
func (o CreateOptions) target(uri string) (*format.Format, error) {
	formats := o.formats()
	if o.To != "" {
		for i := range formats {
			if formats[i].Name == o.To {
				return &formats[i], checkOptionFormats(o.Typed, &formats[i], uri)
			}
		}
		return nil, fault.Invalidf("there is no format %q to write", o.To)
	}
	if f := ByExtension(formats, uri); f != nil {
		return f, checkOptionFormats(o.Typed, f, uri)
	}
	ext := path.Ext(strings.TrimSuffix(filepath.ToSlash(uri), "/"))
	return nil, fault.Invalidf("%s: the extension %q does not say which format to write, and none is named", uri, ext)
}

// Write appends a batch, whose schema must be the one given to Create. The caller keeps ownership of the batch.
func (w *Writer) Write(ctx context.Context, b arrow.RecordBatch) error {
	if w.failed != nil {
		return w.failed
	}
	if w.done {
		return fault.Invalidf("the writer is closed")
	}
	if b.NumCols() != int64(w.schema.NumFields()) {
		return fault.Invalidf("the batch has %d columns, the table %d", b.NumCols(), w.schema.NumFields())
	}
	for i, f := range w.schema.Fields() {
		if !arrow.TypeEqual(f.Type, b.Column(i).DataType()) {
			return fault.Invalidf("column %s of the batch is %s, of the table %s", f.Name, b.Column(i).DataType(),
				f.Type)
		}
	}
	b, err := w.dicts.Batch(b)
	if err != nil {
		return err
	}
	defer b.Release()
	for i, f := range w.schema.Fields() {
		if n := b.Column(i).NullN(); n > 0 && !f.Nullable {
			return fault.Invalidf("column %s has %d nulls in the batch; in the table it is not nullable", f.Name, n)
		}
	}
	if w.named != nil {
		b = fieldnames.Rename(b, w.named)
		defer b.Release()
	}
	if w.fit != nil {
		b = w.fit.Batch(b)
		defer b.Release()
	}
	w.altered.Add(b)
	w.rows += b.NumRows()
	if w.proof == nil {
		w.failed = w.w.Write(ctx, b)
	} else {
		w.failed = w.proof.addDuring(b, func() error { return w.w.Write(ctx, b) })
	}
	return w.failed
}

// Pause ends the files that were begun, so that another process can go on after them, and returns what its Resume has
// to be given: JSON, about all that was written since the last Pause; nil if values were changed to fit since then,
// which another process could not report. Formats with one file a table cannot pause (class Unsupported). The files are
// no table yet, and remain only in a CreateOptions.Sink that keeps them.
func (w *Writer) Pause(ctx context.Context) (state []byte, err error) {
	p, ok := w.w.(format.Pauser)
	if !ok || w.done || w.failed != nil {
		return nil, fault.Unsupportedf(fault.Span{Object: w.uri}, "", "this writer cannot pause")
	}
	var files []byte
	if files, w.failed = p.Pause(ctx); w.failed != nil {
		return nil, w.failed
	}
	was := w.paused
	w.paused = altered.Mark{Rows: w.rows, Changed: w.fit.Replaced() + w.altered.Total(), Sum: w.proof.summer().Sum()}
	return w.paused.Since(was, files, w.proof != nil)
}

// Resume takes over what another writer of the same table wrote until a Pause, before any rows are written. It is
// called once for every Pause.
func (w *Writer) Resume(state []byte) error {
	p, ok := w.w.(format.Pauser)
	if !ok || w.rows > w.paused.Rows {
		return fault.Unsupportedf(fault.Span{Object: w.uri}, "", "this writer cannot resume")
	}
	s, err := altered.Resume(state, w.proof.summer())
	if err != nil {
		return err
	}
	w.rows += s.Rows
	w.fit.Skip(s.Rows)
	w.paused = altered.Mark{Rows: w.rows, Sum: w.proof.summer().Sum()}
	return p.Resume(s.Files)
}

// Close finishes the table and makes it visible. After an error nothing remains of it.
func (w *Writer) Close(ctx context.Context) (format.Summary, error) {
	if w.done {
		return format.Summary{}, fault.Invalidf("the writer is closed")
	}
	if w.failed != nil {
		return format.Summary{}, errors.Join(w.failed, w.Abort(ctx))
	}
	s, err := w.w.Close(ctx)
	if err != nil {
		return s, errors.Join(err, w.Abort(ctx))
	}
	w.done = true
	return w.complete(s), nil
}

// complete adds to the summary of the format's writer what is known here.
func (w *Writer) complete(s format.Summary) format.Summary {
	if w.fit != nil {
		s.Altered = w.fit.Findings()
	}
	if w.named != nil {
		s.Altered = append(s.Altered, fieldnames.Replaced(w.schema, w.uri)...)
	}
	s.ByOption = w.altered.Columns()
	if w.proof != nil {
		s.Checked, s.Unchecked = w.proof.done, w.proof.unchecked
		s.Retyped = append(s.Retyped, w.proof.retyped...)
	}
	for _, name := range w.dicts.Columns() {
		if !slices.Contains(s.Retyped, name) {
			s.Retyped = append(s.Retyped, name)
		}
	}
	return s
}

// Abort removes what was written. After Close it does nothing, so it can be deferred.
func (w *Writer) Abort(ctx context.Context) error {
	if w.done {
		return nil
	}
	w.done = true
	return w.w.Abort(context.WithoutCancel(ctx))
}

// Convert writes the rows of src that spec selects to uri. If src was opened with OpenOptions.Recover, the rows
// returned and those reported as lost are compared with the declared number (see Table.Account) before the output
// becomes visible; a discrepancy is reported in Summary.Altered.
func Convert(ctx context.Context, src *Table, spec ScanSpec, uri string, o CreateOptions) (format.Summary, error) {
	sc, err := src.ScanSchema(spec)
	if err != nil {
		return format.Summary{}, err
	}
	w, err := Create(ctx, uri, sc, o)
	if err != nil {
		return format.Summary{}, err
	}
	defer w.Abort(ctx)
	var losses []region.Loss
	if report := spec.Lost; src.opened.Recover {
		spec.Lost = func(l region.Loss) {
			losses = region.Keep(losses, l)
			if report != nil {
				report(l)
			}
		}
	}
	var rows int64
	for b, err := range src.Scan(ctx, spec) {
		if err != nil {
			return format.Summary{}, err
		}
		if err := w.Write(ctx, b); err != nil {
			return format.Summary{}, fault.OfRows(err)
		}
		rows += b.NumRows()
	}
	var wrong *region.Finding
	if src.opened.Recover && spec.whole() {
		a, err := src.Account(ctx, spec.Damaged, rows, losses)
		if err != nil {
			return format.Summary{}, err
		}
		wrong = a.Finding()
	}
	s, err := w.Close(ctx)
	if err == nil && wrong != nil {
		s.Altered = append(s.Altered, *wrong)
	}
	return s, fault.OfRows(err)
}

// Copy does what Convert does, but copies pages without decoding and encoding them, except pages that span two row
// groups when row groups are made smaller. This is possible if src has the format to write, spec selects all rows of
// whole columns, and no option changes pages. The pages, and everything the file says about them, are verified first,
// and the output is compared with them byte by byte. If pages cannot be copied, why says why, and nothing has been
// written.
func Copy(ctx context.Context, src *Table, spec ScanSpec, uri string, o CreateOptions) (s format.Summary, why string,
	err error) {
	c, why, err := src.copier(ctx, spec, uri, o)
	if why != "" || err != nil {
		return s, why, err
	}
	sink := o.Sink
	if sink == nil {
		if sink, err = address.Sink(ctx, uri, o.owned); err != nil {
			return s, "", err
		}
	}
	if _, ok := sink.(store.Peeker); ok && !o.NoCheck {
		s.Checked = true
		sink = store.Before(sink, func(ctx context.Context, tree store.Tree, name string) error {
			err := c.Check(ctx, tree, name)
			if err != nil && ctx.Err() == nil {
				err = &UnprovenError{Output: uri, Rows: [2]int64{c.Rows(), -1}, Reason: err.Error(), Err: err}
			}
			return err
		})
	}
	sink = store.Strict(sink)
	obj, err := sink.Create(ctx, "")
	if err != nil {
		return s, "", errors.Join(err, sink.Abort(ctx))
	}
	w := &copied{obj, &s.Bytes}
	err = errors.Join(c.Write(ctx, w), obj.Close())
	for _, x := range src.sources {
		if err == nil {
			err = x.checkUnchanged(ctx)
		}
	}
	if err == nil {
		err = sink.Commit(ctx)
	}
	if err != nil {
		return s, "", errors.Join(err, sink.Abort(context.WithoutCancel(ctx)))
	}
	s.Rows, s.Files, s.PagesCut = c.Rows(), []string{""}, c.Cut()
	return s, "", nil
}

// copied counts the bytes written to an object.
type copied struct {
	store.Object
	n *int64
}

func (c *copied) Write(b []byte) (int, error) {
	n, err := c.Object.Write(b)
	*c.n += int64(n)
	return n, err
}

// copier returns a copier of the table's pages, or in why the reason that there is none.
func (t *Table) copier(ctx context.Context, spec ScanSpec, uri string, o CreateOptions) (c format.Copier, why string,
	err error) {
	f, err := o.target(uri)
	switch {
	case err != nil:
		return nil, "", err
	case f.Copy == nil:
		return nil, "the format's pages are not copied", nil
	case !spec.whole():
		return nil, "not all rows are wanted", nil
	case spec.Damaged != Fail || t.opened.Recover:
		return nil, "what is damaged may be left out", nil
	case spec.Columns != nil && len(spec.Columns) == 0 || strings.HasSuffix(uri, "/"):
		return nil, "no file with columns is wanted", nil
	case len(t.opened.opts()) > 0 || t.opened.NoVerify:
		return nil, "options of reading may change what comes out", nil
	}
	var readers []format.Reader
	for _, s := range t.sources {
		if s.format.Name != f.Name {
			return nil, "the source is of another format", nil
		}
		readers = append(readers, s.reader)
	}
	return f.Copy(ctx, readers, format.CopyOptions{Columns: spec.Columns, Opts: o.opts(), NoCheck: o.NoCheck,
		Parallel: o.Parallel, Found: o.Found})
}

// Copies returns why Copy would not copy pages; empty means that it would.
func (t *Table) Copies(ctx context.Context, spec ScanSpec, uri string, o CreateOptions) (why string, err error) {
	_, why, err = t.copier(ctx, spec, uri, o)
	return why, err
}

// whole reports whether all rows are selected.
func (s *ScanSpec) whole() bool { return s.Filter == nil && s.Rows == (vec.Range{}) && s.Limit == 0 }

// KeptBy returns writer options of the table's own format that reproduce the properties of its sources other than rows,
// encodings and compression. A value is empty where sources differ, or where no option can reproduce the property.
func (t *Table) KeptBy() map[string]string {
	opts := map[string]string{}
	for i, s := range t.sources {
		some := map[string]string{}
		if k, ok := s.reader.(format.Kept); ok {
			some = k.KeptBy()
		}
		for _, all := range []map[string]string{some, opts} {
			for key := range all {
				if was, ok := opts[key]; i > 0 && (!ok || was != some[key]) {
					opts[key] = ""
				} else {
					opts[key] = some[key]
				}
			}
		}
	}
	return opts
}
