package table

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"stoa/fault"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"
	"stoa/internal/thrift"
)

// adoptIDs checks that the schema is that of the data files: these name their columns by ids, and an id that the schema
// never had is damage of one of the two. If no file fits, the schema is damaged, and gets the files' ids for columns of
// the same name and type.
func (t *Managed) adoptIDs(ctx context.Context) error {
	names, err := FilesBelow(ctx, t.Tree, t.Path, maxPartitions)
	if err != nil {
		return err
	}
	// columns by ids that the schema does not know; all ids of the files
	strange, has := map[string]*schema.Column{}, map[string]bool{}
	for _, name := range names {
		f, err := datafile.OpenFile(ctx, t.Tree, name, t.Opts)
		if err != nil && !errors.Is(err, fault.Corrupt) {
			return err
		}
		if err != nil {
			continue // reported when it is read
		}
		if t.Belongs(f) == nil {
			return nil
		}
		for _, r := range f.Roots {
			if has[r.Id] = true; !t.Ids[r.Id] {
				strange[r.Id] = r
			}
		}
	}
	for _, id := range layout.Sorted(strange) {
		r := strange[id]
		for _, c := range t.Roots {
			if strings.EqualFold(c.Name, r.Name) && c.Typ == r.Typ && !has[c.Id] {
				at := fault.Span{Object: path.Join(t.Path, "Metadata", "schema")}
				t.saved.Emit(layout.Findingf("carbon.schema.damaged", at, t.Path,
					"column %s has the id %s, and in all data files %s: these are right", c.Name, c.Id, id))
				c.Id, t.Ids[id], has[id] = id, true, true
				break
			}
		}
	}
	return nil
}

// drifted is an error if the columns are not those that the schema's history leads to: a column with a damaged id would
// be missing from all files, and its default taken for its values. Recovery reports it, and takes the id of the history
// if the files have that one and not the other. Of two different defaults it takes neither: the cells of files without
// the column are lost.
func (t *Managed) drifted(ctx context.Context, at fault.Span) error {
	drifts := t.TableSchema.Drifts()
	if len(drifts) == 0 {
		return nil
	}
	why := func(d layout.Drift) error {
		return fault.Corruptf(at, "schema.schema_evolution", "column %s: %s", d.Past.Name, d.Why)
	}
	if t.saved == nil {
		return why(drifts[0])
	}
	has, err := t.fileIDs(ctx)
	if err != nil {
		return err
	}
	for _, d := range drifts {
		t.saved.Emit(layout.Findingf("carbon.schema.damaged", at, t.Path, "%v", why(d)))
		if d.Default { // which of the two is right is not known: the cells with it are lost
			if t.doubted == nil {
				t.doubted = map[string]error{}
			}
			t.doubted[d.Past.Id] = why(d)
		}
		for i := range t.TableSchema.Columns {
			c := &t.TableSchema.Columns[i]
			if d.At < 0 && strings.EqualFold(c.Name, d.Past.Name) && c.Typ == d.Past.Typ && has[d.Past.Id] &&
				!has[c.Id] {
				c.Id = d.Past.Id
			}
		}
	}
	return nil
}

// fileIDs are the ids of the columns of all data files that can be opened.
func (t *Managed) fileIDs(ctx context.Context) (map[string]bool, error) {
	names, err := FilesBelow(ctx, t.Tree, t.Path, maxPartitions)
	has := map[string]bool{}
	for _, name := range names {
		f, err := datafile.OpenFile(ctx, t.Tree, name, t.Opts)
		if err != nil && !errors.Is(err, fault.Corrupt) {
			return nil, err
		}
		if err != nil {
			continue // reported when it is read
		}
		for _, r := range f.Roots {
			has[r.Id] = true
		}
	}
	return has, err
}

// readSchema reads Metadata/schema.
func (t *Managed) readSchema(ctx context.Context) error {
	name := path.Join(t.Path, "Metadata", "schema")
	obj, err := layout.OpenObject(ctx, t.Tree, name, t.Opts.Limits)
	if errors.Is(err, fs.ErrNotExist) {
		is, err := isTable(ctx, t.Tree, t.Path)
		if err != nil {
			return err
		}
		if !is {
			return fault.Corruptf(fault.Span{Object: name}, "", "it looks like a partitioned table (data files "+
				"of segments in directories NAME=VALUE), but its schema is missing")
		}
		return fault.Corruptf(fault.Span{Object: name}, "", "the table has segments, but its schema is missing")
	}
	if err != nil {
		return err
	}
	b, err := obj.Read(ctx, 0, obj.At.Len, "schema")
	if err != nil {
		return err
	}
	c := obj.Cursor(b, obj.At, "schema")
	t.TableSchema = layout.ParseTableInfo(thrift.NewReader(c, thrift.Compact), "")
	if c.Err() != nil {
		return c.Err()
	}
	switch n := c.Left(); {
	case t.TableSchema.Id == "" || len(t.TableSchema.Columns) == 0:
		return fault.Corruptf(obj.At, "schema.fact_table",
			"it has no table_id or no table_columns, which every table has")
	case n > 0:
		return fault.Corruptf(obj.At.Sub(int64(c.Pos()), int64(n)), "schema", "%d bytes after its end", n)
	}
	t.Ids = map[string]bool{}
	for _, list := range append([][]layout.ColumnSchema{t.TableSchema.Columns}, t.TableSchema.Past()...) {
		for i := range list {
			t.Ids[list[i].Id] = true
		}
	}
	roots, _, err := schema.ColumnTree(t.TableSchema.Columns, obj.At, "schema.table_columns")
	if err == nil {
		err = schema.CheckLimits(roots, t.Opts.Limits, obj.At, "schema.table_columns")
	}
	if err != nil {
		return err
	}
	if err := t.drifted(ctx, obj.At); err != nil {
		return err
	}
	return t.AllColumns(roots, obj.At, "schema.table_columns")
}

// guessSchema takes the columns of the newest data file that can be opened. The ids are those of all files, so that
// columns added later are null in older files. Partition columns, which only directories have, are lost.
func (t *Managed) guessSchema(ctx context.Context, why error) error {
	list, err := t.all(ctx)
	if err != nil {
		return err
	}
	var newest *datafile.DataFile
	ids, latest := map[string]bool{}, int64(-2)
	for _, p := range list {
		f, err := t.open(ctx, p.Name)
		if err != nil && !errors.Is(err, fault.Corrupt) {
			return err
		}
		if err != nil {
			continue
		}
		for _, r := range f.Roots {
			ids[r.Id] = true
		}
		if at := status.ParseFileName(p.Name).Time; at > latest {
			newest, latest = f, at
		}
	}
	if newest == nil {
		return why
	}
	var e *fault.Error
	errors.As(why, &e)
	t.Ids = ids
	t.saved.Emit(layout.Findingf("carbon.schema.damaged", e.At, t.Path,
		"%v: the columns are those of %s; partition columns, which only directories tell, are lost", why,
		path.Base(newest.At.Object)))
	return t.AllColumns(newest.Roots, newest.ColumnsAt(), newest.ColumnsPath())
}
