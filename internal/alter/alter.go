// Package alter implements the changes of a table that do not read its rows: to its columns, properties, partitions and
// whole segments. Package stoa's Changer exposes them as its own methods.
package alter

import (
	"cmp"
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
)

// Table is a table that is changed by the functions of its format. A change that the format does not support is
// Unsupported.
type Table struct {
	name   string
	place  format.TablePlace
	format string
	change format.Changer

	dryOnly bool // see AfterDryRun
}

// New returns the table called name at place p, of format f.
func New(name string, p format.TablePlace, f *format.Format) *Table {
	t := &Table{name: name, place: p, format: f.Name}
	if f.Change != nil {
		t.change = *f.Change
	}
	return t
}

// AfterDryRun returns t at place p, restricted to dry runs, because p is the result of a change that was itself only a
// dry run.
func AfterDryRun(t *Table, p format.TablePlace) *Table {
	out := *t
	out.place, out.dryOnly = p, true
	return &out
}

// Check returns an error if a change of t, such as "drop tables", is impossible: the format does not support it, or it
// is not a dry run and only dry runs are possible.
func Check(t *Table, does bool, what string, dry bool) error {
	switch {
	case !does:
		return Cannot(t.name, t.format, what)
	case t.dryOnly && !dry:
		return fault.Invalidf("%s: expected a dry run, as that of DisableDependents before disabled nothing: open "+
			"another "+
			"Changer for the change itself", t.name)
	}
	return nil
}

// Cannot returns the error for a change that a format does not support.
func Cannot(name, format, what string) error {
	return fault.Unsupportedf(fault.Span{Object: name}, "", "format %s cannot %s", format, what)
}

// locked calls change while holding the table's lock, which excludes other deletes, updates and compactions; a dry run
// holds no lock.
func (t *Table) locked(ctx context.Context, dry bool, change func() error) error {
	if !dry {
		unlock, err := t.change.Lock(ctx, t.place)
		if err != nil {
			return err
		}
		defer unlock()
	}
	return change()
}

// DropOptions are the options of Drop.
type DropOptions struct {
	DryRun bool `json:"dry_run,omitempty"`
}

// Drop removes the table with all its files.
func (t *Table) Drop(ctx context.Context, o DropOptions) (format.Dropped, error) {
	if err := Check(t, t.change.Drop != nil, "drop tables", o.DryRun); err != nil {
		return format.Dropped{}, err
	}
	return t.change.Drop(ctx, t.place, o.DryRun)
}

// AddColumnOptions are the options of AddColumn.
type AddColumnOptions struct {
	Default *string `json:"default,omitempty"` // value of existing rows, as text; nil for null
	DryRun  bool    `json:"dry_run,omitempty"`
}

// AddColumn adds a column to the table.
func (t *Table) AddColumn(ctx context.Context, f arrow.Field, o AddColumnOptions) error {
	if f.Name == "" || f.Type == nil {
		return fault.Invalidf("a new column needs a name and a type, got %q and %v", f.Name, f.Type)
	}
	if err := Check(t, t.change.AddColumn != nil, "add columns", o.DryRun); err != nil {
		return err
	}
	return t.change.AddColumn(ctx, t.place, f, o.Default, o.DryRun)
}

// DropColumnOptions are the options of DropColumn.
type DropColumnOptions struct {
	Column string `json:"column"`
	DryRun bool   `json:"dry_run,omitempty"`
}

// DropColumn removes a column from the table.
func (t *Table) DropColumn(ctx context.Context, o DropColumnOptions) error {
	if err := Check(t, t.change.DropColumn != nil, "drop columns", o.DryRun); err != nil {
		return err
	}
	return t.change.DropColumn(ctx, t.place, o.Column, o.DryRun)
}

// AlterColumnOptions are the options of AlterColumn.
type AlterColumnOptions struct {
	format.ColumnChange
	DryRun bool `json:"dry_run,omitempty"`
}

// AlterColumn changes the name of a column, or its type to one that can represent all values of the present type. No
// data file is touched.
func (t *Table) AlterColumn(ctx context.Context, o AlterColumnOptions) error {
	if err := Check(t, t.change.AlterColumn != nil, "change columns", o.DryRun); err != nil {
		return err
	}
	return t.change.AlterColumn(ctx, t.place, o.ColumnChange, o.DryRun)
}

// SetPropertiesOptions are the options of SetProperties.
type SetPropertiesOptions struct {
	Properties map[string]*string `json:"properties"` // a nil value removes the property
	DryRun     bool               `json:"dry_run,omitempty"`
}

// SetProperties sets and removes properties of the table.
func (t *Table) SetProperties(ctx context.Context, o SetPropertiesOptions) error {
	if err := Check(t, t.change.SetProperties != nil, "set properties", o.DryRun); err != nil {
		return err
	}
	return t.change.SetProperties(ctx, t.place, o.Properties, o.DryRun)
}

// Move moves the table to another place, which must be empty. To go on, the caller makes another Table of that place.
func (t *Table) Move(ctx context.Context, to format.TablePlace, dry bool) error {
	if err := Check(t, t.change.Rename != nil, "rename tables", dry); err != nil {
		return err
	}
	return t.locked(ctx, dry, func() error { return t.change.Rename(ctx, t.place, to, dry) })
}

// TruncateOptions are the options of Truncate.
type TruncateOptions struct {
	DryRun bool `json:"dry_run,omitempty"`
}

// Truncate removes all rows of the table by removing whole segments, and returns their names; Clean removes their
// files.
func (t *Table) Truncate(ctx context.Context, o TruncateOptions) (names []string, err error) {
	if err := Check(t, t.change.Truncate != nil, "remove all rows", o.DryRun); err != nil {
		return nil, err
	}
	err = t.locked(ctx, o.DryRun, func() error {
		names, err = t.change.Truncate(ctx, t.place, o.DryRun)
		return err
	})
	return names, err
}

// PartitionOptions are the options of AddPartition and DropPartition.
type PartitionOptions struct {
	Partition format.PartitionValues `json:"partition"`
	// Location is a directory of data files that becomes the partition; if it is "", AddPartition makes an empty one.
	Location string `json:"location,omitempty"`
	DryRun   bool   `json:"dry_run,omitempty"`
}

// AddPartition adds a partition, either empty or with the data files of a directory. It returns the segment of these
// files.
func (t *Table) AddPartition(ctx context.Context, o PartitionOptions) (string, error) {
	if err := Check(t, t.change.AddPartition != nil, "add partitions", o.DryRun); err != nil {
		return "", err
	}
	return t.change.AddPartition(ctx, t.place, o.Partition, o.Location, o.DryRun)
}

// DropPartition removes the rows of all partitions that have the values.
func (t *Table) DropPartition(ctx context.Context, o PartitionOptions) (out format.DroppedPartitions, err error) {
	if err := Check(t, t.change.DropPartition != nil, "drop partitions", o.DryRun); err != nil {
		return out, err
	}
	err = t.locked(ctx, o.DryRun, func() error {
		out, err = t.change.DropPartition(ctx, t.place, o.Partition, o.DryRun)
		return err
	})
	return out, err
}

// AddSegmentOptions are the options of AddSegment.
type AddSegmentOptions struct {
	format.NewSegment
	DryRun bool `json:"dry_run,omitempty"`
}

// AddSegment makes the files of a directory a segment of the table, and returns its name. The files are not copied and
// must remain where they are.
func (t *Table) AddSegment(ctx context.Context, o AddSegmentOptions) (string, error) {
	if err := Check(t, t.change.AddSegment != nil, "add segments", o.DryRun); err != nil {
		return "", err
	}
	return t.change.AddSegment(ctx, t.place, o.NewSegment, o.DryRun)
}

// DeleteSegmentsOptions are the options of DeleteSegments.
type DeleteSegmentsOptions struct {
	Segments []string `json:"segments"`
	DryRun   bool     `json:"dry_run,omitempty"`
}

// DeleteSegments removes whole segments from the table; Clean removes their files. At least one must be named, even in
// a dry run.
func (t *Table) DeleteSegments(ctx context.Context, o DeleteSegmentsOptions) error {
	if err := Check(t, t.change.DeleteSegments != nil, "delete segments", o.DryRun); err != nil {
		return err
	}
	if len(o.Segments) == 0 {
		return fault.Invalidf("delete segments of %s: expected at least one segment, found none", t.name)
	}
	return t.change.DeleteSegments(ctx, t.place, o.Segments, o.DryRun)
}

// MergeIndexesOptions are the options of MergeIndexes.
type MergeIndexesOptions struct {
	Segments []string `json:"segments,omitempty"` // nil for all valid segments
	DryRun   bool     `json:"dry_run,omitempty"`
}

// MergeIndexes merges the index files of each segment into one. No row changes.
func (t *Table) MergeIndexes(ctx context.Context, o MergeIndexesOptions) (format.IndexMerge, error) {
	if err := Check(t, t.change.MergeIndexes != nil, "merge indexes", o.DryRun); err != nil {
		return format.IndexMerge{}, err
	}
	return t.change.MergeIndexes(ctx, t.place, o.Segments, o.DryRun)
}

// CleanOptions are the options of Clean.
type CleanOptions struct {
	DryRun bool `json:"dry_run,omitempty"`
	// OlderThan is the least age of files that are removed from a table in a remote store, where a writer that has not
	// committed yet holds no lock: 0 means 24 hours. Elsewhere it does nothing.
	OlderThan time.Duration `json:"older_than,omitempty"`
}

// Clean removes files that no longer belong to the table: deleted or compacted segments, and leftovers of interrupted
// changes. After an error the result lists what had been removed before it.
func (t *Table) Clean(ctx context.Context, o CleanOptions) (format.Cleaned, error) {
	if err := Check(t, t.change.Clean != nil, "clean tables", o.DryRun); err != nil {
		return format.Cleaned{}, err
	}
	p := t.place
	p.Kept = time.Now().Add(-cmp.Or(o.OlderThan, 24*time.Hour))
	return t.change.Clean(ctx, p, o.DryRun)
}

// Then calls the check that follows another one, if there is one.
func Then(ctx context.Context, next func(ctx context.Context, segment string) error, segment string) error {
	if next == nil {
		return nil
	}
	return next(ctx, segment)
}
