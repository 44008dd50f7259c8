package iceberg

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/iceberg/internal/meta"
	"stoa/format/internal/lake"
	"stoa/internal/budget"
)

// snapshotReader is a table that is being opened.
type snapshotReader struct {
	*tableFiles
	o      format.OpenOptions
	memory *budget.Memory
	snap   *meta.Snapshot
	fields []arrow.Field
	match  lake.Match
	// defaults are the values of fields in files that lack them, by field id
	defaults map[int]arrow.Array
	data     []live
	deletes  []live
}

// live is a file of the snapshot, with its sequence number and partition spec.
type live struct {
	meta.DataFile
	seq  int64
	spec int
	name string // in the tree
}

// open implements Format.Open.
func open(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, error) {
	op, err := openSnapshot(ctx, tg, o)
	if err != nil {
		return nil, err
	}
	return op.reader(ctx)
}

// openSnapshot reads the metadata and the manifests of a table.
func openSnapshot(ctx context.Context, tg format.Target, o format.OpenOptions) (*snapshotReader, error) {
	ro, err := reading.Parse(o.Opts)
	if err != nil {
		return nil, err
	}
	if tg.Table != "" {
		return nil, fault.Invalidf("%s is one table of Iceberg and has no table %q", tg.Name, tg.Table)
	}
	op := &snapshotReader{o: o, memory: o.Limits.Memory()}
	if op.tableFiles, err = openPlace(ctx, tg, o.Limits); err != nil {
		return nil, err
	}
	if op.snap, err = op.snapshot(ro.At); err != nil {
		return nil, err
	}
	if err := op.schema(ro.At != ""); err != nil {
		return nil, err
	}
	return op, op.manifests(ctx)
}

// schema finds the schema: that of the table or, with option at, that of the snapshot.
func (op *snapshotReader) schema(past bool) error {
	id := op.table.CurrentSchema
	if past && op.snap != nil && op.snap.SchemaID != nil {
		id = *op.snap.SchemaID
	}
	at := fault.Span{Object: op.file}
	s := op.table.Schema(id)
	if s == nil {
		return fault.Corruptf(at, "schemas", "there is no schema %d", id)
	}
	if err := op.findDefaults(); err != nil {
		return err
	}
	var err error
	if op.fields, err = meta.Arrow(s.Fields, 0); errors.Is(err, meta.ErrType) {
		return fault.Unsupportedf(at, "schemas", "%v", err)
	} else if err != nil {
		return fault.Corruptf(at, "schemas", "%v", err)
	}
	if err := op.o.Limits.Afford(arrow.NewSchema(op.fields, nil), at, "schemas"); err != nil {
		return err
	}
	op.match = lake.ByID(op.mapping())
	return nil
}

// mapping returns the table's name mapping, for files whose fields have no ids; nil if there is none.
func (op *snapshotReader) mapping() lake.Match {
	var list []meta.MappedField
	if json.Unmarshal([]byte(op.table.Properties["schema.name-mapping.default"]), &list) != nil {
		return nil
	}
	names := map[int][]string{}
	var add func(list []meta.MappedField)
	add = func(list []meta.MappedField) {
		for _, m := range list {
			if m.ID != nil {
				names[*m.ID] = m.Names
			}
			add(m.Fields)
		}
	}
	add(list)
	return func(f arrow.Field, in []arrow.Field, _ []string) int {
		return slices.IndexFunc(in, func(x arrow.Field) bool { return slices.Contains(names[lake.IDOf(f)], x.Name) })
	}
}

// perFile estimates the memory of a manifest entry, in bytes, besides its strings.
const perFile = 512

// manifests reads the manifests of the snapshot.
func (op *snapshotReader) manifests(ctx context.Context) error {
	if op.snap == nil {
		return nil
	}
	var list []meta.Manifest
	if op.snap.ManifestList != "" {
		name, err := op.name(op.snap.ManifestList)
		if err != nil {
			return err
		}
		if list, err = meta.ReadList(ctx, op.tree, name, op.o.Limits.WithDefaults().Metadata, op.snap.ID); err != nil {
			return lake.Missing(err, name, "the snapshot")
		}
	}
	for _, m := range op.snap.Manifests {
		list = append(list, meta.Manifest{Path: m})
	}
	for _, m := range list {
		if err := op.manifest(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// manifest reads a manifest.
func (op *snapshotReader) manifest(ctx context.Context, m meta.Manifest) error {
	name, err := op.name(m.Path)
	if err != nil {
		return err
	}
	entries, err := meta.ReadManifest(ctx, op.tree, name, op.o.Limits.WithDefaults().Metadata, m)
	if err != nil {
		return lake.Missing(err, name, "the manifest list")
	}
	at := fault.Span{Object: name}
	for _, e := range entries {
		if err := op.memory.Take(perFile+int64(len(e.File.Path)), at, "the files of the manifest"); err != nil {
			return err
		}
		if e.Status == 2 {
			continue
		}
		if e.Status < 0 || e.Status > 2 {
			return fault.Corruptf(at, "status", "expected 0 to 2, found %d", e.Status)
		}
		f := live{DataFile: e.File, seq: m.Sequence, spec: m.Spec}
		if e.Sequence != nil {
			f.seq = *e.Sequence
		}
		if f.name, err = op.name(f.Path); err != nil {
			return err
		}
		if f.Content == meta.Data {
			op.data = append(op.data, f)
		} else {
			op.deletes = append(op.deletes, f)
		}
	}
	return nil
}

// reader makes the reader of the snapshot.
func (op *snapshotReader) reader(ctx context.Context) (format.Reader, error) {
	sc := arrow.NewSchema(op.fields, nil)
	c := lake.Config{Catalogue: "the manifest", Sized: true, Tree: op.tree, Schema: sc, Match: op.match,
		Open: op.o, Meta: op.properties(), Layout: op.layout(), Defaults: op.defaults}
	for _, f := range op.data {
		if f.Format != "PARQUET" {
			return nil, fault.Unsupportedf(fault.Span{Object: f.name}, "", "expected a data file in Parquet, found %s",
				f.Format)
		}
		in := &lake.Input{Name: f.name, Rows: f.Rows, Bytes: f.Bytes}
		if err := op.values(op.fields, in, &f); err != nil {
			return nil, err
		}
		c.Files = append(c.Files, in)
	}
	if err := op.readDeletes(ctx, c.Files); err != nil {
		return nil, err
	}
	for _, d := range op.deletes {
		if d.Format == "PARQUET" {
			c.Beside = append(c.Beside, d.name)
		}
	}
	return lake.New(c), nil
}

// properties returns the properties that `stoa meta` prints.
func (op *snapshotReader) properties() (out []format.KeyValue) {
	add := func(k, v string) { out = append(out, format.KeyValue{Key: k, Value: v}) }
	t := op.table
	add("format", fmt.Sprintf("Apache Iceberg, version %d", t.FormatVersion))
	add("table_uuid", t.UUID)
	add("location", t.Location)
	add("metadata", op.file)
	if op.snap != nil {
		add("snapshot", strconv.FormatInt(op.snap.ID, 10))
		add("sequence_number", strconv.FormatInt(op.snap.Sequence, 10))
		add("snapshot_time", timeText(op.snap.Time))
	}
	add("snapshots", strconv.Itoa(len(t.Snapshots)))
	add("data_files", strconv.Itoa(len(op.data)))
	add("delete_files", strconv.Itoa(len(op.deletes)))
	if s := t.Spec(t.DefaultSpec); s != nil && len(s.Fields) > 0 {
		var terms []string
		for _, f := range s.Fields {
			terms = append(terms, fmt.Sprintf("%s of %s as %s", f.Transform, op.fieldName(f.Source), f.Name))
		}
		add("partition_spec", strings.Join(terms, ", "))
	}
	for _, k := range sortedKeys(t.Properties) {
		add("property: "+k, t.Properties[k])
	}
	const most = 100
	for _, s := range t.Snapshots[max(0, len(t.Snapshots)-most):] {
		add("snapshot: "+strconv.FormatInt(s.ID, 10), op.about(&s))
	}
	return out
}

// about returns what is known of a snapshot without reading its manifests: its time, branches and tags, its operation,
// and its rows. Rows are not known if some are deleted by their values, and rows may be deleted twice by position.
func (op *snapshotReader) about(s *meta.Snapshot) string {
	words := []string{timeText(s.Time)}
	for name, r := range op.table.Refs {
		if r.ID == s.ID {
			words = append(words, name)
		}
	}
	slices.Sort(words[1:])
	if w := s.Summary["operation"]; w != "" {
		words = append(words, w)
	}
	if n := s.Summary["total-records"]; n != "" {
		words = append(words, n+" rows")
		for _, k := range []string{"position", "equality"} {
			if n := s.Summary["total-"+k+"-deletes"]; n != "" && n != "0" {
				words = append(words, n+" deletes by "+k)
			}
		}
	}
	return strings.Join(words, ", ")
}

func sortedKeys(m map[string]string) (keys []string) {
	for k := range m {
		if k != "schema.name-mapping.default" {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func (op *snapshotReader) fieldName(id int) string {
	for _, f := range op.fields {
		if lake.IDOf(f) == id {
			return f.Name
		}
	}
	return strconv.Itoa(id)
}

// layout returns how the rows are partitioned, bucketed and sorted by columns; other transforms are omitted.
func (op *snapshotReader) layout() (l format.Layout) {
	if s := op.table.Spec(op.table.DefaultSpec); s != nil {
		for _, f := range s.Fields {
			name := op.fieldName(f.Source)
			n, bucket := strings.CutPrefix(f.Transform, "bucket[")
			switch {
			case f.Transform == "identity":
				l.Partitions = append(l.Partitions, name)
			case bucket && l.Buckets == 0:
				l.Buckets, _ = strconv.Atoi(strings.TrimSuffix(n, "]"))
				l.BucketBy = []string{name}
			}
		}
	}
	for _, o := range op.table.SortOrders {
		if o.ID != op.table.DefaultSort {
			continue
		}
		for _, f := range o.Fields {
			if f.Transform != "identity" || cmp.Or(f.Direction, "asc") != "asc" {
				break
			}
			l.Sorted = append(l.Sorted, op.fieldName(f.Source))
		}
	}
	return l
}
