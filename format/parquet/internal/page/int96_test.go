package page

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"stoa/fault"
)

// sparksInt96 stores microseconds since 1970 as Spark does (DateTimeUtils.toJulianDay): the sum wraps in 64 bits.
func sparksInt96(micros int64) []byte {
	const day = 86_400_000_000
	julian := micros + julianEpoch*day
	b := binary.LittleEndian.AppendUint64(nil, uint64(julian%day*1000))
	return binary.LittleEndian.AppendUint32(b, uint32(int32(julian/day)))
}

// TestInt96Micros: microseconds that Spark stores as INT96 are read back, even in its last years, where its Julian days
// wrap. An instant that fits neither 64 bits of microseconds nor Spark is refused, and so are nanoseconds outside of
// the years 1677 to 2262.
func TestInt96Micros(t *testing.T) {
	out := make([]int64, 1)
	// the last is 290000-12-31, of int96_from_spark.parquet of apache/parquet-testing
	for _, want := range []int64{0, -1, 1704141296123456, -62135596800000000, 253402225200000000, 9089380393200000000,
		math.MaxInt64} {
		if err := int96Instants(out, sparksInt96(want), 1000); err != nil || out[0] != want {
			t.Errorf("got %d, %v, want %d", out[0], err, want)
		}
		nanos := want >= -9223372036854775 && want <= 9223372036854775
		err := int96Instants(out, sparksInt96(want), 1)
		if nanos != (err == nil) || nanos && out[0] != want*1000 || !nanos && !errors.Is(err, fault.Unsupported) {
			t.Errorf("%d µs as nanoseconds: got %d, %v", want, out[0], err)
		}
	}
	finer := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, 1999), julianEpoch)
	if err := int96Instants(out, finer, 1000); err != nil || out[0] != 1 {
		t.Errorf("1,999 ns: got %d µs, %v", out[0], err)
	}
	far := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, 1), math.MaxInt32)
	if err := int96Instants(out, far, 1000); !errors.Is(err, fault.Unsupported) {
		t.Errorf("day 2,147,483,647: got %d, %v", out[0], err)
	}
}
