package formattest

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Table is a random table whose content is known independently of Arrow: Cells holds a value for each column and row.
//
//	nil                null
//	bool               boolean
//	string             the bytes of a string or binary; for all other types the little-endian bytes of Arrow's buffer
//	[]any              list, or the fields of a struct
//	Pairs              map: its pairs
type Table struct {
	Schema *arrow.Schema
	Batch  arrow.RecordBatch
	Cells  [][]any // by column
}

// Pairs are the keys and values of a map.
type Pairs [][2]any

// TableOptions are options of RandomTable.
type TableOptions struct {
	Rows, Columns, Depth int              // maximums; a leaf has depth 1
	Leaves               []arrow.DataType // the types to draw from
	Gaps                 []int            // percentages of nulls, one of which is drawn for each column; nil: 25
	Plain                bool             // no nested types but structs and lists
	Structs              bool             // no nested types but structs, which may have no fields
	EmptyStructs         bool             // structs may have no fields
	Micros               bool             // timestamps are multiples of a microsecond and fit 64 bits in nanoseconds
	Fields               []arrow.Field    // the schema; nil: a random one
	// fixed-size lists are always nullable: pyarrow and arrow-go cannot read others below a null
	NullableFixed bool
}

// LeafTypes returns all Arrow types without children, and dictionaries of some of them.
func LeafTypes() []arrow.DataType {
	str := arrow.BinaryTypes.String
	out := []arrow.DataType{arrow.Null, arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int8,
		arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32,
		arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16,
		arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
		arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, str,
		arrow.BinaryTypes.Binary,
		arrow.BinaryTypes.LargeString, arrow.BinaryTypes.LargeBinary, arrow.BinaryTypes.StringView,
		arrow.BinaryTypes.BinaryView,
		&arrow.FixedSizeBinaryType{ByteWidth: 3}, &arrow.FixedSizeBinaryType{ByteWidth: 16},
		arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64,
		arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us,
		arrow.FixedWidthTypes.Time64ns,
		arrow.FixedWidthTypes.MonthInterval, arrow.FixedWidthTypes.DayTimeInterval,
		arrow.FixedWidthTypes.MonthDayNanoInterval,
		&arrow.Decimal32Type{Precision: 7, Scale: 2}, &arrow.Decimal64Type{Precision: 15, Scale: 4},
		&arrow.Decimal128Type{Precision: 5, Scale: 2},
		&arrow.Decimal128Type{Precision: 38, Scale: 9}, &arrow.Decimal256Type{Precision: 70, Scale: 3},
		&arrow.Decimal256Type{Precision: 12, Scale: 0}}
	for _, u := range []arrow.TimeUnit{arrow.Second, arrow.Millisecond, arrow.Microsecond, arrow.Nanosecond} {
		out = append(out, &arrow.TimestampType{Unit: u}, &arrow.TimestampType{Unit: u, TimeZone: "UTC"},
			&arrow.DurationType{Unit: u})
	}
	for _, v := range []arrow.DataType{str, arrow.BinaryTypes.Binary, arrow.PrimitiveTypes.Int32,
		&arrow.FixedSizeBinaryType{ByteWidth: 5}, &arrow.Decimal128Type{Precision: 20, Scale: 1}} {
		out = append(out, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: v})
	}
	return out
}

// RandomTable returns a random table: a quarter of its fields are not nullable. Its arrays have everything that
// producers' arrays may have: slices, values and items under nulls, children without nulls below null structs,
// dictionaries with unused, duplicate and null values.
func RandomTable(r *rand.Rand, o TableOptions) Table {
	g := &tables{r: r, o: o}
	var out Table
	var fields []arrow.Field
	var cols []arrow.Array
	rows := r.IntN(o.Rows + 1)
	if o.Fields == nil {
		for i := range 1 + r.IntN(o.Columns) {
			o.Fields = append(o.Fields, g.field("c"+strconv.Itoa(i), o.Depth))
		}
	}
	for _, f := range o.Fields {
		if g.gap = 25; len(o.Gaps) > 0 {
			g.gap = o.Gaps[r.IntN(len(o.Gaps))]
		}
		cells := make([]any, rows)
		for k := range cells {
			cells[k] = g.cell(f, true)
		}
		fields, cols, out.Cells = append(fields, f), append(cols, g.array(f, cells)), append(out.Cells, cells)
	}
	out.Schema = arrow.NewSchema(fields, nil)
	out.Batch = array.NewRecordBatch(out.Schema, cols, int64(rows))
	return out
}

type tables struct {
	r   *rand.Rand
	o   TableOptions
	gap int // percent of nulls in the column
}

func (g *tables) one(in int) bool { return g.r.IntN(in) == 0 }

func (g *tables) field(name string, depth int) arrow.Field {
	f := arrow.Field{Name: name, Nullable: !g.one(4)}
	shape := g.r.IntN(9)
	if depth <= 1 {
		shape = 8
	}
	if g.o.Plain && 5 <= shape && shape <= 7 {
		shape = 3
	}
	if g.o.Structs && 3 <= shape && shape <= 7 {
		shape = 8 * (shape % 2)
	}
	switch shape {
	case 0, 1, 2:
		var children []arrow.Field
		fewest := 1
		if (g.o.Structs || g.o.EmptyStructs) && g.one(6) {
			fewest = 0
		}
		for i := range fewest + g.r.IntN(3) {
			children = append(children, g.field("s"+strconv.Itoa(i), depth-1))
		}
		f.Type = arrow.StructOf(children...)
	case 3, 4:
		f.Type = arrow.ListOfField(g.field("element", depth-1))
	case 5:
		f.Type = arrow.LargeListOfField(g.field("element", depth-1))
	case 6:
		f.Nullable = f.Nullable || g.o.NullableFixed
		f.Type = arrow.FixedSizeListOfField(int32(1+g.r.IntN(3)), g.field("element", depth-1))
	case 7:
		key := g.field("key", 1)
		for key.Nullable = false; key.Type.ID() == arrow.NULL || key.Type.ID() == arrow.DICTIONARY; {
			key.Type = g.field("key", 1).Type
		}
		f.Type = arrow.MapOfFields(key, g.field("value", depth-1))
	default:
		f.Type = g.o.Leaves[g.r.IntN(len(g.o.Leaves))]
		f.Nullable = f.Nullable || f.Type.ID() == arrow.NULL
	}
	return f
}

// cell returns a random value; if nulls is false it is not null, nor is anything in it, except in columns of type null.
func (g *tables) cell(f arrow.Field, nulls bool) any {
	if f.Type.ID() == arrow.NULL || nulls && f.Nullable && g.r.IntN(100) < g.gap {
		return nil
	}
	switch t := f.Type.(type) {
	case *arrow.StructType:
		out := make([]any, t.NumFields())
		for i := range out {
			out[i] = g.cell(t.Field(i), nulls)
		}
		return out
	case *arrow.MapType:
		out := make(Pairs, g.r.IntN(4))
		for i := range out {
			out[i] = [2]any{g.cell(t.KeyField(), nulls), g.cell(t.ItemField(), nulls)}
		}
		return out
	case *arrow.FixedSizeListType:
		return g.items(t.ElemField(), int(t.Len()), nulls)
	case arrow.ListLikeType:
		return g.items(t.ElemField(), g.r.IntN(4), nulls)
	case *arrow.DictionaryType:
		return g.leaf(t.ValueType)
	}
	return g.leaf(f.Type)
}

func (g *tables) items(f arrow.Field, n int, nulls bool) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = g.cell(f, nulls)
	}
	return out
}

// leaf returns a random value that is not null.
func (g *tables) leaf(t arrow.DataType) any {
	x := int64(g.r.Uint64() >> g.r.IntN(64))
	if g.one(2) {
		x = -x
	}
	le64 := func(v int64) string { return string(binary.LittleEndian.AppendUint64(nil, uint64(v))) }
	switch t := t.(type) {
	case *arrow.BooleanType:
		return x&1 == 1
	case *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType:
		return strings.Repeat([]string{"a", "ö", "", "\x00", "zebra "}[g.r.IntN(5)], g.r.IntN(7)) +
			strconv.Itoa(g.r.IntN(20))[:g.r.IntN(2)]
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType:
		return le64(x)[:g.r.IntN(9)] + strings.Repeat("\xff", g.r.IntN(2)*20)
	case *arrow.Date64Type:
		return le64(int64(int32(x)) * 86_400_000)
	case *arrow.Time32Type, *arrow.Time64Type:
		x = x & (1<<62 - 1) % int64(24*time.Hour/t.(arrow.TemporalWithUnit).TimeUnit().Multiplier())
	case *arrow.TimestampType, *arrow.DurationType:
		if t.(arrow.TemporalWithUnit).TimeUnit() == arrow.Second {
			x %= 1 << 50
		}
		if t.ID() == arrow.TIMESTAMP && g.o.Micros {
			if x %= 1 << 40; t.(arrow.TemporalWithUnit).TimeUnit() == arrow.Nanosecond {
				x *= 1000
			}
		}
	case arrow.DecimalType:
		n := big.NewInt(1)
		for range g.r.IntN(int(t.GetPrecision()) + 1) {
			n.Add(n.Mul(n, big.NewInt(10)), big.NewInt(int64(g.r.IntN(10))))
		}
		n.Mod(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.GetPrecision())), nil))
		if g.one(2) {
			n.Neg(n)
		}
		return littleEndian(n, t.BitWidth()/8)
	}
	b := []byte(le64(x) + le64(int64(g.r.Uint64())))
	w := t.(arrow.FixedWidthDataType).BitWidth() / 8
	if g.one(8) {
		clear(b)
	}
	if t.ID() == arrow.FLOAT32 && g.one(8) {
		return string([]byte{0, 0, 0x80, []byte{0xff, 0x7f}[g.r.IntN(2)]})
	}
	return string(b[:w])
}

// littleEndian returns n in two's complement.
func littleEndian(n *big.Int, width int) string {
	b := make([]byte, width)
	m := n
	if n.Sign() < 0 {
		m = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*width)))
	}
	m.FillBytes(b)
	slices.Reverse(b)
	return string(b)
}

// array returns the array of cells, sometimes as a slice of a longer one.
func (g *tables) array(f arrow.Field, cells []any) arrow.Array {
	if !g.one(3) {
		return g.build(f, cells)
	}
	long := append(g.spare(f, 1+g.r.IntN(9)), cells...)
	at := len(long) - len(cells)
	long = append(long, g.spare(f, g.r.IntN(9))...)
	a := g.build(f, long)
	defer a.Release()
	return array.NewSlice(a, int64(at), int64(at+len(cells)))
}

func (g *tables) spare(f arrow.Field, n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = g.cell(f, true)
	}
	return out
}

// build returns the array of cells. It makes the buffers itself, because builders would put nulls below nulls.
func (g *tables) build(f arrow.Field, cells []any) arrow.Array {
	n := len(cells)
	valid, nulls := make([]byte, (n+7)/8), 0
	for i, c := range cells {
		if bitutil.SetBitTo(valid, i, c != nil); c == nil {
			nulls++
		}
	}
	bufs := []*memory.Buffer{memory.NewBufferBytes(valid)}
	if nulls == 0 && g.one(2) {
		bufs[0] = nil
	}
	var children []arrow.ArrayData
	switch t := f.Type.(type) {
	case *arrow.NullType:
		return array.NewNull(n)
	case *arrow.DictionaryType:
		return g.dictionary(t, f, cells)
	case *arrow.StructType:
		for i, c := range t.Fields() {
			children = append(children, g.array(c, g.fieldCells(cells, i, c)).Data())
		}
	case *arrow.MapType:
		entries := arrow.Field{Name: "entries", Type: t.Elem()}
		off, items := g.spread(cells, func() any {
			return []any{g.cell(t.KeyField(), false), g.cell(t.ItemField(), true)}
		})
		bufs = append(bufs, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(off)))
		children = append(children, g.build(entries, items).Data())
	case *arrow.FixedSizeListType:
		children = append(children, g.build(t.ElemField(), g.fixedItems(cells, t)).Data())
	case arrow.ListLikeType:
		off, items := g.spread(cells, func() any { return g.cell(t.ElemField(), true) })
		if f.Type.ID() == arrow.LARGE_LIST {
			bufs = append(bufs, memory.NewBufferBytes(arrow.Int64Traits.CastToBytes(wide(off))))
		} else {
			bufs = append(bufs, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(off)))
		}
		children = append(children, g.array(t.ElemField(), items).Data())
	default:
		return g.leaves(f.Type, cells, bufs, nulls)
	}
	d := array.NewData(f.Type, n, bufs, children, nulls, 0)
	defer d.Release()
	return array.MakeFromData(d)
}

// fieldCells returns the cells of field i of structs; below null structs they are null, or random values that must not
// show.
func (g *tables) fieldCells(cells []any, i int, f arrow.Field) []any {
	out := make([]any, len(cells))
	hide := g.one(2) || !f.Nullable
	for k := range cells {
		if s, ok := cells[k].([]any); ok {
			out[k] = s[i]
		} else if hide {
			out[k] = g.cell(f, false)
		}
	}
	return out
}

// fixedItems returns the items of fixed-size lists; null lists have as many as others.
func (g *tables) fixedItems(cells []any, t *arrow.FixedSizeListType) (items []any) {
	for _, c := range cells {
		if l, ok := c.([]any); ok {
			items = append(items, l...)
		} else {
			items = append(items, g.items(t.ElemField(), int(t.Len()), g.one(2))...)
		}
	}
	return items
}

// spread returns the offsets and items of lists; null lists sometimes have items.
func (g *tables) spread(cells []any, item func() any) (off []int32, items []any) {
	off = []int32{0}
	for _, c := range cells {
		switch l := c.(type) {
		case []any:
			items = append(items, l...)
		case Pairs:
			for _, p := range l {
				items = append(items, []any{p[0], p[1]})
			}
		default:
			for range g.r.IntN(3) * g.r.IntN(2) {
				items = append(items, item())
			}
		}
		off = append(off, int32(len(items)))
	}
	return off, items
}

func wide(off []int32) (out []int64) {
	for _, o := range off {
		out = append(out, int64(o))
	}
	return out
}

// dictionary returns a dictionary array of cells. Values may be duplicate, unused or null.
func (g *tables) dictionary(t *arrow.DictionaryType, f arrow.Field, cells []any) arrow.Array {
	values := []any{g.leaf(t.ValueType)}
	if f.Nullable && g.one(3) {
		values = append(values, nil)
	}
	idx := array.NewInt16Builder(memory.NewGoAllocator())
	for _, c := range cells {
		at := slices.Index(values, c)
		if at < 0 && c != nil || at > 0 && len(values) < 90 && g.one(5) {
			at, values = len(values), append(values, c)
		}
		if c == nil && (at < 0 || g.one(2)) {
			idx.AppendNull()
		} else {
			idx.Append(int16(at))
		}
	}
	codes := idx.NewInt16Array()
	for i, v := range codes.Int16Values() { // values under nulls are undefined
		if codes.IsNull(i) && g.one(2) {
			codes.Int16Values()[i] = v ^ int16(g.r.IntN(1<<16))
		}
	}
	return array.NewDictionaryArray(t, codes, g.build(arrow.Field{Type: t.ValueType, Nullable: true}, values))
}

// leaves returns an array of a type without children.
func (g *tables) leaves(t arrow.DataType, cells []any, bufs []*memory.Buffer, nulls int) arrow.Array {
	switch t.ID() {
	case arrow.STRING_VIEW, arrow.BINARY_VIEW:
		b := array.NewBuilder(memory.NewGoAllocator(), t)
		for _, c := range cells {
			switch b := b.(type) {
			case *array.StringViewBuilder:
				if s, ok := c.(string); ok {
					b.Append(s)
					continue
				}
			case *array.BinaryViewBuilder:
				if s, ok := c.(string); ok {
					b.Append([]byte(s))
					continue
				}
			}
			b.AppendNull()
		}
		a := b.NewArray()
		for i, c := range cells { // values under nulls are undefined
			if v := a.Data().Buffers()[1].Bytes(); c == nil && g.one(2) {
				binary.LittleEndian.PutUint64(v[16*i:], g.r.Uint64())
				binary.LittleEndian.PutUint64(v[16*i+8:], g.r.Uint64())
			}
		}
		return a
	}
	var data []byte
	off := []int32{0}
	bits := make([]byte, (len(cells)+7)/8)
	for i, c := range cells {
		switch c := c.(type) {
		case bool:
			bitutil.SetBitTo(bits, i, c)
		case string:
			data = append(data, c...)
		default: // values under nulls are undefined
			if x := g.leaf(t); t.ID() == arrow.BOOL {
				bitutil.SetBitTo(bits, i, x.(bool))
			} else {
				data = append(data, x.(string)...)
			}
		}
		off = append(off, int32(len(data)))
	}
	switch t.ID() {
	case arrow.BOOL:
		data = bits
	case arrow.STRING, arrow.BINARY:
		bufs = append(bufs, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(off)))
	case arrow.LARGE_STRING, arrow.LARGE_BINARY:
		bufs = append(bufs, memory.NewBufferBytes(arrow.Int64Traits.CastToBytes(wide(off))))
	}
	d := array.NewData(t, len(cells), append(bufs, memory.NewBufferBytes(data)), nil, nulls, 0)
	defer d.Release()
	return array.MakeFromData(d)
}

// CellsOf returns the content of an array in the form of Table.Cells.
func CellsOf(a arrow.Array) []any {
	out := make([]any, a.Len())
	for i := range out {
		out[i] = cellOf(a, i)
	}
	return out
}

func cellOf(a arrow.Array, i int) any {
	if a.DataType().ID() == arrow.NULL || a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.Boolean:
		return a.Value(i)
	case *array.Struct:
		out := make([]any, a.NumField())
		for k := range out {
			out[k] = cellOf(a.Field(k), i)
		}
		return out
	case *array.Map:
		from, to := a.ValueOffsets(i)
		out := make(Pairs, 0, to-from)
		for k := from; k < to; k++ {
			out = append(out, [2]any{cellOf(a.Keys(), int(k)), cellOf(a.Items(), int(k))})
		}
		return out
	case array.ListLike:
		from, to := a.ValueOffsets(i)
		out := make([]any, 0, to-from)
		for k := from; k < to; k++ {
			out = append(out, cellOf(a.ListValues(), int(k)))
		}
		return out
	case *array.Dictionary:
		return cellOf(a.Dictionary(), a.GetValueIndex(i))
	case array.ExtensionArray:
		return cellOf(a.Storage(), i)
	case *array.String:
		return a.Value(i)
	case *array.LargeString:
		return a.Value(i)
	case *array.StringView:
		return a.Value(i)
	case *array.Binary:
		return string(a.Value(i))
	case *array.LargeBinary:
		return string(a.Value(i))
	case *array.BinaryView:
		return string(a.Value(i))
	}
	w := a.DataType().(arrow.FixedWidthDataType).BitWidth() / 8
	at := (a.Data().Offset() + i) * w
	return string(a.Data().Buffers()[1].Bytes()[at : at+w])
}

// Plain returns a cell in a form that programs in other languages can also print: numbers as text, decimals unscaled,
// times, timestamps and durations in nanoseconds, dates in days; the bits of floats and all bytes in hex; maps as lists
// of pairs, structs as lists of their fields.
func Plain(t arrow.DataType, cell any) any {
	switch x := cell.(type) {
	case nil, bool:
		return cell
	case Pairs:
		m := t.(*arrow.MapType)
		out := []any{}
		for _, p := range x {
			out = append(out, []any{Plain(m.KeyType(), p[0]), Plain(m.ItemType(), p[1])})
		}
		return out
	case []any:
		out := []any{}
		for i, v := range x {
			if s, ok := t.(*arrow.StructType); ok {
				out = append(out, Plain(s.Field(i).Type, v))
			} else {
				out = append(out, Plain(t.(arrow.ListLikeType).Elem(), v))
			}
		}
		return out
	}
	s := cell.(string)
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return Plain(t.ValueType, cell)
	case arrow.ExtensionType:
		return Plain(t.StorageType(), cell)
	case *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType:
		return s
	case arrow.BinaryDataType, *arrow.BinaryViewType, *arrow.FixedSizeBinaryType, *arrow.DayTimeIntervalType,
		*arrow.MonthDayNanoIntervalType:
		return hex.EncodeToString([]byte(s))
	case *arrow.Float16Type, *arrow.Float32Type, *arrow.Float64Type:
		return hex.EncodeToString([]byte(s))
	}
	n := number(t, s)
	switch t := t.(type) {
	case *arrow.Date64Type:
		n.Quo(n, big.NewInt(86_400_000))
	case arrow.TemporalWithUnit:
		n.Mul(n, big.NewInt(int64(t.TimeUnit().Multiplier())))
	}
	return n.String()
}

// number returns the value of little-endian bytes.
func number(t arrow.DataType, s string) *big.Int {
	b := []byte(s)
	slices.Reverse(b)
	n := new(big.Int).SetBytes(b)
	if b[0] >= 0x80 && !arrow.IsUnsignedInteger(t.ID()) {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return n
}

// String returns the table's size and schema, for messages.
func (t Table) String() string { return fmt.Sprintf("%d rows of %s", t.Batch.NumRows(), t.Schema) }
