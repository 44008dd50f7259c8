package carbon

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
)

// cells are the entries of one column of a page that is being filled. Which of the slices is used follows from the type.
type cells struct {
	n     int
	ints  []int64          // booleans, whole numbers, dates (days), timestamps (milliseconds); lengths of lists and maps
	nums  []float64        // floats and doubles
	decs  []decimal128.Num // decimals, unscaled
	data  []byte           // strings and binaries, one after the other
	ends  []uint32         // where each of them ends
	nulls []byte           // bit set: null; Java's BitSet without trailing zeros
	kids  []*cells         // of a list: the items; of a map: the struct of key and value; of a struct: the children
}

// newCells makes the cells for a column and what is in it.
func newCells(c *column) *cells {
	x := &cells{}
	for _, k := range c.kids {
		x.kids = append(x.kids, newCells(k))
	}
	return x
}

func (x *cells) reset() {
	x.n, x.ints, x.nums, x.decs, x.data, x.ends, x.nulls = 0, x.ints[:0], x.nums[:0], x.decs[:0], x.data[:0], x.ends[:0], x.nulls[:0]
	for _, k := range x.kids {
		k.reset()
	}
}

// size is about how many bytes the cells take.
func (x *cells) size() int {
	n := 8*(len(x.ints)+len(x.nums)) + 16*len(x.decs) + len(x.data) + 4*len(x.ends)
	for _, k := range x.kids {
		n += k.size()
	}
	return n
}

// null reports whether entry i is null.
func (x *cells) null(i int) bool { return i>>3 < len(x.nulls) && x.nulls[i>>3]>>(i&7)&1 != 0 }

// setNull marks entry i, which must not be before one that is already marked.
func (x *cells) setNull(i int) {
	for len(x.nulls) <= i>>3 {
		x.nulls = append(x.nulls, 0)
	}
	x.nulls[i>>3] |= 1 << (i & 7)
}

func (x *cells) text(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = x.ends[i-1]
	}
	return x.data[from:x.ends[i]]
}

// addNull appends one null entry: 0 or no bytes; a list of one null item; a struct of nulls.
func (x *cells) addNull(c *column) {
	x.setNull(x.n)
	x.n++
	if c.globalCodes() {
		x.ints = append(x.ints, nullCode)
		return
	}
	switch c.typ {
	case typeFloat, typeDouble:
		x.nums = append(x.nums, 0)
	case typeDecimal:
		x.decs = append(x.decs, decimal128.Num{})
	case typeString, typeVarchar, typeBinary:
		x.ends = append(x.ends, uint32(len(x.data)))
	case typeArray, typeMap:
		x.ints = append(x.ints, 1)
		x.kids[0].addNull(c.kids[0])
	case typeStruct:
		for i, k := range x.kids {
			k.addNull(c.kids[i])
		}
	default:
		x.ints = append(x.ints, 0)
	}
}

// add appends entries from…to of an array.
func (x *cells) add(c *column, a arrow.Array, from, to int, o *writeOptions) error {
	switch a := a.(type) {
	case array.ExtensionArray:
		return x.add(c, a.Storage(), from, to, o)
	case *array.Dictionary:
		for i := from; i < to; i++ {
			if a.IsNull(i) {
				x.addNull(c)
				continue
			}
			k := a.GetValueIndex(i)
			if err := x.add(c, a.Dictionary(), k, k+1, o); err != nil {
				return err
			}
		}
		return nil
	case *array.Null:
		for range to - from {
			x.addNull(c)
		}
		return nil
	}
	if c.typ.complex() {
		return x.addNested(c, a, from, to, o)
	}
	if c.globalCodes() {
		return x.addCodes(c, a, from, to)
	}
	at := x.n
	if converts(c, a.DataType()) {
		if err := x.addConverted(c, a, from, to); err != nil {
			return err
		}
		return x.wholeSeconds(c, at, from, o)
	}
	if err := x.addValues(c, a, from, to, o); err != nil {
		return err
	}
	x.n = at + to - from
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

// zero sets the value of a null entry, which may be anything in Arrow.
func (x *cells) zero(c *column, i int) {
	switch c.typ {
	case typeFloat, typeDouble:
		x.nums[i] = 0
	case typeDecimal:
		x.decs[i] = decimal128.Num{}
	case typeString, typeVarchar, typeBinary: // addTexts leaves them empty
	default:
		x.ints[i] = 0
	}
}

// addWholes appends whole numbers.
func addWholes[T ~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64](x *cells, v []T) {
	for _, y := range v {
		x.ints = append(x.ints, int64(y))
	}
}

// addValues appends values of a type without children; what nulls have is not looked at.
func (x *cells) addValues(c *column, a arrow.Array, from, to int, o *writeOptions) error {
	switch a := a.(type) {
	case *array.Boolean:
		for i := from; i < to; i++ {
			v := int64(0)
			if a.Value(i) {
				v = 1
			}
			x.ints = append(x.ints, v)
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
			x.decs = append(x.decs, decimal128.FromU64(v))
		}
	case *array.Float16:
		for _, v := range a.Values()[from:to] {
			x.nums = append(x.nums, float64(v.Float32()))
		}
	case *array.Float32:
		for _, v := range a.Float32Values()[from:to] {
			x.nums = append(x.nums, float64(v))
		}
	case *array.Float64:
		x.nums = append(x.nums, a.Float64Values()[from:to]...)
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

// badValue tells a value that the format cannot hold.
func badValue(i int, format string, args ...any) error {
	return &valueError{row: i, err: fault.Invalidf(format, args...)}
}

// valueError is an error about entry row of what add was given.
type valueError struct {
	column string
	row    int
	err    error
}

func (e *valueError) Error() string { return e.err.Error() }
func (e *valueError) Unwrap() error { return e.err }

// Dates are codes of 31 bits; code 1 is null and 0 is not used.
const (
	minDate = 2 - dateOffset
	maxDate = math.MaxInt32 - dateOffset
)

const dayMillis = 86_400_000

func (x *cells) addDates(a arrow.Array, from, to int) error {
	for i := from; i < to; i++ {
		var d int64
		switch a := a.(type) {
		case *array.Date32:
			d = int64(a.Value(i))
		case *array.Date64:
			d = int64(a.Value(i))
			if d%dayMillis != 0 && a.IsValid(i) {
				return badValue(i, "the date %d ms is no whole day", d)
			}
			d /= dayMillis
		}
		if a.IsValid(i) && (d < minDate || d > maxDate) {
			return badValue(i, "the date %d days from 1970 is beyond what a code can say (%d to %d)", d, minDate, maxDate)
		}
		x.ints = append(x.ints, d)
	}
	return nil
}

// addTimes appends timestamps as milliseconds.
func (x *cells) addTimes(a *array.Timestamp, from, to int, o *writeOptions) error {
	unit := a.DataType().(*arrow.TimestampType).Unit
	for i, v := range a.TimestampValues()[from:to] {
		ms := int64(v)
		switch unit {
		case arrow.Second:
			if a.IsValid(from+i) && (ms > math.MaxInt64/1000 || ms < math.MinInt64/1000) {
				return badValue(from+i, "the time %d s does not fit in milliseconds", ms)
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
			if rest != 0 && a.IsValid(from+i) && !o.truncate {
				return badValue(from+i, "the time has parts of a millisecond, which CarbonData cannot keep (--opt timestamps=truncate drops them)")
			}
			ms = (ms - rest) / per
		}
		x.ints = append(x.ints, ms)
	}
	return nil
}

func (x *cells) addDecimals(c *column, a arrow.Array, from, to int) error {
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
				return badValue(i, "the decimal has more than 38 digits")
			}
		}
		if a.IsValid(i) && !v.FitsInPrecision(c.precision) {
			return badValue(i, "the decimal %s has more than %d digits", v.ToString(c.scale), c.precision)
		}
		x.decs = append(x.decs, v)
	}
	return nil
}

// maxString is the longest string of two length bytes, these included, as the real writer counts.
const maxString = math.MaxInt16 - 2

// texter is an array of strings or bytes.
type texter interface {
	arrow.Array
	Value(i int) []byte
}

type stringer interface {
	arrow.Array
	Value(i int) string
}

func (x *cells) addTexts(c *column, a arrow.Array, from, to int) error {
	limit := math.MaxInt32 >> 3
	if c.typ == typeString && c.parent == nil {
		limit = maxString
	}
	for i := from; i < to; i++ {
		at := len(x.data)
		if a.IsValid(i) {
			switch a := a.(type) {
			case stringer:
				x.data = append(x.data, a.Value(i)...)
			case texter:
				x.data = append(x.data, a.Value(i)...)
			default:
				return fault.Bugf("carbon: values of %s as %s", a.DataType(), c.typ)
			}
			if n := len(x.data) - at; n > limit {
				return badValue(i, "a string of %d bytes is longer than a CarbonData string may be (%d): the column would have to be a varchar (convert --opt long-strings=%s, create --long-strings %s)", n, limit, c.name, c.name)
			}
			if string(x.data[at:]) == nullText { // bytes, too
				return badValue(i, "the text %s is what CarbonData writes for null: it would be read as null", nullText)
			}
		}
		if len(x.data) > math.MaxInt32 {
			return badValue(i, "the strings of a page have more than 2 GiB")
		}
		x.ends = append(x.ends, uint32(len(x.data)))
	}
	return nil
}

// addNested appends lists, maps and structs. Runs of children that follow each other are added at once.
func (x *cells) addNested(c *column, a arrow.Array, from, to int, o *writeOptions) error {
	if s, ok := a.(*array.Struct); ok && c.typ == typeStruct {
		return x.addStructs(c, s, from, to, o)
	}
	list, ok := a.(array.ListLike)
	if !ok {
		return fault.Bugf("carbon: %s as %s", a.DataType(), c.typ)
	}
	items := list.ListValues()
	run := [2]int{}
	flush := func() error {
		if run[0] == run[1] {
			return nil
		}
		err := x.kids[0].add(c.kids[0], items, run[0], run[1], o)
		run = [2]int{}
		return err
	}
	for i := from; i < to; i++ {
		if a.IsNull(i) {
			if err := flush(); err != nil {
				return inRow(err, i)
			}
			x.addNull(c)
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
		x.ints = append(x.ints, hi-lo)
		x.n++
	}
	return inRow(flush(), to-1)
}

// inRow puts an error about a child at the row of its parent.
func inRow(err error, row int) error {
	if e, ok := err.(*valueError); ok {
		e.row = row
	}
	return err
}

func (x *cells) addStructs(c *column, a *array.Struct, from, to int, o *writeOptions) error {
	at := x.n
	for i := from; i < to; {
		end := i
		for end < to && a.IsValid(end) {
			end++
		}
		for k, kid := range x.kids {
			if i == end {
				break
			}
			if err := kid.add(c.kids[k], a.Field(k), i, end, o); err != nil {
				return err
			}
		}
		x.n += end - i
		for ; end < to && a.IsNull(end); end++ {
			x.addNull(c)
		}
		i = end
	}
	if x.n != at+to-from {
		return fault.Bugf("carbon: %d structs became %d", to-from, x.n-at)
	}
	return nil
}

// check refuses what would be read as something else: a list of one null, and a struct of nulls, which are what CarbonData
// writes for null; and, in lists and structs, empty bytes.
func (x *cells) check(c *column) error {
	if !c.typ.complex() {
		return nil
	}
	for i, k := range x.kids {
		if err := k.check(c.kids[i]); err != nil {
			return err
		}
	}
	child := 0
	for i := range x.n {
		switch c.typ {
		case typeArray, typeMap:
			if x.ints[i] == 1 && !x.null(i) && x.kids[0].nullish(c.kids[0], child) {
				return fault.Invalidf("column %s: a %s of one item that is null would be read as a null %s (--opt nulls=merge writes it nevertheless)", c.name, c.typ, c.typ)
			}
			child += int(x.ints[i])
		case typeStruct:
			if !x.null(i) && x.nullish(c, i) {
				return fault.Invalidf("column %s: a struct of nulls would be read as a null struct (--opt nulls=merge writes it nevertheless)", c.name)
			}
		}
	}
	return nil
}

// nullish reports whether a reader takes entry i for null. check has been here before: below, only what is null is nullish.
func (x *cells) nullish(c *column, i int) bool {
	switch c.typ {
	case typeStruct:
		for k, kid := range x.kids {
			if !kid.nullish(c.kids[k], i) {
				return false
			}
		}
		return true
	case typeBinary:
		return x.null(i) || c.parent != nil && len(x.text(i)) == 0
	}
	return x.null(i)
}

// emptyBytes refuses empty binaries below lists and structs, which are read as null.
func (x *cells) emptyBytes(c *column) error {
	for i, k := range x.kids {
		if err := k.emptyBytes(c.kids[i]); err != nil {
			return err
		}
	}
	if c.typ != typeBinary || c.parent == nil {
		return nil
	}
	for i := range x.n {
		if !x.null(i) && len(x.text(i)) == 0 {
			return fault.Invalidf("column %s: no bytes within a list or struct would be read as null (--opt nulls=merge writes them nevertheless)", c.name)
		}
	}
	return nil
}
