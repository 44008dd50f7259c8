package stoa

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/address"
	"stoa/internal/check"
	"stoa/internal/fieldnames"
	"stoa/internal/glob"
	"stoa/internal/health"
	"stoa/internal/parts"
	"stoa/internal/watched"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
	"stoa/store/remote"
)

// DescribeOptions are the options of Describe.
type DescribeOptions struct {
	OpenOptions
	Pages bool // also the contents of data pages
}

// Describe streams the structure of a file, in which every byte belongs to a node. Nodes come in pre-order; children
// have Depth+1. If the file is damaged, the readable nodes come first and the error last.
//
//go:noinline
func Describe(ctx context.Context, uri string, o DescribeOptions) iter.Seq2[region.Node, error] {
	return func(yield func(region.Node, error) bool) {
		uri, opened, err := o.placedOne(ctx, uri)
		if err != nil {
			yield(region.Node{}, err)
			return
		}
		for _, f := range opened.formats() {
			if opened.From == "" && f.Described != nil && f.Described(filepath.ToSlash(uri)) {
				opened.From = f.Name
			}
		}
		o, give := DescribeOptions{OpenOptions: opened, Pages: o.Pages}, yield
		yield = func(n region.Node, err error) bool {
			if n.At.Object = remote.Shown(n.At.Object); remote.Is(n.Value) { // a part, by its name
				n.Value = remote.Shown(n.Value)
			}
			return give(n, err)
		}
		targets, err := resolveAll(ctx, []string{uri}, o.OpenOptions)
		if err != nil {
			yield(region.Node{}, err)
			return
		}
		for _, tg := range targets {
			for _, l := range tg.left {
				if !yield(region.Node{Name: l.name, Value: "left out: " + l.finding().Message, Inner: -1}, nil) {
					return
				}
			}
			if tg.format.ByPages() {
				if !describePages(ctx, tg, o.OpenOptions, yield) {
					return
				}
				continue
			}
			if tg.format.Describe == nil {
				yield(region.Node{}, fault.Unsupportedf(fault.Span{Object: tg.Name}, "",
					"the anatomy of %s files is not described", tg.format.Name))
				return
			}
			fo := format.DescribeOptions{OpenOptions: o.internal(), Pages: o.Pages}
			for n, err := range tg.format.Describe(ctx, tg.Target, fo) {
				if !yield(n, err) || err != nil {
					return
				}
			}
		}
	}
}

// Codes are the kinds of findings that do not belong to a format.
var Codes = check.FrontCodes

// Verify reads everything and streams what is wrong or unusual: checksums, structure, contradictions, and bytes that no
// structure claims; o.Depth limits what is checked. It ends with an error only if it could not do its work. In a
// directory that is not a table of some format, every file is verified, including those in subdirectories; files of
// unknown formats are findings, and so are files in a table's directory that do not belong to the table.
//
//go:noinline
func Verify(ctx context.Context, uri string, o OpenOptions) iter.Seq2[region.Finding, error] {
	return func(yield func(region.Finding, error) bool) {
		uri, o, err := o.placedOne(ctx, uri)
		if err != nil {
			yield(region.Finding{}, err)
			return
		}
		access := &watched.Access{Tree: o.tree()}
		o.Tree = access
		for f, err := range access.Verified(verifyPlace(ctx, uri, o)) {
			if !yield(address.Finding(f), err) {
				return
			}
		}
	}
}

func verifyPlace(ctx context.Context, uri string, o OpenOptions) iter.Seq2[region.Finding, error] {
	return func(yield func(region.Finding, error) bool) {
		if plain, err := plainDir(ctx, uri, o); err != nil || plain {
			if plain {
				v := dirVerifier{ctx: ctx, o: o, yield: yield}
				failed := v.dir(uri, 0)
				if failed == nil && v.files == 0 && !v.stopped {
					failed = fault.Invalidf("%s: %s: there is nothing to verify", uri, glob.Nothing(ctx, o.tree(), uri))
				}
				if err = cmp.Or(err, failed, v.limits); v.stopped {
					return
				}
			}
			if err != nil {
				yield(region.Finding{}, err)
			}
			return
		}
		if names, err := matched(ctx, uri, o); err != nil || len(names) > 0 {
			verifyMatched(ctx, names, err, o)(yield)
			return
		}
		targets, err := resolveAll(ctx, []string{uri}, o)
		if err != nil {
			if f := misnamed(ctx, uri, o, err); f != nil {
				yield(*f, nil)
				return
			}
			yield(region.Finding{}, err)
			return
		}
		v := dirVerifier{ctx: ctx, o: o, yield: yield}
		for _, tg := range targets {
			err := v.target(tg, 0)
			if v.stopped {
				return
			}
			if err = v.refused("", err); err != nil {
				yield(region.Finding{}, err)
				return
			}
		}
		if v.limits != nil {
			yield(region.Finding{}, v.limits)
		}
	}
}

// matched returns the names that uri matches, if it is a pattern and not a name.
func matched(ctx context.Context, uri string, o OpenOptions) (names []string, err error) {
	name, table := uri, ""
	if i := store.TableIn(ctx, o.tree(), uri); i >= 0 {
		name, table = uri[:i], uri[i:]
	}
	for _, whole := range []string{uri, name} {
		if _, err := o.tree().Stat(ctx, whole); !isPattern(whole) || !errors.Is(err, fs.ErrNotExist) {
			return nil, nil // resolving it reports the reason
		}
	}
	if names, err = globNames(ctx, name, o.tree()); err != nil {
		return nil, err
	}
	for i := range names {
		names[i] += table
	}
	return names, nil
}

// verifyMatched verifies one name after another, independently: a name in an unknown format does not prevent the
// verification of the others.
//
//go:noinline
func verifyMatched(ctx context.Context, names []string, err error, o OpenOptions) iter.Seq2[region.Finding, error] {
	return func(yield func(region.Finding, error) bool) {
		for _, l := range missingParts(ctx, o.tree(), names, o) {
			if !yield(l.finding(), nil) {
				return
			}
		}
		for _, name := range names {
			for f, failed := range Verify(ctx, name, o) {
				if failed != nil {
					err = errors.Join(err, failed)
				} else if !yield(f, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(region.Finding{}, err)
		}
	}
}

// plainDir reports whether uri is a directory that no format owns. With an error it may or may not be one.
func plainDir(ctx context.Context, uri string, o OpenOptions) (bool, error) {
	info, err := o.tree().Stat(ctx, uri)
	if err != nil || !info.Dir || o.From != "" {
		return false, nil // a glob, a table of a place, or nothing: resolving reports which
	}
	_, err = Probe(ctx, format.Target{Tree: o.tree(), Name: uri}, o)
	if store.Failing(err) && ctx.Err() == nil {
		return true, err
	}
	return err != nil, ctx.Err()
}

// dirVerifier verifies everything in a directory.
type dirVerifier struct {
	files   int // files and tables met in directories that no format owns
	ctx     context.Context
	o       OpenOptions
	yield   func(region.Finding, error) bool
	stopped bool
	above   []*siblings // the tables whose directories contain this one
	limits  error       // limits that were exceeded, reported after everything else
}

func (v *dirVerifier) dir(name string, depth int) error {
	if depth > glob.MaxDepth {
		v.report("dir.too.deep", region.Warning, name, "more than %d directories deep", glob.MaxDepth)
		return nil
	}
	if err := v.irregular(name, nil); err != nil || v.stopped {
		return err
	}
	var names []string
	for info, err := range v.o.tree().List(v.ctx, name) {
		if !info.Dir {
			names = append(names, info.Name)
		}
		if !info.Dir && !strings.HasPrefix(path.Base(info.Name), store.TempPrefix) {
			v.files++
		}
		if err == nil {
			err = v.entry(info, depth)
		}
		if err = v.refused(info.Name, err); err != nil || v.stopped {
			return err
		}
	}
	for _, l := range missingParts(v.ctx, v.o.tree(), names, v.o) {
		if v.emit(l.finding()); v.stopped {
			return nil
		}
	}
	for _, u := range parts.Unknown(v.ctx, v.o.tree(), names) {
		if v.stopped {
			break
		}
		last := "none is there"
		if u.Last != "" {
			last = u.Last + " is the last that is there"
		}
		v.report("dir.part.unknown", region.Note, u.Dir, "the files are numbered by the tasks of a Spark job, and "+
			"%s: nothing says how many there must be, so one that is gone without a trace is not missed", last)
	}
	return v.ctx.Err()
}

// refused reports what the operating system does not allow to be opened or read, and continues with the rest. It
// returns other errors.
func (v *dirVerifier) refused(name string, err error) error {
	if fault.OverBudget(err) {
		if v.limits != nil {
			err = errors.Join(v.limits, err)
		}
		v.limits = err
		return nil
	}
	p := new(fs.PathError)
	if name == "" || v.ctx.Err() != nil || !errors.As(err, &p) {
		return err
	}
	v.report("file.unreadable", region.Error, name, "%s", err)
	return nil
}

func (v *dirVerifier) entry(info store.Info, depth int) error {
	if strings.HasPrefix(path.Base(info.Name), store.TempPrefix) {
		v.report("dir.leftover", region.Note, info.Name, "an interrupted run of stoa has left it")
		return nil
	}
	if path.Base(info.Name) == parts.ManifestName { // missingParts reads it
		return nil
	}
	tg := format.Target{Tree: v.o.tree(), Name: info.Name}
	f, err := Probe(v.ctx, tg, v.o)
	switch {
	case err == nil:
		return v.target(found{Target: tg, format: f}, depth+1)
	case info.Dir:
		return v.dir(info.Name, depth+1)
	case errors.Is(err, fault.Unsupported):
		if f := misnamed(v.ctx, info.Name, v.o, err); f != nil {
			v.emit(*f)
			return nil
		}
		v.report("dir.file.unknown", region.Note, info.Name, "%s", reasonOf(err))
		return nil
	}
	if f, ok := findingOf(err); ok {
		f.Part = info.Name
		v.emit(f)
		return nil
	}
	return err
}

// target verifies what a format knows and, in a directory, also what the format skips.
func (v *dirVerifier) target(tg found, depth int) error {
	v.files++
	all := newOpened(tg.Tree)
	tg.Tree = all
	ctx := format.WithBriefSession(v.ctx)
	for f, err := range verifyOne(ctx, tg, v.o) {
		if err != nil {
			return err
		}
		if f.Part == "" {
			f.Part = tg.Name
		}
		if v.emit(f); v.stopped {
			return nil
		}
	}
	if v.unchecked(ctx, tg); v.stopped {
		return nil
	}
	if tg.Table != "" || v.o.From != "" {
		return nil
	}
	if info, err := v.o.tree().Stat(v.ctx, tg.Name); err != nil || !info.Dir {
		return v.ctx.Err()
	}
	if f, found := health.Leftovers(ctx, v.o.formats(), tg.Target, v.o.internal()); found {
		v.emit(f)
	}
	b := newSiblings(v.ctx, tg, all, v.o, v.above)
	v.above = append(v.above, b)
	defer func() { v.above = v.above[:len(v.above)-1] }()
	b.failed, b.foreign = v.refused, v.foreign
	b.irregular = func(dir string) error { return v.irregular(dir, b) }
	b.stopped = func() bool { return v.stopped }
	return b.all(tg.Name, depth)
}

// unchecked reports the parts of a file without checksums, if its data was checked.
func (v *dirVerifier) unchecked(ctx context.Context, tg found) {
	if tg.format.Unchecked == nil || v.o.Depth == format.Quick {
		return
	}
	what, err := tg.format.Unchecked(ctx, tg.Target, v.o.internal())
	if err == nil && what != "" { // errors have been reported by the verification
		v.report("file.unchecked", region.Note, tg.Name,
			"%s: what was changed there and still decodes is not noticed", what)
	}
}

func (v *dirVerifier) emit(f region.Finding) { v.stopped = v.stopped || !v.yield(f, nil) }

func (v *dirVerifier) report(code string, s region.Severity, name, message string, args ...any) {
	v.emit(region.Finding{Code: code, Severity: s, At: fault.Span{Object: name}, Part: name,
		Message: fmt.Sprintf(message, args...), Rows: [2]int64{-1, -1}})
}

func verifyOne(ctx context.Context, tg found, o OpenOptions) iter.Seq2[region.Finding, error] {
	return func(yield func(region.Finding, error) bool) {
		if tg.format.Verify != nil {
			healthy := true
			more, err := health.ByFormat(ctx, tg.format, tg.Target, o.internal(), func(f region.Finding) bool {
				healthy = healthy && f.Severity < region.Error
				return yield(f, nil)
			})
			if err != nil {
				yield(region.Finding{}, err)
				return
			}
			if healthy && more { // otherwise reading would run into, and report, the same damage again
				assembled(ctx, tg, o, yield)
			}
			return
		}
		if err := verifyPages(ctx, tg, o, yield); err != nil {
			reportError(err, yield)
		}
	}
}

// assembled opens a target in which the format found nothing wrong, as a reader does, and reports what opening notices,
// such as names. Unless only structure is checked, it then reads the nested fields: formats verify column by column,
// and columns that are intact on their own may contradict each other. Readers that return batches have assembled them
// already.
func assembled(ctx context.Context, tg found, o OpenOptions, yield func(region.Finding, error) bool) {
	if tg.format.Open == nil {
		return
	}
	s, found, err := openOne(ctx, tg, o)
	if errors.Is(err, fault.Invalid) {
		o.Opts, o.Typed = nil, nil
		if s, _, openErr := openOne(ctx, tg, o); openErr == nil { // what the user asked for does not exist
			reportError(errors.Join(err, s.close()), yield)
		}
		return // or a place of several tables, as Kudu's, whose nested fields are one column each
	}
	if errors.Is(err, format.ErrElsewhere) { // intact, but not a table on its own
		return
	}
	if err != nil {
		reportError(err, yield)
		return
	}
	t := &Table{schema: s.reader.Schema(), sources: []*source{s}}
	defer t.Close()
	if f := fieldnames.Repeated(t.schema, tg.Name); f != nil {
		found = append(found, *f)
	}
	for _, f := range found { // of names
		if !yield(f, nil) {
			return
		}
	}
	if o.Depth == format.Quick {
		return
	}
	columns := nestedFields(t.schema)
	if _, batches := s.reader.(format.Batcher); batches || len(columns) == 0 {
		return
	}
	stopped := false
	spec := ScanSpec{Columns: columns, Damaged: SkipRows, Unordered: true, Alloc: NewPool(), Lost: func(l region.Loss) {
		if !stopped {
			stopped = !yield(notAssembled(ctx, s.reader, l), nil)
		}
	}}
	for _, err := range t.Scan(ctx, spec) {
		if stopped {
			return
		}
		if err != nil {
			reportError(err, yield)
			return
		}
	}
}

// reportError reports damage as a finding, and any other error as an error.
func reportError(err error, yield func(region.Finding, error) bool) {
	if f, ok := findingOf(err); ok {
		yield(f, nil)
		return
	}
	yield(region.Finding{}, err)
}

// nestedFields returns the names of the fields that may be stored in several columns, except those whose name is not
// unique: they cannot be selected.
func nestedFields(sc *arrow.Schema) (names []string) {
	for _, f := range sc.Fields() {
		if arrow.IsNested(f.Type.ID()) && len(sc.FieldIndices(f.Name)) == 1 {
			names = append(names, pred.JoinPath(f.Name))
		}
	}
	return names
}

// notAssembled returns a finding about rows that were lost although their columns are intact.
func notAssembled(ctx context.Context, r format.Reader, l region.Loss) region.Finding {
	f, ok := findingOf(l.Err)
	if !ok {
		f = region.Finding{Severity: region.Error, Message: l.Err.Error(), Rows: [2]int64{-1, -1}, Lost: -1}
	}
	f.Code, f.Column = "file.nested", l.Column
	if first := firstRow(ctx, r, l); first >= 0 && l.Exact {
		f.Rows, f.Lost = [2]int64{first + l.Rows[0], first + l.Rows[1]}, l.Rows[1]-l.Rows[0]
	}
	return f
}

// firstRow returns the first row of the row group in which something was lost; -1 if it is not known.
func firstRow(ctx context.Context, r format.Reader, l region.Loss) (first int64) {
	for p, err := range r.Parts(ctx, format.Query{}) {
		if err != nil {
			return -1
		}
		if p.Ref != l.Part {
			continue
		}
		groups, err := r.RowGroups(ctx, p, format.Query{})
		for _, g := range groups {
			if err != nil || g.Index == l.Group {
				break
			}
			if g.Rows < 0 {
				return -1
			}
			first += g.Rows
		}
		return first
	}
	return -1
}

// verifyPages verifies a target whose format has no verification of its own. Intact pages do not guarantee that nested
// rows can be assembled, so these are read, too.
func verifyPages(ctx context.Context, tg found, o OpenOptions, yield func(region.Finding, error) bool) error {
	s, _, err := openOne(ctx, tg, o)
	if err != nil {
		return err
	}
	r := check.New(ctx, tg.Name, nil, func(f region.Finding) bool { return yield(f, nil) })
	if x, ok := s.reader.(format.Finder); ok { // noticed as soon as the table is opened
		for _, f := range x.Findings() {
			r.Emit(f)
		}
	}
	err = errors.Join(health.Table(ctx, s.scan, tg.Target, o.internal(), r), s.checkUnchanged(ctx), s.close())
	if err == nil && r.Errors() == 0 && !r.Stopped() {
		assembled(ctx, tg, o, yield)
	}
	if r.Stopped() {
		return nil
	}
	return err
}

// describePages describes a target whose format has no describer of its own. It returns false if the consumer stopped.
func describePages(ctx context.Context, tg found, o OpenOptions, yield func(region.Node, error) bool) bool {
	s, _, err := openOne(ctx, tg, o)
	if err != nil {
		return yield(region.Node{}, err) && false
	}
	defer s.close()
	for n, err := range health.Describe(ctx, tg.Target, tg.format.Title, s.scan) {
		if !yield(n, err) || err != nil {
			return false
		}
	}
	return true
}

// findingOf converts damage to a finding; ok is false for other errors.
func findingOf(err error) (region.Finding, bool) {
	var e *fault.Error
	if !errors.As(err, &e) || e.Class != fault.Corrupt {
		return region.Finding{}, false
	}
	return region.Finding{Code: "file.unreadable", Severity: region.Error, At: e.At, Path: e.Path, Message: e.Reason,
		Rows: [2]int64{-1, -1}, Lost: -1}, true
}

// foreign verifies something that is not part of a table, as it would be verified elsewhere. If it is inside a table
// (within), that is reported unless something else is.
func (v *dirVerifier) foreign(info store.Info, claim format.Claim, within bool, depth int) error {
	if claim == format.Reported {
		return v.entry(info, depth)
	}
	known := info.Dir
	if _, err := Probe(v.ctx, format.Target{Tree: v.o.tree(), Name: info.Name}, v.o); err == nil {
		known = true
	}
	if within && known && !strings.HasPrefix(path.Base(info.Name), store.TempPrefix) {
		v.report("dir.foreign", region.Note, info.Name, "it lies within a table, and is no part of it")
	}
	return v.entry(info, depth)
}
