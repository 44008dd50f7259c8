package parquet

import (
	"slices"
	"stoa/internal/thrift"
)

// said is what a Statistics struct, or an entry of a column index, says of values.
type said struct {
	min, max           []byte // in the order that is defined for the type
	oldMin, oldMax     []byte // min and max of the time before orders were defined
	minExact, maxExact bool   // the bounds are values that occur
	nulls              *int64
	distinct           *int64
	nans               *int64
	none               *bool // a column index says of each page whether it has no values
}

// parseStatistics reads the Statistics of a page header.
func parseStatistics(r *thrift.Reader) *said {
	var s said
	number := func(name string) *int64 { n := r.I64(name); return &n }
	text := func(name string) []byte { return slices.Clone(r.Bytes(name)) }
	for r.Struct("statistics"); r.Next(); {
		switch f, t := r.Field(), r.Type(); {
		case f == 1 && t == thrift.Bytes:
			s.oldMax = text("max")
		case f == 2 && t == thrift.Bytes:
			s.oldMin = text("min")
		case f == 3 && t == thrift.I64:
			s.nulls = number("null_count")
		case f == 4 && t == thrift.I64:
			s.distinct = number("distinct_count")
		case f == 5 && t == thrift.Bytes:
			s.max = text("max_value")
		case f == 6 && t == thrift.Bytes:
			s.min = text("min_value")
		case f == 7 && t == thrift.Bool:
			s.maxExact = r.Bool("is_max_value_exact")
		case f == 8 && t == thrift.Bool:
			s.minExact = r.Bool("is_min_value_exact")
		case f == 9 && t == thrift.I64:
			s.nans = number("nan_count")
		default:
			value(r, field{name: statistics[f].name}) // no reader needs it
		}
	}
	return &s
}
