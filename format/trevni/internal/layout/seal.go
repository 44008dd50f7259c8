package layout

import (
	"errors"
	"fmt"
	"hash/crc32"

	"stoa/fault"
)

// The format has no checksum for headers and descriptors. Our writer keeps some in metadata, which other readers
// ignore.

const NoSeal = "00000000"

func SealText(b []byte) []byte { return fmt.Appendf(nil, "%08x", crc32.ChecksumIEEE(b)) }

// Seal writes the checksum of the header b into its place, at at.
func Seal(b []byte, at int) { copy(b[at:], SealText(b)) }

// CheckSeal compares the header, which b begins with and which lies at at, with the checksum that our writer keeps in
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
	if right := SealText(own); string(right) != string(stored) {
		return &brokenSeal{fault.Corruptf(at.Sub(0, h.Size), "header", "its checksum, %s, is %q, computed %q",
			SealKey, stored, right)}
	}
	h.Sealed = true
	for i := range h.Columns {
		if _, ok := Get(h.Columns[i].Meta, DescKey); !ok {
			h.Sealed = false
		}
	}
	return nil
}

// brokenSeal is the error of a header whose checksum does not match although it can be parsed.
type brokenSeal struct{ why *fault.Error }

func (b *brokenSeal) Error() string { return b.why.Error() }
func (b *brokenSeal) Unwrap() error { return b.why }

func IsBroken(err error) bool { return errors.As(err, new(*brokenSeal)) }

// CheckDescriptors compares the descriptors b of a column with the checksum that our writer keeps.
func (c *Column) CheckDescriptors(b []byte, at fault.Span, path string) error {
	stored, ok := Get(c.Meta, DescKey)
	if right := SealText(b); ok && string(right) != string(stored) {
		return fault.Corruptf(at, path+".descriptors", "their checksum, %s, is %q, computed %q", DescKey, stored, right)
	}
	return nil
}
