package kudubackup

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu"
	"stoa/format/option"
	"stoa/format/parquet"
	"stoa/internal/budget"
	"stoa/internal/parts"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// ReadOptions are the options of reading, for stoa.OpenOptions.Typed. The zero value of each is the default.
type ReadOptions struct {
	At      string // a time, or milliseconds since 1970; "": the newest backup
	Earlier string // where earlier backups are, if not beside the ones that are read
}

var reading = option.Table[ReadOptions]{Format: "kudu-backup", For: "reading", Options: []option.Option[ReadOptions]{
	option.Text("at", "TIME", "the newest backup that is not later: a time, a day, or milliseconds since 1970",
		func(o *ReadOptions) *string { return &o.At }),
	option.Text("earlier", "PLACE", "where the earlier backups are (default: beside the one that is read)",
		func(o *ReadOptions) *string { return &o.Earlier }),
}}

// Strings returns the options as strings, as in --source-opt.
func (o ReadOptions) Strings() map[string]string { return reading.Strings(&o) }

// Formats returns the formats to which the options apply.
func (ReadOptions) Formats() []string { return []string{"kudu-backup"} }

// moment returns the time of option at in milliseconds; 0 if it is not set. A day or a second stands for its beginning.
func (o ReadOptions) moment() (int64, error) {
	if o.At == "" {
		return 0, nil
	}
	if n, err := strconv.ParseInt(o.At, 10, 64); err == nil && n > 0 {
		return n, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, o.At); err == nil && t.UnixMilli() > 0 {
			return t.UnixMilli(), nil
		}
	}
	return 0, fault.Invalidf("kudu-backup: option at=%s: neither milliseconds since 1970 nor a time as "+
		"2006-01-02T15:04:05Z, or a day as 2006-01-02", o.At)
}

// reader is a table at the end of a chain of backups. Its parts are the files.
type reader struct {
	tree     store.Tree
	chain    []*backupDir
	sc       *arrow.Schema
	cols     []format.Column
	files    []*file
	limits   format.Limits
	noVerify bool
	findings []region.Finding

	mu           sync.Mutex
	memory       *budget.Memory
	dropped      map[string]map[int][]int64 // by file and row group: rows that a later backup replaces or deletes
	changesKnown bool
}

// file is a file of a backup.
type file struct {
	format.Reader
	info    store.Info
	step    int   // of the chain
	cols    []int // its column for each table column; -1 if the backup is older than the column
	actions int   // the column of row actions; -1 if there is none
}

// open opens a table.
func open(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, error) {
	ro, err := reading.Parse(o.Opts)
	if err != nil {
		return nil, err
	}
	at, err := ro.moment()
	if err != nil {
		return nil, err
	}
	tg.Limits = o.Limits
	f, err := find(ctx, tg)
	if err != nil {
		return nil, err
	}
	all, err := f.pick(tg)
	if err != nil {
		return nil, err
	}
	if f.end != nil && at == 0 {
		at = f.end.to
	}
	if ro.Earlier != "" {
		if all, err = withEarlier(ctx, tg, all, ro.Earlier); err != nil {
			return nil, err
		}
	}
	r := &reader{tree: tg.Tree, limits: o.Limits.WithDefaults(), noVerify: o.NoVerify}
	if r.chain, err = chainOf(all, at); err != nil {
		return nil, err
	}
	if err := r.checkPartitions(); err != nil {
		return nil, err
	}
	if err := r.open(ctx, o); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// withEarlier adds the backups of the same table at another place.
func withEarlier(ctx context.Context, tg format.Target, all []*backupDir, place string) ([]*backupDir, error) {
	f, err := find(ctx, format.Target{Tree: tg.Tree, Name: place, Limits: tg.Limits})
	if err != nil || len(all) == 0 {
		return all, err
	}
	for _, b := range slices.Concat(slices.Collect(maps.Values(f.tables))...) {
		mine := func(x *backupDir) bool { return x.dir == b.dir }
		if m := all[0].meta; (b.meta.TableID == m.TableID || b.meta.TableName == m.TableName) &&
			!slices.ContainsFunc(all, mine) {
			all = append(all, b)
		}
	}
	return all, nil
}

// checkPartitions refuses partitions that were dropped between two backups of the chain: their rows are in the earlier
// backups, and nothing identifies them.
func (r *reader) checkPartitions() error {
	last := r.chain[len(r.chain)-1]
	for _, b := range r.chain[:len(r.chain)-1] {
		for id := range b.meta.Tablets {
			if _, ok := last.meta.Tablets[id]; !ok {
				return fault.Unsupportedf(fault.Span{Object: path.Join(last.dir, metadataFile)}, "tablets",
					"tablet %s of the backup of %s is not in that of %s: its partition was dropped, and stoa cannot "+
						"tell which rows were in it; option at=%d reads the table as it was before", id, calendar(b.to),
					calendar(last.to), b.to)
			}
		}
	}
	return nil
}

// open opens the files of the chain.
func (r *reader) open(ctx context.Context, o format.OpenOptions) error {
	r.memory = budget.Of(int64(r.limits.Opening))
	for step, b := range r.chain {
		var names []string
		for _, info := range b.files {
			names = append(names, info.Name)
			one := o
			one.Opts = nil
			inner, err := parquet.Format.Open(ctx, format.Target{Tree: r.tree, Name: info.Name}, one)
			if err != nil {
				return err
			}
			f := &file{Reader: inner, info: info, step: step, actions: -1}
			r.files = append(r.files, f)
			if x, ok := inner.(format.Finder); ok {
				r.findings = append(r.findings, x.Findings()...)
			}
			if err := r.match(f); err != nil {
				return err
			}
		}
		if len(names) == 0 {
			r.findings = append(r.findings, region.Finding{Code: "dir.part.missing", Severity: region.Error,
				At: fault.Span{Object: path.Join(b.dir, metadataFile)}, Part: path.Join(b.dir, metadataFile),
				Rows: [2]int64{-1, -1}, Lost: -1,
				Message: "expected one file of rows or more, as Spark and stoa write without rows, too; found none"})
		}
		r.findings = append(r.findings, parts.Wrong(ctx, r.tree, names, []format.Format{parquet.Format})...)
	}
	return r.schema()
}

// match finds the table's columns in a file, by the column ids in the metadata of its backup and of the last one.
func (r *reader) match(f *file) error {
	last, own := &r.chain[len(r.chain)-1].meta, &r.chain[f.step].meta
	at := fault.Span{Object: f.info.Name}
	mine := map[string]int{}
	for i, c := range f.Columns() {
		name := f.Schema().Field(c.Path[0]).Name
		if _, again := mine[name]; again || c.Parent >= 0 || c.MaxRep > 1 {
			return fault.Unsupportedf(at, "", "column %q is nested; Kudu has arrays of plain values only", name)
		}
		mine[name] = i
	}
	names := map[int32]string{}
	for name, id := range own.ColumnIDs {
		names[id] = name
	}
	known := map[string]bool{}
	for _, c := range own.Columns {
		known[c.Name] = true
		if _, ok := mine[c.Name]; !ok {
			return fault.Corruptf(at, "", "the metadata of the backup name column %q; the file has none", c.Name)
		}
	}
	for _, c := range last.Columns {
		name, ok := names[last.ColumnIDs[c.Name]]
		if _, listed := last.ColumnIDs[c.Name]; !listed {
			name, ok = c.Name, known[c.Name]
		}
		i := -1
		switch {
		case ok && known[name]:
			i = mine[name]
		case !c.Nullable || c.Default != nil:
			return fault.Unsupportedf(at, "", "column %q was added after this backup, and its value in older rows is "+
				"not null; "+
				"stoa reads such tables only where it is", c.Name)
		}
		f.cols = append(f.cols, i)
	}
	if f.step == 0 {
		return nil
	}
	for i, c := range f.Columns() {
		top := f.Schema().Field(c.Path[0])
		if !known[top.Name] && f.actions < 0 && top.Type.ID() == arrow.INT8 && i == len(f.Columns())-1 {
			f.actions = i
		}
	}
	if f.actions < 0 {
		return fault.Corruptf(at, "", "expected the last column of an incremental backup to be the row actions "+
			"(INT8); found none")
	}
	return nil
}

// field returns the type of table column i in the file.
func (f *file) field(i int) arrow.DataType {
	return f.Schema().Field(f.Columns()[f.cols[i]].Path[0]).Type
}

// schema makes the table's schema: types from the files, everything else from the metadata.
func (r *reader) schema() error {
	m := &r.chain[len(r.chain)-1].meta
	var fields []arrow.Field
	keys := 0
	for i, c := range m.Columns {
		f := arrow.Field{Name: c.Name, Nullable: c.Nullable}
		col := format.Column{Name: c.Name, Path: []int{i}, Parent: -1, Has: format.Values}
		for _, x := range r.files {
			if x.cols[i] < 0 {
				continue
			}
			t, own := x.field(i), x.Columns()[x.cols[i]]
			if f.Type == nil {
				col.Path = append(col.Path, own.Path[1:]...)
				col.Has, col.MaxDef, col.MaxRep, col.Type = own.Has, own.MaxDef, own.MaxRep, own.Type
			}
			col.Coded = col.Coded || own.Coded
			levels := own.MaxDef == col.MaxDef && own.MaxRep == col.MaxRep
			if f.Type != nil && (!levels || !arrow.TypeEqual(f.Type, t)) {
				return fault.Unsupportedf(fault.Span{Object: x.info.Name}, "", "column %q is %s, and %s in another "+
					"file of the backups", c.Name, t, f.Type)
			}
			f.Type = t
		}
		if f.Type == nil {
			if f.Type = plainType(c); f.Type == nil {
				return fault.Unsupportedf(fault.Span{Object: r.chain[0].dir}, "columns", "column %q is of type %q, "+
					"which stoa does not know, and no file has it", c.Name, c.Type)
			}
			if col.Type = f.Type; c.Nested != nil {
				col.Type, col.Path = f.Type.(*arrow.ListType).Elem(), append(col.Path, 0)
				col.Has, col.MaxDef, col.MaxRep = format.Values|format.Levels, 3, 1
			}
		}
		var k, v []string
		add := func(key, value string) { k, v = append(k, key), append(v, value) }
		if id, ok := m.ColumnIDs[c.Name]; ok {
			add(kudu.MetaColumnID, strconv.Itoa(int(id)))
		}
		if c.Key {
			keys++
			add(kudu.MetaKey, strconv.Itoa(keys))
		}
		if c.Type == "VARCHAR" && c.Attributes != nil {
			add(cfile.MetaType, cfile.Varchar.String())
			add(cfile.MetaLength, strconv.Itoa(c.Attributes.Length))
		}
		f.Metadata = arrow.NewMetadata(k, v)
		fields = append(fields, f)
		r.cols = append(r.cols, col)
	}
	table, err := json.Marshal(kudu.TableMeta{ID: m.TableID, Name: m.TableName, Replicas: m.Replicas})
	if err != nil {
		return err
	}
	md := arrow.NewMetadata([]string{kudu.MetaTable}, []string{string(table)})
	r.sc = arrow.NewSchema(fields, &md)
	return nil
}

// plainType returns the Arrow type of a column that is in no file; nil if unknown.
func plainType(c columnMetadata) arrow.DataType {
	switch c.Type {
	case "NESTED":
		if c.Nested != nil {
			c.Type, c.Nested = c.Nested.Array.Element, nil
			if item := plainType(c); item != nil {
				return arrow.ListOf(item)
			}
		}
		return nil
	case "DECIMAL":
		if a := c.Attributes; a == nil || a.Precision < 1 || a.Precision > 38 || a.Scale < 0 || a.Scale > a.Precision {
			return nil
		}
		return &arrow.Decimal128Type{Precision: c.Attributes.Precision, Scale: c.Attributes.Scale}
	case "UNIXTIME_MICROS":
		return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	}
	return map[string]arrow.DataType{"BOOL": arrow.FixedWidthTypes.Boolean, "INT8": arrow.PrimitiveTypes.Int8,
		"INT16": arrow.PrimitiveTypes.Int16, "INT32": arrow.PrimitiveTypes.Int32, "INT64": arrow.PrimitiveTypes.Int64,
		"FLOAT": arrow.PrimitiveTypes.Float32, "DOUBLE": arrow.PrimitiveTypes.Float64,
		"DATE": arrow.FixedWidthTypes.Date32, "STRING": arrow.BinaryTypes.String, "VARCHAR": arrow.BinaryTypes.String,
		"BINARY": arrow.BinaryTypes.Binary}[c.Type]
}

// Members implements format.Composite.
func (r *reader) Members() (out []format.Member) {
	for _, f := range r.files {
		out = append(out, format.Member{Name: f.info.Name, Format: &parquet.Format})
	}
	return out
}

func (r *reader) Schema() *arrow.Schema      { return r.sc }
func (r *reader) Columns() []format.Column   { return r.cols }
func (r *reader) Order() []format.Key        { return nil }
func (r *reader) Findings() []region.Finding { return slices.Clone(r.findings) }

// Meta returns the properties that `stoa meta` prints: the table, and the backups that form it.
func (r *reader) Meta() (out []format.KeyValue) {
	m := &r.chain[len(r.chain)-1].meta
	add := func(k, v string) { out = append(out, format.KeyValue{Key: k, Value: v}) }
	add("format", "Apache Kudu backup")
	add("table", m.TableName)
	add("table_id", m.TableID)
	for _, b := range r.chain {
		what := "full"
		if b.from > 0 {
			what = "since " + calendar(b.from)
		}
		add("backup."+strconv.FormatInt(b.to, 10), calendar(b.to)+"; "+what+"; "+strconv.Itoa(len(b.files))+" files")
	}
	return out
}

func (r *reader) Close() (err error) {
	for _, f := range r.files {
		err = cmp.Or(err, f.Reader.Close())
	}
	return err
}

// Parts returns the files of the chain, those of the full backup first.
func (r *reader) Parts(context.Context, format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		for _, f := range r.files {
			if !yield(format.Part{Ref: f.info.Name, Stamp: f.info.Stamp, Rows: -1, Bytes: f.info.Size}, nil) {
				return
			}
		}
	}
}

// part returns the file of a part.
func (r *reader) part(ref string) (*file, error) {
	for _, f := range r.files {
		if f.info.Name == ref {
			return f, nil
		}
	}
	return nil, fault.Invalidf("the backups have no file %s", ref)
}

// RowGroups returns the row groups of a file. Changes by later backups are not included: see Overlay.
func (r *reader) RowGroups(ctx context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	f, err := r.part(p.Ref)
	if err != nil {
		return nil, err
	}
	var of format.Query
	for _, c := range q.Cols {
		if f.cols[c] >= 0 {
			of.Cols = append(of.Cols, f.cols[c])
		}
	}
	out, err := f.rowGroups(ctx, of)
	if err != nil {
		return nil, err
	}
	out = slices.Clone(out)
	for i := range out {
		out[i].Part, out[i].Low, out[i].High, out[i].Bounds = p.Ref, nil, nil, nil
	}
	return out, nil
}

// rowGroups returns the row groups of the only part of a Parquet file.
func (f *file) rowGroups(ctx context.Context, q format.Query) (out []format.RowGroup, err error) {
	for p, err := range f.Reader.Parts(ctx, q) {
		if err != nil {
			return nil, err
		}
		some, err := f.Reader.RowGroups(ctx, p, q)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// Chunk returns a column of a row group.
func (r *reader) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	f, err := r.part(g.Part)
	if err != nil {
		return nil, err
	}
	if f.cols[col] < 0 {
		levels := r.cols[col].Has&format.Levels != 0
		return &nulls{rows: rows, total: g.Rows, at: max(0, rows.From), levels: levels}, nil
	}
	own, err := f.group(ctx, g.Index)
	if err != nil {
		return nil, err
	}
	return f.Reader.Chunk(ctx, own, f.cols[col], rows)
}

// group returns a row group as stored in the file.
func (f *file) group(ctx context.Context, index int) (format.RowGroup, error) {
	all, err := f.rowGroups(ctx, format.Query{})
	if err != nil {
		return format.RowGroup{}, err
	}
	i := slices.IndexFunc(all, func(g format.RowGroup) bool { return g.Index == index })
	if i < 0 {
		return format.RowGroup{}, fault.Invalidf("%s has no row group %d", f.info.Name, index)
	}
	return all[i], nil
}
