package table

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"
	"stoa/internal/thrift"
)

// adoptIDs compares the column ids of the schema with those of the data files: an id that the schema never had means
// that one of the two is damaged. If no file agrees with the schema, the schema is damaged, and its columns get the ids
// that the files have for columns of the same name and type.
func (t *Managed) adoptIDs(ctx context.Context) error {
	names, err := FilesBelow(ctx, t.Tree, t.Path, maxPartitions)
	if err != nil {
		return err
	}
	unknown, has := map[string]*schema.Column{}, map[string]bool{} // by id: not in the schema; in any of the files
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
			if has[r.ID] = true; !t.Ids[r.ID] {
				unknown[r.ID] = r
			}
		}
	}
	for _, id := range layout.SortedKeys(unknown) {
		r := unknown[id]
		for _, c := range t.Roots {
			if strings.EqualFold(c.Name, r.Name) && c.Type == r.Type && !has[c.ID] {
				at := fault.Span{Object: path.Join(t.Path, "Metadata", "schema")}
				t.saved.Emit(layout.Findingf("carbon.schema.damaged", at, t.Path,
					"column %s: expected the id %s, which all data files have, found %s", c.Name, id, c.ID))
				c.ID, t.Ids[id], has[id] = id, true, true
				break
			}
		}
	}
	return nil
}

// drifted returns an error if the columns contradict the schema's history: a column with a damaged id would be missing
// in all files, and its default would be read instead. In recovery the contradiction is reported, and the id in the
// history is used if the files have that id and not the other. If two defaults differ, neither is used, and in files
// without the column its cells are lost.
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
		if d.Default {
			if t.ambiguous == nil {
				t.ambiguous = map[string]error{}
			}
			t.ambiguous[d.Past.ID] = why(d)
		}
		for i := range t.TableSchema.Columns {
			c := &t.TableSchema.Columns[i]
			if d.At < 0 && strings.EqualFold(c.Name, d.Past.Name) && c.Type == d.Past.Type && has[d.Past.ID] &&
				!has[c.ID] {
				c.ID = d.Past.ID
			}
		}
	}
	return nil
}

// fileIDs returns the ids of the columns of all data files that can be opened.
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
			has[r.ID] = true
		}
	}
	return has, err
}

// readSchema reads Metadata/schema. A missing or contradictory schema is Corrupt.
func (t *Managed) readSchema(ctx context.Context) error {
	name := path.Join(t.Path, "Metadata", "schema")
	b, at, err := layout.ReadObject(ctx, t.Tree, name, t.Opts.Limits)
	if errors.Is(err, fs.ErrNotExist) {
		is, err := isTable(ctx, t.Tree, t.Path)
		if err != nil {
			return err
		}
		if !is {
			return fault.Corruptf(fault.Span{Object: name}, "", "the directory looks like a partitioned table (data "+
				"files of segments in directories NAME=VALUE), but the schema is missing")
		}
		return fault.Corruptf(fault.Span{Object: name}, "", "the table has segments, but its schema is missing")
	}
	if err != nil {
		return err
	}
	obj := layout.Object{Tree: t.Tree, At: at, Limits: t.Opts.Limits.WithDefaults()}
	c := obj.Cursor(b, at, "schema")
	t.TableSchema = layout.ParseTableInfo(thrift.NewReader(c, thrift.Compact), "")
	if c.Err() != nil {
		return c.Err()
	}
	switch n := c.Left(); {
	case t.TableSchema.ID == "" || len(t.TableSchema.Columns) == 0:
		return fault.Corruptf(obj.At, "schema.fact_table",
			"expected a table_id and table_columns, found none")
	case n > 0:
		return fault.Corruptf(obj.At.Sub(int64(c.Pos()), int64(n)), "schema", "%d bytes after the schema", n)
	}
	t.Ids = map[string]bool{}
	for _, list := range append([][]layout.ColumnSchema{t.TableSchema.Columns}, t.TableSchema.HistoryColumns()...) {
		for i := range list {
			t.Ids[list[i].ID] = true
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
	err = t.AllColumns(roots, obj.At, "schema.table_columns")
	if x := t.TableSchema.Spatial(); x != nil && err == nil {
		t.sc = withComputed(t.sc, x)
	}
	return err
}

// withComputed returns the schema with the columns from which a geohash index is computed.
func withComputed(sc *arrow.Schema, x *layout.Spatial) *arrow.Schema {
	fields := sc.Fields()
	for i, f := range fields {
		if strings.EqualFold(f.Name, x.Column) {
			fields[i].Metadata = arrow.NewMetadata(append(f.Metadata.Keys(), format.MetaComputed),
				append(f.Metadata.Values(), strings.Join(x.Sources[:], ",")))
		}
	}
	m := sc.Metadata()
	return arrow.NewSchema(fields, &m)
}

// guessSchema replaces a schema that cannot be read by the columns of the newest data file that can be opened; why is
// the reason. The ids are those of all files, so that columns added later are null in earlier files. Partition columns
// are lost, because files do not have them.
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
			ids[r.ID] = true
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
		"%v: the columns are those of %s; partition columns, which files do not have, are lost", why,
		path.Base(newest.At.Object)))
	return t.AllColumns(newest.Roots, newest.ColumnsAt(), newest.ColumnsPath())
}
