package stoa

import (
	"encoding/binary"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format/kudu/kudufs"
	"stoa/format/kudubackup"
)

// TestCodesUnderNulls: what stands in a struct that is null is of no account, so a code of a dictionary there may point
// at nothing. Arrow's own C++ writes 0 there, also where the dictionary is empty.
func TestCodesUnderNulls(t *testing.T) {
	texts := array.NewStringBuilder(memory.DefaultAllocator)
	none := texts.NewArray()
	texts.AppendValues([]string{"a", "b"}, nil)
	two := texts.NewArray()
	formats := append(append(Formats[:0:0], Formats...), kudubackup.Format, kudufs.Format)
	for what, c := range map[string]struct {
		values arrow.Array
		codes  [4]uint32 // of two nulls, a struct, and a null
		null   bool      // the child of the struct
	}{
		"no values":      {none, [4]uint32{0, 0, 0, 0}, true},
		"far codes":      {two, [4]uint32{77, 1 << 31, 1, 2}, false},
		"far codes, all": {two, [4]uint32{77, 1<<31 - 1, 5, 2}, true},
	} {
		dict := structOf(c.values, c.codes, c.null)
		texts.AppendNulls(2)
		if c.null {
			texts.AppendNull()
		} else {
			texts.Append("b")
		}
		texts.AppendNull()
		child := texts.NewArray()
		plain := hiding(child.Data())
		for i := range formats {
			// Arrow files keep codes as they are, and those that point at nothing are refused when they are read.
			if formats[i].Create != nil && (c.values.Len() == 0 || formats[i].Name != "arrow") {
				sameAsPlain(t, &formats[i], what, dict, plain)
			}
		}
	}
}

// structOf is a column of four structs, the third alone not null, each of a code of values.
func structOf(values arrow.Array, codes [4]uint32, null bool) arrow.Array {
	var b []byte
	for _, c := range codes {
		b = binary.LittleEndian.AppendUint32(b, c)
	}
	valid, nulls := byte(0b1111), 0
	if null {
		valid, nulls = 0b1011, 1
	}
	typ := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: values.DataType()}
	return hiding(array.NewDataWithDictionary(typ, len(codes), []*memory.Buffer{memory.NewBufferBytes([]byte{valid}),
		memory.NewBufferBytes(b)}, nulls, 0, values.Data().(*array.Data)))
}

func hiding(child arrow.ArrayData) arrow.Array {
	typ := arrow.StructOf(arrow.Field{Name: "f", Type: child.DataType(), Nullable: true})
	return array.MakeFromData(array.NewData(typ, child.Len(), []*memory.Buffer{memory.NewBufferBytes([]byte{0b0100})},
		[]arrow.ArrayData{child}, child.Len()-1, 0))
}
