package container

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni/internal/layout"
	"stoa/vec"
)

// Opened is a block that was checked and decompressed.
type Opened struct {
	Raw   []byte
	At    fault.Span // of the stored bytes
	Exact bool       // Raw is the stored bytes themselves
	Sum   sumForm
	layout.Unpacked
}

// sumForm is the form in which a block's CRC-32 matches; all were written by some program.
type sumForm struct {
	Front  bool // before the data, as the wiki defines it
	big    bool // big-endian, as Avro's code writes it
	stored bool // over the stored bytes, not the raw ones
	Zero   bool // always 0: a bug of every version of Avro with the null codec
}

// UsualSum is the form of checksums by the dialect's definition (the wiki), or as its only writer (Avro) stores them.
func UsualSum(d layout.Dialect) sumForm {
	if d == layout.Wiki {
		return sumForm{Front: true}
	}
	return sumForm{big: d == layout.Avro}
}

func (s sumForm) String() string {
	if s.Zero {
		return "zero"
	}
	words := [2]string{"after the data", "little-endian"}
	if s.Front {
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

// ReadBlock reads a block of column i and opens it, see OpenBlock. stored are its bytes; they and those of o are valid
// until a is reset.
func (f *File) ReadBlock(ctx context.Context, i int, b *Block, path string, a *vec.Arena,
	noVerify bool) (o Opened, stored []byte, err error) {
	a.Reset()
	if stored, err = format.ReadPage(ctx, f.Src, b.At, f.Limits, path, a.Bytes); err != nil {
		return o, nil, err
	}
	if o, err = f.OpenBlock(&f.Header.Columns[i], b, stored, a, noVerify); err != nil {
		err = fault.Locate(err, b.At, false, path)
	}
	return o, stored, err
}

// OpenBlock checks and decompresses a block, stored with its checksum. Errors are relative to these bytes or, if exact
// is false, to the decompressed ones. With noVerify checksums are compared until one matches, because that shows where
// in the blocks they lie, but a mismatch is not an error.
func (f *File) OpenBlock(col *layout.Column, b *Block, stored []byte, a *vec.Arena,
	noVerify bool) (o Opened, err error) {
	if col.Problem != nil {
		return o, col.Problem
	}
	d := f.Header.Dialect
	if !col.Summed {
		o.At = b.At
		o.Unpacked, err = f.unpack(col, b, stored, a)
		o.Exact = col.Kind == layout.CodecNone
		o.Raw = o.Unpacked.Raw
		return o, err
	}
	usual := UsualSum(d).Front
	if form := f.form.Load(); noVerify && form != nil && !(form.Zero && !isZero(stored, form.Front)) {
		if o, err = f.apart(col, b, stored, *form, a); err == nil {
			return o, nil
		}
	}
	var first error
	var whole *Opened // the result if no checksum matches
	zero := false
	for _, front := range [2]bool{usual, !usual} {
		data, sum := divided(stored, front)
		o, err = f.apart(col, b, stored, sumForm{Front: front}, a)
		o.Sum = sumForm{}
		if err == nil {
			if form, ok := matchingForm(sum, o.Raw, data, col.Kind, d); ok {
				form.Front = front
				o.Sum = form
				f.learn(form)
				return o, nil
			}
			if whole == nil {
				whole = &Opened{}
				*whole = o
			}
			if front == usual {
				_, ours := layout.Get(f.Header.Meta, layout.SealKey) // our writer never writes such a checksum
				zero = col.Kind == layout.CodecNone && d == layout.Avro && isZero(stored, front) && !ours
			}
			err = wrongSum(b.At, d, sum, o.Raw)
		}
		if first == nil {
			first = err
		}
	}
	switch {
	case zero:
		// only where Avro writes it, and only if no checksum matches elsewhere: data may well begin or end with zeros
		whole.Sum = sumForm{Zero: true}
		f.learn(whole.Sum)
		return *whole, nil
	case whole != nil && noVerify:
		return *whole, nil
	}
	return o, first
}

// divided returns the data and the checksum of a stored block.
func divided(stored []byte, front bool) (data, sum []byte) {
	if front {
		return stored[4:], stored[:4]
	}
	return stored[:len(stored)-4], stored[len(stored)-4:]
}

func isZero(stored []byte, front bool) bool {
	_, sum := divided(stored, front)
	return binary.LittleEndian.Uint32(sum) == 0
}

// learn records the form of the first checksum that says where in the blocks checksums lie.
func (f *File) learn(form sumForm) {
	if f.form.Load() == nil {
		f.form.Store(&form)
	}
}

// apart decompresses a block whose checksum has the given form, without comparing it.
func (f *File) apart(col *layout.Column, b *Block, stored []byte, form sumForm, a *vec.Arena) (o Opened, err error) {
	o = Opened{At: b.At.Sub(0, b.At.Len-4), Exact: col.Kind == layout.CodecNone, Sum: form}
	if form.Front {
		o.At.Off += 4
	}
	data, _ := divided(stored, form.Front)
	o.Unpacked, err = f.unpack(col, b, data, a)
	o.Raw = o.Unpacked.Raw
	return o, err
}

// wrongSum reports the stored checksum and the computed one in the usual form.
func wrongSum(at fault.Span, d layout.Dialect, sum, raw []byte) error {
	want := crc32.ChecksumIEEE(raw)
	if UsualSum(d).big {
		return fault.Corruptf(at, "column-checksum", "expected %08x, computed %08x", sum, want)
	}
	return fault.Corruptf(at, "column-checksum", "expected %#08x, computed %#08x", binary.LittleEndian.Uint32(sum),
		want)
}

// unpack checks the sizes against each other and the limits, and decompresses.
func (f *File) unpack(col *layout.Column, b *Block, data []byte, a *vec.Arena) (u layout.Unpacked, err error) {
	// the block is otherwise damaged, or nobody needs it
	if b.Raw > f.Limits.Page && col.Kind != layout.CodecNone && b.Raw <= col.Kind.MaxRaw(int64(len(data))) {
		return u, fault.Limitf(b.Desc, "block-uncompressed-size",
			"%d bytes are more than a page may have (%d, page limit or memory limit)",
			b.Raw, f.Limits.Page)
	}
	return col.Kind.Decompress(data, b.Raw, a)
}

// matchingForm returns the form in which a checksum matches. All forms are equally unlikely to match by chance.
func matchingForm(sum, raw, stored []byte, k layout.Codec, d layout.Dialect) (form sumForm, ok bool) {
	big, little := binary.BigEndian.Uint32(sum), binary.LittleEndian.Uint32(sum)
	usual := UsualSum(d)
	for _, of := range [2]bool{false, true} {
		if of && k == layout.CodecNone {
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
