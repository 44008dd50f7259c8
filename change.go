package stoa

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/address"
	"stoa/internal/alter"
	"stoa/internal/settle"
	"stoa/internal/workcopy"
	"stoa/store"
)

// Changer changes one table in place, as far as its format can: anything else is an error of class fault.Unsupported
// that names the format and the change. Concurrent readers see each change as one step. Concurrent changes of a table,
// including those by other programs, are serialized by the format's own locks.
//
// Every change has a dry run: it reports what would be done, checks it as far as possible without writing, and leaves
// the table unchanged. Options are plain structs that marshal to JSON.
type Changer struct {
	*tableChanges
	Alloc memory.Allocator // of the batches that changes read; nil = Go's

	name   string
	place  format.TablePlace
	format *format.Format
	change format.Changer
	o      OpenOptions
}

// OpenError reports why a table that a change has to read first could not be opened.
type OpenError struct{ Err error }

func (e *OpenError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *OpenError) Unwrap() error { return e.Err }

// OpenChanger finds a table to change: PATH, or PATH#TABLE, as its format names tables. It uses Formats, From, Tree,
// Opts and Limits of o. A table that exceeds Limits is not changed. Of a table at an address, a change makes a working
// copy, and is refused if another program has changed the table when it would become visible.
func OpenChanger(ctx context.Context, name string, o OpenOptions) (*Changer, error) {
	name, o, err := o.placedOne(ctx, name)
	if err != nil {
		return nil, err
	}
	var first error
	for i := range o.formats() {
		f := &o.formats()[i]
		if f.Change == nil || f.Change.Locate == nil || o.From != "" && f.Name != o.From {
			continue
		}
		p, err := f.Change.Locate(ctx, o.tree(), name, false)
		how, tree := f, o.Tree
		if err == nil {
			how, tree, err = workcopy.For(o.tree(), p, f, workcopy.Options{SingleWriter: o.SingleWriter})
		}
		if err == nil {
			f, o.Tree = how, tree
			p.External = has(o.Opts, f.Change.External)
			c := &Changer{tableChanges: alter.New(name, p, f), name: name, place: p, format: f, change: *f.Change, o: o}
			return c.within(ctx)
		}
		if first == nil {
			first = err
		}
	}
	f, err := Probe(ctx, format.Target{Tree: o.tree(), Name: placeOf(ctx, name, o)}, o)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil && f.Change == nil: // readable but not changeable: each change reports that it is unsupported
		p := format.TablePlace{Dir: name}
		return &Changer{tableChanges: alter.New(name, p, f), name: name, place: p, format: f, o: o}, nil
	case first != nil && !errors.Is(err, fs.ErrNotExist): // a path that does not exist is not a table of another format
		return nil, first
	case err != nil:
		return nil, err
	}
	return nil, fault.Unsupportedf(fault.Span{Object: name}, "", "%s tables are not changed in place", f.Name)
}

// within returns c, or an error if opening its table exceeds the limits that were given. Any other fault of the table
// is reported by the changes that it prevents.
func (c *Changer) within(ctx context.Context) (*Changer, error) {
	if c.o.Limits == (format.Limits{}) { // changes read the table within the default limits anyway
		return c, nil
	}
	t, err := c.open(ctx, nil)
	switch {
	case err == nil:
		return c, t.Close()
	case fault.OverBudget(err):
		return nil, err
	}
	return c, ctx.Err()
}

// has reports whether some is not empty and opts contains all of it.
func has(opts, some map[string]string) bool {
	for k, v := range some {
		if opts[k] != v {
			return false
		}
	}
	return len(some) > 0
}

// placeOf returns the place of PATH#TABLE, without the table.
func placeOf(ctx context.Context, name string, o OpenOptions) string {
	if i := store.TableIn(ctx, o.tree(), name); i >= 0 {
		if _, err := o.tree().Stat(ctx, name); err != nil {
			return name[:i]
		}
	}
	return name
}

// Format returns the name of the table's format.
func (c *Changer) Format() string { return c.format.Name }

// Place returns where the table is.
func (c *Changer) Place() format.TablePlace { return c.place }

// Open opens the table in its current state. Formats, From, Tree and Limits of o are ignored in favour of the
// Changer's, and what the Changer follows outside of the table's directory is followed as well.
func (c *Changer) Open(ctx context.Context, o OpenOptions) (*Table, error) {
	o.From, o.Formats, o.Tree, o.Limits = c.format.Name, c.o.Formats, c.o.Tree, c.o.Limits
	if c.place.External {
		opts := maps.Clone(c.change.External)
		maps.Copy(opts, o.Opts)
		o.Opts = opts
	}
	t, err := OpenAll(ctx, []string{c.place.Dir}, o)
	if err != nil {
		return nil, &OpenError{err}
	}
	return t, nil
}

// open opens the table for a change, with these reading options.
func (c *Changer) open(ctx context.Context, opts map[string]string) (*Table, error) {
	o := c.o
	o.Opts, o.Typed = opts, nil
	for try := 0; ; try++ {
		t, err := c.Open(ctx, o)
		if err == nil || !workcopy.Again(ctx, c.o.Tree, err, try) {
			return t, err
		}
	}
}

// can returns an error if the format does not support a change; what names it, such as "drop tables".
func (c *Changer) can(does bool, what string, dry bool) error {
	return alter.Check(c.tableChanges, does, what, dry)
}

func cannot(name string, f *format.Format, what string) error {
	return alter.Cannot(name, f.Name, what)
}

// CreateTableOptions are the options of CreateTable.
type CreateTableOptions struct {
	format.TableSpec
	DryRun bool `json:"dry_run,omitempty"`
}

// CreateTable creates an empty table that can be changed afterwards, with the columns of sc, in the format that o.From
// names or else the first of o.Formats that has such tables. (Create writes a whole table at once, in any format.)
func CreateTable(ctx context.Context, name string, sc *arrow.Schema, c CreateTableOptions, o OpenOptions) error {
	name, o, err := o.placedOne(ctx, name)
	if err != nil {
		return err
	}
	formats := o.formats()
	for i := range formats {
		f := &formats[i]
		switch {
		case o.From != "" && f.Name != o.From:
			continue
		case f.Change != nil && f.Change.Create != nil && f.Change.Locate != nil:
			p, err := f.Change.Locate(ctx, o.tree(), name, true)
			if err == nil {
				f, _, err = workcopy.For(o.tree(), p, f, workcopy.Options{SingleWriter: o.SingleWriter})
			}
			if err != nil {
				return err
			}
			return f.Change.Create(ctx, p, sc, c.TableSpec, c.DryRun)
		case o.From != "":
			return cannot(name, f, "create tables that are changed in place")
		}
	}
	if o.From != "" {
		return fault.Invalidf("there is no format %q", o.From)
	}
	return fault.Unsupportedf(fault.Span{Object: name}, "",
		"no format of these creates tables that are changed in place")
}

// tableChanges are the changes that need no rows.
type tableChanges = alter.Table

// Options of the changes that need no rows.
type (
	AddColumnOptions      = alter.AddColumnOptions
	AddSegmentOptions     = alter.AddSegmentOptions
	AlterColumnOptions    = alter.AlterColumnOptions
	CleanOptions          = alter.CleanOptions
	DeleteSegmentsOptions = alter.DeleteSegmentsOptions
	DropColumnOptions     = alter.DropColumnOptions
	DropOptions           = alter.DropOptions
	MergeIndexesOptions   = alter.MergeIndexesOptions
	PartitionOptions      = alter.PartitionOptions
	SetPropertiesOptions  = alter.SetPropertiesOptions
	TruncateOptions       = alter.TruncateOptions
)

// RenameOptions are the options of Rename.
type RenameOptions struct {
	To     string `json:"to"` // PATH, or PATH#TABLE, which must not exist
	DryRun bool   `json:"dry_run,omitempty"`
}

// Rename moves the table to another name, which the Changer then refers to.
func (c *Changer) Rename(ctx context.Context, o RenameOptions) error {
	if err := address.CheckMovable(o.To); err != nil {
		return err
	}
	to := format.TablePlace{Dir: o.To}
	if c.change.Locate != nil {
		var err error
		if to, err = c.change.Locate(ctx, c.o.tree(), o.To, true); err != nil {
			return err
		}
		to.External, to.Disabled = c.place.External, c.place.Disabled
	}
	if err := c.Move(ctx, to, o.DryRun); err != nil || o.DryRun {
		return err
	}
	c.name, c.place, c.tableChanges = o.To, to, alter.New(o.To, to, c.format)
	return nil
}

// DisableDependents marks whatever is computed from the rows of the table, such as materialised views, as out of date,
// and returns the names. Afterwards c can make the changes that these dependents would otherwise prevent. After a dry
// run, which disables nothing, c can only make dry runs: open another Changer for the changes themselves.
func (c *Changer) DisableDependents(ctx context.Context, dry bool) ([]string, error) {
	if c.change.DisableDependents == nil {
		return nil, cannot(c.name, c.format, "disable what depends on a table")
	}
	names, err := c.change.DisableDependents(ctx, c.place, dry)
	if err != nil {
		return names, err
	}
	c.place.Disabled = true
	if dry {
		c.tableChanges = alter.AfterDryRun(c.tableChanges, c.place)
	} else {
		c.tableChanges = alter.New(c.name, c.place, c.format)
	}
	return names, nil
}

// locked calls change while holding the table's lock, which keeps out other deletes, updates and compactions. A dry run
// does not take the lock.
func (c *Changer) locked(ctx context.Context, dry bool, change func() error) error {
	if !dry {
		unlock, err := c.change.Lock(ctx, c.place)
		if err != nil {
			return err
		}
		defer unlock()
	}
	return change()
}

// CompactOptions are the options of Compact.
type CompactOptions struct {
	format.CompactOptions
	DryRun bool `json:"dry_run,omitempty"`

	Done func(format.Compaction) `json:"-"` // called for each compaction as soon as it is committed; may be nil
}

// Compact merges several segments into one, without deleted rows. It returns the compactions that were made, including
// those made before an error. A minor compaction continues until nothing is left to do; its dry run returns only the
// first round.
func (c *Changer) Compact(ctx context.Context, o CompactOptions) (done []format.Compaction, err error) {
	if err := c.can(c.change.PlanCompaction != nil && c.change.Compact != nil, "compact segments",
		o.DryRun); err != nil {
		return nil, err
	}
	if o.DryRun {
		return c.change.PlanCompaction(c.place, o.CompactOptions)
	}
	unlock, err := c.change.Lock(ctx, c.place)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for {
		plan, err := c.change.PlanCompaction(c.place, o.CompactOptions)
		if err != nil || len(plan) == 0 {
			return done, err
		}
		for _, x := range plan {
			if x.To, err = c.compact(ctx, x, o.Major); err != nil {
				return done, err
			}
			if done = append(done, x); o.Done != nil {
				o.Done(x)
			}
		}
		if o.Major || o.Streams || o.Segments != nil { // only the results of a minor compaction may be compacted again
			return done, nil
		}
	}
}

// compact makes a compaction, and returns the name of the segment with the rows.
func (c *Changer) compact(ctx context.Context, x format.Compaction, major bool) (to string, err error) {
	t, err := c.open(ctx, c.change.Only(x.From))
	if err != nil {
		return "", err
	}
	defer t.Close()
	l, err := c.change.Compact(ctx, c.place, t.Schema(), x, major)
	if err != nil {
		return "", err
	}
	err = fill(ctx, l, t.Scan(ctx, ScanSpec{Alloc: c.Alloc}), func() error {
		sum, err := l.Close(ctx)
		to = cmp.Or(sum.Segment, x.To)
		return err
	})
	return to, err
}

// Segments lists the segments of a table, PATH or PATH#TABLE, in the order in which they were made. It returns an error
// of class Unsupported for a format without segments.
func Segments(ctx context.Context, name string, o OpenOptions) ([]format.Segment, error) {
	place := placeOf(ctx, name, o)
	f, err := Probe(ctx, format.Target{Tree: o.tree(), Name: place}, o)
	if err != nil {
		return nil, err
	}
	if f.Change == nil || f.Change.Segments == nil {
		return nil, cannot(name, f, "list segments")
	}
	t := format.Target{Tree: o.tree(), Name: place, Table: strings.TrimPrefix(name[len(place):], "#")}
	return f.Change.Segments(ctx, t, format.OpenOptions{Limits: o.Limits, NoVerify: o.NoVerify, Opts: o.opts()})
}

// Home returns the place of the tables whose names begin with #, according to the reading options o.Opts.
func Home(ctx context.Context, o OpenOptions) (string, error) {
	for _, f := range o.formats() {
		if f.Home != nil && (o.From == "" || o.From == f.Name) {
			return f.Home(ctx, o.tree(), o.opts())
		}
	}
	return "", fault.Unsupportedf(fault.Span{Object: "#"}, "",
		"no format of these has settings that name a place of tables")
}

// InUse returns an error of class Invalid if a server is running on the place, unless o.Opts acknowledge that: files
// that the server is writing would look damaged.
func InUse(ctx context.Context, name string, o OpenOptions) error {
	for _, f := range o.formats() {
		if f.InUse == nil {
			continue
		}
		if err := f.InUse(ctx, format.Target{Tree: o.tree(), Name: name, Opts: o.opts()}); err != nil {
			return err
		}
	}
	return nil
}

// Listing returns the listing with this name (see format.Format.Listings) from one of the formats of o.
func Listing(name string, o OpenOptions) (format.Listing, error) {
	for _, f := range o.formats() {
		for _, l := range f.Listings {
			if l.Name == name {
				return l, nil
			}
		}
	}
	return format.Listing{}, fmt.Errorf("no format lists %s", name)
}

// MergeOptions are the options of Merge.
type MergeOptions struct {
	AppendOptions
	Key []string `json:"key"` // the columns that identify a row
}

// MergeResult reports what Merge did.
type MergeResult struct {
	AppendResult
	Replaced int64 `json:"replaced"` // rows of the table that were replaced
	Added    int64 `json:"added"`    // rows whose key was not in the table
}

// Merge adds rows to the table and replaces those that have the same values in the key columns. It is one change: after
// an error the table is unchanged. The rows need every column of the table, and no key may occur twice; a key with a
// null equals no other key. The keys of all rows are kept in memory.
func (c *Changer) Merge(ctx context.Context, sc *arrow.Schema, rows iter.Seq2[arrow.RecordBatch, error],
	o MergeOptions) (out MergeResult, err error) {
	if err := c.can(c.change.Delete != nil && c.change.Append != nil, "merge rows", o.DryRun); err != nil {
		return out, err
	}
	if o.Overwrite || o.Bad != BadFail {
		return out, fault.Invalidf("rows that are merged do not take the place of all, and none is left out")
	}
	err = c.locked(ctx, o.DryRun, func() error {
		out, err = c.merge(ctx, sc, rows, o)
		return err
	})
	return out, err
}

func (c *Changer) merge(ctx context.Context, sc *arrow.Schema, rows iter.Seq2[arrow.RecordBatch, error],
	o MergeOptions) (out MergeResult, err error) {
	sc, rows = settle.Rows(sc, nil, rows, c.Alloc)
	t, err := c.open(ctx, nil)
	if err != nil {
		return out, err
	}
	own := t.Schema()
	if err := t.Close(); err != nil {
		return out, err
	}
	if err := alter.CheckMerge(own, sc, o.Key, c.name); err != nil {
		return out, err
	}
	keys := &alter.Keys{Columns: o.Key, Seen: map[string]bool{}}
	lo := format.LoadOptions{Opts: format.MergeOptions(o.Opts, o.Typed), Tasks: o.Tasks, Dictionary: o.Dictionary}
	if o.DryRun {
		out.Rows, err = c.addDry(ctx, sc, keys.Of(rows), lo)
		if err == nil {
			err = c.replace(ctx, keys, nil, &out)
		}
		return out, err
	}
	err = c.addRows(ctx, sc, keys.Of(rows), lo, o.NoCheck, &out.AppendResult, func(l format.Load) error {
		return c.replace(ctx, keys, l, &out)
	})
	return out, err
}

// replace deletes the rows with the keys and, in the same change, adds those written to l; if l is nil, it counts them.
func (c *Changer) replace(ctx context.Context, keys *alter.Keys, l format.Load, out *MergeResult) error {
	old, err := c.rowsWith(ctx, keys)
	if l == nil {
		_, err = c.wouldDelete(ctx, old, err)
	} else if err == nil {
		_, err = c.change.Delete(ctx, c.place, old, l)
	}
	out.Replaced, out.Added = format.CountRows(old), out.Rows-keys.Found
	return err
}

// rowsWith finds the rows of the table whose keys are in k.
func (c *Changer) rowsWith(ctx context.Context, k *alter.Keys) (out []format.RowsOfFile, err error) {
	t, err := c.open(ctx, c.change.Positions)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	columns := append([]string{}, c.change.PositionColumns[:]...)
	for _, name := range k.Columns {
		columns = append(columns, t.Schema().Field(fieldNamed(t.Schema(), name)).Name)
	}
	for b, err := range t.Scan(ctx, ScanSpec{Alloc: c.Alloc, Columns: columns}) {
		if err != nil {
			return nil, err
		}
		out = k.Find(out, b)
	}
	return out, nil
}
