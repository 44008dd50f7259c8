package meta

import "encoding/binary"

// SplitBlock is a split block Bloom filter (BloomFilter.md): blocks of eight 32-bit words; each value sets one bit in
// every word of one block.
type SplitBlock []byte

// SplitBlockLen is the size of a block in bytes.
const SplitBlockLen = 32

var salts = [8]uint32{0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31}

// MightContain reports whether a value with this hash may be in the set.
func (f SplitBlock) MightContain(hash uint64) bool {
	block := f[(hash>>32*uint64(len(f)/SplitBlockLen))>>32*SplitBlockLen:]
	for i, salt := range salts {
		word := binary.LittleEndian.Uint32(block[4*i:])
		if word&(1<<(uint32(hash)*salt>>27)) == 0 {
			return false
		}
	}
	return true
}

// Insert adds a value with this hash.
func (f SplitBlock) Insert(hash uint64) {
	block := f[(hash>>32*uint64(len(f)/SplitBlockLen))>>32*SplitBlockLen:]
	for i, salt := range salts {
		word := binary.LittleEndian.Uint32(block[4*i:])
		binary.LittleEndian.PutUint32(block[4*i:], word|1<<(uint32(hash)*salt>>27))
	}
}
