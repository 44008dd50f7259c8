// Package sum holds the checksums that the formats use.
package sum

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CRC32C is the CRC-32C (polynomial 0x1EDC6F41, reflected, initial value and final xor 0xFFFFFFFF)
// of the concatenation of parts. Kudu puts it after every block, header and footer of a CFile,
// as a little-endian u32 over the stored bytes.
func CRC32C(parts ...[]byte) uint32 {
	var c uint32
	for _, p := range parts {
		c = crc32.Update(c, castagnoli, p)
	}
	return c
}
