package meta

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/internal/avro"
	"stoa/store"
)

// The contents of manifests and files.
const (
	Data            = 0
	PositionDeletes = 1 // of a file: deleted rows, by file and position
	EqualityDeletes = 2 // of a file: values that the deleted rows have
	DeleteManifest  = 1 // of a manifest: it lists delete files of both kinds
)

// Manifest is an entry of a manifest list.
type Manifest struct {
	Path         string
	Length       int64
	Spec         int
	Content      int
	Sequence     int64
	MinSequence  int64
	Snapshot     int64
	Added        int64
	Existing     int64
	Deleted      int64
	AddedRows    int64
	ExistingRows int64
	DeletedRows  int64
	FirstRow     *int64
	Partitions   []Summary

	stated [6]*int64 // the six counts; nil where the list has none, as in version 1
}

// Summary is the summary, in a manifest list, of a field of the partitions in a manifest.
type Summary struct {
	HasNull bool
	HasNaN  bool
	Lower   []byte // nil if all values are null
	Upper   []byte
}

// Entry is an entry of a manifest.
type Entry struct {
	Status       int // 0 existing, 1 added, 2 deleted
	Snapshot     *int64
	Sequence     *int64
	FileSequence *int64
	File         DataFile
}

// DataFile is a file of rows, or of deleted rows.
type DataFile struct {
	Content        int
	Path           string
	Format         string
	Partition      map[string]any // by the names of the spec's fields
	Rows           int64
	Bytes          int64
	Sizes          map[int]int64
	Values         map[int]int64
	Nulls          map[int]int64
	NaNs           map[int]int64
	Lower          map[int][]byte
	Upper          map[int][]byte
	SplitOffsets   []int64
	EqualityIDs    []int
	SortOrder      *int64
	FirstRow       *int64
	ReferencedFile string
	Offset         *int64 // of a deletion vector within its file
	Size           *int64
}

// AvroType is the type of a partition field in a manifest: the spec's fields have such types.
type AvroType struct {
	Name string // as Avro allows it
	Type any
	ID   int
}

func manifestListSchema(version int) string {
	f := func(name string, t any, id int) map[string]any {
		m := map[string]any{"name": name, "type": t, "field-id": id}
		if list, ok := t.([]any); ok && list[0] == "null" {
			m["default"] = nil
		}
		return m
	}
	opt := func(t any) []any { return []any{"null", t} }
	summary := map[string]any{"type": "record", "name": "r508", "fields": []any{f("contains_null", "boolean", 509),
		f("contains_nan", opt("boolean"), 518), f("lower_bound", opt("bytes"), 510),
		f("upper_bound", opt("bytes"), 511)}}
	fields := []any{f("manifest_path", "string", 500), f("manifest_length", "long", 501),
		f("partition_spec_id", "int", 502), f("content", "int", 517), f("sequence_number", "long", 515),
		f("min_sequence_number", "long", 516), f("added_snapshot_id", "long", 503), f("added_files_count", "int", 504),
		f("existing_files_count", "int", 505), f("deleted_files_count", "int", 506),
		f("added_rows_count", "long", 512), f("existing_rows_count", "long", 513),
		f("deleted_rows_count", "long", 514),
		f("partitions", opt(map[string]any{"type": "array", "items": summary, "element-id": 508}), 507),
		f("key_metadata", opt("bytes"), 519)}
	if version >= 3 {
		fields = append(fields, f("first_row_id", opt("long"), 520))
	}
	b, _ := json.Marshal(map[string]any{"type": "record", "name": "manifest_file", "fields": fields})
	return string(b)
}

// manifestSchema returns the schema of manifests with the given partition fields.
func manifestSchema(version int, parts []AvroType) string {
	f := func(name string, t any, id int) map[string]any {
		m := map[string]any{"name": name, "type": t, "field-id": id}
		if list, ok := t.([]any); ok && list[0] == "null" {
			m["default"] = nil
		}
		return m
	}
	opt := func(t any) []any { return []any{"null", t} }
	pairs := func(key, value int, t string) []any {
		return opt(map[string]any{"type": "array", "logicalType": "map", "items": map[string]any{"type": "record",
			"name":   fmt.Sprintf("k%d_v%d", key, value),
			"fields": []any{f("key", "int", key), f("value", t, value)}}})
	}
	list := func(t string, id int) []any {
		return opt(map[string]any{"type": "array", "items": t, "element-id": id})
	}
	partition := []any{}
	for _, p := range parts {
		partition = append(partition, f(p.Name, opt(p.Type), p.ID))
	}
	file := []any{f("content", "int", 134), f("file_path", "string", 100), f("file_format", "string", 101),
		f("partition", map[string]any{"type": "record", "name": "r102", "fields": partition}, 102),
		f("record_count", "long", 103), f("file_size_in_bytes", "long", 104),
		f("column_sizes", pairs(117, 118, "long"), 108), f("value_counts", pairs(119, 120, "long"), 109),
		f("null_value_counts", pairs(121, 122, "long"), 110), f("nan_value_counts", pairs(138, 139, "long"), 137),
		f("lower_bounds", pairs(126, 127, "bytes"), 125), f("upper_bounds", pairs(129, 130, "bytes"), 128),
		f("key_metadata", opt("bytes"), 131), f("split_offsets", list("long", 133), 132),
		f("equality_ids", list("int", 136), 135), f("sort_order_id", opt("int"), 140)}
	if version >= 3 {
		file = append(file, f("first_row_id", opt("long"), 142), f("referenced_data_file", opt("string"), 143),
			f("content_offset", opt("long"), 144), f("content_size_in_bytes", opt("long"), 145))
	}
	b, _ := json.Marshal(map[string]any{"type": "record", "name": "manifest_entry", "fields": []any{
		f("status", "int", 0), f("snapshot_id", opt("long"), 1), f("sequence_number", opt("long"), 3),
		f("file_sequence_number", opt("long"), 4),
		f("data_file", map[string]any{"type": "record", "name": "r2", "fields": file}, 2)}})
	return string(b)
}

func optional[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// encodeMap converts a map to its form in manifests.
func encodeMap[T any](m map[int]T, order []int) any {
	out := []any{}
	for _, k := range order {
		if v, ok := m[k]; ok {
			out = append(out, map[string]any{"key": int64(k), "value": any(v)})
		}
	}
	return out
}

func encodeList[T int | int64](list []T) any {
	if list == nil {
		return nil
	}
	out := []any{}
	for _, x := range list {
		out = append(out, int64(x))
	}
	return out
}

// value converts the entry to its Avro value. order are the ids of columns.
func (e *Entry) value(order []int) map[string]any {
	d := &e.File
	var referenced any
	if d.ReferencedFile != "" {
		referenced = d.ReferencedFile
	}
	return map[string]any{"status": int64(e.Status), "snapshot_id": optional(e.Snapshot),
		"sequence_number": optional(e.Sequence), "file_sequence_number": optional(e.FileSequence),
		"data_file": map[string]any{"content": int64(d.Content), "file_path": d.Path, "file_format": d.Format,
			"partition": d.Partition, "record_count": d.Rows, "file_size_in_bytes": d.Bytes,
			"column_sizes": encodeMap(d.Sizes, order), "value_counts": encodeMap(d.Values, order),
			"null_value_counts": encodeMap(d.Nulls, order), "nan_value_counts": encodeMap(d.NaNs, order),
			"lower_bounds": encodeMap(d.Lower, order), "upper_bounds": encodeMap(d.Upper, order),
			"split_offsets": encodeList(d.SplitOffsets), "equality_ids": encodeList(d.EqualityIDs),
			"sort_order_id": optional(d.SortOrder), "first_row_id": optional(d.FirstRow),
			"referenced_data_file": referenced, "content_offset": optional(d.Offset),
			"content_size_in_bytes": optional(d.Size)}}
}

// ManifestHeader describes all entries of a manifest.
type ManifestHeader struct {
	Version   int
	Schema    *Schema
	Spec      *Spec
	Partition []AvroType
	Content   int
	Order     []int // the ids of columns
}

// WriteManifest encodes a manifest.
func WriteManifest(h ManifestHeader, sync [16]byte, entries []Entry) ([]byte, error) {
	schema, err := json.Marshal(h.Schema)
	if err != nil {
		return nil, err
	}
	spec, err := json.Marshal(h.Spec.Fields)
	if err != nil {
		return nil, err
	}
	content := "data"
	if h.Content == DeleteManifest {
		content = "deletes"
	}
	meta := [][2]string{{"schema", string(schema)}, {"schema-id", fmt.Sprint(h.Schema.ID)},
		{"partition-spec", string(spec)}, {"partition-spec-id", fmt.Sprint(h.Spec.ID)},
		{"format-version", fmt.Sprint(h.Version)}, {"content", content}, createdBy}
	values := make([]any, len(entries))
	for i := range entries {
		values[i] = entries[i].value(h.Order)
	}
	return avro.Write(manifestSchema(h.Version, h.Partition), meta, sync, values)
}

// createdBy is metadata that marks files of stoa, by which it knows its own if no snapshot names them. (See Unnamed in
// internal/health.) Puffin has it, too.
var createdBy = [2]string{"created-by", "stoa"}

// WriteList encodes a manifest list.
func WriteList(version int, s *Snapshot, sync [16]byte, manifests []Manifest) ([]byte, error) {
	values := make([]any, len(manifests))
	for i, m := range manifests {
		var parts any
		if m.Partitions != nil {
			list := []any{}
			for _, p := range m.Partitions {
				v := map[string]any{"contains_null": p.HasNull, "contains_nan": p.HasNaN}
				if p.Lower != nil {
					v["lower_bound"], v["upper_bound"] = p.Lower, p.Upper
				}
				list = append(list, v)
			}
			parts = list
		}
		values[i] = map[string]any{"manifest_path": m.Path, "manifest_length": m.Length,
			"partition_spec_id": int64(m.Spec), "content": int64(m.Content), "sequence_number": m.Sequence,
			"min_sequence_number": m.MinSequence, "added_snapshot_id": m.Snapshot, "added_files_count": m.Added,
			"existing_files_count": m.Existing, "deleted_files_count": m.Deleted, "added_rows_count": m.AddedRows,
			"existing_rows_count": m.ExistingRows, "deleted_rows_count": m.DeletedRows, "partitions": parts,
			"first_row_id": optional(m.FirstRow)}
	}
	parent := "null"
	if s.Parent != nil {
		parent = fmt.Sprint(*s.Parent)
	}
	head := [][2]string{{"snapshot-id", fmt.Sprint(s.ID)}, {"parent-snapshot-id", parent},
		{"sequence-number", fmt.Sprint(s.Sequence)}, {"format-version", fmt.Sprint(version)}, createdBy}
	if s.FirstRow != nil {
		head = append(head, [2]string{"first-row-id", fmt.Sprint(*s.FirstRow)})
	}
	return avro.Write(manifestListSchema(version), head, sync, values)
}

// record is a decoded record.
type record map[string]any

func (r record) long(key string) int64 {
	n, _ := r[key].(int64)
	return n
}

func (r record) pointer(key string) *int64 {
	if n, ok := r[key].(int64); ok {
		return &n
	}
	return nil
}

func (r record) text(key string) string {
	s, _ := r[key].(string)
	return s
}

// decodeMap decodes a map in a manifest: an array of pairs, or an Avro map.
func decodeMap[T any](v any) map[int]T {
	list, _ := v.([]any)
	if len(list) == 0 {
		return nil
	}
	out := make(map[int]T, len(list))
	for _, x := range list {
		pair, _ := x.(map[string]any)
		k, ok1 := pair["key"].(int64)
		if v, ok2 := pair["value"].(T); ok1 && ok2 {
			out[int(k)] = v
		}
	}
	return out
}

// ReadList reads the manifest list of a snapshot. All writers state in its header of which one it is; 0: of any.
func ReadList(ctx context.Context, tree store.Tree, name string, most, snapshot int64) (out []Manifest, err error) {
	f, err := avro.Open(ctx, tree, name, most)
	if err != nil {
		return nil, err
	}
	if n, err := strconv.ParseInt(string(f.Meta["snapshot-id"]), 10, 64); err == nil && snapshot != 0 && n != snapshot {
		return nil, fault.Corruptf(fault.Span{Object: name}, "snapshot-id",
			"expected the manifest list of snapshot %d, found that of %d", snapshot, n)
	}
	err = f.Each(func(v any) error {
		m, ok := v.(map[string]any)
		r := record(m)
		if !ok || r.text("manifest_path") == "" {
			return fault.Corruptf(fault.Span{Object: name}, "manifest_path", "an entry names no manifest")
		}
		var parts []Summary
		for _, x := range asList(m["partitions"]) {
			p, _ := x.(map[string]any)
			has, _ := p["contains_null"].(bool)
			nan, _ := p["contains_nan"].(bool)
			lo, _ := p["lower_bound"].([]byte)
			hi, _ := p["upper_bound"].([]byte)
			parts = append(parts, Summary{HasNull: has, HasNaN: nan, Lower: lo, Upper: hi})
		}
		var stated [6]*int64
		for i, c := range counts {
			if stated[i] = r.pointer(c[0]); stated[i] == nil {
				stated[i] = r.pointer(c[1])
			}
		}
		out = append(out, Manifest{stated: stated, Path: r.text("manifest_path"), Length: r.long("manifest_length"),
			Spec: int(r.long("partition_spec_id")), Content: int(r.long("content")),
			Sequence: r.long("sequence_number"), MinSequence: r.long("min_sequence_number"),
			Snapshot: r.long("added_snapshot_id"), Added: r.long("added_files_count"),
			Existing: r.long("existing_files_count"), Deleted: r.long("deleted_files_count"),
			AddedRows: r.long("added_rows_count"), ExistingRows: r.long("existing_rows_count"),
			DeletedRows: r.long("deleted_rows_count"), FirstRow: r.pointer("first_row_id"),
			Partitions: parts})
		return nil
	})
	return out, err
}

// Precedes reports whether the table's metadata are older than a manifest list. Sequence numbers only grow. Lists of
// version 1 have none, but have manifests that the current snapshot added only if they are newer.
func (t *Table) Precedes(ctx context.Context, tree store.Tree, list string, most int64) bool {
	f, err := avro.Open(ctx, tree, list, most)
	if err != nil {
		return false
	}
	if n, err := strconv.ParseInt(string(f.Meta["sequence-number"]), 10, 64); err == nil {
		return n > t.LastSequence
	}
	manifests, err := ReadList(ctx, tree, list, most, 0)
	return err == nil && t.CurrentSnapshot != nil && slices.ContainsFunc(manifests,
		func(m Manifest) bool { return m.Snapshot == *t.CurrentSnapshot })
}

// counts are what a manifest list states of a manifest, with the names of early writers: files and rows, by the status
// 1, 0 and 2.
var counts = [6][2]string{{"added_files_count", "added_data_files_count"},
	{"existing_files_count", "existing_data_files_count"}, {"deleted_files_count", "deleted_data_files_count"},
	{"added_rows_count"}, {"existing_rows_count"}, {"deleted_rows_count"}}

// holds compares a manifest with what the list states of it: another one of the same table may have its name.
func (m *Manifest) holds(name string, f *avro.File, entries []Entry) error {
	wrong := func(field string, want, got int64) error {
		return fault.Corruptf(fault.Span{Object: name}, field, "the manifest list has %d, the manifest %d: it is not "+
			"the one that the list names", want, got)
	}
	if m.Length > 0 && m.Length != f.Size() {
		return wrong("manifest_length", m.Length, f.Size())
	}
	if n, err := strconv.ParseInt(string(f.Meta["partition-spec-id"]), 10, 64); err == nil && n != int64(m.Spec) &&
		m.Snapshot != 0 {
		return wrong("partition_spec_id", int64(m.Spec), n)
	}
	var found [6]int64
	for _, e := range entries {
		if i, ok := map[int]int{1: 0, 0: 1, 2: 2}[e.Status]; ok {
			found[i]++
			found[i+3] += e.File.Rows
		}
		if e.Status == 1 && e.Snapshot != nil && m.Snapshot != 0 && *e.Snapshot != m.Snapshot {
			return wrong("added_snapshot_id", m.Snapshot, *e.Snapshot)
		}
	}
	for i, n := range m.stated {
		if n != nil && *n >= 0 && *n != found[i] {
			return wrong(counts[i][0], *n, found[i])
		}
	}
	return nil
}

// ReadManifest reads a manifest that a list names: its live entries, and those that it marks as deleted.
func ReadManifest(ctx context.Context, tree store.Tree, name string, most int64, m Manifest) (out []Entry, err error) {
	f, err := avro.Open(ctx, tree, name, most)
	if err != nil {
		return nil, err
	}
	err = f.Each(func(v any) error {
		m, _ := v.(map[string]any)
		file, _ := m["data_file"].(map[string]any)
		r, d := record(m), record(file)
		if d.text("file_path") == "" || d.long("record_count") < 0 {
			return fault.Corruptf(fault.Span{Object: name}, "data_file", "an entry names no file, or no number of rows")
		}
		e := Entry{Status: int(r.long("status")), Snapshot: r.pointer("snapshot_id"),
			Sequence: r.pointer("sequence_number"), FileSequence: r.pointer("file_sequence_number")}
		e.File = DataFile{Content: int(d.long("content")), Path: d.text("file_path"),
			Format: strings.ToUpper(d.text("file_format")), Rows: d.long("record_count"),
			Bytes: d.long("file_size_in_bytes"), Sizes: decodeMap[int64](d["column_sizes"]),
			Values: decodeMap[int64](d["value_counts"]), Nulls: decodeMap[int64](d["null_value_counts"]),
			NaNs: decodeMap[int64](d["nan_value_counts"]), Lower: decodeMap[[]byte](d["lower_bounds"]),
			Upper: decodeMap[[]byte](d["upper_bounds"]), ReferencedFile: d.text("referenced_data_file"),
			SortOrder: d.pointer("sort_order_id"), FirstRow: d.pointer("first_row_id"),
			Offset: d.pointer("content_offset"), Size: d.pointer("content_size_in_bytes")}
		e.File.Partition, _ = d["partition"].(map[string]any)
		for _, x := range asList(d["split_offsets"]) {
			n, _ := x.(int64)
			e.File.SplitOffsets = append(e.File.SplitOffsets, n)
		}
		for _, x := range asList(d["equality_ids"]) {
			n, _ := x.(int64)
			e.File.EqualityIDs = append(e.File.EqualityIDs, int(n))
		}
		out = append(out, e)
		return nil
	})
	if err == nil {
		err = m.holds(name, f, out)
	}
	return out, err
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}
