package meta

import (
	"bytes"
	"fmt"
	"hash/crc32"
)

// Page checksums do not cover the footer, in which one flipped bit can turn a list into a struct. Our writer stores a
// checksum of the whole footer in the last key/value pair, which other readers ignore.

// SealKey is the key of the pair. Its value is the CRC-32 of the footer as eight hexadecimal digits, computed with
// zeros in their place.
const SealKey = "stoa.footer"

// SealPlaceholder fills the place of the checksum until it is computed.
const SealPlaceholder = "00000000"

// sealHead is the text before the digits: the key, and the Thrift header of the value.
const sealHead = SealKey + "\x18\x08"

// sealAt is the offset of the digits in a footer; -1 if there are none.
func sealAt(footer []byte) int {
	at := bytes.LastIndex(footer, []byte(sealHead))
	if at < 0 || at+len(sealHead)+len(SealPlaceholder) > len(footer) {
		return -1
	}
	return at + len(sealHead)
}

// Seal overwrites the placeholder in the last pair of a footer with the checksum.
func Seal(footer []byte) {
	copy(footer[sealAt(footer):], fmt.Sprintf("%08x", crc32.ChecksumIEEE(footer)))
}

// createdByUs begins the text after the digits, the end of the pair and the end of the list. A pair that was copied
// together with a schema into another writer's file describes a different footer.
const createdByUs = "stoa version"

// nearly reports whether b begins with a text, of which a few bytes may be damaged: whoever else wrote the footer has
// another name in all of it.
func nearly(b []byte, text string) bool {
	wrong := 0
	for i := range len(text) {
		if i >= len(b) || b[i] != text[i] {
			wrong++
		}
	}
	return wrong <= len(text)/4
}

// BrokenSeal returns a description of a wrong checksum of a footer; "" if it is right or missing. It is called before
// the footer is parsed, since a damaged field number hides the fields after it.
func BrokenSeal(footer []byte) string {
	const between = 3 // bytes
	at := sealAt(footer)
	if at < 0 || len(footer) < at+len(SealPlaceholder)+between ||
		!nearly(footer[at+len(SealPlaceholder)+between:], createdByUs) {
		return ""
	}
	digits, rest := string(footer[at:at+len(SealPlaceholder)]), footer[at+len(SealPlaceholder):]
	sum := crc32.Update(crc32.ChecksumIEEE(footer[:at]), crc32.IEEETable, []byte(SealPlaceholder))
	right := fmt.Sprintf("%08x", crc32.Update(sum, crc32.IEEETable, rest))
	if right == digits {
		return ""
	}
	signed := len(rest) - SignatureSize // the signature covers the checksum, not vice versa
	if signed < 0 || fmt.Sprintf("%08x", crc32.Update(sum, crc32.IEEETable, rest[:signed])) != digits {
		return fmt.Sprintf("its checksum, %s, is %q, computed %q", SealKey, digits, right)
	}
	return ""
}
