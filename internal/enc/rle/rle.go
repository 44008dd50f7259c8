// Package rle implements the hybrid of runs and bit-packed values that Kudu calls RLE, which originated in Impala and
// was adopted by Parquet.
//
// A sequence of values of a fixed width in bits, 1 to 64, is a sequence of runs, each with a header, a varint
// of up to 32 bits:
//
//	even: header>>1 times the same value, which follows in ⌈width/8⌉ bytes, little-endian
//	odd:  header>>1 groups of 8 bit-packed values, the first value in the lowest bits
//
// The encoded form records neither the number of values nor its own end. A writer stops after the last value: the last
// group of a packed run at the end has only the bytes that contain values.
//
// Example, width 1: 100 ones, 100 zeros, then 1,0,1,0,1,0,1,0,1,1: c8 01 01, c8 01 00, 05 55 03.
//
// Source: notes on Kudu, section 5; Kudu's util/rle-encoding.h. The seed document shows the bitmap of presence
// as plain bits ("0110"); the files have runs.
package rle

import (
	"math"
	"strconv"

	"stoa/fault"
)

// reader walks the runs of src.
type reader struct {
	src   []byte
	at    int // the next header
	width int
	run   int // number of the current run, from 0; for errors

	left   int    // values left in the current run
	packed bool   // bit-packed values
	bit    int    // packed: the next value, in bits from the beginning of src
	value  uint64 // not packed: the value
}

// path returns the path of a field of the run with number run.
func path(run int, field string) string { return "run[" + strconv.Itoa(run) + "]" + field }

// next reads the header of the next run, and the value if it is a repeated one.
func (r *reader) next() error {
	src, at := r.src, r.at
	var head uint64
	if at < len(src) && src[at] < 0x80 {
		head = uint64(src[at])
		at++
	} else {
		var err error
		if head, at, err = r.header(); err != nil {
			return err
		}
	}
	n := int(head >> 1)
	if n == 0 {
		return fault.Rel(r.at, at-r.at, path(r.run, ".header"), "a run of no values")
	}
	if head&1 != 0 {
		return r.nextPacked(n, at)
	}
	size := (r.width + 7) >> 3
	if size > len(src)-at {
		return fault.Rel(at, size, path(r.run, ".value"), "%d bytes, %d are left", size, len(src)-at)
	}
	v := uint64(src[at])
	for i := 1; i < size; i++ {
		v |= uint64(src[at+i]) << (8 * i)
	}
	if v>>1>>(r.width-1) != 0 {
		return fault.Rel(at, size, path(r.run, ".value"), "%#x in %d bits", v, r.width)
	}
	r.packed, r.left, r.value, r.at = false, n, v, at+size
	r.run++
	return nil
}

// nextPacked enters a run of n groups whose values begin at byte at.
func (r *reader) nextPacked(n, at int) error {
	size := n * r.width // at most 2³¹·64
	r.left = n * 8
	if size > len(r.src)-at {
		size = len(r.src) - at
		r.left = size * 8 / r.width
		if r.left == 0 {
			return fault.Rel(at, size, path(r.run, ".values"), "none of the %d values of %d bits is there", n*8,
				r.width)
		}
	}
	r.packed, r.bit, r.at = true, at*8, at+size
	r.run++
	return nil
}

// header reads a header of any length.
func (r *reader) header() (head uint64, next int, err error) {
	for i := 0; i < 5; i++ {
		if r.at+i >= len(r.src) {
			return 0, 0, fault.Rel(r.at, i+1, path(r.run, ".header"), "the input ends")
		}
		b := r.src[r.at+i]
		head |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			if head > math.MaxUint32 {
				break
			}
			return head, r.at + i + 1, nil
		}
	}
	return 0, 0, fault.Rel(r.at, 5, path(r.run, ".header"), "a varint of more than 32 bits")
}

// skip skips n values.
func (r *reader) skip(n int) error {
	for n > 0 {
		if r.left == 0 {
			if err := r.next(); err != nil {
				return err
			}
		}
		m := min(n, r.left)
		r.left -= m
		r.bit += m * r.width
		n -= m
	}
	return nil
}
