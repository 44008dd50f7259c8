package kudubackup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/format/parquet"
	"stoa/internal/sorted"
	"stoa/store"
)

// Format is format "kudu-backup".
var Format = format.Format{
	Family:       "kudu",
	Name:         "kudu-backup",
	Levels:       2, // ID-NAME/TIME
	Title:        "Apache Kudu's backup layout: Parquet and the table's metadata, for Kudu's restore job",
	List:         list,
	Open:         open,
	Unchecked:    format.UncheckedMembers(open),
	Bounds:       true,
	Create:       create,
	Reread:       reread,
	ReadKeys:     reading.Keys(),
	Dictionaries: func(arrow.DataType) bool { return false },
	WriteKeys:    slices.Concat(writing.Keys(), parquet.Format.WriteKeys),
}

const (
	metadataFile    = ".kudu-metadata.json"
	defaultPartRows = 10_000_000
	// A key of file metadata that tells Spark that dates before 1582 are in the proleptic Gregorian calendar.
	sparkVersion = "org.apache.spark.version"
)

// options are the parsed options of Create.
type options struct {
	table, id string
	key       []string
	replicas  int
	time      time.Time
	partRows  int64
	since     string
	parquet   map[string]string
}

func parseOptions(opts map[string]string) (o options, err error) {
	o.time = time.Now()
	var s Backup
	if s, o.parquet, err = writing.ParseOwn(opts); err != nil { // parquet refuses unknown options
		return o, err
	}
	o.table, o.id, o.key, o.replicas = s.Table, strings.ToLower(s.TableID), s.Key, s.Replicas
	o.since = s.Since
	if o.partRows = cmp.Or(s.PartRows, defaultPartRows); s.Time != 0 {
		o.time = time.UnixMilli(s.Time)
	}
	if b, err := hex.DecodeString(o.id); o.id != "" && (err != nil || len(b) != 16) {
		return o, fault.Invalidf("kudu-backup: option table-id=%s: expected 32 hexadecimal digits", s.TableID)
	}
	return o, nil
}

// writer writes a backup.
type writer struct {
	sink  store.Sink
	o     options
	wo    format.WriteOptions
	sc    *arrow.Schema // of the parts
	meta  tableMetadata
	dir   string
	part  format.Writer
	rows  int64 // of the part
	parts int
	last  bool     // the current part is the last one
	since *changes // of an incremental backup; nil: a full one
	sum   format.Summary
}

func create(ctx context.Context, s store.Sink, sc *arrow.Schema, wo format.WriteOptions) (format.Writer, error) {
	o, err := parseOptions(wo.Opts)
	if err != nil {
		return nil, err
	}
	w := &writer{sink: s, o: o, wo: wo}
	if w.meta, err = metadataOf(sc, o); err != nil {
		return nil, err
	}
	fields := sc.Fields()
	if o.since != "" {
		if w.since, err = since(ctx, o, &w.meta, sc, wo.Mem); err != nil {
			return nil, err
		}
		fields = append(slices.Clone(fields), arrow.Field{Name: actionColumn, Type: arrow.PrimitiveTypes.Int8})
	}
	m := arrow.NewMetadata([]string{sparkVersion}, []string{"3.0.0"})
	w.sc = arrow.NewSchema(fields, &m)
	w.dir = path.Join(w.meta.TableID+"-"+urlName(w.meta.TableName), w.meta.ToMs)
	return w, w.begin(ctx)
}

// urlName encodes a name as Java's URLEncoder does.
func urlName(s string) string {
	return strings.NewReplacer("~", "%7E", "%2A", "*").Replace(url.QueryEscape(s))
}

// metadataOf returns the metadata of a table.
func metadataOf(sc *arrow.Schema, o options) (m tableMetadata, err error) {
	var t kudu.TableMeta
	if v, ok := sc.Metadata().GetValue(kudu.MetaTable); ok {
		if err := json.Unmarshal([]byte(v), &t); err != nil {
			return m, fault.Invalidf("the schema's metadata %s is invalid: %v", kudu.MetaTable, err)
		}
	}
	columns, err := columnsOf(sc, o.key)
	if err != nil {
		return m, err
	}
	m = tableMetadata{Version: 1, FromMs: "0", ToMs: strconv.FormatInt(o.time.UnixMilli(), 10),
		DataFormat: "parquet", TableName: t.Name, TableID: t.ID,
		Replicas: t.Replicas, ColumnIDs: map[string]int32{}, Tablets: map[string]partitionMetadata{}}
	if o.table != "" {
		m.TableName = o.table
	}
	if m.TableName == "" {
		return m, fault.Invalidf("a backup needs the table's name: option table=NAME")
	}
	if o.id != "" {
		m.TableID = o.id
	}
	if m.TableID == "" {
		sum := sha256.Sum256([]byte(m.TableName))
		m.TableID = hex.EncodeToString(sum[:16])
	}
	if o.replicas > 0 {
		m.Replicas = o.replicas
	}
	if m.Replicas == 0 {
		m.Replicas = 3
	}
	known := !slices.ContainsFunc(columns, func(c column) bool { return c.kudu.ID < 0 })
	for i, c := range columns {
		m.Columns = append(m.Columns, c.columnMetadata)
		if m.ColumnIDs[c.Name] = int32(i); known {
			m.ColumnIDs[c.Name] = c.kudu.ID
		}
	}
	return m, m.partition(t, columns)
}

// columnsOf returns the columns of the schema, key columns first.
func columnsOf(sc *arrow.Schema, key []string) (out []column, err error) {
	seen := map[string]bool{}
	for _, f := range sc.Fields() {
		c, err := columnOf(f)
		if err != nil {
			return nil, err
		}
		if lower := strings.ToLower(f.Name); seen[lower] {
			return nil, fault.Invalidf("two columns are named %q, or differ only in case: Spark cannot tell them apart",
				f.Name)
		} else {
			seen[lower] = true
		}
		if key != nil {
			c.key = slices.Index(key, f.Name) + 1
		}
		if c.Key = c.key > 0; c.Key {
			c.Nullable = false // Write checks that there are no nulls
			if c.kudu.Array || c.Type == "BOOL" || c.Type == "FLOAT" || c.Type == "DOUBLE" {
				return nil, fault.Invalidf("column %q cannot be in Kudu's primary key: it has type %s", f.Name, c.Type)
			}
		}
		out = append(out, c)
	}
	for _, k := range key {
		if sc.FieldIndices(k) == nil {
			return nil, fault.Invalidf("key: there is no column %q", k)
		}
	}
	rank := func(c column) int {
		if c.key == 0 {
			return 1 << 30
		}
		return c.key
	}
	sorted.StablyBy(out, func(a, b column) int { return rank(a) - rank(b) })
	for i := 0; i < len(out) && out[i].key > 0; i++ {
		if out[i].key != i+1 {
			return nil, fault.Invalidf("column number %d of the primary key is not among the columns", i+1)
		}
	}
	if len(out) == 0 || out[0].key == 0 {
		return nil, fault.Invalidf("Kudu's tables have a primary key: option key=COLUMN,… names its columns")
	}
	return out, nil
}

// partition sets the partitions of the source or, if it had none, one that contains everything.
func (m *tableMetadata) partition(t kudu.TableMeta, columns []column) (err error) {
	if len(t.Tablets) == 0 {
		for _, c := range columns {
			if c.Key {
				m.Partitions.Range.Columns = append(m.Partitions.Range.Columns, c.Name)
			}
		}
		m.Partitions.Range.Bounds = []bounds{{}}
		m.Tablets[m.TableID] = partitionMetadata{}
		return nil
	}
	inKey := func(names []string) error {
		for _, n := range names {
			if !slices.ContainsFunc(columns, func(c column) bool { return c.Name == n && c.Key }) {
				return fault.Invalidf("the table is partitioned by column %q, which is not in the key of the backup", n)
			}
		}
		return nil
	}
	if err := inKey(t.Range); err != nil {
		return err
	}
	m.Partitions.Hash = hashOf(t.Hash)
	for _, h := range m.Partitions.Hash {
		if err := inKey(h.Columns); err != nil {
			return err
		}
	}
	m.Partitions.Range.Columns = t.Range
	for _, r := range t.Ranges {
		b, err := boundsOf(r, t.Range, columns)
		if err != nil {
			return err
		}
		m.Partitions.Range.Bounds = append(m.Partitions.Range.Bounds, b)
	}
	for _, r := range t.Custom {
		b, err := boundsOf(r, t.Range, columns)
		if err != nil {
			return err
		}
		m.Partitions.Custom = append(m.Partitions.Custom, rangeAndHash{b, hashOf(r.Hash)})
	}
	for _, x := range t.Tablets {
		m.Tablets[x.ID] = partitionMetadata{x.Start, x.End, x.Buckets}
	}
	return nil
}

// partSink is the sink of a part's Parquet writer, whose only object it creates under the part's name.
type partSink struct {
	store.Sink
	name string
}

func (s partSink) Create(ctx context.Context, _ string) (store.Object, error) {
	return s.Sink.Create(ctx, s.name)
}
func (s partSink) Commit(context.Context) error { return nil }
func (s partSink) Abort(context.Context) error  { return nil }

// begin starts the next part.
func (w *writer) begin(ctx context.Context) (err error) {
	wo := w.wo
	wo.Opts, wo.Dir = w.o.parquet, false
	number := w.parts
	name := path.Join(w.dir, parquet.PartName(number))
	which := func() parquet.Part { return parquet.Part{Number: number, Last: w.last, Of: w.dir} }
	if w.part, err = parquet.CreatePart(ctx, partSink{w.sink, name}, w.sc, wo, which); err != nil {
		return err
	}
	w.rows = 0
	w.parts++
	w.sum.Files = append(w.sum.Files, name)
	return nil
}

// end closes the current part.
func (w *writer) end(ctx context.Context) error {
	if w.part == nil {
		return nil
	}
	s, err := w.part.Close(ctx)
	if err != nil {
		return err
	}
	w.part = nil
	w.sum.Bytes += s.Bytes
	return nil
}

func (w *writer) Write(ctx context.Context, b arrow.RecordBatch) error {
	for _, c := range w.meta.Columns {
		for _, i := range w.sc.FieldIndices(c.Name) {
			if n := b.Column(i).NullN(); c.Key && n > 0 {
				return fault.Invalidf("column %q is in the primary key, but %d of its values are null", c.Name, n)
			}
		}
	}
	if w.since == nil {
		return w.add(ctx, b)
	}
	changed, err := w.since.changed(ctx, b, w.sc)
	if err != nil || changed == nil {
		return err
	}
	defer changed.Release()
	return w.add(ctx, changed)
}

// add writes rows to the current part, and to new ones.
func (w *writer) add(ctx context.Context, b arrow.RecordBatch) error {
	for from := int64(0); from < b.NumRows(); {
		if w.rows >= w.o.partRows {
			if err := w.end(ctx); err != nil {
				return err
			}
		}
		if w.part == nil {
			if err := w.begin(ctx); err != nil {
				return err
			}
		}
		n := min(b.NumRows()-from, w.o.partRows-w.rows)
		slice := b.NewSlice(from, from+n)
		err := w.part.Write(ctx, slice)
		slice.Release()
		if err != nil {
			return err
		}
		from, w.rows, w.sum.Rows = from+n, w.rows+n, w.sum.Rows+n
	}
	return nil
}

// Close writes the metadata file last: without it there is no backup.
func (w *writer) Close(ctx context.Context) (format.Summary, error) {
	if w.since != nil && !w.wo.Trial {
		add := func(b arrow.RecordBatch) error { return w.add(ctx, b) }
		if err := w.since.gone(ctx, w.sc, add); err != nil {
			return w.sum, err
		}
	}
	if err := w.since.close(); err != nil {
		return w.sum, err
	}
	w.since = nil
	w.last = true
	if err := w.end(ctx); err != nil {
		return w.sum, err
	}
	b, err := json.MarshalIndent(w.meta, "", "  ")
	if err != nil {
		return w.sum, err
	}
	name := path.Join(w.dir, metadataFile)
	o, err := w.sink.Create(ctx, name)
	if err != nil {
		return w.sum, err
	}
	_, err = o.Write(append(b, '\n'))
	if err = errors.Join(err, o.Close()); err != nil {
		return w.sum, err
	}
	w.sum.Bytes += int64(len(b)) + 1
	w.sum.Files = append(w.sum.Files, name)
	return w.sum, w.sink.Commit(ctx)
}

func (w *writer) Abort(ctx context.Context) error {
	var err error
	if w.part != nil {
		err = w.part.Abort(ctx)
	}
	err = errors.Join(err, w.since.close())
	return errors.Join(err, w.sink.Abort(ctx))
}
