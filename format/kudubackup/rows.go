package kudubackup

import (
	"context"
	"encoding/binary"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan"
	"stoa/vec"
)

// The operations of rows in an incremental backup: Kudu's RowAction.
const (
	actionUpsert = 0
	actionDelete = 1
)

// Overlay returns the rows of a row group that a later backup replaces or deletes and, for an incremental backup, also
// the rows that represent deletes.
func (r *reader) Overlay(ctx context.Context, g format.RowGroup, _ []int) (format.Overlay, error) {
	if len(r.chain) == 1 {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.changesKnown {
		if err := r.findChanged(ctx); err != nil {
			return nil, err
		}
		r.changesKnown = true
	}
	if rows := r.dropped[g.Part][g.Index]; len(rows) > 0 {
		return format.Drops(rows), nil
	}
	return nil, nil
}

// lastChange is the last backup with a given key, and whether it deletes the row.
type lastChange struct {
	step    int
	deleted bool
}

// keyBytes estimates the memory of a map entry, in bytes, besides its key.
const keyBytes = 96

// findChanged finds the rows that later backups change or delete: it reads the keys of the incremental backups, then
// those of all files.
func (r *reader) findChanged(ctx context.Context) error {
	last := map[string]lastChange{}
	at := fault.Span{Object: r.chain[len(r.chain)-1].dir}
	for _, f := range r.files {
		if f.step == 0 {
			continue
		}
		err := r.keys(ctx, f, func(key []byte, action int8, _, _ int64) error {
			if _, ok := last[string(key)]; !ok {
				if err := r.memory.Take(int64(len(key))+keyBytes, at, "keys of changed rows"); err != nil {
					return err
				}
			}
			last[string(key)] = lastChange{f.step, action == actionDelete}
			return nil
		})
		if err != nil {
			return err
		}
	}
	r.dropped = map[string]map[int][]int64{}
	for _, f := range r.files {
		groups := map[int][]int64{}
		err := r.keys(ctx, f, func(key []byte, _ int8, group, row int64) error {
			if x, ok := last[string(key)]; ok && (x.step > f.step || x.deleted) {
				groups[int(group)] = append(groups[int(group)], row)
				return r.memory.Take(8, at, "rows that later backups change")
			}
			return nil
		})
		if err != nil {
			return err
		}
		r.dropped[f.info.Name] = groups
	}
	return nil
}

// keys calls yield for each row of a file, with its row group and its position in that group.
func (r *reader) keys(ctx context.Context, f *file, yield func(key []byte, action int8, group, row int64) error) error {
	groups, err := f.rowGroups(ctx, format.Query{})
	if err != nil {
		return err
	}
	n := 0
	for _, c := range r.chain[len(r.chain)-1].meta.Columns {
		if c.Key {
			n++
		}
	}
	var names []string
	for _, c := range append(slices.Clone(f.cols[:n]), f.actions) {
		if c >= 0 {
			names = append(names, f.Columns()[c].Name)
		}
	}
	src := scan.Source{Reader: f.Reader, Objects: scan.NewObjects(r.tree), Dicts: scan.NewDicts(), Limits: r.limits,
		NoVerify: r.noVerify}
	defer src.Objects.Close()
	group, row := 0, int64(0)
	var key []byte
	for b, err := range scan.Run(ctx, src, scan.Spec{Columns: names, Unordered: true}, nil) {
		if err != nil {
			return err
		}
		for i := range int(b.NumRows()) {
			for group < len(groups) && row >= groups[group].Rows {
				group, row = group+1, 0
			}
			if group == len(groups) {
				return fault.Corruptf(fault.Span{Object: f.info.Name}, "", "more rows than its row groups have")
			}
			if key, err = keyOf(key[:0], b, n, i); err != nil {
				return fault.Locate(err, fault.Span{Object: f.info.Name}, false, "")
			}
			action := int8(actionUpsert)
			if f.actions >= 0 {
				a := b.Column(n).(*array.Int8)
				if action = a.Value(i); a.IsNull(i) || action != actionUpsert && action != actionDelete {
					return fault.Corruptf(fault.Span{Object: f.info.Name}, f.Columns()[f.actions].Name,
						"row %d of row group %d: expected row action %d or %d", row, group, actionUpsert, actionDelete)
				}
			}
			if err := yield(key, action, int64(groups[group].Index), row); err != nil {
				return err
			}
			row++
		}
	}
	return nil
}

// keyOf appends the first n columns of a row, so that two rows have the same bytes only if their keys are equal.
func keyOf(dst []byte, b arrow.RecordBatch, n, row int) ([]byte, error) {
	for c := range n {
		a := b.Column(c)
		if a.IsNull(row) {
			return nil, fault.Corruptf(fault.Span{}, b.ColumnName(c), "a NULL in the primary key")
		}
		switch a := a.(type) {
		case *array.String:
			dst = append(binary.AppendUvarint(dst, uint64(len(a.Value(row)))), a.Value(row)...)
		case *array.Binary:
			dst = append(binary.AppendUvarint(dst, uint64(len(a.Value(row)))), a.Value(row)...)
		case *array.Dictionary:
			return nil, fault.Unsupportedf(fault.Span{}, b.ColumnName(c), "a key of %s", a.DataType())
		default:
			t, ok := a.DataType().(arrow.FixedWidthDataType)
			if !ok || t.BitWidth()%8 != 0 {
				return nil, fault.Unsupportedf(fault.Span{}, b.ColumnName(c), "a key of %s", a.DataType())
			}
			w, at := t.BitWidth()/8, a.Data().Offset()+row
			dst = append(dst, a.Data().Buffers()[1].Bytes()[at*w:(at+1)*w]...)
		}
	}
	return dst, nil
}

// nulls is a column that was added after a backup.
type nulls struct {
	rows      vec.Range
	total, at int64
	levels    bool // of a list column
}

// nullRows is the maximum number of rows in a page without bytes.
const nullRows = 128 << 10

func (x *nulls) Next(context.Context) (format.Page, error) {
	end := min(x.rows.To, x.total)
	if x.at >= end {
		return format.Page{}, io.EOF
	}
	n := min(nullRows, end-x.at)
	p := format.Page{Ordinal: int(x.at), First: x.at, Rows: n, Entries: n}
	x.at += n
	return p, nil
}

func (x *nulls) Dict() (format.Page, bool) { return format.Page{}, false }

func (x *nulls) Decode(t *format.Task, dst *vec.Vector) error {
	dst.ExtendNulls(int(t.N))
	if x.levels {
		dst.ExtendLevels(int(t.N))
	}
	return nil
}
