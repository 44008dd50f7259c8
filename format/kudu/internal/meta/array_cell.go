package meta

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format/cfile"
	"stoa/vec"
)

// An array outside of a CFile (in a delta, a log, a default) is a FlatBuffer of Kudu's array1d.fbs:
//
//	Content    0 type of data, 1 data, 2 validity: a bit an element, in older files a byte; none or empty: no nulls
//	data       0 values: numbers, strings, or, of binary, tables with 0 bytes
//
// No bytes, or a Content without data, are an array without elements.

// maxArray is the most elements that Kudu has in an array.
const maxArray = 1 << 16

// flat reads a FlatBuffer. After bytes that it cannot have, it is bad, and everything in it is 0.
type flat struct {
	b   []byte
	bad bool
}

// bytes returns n bytes at an offset.
func (f *flat) bytes(at, n int) []byte {
	if f.bad || at < 0 || n < 0 || at > len(f.b) || n > len(f.b)-at {
		f.bad = true
		return make([]byte, min(max(n, 0), 8))
	}
	return f.b[at : at+n : at+n]
}

func (f *flat) u16(at int) int { return int(binary.LittleEndian.Uint16(f.bytes(at, 2))) }
func (f *flat) u32(at int) int { return int(binary.LittleEndian.Uint32(f.bytes(at, 4))) }

// follow returns the place to which the offset at a place leads.
func (f *flat) follow(at int) int { return at + f.u32(at) }

// field returns where a table has a field; 0: it has none.
func (f *flat) field(table, i int) int {
	shape := table - int(int32(f.u32(table)))
	if 4+2*i+2 > f.u16(shape) {
		return 0
	}
	if off := f.u16(shape + 4 + 2*i); off > 0 {
		return table + off
	}
	return 0
}

// vector returns the number of elements of the vector at field i of a table, and where they begin.
func (f *flat) vector(table, i int) (n, at int) {
	if p := f.field(table, i); p > 0 {
		p = f.follow(p)
		return f.u32(p), p + 4
	}
	return 0, 0
}

// arrayKind returns the type of data for elements of a type; 0: there is none.
func arrayKind(t cfile.Type) byte {
	switch t {
	case cfile.Int8:
		return 1
	case cfile.Uint8, cfile.Bool:
		return 2
	case cfile.Int16:
		return 3
	case cfile.Uint16:
		return 4
	case cfile.Int32, cfile.Date, cfile.Decimal32:
		return 5
	case cfile.Uint32:
		return 6
	case cfile.Int64, cfile.UnixtimeMicros, cfile.Decimal64:
		return 7
	case cfile.Uint64:
		return 8
	case cfile.Float:
		return 9
	case cfile.Double:
		return 10
	case cfile.String, cfile.Varchar:
		return 11
	case cfile.Binary:
		return 12
	}
	return 0
}

// elements returns the elements of an array cell of the column in stored form; nil is NULL.
func (c *Column) elements(cell []byte) ([][]byte, error) {
	wrong := func(layout string, args ...any) error {
		return fault.Rel(0, 0, "array", layout+" (column %q)", append(args, c.Name)...)
	}
	if len(cell) == 0 {
		return nil, nil
	}
	f := &flat{b: cell}
	root := f.follow(0)
	kind, data := f.field(root, 0), f.field(root, 1)
	if data == 0 && !f.bad {
		return nil, nil
	}
	if got, want := f.bytes(kind, 1)[0], arrayKind(c.Type); !f.bad && (got != want || want == 0 || kind == 0) {
		return nil, wrong("elements of type %d, expected %d", got, want)
	}
	table := f.follow(data)
	n, at := f.vector(table, 0)
	valid, validAt := f.vector(root, 2)
	validity := f.bytes(validAt, valid)
	switch {
	case f.bad:
		return nil, wrong("an offset leads out of the %d bytes of the FlatBuffer", len(cell))
	case uint(n) > maxArray:
		return nil, wrong("%d elements, expected at most %d", n, maxArray)
	case valid != 0 && valid != n && valid != (n+7)/8:
		return nil, wrong("validity of %d bytes for %d elements", valid, n)
	}
	out, total := make([][]byte, n), 0
	for i := range out {
		switch w := StoredWidth(c.Type); c.Type {
		case cfile.String, cfile.Varchar:
			s := f.follow(at + 4*i)
			out[i] = f.bytes(s+4, f.u32(s))
		case cfile.Binary:
			n, bytes := f.vector(f.follow(at+4*i), 0)
			out[i] = f.bytes(bytes, n)
		default:
			out[i] = f.bytes(at+w*i, w)
		}
		if total += len(out[i]); f.bad || total > len(cell) {
			return nil, wrong("element %d lies outside of the %d bytes of the FlatBuffer, or in another", i, len(cell))
		}
		switch {
		case valid == 0:
		case valid == n && validity[i] == 0, valid != n && validity[i/8]>>(i%8)&1 == 0:
			out[i] = nil
		}
	}
	return out, nil
}

// lists makes a vector of array cells; nil is NULL.
func (c *Column) lists(typ arrow.DataType, cells [][]byte) (*vec.Vector, error) {
	v, err := vec.New(typ, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	v.Extend(len(cells))
	if len(cells) == 0 {
		return v, nil
	}
	var all [][]byte
	offsets, nulls := v.Offsets(0), 0
	for i, x := range cells {
		if x == nil {
			if !c.Nullable {
				return nil, fault.Rel(0, 0, "value", "a NULL for column %q, which is not nullable", c.Name)
			}
			vec.SetBits(v.Validity(), i, i+1, false)
			nulls++
		}
		items, err := c.elements(x)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
		offsets[i+1] = int32(len(all))
	}
	v.AddNulls(nulls)
	one := *c
	one.Array, one.Nullable = false, true
	v.Items, err = one.Vector(all)
	return v, err
}
