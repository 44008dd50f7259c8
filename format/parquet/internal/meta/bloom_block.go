package meta

import "encoding/binary"

// SplitBlock is a Bloom filter as Parquet has it (BloomFilter.md): blocks of eight words of 32 bits, of which a
// value sets one bit each.
type SplitBlock []byte

const SplitBlockLen = 32

var salts = [8]uint32{0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31}

// May reports whether a value with this hash may be there.
func (f SplitBlock) May(hash uint64) bool {
	block := f[(hash>>32*uint64(len(f)/SplitBlockLen))>>32*SplitBlockLen:]
	for i, salt := range salts {
		word := binary.LittleEndian.Uint32(block[4*i:])
		if word&(1<<(uint32(hash)*salt>>27)) == 0 {
			return false
		}
	}
	return true
}

// Put adds a value with this hash.
func (f SplitBlock) Put(hash uint64) {
	block := f[(hash>>32*uint64(len(f)/SplitBlockLen))>>32*SplitBlockLen:]
	for i, salt := range salts {
		word := binary.LittleEndian.Uint32(block[4*i:])
		binary.LittleEndian.PutUint32(block[4*i:], word|1<<(uint32(hash)*salt>>27))
	}
}
