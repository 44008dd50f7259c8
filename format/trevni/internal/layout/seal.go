package layout

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"math/bits"
	"strconv"

	"stoa/fault"
	"stoa/internal/sum"
)

// The format has no checksum for headers and descriptors. Our writer keeps some in metadata, which other readers
// ignore.

// NoSeal is the placeholder of a header's checksum while the checksum is computed.
const NoSeal = "00000000"

// SealText returns the CRC-32 of b as stored in metadata, in hexadecimal.
func SealText(b []byte) []byte { return fmt.Appendf(nil, "%08x", crc32.ChecksumIEEE(b)) }

// Seal stores the checksum of the header b at offset at, where b has NoSeal.
func Seal(b []byte, at int) { copy(b[at:], SealText(b)) }

// CheckSeal compares the header at the beginning of b, which lies at at, with the checksum that our writer stores in
// it, and sets Sealed if there is one and it matches.
func (h *Header) CheckSeal(b []byte, at fault.Span) error {
	stored, ok := Get(h.Meta, SealKey)
	if !ok {
		return nil
	}
	own := append([]byte(nil), b[:h.Size]...)
	for _, p := range h.Meta {
		if from := p.At.End() - at.Off - int64(len(NoSeal)); p.Key == SealKey && len(p.Value) == len(NoSeal) &&
			from >= 0 && from+int64(len(NoSeal)) <= h.Size {
			copy(own[from:], NoSeal)
		}
	}
	if computed := SealText(own); string(computed) != string(stored) {
		return &sealError{fault.Corruptf(at.Sub(0, h.Size), "header", "checksum %s: expected %q, computed %q",
			SealKey, stored, computed)}
	}
	h.Sealed = true
	for i := range h.Columns {
		if _, ok := Get(h.Columns[i].Meta, DescKey); !ok {
			h.Sealed = false
		}
	}
	return nil
}

// MaxHeaderRepair is the size in bytes up to which a header is searched for a flipped bit.
const MaxHeaderRepair = 8 << 10

// FlippedBits iterates over the bits of b, which begins with a header, that may be the one flipped bit: if it is
// flipped back and the header ends at end, the checksum is correct. The real end of the header is unknown, because the
// bit may belong to a length or a count; the caller must check that the header ends there.
func FlippedBits(b []byte) iter.Seq2[int, int64] {
	return func(yield func(bit int, end int64) bool) {
		b = b[:min(len(b), MaxHeaderRepair)]
		at := bytes.Index(b, []byte(SealKey)) + len(SealKey) + 1 // after the length of the value
		if at <= len(SealKey) || at+len(NoSeal) > len(b) {
			return
		}
		seal, own := b[at:at+len(NoSeal)], bytes.Clone(b)
		copy(own[at:], NoSeal)
		want, err := strconv.ParseUint(string(seal), 16, 32)
		flips := sum.NewFlips(crc32.IEEETable, len(own))
		crc := crc32.ChecksumIEEE(own[:at])
		for end := at + 1; end <= len(own); end++ {
			crc = crc32.Update(crc, crc32.IEEETable, own[end-1:end])
			bit := -1
			if err == nil {
				bit = flips.Bit(end, crc^uint32(want))
			}
			if k := onlyBit(seal, fmt.Appendf(nil, "%08x", crc)); k >= 0 {
				bit = 8*at + k
			}
			if bit >= 0 && !yield(bit, int64(end)) {
				return
			}
		}
	}
}

// onlyBit returns the only bit in which a and b, of the same size, differ; -1: none, or more than one.
func onlyBit(a, b []byte) int {
	found := -1
	for i := range a {
		d := a[i] ^ b[i]
		if d != 0 && (found >= 0 || d&(d-1) != 0) {
			return -1
		}
		if d != 0 {
			found = 8*i + bits.TrailingZeros8(d)
		}
	}
	return found
}

// sealError is the error of a header that can be parsed but whose checksum does not match.
type sealError struct{ why *fault.Error }

func (b *sealError) Error() string { return b.why.Error() }
func (b *sealError) Unwrap() error { return b.why }

// IsSealError reports whether err is the error of CheckSeal.
func IsSealError(err error) bool { return errors.As(err, new(*sealError)) }

// CheckDescriptors compares the descriptors b of a column with the checksum in its metadata, if there is one.
func (c *Column) CheckDescriptors(b []byte, at fault.Span, path string) error {
	stored, ok := Get(c.Meta, DescKey)
	if computed := SealText(b); ok && string(computed) != string(stored) {
		return fault.Corruptf(at, path+".descriptors", "checksum %s: expected %q, computed %q", DescKey, stored,
			computed)
	}
	return nil
}
