package stoa

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/alter"
	"stoa/internal/altered"
	"stoa/internal/content"
	"stoa/internal/settle"
	"stoa/pred"
)

// AppendOptions are the options of Append.
type AppendOptions struct {
	// writer options; the table's properties apply where they are silent
	Opts map[string]string `json:"opts,omitempty"`
	// Typed are options as a struct, such as carbon.WriteOptions; Opts take precedence. nil means none. In JSON they
	// are part of Opts.
	Typed format.Options `json:"-"`
	Tasks int            `json:"tasks,omitempty"` // data files that are written in parallel; 0 means one
	// how values of columns with a global dictionary get their codes
	Dictionary string `json:"dictionary,omitempty"`
	// Overwrite makes the rows replace everything in the table, or everything in Partition.
	Overwrite bool `json:"overwrite,omitempty"`
	// Partition are the values, as text, of the partition columns for all rows; the rows need not have these columns.
	Partition format.PartitionValues `json:"partition,omitempty"`

	// Bad is what to do with rows that have a value which does not fit its column. BadFail fails the load.
	Bad   BadAction          `json:"bad_records,omitempty"`
	OnBad func(BadRow) error `json:"-"` // called once for each such row; an error ends the load; may be nil

	NoCheck bool `json:"no_check,omitempty"` // skip reading back what was written before the commit
	DryRun  bool `json:"dry_run,omitempty"`  // only check the columns and count the rows
	// Before is called with the load's name when it is about to become visible; an error fails it. May be nil.
	Before func(ctx context.Context, segment string) error `json:"-"`
}

// The actions for bad rows, and a bad row.
type (
	BadAction = alter.BadAction
	BadRow    = alter.BadRow
)

// The actions of a load; see BadAction.
const (
	BadFail   = alter.BadFail
	BadForce  = alter.BadForce
	BadIgnore = alter.BadIgnore
)

// MarshalJSON encodes the options with Typed as the equivalent strings.
func (o AppendOptions) MarshalJSON() ([]byte, error) {
	type plain AppendOptions
	o.Opts = format.MergeOptions(o.Opts, o.Typed)
	return json.Marshal(plain(o))
}

// AppendResult reports what was added.
type AppendResult struct {
	format.LoadSummary
	// Checked: what was written was read back before the commit and equals the input. If false, Unchecked says why.
	Checked   bool   `json:"checked"`
	Unchecked string `json:"unchecked,omitempty"`
	// columns that could not be compared: text that was converted, floats that lost precision
	UncheckedColumns []string         `json:"unchecked_columns,omitempty"`
	Altered          []format.Altered `json:"altered,omitempty"` // because options asked for it
	Bad              int64            `json:"bad,omitempty"`     // rows that were left out, or got more nulls
}

// Append adds rows with schema sc, whose fields are matched by name, as one load: after an error none are added. rows
// is ranged over once, and once more before that for some kinds of dictionaries. What was written is read back before
// the commit and must have the same number of rows with the same values, except in columns that options alter and those
// converted from text; otherwise the error is an UnprovenError.
func (c *Changer) Append(ctx context.Context, sc *arrow.Schema, rows iter.Seq2[arrow.RecordBatch, error],
	o AppendOptions) (out AppendResult, err error) {
	if err := c.can(c.change.Append != nil, "append rows", o.DryRun); err != nil {
		return out, err
	}
	if err := checkOptionFormats(o.Typed, c.format, c.name); err != nil {
		return out, err
	}
	sc, rows = settle.Rows(sc, nil, rows, c.Alloc)
	sc, rows = c.inPartition(sc, rows, o.Partition)
	lo := format.LoadOptions{Opts: format.MergeOptions(o.Opts, o.Typed), Tasks: o.Tasks, Dictionary: o.Dictionary,
		Overwrite: o.Overwrite, Partition: o.Partition, Check: o.Before}
	bad, err := c.bad(ctx, sc, lo, o)
	if err != nil {
		return out, err
	}
	rows = bad.Of(rows)
	defer func() { out.Bad = bad.Count() }()
	lo.Again = func() iter.Seq2[arrow.RecordBatch, error] { return rows }
	if o.DryRun {
		out.Rows, err = c.addDry(ctx, sc, rows, lo)
		return out, err
	}
	if o.Overwrite { // a concurrent compaction would bring the overwritten rows back
		unlock, err := c.change.Lock(ctx, c.place)
		if err != nil {
			return out, err
		}
		defer unlock()
	}
	err = c.addRows(ctx, sc, rows, lo, o.NoCheck, &out, func(l format.Load) (err error) {
		out.LoadSummary, err = l.Close(ctx)
		return err
	})
	return out, err
}

// addRows writes rows to a load, which commit ends, and reports in out what was added. Unless noCheck is set, the load
// is committed only after it has been read back. After an error nothing is added.
func (c *Changer) addRows(ctx context.Context, sc *arrow.Schema, rows iter.Seq2[arrow.RecordBatch, error],
	lo format.LoadOptions, noCheck bool, out *AppendResult, commit func(l format.Load) error) error {
	altered, err := c.alterations(sc, lo)
	if err != nil {
		return err
	}
	var p *loadProof
	if out.Unchecked = "as the options say"; !noCheck {
		if p, out.Unchecked, err = c.proveLoad(ctx, sc, &lo, altered); err != nil {
			return err
		}
	}
	l, err := c.change.Append(ctx, c.place, sc, lo)
	if err != nil {
		return err
	}
	seen := func(yield func(arrow.RecordBatch, error) bool) {
		for b, err := range rows {
			if err == nil {
				altered.Add(b)
				p.add(b)
				out.Rows += b.NumRows()
			}
			if !yield(b, err) {
				return
			}
		}
	}
	if err := fill(ctx, l, seen, func() error { return commit(l) }); err != nil {
		return err
	}
	if out.Altered = altered.Columns(); out.Unchecked == "" {
		out.Checked, out.UncheckedColumns = true, p.unverified()
	}
	return nil
}

// bad returns a finder of the rows that the table cannot hold; nil means that writing them fails.
func (c *Changer) bad(ctx context.Context, sc *arrow.Schema, lo format.LoadOptions,
	o AppendOptions) (*alter.Bad, error) {
	if err := o.Bad.Check(); err != nil || o.Bad == BadFail {
		return nil, err
	}
	if err := c.can(c.change.Misfits != nil, "leave out bad rows", o.DryRun); err != nil {
		return nil, err
	}
	find, err := c.change.Misfits(ctx, c.place, sc, lo)
	return &alter.Bad{Action: o.Bad, OnBad: o.OnBad, Find: find}, err
}

// inPartition adds the values of a partition to rows that lack its columns.
func (c *Changer) inPartition(sc *arrow.Schema, rows iter.Seq2[arrow.RecordBatch, error],
	values format.PartitionValues) (*arrow.Schema, iter.Seq2[arrow.RecordBatch, error]) {
	fields := slices.Clone(sc.Fields())
	var added []*string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if fieldNamed(sc, name) < 0 {
			fields = append(fields, arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: true})
			added = append(added, values[name])
		}
	}
	if len(added) == 0 {
		return sc, rows
	}
	wide := arrow.NewSchema(fields, nil)
	return wide, func(yield func(arrow.RecordBatch, error) bool) {
		for b, err := range rows {
			if err == nil {
				cols := slices.Clone(b.Columns())
				for _, v := range added {
					cols = append(cols, alter.Constant(c.Alloc, arrow.BinaryTypes.String, v, int(b.NumRows())))
				}
				b = array.NewRecordBatch(wide, cols, b.NumRows())
				for _, a := range cols[len(cols)-len(added):] {
					a.Release()
				}
			}
			if goes := yield(b, err); err == nil && b != nil {
				b.Release()
				if !goes {
					return
				}
			} else if !goes {
				return
			}
		}
	}
}

// alterations returns the counter of the values that the options of a load change.
func (c *Changer) alterations(sc *arrow.Schema, o format.LoadOptions) (*altered.Counts, error) {
	if c.change.Alters == nil {
		return nil, nil
	}
	list, err := c.change.Alters(c.place, sc, o)
	return altered.New(sc, list), err
}

// addDry counts the rows that a load would add.
func (c *Changer) addDry(ctx context.Context, sc *arrow.Schema, rows iter.Seq2[arrow.RecordBatch, error],
	lo format.LoadOptions) (n int64, err error) {
	check, err := c.dryCheck(ctx, sc, lo)
	if err != nil {
		return 0, err
	}
	for b, err := range rows {
		if err == nil {
			err = check(b)
		}
		if err != nil {
			return n, err
		}
		n += b.NumRows()
	}
	return n, nil
}

// dryCheck returns the error with which a load would be refused for any rows, and a function that returns, for batches
// in their order, that with which writing them would fail.
func (c *Changer) dryCheck(ctx context.Context, sc *arrow.Schema, lo format.LoadOptions) (
	func(b arrow.RecordBatch) error, error) {
	if c.change.CheckAppend != nil {
		if err := c.change.CheckAppend(ctx, c.place, sc, lo); err != nil {
			return nil, err
		}
	}
	if c.change.Misfits == nil {
		return func(arrow.RecordBatch) error { return nil }, nil
	}
	lo.DryRun = true
	find, err := c.change.Misfits(ctx, c.place, sc, lo)
	seen := int64(0)
	return func(b arrow.RecordBatch) error {
		for _, m := range find(b) {
			return fault.Invalidf("column %s, row %d: %s", m.Column, seen+int64(m.Row), m.Reason)
		}
		seen += b.NumRows()
		return nil
	}, err
}

// fill writes rows to a load, which commit ends. After an error the load is aborted.
func fill(ctx context.Context, l format.Load, rows iter.Seq2[arrow.RecordBatch, error], commit func() error) error {
	var err error
	for b, e := range rows {
		if err = e; err == nil {
			err = l.Write(ctx, b)
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		err = commit()
	}
	if err != nil {
		return errors.Join(err, l.Abort(context.WithoutCancel(ctx)))
	}
	return nil
}

// loadProof proves a segment: checksums of its rows are computed as they are written, and again as they are read back
// before the commit. nil means that nothing is proved.
type loadProof struct {
	plan    *content.Plan
	in      *content.Summer
	altered *altered.Counts
}

func (p *loadProof) add(b arrow.RecordBatch) {
	if p != nil {
		p.in.Add(b)
	}
}

// unverified returns the columns that could not be compared.
func (p *loadProof) unverified() []string {
	_, names := p.altered.Unknown()
	return append(names, p.plan.Incomparable()...)
}

// proveLoad makes a load check, before its segment is committed, that the segment holds what was written, except for
// the columns unread. If that cannot be done, unchecked says why.
func (c *Changer) proveLoad(ctx context.Context, sc *arrow.Schema, o *format.LoadOptions,
	changed *altered.Counts, unread ...string) (p *loadProof, unchecked string, err error) {
	if c.change.Only == nil {
		return nil, "a single segment cannot be read", nil
	}
	t, err := c.open(ctx, nil)
	if err != nil {
		return nil, "", err
	}
	out := t.Schema()
	if err := t.Close(); err != nil {
		return nil, "", err
	}
	p = &loadProof{plan: content.Between(sc, out), altered: changed}
	p.plan.LeaveWords()
	for _, f := range sc.Fields() {
		if to, ok := out.FieldsByName(f.Name); ok && len(to) == 1 && altered.Rounds(f.Type, to[0].Type) {
			p.plan.Leave(f.Name)
		}
	}
	for _, name := range unread {
		p.plan.Leave(name)
	}
	changed.Round(p.plan)
	p.in = p.plan.Summer(0)
	next := o.Check
	o.Check = func(ctx context.Context, segment string) error {
		got, err := c.sums(ctx, p.plan.Summer(1), segment)
		if err != nil {
			return fmt.Errorf("segment %s was written and cannot be read back: %v", segment, err)
		}
		fields, _ := changed.Unknown()
		want := p.plan.Without(p.in.Sum(), fields)
		if why := want.Difference(got); why != "" {
			return &UnprovenError{Output: "segment " + segment, Rows: [2]int64{want.Rows, got.Rows},
				Columns: want.Differing(got), Reason: why}
		}
		return alter.Then(ctx, next, segment)
	}
	return p, "", nil
}

// sums computes the checksums of a segment, which need not be committed yet.
func (c *Changer) sums(ctx context.Context, s *content.Summer, segment string) (content.Sum, error) {
	t, err := c.open(ctx, c.change.Only([]string{segment}))
	if err != nil {
		return content.Sum{}, err
	}
	defer t.Close()
	for b, err := range t.Scan(ctx, ScanSpec{Alloc: c.Alloc, Unordered: true}) {
		if err != nil {
			return content.Sum{}, err
		}
		s.Add(b)
	}
	return s.Sum(), nil
}

// DeleteOptions are the options of Delete.
type DeleteOptions struct {
	Where  string `json:"where"` // a predicate (package pred); "true": all rows
	DryRun bool   `json:"dry_run,omitempty"`
}

// Delete deletes the rows for which a predicate is true, and returns how many there were.
func (c *Changer) Delete(ctx context.Context, o DeleteOptions) (int64, error) {
	if err := c.can(c.change.Delete != nil, "delete rows", o.DryRun); err != nil {
		return 0, err
	}
	if !o.DryRun {
		unlock, err := c.change.Lock(ctx, c.place)
		if err != nil {
			return 0, err
		}
		defer unlock()
	}
	rows, err := c.matching(ctx, o.Where, nil)
	if err != nil || o.DryRun {
		return c.wouldDelete(ctx, rows, err)
	}
	return c.change.Delete(ctx, c.place, rows, nil)
}

// matching finds the rows of the table that pass a filter. It returns their positions, and passes their values to keep.
func (c *Changer) matching(ctx context.Context, where string,
	keep func(b arrow.RecordBatch) error) (out []format.RowsOfFile, err error) {
	if strings.TrimSpace(where) == "" {
		return nil, fault.Invalidf("a predicate says which rows; it is missing (true means all of them)")
	}
	filter, err := pred.Parse(where)
	if err != nil {
		return nil, err
	}
	t, err := c.open(ctx, c.change.Positions)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	spec := ScanSpec{Alloc: c.Alloc, Filter: filter}
	if keep == nil {
		spec.Columns = c.change.PositionColumns[:]
	}
	for b, err := range t.Scan(ctx, spec) {
		if err != nil {
			return nil, err
		}
		n := int(b.NumCols())
		files, rows := b.Column(n-2).(*array.String), b.Column(n-1).(*array.Int64)
		for i := range int(b.NumRows()) {
			if k := len(out); k == 0 || out[k-1].File != files.Value(i) {
				out = append(out, format.RowsOfFile{File: strings.Clone(files.Value(i))})
			}
			d := &out[len(out)-1]
			d.Rows = append(d.Rows, rows.Value(i))
		}
		if keep != nil {
			if err := keep(b); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// wouldDelete returns how many rows would be deleted, and err or that with which deleting them would be refused.
func (c *Changer) wouldDelete(ctx context.Context, rows []format.RowsOfFile, err error) (int64, error) {
	if err == nil && len(rows) > 0 && c.change.CheckDelete != nil {
		err = c.change.CheckDelete(ctx, c.place, rows)
	}
	return format.CountRows(rows), err
}

// UpdateOptions are the options of Update.
type UpdateOptions struct {
	Where string `json:"where"` // a predicate (package pred); "true": all rows
	// Set are the new values by column, as text that must convert to the column's type exactly; nil means null. Columns
	// of lists, maps, structs and bytes can only be set to null.
	Set     map[string]*string `json:"set"`
	NoCheck bool               `json:"no_check,omitempty"` // skip reading back the new rows before the commit
	DryRun  bool               `json:"dry_run,omitempty"`
}

// SetError reports a new value that does not fit its column. Its class is fault.Invalid.
type SetError struct {
	Column string
	Value  *string // nil: the error is not about a value
	Reason string
}

func (e *SetError) Error() string {
	if e.Value != nil {
		return fmt.Sprintf("invalid: column %s cannot be set to %q: %s", e.Column, *e.Value, e.Reason)
	}
	return "invalid: " + e.Reason
}

// Is reports whether target is fault.Invalid.
func (e *SetError) Is(target error) bool { return target == fault.Invalid }

// Update sets columns to new values in the rows for which a predicate is true, and returns the number of these rows.
// The rows are deleted, and added again with the new values, in one change. The added rows are read back before the
// commit, as by Append; after an error, such as an UnprovenError, the table is unchanged.
func (c *Changer) Update(ctx context.Context, o UpdateOptions) (int64, error) {
	if err := c.can(c.change.Delete != nil && c.change.Append != nil &&
		c.change.CheckText != nil, "update rows", o.DryRun); err != nil {
		return 0, err
	}
	if !o.DryRun {
		unlock, err := c.change.Lock(ctx, c.place)
		if err != nil {
			return 0, err
		}
		defer unlock()
	}
	t, err := c.open(ctx, nil)
	if err != nil {
		return 0, err
	}
	own := t.Schema()
	sc, err := c.updated(own, o.Set)
	if err := errors.Join(err, t.Close()); err != nil {
		return 0, err
	}
	lo := format.LoadOptions{Set: slices.Sorted(maps.Keys(o.Set))}
	if o.DryRun {
		check, err := c.dryCheck(ctx, sc, lo)
		if err != nil {
			return 0, err
		}
		rows, err := c.matching(ctx, o.Where, func(b arrow.RecordBatch) error {
			changed := c.withValues(sc, b, o.Set)
			defer changed.Release()
			return check(changed)
		})
		return c.wouldDelete(ctx, rows, err)
	}
	return c.update(ctx, own, sc, lo, o)
}

// update rewrites the rows that pass the filter while they are being found, and commits when all of them are written.
// own is the table's schema, sc that of the rows as they are written.
func (c *Changer) update(ctx context.Context, own, sc *arrow.Schema, lo format.LoadOptions,
	o UpdateOptions) (int64, error) {
	var p *loadProof
	if !o.NoCheck {
		var err error
		if p, _, err = c.proveLoad(ctx, own, &lo, nil, c.incomparable(own, o.Set)...); err != nil {
			return 0, err
		}
	}
	var l format.Load
	rows, err := c.matching(ctx, o.Where, func(b arrow.RecordBatch) (err error) {
		if l == nil {
			if l, err = c.change.Append(ctx, c.place, sc, lo); err != nil {
				return err
			}
		}
		changed := c.withValues(sc, b, o.Set)
		defer changed.Release()
		if p != nil {
			meant := c.withValues(own, b, o.Set)
			defer meant.Release()
			p.add(meant)
		}
		return l.Write(ctx, changed)
	})
	if l == nil {
		return 0, err
	}
	if err == nil {
		_, err = c.change.Delete(ctx, c.place, rows, l)
	}
	if err != nil {
		err = errors.Join(err, l.Abort(context.WithoutCancel(ctx)))
	}
	return format.CountRows(rows), err
}

// updated returns the schema of the rows to write: columns that are set are text, which a load converts exactly.
func (c *Changer) updated(sc *arrow.Schema, values map[string]*string) (*arrow.Schema, error) {
	if len(values) == 0 {
		return nil, fault.Invalidf("nothing is to be set")
	}
	fields := slices.Clone(sc.Fields())
	for name, v := range values {
		at := fieldNamed(sc, name)
		if at < 0 {
			return nil, &SetError{Reason: fmt.Sprintf("there is no column %q", name)}
		}
		if v == nil {
			continue
		}
		switch t := fields[at].Type; t.ID() {
		case arrow.LIST, arrow.MAP, arrow.STRUCT, arrow.BINARY:
			return nil, &SetError{Column: name, Reason: fmt.Sprintf("a column of type %s can be set to null only", t)}
		}
		if err := c.change.CheckText(c.place, name, *v); err != nil {
			return nil, &SetError{Column: name, Value: v, Reason: err.Error()}
		}
		fields[at].Type = arrow.BinaryTypes.String
	}
	return arrow.NewSchema(fields, nil), nil
}

func fieldNamed(sc *arrow.Schema, name string) int { return alter.Named(sc, name) }

// withValues returns the rows of b, without position columns, with the new values.
func (c *Changer) withValues(sc *arrow.Schema, b arrow.RecordBatch, values map[string]*string) arrow.RecordBatch {
	cols := slices.Clone(b.Columns()[:sc.NumFields()])
	for name, v := range values {
		at := fieldNamed(sc, name)
		cols[at] = alter.Constant(c.Alloc, sc.Field(at).Type, v, int(b.NumRows()))
		defer cols[at].Release()
	}
	return array.NewRecordBatch(sc, cols, b.NumRows())
}

// incomparable returns the columns whose new value the builder of their type parses differently from the table, so that
// the rows read back cannot be compared.
func (c *Changer) incomparable(sc *arrow.Schema, values map[string]*string) (names []string) {
	for name, v := range values {
		if v == nil {
			continue
		}
		f := sc.Field(fieldNamed(sc, name))
		a := alter.Constant(c.Alloc, f.Type, v, 1)
		if a.IsNull(0) {
			names = append(names, f.Name)
		}
		a.Release()
	}
	return names
}
