package sum

// FlippedBit is the bit of b, of byte bit/8, with which flipped back sound reports true; -1: there is none, or more than
// one. sound compares b with a checksum in it or beside it. b is as it was after the call.
func FlippedBit(b []byte, sound func() bool) int {
	found := -1
	for bit := range 8 * len(b) {
		b[bit/8] ^= 1 << (bit % 8)
		ok := sound()
		b[bit/8] ^= 1 << (bit % 8)
		if ok && found >= 0 {
			return -1
		}
		if ok {
			found = bit
		}
	}
	return found
}
