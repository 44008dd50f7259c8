package delta

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
	"stoa/format"
	"stoa/format/delta/internal/log"
	"stoa/format/internal/lake"
	"stoa/internal/coerce"
	"stoa/store"
)

// Rules are Delta's rules for types.
var Rules = lake.Rules{Catalogue: "Delta", SmallInts: true}

// engine is how stoa names itself in the versions that it writes.
const engine = "stoa"

// create implements Format.Create.
func create(ctx context.Context, s store.Sink, sc *arrow.Schema, wo format.WriteOptions) (format.Writer, error) {
	_, files, err := writing.ParseOwn(wo.Opts) // parquet refuses unknown options
	if err != nil {
		return nil, err
	}
	stored, last, err := Rules.Storage(sc)
	if err != nil {
		return nil, err
	}
	o, err := Plan(stored, last, wo)
	if err != nil {
		return nil, err
	}
	o.Parquet, o.Write = files, wo
	return lake.NewWriter(s, sc, stored, o), nil
}

// Plan prepares the log for files that lake.Writer writes; options of other formats are ignored.
func Plan(stored *arrow.Schema, last int, wo format.WriteOptions) (o lake.WriterOptions, err error) {
	table, _, err := writing.ParseOwn(wo.Opts)
	if err != nil {
		return o, err
	}
	d := &draft{o: table, stored: stored, last: last}
	terms, err := lake.ParseSpec(table.PartitionBy)
	if err != nil {
		return o, err
	}
	for _, t := range terms {
		if t.Transform != "identity" {
			return o, fault.Unsupportedf(fault.Span{}, "", "partition-by: expected columns, as Delta has "+
				"no transforms; found %s", t)
		}
	}
	if d.terms, err = lake.Bind(terms, stored); err != nil {
		return o, err
	}
	if len(d.terms) > 0 && len(d.terms) == stored.NumFields() {
		return o, fault.Invalidf("partition-by: expected at least one column that is not a partition column")
	}
	o = lake.WriterOptions{Terms: d.terms, Size: table.FileSize, Commit: d.commit}
	return o, d.checkNames(stored.Fields())
}

// draft is a table that is being written.
type draft struct {
	o      Table
	stored *arrow.Schema
	last   int
	terms  []lake.Term
	mapped bool // some names have characters that require column mapping
}

// checkNames refuses names that differ only in case, and records whether some require column mapping.
func (d *draft) checkNames(fields []arrow.Field) error {
	seen := map[string]bool{}
	for _, f := range fields {
		lower := strings.ToLower(f.Name)
		if seen[lower] {
			return fault.Invalidf("two columns have the name %q, up to upper and lower case: Delta cannot tell them "+
				"apart",
				f.Name)
		}
		seen[lower] = true
		d.mapped = d.mapped || strings.ContainsAny(f.Name, " ,;{}()\n\t=")
		if err := d.checkType(f.Type); err != nil {
			return err
		}
	}
	return nil
}

func (d *draft) checkType(t arrow.DataType) error {
	switch t := t.(type) {
	case *arrow.StructType:
		return d.checkNames(t.Fields())
	case *arrow.MapType:
		if err := d.checkType(t.KeyType()); err != nil {
			return err
		}
		return d.checkType(t.ItemType())
	case *arrow.ListType:
		return d.checkType(t.Elem())
	}
	return nil
}

// hasLocal reports whether a type is or contains a timestamp without a time zone.
func hasLocal(t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.TimestampType:
		return t.TimeZone == ""
	case *arrow.MapType:
		return hasLocal(t.KeyType()) || hasLocal(t.ItemType())
	case arrow.NestedType:
		return slices.ContainsFunc(t.Fields(), func(f arrow.Field) bool { return hasLocal(f.Type) })
	}
	return false
}

// protocol returns the lowest version of the protocol that suffices for the table.
func (d *draft) protocol() log.Protocol {
	p := log.Protocol{MinReader: 1, MinWriter: 2}
	if d.mapped {
		p = log.Protocol{MinReader: 2, MinWriter: 5}
	}
	if slices.ContainsFunc(d.stored.Fields(), func(f arrow.Field) bool { return hasLocal(f.Type) }) {
		p = log.Protocol{MinReader: 3, MinWriter: 7, ReaderFeatures: []string{"timestampNtz"},
			WriterFeatures: []string{"timestampNtz"}}
		if d.mapped {
			p.ReaderFeatures = append(p.ReaderFeatures, "columnMapping")
			p.WriterFeatures = append(p.WriterFeatures, "columnMapping")
		}
	}
	return p
}

// metadata returns the description of the table for the log.
func (d *draft) metadata(now int64) (*log.MetaData, error) {
	fields, err := log.FieldsOf(d.stored.Fields(), d.mapped)
	if err != nil {
		return nil, err
	}
	schema, err := json.Marshal(log.Struct{Type: "struct", Fields: fields})
	if err != nil {
		return nil, err
	}
	m := &log.MetaData{ID: lake.NewUUID(), Format: log.Format{Provider: "parquet", Options: log.Texts{}},
		Schema: string(schema), Partitions: []string{}, Configuration: log.Texts{}, Created: &now}
	for _, t := range d.terms {
		m.Partitions = append(m.Partitions, t.Column)
	}
	if d.mapped {
		m.Configuration["delta.columnMapping.mode"] = "name"
		m.Configuration["delta.columnMapping.maxColumnId"] = strconv.Itoa(d.last)
	}
	for _, p := range d.o.Properties {
		k, v, ok := strings.Cut(p, "=")
		if !ok || k == "" {
			return nil, fault.Invalidf("property=%s: expected KEY=VALUE", p)
		}
		m.Configuration[k] = v
	}
	return m, nil
}

// commit writes version 0 of the table.
func (d *draft) commit(ctx context.Context, s store.Sink, files []lake.File) (names []string, n int64, err error) {
	now := cmp.Or(d.o.Time, time.Now().UnixMilli())
	m, err := d.metadata(now)
	if err != nil {
		return nil, 0, err
	}
	by, err := json.Marshal(m.Partitions)
	if err != nil {
		return nil, 0, err
	}
	p := d.protocol()
	rows, size := int64(0), int64(0)
	for _, f := range files {
		rows, size = rows+f.Rows, size+f.Bytes
	}
	actions := []log.Action{{CommitInfo: map[string]any{"timestamp": now, "operation": "CREATE TABLE AS SELECT",
		"operationParameters": map[string]any{"mode": "ErrorIfExists", "partitionBy": string(by)},
		"isBlindAppend":       true,
		"engineInfo":          engine, "operationMetrics": map[string]any{"numFiles": strconv.Itoa(len(files)),
			"numOutputRows": strconv.FormatInt(rows, 10), "numOutputBytes": strconv.FormatInt(size, 10)}}},
		{Protocol: &p}, {MetaData: m}}
	for _, f := range files {
		a, err := d.add(f, now)
		if err != nil {
			return nil, 0, err
		}
		actions = append(actions, log.Action{Add: a})
	}
	b, err := encode(actions)
	if err != nil {
		return nil, 0, err
	}
	name := path.Join(log.Dir, fmt.Sprintf("%020d.json", 0))
	return []string{name}, int64(len(b)), lake.Put(ctx, s, name, b)
}

// encode returns the file of a version.
func encode(actions []log.Action) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, a := range actions {
		if err := enc.Encode(a); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// add returns the action that adds a file.
func (d *draft) add(f lake.File, now int64) (*log.Add, error) {
	a := &log.Add{Path: (&url.URL{Path: f.Name}).EscapedPath(), Partition: log.Values{}, Size: f.Bytes,
		Modified: now, Changed: true}
	for i := range d.terms {
		t := &d.terms[i]
		text, ok, err := partitionText(t, f.Partition[i])
		if err != nil {
			return nil, err
		}
		if a.Partition[t.Column] = nil; ok {
			a.Partition[t.Column] = &text
		}
	}
	stats, err := json.Marshal(d.stats(f))
	a.Stats = string(stats)
	return a, err
}

// partitionText returns the value of a partition as stored in the log, where an empty text represents null.
func partitionText(t *lake.Term, v any) (string, bool, error) {
	s, ok := t.Text(v)
	switch x := t.Type.(type) {
	case *arrow.TimestampType:
		if ok && x.TimeZone != "" {
			s = strings.Replace(s, " ", "T", 1) + "Z"
		}
	case *arrow.BinaryType:
		if b, is := v.([]byte); is {
			var out strings.Builder
			for _, c := range b {
				out.WriteRune(rune(c))
			}
			s = out.String()
		}
	}
	if ok && s == "" {
		return "", false, fault.Invalidf("column %s: Delta cannot tell an empty partition value from null",
			t.Column)
	}
	return s, ok, nil
}

// stats returns the statistics of a file's values for the log, without those in lists and maps.
func (d *draft) stats(f lake.File) log.Stats {
	s := log.Stats{Rows: &f.Rows, Min: map[string]any{}, Max: map[string]any{}, Nulls: map[string]any{}}
	types := map[string]arrow.DataType{}
	d.leafTypes(d.stored.Fields(), "", types)
	for _, c := range f.Columns {
		t := types[strings.Join(c.Path, "\x00")]
		if c.Repeated || t == nil || slices.ContainsFunc(d.terms,
			func(t lake.Term) bool { return t.Column == c.Path[0] }) {
			continue
		}
		lo, ok1 := statValue(t, c.Min)
		hi, ok2 := statValue(t, c.Max)
		setPath(s.Nulls, c.Path, c.Nulls)
		if ok1 && ok2 && c.NaNs == 0 { // Spark treats NaN as the largest value, and JSON cannot represent it
			setPath(s.Min, c.Path, lo)
			setPath(s.Max, c.Path, hi)
		}
	}
	return s
}

// leafTypes collects the types of the leaves outside of lists and maps, by their paths.
func (d *draft) leafTypes(fields []arrow.Field, prefix string, types map[string]arrow.DataType) {
	for _, f := range fields {
		if t, ok := f.Type.(*arrow.StructType); ok {
			d.leafTypes(t.Fields(), prefix+f.Name+"\x00", types)
			continue
		}
		types[prefix+f.Name] = f.Type
	}
}

// setPath sets the value at a path of nested maps.
func setPath(m map[string]any, path []string, v any) {
	for _, p := range path[:len(path)-1] {
		in, ok := m[p].(map[string]any)
		if !ok {
			in = map[string]any{}
			m[p] = in
		}
		m = in
	}
	m[path[len(path)-1]] = v
}

// statValue converts a bound in PLAIN encoding to the form in statistics.
func statValue(t arrow.DataType, b []byte) (any, bool) {
	if b == nil {
		return nil, false
	}
	switch t := t.(type) {
	case *arrow.BooleanType:
		return b[0] != 0, true
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type:
		return int32(binary.LittleEndian.Uint32(b)), true
	case *arrow.Int64Type:
		return int64(binary.LittleEndian.Uint64(b)), true
	case *arrow.Float32Type:
		f := math.Float32frombits(binary.LittleEndian.Uint32(b))
		return f, !math.IsInf(float64(f), 0)
	case *arrow.Float64Type:
		f := math.Float64frombits(binary.LittleEndian.Uint64(b))
		return f, !math.IsInf(f, 0)
	case *arrow.StringType:
		return string(b), utf8.Valid(b)
	case *arrow.Date32Type:
		days := int64(int32(binary.LittleEndian.Uint32(b)))
		return dateText(time.Unix(days*86400, 0).UTC(), "2006-01-02")
	case *arrow.TimestampType:
		at := arrow.Timestamp(binary.LittleEndian.Uint64(b)).ToTime(t.Unit).UTC()
		layout := "2006-01-02T15:04:05.000000"
		if t.TimeZone != "" {
			layout += "Z"
		}
		return dateText(at, layout)
	case *arrow.Decimal128Type:
		n, _ := coerce.OfBigEndian(b)
		return json.Number(decimal128.Num(n).ToString(t.Scale)), true
	}
	return nil, false
}

// dateText formats a time; ok is false outside of the years 1 to 9999.
func dateText(t time.Time, layout string) (text any, ok bool) {
	return t.Format(layout), t.Year() > 0 && t.Year() < 10000
}
