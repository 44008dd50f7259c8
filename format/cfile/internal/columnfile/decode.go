package columnfile

import (
	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/internal/enc/plain"
	"stoa/internal/enc/rle"
	"stoa/vec"
)

// list skips skip arrays and appends the next n to dst.
func (d *decoding) list(dst *vec.Vector, skip, n int) error {
	h := &d.lay.Arrays
	spare := block.As[uint16](d.t.Scratch.Bytes(2*block.MaxSub), block.MaxSub)
	first, err := h.Before(skip, spare)
	if err != nil {
		return err
	}
	at := dst.Extend(n)
	k, _, err := h.Cells.Mark(dst, at, skip, n)
	if err != nil {
		return err
	}
	if s, ok := d.f.Footer.Stored(); k < n && ok && s.Nullable != nil && !*s.Nullable {
		return fault.Rel(0, 0, "bitmap", "expected no null, as the column has none, found %d", n-k)
	}
	offs := dst.Offsets(at)
	last := int64(offs[0])
	for from := 0; from < n; from += block.MaxSub {
		s := spare[:min(block.MaxSub, n-from)]
		if err := rle.DecodeInts(s, h.Lengths, 16, skip+from); err != nil {
			return block.Relative(err, h.At, "lengths")
		}
		for i, x := range s {
			last += int64(x)
			offs[from+i+1] = int32(last)
		}
		if last > 1<<31-1 {
			return fault.Limitf(fault.Span{}, "lengths", "%d elements do not fit one batch", last)
		}
	}
	items := last - int64(offs[0])
	if end := skip+n == h.Cells.N; first+items > int64(h.Elements.N) || end && first+items != int64(h.Elements.N) {
		return fault.Rel(h.At, len(h.Lengths), "lengths", "the cells have %d elements, the block has %d",
			first+items, h.Elements.N)
	}
	return d.flat(dst.Items, &h.Elements, int(first), int(items))
}

// decoding is the state of one call of Decode.
type decoding struct {
	f   *File
	t   *format.Task
	b   block.Block
	lay block.Layout
}

// checkMemory checks the memory that n entries of the vector's width take against the page limit.
func (d *decoding) checkMemory(dst *vec.Vector, n int) error {
	width := int64(max(dst.Width(), 4))
	if need := int64(n) * width; need > d.t.Limits.Page {
		return fault.Limitf(fault.Span{}, "",
			"%d values take %d bytes, a page has at most %d (page limit or memory limit)", n, need,
			d.t.Limits.Page)
	}
	return nil
}

// flat skips skip entries and appends the next n to dst. nulls is nil if none of them is null.
func (d *decoding) flat(dst *vec.Vector, nulls *block.Bitmap, skip, n int) error {
	if err := d.checkMemory(dst, n); err != nil {
		return err
	}
	v := &d.lay.Values
	if v.Form == block.FormCodes {
		return d.codes(dst, nulls, skip, n)
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
		width := d.f.Footer.Type.Width()
		out := dst.Data(at)
		if err := v.Wide(out[:k*size:cap(out)], from, k, width, size, d.t.Scratch); err != nil {
			return d.inValues(err)
		}
		if digits := d.f.Footer.Type.DigitsAs(dst.Type); digits > 0 {
			if err := block.CheckDigits(out, k, digits); err != nil {
				return d.inValues(err)
			}
		}
		if u, ok := block.OtherUnit(dst.Type); ok {
			if err := block.ShowMicros(block.As[int64](out, k), u); err != nil {
				return d.inValues(err)
			}
		}
		if k < n {
			plain.ExpandFixed(out, size, n, valid, at)
		}
	case arrow.BOOL:
		if err := v.Bits(dst.Bits(), at, from, k); err != nil {
			return d.inValues(err)
		}
		if k < n {
			block.SpreadBits(dst.Bits(), at, n, k, valid, d.t.Scratch.Bytes(k/8+8))
		}
	case arrow.STRING, arrow.BINARY:
		if err := v.Strings(dst, at, from, k, d.t.Scratch, d.t.Limits.Page); err != nil {
			return d.inValues(err)
		}
		if k < n {
			plain.ExpandOffsets(dst.Offsets(at), n, valid, at)
		}
	}
	return nil
}

// present marks the nulls among the n entries after the first skip. The other entries have the k stored values from
// value from on. valid is dst's bitmap, nil if it has none.
func (d *decoding) present(dst *vec.Vector, at int, nulls *block.Bitmap, skip, n int) (from, k int, valid []byte,
	err error) {
	v := &d.lay.Values
	if nulls == nil {
		if skip+n > v.Count {
			return 0, 0, nil, fault.Rel(0, 0, "", "%d values are needed, the block has %d", skip+n, v.Count)
		}
		return skip, n, nil, nil
	}
	if skip > 0 {
		if from, err = nulls.Ones(0, skip); err != nil {
			return 0, 0, nil, err
		}
	}
	if k, valid, err = nulls.Mark(dst, at, skip, n); err != nil {
		return 0, 0, nil, err
	}
	return from, k, valid, block.CheckOnes(nulls, v, from, k, skip+n == nulls.N)
}

// codes skips skip dictionary codes and appends the next n to dst.
func (d *decoding) codes(dst *vec.Vector, nulls *block.Bitmap, skip, n int) error {
	dict := d.t.Dict
	if dict != nil && dict.Items != nil {
		dict = dict.Items // of a list column, whose items have the dictionary
	}
	if dict == nil {
		return fault.Rel(d.lay.Values.At, 0, "", "found codes of a dictionary, which the file does not have")
	}
	at := dst.Len()
	codes := dst.ExtendCodes(n, dict)
	from, k, valid, err := d.present(dst, at, nulls, skip, n)
	if err != nil {
		return err
	}
	if err := d.lay.Values.Codes(codes[:k:cap(codes)], from, k, dict, d.t.Scratch); err != nil {
		return d.inValues(err)
	}
	if k < n {
		plain.ExpandFixed(block.BytesOf(codes), 4, n, valid, at)
	}
	return nil
}

// inValues moves an error relative to the values' data to its place in the block.
func (d *decoding) inValues(err error) error { return block.Relative(err, d.lay.Values.At, "") }
