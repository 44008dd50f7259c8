package parquet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sort"

	"stoa/fault"
	"stoa/format"
	"stoa/vec"
)

// rowsOf is the rows of the row group that page k has by the index; the row group has so many.
func (x *offsetIndex) rowsOf(k int, rows int64) vec.Range {
	if k+1 < len(x.firstRow) {
		rows = x.firstRow[k+1]
	}
	return vec.Range{From: x.firstRow[k], To: rows}
}

// holdRows holds what the offset index says of the page with a row against the page, from whose beginning rows are about to be counted: the library takes
// the index at its word, and another row would come for the one that is wanted.
func (c *columns) holdRows(ctx context.Context, leaf int, row int64) error {
	x, err := c.r.offsetIndex(ctx, c.group, leaf)
	if err != nil || x == nil || len(x.firstRow) == 0 || c.refused(leaf) != "" {
		return err
	}
	// The last of those that begin with the row: others of them are empty.
	k, chunk := sort.Search(len(x.firstRow), func(i int) bool { return x.firstRow[i] > row })-1, c.r.chunkSpan(c.group, leaf)
	at, path := c.r.base+x.offsets[k]-chunk.Off, indexPath(c.group, leaf, fmt.Sprintf("offset_index.page_locations[%d]", k))
	p, err := c.r.pageAt(ctx, chunk.Sub(at, chunk.Len-at), path, nil)
	if err != nil || !p.isData() {
		return err
	}
	begin, known, err := c.rowsIn(ctx, leaf, &p)
	var own *fault.Error
	if errors.As(err, &own) {
		return fault.Locate(err, p.body, false, path)
	}
	if err != nil {
		return err // of reading
	}
	if want := x.rowsOf(k, c.r.meta.RowGroups[c.group].NumRows); known && begin != want.Len() {
		return fault.Corruptf(p.header, path+".first_row_index", "rows %d to %d of the row group, but %d rows begin in the page", want.From, want.To, begin)
	}
	return nil
}

// rowsIn is how many rows begin in a data page; known: its levels are in an encoding that is counted here.
func (c *columns) rowsIn(ctx context.Context, leaf int, p *page) (n int64, known bool, err error) {
	most := c.r.meta.Schema.Column(leaf).MaxRepetitionLevel()
	if most == 0 {
		return p.values, true, nil
	}
	var b []byte
	switch {
	case p.kind == dataPageV2: // its levels are never compressed
		size := int64(p.levels[1])
		if size < 0 || size > p.body.Len || size > c.r.limits.Page {
			return 0, false, fault.Rel(0, int(p.body.Len), "repetition_levels_byte_length", "%d bytes in a page of %d", size, p.body.Len)
		}
		b = make([]byte, size)
		err = format.ReadFull(ctx, c.r.src, p.body.Sub(0, size), "repetition_levels", b)
	case p.levels != [2]int32{rleLevels, rleLevels}:
		return 0, false, nil
	default:
		if b, _, err = c.openPage(ctx, leaf, p); err == nil {
			b = b[4 : 4+binary.LittleEndian.Uint32(b)] // openPage has looked
		}
	}
	if err != nil {
		return 0, false, err
	}
	width := bits.Len16(uint16(most))
	if first, err := zeros(b, width, min(1, p.values)); err == nil && first != min(1, p.values) {
		return 0, false, fault.Rel(0, len(b), "levels", "the page begins within a row, which a chunk with an offset index may not have")
	}
	n, err = zeros(b, width, p.values)
	return n, true, err
}

// zeros counts the zeros among n numbers of so many bits in Parquet's hybrid of runs and packed groups of eight. They are not laid out in memory: few bytes may be
// very many of them.
func zeros(b []byte, width int, n int64) (count int64, err error) {
	cut := func() (int64, error) { return 0, fault.Rel(0, len(b), "levels", "%d of them are not there", n) }
	for n > 0 {
		head, size := binary.Uvarint(b)
		if size <= 0 {
			return cut()
		}
		b = b[size:]
		if head&1 == 0 {
			size = (width + 7) / 8
			if len(b) < size {
				return cut()
			}
			zero := true
			for _, v := range b[:size] {
				zero = zero && v == 0
			}
			run := int64(min(head>>1, uint64(n)))
			count += run * one(zero)
			b, n = b[size:], n-run
			continue
		}
		groups := min(head>>1, uint64(n+7)/8)
		packed := min(int64(groups)*8, n)
		size = int(packed*int64(width)+7) / 8 // the last group may be cut behind the last number
		if len(b) < size {
			return cut()
		}
		count += packedZeros(b[:size], width, packed)
		b, n = b[min(int64(groups)*int64(width), int64(len(b))):], n-packed
	}
	return count, nil
}

func packedZeros(b []byte, width int, n int64) (count int64) {
	var bits uint64
	have := 0
	for range n {
		for ; have < width; have += 8 {
			bits |= uint64(b[0]) << have
			b = b[1:]
		}
		count += one(bits&(1<<width-1) == 0)
		bits, have = bits>>width, have-width
	}
	return count
}
