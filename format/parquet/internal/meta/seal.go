package meta

import (
	"bytes"
	"fmt"
	"hash/crc32"
)

// Checksums of pages say nothing of the footer: a bit of it makes bytes of a text, or a struct of a list. Our writer
// keeps a checksum of the whole footer in the last of its pairs, which other readers pass over.

// SealKey is the pair with the CRC-32 of the footer, as eight hexadecimal digits, which count as zeros.
const SealKey = "stoa.footer"

// NoSeal stands where the checksum will be.
const NoSeal = "00000000"

// sealHead is what stands before the digits: the key, and the head of the value.
const sealHead = SealKey + "\x18\x08"

// sealAt is where the digits are in a footer; -1: nowhere.
func sealAt(footer []byte) int {
	at := bytes.LastIndex(footer, []byte(sealHead))
	if at < 0 || at+len(sealHead)+len(NoSeal) > len(footer) {
		return -1
	}
	return at + len(sealHead)
}

// Seal writes the checksum of a footer, whose last pair is the key with NoSeal, over its place.
func Seal(footer []byte) {
	copy(footer[sealAt(footer):], fmt.Sprintf("%08x", crc32.ChecksumIEEE(footer)))
}

// createdByUs is what follows the digits, behind the ends of the pair and of its field's head: a pair that came along
// with a schema into a file of another writer is about another footer.
const createdByUs = "stoa version"

// BrokenSeal says what is wrong about the checksum of a footer; "" if nothing is, or it has none. It is asked before
// the footer is understood: a field's number that is another hides what follows.
func BrokenSeal(footer []byte) string {
	const between = 3 // bytes
	at := sealAt(footer)
	if at < 0 || len(footer) < at+len(NoSeal)+between ||
		!bytes.HasPrefix(footer[at+len(NoSeal)+between:], []byte(createdByUs)) {
		return ""
	}
	digits, rest := string(footer[at:at+len(NoSeal)]), footer[at+len(NoSeal):]
	sum := crc32.Update(crc32.ChecksumIEEE(footer[:at]), crc32.IEEETable, []byte(NoSeal))
	right := fmt.Sprintf("%08x", crc32.Update(sum, crc32.IEEETable, rest))
	if right == digits {
		return ""
	}
	signed := len(rest) - SignatureSize // a signature is of what the checksum is in, and not under it
	if signed < 0 || fmt.Sprintf("%08x", crc32.Update(sum, crc32.IEEETable, rest[:signed])) != digits {
		return fmt.Sprintf("its checksum, %s, is %q, computed %q", SealKey, digits, right)
	}
	return ""
}
