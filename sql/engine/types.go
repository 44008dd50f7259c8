package engine

// #include "duckdb.h"
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Column is a column of a statement's rows.
type Column struct {
	Name string
	// NoArrow is the name of a type, the column's or one within, whose values DuckDB does not give to Arrow as they
	// are: of UHUGEINT they come as other numbers, of TIME WITH TIME ZONE without the zone. "": there is none.
	NoArrow string
}

// noArrow are those types, by their numbers.
var noArrow = map[C.int]string{29: "BIT", 30: "TIME WITH TIME ZONE", 32: "UHUGEINT", 35: "BIGNUM", 41: "VARIANT"}

// The numbers of types with others within.
const (
	typeList   = 24
	typeStruct = 25
	typeMap    = 26
	typeUnion  = 28
	typeArray  = 33
)

// Columns are those of the statement's rows, as far as DuckDB knows them before it runs.
func (s *Statement) Columns() (out []Column) {
	for i := range C.duckdb_prepared_statement_column_count(s.s) {
		c := Column{NoArrow: without(C.duckdb_prepared_statement_column_logical_type(s.s, i))}
		if name := C.duckdb_prepared_statement_column_name(s.s, i); name != nil {
			c.Name = C.GoString(name)
			C.duckdb_free(unsafe.Pointer(name))
		}
		out = append(out, c)
	}
	return out
}

// without is the type that noArrow names in a type, which it frees.
func without(t C.duck_handle) string {
	if t == nil {
		return ""
	}
	defer C.duckdb_destroy_logical_type(&t)
	id := C.duckdb_get_type_id(t)
	switch id {
	case typeList:
		return without(C.duckdb_list_type_child_type(t))
	case typeArray:
		return without(C.duckdb_array_type_child_type(t))
	case typeMap:
		if name := without(C.duckdb_map_type_key_type(t)); name != "" {
			return name
		}
		return without(C.duckdb_map_type_value_type(t))
	case typeStruct:
		for i := range C.duckdb_struct_type_child_count(t) {
			if name := without(C.duckdb_struct_type_child_type(t, i)); name != "" {
				return name
			}
		}
	case typeUnion:
		for i := range C.duckdb_union_type_member_count(t) {
			if name := without(C.duckdb_union_type_member_type(t, i)); name != "" {
				return name
			}
		}
	}
	return noArrow[id]
}

// mostDigits is the first number with 39 digits. DuckDB gives Arrow its HUGEINT, which has up to 39, as decimals of 38.
var mostDigits = decimal128.GetMaxValue(38).Add(decimal128.FromI64(1))

// tooWide is an error about a column with a number that its type cannot have.
func tooWide(b arrow.RecordBatch) error {
	for i, c := range b.Columns() {
		if wide(c.Data()) {
			return newError(fmt.Sprintf("Out of Range Error: column %s: a number has more than 38 digits: "+
				"cast it to VARCHAR", b.ColumnName(i)))
		}
	}
	return nil
}

func wide(d arrow.ArrayData) bool {
	for _, c := range d.Children() {
		if wide(c) {
			return true
		}
	}
	t, ok := d.DataType().(*arrow.Decimal128Type)
	if !ok || t.Precision != 38 || t.Scale != 0 || d.Buffers()[1] == nil {
		return false
	}
	all := arrow.Decimal128Traits.CastFromBytes(d.Buffers()[1].Bytes())
	for i, v := range all[d.Offset() : d.Offset()+d.Len()] {
		if v.Abs().GreaterEqual(mostDigits) && !null(d, d.Offset()+i) {
			return true
		}
	}
	return false
}

// null reports whether the value at a position of the buffers is null.
func null(d arrow.ArrayData, at int) bool {
	valid := d.Buffers()[0]
	return valid != nil && valid.Len() > 0 && !bitutil.BitIsSet(valid.Bytes(), at)
}
