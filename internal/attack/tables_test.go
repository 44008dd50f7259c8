package attack

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// kinds are the sets of columns that a table may have; columns that a format cannot write are left out.
type kinds int

const (
	texts kinds = iota // what CSV can hold
	flats              // one value per row
	nests              // also lists and structs
)

// column generates a column: add appends a value to a builder and returns it as in JSON.
type column struct {
	name string
	typ  arrow.DataType
	word string // the type in --schema's words; "" = not needed
	null int    // one row in this many is null; 0: none
	add  func(r *rand.Rand, row int, b array.Builder) any
}

var someWords = []string{"", "a", "blue", "green", "Ångström", "a,b", "tab\there", "quote\"d", "line\nfeed", "null",
	"0", "-", "🙂🙂", "longer than the others by quite some"}

// word draws a text: one of a few if few is true, otherwise nearly always a new one.
func word(r *rand.Rand, row int, few bool) string {
	if few {
		return someWords[r.IntN(len(someWords))]
	}
	return fmt.Sprintf("%s%x", someWords[1+r.IntN(4)], r.Uint64()>>r.IntN(60))
}

func typed(name string, t arrow.DataType, w string,
	add func(r *rand.Rand, row int, b array.Builder) any) func(*rand.Rand) column {
	return func(r *rand.Rand) column {
		return column{name: name, typ: t, word: w, null: []int{0, 0, 4, 20}[r.IntN(4)], add: add}
	}
}

var money = &arrow.Decimal128Type{Precision: 12, Scale: 2}

// choice has the columns that a table may have besides id.
var choice = map[kinds][]func(*rand.Rand) column{
	texts: {
		typed("n", arrow.PrimitiveTypes.Int32, "int32", func(r *rand.Rand, _ int, b array.Builder) any {
			v := int32(r.Uint32()) >> r.IntN(31)
			b.(*array.Int32Builder).Append(v)
			return v
		}),
		typed("run", arrow.PrimitiveTypes.Int64, "int64", func(_ *rand.Rand, row int, b array.Builder) any {
			b.(*array.Int64Builder).Append(int64(row / 37))
			return int64(row / 37)
		}),
		typed("x", arrow.PrimitiveTypes.Float64, "float64", func(r *rand.Rand, _ int, b array.Builder) any {
			v := float64(int32(r.Uint32())) / 4
			b.(*array.Float64Builder).Append(v)
			return v
		}),
		typed("s", arrow.BinaryTypes.String, "utf8", func(r *rand.Rand, row int, b array.Builder) any {
			v := word(r, row, false)
			b.(*array.StringBuilder).Append(v)
			return v
		}),
		typed("few", arrow.BinaryTypes.String, "utf8", func(r *rand.Rand, row int, b array.Builder) any {
			v := word(r, row, true)
			b.(*array.StringBuilder).Append(v)
			return v
		}),
		typed("yes", arrow.FixedWidthTypes.Boolean, "bool", func(r *rand.Rand, _ int, b array.Builder) any {
			v := r.IntN(3) == 0
			b.(*array.BooleanBuilder).Append(v)
			return v
		}),
	},
	flats: {
		typed("raw", arrow.BinaryTypes.Binary, "binary", func(r *rand.Rand, _ int, b array.Builder) any {
			v := make([]byte, r.IntN(20))
			for i := range v {
				v[i] = byte(r.Uint32())
			}
			b.(*array.BinaryBuilder).Append(v)
			return base64.StdEncoding.EncodeToString(v)
		}),
		typed("at", &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, "timestamp[us, UTC]",
			func(r *rand.Rand, _ int, b array.Builder) any {
				ms := r.Int64N(4e12)
				b.(*array.TimestampBuilder).Append(arrow.Timestamp(ms * 1000))
				return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.999999Z")
			}),
		typed("cost", money, "decimal(12, 2)", func(r *rand.Rand, _ int, b array.Builder) any {
			v := r.Int64N(1e10) - 5e9
			b.(*array.Decimal128Builder).Append(decimal128.FromI64(v))
			return decimal128.FromI64(v).ToString(2)
		}),
	},
	nests: {
		typed("list", arrow.ListOf(arrow.PrimitiveTypes.Int64), "", func(r *rand.Rand, _ int, b array.Builder) any {
			l := b.(*array.ListBuilder)
			l.Append(true)
			v := []int64{}
			for range r.IntN(4) {
				n := r.Int64N(1000)
				l.ValueBuilder().(*array.Int64Builder).Append(n)
				v = append(v, n)
			}
			return v
		}),
		typed("pair", arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
			arrow.Field{Name: "b", Type: arrow.BinaryTypes.String}), "",
			func(r *rand.Rand, row int, b array.Builder) any {
				s := b.(*array.StructBuilder)
				s.Append(true)
				w := word(r, row, true)
				s.FieldBuilder(1).(*array.StringBuilder).Append(w)
				if r.IntN(5) == 0 {
					s.FieldBuilder(0).AppendNull()
					return map[string]any{"a": nil, "b": w}
				}
				n := r.Int64N(1 << 40)
				s.FieldBuilder(0).(*array.Int64Builder).Append(n)
				return map[string]any{"a": n, "b": w}
			}),
	},
}

// table is a table that the attack generated: its columns, and each row as JSON.
type table struct {
	columns []column
	rows    []map[string]any
}

// newTable generates random columns of kind k, leaving out the names in without. id is the row's number times 3, plus
// base.
func newTable(r *rand.Rand, k kinds, without string, width int) *table {
	t := &table{columns: []column{{name: "id", typ: arrow.PrimitiveTypes.Int64, word: "int64"}}}
	var all []column
	for kind := texts; kind <= k; kind++ {
		for _, make := range choice[kind] {
			if c := make(r); !slices.Contains(strings.Fields(without), c.name) {
				all = append(all, c)
			}
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	t.columns = append(t.columns, all[:min(len(all), width)]...)
	return t
}

func (t *table) schema() *arrow.Schema {
	var f []arrow.Field
	for _, c := range t.columns {
		f = append(f, arrow.Field{Name: c.name, Type: c.typ, Nullable: c.null > 0})
	}
	return arrow.NewSchema(f, nil)
}

// words returns the schema in the form of --source-opt schema.
func (t *table) words() string {
	var w []string
	for _, c := range t.columns {
		w = append(w, c.name+": "+c.word)
	}
	return strings.Join(w, ", ")
}

// write generates n rows and writes them to an Arrow file, in batches.
func (t *table) write(name string, r *rand.Rand, n, batch int, base int64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(t.schema()))
	if err != nil {
		return err
	}
	t.rows = nil
	for from := 0; from < n; from += batch {
		b := array.NewRecordBuilder(memory.DefaultAllocator, t.schema())
		for row := from; row < min(n, from+batch); row++ {
			id := base + int64(row)*3
			b.Field(0).(*array.Int64Builder).Append(id)
			cells := map[string]any{"id": id}
			for i, c := range t.columns[1:] {
				if c.null > 0 && r.IntN(c.null) == 0 {
					b.Field(i + 1).AppendNull()
					cells[c.name] = nil
					continue
				}
				cells[c.name] = c.add(r, row, b.Field(i+1))
			}
			t.rows = append(t.rows, cells)
		}
		rec := b.NewRecordBatch()
		if err := w.Write(rec); err != nil {
			return err
		}
		rec.Release()
		b.Release()
	}
	if err := w.Close(); err != nil {
		return err
	}
	return nil
}

// differs compares lines of JSON with the rows and describes the first difference; "" = equal. A bare file does not
// preserve the nesting of lists and structs.
func (t *table) differs(lines []string, bare bool) string {
	if len(lines) != len(t.rows) {
		return fmt.Sprintf("%d rows, want %d", len(lines), len(t.rows))
	}
	for i, l := range lines {
		var got map[string]any
		d := json.NewDecoder(strings.NewReader(l))
		d.UseNumber()
		if err := d.Decode(&got); err != nil {
			return err.Error()
		}
		w, _ := json.Marshal(t.rows[i])
		d = json.NewDecoder(strings.NewReader(string(w)))
		d.UseNumber()
		var want map[string]any
		d.Decode(&want)
		for k, v := range want {
			if bare && (k == "list" || k == "pair") {
				continue
			}
			if fmt.Sprint(v) != fmt.Sprint(got[k]) && !sameNumber(v, got[k]) {
				return fmt.Sprintf("row %d, %s: %v, want %v", i, k, got[k], v)
			}
		}
		if len(got) != len(want) {
			return fmt.Sprintf("row %d has %d columns, want %d", i, len(got), len(want))
		}
	}
	return ""
}

func sameNumber(a, b any) bool {
	x, ok := a.(json.Number)
	y, ok2 := b.(json.Number)
	if !ok || !ok2 {
		return false
	}
	p, err := x.Float64()
	q, err2 := y.Float64()
	return err == nil && err2 == nil && p == q
}
