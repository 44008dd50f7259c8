package layout

import (
	"errors"
	"fmt"
	"hash/crc32"

	"stoa/fault"
	"stoa/internal/sum"
)

// The format has no checksum for headers and descriptors. Our writer keeps some in metadata, which other readers
// ignore.

// NoSeal stands in the place of a header's checksum while it is computed.
const NoSeal = "00000000"

// SealText is a checksum as metadata has it: the CRC-32 of b in hexadecimal.
func SealText(b []byte) []byte { return fmt.Appendf(nil, "%08x", crc32.ChecksumIEEE(b)) }

// Seal puts the checksum of the header b at offset at of it, which has NoSeal.
func Seal(b []byte, at int) { copy(b[at:], SealText(b)) }

// CheckSeal compares the header, which b begins with and which lies at at, with the checksum that our writer keeps in
// it, and sets Sealed if there is one and it matches.
func (h *Header) CheckSeal(b []byte, at fault.Span) error {
	stored, ok := Get(h.Meta, SealKey)
	if !ok {
		return nil
	}
	own := h.withoutSeal(b, at)
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

// withoutSeal is a copy of the header, which b begins with and which lies at at, as its checksum is computed over it.
func (h *Header) withoutSeal(b []byte, at fault.Span) []byte {
	own := append([]byte(nil), b[:h.Size]...)
	for _, p := range h.Meta {
		if from := h.sealAt(p, at); from >= 0 {
			copy(own[from:], NoSeal)
		}
	}
	return own
}

// sealAt is the offset in the header, which lies at at, of the checksum in p; -1: p is another pair.
func (h *Header) sealAt(p Pair, at fault.Span) int64 {
	from := p.At.End() - at.Off - int64(len(NoSeal))
	if p.Key != SealKey || len(p.Value) != len(NoSeal) || from < 0 || from+int64(len(NoSeal)) > h.Size {
		return -1
	}
	return from
}

// maxMend is the size in bytes up to which the flipped bit of a header is looked for: each bit takes a checksum over
// the whole header.
const maxMend = 8 << 10

// FlippedBit is the bit of the header, which b begins with and which lies at at, with which flipped back the header has
// its checksum; -1: there is none. There is at most one but for the checksum's own digits, since CRC-32 tells any two
// headers of this size that differ in fewer than four bits.
func (h *Header) FlippedBit(b []byte, at fault.Span) int {
	stored, ok := Get(h.Meta, SealKey)
	if !ok || h.Size > maxMend {
		return -1
	}
	own := h.withoutSeal(b, at)
	seal := append([]byte(nil), stored...)
	inSeal := sum.FlippedBit(seal, func() bool { return string(seal) == string(SealText(own)) })
	inOwn := sum.FlippedBit(own, func() bool { return string(seal) == string(SealText(own)) })
	if inSeal < 0 {
		return inOwn
	}
	for _, p := range h.Meta {
		if from := h.sealAt(p, at); from >= 0 && inOwn < 0 {
			return 8*int(from) + inSeal
		}
	}
	return -1
}

// sealError is the error of a header whose checksum does not match although it can be parsed.
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
