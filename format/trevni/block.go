package trevni

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"stoa/fault"
	"stoa/vec"
)

// opened is a block whose checksum is right and that is decompressed.
type opened struct {
	raw   []byte
	at    fault.Span // of the stored bytes
	exact bool       // raw is them
	sum   sumForm
	unpacked
}

// sumForm is in which of the ways that were ever written a block's CRC-32 is right.
type sumForm struct {
	front  bool // before the data, as the wiki has it
	big    bool // big-endian, as Avro's code writes it
	stored bool // of the stored bytes, not of the raw ones
	zero   bool // it is 0 and says nothing: a bug of every version of Avro with the null codec
}

// usualSum is what the dialect's definition (the wiki) or only writer (Avro) has.
func usualSum(d Dialect) sumForm {
	if d == Wiki {
		return sumForm{front: true}
	}
	return sumForm{big: d == Avro}
}

func (s sumForm) String() string {
	if s.zero {
		return "zero"
	}
	words := [2]string{"behind the data", "little-endian"}
	if s.front {
		words[0] = "before the data"
	}
	if s.big {
		words[1] = "big-endian"
	}
	of := "raw"
	if s.stored {
		of = "stored"
	}
	return fmt.Sprintf("%s, %s, of the %s bytes", words[0], words[1], of)
}

// openBlock checks and decompresses the bytes of a block, stored with its checksum. Errors are relative to
// them, or, if exact is false, to what was decompressed. With noVerify sums are held against the bytes all the
// same: they tell before or behind which bytes they stand.
func (f *file) openBlock(col *Column, b *block, stored []byte, a *vec.Arena, noVerify bool) (o opened, err error) {
	if col.problem != nil {
		return o, col.problem
	}
	d := f.header.Dialect
	if !col.summed {
		o.at = b.at
		o.unpacked, err = f.unpack(col, b, stored, a)
		o.exact = col.codec == codecNone
		o.raw = o.unpacked.raw
		return o, err
	}
	usual := usualSum(d).front
	var first error
	var whole *opened // what is taken though no sum is right
	zero := false
	for _, front := range [2]bool{usual, !usual} {
		data, sum := stored[:len(stored)-4], stored[len(stored)-4:]
		o = opened{at: b.at.Sub(0, b.at.Len-4), exact: col.codec == codecNone}
		if front {
			data, sum = stored[4:], stored[:4]
			o.at.Off += 4
		}
		o.unpacked, err = f.unpack(col, b, data, a)
		o.raw = o.unpacked.raw
		if err == nil {
			if form, ok := rightSum(sum, o.raw, data, col.codec, d); ok {
				form.front = front
				o.sum = form
				return o, nil
			}
			if whole == nil {
				whole = &opened{}
				*whole = o
			}
			if front == usual {
				zero = col.codec == codecNone && d == Avro && binary.LittleEndian.Uint32(sum) == 0
			}
			err = wrongSum(b.at, d, sum, o.raw)
		}
		if first == nil {
			first = err
		}
	}
	switch {
	case zero:
		// only where Avro has it, and only if no sum is right in another place: data may well begin or end with zeros
		whole.sum = sumForm{zero: true}
		return *whole, nil
	case whole != nil && noVerify:
		return *whole, nil
	}
	return o, first
}

// wrongSum says what a sum is, and what the usual one would be.
func wrongSum(at fault.Span, d Dialect, sum, raw []byte) error {
	want := crc32.ChecksumIEEE(raw)
	if usualSum(d).big {
		return fault.Corruptf(at, "column-checksum", "%08x is stored, %08x is right", sum, want)
	}
	return fault.Corruptf(at, "column-checksum", "%#08x is stored, %#08x is right", binary.LittleEndian.Uint32(sum),
		want)
}

// unpack holds the sizes against each other and the limits, and decompresses.
func (f *file) unpack(col *Column, b *block, data []byte, a *vec.Arena) (u unpacked, err error) {
	// else it is damaged, or needed by nobody
	if b.raw > f.limits.Page && col.codec != codecNone && b.raw <= col.codec.mostRaw(int64(len(data))) {
		return u, fault.Limitf(b.desc, "block-uncompressed-size", "%d bytes are more than a page may have (%d)",
			b.raw, f.limits.Page)
	}
	return col.codec.decompress(data, b.raw, a)
}

// rightSum looks for the way in which sum is right. Each is as improbable by chance as any other.
func rightSum(sum, raw, stored []byte, k codecKind, d Dialect) (form sumForm, ok bool) {
	big, little := binary.BigEndian.Uint32(sum), binary.LittleEndian.Uint32(sum)
	usual := usualSum(d)
	for _, of := range [2]bool{false, true} {
		if of && k == codecNone {
			break
		}
		want := crc32.ChecksumIEEE(raw)
		if of {
			want = crc32.ChecksumIEEE(stored)
		}
		switch {
		case big == want && little == want:
			return sumForm{big: usual.big, stored: of}, true
		case big == want:
			return sumForm{big: true, stored: of}, true
		case little == want:
			return sumForm{stored: of}, true
		}
	}
	return form, false
}
