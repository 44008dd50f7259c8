// Package catchup brings a table of Iceberg or Delta up to date with the table that it was made of: rows that are gone
// are deleted, rows that are new are added, in one snapshot or version. Rows are compared by their values, so that no
// key is needed.
package catchup

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/delta"
	"stoa/format/iceberg"
	"stoa/internal/content"
	"stoa/internal/fit"
	"stoa/internal/settle"
	"stoa/region"
	"stoa/store"
	"stoa/store/remote"
)

// Options say what is compared, and how it is written.
type Options struct {
	Home     Home // of the table
	Delta    bool // its Delta log is changed, and else the metadata of Iceberg
	Formats  []format.Format
	Schema   *arrow.Schema // of the rows of the source
	Rows     func() iter.Seq2[arrow.RecordBatch, error]
	Write    format.WriteOptions
	Time     int64 // of the snapshot, in milliseconds since 1970; 0: now
	NoCheck  bool
	DryRun   bool  // only count, and find what Run would refuse
	MaxBytes int64 // of memory for the hashes of the source's rows, and the positions of deleted ones

	// Answered returns what a store has failed to answer. Who read may have gone on without it, so the change is
	// not made then.
	Answered func() error
}

// Result is what was changed.
type Result struct {
	Rows, Added, Deleted int64 // Rows are those of the table afterwards
	Bytes                int64
	Files                int
	Checksum             string // of the source's rows
	Checked              bool   // the table has the same one

	Widened []string         // columns that get wider types: "column c, of type int32, has type int64"
	Altered []region.Finding // strings that were added in changed form, as they were not UTF-8
}

// perRow estimates the memory of a row's hash and count, perDelete that of the position of a deleted row.
const (
	perRow    = 48
	perDelete = 16
)

// change is a change of a table that is prepared: see iceberg.Change and delta.Change.
type change interface {
	Schema() *arrow.Schema
	Rows(ctx context.Context, yield func(file int, position func(i int) int64, b arrow.RecordBatch) error) error
	Delete(file int, position int64)
	Write(ctx context.Context, b arrow.RecordBatch) error
	Check(b arrow.RecordBatch) error
	Close(ctx context.Context) (name string, bytes []byte, s format.Summary, err error)
	Abort(ctx context.Context) error
}

// begin begins a change, if the store keeps two of them apart.
func begin(ctx context.Context, o Options, sink store.Sink) (change, error) {
	if !o.DryRun {
		if err := o.Home.check(ctx); err != nil {
			return nil, err
		}
	}
	if o.Delta {
		c, err := delta.OpenChange(ctx, o.Home.tree, o.Home.dir, sink, o.Write, o.Time)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
	promote := o.Schema
	if kinds, err := o.Home.Kinds(ctx); err != nil {
		return nil, err
	} else if len(kinds) > 1 { // what the other catalogue says of the same files cannot be changed so
		promote = nil
	}
	c, err := iceberg.OpenChange(ctx, o.Home.tree, o.Home.dir, sink, o.Write, o.Time, promote)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Run makes the change. If nothing has changed, there is no new snapshot.
func Run(ctx context.Context, o Options) (r Result, err error) {
	o, sink := o.settled(), &adding{home: o.Home}
	defer o.Home.hold()()
	c, err := begin(ctx, o, sink)
	if err != nil {
		return r, err
	}
	done := false
	defer func() {
		if a := c.Abort(context.WithoutCancel(ctx)); !done {
			err = errors.Join(err, a, sink.Abort(ctx))
		}
	}()
	m, err := o.mapping(c.Schema())
	if err != nil {
		return r, err
	}
	counts, want, err := m.count(ctx, o)
	if err != nil {
		return r, err
	}
	r.Rows, r.Checksum = want.Rows, want.String()
	if r.Deleted, err = m.deleteMissing(ctx, c, counts, o.MaxBytes); err != nil {
		return r, err
	}
	if r.Added, r.Altered, err = m.addNew(ctx, c, counts, o); err != nil {
		return r, err
	}
	if c, ok := c.(*iceberg.Change); ok && r.Added+r.Deleted > 0 {
		r.Widened = c.Widened()
	}
	if r.Checked = r.Added+r.Deleted == 0; r.Checked || o.DryRun {
		return r, o.renewHint(ctx)
	}
	name, metadata, s, err := c.Close(ctx)
	if err != nil {
		return r, err
	}
	r.Bytes, r.Files = s.Bytes+int64(len(metadata)), len(s.Files)+1
	if !o.NoCheck {
		if err := m.check(ctx, o, name, metadata, want); err != nil {
			return r, err
		}
		r.Checked = true
	}
	if err := o.Answered(); err != nil {
		return r, err
	}
	err = o.Home.commit(ctx, name, metadata)
	if err == nil || uncertain(err) {
		sink.keep()
		done = true
	}
	if err == nil {
		err = o.hint(ctx, c)
	}
	return r, err
}

// hint writes the file by which some readers find the metadata of the change, which was made.
func (o Options) hint(ctx context.Context, c change) error {
	ice, ok := c.(*iceberg.Change)
	if !ok {
		return nil
	}
	name, text := ice.Hint()
	if err := o.Home.replace(ctx, name, []byte(text)); err != nil {
		return fmt.Errorf("%s: the change was made, and %s, by which some readers find it, was not written: %w",
			remote.Shown(o.Home.dir), name, err)
	}
	return nil
}

// settled returns o with the rows of the source as convert gives them to the writer of the table.
func (o Options) settled() Options {
	kept, sc, rows := iceberg.Format.Dictionaries, o.Schema, o.Rows
	if o.Delta {
		kept = delta.Format.Dictionaries
	}
	o.Schema, _ = settle.Rows(sc, kept, nil, o.Write.Mem)
	o.Rows = func() iter.Seq2[arrow.RecordBatch, error] {
		_, all := settle.Rows(sc, kept, rows(), o.Write.Mem)
		return all
	}
	return o
}

// pairs says which columns of the source are those of the table.
type pairs struct {
	at   []int // of the source, by the columns of the table
	sc   *arrow.Schema
	plan *content.Plan
}

// mapping pairs the columns of the source with those of the table, out, by name. They must be the same columns, and the
// table must take their types.
func (o Options) mapping(out *arrow.Schema) (*pairs, error) {
	in, takes := o.Schema, iceberg.Rules.Takes
	if o.Delta {
		takes = delta.Rules.Takes
	}
	m := &pairs{plan: content.Between(in, out)}
	var fields []arrow.Field
	for _, f := range out.Fields() {
		at := in.FieldIndices(f.Name)
		if len(at) != 1 {
			return nil, fault.Invalidf("the table has a column %s, and the source %d of this name: columns must be "+
				"the same", f.Name, len(at))
		}
		if from := in.Field(at[0]).Type; !takes(f.Type, from) {
			return nil, o.mistyped(f, from)
		}
		m.at, fields = append(m.at, at[0]), append(fields, in.Field(at[0]))
	}
	if n := in.NumFields(); n != len(m.at) {
		return nil, more(in, out)
	}
	if list := m.plan.Incomparable(); len(list) > 0 {
		return nil, fault.Unsupportedf(fault.Span{}, "", "the values of %s cannot be compared with those of the table",
			strings.Join(list, ", "))
	}
	m.sc = arrow.NewSchema(fields, nil)
	return m, nil
}

// mistyped returns the error about a column whose type in the source, from, the table does not take.
func (o Options) mistyped(f arrow.Field, from arrow.DataType) error {
	why := "types must be the same, or the table's a wider one of numbers"
	if wider := iceberg.Rules.Widened(f.Type, from); iceberg.Rules.Takes(wider, from) {
		why = "only columns of Iceberg become wider, in tables without a catalogue of Delta, if they have no default " +
			"values"
	}
	return fault.Invalidf("column %s is of type %s in the source and of type %s in the table: %s; convert -o with "+
		"another directory writes a table with the types of the source", f.Name, from, f.Type, why)
}

// more returns the error about a source with columns that the table does not have.
func more(in, out *arrow.Schema) error {
	var names []string
	for _, f := range in.Fields() {
		if len(out.FieldIndices(f.Name)) == 0 {
			names = append(names, f.Name)
		}
	}
	return fault.Invalidf("the source has %d columns, and the table %d, without %s: columns must be the same; "+
		"--columns with those of the table leaves out the others, and convert -o with another directory writes a "+
		"table that has them all", in.NumFields(), out.NumFields(), strings.Join(names, ", "))
}

// count counts the rows of the source by their hashes.
func (m *pairs) count(ctx context.Context, o Options) (map[uint64]int32, content.Sum, error) {
	counts, sum := map[uint64]int32{}, m.plan.Summer(0)
	for b, err := range o.fitted() {
		if err != nil {
			return nil, content.Sum{}, err
		}
		for _, h := range sum.Hashes(b) {
			counts[h]++
		}
		if err := within(int64(len(counts))*perRow, o.MaxBytes); err != nil {
			return nil, content.Sum{}, err
		}
	}
	return counts, sum.Sum(), ctx.Err()
}

// within returns an error if n bytes are more than most; 0: there is no limit.
func within(n, most int64) error {
	if most > 0 && n > most {
		return fault.Limitf(fault.Span{}, "", "comparing the rows takes more than %d bytes of memory (--memory raises "+
			"that)", most)
	}
	return nil
}

// deleteMissing deletes the rows of the table that the source lacks. What remains in counts are the rows that the table
// lacks.
func (m *pairs) deleteMissing(ctx context.Context, c change, counts map[uint64]int32, maxBytes int64) (
	n int64, err error) {
	held := int64(len(counts)) * perRow
	sum := m.plan.Summer(1)
	err = c.Rows(ctx, func(file int, position func(int) int64, b arrow.RecordBatch) error {
		for i, h := range sum.Hashes(b) {
			switch left := counts[h]; {
			case left > 1:
				counts[h] = left - 1
			case left == 1:
				delete(counts, h)
			default:
				c.Delete(file, position(i))
				n++
			}
		}
		return errors.Join(within(held+n*perDelete, maxBytes), ctx.Err())
	})
	return n, err
}

// addNew adds the rows of the source that the table lacks. altered are the strings in them that are not UTF-8.
func (m *pairs) addNew(ctx context.Context, c change, counts map[uint64]int32, o Options) (n int64,
	altered []region.Finding, err error) {
	if len(counts) == 0 {
		return 0, nil, nil
	}
	fitter := o.fitter()
	sum := m.plan.Summer(0)
	for b, err := range o.Rows() {
		if err != nil {
			return n, nil, err
		}
		hashes := m.hashes(sum, b)
		take := func(i int) bool {
			left, ok := counts[hashes[i]]
			if !ok {
				return false
			}
			if counts[hashes[i]] = left - 1; left == 1 {
				delete(counts, hashes[i])
			}
			return true
		}
		for from := 0; from < len(hashes); {
			to := from
			for to < len(hashes) && take(to) {
				to++
			}
			if to > from {
				if err := m.write(ctx, c, b, from, to, fitter, o.DryRun); err != nil {
					return n, nil, err
				}
			}
			n += int64(to - from)
			from = to + 1
		}
	}
	if len(counts) > 0 {
		return n, nil, errors.New("the source has changed while it was read")
	}
	return n, fitter.Findings(), nil
}

// hashes returns those of the rows of b as they are in the table.
func (m *pairs) hashes(sum *content.Summer, b arrow.RecordBatch) []uint64 {
	b = (&fit.Fitter{}).Batch(b)
	defer b.Release()
	return sum.Hashes(b)
}

// fitter returns what makes strings UTF-8 that are not, as in a table that convert writes.
func (o Options) fitter() *fit.Fitter {
	f := &fit.Fitter{Format: iceberg.Format.Name, Place: remote.Shown(o.Home.dir)}
	if o.Delta {
		f.Format = delta.Format.Name
	}
	return f
}

// fitted returns the rows of the source as they are in the table.
func (o Options) fitted() iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for b, err := range o.Rows() {
			if err == nil {
				b = (&fit.Fitter{}).Batch(b)
			}
			more := yield(b, err)
			if err == nil {
				b.Release()
			}
			if !more {
				return
			}
		}
	}
}

// write adds rows of the source to the table; dry: it only says whether that could be done.
func (m *pairs) write(ctx context.Context, c change, b arrow.RecordBatch, from, to int, f *fit.Fitter, dry bool) error {
	b = b.NewSlice(int64(from), int64(to))
	defer b.Release()
	b = f.Batch(b)
	defer b.Release()
	cols := make([]arrow.Array, len(m.at))
	for k, at := range m.at {
		cols[k] = b.Column(at)
	}
	part := array.NewRecordBatch(m.sc, cols, b.NumRows())
	defer part.Release()
	if dry {
		return fault.OfRows(c.Check(part))
	}
	return fault.OfRows(c.Write(ctx, part))
}

// check reads the table with the new metadata, before these are visible.
func (m *pairs) check(ctx context.Context, o Options, name string, metadata []byte, want content.Sum) error {
	place, from := path.Join(o.Home.dir, name), iceberg.Format.Name
	if o.Delta {
		place, from = o.Home.dir, delta.Format.Name
	}
	t, err := stoa.Open(ctx, place, stoa.OpenOptions{Formats: o.Formats, From: from, KeepPages: -1,
		Tree: o.Home.with(name, metadata)})
	if err != nil {
		return fmt.Errorf("the new snapshot cannot be read: %w", err)
	}
	defer t.Close()
	sum := m.plan.Summer(1)
	for b, err := range t.Scan(ctx, stoa.ScanSpec{Unordered: true}) {
		if err != nil {
			return fmt.Errorf("the new snapshot cannot be read: %w", err)
		}
		sum.Add(b)
	}
	if why := want.Difference(sum.Sum()); why != "" {
		return &stoa.UnprovenError{Output: remote.Shown(o.Home.dir),
			Rows: [2]int64{want.Rows, sum.Sum().Rows}, Reason: why}
	}
	return nil
}
