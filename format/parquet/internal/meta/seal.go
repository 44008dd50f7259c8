package meta

import (
	"bytes"
	"fmt"
	"hash/crc32"
)

// Page checksums do not cover the footer, in which one flipped bit can turn a list into a struct. Our writer keeps a
// checksum of the whole footer in its last key/value pair, which other readers ignore.

// SealKey is the pair with the CRC-32 of the footer as eight hexadecimal digits, which count as zeros in the sum.
const SealKey = "stoa.footer"

// SealPlaceholder stands where the checksum will be.
const SealPlaceholder = "00000000"

// sealHead is what precedes the digits: the key, and the Thrift header of the value.
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

// createdByUs is what follows the digits, after the ends of the pair and of the list. A pair that was copied along with
// a schema into another writer's file is about a different footer.
const createdByUs = "stoa version"

// BrokenSeal returns what is wrong with the checksum of a footer; "" if nothing is, or if it has none. It is called
// before the footer is parsed, since a damaged field number hides what follows.
func BrokenSeal(footer []byte) string {
	const between = 3 // bytes
	at := sealAt(footer)
	if at < 0 || len(footer) < at+len(SealPlaceholder)+between ||
		!bytes.HasPrefix(footer[at+len(SealPlaceholder)+between:], []byte(createdByUs)) {
		return ""
	}
	digits, rest := string(footer[at:at+len(SealPlaceholder)]), footer[at+len(SealPlaceholder):]
	sum := crc32.Update(crc32.ChecksumIEEE(footer[:at]), crc32.IEEETable, []byte(SealPlaceholder))
	right := fmt.Sprintf("%08x", crc32.Update(sum, crc32.IEEETable, rest))
	if right == digits {
		return ""
	}
	signed := len(rest) - SignatureSize // a signature covers the checksum, not the reverse
	if signed < 0 || fmt.Sprintf("%08x", crc32.Update(sum, crc32.IEEETable, rest[:signed])) != digits {
		return fmt.Sprintf("its checksum, %s, is %q, computed %q", SealKey, digits, right)
	}
	return ""
}
