package plain

import (
	"math"
	"strconv"

	"stoa/fault"
)

// Slack is the number of spare bytes that data and dictData should have after the last string for GatherStrings:
// with them a string of up to Slack bytes is copied in two moves of 16 bytes, whatever its length. Without them the
// last strings are only copied more slowly.
const Slack = 32

// SizeStrings returns the total length in bytes of the strings to which codes refer. dictOffs are the offsets of the
// dictionary's entries and its end: entry c is [dictOffs[c], dictOffs[c+1]); they must not decrease. Error: a code
// without an entry (class corrupt, path code[i]; offset and length count codes as 4 bytes each).
func SizeStrings(codes []uint32, dictOffs []int32) (int64, error) {
	var n int64
	for i, c := range codes {
		if uint64(c)+1 >= uint64(len(dictOffs)) {
			return 0, badCode(codes, i, dictOffs)
		}
		n += int64(dictOffs[c+1]) - int64(dictOffs[c])
	}
	return n, nil
}

func badCode(codes []uint32, i int, dictOffs []int32) error {
	return fault.Rel(4*i, 4, "code["+strconv.Itoa(i)+"]", "%d, but the dictionary has %d entries", codes[i],
		max(0, len(dictOffs)-1))
}

// GatherStrings concatenates the strings to which codes refer into data, from offs[0] on, and writes their ends to
// offs[1:]. offs has len(codes)+1 elements, of which the caller sets offs[0]; from there on, data has at least as many
// bytes as SizeStrings returns (bytes of data after the last string may be overwritten). dictOffs are offsets into
// dictData. Errors: a code without an entry (path code[i]); an entry outside of dictData (path dict[c]); data or offs
// too short (class bug).
func GatherStrings(offs []int32, data []byte, codes []uint32, dictOffs []int32, dictData []byte) error {
	if len(offs) != len(codes)+1 || offs[0] < 0 {
		return fault.Bugf("%d offsets for %d codes", len(offs), len(codes))
	}
	if len(data) > math.MaxInt32 {
		data = data[:math.MaxInt32]
	}
	pos := int(offs[0])
	ends := offs[1:][:len(codes)]
	for i, c := range codes {
		if uint64(c)+1 >= uint64(len(dictOffs)) {
			return badCode(codes, i, dictOffs)
		}
		lo, hi := int(dictOffs[c]), int(dictOffs[c+1])
		n := hi - lo
		if uint(n) <= Slack && lo >= 0 && lo+Slack <= len(dictData) && pos+Slack <= len(data) {
			Copy32((*[Slack]byte)(data[pos:]), (*[Slack]byte)(dictData[lo:]))
		} else if lo < 0 || n < 0 || hi > len(dictData) {
			return fault.Rel(lo, n, "dict["+strconv.Itoa(int(c))+"]", "bytes %d to %d of %d", lo, hi, len(dictData))
		} else if n > len(data)-pos {
			return fault.Bugf("data too short: string %d ends at %d of %d", i, pos+n, len(data))
		} else {
			copy(data[pos:pos+n], dictData[lo:hi])
		}
		pos += n
		ends[i] = int32(pos)
	}
	return nil
}

// Copy32 copies 32 bytes. It is written as two assignments because the compiler turns each into one move of 16 bytes.
func Copy32(dst, src *[32]byte) {
	*(*[16]byte)(dst[:]) = *(*[16]byte)(src[:])
	*(*[16]byte)(dst[16:]) = *(*[16]byte)(src[16:])
}
