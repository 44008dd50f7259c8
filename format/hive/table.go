package hive

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/internal/lake"
	"stoa/internal/hive"
	"stoa/internal/typewords"
	"stoa/pred"
	"stoa/region"
)

// table is an open table.
type table struct {
	*lake.Table
	rows, bytes int64
}

// table opens a table: it finds the files and reads the schema of each.
func (h *hiveFormat) table(ctx context.Context, tg format.Target, o format.OpenOptions) (*table, error) {
	own, rest, err := h.options(o.Opts)
	if err != nil {
		return nil, err
	}
	if tg.Table != "" {
		return nil, fault.Invalidf("%s is one table and has no table %q", tg.Name, tg.Table)
	}
	w, err := h.walk(ctx, tg)
	if err != nil {
		return nil, err
	}
	return h.tableOf(ctx, tg, o, own, rest, w)
}

// tableOf opens the table of the files that w found.
func (h *hiveFormat) tableOf(ctx context.Context, tg format.Target, o format.OpenOptions, own ReadOptions,
	rest map[string]string, w *walk) (*table, error) {
	said, named, err := w.stated(ctx, tg, o)
	if err != nil {
		return nil, err
	}
	if len(w.files) > 0 {
		named = nil
		for _, v := range w.files[0].values {
			if slices.Contains(named, v.Column) {
				return nil, fault.Invalidf("%s: two directories say %s", w.files[0].name, v.Column)
			}
			named = append(named, v.Column)
		}
	}
	if len(w.files) == 0 && said == nil {
		return nil, fault.Invalidf("%s holds no files that stoa knows", tg.Name)
	}
	t := &table{}
	files, fields, err := t.openAll(ctx, tg, o, rest, w)
	if err != nil {
		return nil, err
	}
	sc, err := w.schema(said, named, fields, own)
	if err != nil {
		return nil, err
	}
	for i := range files {
		if err := place(files[i], w.files[i].values, sc); err != nil {
			return nil, err
		}
	}
	kind := "no files"
	if len(w.files) > 0 {
		kind = w.files[0].format.Name
	}
	t.Table = lake.New(lake.Config{Catalogue: "its directory", Tree: tg.Tree, Schema: sc, Match: lake.ByName,
		Files: files, Open: o, Findings: w.left, Layout: format.Layout{Partitions: named},
		Meta: []format.KeyValue{{Key: "format", Value: "directories with partitions"}, {Key: "files_of", Value: kind},
			{Key: "data_files", Value: strconv.Itoa(len(files))},
			{Key: "partition_columns", Value: strings.Join(named, ", ")}}})
	return t, nil
}

// stated returns the schema and the partition columns that stoa wrote beside the partitions; nil if it did not.
func (w *walk) stated(ctx context.Context, tg format.Target, o format.OpenOptions) (*arrow.Schema, []string, error) {
	if !w.marked {
		return nil, nil, nil
	}
	name := path.Join(tg.Name, hive.SchemaFile)
	src, err := tg.Tree.Open(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	defer src.Close()
	at := fault.Span{Object: name, Len: src.Size()}
	if most := o.Limits.WithDefaults().Metadata; at.Len > most {
		return nil, nil, fault.Limitf(at, "", "it has %d bytes; at most %d are read (metadata limit)", at.Len, most)
	}
	b := make([]byte, at.Len)
	if err := format.ReadFull(ctx, src, at, "", b); err != nil {
		return nil, nil, err
	}
	sc, named, err := hive.Decode(b)
	if err != nil {
		return nil, nil, fault.Corruptf(at, "", "%v", err)
	}
	return sc, named, nil
}

// openAll opens each file once, for its schema, and returns the files and the fields of all of them.
func (t *table) openAll(ctx context.Context, tg format.Target, o format.OpenOptions, rest map[string]string,
	w *walk) (files []*lake.Input, fields []arrow.Field, err error) {
	var kept []file
	for i := range w.files {
		f := w.files[i]
		open := func(ctx context.Context) (format.Reader, error) {
			each := o
			each.Opts, each.Limits, each.Tracer = rest, o.Limits.Apart(), nil
			in := format.Target{Tree: tg.Tree, Name: f.name}
			if !w.salvage || f.format.Recover == nil {
				return f.format.Open(ctx, in, each)
			}
			r, found, err := f.format.Recover(ctx, in, each)
			for _, x := range found {
				if !slices.Contains(w.found, x) {
					w.found = append(w.found, x)
				}
			}
			return r, err
		}
		r, err := open(ctx)
		if w.salvage && errors.Is(err, fault.Corrupt) {
			w.found = append(w.found, failure(f.name, err))
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if fields, err = joined(fields, r.Schema().Fields(), f.name); err != nil {
			return nil, nil, errors.Join(err, r.Close())
		}
		if x, ok := r.(format.Finder); ok && !w.salvage {
			w.left = append(w.left, x.Findings()...)
		}
		t.count(ctx, r, f.bytes)
		if err := r.Close(); err != nil {
			return nil, nil, err
		}
		kept = append(kept, f)
		files = append(files, &lake.Input{Name: f.name, Rows: -1, Bytes: f.bytes, Values: map[int]arrow.Array{},
			Bounds: map[int]pred.Bounds{}, Open: open, Format: f.format, Opts: rest})
	}
	w.files = kept
	return files, fields, nil
}

// count adds the rows and bytes of a file to those of the table.
func (t *table) count(ctx context.Context, r format.Reader, bytes int64) {
	t.bytes += bytes
	for p, err := range r.Parts(ctx, format.Query{}) {
		if err != nil || p.Rows < 0 || t.rows < 0 {
			t.rows = -1
		} else {
			t.rows += p.Rows
		}
	}
}

// joined adds the fields of a file to those of the files before it. A file may lack columns, which are null there.
func joined(have, more []arrow.Field, name string) ([]arrow.Field, error) {
	seen := map[string]bool{}
	for _, f := range more {
		if seen[f.Name] {
			return nil, fault.Invalidf("%s has two columns named %s: columns of files in partitions are found by name",
				name, f.Name)
		}
		seen[f.Name] = true
		i := slices.IndexFunc(have, func(x arrow.Field) bool { return x.Name == f.Name })
		switch {
		case i < 0:
			have = append(have, f)
		case have[i].Type.ID() == arrow.NULL:
			have[i].Type, have[i].Nullable = f.Type, true
		case f.Type.ID() == arrow.NULL:
			have[i].Nullable = true
		case wider(have[i].Type, f.Type):
			have[i].Type = f.Type
		case wider(f.Type, have[i].Type):
		case !arrow.TypeEqual(have[i].Type, f.Type):
			return nil, fault.Invalidf("column %s of %s is %s, in files before it %s: they are not one table", f.Name,
				name, f.Type, have[i].Type)
		default:
			have[i].Nullable = have[i].Nullable || f.Nullable
		}
	}
	return have, nil
}

// wider reports whether files of text may have values of type b where others seem to have type a.
func wider(a, b arrow.DataType) bool { return a.ID() == arrow.INT64 && b.ID() == arrow.FLOAT64 }

// schema returns the schema of the table. named are the partition columns, fields those of the files.
func (w *walk) schema(said *arrow.Schema, named []string, fields []arrow.Field, own ReadOptions) (*arrow.Schema,
	error) {
	types := map[string]arrow.DataType{}
	if own.PartitionTypes != "" {
		given, err := typewords.Parse(own.PartitionTypes)
		if err != nil {
			return nil, fault.Invalidf("hive: option partition-types: %v", err)
		}
		for _, f := range given.Fields() {
			if !slices.Contains(named, f.Name) {
				return nil, fault.Invalidf("hive: option partition-types: %s is not a partition column", f.Name)
			}
			types[f.Name] = f.Type
		}
	}
	if said != nil {
		return w.fit(said, named, fields, types)
	}
	for i := range fields { // a file may lack the column
		missing := slices.Contains(named, fields[i].Name)
		fields[i].Nullable = fields[i].Nullable || missing || len(w.files) > 1
		if t := types[fields[i].Name]; t != nil {
			fields[i].Type = t
		}
	}
	for k, name := range named {
		if slices.ContainsFunc(fields, func(f arrow.Field) bool { return f.Name == name }) {
			continue
		}
		t := types[name]
		if t == nil {
			var texts []string
			for _, f := range w.files {
				texts = append(texts, f.values[k].Text)
			}
			t = hive.TypeOf(texts)
		}
		fields = append(fields, arrow.Field{Name: name, Type: t, Nullable: true})
	}
	return arrow.NewSchema(fields, nil), nil
}

// fit returns the schema that stoa wrote beside the partitions, if the files have its columns. Types that the format of
// the files does not have are those of the files.
func (w *walk) fit(said *arrow.Schema, named []string, fields []arrow.Field,
	types map[string]arrow.DataType) (*arrow.Schema, error) {
	out := slices.Clone(said.Fields())
	for i := range out {
		f := &out[i]
		f.Nullable = true
		if t := types[f.Name]; t != nil {
			f.Type = t
		}
		k := slices.IndexFunc(fields, func(x arrow.Field) bool { return x.Name == f.Name })
		switch {
		case slices.Contains(named, f.Name):
		case k >= 0:
			f.Type, f.Metadata = fields[k].Type, fields[k].Metadata
		case len(w.files) > 0:
			return nil, fault.Corruptf(fault.Span{Object: w.files[0].name}, f.Name, "%s has this column, and no file "+
				"has it", hive.SchemaFile)
		}
	}
	for _, f := range fields {
		if !slices.ContainsFunc(out, func(x arrow.Field) bool { return x.Name == f.Name }) {
			f.Nullable = true
			out = append(out, f)
		}
	}
	return arrow.NewSchema(out, nil), nil
}

// place gives a file the values of its directories.
func place(in *lake.Input, values []hive.Value, sc *arrow.Schema) error {
	for _, v := range values {
		i := sc.FieldIndices(v.Column)
		if len(i) != 1 {
			return fault.Invalidf("%s: the partition column %s is not one column of the table", in.Name, v.Column)
		}
		f := sc.Field(i[0])
		a, err := hive.Parse(f.Type, v.Text)
		if err != nil {
			return fault.Corruptf(fault.Span{Object: in.Name}, v.Column, "expected a value of type %s in the name of "+
				"the directory, found %q", f.Type, v.Text)
		}
		in.Values[i[0]] = a
		if x, ok := lake.ValueOf(f.Type, a, 0); ok && a.IsValid(0) {
			in.Bounds[i[0]] = pred.Bounds{Min: &x, Max: &x, Rows: -1, Nulls: 0, NoNaN: true}
		}
	}
	return nil
}

// hold opens every file as part of the table: its columns must fit, and its bounds those of its directory.
func (t *table) hold(ctx context.Context) error {
	for p, err := range t.Parts(ctx, format.Query{}) {
		if err == nil {
			_, err = t.RowGroups(ctx, p, format.Query{})
		}
		if err != nil {
			return fmt.Errorf("%w", err)
		}
	}
	return nil
}

var _ format.Finder = (*table)(nil)

// Findings implements format.Finder.
func (t *table) Findings() []region.Finding { return t.Table.Findings() }
