package lake

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/internal/coerce"
)

// Term is a term of a partition spec: a transform of a column. The text of a spec is `region, day(ts), bucket(16, id)`.
type Term struct {
	Transform string // identity, year, month, day, hour, bucket, truncate, void
	N         int    // of bucket and truncate
	Column    string
	Name      string // of the partition field
	Index     int    // of the column in the schema; set by Bind
	Type      arrow.DataType
}

// String returns the transform as in Iceberg's metadata.
func (t Term) String() string {
	if t.N > 0 {
		return fmt.Sprintf("%s[%d]", t.Transform, t.N)
	}
	return t.Transform
}

// Bind finds the columns of the terms in the schema of the data files.
func Bind(terms []Term, sc *arrow.Schema) ([]Term, error) {
	out := slices.Clone(terms)
	for i := range out {
		t := &out[i]
		at := slices.IndexFunc(sc.Fields(), func(f arrow.Field) bool { return strings.EqualFold(f.Name, t.Column) })
		if exact := sc.FieldIndices(t.Column); len(exact) > 0 {
			at = exact[0]
		}
		if at < 0 {
			return nil, fault.Invalidf("partition-by: there is no column %q", t.Column)
		}
		t.Index, t.Type = at, sc.Field(at).Type
		if t.Transform == "identity" {
			t.Name, t.Column = sc.Field(at).Name, sc.Field(at).Name
		}
		if err := t.check(); err != nil {
			return nil, err
		}
		for _, o := range out[:i] {
			if strings.EqualFold(o.Name, t.Name) {
				return nil, fault.Invalidf("partition-by: two terms are named %s", t.Name)
			}
		}
	}
	return out, nil
}

// check returns an error if the transform does not accept the column's type.
func (t *Term) check() error {
	id := t.Type.ID()
	date, stamp := id == arrow.DATE32, id == arrow.TIMESTAMP
	whole := id == arrow.INT8 || id == arrow.INT16 || id == arrow.INT32 || id == arrow.INT64
	text := id == arrow.STRING || id == arrow.BINARY
	ok := false
	switch t.Transform {
	case "identity", "void":
		ok = whole || text || date || stamp || id == arrow.BOOL || id == arrow.DECIMAL128 ||
			id == arrow.FIXED_SIZE_BINARY || id == arrow.TIME64
	case "year", "month", "day":
		ok = date || stamp
	case "hour":
		ok = stamp
	case "bucket":
		ok = whole || text || date || stamp || id == arrow.DECIMAL128 || id == arrow.FIXED_SIZE_BINARY ||
			id == arrow.TIME64 || id == arrow.EXTENSION
	case "truncate":
		ok = whole || text
	}
	if !ok {
		return fault.Invalidf("partition-by: %s does not take column %s of type %s", t, t.Column, t.Type)
	}
	return nil
}

// Value returns the partition value for row i of the column: nil, bool, int32, int64, string or []byte; for a decimal
// its bytes, big-endian.
func (t *Term) Value(a arrow.Array, i int) any {
	if a.IsNull(i) || t.Transform == "void" {
		return nil
	}
	v := plainValue(a, i)
	switch t.Transform {
	case "year", "month", "day", "hour":
		return t.calendar(v)
	case "bucket":
		return int32(murmur(hashBytes(a, v))&0x7fffffff) % int32(t.N)
	case "truncate":
		switch x := v.(type) {
		case int32:
			return x - (x%int32(t.N)+int32(t.N))%int32(t.N)
		case int64:
			return x - (x%int64(t.N)+int64(t.N))%int64(t.N)
		case string:
			n := 0
			for range t.N {
				_, k := utf8.DecodeRuneInString(x[n:])
				n += k
			}
			return x[:n]
		case []byte:
			return x[:min(len(x), t.N)]
		}
	}
	return v
}

// Check returns an error of class Invalid for a value that truncation would move below the least integer of its type.
// Readers wrap such a value around, or do not, and then leave out rows.
func (t *Term) Check(a arrow.Array) error {
	if t.Transform != "truncate" {
		return nil
	}
	least := map[arrow.Type]int64{arrow.INT32: math.MinInt32, arrow.INT64: math.MinInt64}[a.DataType().ID()]
	get, ok := integers(a)
	if !ok || least == 0 {
		return nil
	}
	n := int64(t.N)
	for i := range a.Len() {
		if a.IsNull(i) {
			continue
		}
		if v := get(i); v-least < (v%n+n)%n && v < 0 {
			return fault.Invalidf("partition-by: truncate(%d, %s): the value %d would become less than any %s", t.N,
				t.Column, v, a.DataType())
		}
	}
	return nil
}

// plainValue returns a value that is not null; integers of 8 and 16 bits become int32, times and timestamps int64.
func plainValue(a arrow.Array, i int) any {
	switch x := a.(type) {
	case *array.Boolean:
		return x.Value(i)
	case *array.Int8:
		return int32(x.Value(i))
	case *array.Int16:
		return int32(x.Value(i))
	case *array.Int32:
		return x.Value(i)
	case *array.Date32:
		return int32(x.Value(i))
	case *array.Int64:
		return x.Value(i)
	case *array.Time64:
		return int64(x.Value(i))
	case *array.Timestamp:
		return int64(x.Value(i))
	case *array.String:
		return strings.Clone(x.Value(i))
	case *array.Binary:
		return slices.Clone(x.Value(i))
	case *array.FixedSizeBinary:
		return slices.Clone(x.Value(i))
	case *array.Decimal128:
		return coerce.BigEndian(x.Value(i))
	case array.ExtensionArray:
		return plainValue(x.Storage(), i)
	}
	return nil
}

// calendar returns the year, month, day or hour of a date or a timestamp, counted from 1970.
func (t *Term) calendar(v any) any {
	var days, hours int64
	switch x := v.(type) {
	case int32:
		days = int64(x)
	case int64:
		per := perSecond(t.Type.(*arrow.TimestampType).Unit)
		hours = floor(x, 3600*per)
		days = floor(x, 86400*per)
	}
	switch t.Transform {
	case "day":
		return int32(days)
	case "hour":
		return int32(hours)
	}
	d := time.Unix(0, 0).UTC().AddDate(0, 0, int(days))
	if t.Transform == "year" {
		return int32(d.Year() - 1970)
	}
	return int32((d.Year()-1970)*12 + int(d.Month()) - 1)
}

func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// hashBytes returns the bytes that Iceberg hashes: integers, dates and times as 64 bits, decimals in as few bytes as
// possible.
func hashBytes(a arrow.Array, v any) []byte {
	switch x := v.(type) {
	case int32:
		return binary.LittleEndian.AppendUint64(nil, uint64(int64(x)))
	case int64:
		if t, ok := a.DataType().(*arrow.TimestampType); ok && t.Unit == arrow.Nanosecond {
			x = floor(x, 1000)
		}
		return binary.LittleEndian.AppendUint64(nil, uint64(x))
	case string:
		return []byte(x)
	case []byte:
		return x
	}
	return nil
}

// murmur computes the 32-bit hash Murmur3, x86 variant, with seed 0.
func murmur(b []byte) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	var h uint32
	n := len(b)
	for ; len(b) >= 4; b = b[4:] {
		k := bits.RotateLeft32(binary.LittleEndian.Uint32(b)*c1, 15) * c2
		h = bits.RotateLeft32(h^k, 13)*5 + 0xe6546b64
	}
	var k uint32
	for i := len(b) - 1; i >= 0; i-- {
		k = k<<8 | uint32(b[i])
	}
	if len(b) > 0 {
		h ^= bits.RotateLeft32(k*c1, 15) * c2
	}
	h ^= uint32(n)
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}
