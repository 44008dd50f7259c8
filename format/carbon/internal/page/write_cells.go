package page

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/internal/enc/half"
)

// AddNull appends one null entry: 0, no bytes, a list of one null item, or a struct of nulls, depending on the type.
func (x *Cells) AddNull(c *schema.Column) {
	x.setNull(x.N)
	x.N++
	if schema.HasGlobalCodes(c) {
		x.Ints = append(x.Ints, schema.NullCode)
		return
	}
	switch c.Type {
	case layout.TypeFloat, layout.TypeDouble:
		x.Nums = append(x.Nums, 0)
	case layout.TypeDecimal:
		x.Decs = append(x.Decs, decimal128.Num{})
	case layout.TypeString, layout.TypeVarchar, layout.TypeBinary:
		x.ends = append(x.ends, uint32(len(x.data)))
	case layout.TypeArray, layout.TypeMap:
		x.Ints = append(x.Ints, 1)
		x.Children[0].AddNull(c.Children[0])
	case layout.TypeStruct:
		for i, k := range x.Children {
			k.AddNull(c.Children[i])
		}
	default:
		x.Ints = append(x.Ints, 0)
	}
}

// Add appends entries [from, to) of an array.
func (x *Cells) Add(c *schema.Column, a arrow.Array, from, to int, o *schema.WriteOptions) error {
	switch a := a.(type) {
	case array.ExtensionArray:
		return x.Add(c, a.Storage(), from, to, o)
	case *array.Dictionary:
		for i := from; i < to; i++ {
			if a.IsNull(i) {
				x.AddNull(c)
				continue
			}
			k := a.GetValueIndex(i)
			if err := x.Add(c, a.Dictionary(), k, k+1, o); err != nil {
				return err
			}
		}
		return nil
	case *array.Null:
		for range to - from {
			x.AddNull(c)
		}
		return nil
	}
	if c.Type.Complex() {
		return x.addNested(c, a, from, to, o)
	}
	if schema.HasGlobalCodes(c) {
		return x.addCodes(c, a, from, to)
	}
	at := x.N
	if NeedsConversion(c, a.DataType()) {
		if err := x.AddConverted(c, a, from, to); err != nil {
			return err
		}
		return x.wholeSeconds(c, at, from, o)
	}
	if err := x.addValues(c, a, from, to, o); err != nil {
		return err
	}
	x.N = at + to - from
	if a.NullN() > 0 {
		for i := from; i < to; i++ {
			if a.IsNull(i) {
				x.setNull(at + i - from)
				x.zero(c, at+i-from)
			}
		}
	}
	return x.wholeSeconds(c, at, from, o)
}

// zero sets the value of a null entry to 0, because in Arrow it is undefined.
func (x *Cells) zero(c *schema.Column, i int) {
	switch c.Type {
	case layout.TypeFloat, layout.TypeDouble:
		x.Nums[i] = 0
	case layout.TypeDecimal:
		x.Decs[i] = decimal128.Num{}
	case layout.TypeString, layout.TypeVarchar, layout.TypeBinary: // addTexts leaves them empty
	default:
		x.Ints[i] = 0
	}
}

// addWholes appends whole numbers.
func addWholes[T ~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64](x *Cells, v []T) {
	for _, y := range v {
		x.Ints = append(x.Ints, int64(y))
	}
}

// addValues appends values of a type without children. The values under nulls are not checked.
func (x *Cells) addValues(c *schema.Column, a arrow.Array, from, to int, o *schema.WriteOptions) error {
	switch a := a.(type) {
	case *array.Boolean:
		for i := from; i < to; i++ {
			v := int64(0)
			if a.Value(i) {
				v = 1
			}
			x.Ints = append(x.Ints, v)
		}
	case *array.Int8:
		addWholes(x, a.Int8Values()[from:to])
	case *array.Uint8:
		addWholes(x, a.Uint8Values()[from:to])
	case *array.Int16:
		addWholes(x, a.Int16Values()[from:to])
	case *array.Uint16:
		addWholes(x, a.Uint16Values()[from:to])
	case *array.Int32:
		addWholes(x, a.Int32Values()[from:to])
	case *array.Uint32:
		addWholes(x, a.Uint32Values()[from:to])
	case *array.Int64:
		addWholes(x, a.Int64Values()[from:to])
	case *array.Uint64:
		for _, v := range a.Uint64Values()[from:to] {
			x.Decs = append(x.Decs, decimal128.FromU64(v))
		}
	case *array.Float16:
		for _, v := range a.Values()[from:to] {
			x.Nums = append(x.Nums, float64(half.Float(v.Uint16())))
		}
	case *array.Float32:
		for _, v := range a.Float32Values()[from:to] {
			x.Nums = append(x.Nums, float64(v))
		}
	case *array.Float64:
		x.Nums = append(x.Nums, a.Float64Values()[from:to]...)
	case *array.Date32, *array.Date64:
		return x.addDates(a, from, to)
	case *array.Timestamp:
		return x.addTimes(a, from, to, o)
	case *array.Decimal32, *array.Decimal64, *array.Decimal128, *array.Decimal256:
		return x.addDecimals(c, a, from, to)
	default:
		return x.addTexts(c, a, from, to)
	}
	return nil
}

// Dates are codes of 31 bits; code 1 is null and 0 is not used.
const (
	MinDate = 2 - schema.DateOffset
	MaxDate = math.MaxInt32 - schema.DateOffset
)

const dayMillis = 86_400_000

func (x *Cells) addDates(a arrow.Array, from, to int) error {
	for i := from; i < to; i++ {
		var d int64
		switch a := a.(type) {
		case *array.Date32:
			d = int64(a.Value(i))
		case *array.Date64:
			d = int64(a.Value(i))
			if d%dayMillis != 0 && a.IsValid(i) {
				return ValueErrorf(i, "the date %d ms is not a whole day", d)
			}
			d /= dayMillis
		}
		if a.IsValid(i) && (d < MinDate || d > MaxDate) {
			return ValueErrorf(i, "the date %d days from 1970 is beyond what a code can say (%d to %d)", d, MinDate,
				MaxDate)
		}
		x.Ints = append(x.Ints, d)
	}
	return nil
}

// addTimes appends timestamps as milliseconds.
func (x *Cells) addTimes(a *array.Timestamp, from, to int, o *schema.WriteOptions) error {
	unit := a.DataType().(*arrow.TimestampType).Unit
	for i, v := range a.TimestampValues()[from:to] {
		ms := int64(v)
		switch unit {
		case arrow.Second:
			if a.IsValid(from+i) && (ms > math.MaxInt64/1000 || ms < math.MinInt64/1000) {
				return ValueErrorf(from+i, "the time %d s does not fit in milliseconds", ms)
			}
			ms *= 1000
		case arrow.Microsecond, arrow.Nanosecond:
			per := int64(1000)
			if unit == arrow.Nanosecond {
				per = 1_000_000
			}
			rest := ms % per
			if rest < 0 {
				rest += per
			}
			if rest != 0 && a.IsValid(from+i) && !o.Truncate {
				return ValueErrorf(from+i, "the time has parts of a millisecond, which CarbonData cannot keep "+
					"(writing option timestamps=truncate drops them)")
			}
			ms = (ms - rest) / per
		}
		x.Ints = append(x.Ints, ms)
	}
	return nil
}

func (x *Cells) addDecimals(c *schema.Column, a arrow.Array, from, to int) error {
	for i := from; i < to; i++ {
		var v decimal128.Num
		switch a := a.(type) {
		case *array.Decimal32:
			v = decimal128.FromI64(int64(a.Value(i)))
		case *array.Decimal64:
			v = decimal128.FromI64(int64(a.Value(i)))
		case *array.Decimal128:
			v = a.Value(i)
		case *array.Decimal256:
			w := a.Value(i).Array()
			v = decimal128.New(int64(w[1]), w[0])
			if s := uint64(int64(w[1]) >> 63); a.IsValid(i) && (w[2] != s || w[3] != s) {
				return ValueErrorf(i, "the decimal has more than 38 digits")
			}
		}
		if a.IsValid(i) && !v.FitsInPrecision(c.Precision) {
			return ValueErrorf(i, "the decimal %s has more than %d digits", v.ToString(c.Scale), c.Precision)
		}
		x.Decs = append(x.Decs, v)
	}
	return nil
}

// maxString is the longest string in bytes with a length of two bytes. The two bytes count towards the limit, as in
// CarbonData's writer.
const maxString = math.MaxInt16 - 2

func (x *Cells) addTexts(c *schema.Column, a arrow.Array, from, to int) error {
	limit := math.MaxInt32 >> 3
	if c.Type == layout.TypeString && c.Parent == nil {
		limit = maxString
	}
	for i := from; i < to; i++ {
		at := len(x.data)
		if a.IsValid(i) {
			switch a := a.(type) {
			case StringArray:
				x.data = append(x.data, a.Value(i)...)
			case binaryArray:
				x.data = append(x.data, a.Value(i)...)
			default:
				return fault.Bugf("carbon: values of %s as %s", a.DataType(), c.Type)
			}
			if n := len(x.data) - at; n > limit {
				return ValueErrorf(i, "a string of %d bytes is longer than a CarbonData string may be (%d): the "+
					"column has to be a varchar: name %s in long-strings when the table is made", n, limit, c.Name)
			}
			if string(x.data[at:]) == schema.NullText { // this applies to binaries, too
				return ValueErrorf(i, "the text %s is what CarbonData writes for null: it would be read as null",
					schema.NullText)
			}
		}
		if len(x.data) > math.MaxInt32 {
			return ValueErrorf(i, "the strings of a page have more than 2 GiB")
		}
		x.ends = append(x.ends, uint32(len(x.data)))
	}
	return nil
}

// addNested appends lists, maps and structs. Adjacent children are added at once.
func (x *Cells) addNested(c *schema.Column, a arrow.Array, from, to int, o *schema.WriteOptions) error {
	if s, ok := a.(*array.Struct); ok && c.Type == layout.TypeStruct {
		return x.addStructs(c, s, from, to, o)
	}
	list, ok := a.(array.ListLike)
	if !ok {
		return fault.Bugf("carbon: %s as %s", a.DataType(), c.Type)
	}
	items := list.ListValues()
	run := [2]int{}
	flush := func() error {
		if run[0] == run[1] {
			return nil
		}
		err := x.Children[0].Add(c.Children[0], items, run[0], run[1], o)
		run = [2]int{}
		return err
	}
	for i := from; i < to; i++ {
		if a.IsNull(i) {
			if err := flush(); err != nil {
				return inRow(err, i)
			}
			x.AddNull(c)
			continue
		}
		lo, hi := list.ValueOffsets(i)
		if int(lo) != run[1] {
			if err := flush(); err != nil {
				return inRow(err, i)
			}
			run[0] = int(lo)
		}
		run[1] = int(hi)
		x.Ints = append(x.Ints, hi-lo)
		x.N++
	}
	return inRow(flush(), to-1)
}

func (x *Cells) addStructs(c *schema.Column, a *array.Struct, from, to int, o *schema.WriteOptions) error {
	at := x.N
	for i := from; i < to; {
		end := i
		for end < to && a.IsValid(end) {
			end++
		}
		for k, kid := range x.Children {
			if i == end {
				break
			}
			if err := kid.Add(c.Children[k], a.Field(k), i, end, o); err != nil {
				return err
			}
		}
		x.N += end - i
		for ; end < to && a.IsNull(end); end++ {
			x.AddNull(c)
		}
		i = end
	}
	if x.N != at+to-from {
		return fault.Bugf("carbon: %d structs became %d", to-from, x.N-at)
	}
	return nil
}

// Check returns an error for values that would be read as null: a list of one null and a struct of nulls, which is how
// CarbonData writes null; and, in lists and structs, empty binaries.
func (x *Cells) Check(c *schema.Column) error {
	if !c.Type.Complex() {
		return nil
	}
	for i, k := range x.Children {
		if err := k.Check(c.Children[i]); err != nil {
			return err
		}
	}
	child := 0
	for i := range x.N {
		switch c.Type {
		case layout.TypeArray, layout.TypeMap:
			if x.Ints[i] == 1 && !x.Null(i) && x.Children[0].readsAsNull(c.Children[0], child) {
				return fault.Invalidf("column %s: a %s of one item that is null would be read as a null %s "+
					"(writing option nulls=merge writes it nevertheless)", c.Name, c.Type, c.Type)
			}
			child += int(x.Ints[i])
		case layout.TypeStruct:
			if !x.Null(i) && x.readsAsNull(c, i) {
				return fault.Invalidf("column %s: a struct of nulls would be read as a null struct (writing option "+
					"nulls=merge writes it nevertheless)", c.Name)
			}
		}
	}
	return nil
}

// readsAsNull reports whether a reader reads entry i as null. Check must have accepted the children: below this column
// only nulls read as null.
func (x *Cells) readsAsNull(c *schema.Column, i int) bool {
	switch c.Type {
	case layout.TypeStruct:
		for k, kid := range x.Children {
			if !kid.readsAsNull(c.Children[k], i) {
				return false
			}
		}
		return true
	case layout.TypeBinary:
		return x.Null(i) || c.Parent != nil && len(x.Text(i)) == 0
	}
	return x.Null(i)
}

// CheckEmptyBytes returns an error for empty binaries in lists and structs, which would be read as null.
func (x *Cells) CheckEmptyBytes(c *schema.Column) error {
	for i, k := range x.Children {
		if err := k.CheckEmptyBytes(c.Children[i]); err != nil {
			return err
		}
	}
	if c.Type != layout.TypeBinary || c.Parent == nil {
		return nil
	}
	for i := range x.N {
		if !x.Null(i) && len(x.Text(i)) == 0 {
			return fault.Invalidf("column %s: no bytes within a list or struct would be read as null (writing option "+
				"nulls=merge writes them nevertheless)", c.Name)
		}
	}
	return nil
}
