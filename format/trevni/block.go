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

// usual is what the dialect's definition (the wiki) or only writer (Avro) has.
func (d Dialect) usual() sumForm {
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

// openBlock checks and decompresses the bytes of a block, stored with its checksum. Errors are relative to them, or, if exact is
// false, to what was decompressed.
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
	var first error
	for _, front := range [2]bool{d.usual().front, !d.usual().front} {
		data, sum := stored[:len(stored)-4], stored[len(stored)-4:]
		o = opened{at: b.at.Sub(0, b.at.Len-4), exact: col.codec == codecNone}
		if front {
			data, sum = stored[4:], stored[:4]
			o.at.Off += 4
		}
		o.unpacked, err = f.unpack(col, b, data, a)
		o.raw = o.unpacked.raw
		if err == nil {
			if noVerify {
				return o, nil
			}
			if form, ok := rightSum(sum, o.raw, data, col.codec, d); ok {
				form.front = front
				o.sum = form
				return o, nil
			}
			want := crc32.ChecksumIEEE(o.raw)
			if d.usual().big {
				err = fault.Corruptf(b.at, "column-checksum", "%08x is stored, %08x is right", sum, want)
			} else {
				err = fault.Corruptf(b.at, "column-checksum", "%#08x is stored, %#08x is right", binary.LittleEndian.Uint32(sum), want)
			}
		}
		if first == nil {
			first = err
		}
	}
	return o, first
}

// unpack holds the sizes against each other and the limits, and decompresses.
func (f *file) unpack(col *Column, b *block, data []byte, a *vec.Arena) (u unpacked, err error) {
	if b.raw > f.limits.Page {
		return u, fault.Limitf(b.desc, "block-uncompressed-size", "%d bytes are more than a page may have (%d)", b.raw, f.limits.Page)
	}
	return col.codec.decompress(data, b.raw, a)
}

// rightSum looks for the way in which sum is right. Each is as improbable by chance as any other.
func rightSum(sum, raw, stored []byte, k codecKind, d Dialect) (form sumForm, ok bool) {
	big, little := binary.BigEndian.Uint32(sum), binary.LittleEndian.Uint32(sum)
	usual := d.usual()
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
	if big == 0 && k == codecNone && d == Avro {
		return sumForm{zero: true}, true
	}
	return form, false
}
