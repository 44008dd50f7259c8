package nest

import (
	"bytes"
	"sync"

	"stoa/fault"
)

// CountRows returns the number of rows that begin in rep: entries whose repetition level is 0.
func CountRows(rep []byte) int { return bytes.Count(rep, []byte{0}) }

// RowStart returns the position of the entry with which row number row, from 0, begins; len(rep) if there are not that
// many.
func RowStart(rep []byte, row int) int {
	at := 0
	for at < len(rep) {
		// Blocks before the row are only counted; the block that contains it is walked.
		end := min(at+4096, len(rep))
		if n := CountRows(rep[at:end]); n <= row {
			row -= n
			at = end
			continue
		}
		for ; ; at++ {
			if rep[at] == 0 {
				if row == 0 {
					return at
				}
				row--
			}
		}
	}
	return len(rep)
}

// SumLengths returns the number of entries that the children of a column with these lengths have. A negative length is
// Corrupt, at its position.
func SumLengths(lengths []int32) (int64, error) {
	var sum int64
	var neg int32
	for _, n := range lengths {
		sum += int64(n)
		neg |= n
	}
	if neg >= 0 {
		return sum, nil
	}
	for i, n := range lengths {
		if n < 0 {
			return 0, fault.Rel(4*i, 4, "length", "%d is negative (entry %d)", n, i)
		}
	}
	return sum, nil
}

var scratch sync.Pool

// borrow returns n int32 with arbitrary contents; giveBack takes them back.
func borrow(n int) *[]int32 {
	if p, ok := scratch.Get().(*[]int32); ok && cap(*p) >= n {
		*p = (*p)[:n]
		return p
	}
	b := make([]int32, n)
	return &b
}

func giveBack(p *[]int32) { scratch.Put(p) }
