package columnfile

import (
	"stoa/format/cfile/internal/block"
	"stoa/pred"

	"github.com/apache/arrow-go/v18/arrow"
)

// Bounds returns the number of values and of nulls and, for a file with a value index, min and max from the keys in its
// metadata, as values of the Arrow type at. ok is false if nothing is known.
func (f *File) Bounds(at arrow.DataType) (b pred.Bounds, ok bool) {
	b.Rows = f.Footer.NumValues
	if !f.Footer.Nullable {
		ok = !f.Footer.Array()
	} else {
		b.Nulls = -1
	}
	// Without a checksum, damaged metadata would go unnoticed and a scan would skip rows because of it.
	if !f.Sorted() || !f.Footer.Checksums() || f.NoVerify {
		return b, ok
	}
	b.Min, b.Max = f.keyValue(block.MinKeyKey, at), f.keyValue(block.MaxKeyKey, at)
	b.Exact = true
	return b, true
}

// keyValue decodes the key in the metadata pair name; nil if there is no such pair or it is not a key of f's type.
func (f *File) keyValue(name string, at arrow.DataType) *pred.Value {
	key, ok := f.Footer.Get(name)
	if !ok {
		return nil
	}
	parts, err := block.DecodeKey(key, []block.Type{f.Footer.Type})
	if err != nil {
		return nil
	}
	v, ok := block.ValueOf(f.Footer.Type, at, parts[0])
	if !ok {
		return nil
	}
	return &v
}
