package cfile

import (
	"stoa/fault"
	"stoa/format"
	"stoa/internal/enc/plain"
	"stoa/vec"
	"stoa/wire"
)

// layout is a parsed data block.
type layout struct {
	rows   int
	nulls  bitmap // of a nullable block
	arrays arrays // of an array block
	values values
}

// parseDataBlock reads a data block of a file with footer f, which c holds exactly: an array block, a nullable block, or bare values.
func parseDataBlock(c *wire.Cursor, f *Footer) (l layout) {
	switch {
	case f.Array():
		l.arrays = parseArrays(c)
		l.rows = l.arrays.cells.n
	case f.Nullable:
		l.nulls = parseNulls(c)
		l.rows = l.nulls.n
	}
	l.values = parseValues(c, f.Type, f.Encoding)
	if !f.Array() && !f.Nullable {
		l.rows = l.values.count
	}
	return l
}

// decoding is one call of Decode.
type decoding struct {
	f   *file
	t   *format.Task
	b   block
	lay layout
}

// fit looks at the memory that n entries of the vector's width take.
func (d *decoding) fit(dst *vec.Vector, n int) error {
	width := int64(max(dst.Width(), 4))
	if need := int64(n) * width; need > d.t.Limits.Page {
		return fault.Limitf(fault.Span{}, "", "%d values take %d bytes, more than a page may have (%d)", n, need, d.t.Limits.Page)
	}
	return nil
}

// flat decodes n entries, after skip, to the end of dst. nulls may be nil: all are present.
func (d *decoding) flat(dst *vec.Vector, nulls *bitmap, skip, n int) error {
	if err := d.fit(dst, n); err != nil {
		return err
	}
	v := &d.lay.values
	if v.form == formCodes {
		return d.words(dst, nulls, skip, n)
	}
	if err := dst.Plain(); err != nil {
		return err
	}
	at := dst.Extend(n)
	from, k, valid, err := d.present(dst, at, nulls, skip, n)
	if err != nil {
		return err
	}
	switch dst.Type.ID() {
	default:
		size := dst.Width()
		width := d.f.footer.Type.Width()
		out := dst.Data(at)
		if err := v.wide(out[:k*size:cap(out)], from, k, width, size, d.t.Scratch); err != nil {
			return d.inValues(err)
		}
		if k < n {
			plain.ExpandFixed(out, size, n, valid, at)
		}
	case boolID:
		if err := v.bits(dst.Bits(), at, from, k); err != nil {
			return d.inValues(err)
		}
		if k < n {
			spreadBits(dst.Bits(), at, n, k, valid, d.t.Scratch.Bytes(k/8+8))
		}
	case stringID, binaryID:
		if err := v.strings(dst, at, from, k, d.t.Scratch, d.t.Limits.Page); err != nil {
			return d.inValues(err)
		}
		if k < n {
			plain.ExpandOffsets(dst.Offsets(at), n, valid, at)
		}
	}
	return nil
}

// present marks the nulls of n entries and says which of the stored values they need: k from from on.
func (d *decoding) present(dst *vec.Vector, at int, nulls *bitmap, skip, n int) (from, k int, valid []byte, err error) {
	v := &d.lay.values
	if nulls == nil {
		if skip+n > v.count {
			return 0, 0, nil, fault.Rel(0, 0, "", "%d values are needed, the block has %d", skip+n, v.count)
		}
		return skip, n, nil, nil
	}
	if skip > 0 {
		if from, err = nulls.ones(0, skip); err != nil {
			return 0, 0, nil, err
		}
	}
	if k, valid, err = nulls.mark(dst, at, skip, n); err != nil {
		return 0, 0, nil, err
	}
	return from, k, valid, checkOnes(nulls, v, from, k, skip+n == nulls.n)
}

// words decodes n words of the dictionary, after skip.
func (d *decoding) words(dst *vec.Vector, nulls *bitmap, skip, n int) error {
	dict := d.t.Dict
	if dict != nil && dict.Items != nil {
		dict = dict.Items // of a list column
	}
	if dict == nil {
		return fault.Rel(d.lay.values.at, 0, "", "words of a dictionary, and the file has none")
	}
	at := dst.Len()
	codes := dst.ExtendCodes(n, dict)
	from, k, valid, err := d.present(dst, at, nulls, skip, n)
	if err != nil {
		return err
	}
	if err := d.lay.values.codes(codes[:k:cap(codes)], from, k, dict, d.t.Scratch); err != nil {
		return d.inValues(err)
	}
	if k < n {
		plain.ExpandFixed(bytesOf(codes), 4, n, valid, at)
	}
	return nil
}

// inValues moves an error relative to the values' data to its place in the block.
func (d *decoding) inValues(err error) error { return relative(err, d.lay.values.at, "") }
