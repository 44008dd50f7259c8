package trevni

import (
	"errors"
	"fmt"
	"hash/crc32"

	"stoa/fault"
)

// Nothing in the documents guards a header or descriptors. Our writer does, in metadata that other readers pass over.

const noSeal = "00000000"

func sealText(b []byte) []byte { return fmt.Appendf(nil, "%08x", crc32.ChecksumIEEE(b)) }

// seal writes the checksum of the header b over its place, at at.
func seal(b []byte, at int) { copy(b[at:], sealText(b)) }

// checkSeal holds the header, which b begins with and which lies at at, against the checksum that our writer
// keeps in it, and notes whether there is one that is right.
func (h *Header) checkSeal(b []byte, at fault.Span) error {
	stored, ok := get(h.Meta, sealKey)
	if !ok {
		return nil
	}
	own := append([]byte(nil), b[:h.size]...)
	for _, p := range h.Meta {
		if from := p.at.End() - at.Off - int64(len(noSeal)); p.Key == sealKey && len(p.Value) == len(noSeal) &&
			from >= 0 && from+int64(len(noSeal)) <= h.size {
			copy(own[from:], noSeal)
		}
	}
	if right := sealText(own); string(right) != string(stored) {
		return &brokenSeal{fault.Corruptf(at.Sub(0, h.size), "header", "its checksum, %s, is %q, %q is right",
			sealKey, stored, right)}
	}
	h.sealed = true
	for i := range h.Columns {
		if _, ok := get(h.Columns[i].Meta, descKey); !ok {
			h.sealed = false
		}
	}
	return nil
}

// brokenSeal is a header whose checksum is wrong: it can be understood all the same.
type brokenSeal struct{ why *fault.Error }

func (b *brokenSeal) Error() string { return b.why.Error() }
func (b *brokenSeal) Unwrap() error { return b.why }

func isBroken(err error) bool { return errors.As(err, new(*brokenSeal)) }

// checkDescriptors holds the descriptors b of a column against the checksum that our writer keeps.
func (c *Column) checkDescriptors(b []byte, at fault.Span, path string) error {
	stored, ok := get(c.Meta, descKey)
	if right := sealText(b); ok && string(right) != string(stored) {
		return fault.Corruptf(at, path+".descriptors", "their checksum, %s, is %q, %q is right", descKey, stored, right)
	}
	return nil
}
