package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/format/carbon"
	"stoa/pred"
)

// The verbs that change tables are for CarbonData: its tables are directories that grow by segments.

// carbonPlace is the directory of a table that PATH names, and of its store: STORE#DATABASE.TABLE, STORE#TABLE, which means
// default.TABLE, or the table's own directory.
func carbonPlace(arg string) (dir, store string, err error) {
	store, table, ok := strings.Cut(arg, "#")
	if !ok {
		return strings.TrimSuffix(arg, "/"), "", nil
	}
	if store == "" {
		store = "."
	}
	parts := strings.Split(strings.ToLower(table), ".")
	switch {
	case len(parts) > 2 || parts[0] == "" || parts[len(parts)-1] == "" || strings.ContainsAny(table, `/\`):
		return "", "", wrongUse("%s names no table: STORE#DATABASE.TABLE is wanted", arg)
	case len(parts) == 2:
		return filepath.Join(store, parts[0], parts[1]), store, nil
	}
	if dir := filepath.Join(store, parts[0]); isCarbonTable(dir) { // as Spark has those of its default database
		return dir, store, nil
	}
	return filepath.Join(store, "default", parts[0]), store, nil
}

func isCarbonTable(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "Metadata", "schema"))
	return err == nil
}

// existingTable is carbonPlace of a table that is there.
func existingTable(arg string) (dir, store string, err error) {
	if dir, store, err = carbonPlace(arg); err == nil && !isCarbonTable(dir) {
		err = fmt.Errorf("%s is no CarbonData table: %s is not there", arg, filepath.Join(dir, "Metadata", "schema"))
	}
	return dir, store, err
}

// openCarbon opens a table that is to be changed.
func (a *app) openCarbon(ctx context.Context, dir string, opts map[string]string) (*stoa.Table, error) {
	return a.openAll(ctx, []string{dir}, stoa.OpenOptions{Formats: a.formats, From: "carbon", Opts: opts})
}

// fill gives a load the rows of a scan and closes it; after an error nothing of it is left.
func fill(ctx context.Context, l *carbon.Load, rows batches) (carbon.LoadSummary, error) {
	for b, err := range rows {
		if err == nil {
			err = l.Write(ctx, b)
		}
		if err != nil {
			return carbon.LoadSummary{}, errors.Join(err, l.Abort(context.WithoutCancel(ctx)))
		}
	}
	s, err := l.Close(ctx)
	if err != nil {
		err = errors.Join(err, l.Abort(context.WithoutCancel(ctx)))
	}
	return s, err
}

// matching finds the rows of a table that pass a filter: where they are, and for an update also what they hold.
func (a *app) matching(ctx context.Context, dir, where string, keep func(b arrow.RecordBatch) error) ([]carbon.Deleted, error) {
	if strings.TrimSpace(where) == "" {
		return nil, &useError{"--where says which rows; it is missing", `--where true means all of them`}
	}
	filter, err := pred.Parse(where)
	if err != nil {
		return nil, err
	}
	t, err := a.openCarbon(ctx, dir, map[string]string{"positions": "true"})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	spec := stoa.ScanSpec{Alloc: pool, Filter: filter}
	if keep == nil {
		spec.Columns = []string{carbon.FileColumn, carbon.RowColumn}
	}
	var out []carbon.Deleted
	for b, err := range t.Scan(ctx, spec) {
		if err != nil {
			return nil, err
		}
		n := int(b.NumCols())
		files, rows := b.Column(n-2).(*array.String), b.Column(n-1).(*array.Int64)
		for i := range int(b.NumRows()) {
			if k := len(out); k == 0 || out[k-1].File != files.Value(i) {
				out = append(out, carbon.Deleted{File: strings.Clone(files.Value(i))})
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

// deletedRows are how many rows a list of deletes has.
func deletedRows(list []carbon.Deleted) (n int64) {
	for _, d := range list {
		n += int64(len(d.Rows))
	}
	return n
}

// withOption adds an option.
func withOption(opts map[string]string, key string, v int64) map[string]string {
	if opts == nil {
		opts = map[string]string{}
	}
	opts[key] = fmt.Sprint(v)
	return opts
}
