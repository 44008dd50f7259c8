package meta

import (
	"slices"

	"stoa/internal/thrift"
)

// Stats is a Statistics struct, or the entry for one page in a column index.
type Stats struct {
	Min, Max                     []byte // in the order that the specification defines for the type
	DeprecatedMin, DeprecatedMax []byte // min and max, from before orders were defined
	MinExact, MaxExact           bool   // the bounds are values that occur
	Nulls                        *int64
	Distinct                     *int64
	NaNs                         *int64
	AllNull                      *bool // from a column index: whether the page has only nulls
}

// parseStatistics reads a Statistics.
func parseStatistics(r *thrift.Reader) *Stats {
	var s Stats
	number := func(name string) *int64 { n := r.I64(name); return &n }
	text := func(name string) []byte { return slices.Clone(r.Bytes(name)) }
	for r.Struct("statistics"); r.Next(); {
		switch f, t := r.Field(), r.Type(); {
		case f == 1 && t == thrift.Bytes:
			s.DeprecatedMax = text("max")
		case f == 2 && t == thrift.Bytes:
			s.DeprecatedMin = text("min")
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
			s.NaNs = number("nan_count")
		default:
			walkValue(r, field{name: statistics[f].name}) // not used by any reader
		}
	}
	return &s
}
