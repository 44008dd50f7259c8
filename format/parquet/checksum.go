package parquet

import (
	"context"
	"fmt"
	"hash/crc32"
	"slices"

	"stoa/fault"
	"stoa/format"
)

// The library does not compare the checksums of pages, so it is done here, before it decodes them.

// crcWalk goes through the pages of a column chunk ahead of the library.
type crcWalk struct {
	group, leaf int
	at          fault.Span // what has not been looked at
	page        int
	row         int64   // of the row group, with which the next page begins; of a list's leaf a guess that is never too high
	first       []int64 // rows with which the data pages begin; nil if nothing tells
	ordinal     int     // of the next data page
	begun, off  bool    // off: the chunk has no checksums

	data *fault.Span // where to go on behind the dictionary, if some rows are passed over
}

// startChecks begins a walk for each leaf, with the page that has the row from which the library decodes on the way to row from. None with NoVerify.
func (c *columns) startChecks(ctx context.Context, from int64) error {
	if c.r.noVerify {
		return nil
	}
	for _, units := range c.units {
		for _, u := range units {
			for _, leaf := range u.leaves {
				if err := c.startCheck(ctx, leaf, u.row, from); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// startCheck begins a walk for rows from row on, to the end of the page that has row from.
func (c *columns) startCheck(ctx context.Context, leaf int, row, from int64) error {
	w := &crcWalk{group: c.group, leaf: leaf, at: c.r.chunkSpan(c.group, leaf)}
	if row > 0 || c.r.meta.Schema.Column(leaf).MaxRepetitionLevel() > 0 {
		if err := w.seek(ctx, c.r, row); err != nil {
			return err
		}
	}
	c.crcs = append(c.crcs, w)
	return w.through(ctx, c.r, row, from+1, &c.buf)
}

// seek finds the page that row is in, if there is an offset index.
func (w *crcWalk) seek(ctx context.Context, r *reader, row int64) error {
	x, err := r.offsetIndex(ctx, w.group, w.leaf)
	if err != nil && row == 0 && ctx.Err() == nil {
		return nil // the index is not needed to read from the beginning
	}
	if err != nil || x == nil || len(x.firstRow) == 0 {
		return err
	}
	i, found := slices.BinarySearch(x.firstRow, row)
	if !found {
		i--
	}
	at := w.at.Sub(r.base+x.offsets[i]-w.at.Off, w.at.End()-r.base-x.offsets[i])
	w.data, w.row, w.first, w.ordinal = &at, x.firstRow[i], x.firstRow, i
	if first := r.base + x.offsets[0]; first == w.at.Off {
		w.at, w.data, w.page = at, nil, i
	}
	return nil
}

// through compares the checksums of the pages that hold rows [from, to). Pages before are passed over.
func (w *crcWalk) through(ctx context.Context, r *reader, from, to int64, buf *[]byte) error {
	for !w.off && w.at.Len > 0 && w.row < to {
		path := fmt.Sprintf("row_groups[%d].columns[%d].page[%d]", w.group, w.leaf, w.page)
		p, err := r.pageAt(ctx, w.at, path, nil)
		if err != nil {
			return err
		}
		if !w.begun && !p.hasCRC { // writers give it to all pages or none
			w.off = true
			return nil
		}
		w.begun = true
		rows := w.rows(r, &p)
		if p.hasCRC && (!p.isData() || rows < 0 || w.row+rows > from) {
			if err := r.checkSum(ctx, p, path, buf); err != nil {
				return err
			}
		}
		used := p.body.End() - w.at.Off
		w.at = w.at.Sub(used, w.at.Len-used)
		w.page++
		w.row += max(rows, 0)
		if p.isData() {
			w.ordinal++
		}
		if w.data != nil && !p.isData() {
			w.at, w.data = *w.data, nil
		}
	}
	return nil
}

// rows is how many rows a page has; -1 if nothing tells.
func (w *crcWalk) rows(r *reader, p *page) int64 {
	switch {
	case !p.isData():
		return 0
	case p.rows >= 0:
		return p.rows
	case r.meta.Schema.Column(w.leaf).MaxRepetitionLevel() == 0:
		return p.values
	case w.ordinal+1 < len(w.first):
		return w.first[w.ordinal+1] - w.row
	}
	return -1
}

// checkSum compares the checksum of a page. buf is memory for its bytes.
func (r *reader) checkSum(ctx context.Context, p page, path string, buf *[]byte) error {
	if p.body.Len > r.limits.Page {
		return fault.Limitf(p.body, path, "%d bytes, the limit is %d", p.body.Len, r.limits.Page)
	}
	if int64(cap(*buf)) < p.body.Len {
		*buf = make([]byte, p.body.Len)
	}
	b := (*buf)[:p.body.Len]
	if err := format.ReadFull(ctx, r.src, p.body, path, b); err != nil {
		return err
	}
	if got := crc32.ChecksumIEEE(b); got != p.crc {
		return fault.Corruptf(p.body, path+".crc", "the checksum is %08x, the header says %08x", got, p.crc)
	}
	return nil
}
