package bitshuffle

// naiveUntranspose is Untranspose for any size of element, bit by bit, as the layout is specified.
func naiveUntranspose(dst, src []byte, elem int) {
	n := len(dst) / elem
	clear(dst)
	for i := range n {
		for bit := range 8 * elem {
			if src[bit*(n/8)+i/8]>>(i%8)&1 != 0 {
				dst[i*elem+bit/8] |= 1 << (bit % 8)
			}
		}
	}
}

// naiveTranspose is Transpose for any size of element.
func naiveTranspose(dst, src []byte, elem int) {
	n := len(src) / elem
	clear(dst)
	for i := range n {
		for bit := range 8 * elem {
			if src[i*elem+bit/8]>>(bit%8)&1 != 0 {
				dst[bit*(n/8)+i/8] |= 1 << (i % 8)
			}
		}
	}
}
