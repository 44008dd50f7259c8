package stoa

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/altered"
	"stoa/internal/content"
	"stoa/internal/scan"
	"stoa/store"
)

// UnprovenError reports that an output does not contain what was written to it. The output does not exist: it was never
// renamed to its final name.
type UnprovenError struct {
	Output  string
	Rows    [2]int64 // written, and read back
	Columns []string // whose values differ; empty: values are the same, but in different rows
	Reason  string   // in a sentence
	// Err is why the output could not be read, or nil.
	Err error
}

func (e *UnprovenError) Error() string {
	return fmt.Sprintf("%s was written, and what is read of it is not what went in: %s; it was removed", e.Output,
		e.Reason)
}

// proof proves an output: checksums of its rows are computed as they are written, and again as they are read back
// before the output is visible.
type proof struct {
	uri       string
	format    format.Format // the format with which it is read back
	own       bool          // format is the output's own
	plan      *content.Plan
	in        *content.Summer
	unchecked []string // columns that cannot be compared
	altered   *altered.Counts
	schema    *arrow.Schema // of the input
	expects   *arrow.Schema // of the rows read back
	o         CreateOptions
	wo        format.WriteOptions
	done      bool // the output was read back and equals the input

	plainly format.Format // the format itself
	retyped []string      // columns that plainly reads with another type
}

// newProof returns nil if the output cannot be read back, or not with its types.
func newProof(ctx context.Context, f *format.Format, uri string, sc *arrow.Schema, o CreateOptions,
	wo format.WriteOptions, changed *altered.Counts) *proof {
	p := &proof{uri: uri, format: *f, plainly: *f, own: true, o: o, wo: wo}
	if f.Reread != nil {
		var ok bool
		if p.format, ok = f.Reread(sc, wo); !ok {
			return nil
		}
		p.own = p.format.Name == f.Name
	}
	if p.format.Open == nil {
		return nil
	}
	p.schema, p.expects = sc, p.expected(ctx, f, sc)
	p.plan = content.Between(sc, p.expects)
	p.altered = changed
	changed.Round(p.plan)
	p.unchecked = p.plan.Incomparable()
	p.in = p.plan.Summer(0)
	return p
}

// expected returns the schema with which a table of schema sc is read back, by writing one without rows.
func (p *proof) expected(ctx context.Context, f *format.Format, sc *arrow.Schema) *arrow.Schema {
	name := "trial"
	if len(f.Extensions) > 0 {
		name += f.Extensions[0]
	}
	tree := store.NewMemory(nil)
	sink := tree.Sink(name)
	wo := p.wo
	wo.Rows, wo.Trial = 0, true
	w, err := f.Create(ctx, sink, sc, wo)
	if err != nil {
		return sc
	}
	if _, err := w.Close(ctx); err != nil {
		_ = w.Abort(ctx)
		return sc
	}
	t, err := p.open(ctx, tree, name)
	if err != nil {
		return sc
	}
	defer t.Close()
	return t.Schema()
}

// open opens the written output.
func (p *proof) open(ctx context.Context, tree store.Tree, name string) (*Table, error) {
	o := OpenOptions{Formats: []format.Format{p.format}, From: p.format.Name, Tree: tree, KeepPages: -1,
		Limits: format.Limits{Fields: p.o.Limits.Fields, Depth: p.o.Limits.Depth}}
	names := []string{name}
	if !p.own && len(p.format.Extensions) > 0 {
		var err error
		if names, err = p.files(ctx, tree, name); err != nil {
			return nil, err
		}
	} else if info, err := tree.Stat(ctx, name); err == nil && info.Dir && p.plain(ctx, tree, name) {
		o.From = "" // a directory of files
	}
	return OpenAll(ctx, names, o)
}

// plain reports whether a directory is not one of the format's own.
func (p *proof) plain(ctx context.Context, tree store.Tree, name string) bool {
	if p.format.Probe == nil {
		return false
	}
	m, err := p.format.Probe(ctx, format.Target{Tree: tree, Name: name})
	return err == nil && m == format.No
}

// files returns the files of another format that an output consists of.
func (p *proof) files(ctx context.Context, tree store.Tree, dir string) (names []string, err error) {
	for info, err := range tree.List(ctx, dir) {
		switch {
		case err != nil:
			return nil, err
		case info.Dir:
			some, err := p.files(ctx, tree, info.Name)
			if err != nil {
				return nil, err
			}
			names = append(names, some...)
		case slices.ContainsFunc(p.format.Extensions,
			func(e string) bool { return strings.HasSuffix(path.Base(info.Name), e) }):
			names = append(names, info.Name)
		}
	}
	return names, nil
}

// summer returns what sums the input; nil for nil.
func (p *proof) summer() *content.Summer {
	if p == nil {
		return nil
	}
	return p.in
}

// add adds a batch that is written to the checksums.
func (p *proof) add(b arrow.RecordBatch) { p.in.Add(b) }

// addDuring adds b to the checksums while f runs.
func (p *proof) addDuring(b arrow.RecordBatch, f func() error) error {
	const smallBatch = 1024 // rows; fewer are added sooner than another goroutine starts
	if b.NumRows() < smallBatch {
		p.add(b)
		return f()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.add(b)
	}()
	err := f()
	<-done
	return err
}

// check reads the output back. An error keeps the output from becoming visible.
func (p *proof) check(ctx context.Context, tree store.Tree, name string) error {
	failed := func(err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &UnprovenError{Output: p.uri, Rows: [2]int64{p.in.Sum().Rows, -1},
			Reason: "it cannot be read: " + err.Error(), Err: err}
	}
	t, err := p.open(ctx, tree, name)
	if err != nil {
		return failed(err)
	}
	defer t.Close()
	if err := p.compareTypes(ctx, tree, name); err != nil {
		return failed(err)
	}
	want, got, err := p.sums(ctx, t)
	if err != nil {
		return failed(err)
	}
	if why := want.Difference(got); why != "" {
		return &UnprovenError{Output: p.uri, Rows: [2]int64{want.Rows, got.Rows}, Columns: want.Differing(got),
			Reason: why}
	}
	p.done = true
	return nil
}

// compareTypes records the columns that the format itself reads with another type than the one used for comparison.
func (p *proof) compareTypes(ctx context.Context, tree store.Tree, name string) error {
	if !p.format.Retypes {
		return nil
	}
	plain := *p
	plain.format = p.plainly
	t, err := plain.open(ctx, tree, name)
	if err != nil {
		return err
	}
	defer t.Close()
	for i, f := range p.expects.Fields() {
		if i >= t.Schema().NumFields() || !arrow.TypeEqual(t.Schema().Field(i).Type, f.Type) ||
			t.Schema().Field(i).Nullable != f.Nullable {
			p.retyped = append(p.retyped, f.Name)
		}
	}
	return nil
}

// sums returns the checksums of the input and of t. If t's schema is not the expected one, columns that can no longer
// be compared become unchecked.
func (p *proof) sums(ctx context.Context, t *Table) (want, got content.Sum, err error) {
	plan := p.plan
	if !t.Schema().Equal(p.expects) {
		plan = plan.Reading(p.schema, t.Schema())
		p.altered.Round(plan)
		p.unchecked = plan.Incomparable()
	}
	got, err = p.readBack(ctx, t, plan, p.memory())
	if fault.OverBudget(err) { // a row that the writer took within its memory may need more to be assembled
		got, err = p.readBack(ctx, t, plan, 0)
	}
	if err != nil {
		return want, got, err
	}
	unknown, names := p.altered.Unknown()
	p.unchecked = append(p.unchecked, names...)
	return plan.Without(p.in.Sum(), unknown), got, nil
}

// readBack returns the checksums of t, read with so much memory; 0: with what every reader may take.
func (p *proof) readBack(ctx context.Context, t *Table, plan *content.Plan, memory int64) (content.Sum, error) {
	sums := plan.Summers(1, max(1, min(p.o.Parallel, scan.MaxWorkers)))
	err := t.Each(ctx, ScanSpec{Alloc: p.o.Alloc, Unordered: true, Parallel: len(sums), Memory: memory}, sums.Add)
	return sums.Sum(), err
}

// memory returns roughly how many bytes may be held while an output is read back: the writer's memory option, or 512
// MiB.
func (p *proof) memory() int64 {
	if n, ok := format.ParseSize(p.wo.Opts["memory"]); ok && n > 0 {
		return n
	}
	return 512 << 20
}

// IsUnproven reports whether err says that an output does not contain what was written to it.
func IsUnproven(err error) bool {
	var e *UnprovenError
	return errors.As(err, &e)
}
