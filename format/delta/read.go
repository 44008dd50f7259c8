package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/delta/internal/log"
	"stoa/format/internal/lake"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
)

// readerFeatures are the features that stoa supports, or that matter only with types that are then visible in the
// schema.
var readerFeatures = []string{"columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "typeWidening",
	"typeWidening-preview", "vacuumProtocolCheck", "variantType", "variantType-preview", "variantShredding-preview"}

// versionReader is a table that is being opened.
type versionReader struct {
	*logFiles
	*state
	o      format.OpenOptions
	mode   string
	fields []arrow.Field
	found  []region.Finding
}

// openVersion reads the log of a table.
func openVersion(ctx context.Context, tg format.Target, o format.OpenOptions) (*versionReader, error) {
	ro, err := reading.Parse(o.Opts)
	if err != nil {
		return nil, err
	}
	if tg.Table != "" {
		return nil, fault.Invalidf("%s is one table of Delta Lake and has no table %q", tg.Name, tg.Table)
	}
	op := &versionReader{o: o}
	if op.logFiles, err = listLog(ctx, tg); err != nil {
		return nil, err
	}
	if op.logFiles == nil && lost(ctx, tg) {
		return nil, fault.Corruptf(fault.Span{Object: path.Join(tg.Name, log.Dir)}, "", "expected the versions of a "+
			"log, found none: nothing says which files are the table; its Parquet files can be read one by one")
	}
	if op.logFiles == nil {
		return nil, fault.Unsupportedf(fault.Span{Object: tg.Name}, "", "not a table of Delta Lake: there is no %s",
			log.Dir)
	}
	version, err := op.pick(ctx, ro.At, o.Limits)
	if err != nil {
		return nil, err
	}
	if op.state, err = op.load(ctx, version, o.Limits, o); err != nil {
		return nil, err
	}
	op.found = op.findings(ctx)
	return op, op.schema()
}

// schema checks the protocol and makes the schema.
func (op *versionReader) schema() error {
	at := fault.Span{Object: path.Join(op.dir, log.Dir)}
	if v := op.protocol.MinReader; v > 3 {
		return fault.Unsupportedf(at, "protocol", "expected a reader version of at most 3, found %d", v)
	}
	for _, f := range op.protocol.ReaderFeatures {
		if !slices.Contains(readerFeatures, f) {
			return fault.Unsupportedf(at, "protocol", "the table needs the reader feature %s, which stoa does not have",
				f)
		}
	}
	if p := op.metadata.Format.Provider; p != "parquet" && p != "" {
		return fault.Unsupportedf(at, "metaData.format", "expected files in Parquet, found %s", p)
	}
	op.mode = op.metadata.Configuration["delta.columnMapping.mode"]
	var s log.Struct
	if err := json.Unmarshal([]byte(op.metadata.Schema), &s); err != nil {
		return fault.Corruptf(at, "metaData.schemaString", "%v", err)
	}
	var err error
	if op.fields, err = log.Arrow(s.Fields, op.mode, 0); err != nil {
		if errors.Is(err, log.ErrType) {
			return fault.Unsupportedf(at, "metaData.schemaString", "%v", err)
		}
		return fault.Corruptf(at, "metaData.schemaString", "%v", err)
	}
	return op.o.Limits.Afford(arrow.NewSchema(op.fields, nil), at, "metaData.schemaString")
}

// renamedField returns a field that has another name in the files; "" if there is none.
func renamedField(fields []arrow.Field) string {
	for _, f := range fields {
		if name, ok := f.Metadata.GetValue(log.PhysicalName); ok && name != f.Name {
			return f.Name
		}
		if t, ok := f.Type.(arrow.NestedType); ok {
			if name := renamedField(t.Fields()); name != "" {
				return name
			}
		}
	}
	return ""
}

// open implements Format.Open.
func open(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, error) {
	op, err := openVersion(ctx, tg, o)
	if err != nil {
		return nil, err
	}
	r, err := op.reader()
	if err != nil {
		return nil, err
	}
	return r, nil
}

// reader makes the reader of the version.
func (op *versionReader) reader() (*lake.Table, error) {
	c := lake.Config{Catalogue: "the log", Sized: true, Tree: op.tree, Schema: arrow.NewSchema(op.fields, nil),
		Open: op.o, Meta: op.properties(), Match: lake.ByKey(log.PhysicalName),
		Layout: format.Layout{Partitions: op.metadata.Partitions}, Findings: op.found}
	if op.mode == "id" {
		c.Match = lake.ByID(c.Match)
	}
	seen := map[string]bool{}
	for _, a := range op.adds() {
		in, err := op.input(a)
		if err != nil {
			return nil, err
		}
		if seen[in.Name] {
			return nil, fault.Corruptf(fault.Span{Object: path.Join(op.dir, log.Dir)}, "add", "version %d has %s "+
				"twice, with different deletion vectors", op.version, in.Name)
		}
		seen[in.Name] = true
		c.Files = append(c.Files, in)
	}
	return lake.New(c), nil
}

// adds returns the files of the table, in the order in which they were first added.
func (op *versionReader) adds() (out []*log.Add) {
	for _, key := range op.order {
		if a := op.files[key]; a != nil {
			out = append(out, a)
		}
	}
	return out
}

// name returns the name in the tree of a path in the log.
func (op *versionReader) name(p string) (string, error) {
	at := fault.Span{Object: path.Join(op.dir, log.Dir)}
	plain, err := url.PathUnescape(p)
	if err != nil {
		return "", fault.Corruptf(at, "add.path", "expected a path encoded as in a URL, found %q", p)
	}
	if strings.Contains(p, ":/") || path.IsAbs(plain) {
		if within, ok := op.within(plain); ok {
			return path.Join(op.dir, within), nil
		}
	} else if within := path.Clean(plain); within != ".." && !strings.HasPrefix(within, "../") {
		return path.Join(op.dir, within), nil
	}
	return "", fault.Unsupportedf(at, "", "%q is outside of the table, as in a shallow clone; such files are not read",
		p)
}

// within returns the path below the table's directory of an absolute path, which is known of a local table.
func (op *versionReader) within(p string) (string, bool) {
	if _, local := dataTree(op.tree).(store.Local); !local {
		return "", false
	}
	dir, err := filepath.Abs(filepath.FromSlash(op.dir))
	if err != nil {
		return "", false
	}
	if rest, ok := strings.CutPrefix(p, "file:"); ok {
		p = "/" + strings.TrimLeft(rest, "/")
	}
	return strings.CutPrefix(path.Clean(p), filepath.ToSlash(dir)+"/")
}

// dataTree is the tree below a cache, and below what limits or counts its use.
func dataTree(t store.Tree) store.Tree {
	for {
		w, ok := t.(interface{ Unwrap() store.Tree })
		if !ok {
			return t
		}
		t = w.Unwrap()
	}
}

// input returns a file as an input of lake.Table.
func (op *versionReader) input(a *log.Add) (*lake.Input, error) {
	name, err := op.name(a.Path)
	if err != nil {
		return nil, err
	}
	in := &lake.Input{Name: name, Rows: -1, Bytes: a.Size, Values: map[int]arrow.Array{}, Bounds: map[int]pred.Bounds{}}
	var s log.Stats
	d := json.NewDecoder(strings.NewReader(a.Stats))
	d.UseNumber()
	if a.Stats != "" && d.Decode(&s) == nil && s.Rows != nil {
		in.Rows = *s.Rows
	}
	for i, f := range op.fields {
		physical, ok := f.Metadata.GetValue(log.PhysicalName)
		if !ok {
			physical = f.Name
		}
		if slices.Contains(op.metadata.Partitions, f.Name) {
			if err := op.partition(in, i, f, a.Partition[physical]); err != nil {
				return nil, err
			}
			continue
		}
		if b, ok := boundsOf(f.Type, &s, physical, in.Rows); ok {
			in.Bounds[i] = b
		}
	}
	if a.Vector != nil && a.Vector.Cardinality != 0 {
		in.LiveBounds = s.Tight == nil || *s.Tight
		in.Deleted = op.deleted(a.Vector)
	}
	return in, nil
}

// partition sets the value of partition column i of a file.
func (op *versionReader) partition(in *lake.Input, i int, f arrow.Field, text *string) error {
	b := array.NewBuilder(memory.NewGoAllocator(), f.Type)
	defer b.Release()
	if err := appendText(b, f.Type, text); err != nil {
		return fault.Corruptf(fault.Span{Object: in.Name}, f.Name, "expected a value of type %s, found %q", f.Type,
			*text)
	}
	a := b.NewArray()
	in.Values[i] = a
	if a.IsNull(0) {
		return nil
	}
	if v, ok := lake.ValueOf(f.Type, a, 0); ok {
		in.Bounds[i] = pred.Bounds{Min: &v, Max: &v, Rows: in.Rows, NoNaN: true}
	}
	return nil
}

// appendText appends the value of a partition, which is stored as text; an empty text is null.
func appendText(b array.Builder, t arrow.DataType, text *string) error {
	if text == nil || *text == "" {
		b.AppendNull()
		return nil
	}
	switch b := b.(type) {
	case *array.TimestampBuilder:
		for _, layout := range []string{"2006-01-02 15:04:05.999999999", time.RFC3339Nano} {
			if at, err := time.Parse(layout, *text); err == nil {
				b.Append(arrow.Timestamp(at.UnixMicro()))
				return nil
			}
		}
		return errors.New("not a timestamp")
	case *array.BinaryBuilder:
		var raw []byte
		for _, r := range *text {
			raw = append(raw, byte(r))
		}
		b.Append(raw)
		return nil
	}
	return b.AppendValueFromString(*text)
}

// boundsOf returns the bounds of a column according to statistics.
func boundsOf(t arrow.DataType, s *log.Stats, name string, rows int64) (b pred.Bounds, ok bool) {
	b = pred.Bounds{Nulls: -1, Rows: rows}
	if n, is := s.Nulls[name].(json.Number); is && (s.Tight == nil || *s.Tight) {
		if k, err := n.Int64(); err == nil {
			b.Nulls, ok = k, true
		}
	}
	lo, ok1 := parseStat(t, s.Min[name], 0)
	hi, ok2 := parseStat(t, s.Max[name], 999)
	if ok1 && ok2 {
		b.Min, b.Max, ok = &lo, &hi, true
	}
	return b, ok
}

// parseStat parses a bound. Statistics may truncate timestamps to milliseconds, so late microseconds are added to a
// maximum.
func parseStat(t arrow.DataType, v any, late int64) (pred.Value, bool) {
	text, isText := v.(string)
	n, isNumber := v.(json.Number)
	switch x := t.(type) {
	case *arrow.BooleanType:
		b, ok := v.(bool)
		return pred.Bool(b), ok
	case *arrow.StringType:
		return pred.String(text), isText
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type:
		k, err := n.Int64()
		return pred.Int(k), isNumber && err == nil
	case *arrow.Float32Type, *arrow.Float64Type:
		f, err := n.Float64()
		if t.ID() == arrow.FLOAT32 { // the shortest digits of a float denote a different double
			f = float64(float32(f))
		}
		return pred.Float(f), isNumber && err == nil
	case *arrow.Date32Type:
		at, err := time.Parse(time.DateOnly, text)
		return pred.Date(at.Unix() / 86400), isText && err == nil && at.Unix()%86400 == 0
	case *arrow.TimestampType:
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999",
			"2006-01-02 15:04:05.999999999"} {
			if at, err := time.Parse(layout, text); err == nil {
				return pred.Typed(t, at.UnixMicro()+late), true
			}
		}
	case *arrow.Decimal128Type:
		if d, err := decimal128.FromString(n.String(), x.Precision, x.Scale); isNumber && err == nil {
			return pred.Decimal(d, x.Scale), true
		}
	}
	return pred.Value{}, false
}

// properties returns the properties that `stoa meta` prints.
func (op *versionReader) properties() (out []format.KeyValue) {
	add := func(k, v string) { out = append(out, format.KeyValue{Key: k, Value: v}) }
	add("format", "Delta Lake")
	add("table_id", op.metadata.ID)
	if op.metadata.Name != "" {
		add("name", op.metadata.Name)
	}
	p := fmt.Sprintf("reader %d, writer %d", op.protocol.MinReader, op.protocol.MinWriter)
	if f := op.protocol.ReaderFeatures; len(f) > 0 {
		p += "; " + strings.Join(f, ", ")
	}
	add("protocol", p)
	add("version", strconv.FormatInt(op.version, 10))
	add("data_files", strconv.Itoa(len(op.adds())))
	if len(op.metadata.Partitions) > 0 {
		add("partition_columns", strings.Join(op.metadata.Partitions, ", "))
	}
	if first := op.first(); first < op.version {
		add("versions", fmt.Sprintf("%d to %d", first, op.newest()))
	}
	var keys []string
	for k := range op.metadata.Configuration {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		add("property: "+k, op.metadata.Configuration[k])
	}
	for _, c := range op.commits {
		add("version: "+strconv.FormatInt(c.version, 10), c.about)
	}
	return out
}
