package rle

import (
	"stoa/fault"
	"stoa/internal/enc/plain"
)

// DecodeBits decodes values of width 1 (the bitmap of presence of a nullable block, RLE bool): after skip values, n bits
// are written to bits [at, at+n) of dst, least significant bit of a byte first. The other bits of dst stay as they are.
// ones is the number of ones among the n. dst must hold at+n bits.
// Errors: the input ends before skip+n values, a run of no values, a value other than 0 and 1 (path run[i].header, .value, .values);
// dst too short or a negative number (class bug).
func DecodeBits(dst []byte, at int, src []byte, skip, n int) (ones int, err error) {
	if at < 0 || skip < 0 || n < 0 || n > len(dst)*8-at {
		return 0, fault.Bugf("rle: bits [%d,%d+%d) of %d", at, at, n, len(dst)*8)
	}
	r := reader{src: src, width: 1}
	if err := r.skip(skip); err != nil {
		return 0, err
	}
	for n > 0 {
		if r.left == 0 {
			if err := r.next(); err != nil {
				return ones, err
			}
		}
		m := min(n, r.left)
		if r.packed {
			ones += plain.CopyBits(dst, at, src, r.bit, m)
			r.bit += m
		} else {
			plain.FillBits(dst, at, m, r.value != 0)
			ones += m * int(r.value)
		}
		r.left -= m
		at += m
		n -= m
	}
	return ones, nil
}

// CountBits says how many of n values of width 1 are 1, after skip values. Errors as DecodeBits.
func CountBits(src []byte, skip, n int) (ones int, err error) {
	if skip < 0 || n < 0 {
		return 0, fault.Bugf("rle: skip %d, count %d", skip, n)
	}
	r := reader{src: src, width: 1}
	if err := r.skip(skip); err != nil {
		return 0, err
	}
	for n > 0 {
		if r.left == 0 {
			if err := r.next(); err != nil {
				return ones, err
			}
		}
		m := min(n, r.left)
		if r.packed {
			ones += plain.CountBits(src, r.bit, m)
			r.bit += m
		} else {
			ones += m * int(r.value)
		}
		r.left -= m
		n -= m
	}
	return ones, nil
}
