package iceberg

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format/iceberg/internal/meta"
	"stoa/format/internal/lake"
	"stoa/store"
)

const (
	metadataDir = "metadata"
	dataDir     = "data"
	hintFile    = "version-hint.text"
	engine      = "stoa" // in the summaries of the snapshots that stoa writes
	// firstPartition is the id of the first partition field.
	firstPartition = 1000
)

// draft is a table that is being written.
type draft struct {
	o        createOptions
	location string
	version  int
	stored   *arrow.Schema
	last     int // id of a field
	terms    []lake.Term
	sorted   []lake.SortColumn
}

// leaf is a column of the files, with its field id.
type leaf struct {
	arrow.Field
	id int
}

// leavesOf returns the columns of the files, in order.
func leavesOf(fields []arrow.Field) (out []leaf) {
	for _, f := range fields {
		switch t := f.Type.(type) {
		case *arrow.StructType:
			out = append(out, leavesOf(t.Fields())...)
		case *arrow.MapType:
			out = append(out, leavesOf([]arrow.Field{t.KeyField(), t.ItemField()})...)
		case *arrow.ListType:
			out = append(out, leavesOf([]arrow.Field{t.ElemField()})...)
		default:
			out = append(out, leaf{f, lake.IDOf(f)})
		}
	}
	return out
}

// icebergBound converts a bound from PLAIN encoding to Iceberg's form, where decimals have as few bytes as possible.
func icebergBound(t arrow.DataType, b []byte) []byte {
	if t.ID() != arrow.DECIMAL128 {
		return b
	}
	for len(b) > 1 && (b[0] == 0 && b[1] < 0x80 || b[0] == 0xff && b[1] >= 0x80) {
		b = b[1:]
	}
	return b
}

// entry returns the manifest entry of a file.
func (d *draft) entry(f lake.File, leaves []leaf, snapshot int64) meta.Entry {
	x := meta.DataFile{Path: d.location + "/" + f.Name, Format: "PARQUET", Rows: f.Rows, Bytes: f.Bytes,
		SplitOffsets: f.Groups, Partition: map[string]any{}, Sizes: map[int]int64{}, Values: map[int]int64{},
		Nulls: map[int]int64{}, NaNs: map[int]int64{}, Lower: map[int][]byte{}, Upper: map[int][]byte{}}
	for i := range d.terms {
		x.Partition[avroName(d.terms[i].Name)] = avroValue(&d.terms[i], f.Partition[i])
	}
	for i, c := range f.Columns {
		l := leaves[i]
		x.Sizes[l.id], x.Values[l.id], x.Nulls[l.id] = c.Stored, c.Values, c.Nulls
		if id := l.Type.ID(); id == arrow.FLOAT32 || id == arrow.FLOAT64 {
			x.NaNs[l.id] = c.NaNs
		}
		if c.Repeated {
			continue
		}
		if c.Min != nil {
			x.Lower[l.id] = icebergBound(l.Type, c.Min)
		}
		if c.Max != nil {
			x.Upper[l.id] = icebergBound(l.Type, c.Max)
		}
	}
	if f.Sorted {
		one := int64(1)
		x.SortOrder = &one
	}
	return meta.Entry{Status: 1, Snapshot: &snapshot, File: x}
}

// avroName replaces characters that Avro does not allow in names by _x and their code, as Iceberg does.
func avroName(s string) string {
	var b strings.Builder
	for i, r := range s {
		digit := r >= '0' && r <= '9'
		switch {
		case r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || digit && i > 0:
			b.WriteRune(r)
		case digit:
			b.WriteString("_" + string(r))
		default:
			fmt.Fprintf(&b, "_x%X", r)
		}
	}
	return b.String()
}

// avroValue returns the value of a partition as stored in a manifest.
func avroValue(t *lake.Term, v any) any {
	switch x := v.(type) {
	case int32:
		return int64(x)
	case []byte:
		if d, ok := t.Type.(*arrow.Decimal128Type); ok && t.Transform != "bucket" {
			n := decimalBytes(d.Precision)
			fill := byte(0)
			if x[0] >= 0x80 {
				fill = 0xff
			}
			return append(bytes.Repeat([]byte{fill}, max(0, n-len(x))), x...)
		}
	}
	return v
}

// decimalBytes returns the number of bytes of decimals of a precision.
func decimalBytes(precision int32) int {
	return int(math.Ceil((float64(precision)*math.Log2(10) + 1) / 8))
}

// avroType returns the type of a partition field in manifests.
func avroType(t *lake.Term) any {
	switch t.Transform {
	case "year", "month", "hour", "bucket":
		return "int"
	case "day":
		return map[string]any{"type": "int", "logicalType": "date"}
	}
	switch x := t.Type.(type) {
	case *arrow.BooleanType:
		return "boolean"
	case *arrow.Int64Type:
		return "long"
	case *arrow.StringType:
		return "string"
	case *arrow.BinaryType:
		return "bytes"
	case *arrow.Date32Type:
		return map[string]any{"type": "int", "logicalType": "date"}
	case *arrow.Time64Type:
		return map[string]any{"type": "long", "logicalType": "time-micros"}
	case *arrow.TimestampType:
		unit := "timestamp-micros"
		if x.Unit == arrow.Nanosecond {
			unit = "timestamp-nanos"
		}
		return map[string]any{"type": "long", "logicalType": unit, "adjust-to-utc": x.TimeZone != ""}
	case *arrow.FixedSizeBinaryType:
		return map[string]any{"type": "fixed", "size": x.ByteWidth, "name": fmt.Sprintf("fixed_%d", x.ByteWidth)}
	case *arrow.Decimal128Type:
		return map[string]any{"type": "fixed", "size": decimalBytes(x.Precision), "logicalType": "decimal",
			"precision": x.Precision, "scale": x.Scale, "name": fmt.Sprintf("decimal_%d_%d", x.Precision, x.Scale)}
	}
	return "int"
}

// serialized returns a partition value in Iceberg's single-value serialization, as used for bounds.
func serialized(v any) []byte {
	switch x := v.(type) {
	case bool:
		return []byte{map[bool]byte{true: 1}[x]}
	case int32:
		return binary.LittleEndian.AppendUint32(nil, uint32(x))
	case int64:
		return binary.LittleEndian.AppendUint64(nil, uint64(x))
	case string:
		return []byte(x)
	case []byte:
		return x
	}
	return nil
}

// less compares values of a partition field.
func less(t *lake.Term, a, b any) bool {
	switch x := a.(type) {
	case bool:
		return !x && b.(bool)
	case int32:
		return x < b.(int32)
	case int64:
		return x < b.(int64)
	case string:
		return x < b.(string)
	case []byte:
		y := b.([]byte)
		if t.Type.ID() == arrow.DECIMAL128 {
			sx, sy := int8(x[0]) < 0, int8(y[0]) < 0
			if sx != sy {
				return sx
			}
			if len(x) != len(y) {
				return (len(x) < len(y)) != sx
			}
		}
		return bytes.Compare(x, y) < 0
	}
	return false
}

// summaries returns the field summaries for the manifest list: bounds of the partition fields of the files.
func (d *draft) summaries(files []lake.File) []meta.Summary {
	out := make([]meta.Summary, len(d.terms))
	for i := range d.terms {
		t := &d.terms[i]
		var lo, hi any
		for _, f := range files {
			v := f.Partition[i]
			if v == nil {
				out[i].HasNull = true
				continue
			}
			if lo == nil || less(t, v, lo) {
				lo = v
			}
			if hi == nil || less(t, hi, v) {
				hi = v
			}
		}
		if lo != nil {
			out[i].Lower, out[i].Upper = serialized(lo), serialized(hi)
		}
	}
	return out
}

// spec returns the partition spec of the terms.
func (d *draft) spec() (s meta.Spec, parts []meta.AvroType) {
	s.Fields = []meta.SpecField{}
	for i := range d.terms {
		t := &d.terms[i]
		id := firstPartition + i
		s.Fields = append(s.Fields, meta.SpecField{Source: lake.IDOf(d.stored.Field(t.Index)), ID: id, Name: t.Name,
			Transform: t.String()})
		parts = append(parts, meta.AvroType{Name: avroName(t.Name), Type: avroType(t), ID: id})
	}
	return s, parts
}

// commit writes manifest, manifest list, metadata and hint.
func (d *draft) commit(ctx context.Context, s store.Sink, files []lake.File) (names []string, n int64, err error) {
	put := func(name string, b []byte) error {
		names, n = append(names, name), n+int64(len(b))
		return lake.Put(ctx, s, name, b)
	}
	now := cmp.Or(d.o.Time, time.Now().UnixMilli())
	table, err := d.table(now)
	if err != nil {
		return nil, 0, err
	}
	snap, err := d.snapshot(now, table, files, put)
	if err != nil {
		return nil, 0, err
	}
	table.Snapshots, table.CurrentSnapshot = []meta.Snapshot{*snap}, &snap.ID
	table.SnapshotLog = []meta.SnapshotEntry{{Time: now, ID: snap.ID}}
	table.Refs = map[string]meta.Ref{"main": {ID: snap.ID, Type: "branch"}}
	table.LastSequence = 1
	if d.version >= 3 {
		next := *snap.AddedRows
		table.NextRow = &next
	}
	b, err := json.MarshalIndent(table, "", "  ")
	if err != nil {
		return nil, 0, err
	}
	if err := put(path.Join(metadataDir, "v1.metadata.json"), append(b, '\n')); err != nil {
		return nil, 0, err
	}
	return names, n, put(path.Join(metadataDir, hintFile), []byte("1"))
}

// table returns the metadata without a snapshot.
func (d *draft) table(now int64) (*meta.Table, error) {
	fields := meta.FieldsOf(d.stored.Fields())
	spec, _ := d.spec()
	t := &meta.Table{FormatVersion: d.version, UUID: lake.NewUUID(), Location: d.location, LastUpdated: now,
		LastColumn: d.last, Schemas: []meta.Schema{{Type: "struct", Fields: fields}}, Specs: []meta.Spec{spec},
		LastPartition: firstPartition - 1 + len(spec.Fields),
		SortOrders:    []meta.SortOrder{{Fields: []meta.SortField{}}},
		Properties:    map[string]string{"schema.name-mapping.default": meta.NameMapping(fields)},
		SnapshotLog:   []meta.SnapshotEntry{}, MetadataLog: []meta.MetadataEntry{}, Statistics: []json.RawMessage{},
		PartitionStatistic: []json.RawMessage{}}
	if len(d.sorted) > 0 {
		t.SortOrders = append(t.SortOrders, meta.SortOrder{ID: 1, Fields: d.sortFields()})
		t.DefaultSort = 1
	}
	for _, p := range d.o.Properties {
		k, v, ok := strings.Cut(p, "=")
		if !ok || k == "" {
			return nil, fault.Invalidf("property=%s: expected KEY=VALUE", p)
		}
		t.Properties[k] = v
	}
	return t, nil
}

// sortFields returns the columns of the sort order.
func (d *draft) sortFields() (out []meta.SortField) {
	for _, c := range d.sorted {
		f := meta.SortField{Transform: "identity", Source: lake.IDOf(d.stored.Field(c.Index)), Direction: "asc",
			Nulls: "nulls-first"}
		if c.Down {
			f.Direction, f.Nulls = "desc", "nulls-last"
		}
		out = append(out, f)
	}
	return out
}

// snapshot writes the manifest and the list of a snapshot that adds files.
func (d *draft) snapshot(now int64, t *meta.Table, files []lake.File,
	put func(name string, b []byte) error) (*meta.Snapshot, error) {
	var random [8 + 16]byte
	_, _ = rand.Read(random[:])
	sync := [16]byte(random[8:])
	snap := &meta.Snapshot{ID: int64(binary.LittleEndian.Uint64(random[:]) >> 1), Sequence: 1, Time: now,
		SchemaID: new(int)}
	leaves := leavesOf(d.stored.Fields())
	var order []int
	for _, l := range leaves {
		order = append(order, l.id)
	}
	var rows, size int64
	var entries []meta.Entry
	for _, f := range files {
		entries = append(entries, d.entry(f, leaves, snap.ID))
		rows, size = rows+f.Rows, size+f.Bytes
	}
	run := lake.NewUUID()
	var list []meta.Manifest
	if len(files) > 0 {
		spec, parts := d.spec()
		b, err := meta.WriteManifest(meta.ManifestHeader{Version: d.version, Schema: &t.Schemas[0], Spec: &spec,
			Partition: parts, Order: order}, sync, entries)
		if err != nil {
			return nil, err
		}
		name := path.Join(metadataDir, run+"-m0.avro")
		if err := put(name, b); err != nil {
			return nil, err
		}
		m := meta.Manifest{Path: d.location + "/" + name, Length: int64(len(b)), Sequence: 1, MinSequence: 1,
			Snapshot: snap.ID, Added: int64(len(files)), AddedRows: rows, Partitions: d.summaries(files)}
		if d.version >= 3 {
			m.FirstRow = new(int64)
		}
		list = append(list, m)
	}
	if d.version >= 3 {
		snap.FirstRow, snap.AddedRows = new(int64), &rows
	}
	count, total := strconv.Itoa(len(files)), strconv.FormatInt(rows, 10)
	bytesText := strconv.FormatInt(size, 10)
	snap.Summary = map[string]string{"operation": "append", "added-data-files": count, "added-records": total,
		"added-files-size": bytesText, "total-data-files": count, "total-records": total, "total-files-size": bytesText,
		"total-delete-files": "0", "total-position-deletes": "0", "total-equality-deletes": "0",
		"engine-name": engine}
	b, err := meta.WriteList(d.version, snap, sync, list)
	if err != nil {
		return nil, err
	}
	name := path.Join(metadataDir, fmt.Sprintf("snap-%d-1-%s.avro", snap.ID, run))
	snap.ManifestList = d.location + "/" + name
	return snap, put(name, b)
}
