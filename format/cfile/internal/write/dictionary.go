package write

import (
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/vec"
)

// newDictSource makes a dictionary array a source of its values: strings are referenced, fixed-width values are copied.
func newDictSource(f *Field, d *array.Dictionary, o Coercion) (*source, error) {
	c, err := newSource(f, d.Dictionary(), o)
	if err != nil {
		return nil, err
	}
	if c.wide != nil || c.bits != nil || c.size > 0 {
		return nil, fault.Unsupportedf(fault.Span{}, f.Name, "a dictionary array of %s", d.Dictionary().DataType())
	}
	index := make([]int32, d.Len())
	var valid []byte
	if d.NullN() > 0 || c.valid != nil {
		valid = make([]byte, (d.Len()+7)/8)
		vec.SetBits(valid, 0, d.Len(), true)
	}
	for i := range index {
		if d.IsNull(i) {
			vec.SetBits(valid, i, i+1, false)
			continue
		}
		index[i] = int32(d.GetValueIndex(i))
		if c.valid != nil && !bitAt(c.valid, c.validAt+int(index[i])) {
			vec.SetBits(valid, i, i+1, false)
		}
	}
	if c.fixed != nil {
		c.fixed = gatherRows(c.fixed, c.width, index)
	} else {
		c.index = index
		if c.offs == nil { // an empty dictionary: all rows are null
			c.offs = make([]int32, 2)
		}
	}
	c.n, c.valid, c.validAt = d.Len(), valid, 0
	return c, nil
}

func gatherRows(src []byte, width int, index []int32) []byte {
	out := make([]byte, 0, len(index)*width)
	for _, i := range index {
		out = append(out, src[int(i)*width:(int(i)+1)*width]...)
	}
	return out
}

func gatherIndexed(dst []strSpan, index, offs []int32, ch *portion) []strSpan {
	for i, x := range index {
		if ch.valid == nil || bitAt(ch.valid, ch.at+i) {
			dst = append(dst, strSpan{uint32(offs[x]), uint32(offs[x+1])})
		}
	}
	return dst
}
