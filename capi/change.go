package main

// #include "stoa.h"
import "C"

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/fault"
)

type changeRequest struct {
	Change  string            `json:"change"`
	Table   string            `json:"table"`
	Format  string            `json:"format"`
	Options map[string]string `json:"options"`
	With    json.RawMessage   `json:"with"`
	// Disable first marks what is computed from the table's rows, such as materialised views, as out of date.
	Disable bool `json:"disable_dependents"`
}

//export goChange
func goChange(request *C.char, in *C.struct_ArrowArrayStream, cancel C.stoa_t, out, fail **C.char) C.int {
	d, err := change(request, in, uint64(cancel))
	return give(out, d, err, fail)
}

func change(request *C.char, in *C.struct_ArrowArrayStream, cancel uint64) (d any, err error) {
	defer guard(&err)
	var r changeRequest
	if err := ask(request, &r); err != nil {
		return nil, err
	}
	ctx, done, err := contextOf(cancel)
	if err != nil {
		return nil, err
	}
	defer done()
	var rows array.RecordReader
	if takesRows[r.Change] {
		var release func()
		rows, release, err = rowsOf(in)
		defer release()
		if err != nil {
			return nil, err
		}
	}
	o := stoa.OpenOptions{Formats: verbs.Formats(), From: r.Format, Opts: r.Options}
	if r.Change == "create" {
		var with stoa.CreateTableOptions
		if err := r.with(&with); err != nil {
			return nil, err
		}
		return nil, stoa.CreateTable(ctx, r.Table, rows.Schema(), with, o)
	}
	do := changes[r.Change]
	if do == nil {
		return nil, fault.Invalidf("change: expected one of those in stoa.h, found %q", r.Change)
	}
	c, err := stoa.OpenChanger(ctx, r.Table, o)
	if err != nil {
		return nil, err
	}
	if r.Disable {
		var with struct {
			DryRun bool `json:"dry_run"`
		}
		if err := json.Unmarshal(r.With, &with); err != nil {
			return nil, fault.Invalidf("with: %v", err)
		}
		if _, err := c.DisableDependents(ctx, with.DryRun); err != nil {
			return nil, err
		}
	}
	return do(ctx, c, &r, rows)
}

// with parses the options of a change.
func (r *changeRequest) with(to any) error {
	if len(r.With) == 0 {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(string(r.With)))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return fault.Invalidf("with: %v", err)
	}
	return nil
}

type changeFunc func(context.Context, *stoa.Changer, *changeRequest, array.RecordReader) (any, error)

// changing makes a function for a change with options of type O.
func changing[O any](do func(context.Context, *stoa.Changer, O) (any, error)) changeFunc {
	return func(ctx context.Context, c *stoa.Changer, r *changeRequest, _ array.RecordReader) (any, error) {
		var o O
		if err := r.with(&o); err != nil {
			return nil, err
		}
		return do(ctx, c, o)
	}
}

// takesRows are the changes with a stream: of rows, or without any, for its schema.
var takesRows = map[string]bool{"append": true, "merge": true, "create": true, "add_column": true,
	"alter_column": true}

type rowsDoc struct {
	Rows int64 `json:"rows"`
}

var changes = map[string]changeFunc{
	"append": func(ctx context.Context, c *stoa.Changer, r *changeRequest, rows array.RecordReader) (any, error) {
		var o stoa.AppendOptions
		if err := r.with(&o); err != nil {
			return nil, err
		}
		return c.Append(ctx, rows.Schema(), batchesOf(ctx, rows), o)
	},
	"merge": func(ctx context.Context, c *stoa.Changer, r *changeRequest, rows array.RecordReader) (any, error) {
		var o stoa.MergeOptions
		if err := r.with(&o); err != nil {
			return nil, err
		}
		return c.Merge(ctx, rows.Schema(), batchesOf(ctx, rows), o)
	},
	"delete": changing(func(ctx context.Context, c *stoa.Changer, o stoa.DeleteOptions) (any, error) {
		n, err := c.Delete(ctx, o)
		return rowsDoc{n}, err
	}),
	"update": changing(func(ctx context.Context, c *stoa.Changer, o stoa.UpdateOptions) (any, error) {
		n, err := c.Update(ctx, o)
		return rowsDoc{n}, err
	}),
	"delete_segments": changing(func(ctx context.Context, c *stoa.Changer, o stoa.DeleteSegmentsOptions) (any, error) {
		return nil, c.DeleteSegments(ctx, o)
	}),
	"compact": changing(func(ctx context.Context, c *stoa.Changer, o stoa.CompactOptions) (any, error) {
		return c.Compact(ctx, o)
	}),
	"merge_indexes": changing(func(ctx context.Context, c *stoa.Changer, o stoa.MergeIndexesOptions) (any, error) {
		return c.MergeIndexes(ctx, o)
	}),
	"drop_column": changing(func(ctx context.Context, c *stoa.Changer, o stoa.DropColumnOptions) (any, error) {
		return nil, c.DropColumn(ctx, o)
	}),
	"clean": changing(func(ctx context.Context, c *stoa.Changer, o stoa.CleanOptions) (any, error) {
		return c.Clean(ctx, o)
	}),
	"drop": changing(func(ctx context.Context, c *stoa.Changer, o stoa.DropOptions) (any, error) {
		return c.Drop(ctx, o)
	}),
	"rename": changing(func(ctx context.Context, c *stoa.Changer, o stoa.RenameOptions) (any, error) {
		return nil, c.Rename(ctx, o)
	}),
	"truncate": changing(func(ctx context.Context, c *stoa.Changer, o stoa.TruncateOptions) (any, error) {
		return c.Truncate(ctx, o)
	}),
	"set_properties": changing(func(ctx context.Context, c *stoa.Changer, o stoa.SetPropertiesOptions) (any, error) {
		return nil, c.SetProperties(ctx, o)
	}),
	"add_partition": changing(func(ctx context.Context, c *stoa.Changer, o stoa.PartitionOptions) (any, error) {
		return c.AddPartition(ctx, o)
	}),
	"drop_partition": changing(func(ctx context.Context, c *stoa.Changer, o stoa.PartitionOptions) (any, error) {
		return c.DropPartition(ctx, o)
	}),
	"add_segment": changing(func(ctx context.Context, c *stoa.Changer, o stoa.AddSegmentOptions) (any, error) {
		return c.AddSegment(ctx, o)
	}),
	"add_column": ofColumn(func(ctx context.Context, c *stoa.Changer, f *arrow.Field, o stoa.AddColumnOptions) error {
		if f == nil {
			return fault.Invalidf("add_column: expected one column, found none")
		}
		return c.AddColumn(ctx, *f, o)
	}),
	"alter_column": ofColumn(func(ctx context.Context, c *stoa.Changer, f *arrow.Field,
		o stoa.AlterColumnOptions) error {
		o.Type = f
		return c.AlterColumn(ctx, o)
	}),
}

// ofColumn makes a function for a change of a column, whose type is that of the stream's only column; nil: there is
// none.
func ofColumn[O any](do func(context.Context, *stoa.Changer, *arrow.Field, O) error) changeFunc {
	return func(ctx context.Context, c *stoa.Changer, r *changeRequest, rows array.RecordReader) (any, error) {
		var o O
		if err := r.with(&o); err != nil {
			return nil, err
		}
		var f *arrow.Field
		switch fields := rows.Schema().Fields(); len(fields) {
		case 0:
		case 1:
			f = &fields[0]
		default:
			return nil, fault.Invalidf("%s: expected one column, found %d", r.Change, len(fields))
		}
		return nil, do(ctx, c, f, o)
	}
}
