package meta

import (
	"slices"

	"stoa/internal/thrift"
)

// Said is what a Statistics struct, or an entry of a column index, says of values.
type Said struct {
	Min, Max           []byte // in the order that is defined for the type
	OldMin, OldMax     []byte // min and max of the time before orders were defined
	MinExact, MaxExact bool   // the bounds are values that occur
	Nulls              *int64
	Distinct           *int64
	Nans               *int64
	None               *bool // a column index says of each page whether it has no values
}

// parseStatistics reads the Statistics of a page header.
func parseStatistics(r *thrift.Reader) *Said {
	var s Said
	number := func(name string) *int64 { n := r.I64(name); return &n }
	text := func(name string) []byte { return slices.Clone(r.Bytes(name)) }
	for r.Struct("statistics"); r.Next(); {
		switch f, t := r.Field(), r.Type(); {
		case f == 1 && t == thrift.Bytes:
			s.OldMax = text("max")
		case f == 2 && t == thrift.Bytes:
			s.OldMin = text("min")
		case f == 3 && t == thrift.I64:
			s.Nulls = number("null_count")
		case f == 4 && t == thrift.I64:
			s.Distinct = number("distinct_count")
		case f == 5 && t == thrift.Bytes:
			s.Max = text("max_value")
		case f == 6 && t == thrift.Bytes:
			s.Min = text("min_value")
		case f == 7 && t == thrift.Bool:
			s.MaxExact = r.Bool("is_max_value_exact")
		case f == 8 && t == thrift.Bool:
			s.MinExact = r.Bool("is_min_value_exact")
		case f == 9 && t == thrift.I64:
			s.Nans = number("nan_count")
		default:
			value(r, field{name: statistics[f].name}) // no reader needs it
		}
	}
	return &s
}
