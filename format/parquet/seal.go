package parquet

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"
	"sort"

	"stoa/fault"
	"stoa/internal/thrift"
	"stoa/wire"
)

// sealer stands between the library, which writes no checksums of pages, and the file: to each page header it adds the
// CRC-32 of what follows it, if sums are wanted. As that makes headers longer, everything behind moves, and the offsets and sizes that the
// offset indexes and the metadata have are put right when the file ends. What the library writes is
//
//	PAR1, pages, indexes, metadata, length u32, PAR1
//
// Pages pass one by one; what is behind them is held until it is all there. Behind the pages of a column chunk whose ColumnChunk takes more than
// 4,096 bytes (two long strings are its bounds, or its path is long) the library forgets the first thousands of them: these are left out.
type sealer struct {
	w        io.Writer
	sums     bool
	buf      []byte  // what is not yet passed on
	old, new int64   // where it begins in what the library wrote, and in the file
	moves    []moved // in order
	begun    bool
	tail     bool // the pages are over
}

// moved is a page or an index: where it begins, and its length, before and after.
type moved struct{ old, oldLen, new, newLen int64 }

// Write takes what the library writes.
func (s *sealer) Write(b []byte) (int, error) {
	s.buf = append(s.buf, b...)
	used := 0
	for !s.tail {
		n, err := s.step(s.buf[used:])
		if err != nil {
			return 0, err
		}
		if n == 0 {
			break
		}
		used += n
	}
	s.buf = s.buf[:copy(s.buf, s.buf[used:])]
	return len(b), nil
}

// step passes the structure on that b begins with; 0: it is not all there, or the pages are over.
func (s *sealer) step(b []byte) (n int, err error) {
	if !s.begun {
		if len(b) < len(magic) {
			return 0, nil
		}
		s.begun = true
		return len(magic), s.pass(len(magic), b[:len(magic)])
	}
	if len(b) > 0 && b[0] == chunkField {
		return len(b), s.pass(len(b)) // chunks are handed over in one piece: no page follows
	}
	at, page, whole := afterSizes(b)
	if s.tail = whole && !page; !whole || !page {
		return 0, nil
	}
	c := wire.NewCursor(b, fault.Span{Len: int64(len(b))}, "")
	p := parsePageHeader(thrift.NewReader(c, thrift.Compact))
	head := c.Pos()
	if c.Err() != nil || int64(len(b)-head) < p.size {
		return 0, nil
	}
	n = head + int(p.size)
	if p.hasCRC || !s.sums {
		return n, s.pass(n, b[:n])
	}
	body := b[head:n]
	crc := binary.AppendVarint([]byte{i32Field}, int64(int32(crc32.ChecksumIEEE(body))))
	rest := b[at:head]
	if rest[0] != 0 { // a field's first byte says by how much its number is greater than the last one's, which now is 4
		crc, rest = append(crc, rest[0]-0x10), rest[1:]
	}
	return n, s.pass(n, b[:at], crc, rest, body)
}

// chunkField is how a ColumnChunk begins, with its file_offset, and neither a page header nor an index nor the metadata.
const chunkField = 0x26

// i32Field is how an i32 begins whose number is one greater than that of the field before.
const i32Field = 0x15

// afterSizes is where the first three fields of a page header end: type and sizes, each an i32. page: that is what b begins
// with, and not an index or the metadata of the file. whole: b is long enough to tell.
func afterSizes(b []byte) (n int, page, whole bool) {
	for range 3 {
		if n == len(b) {
			return n, false, false
		}
		if b[n] != i32Field {
			return n, false, true
		}
		for n++; ; n++ {
			if n == len(b) {
				return n, false, false
			}
			if b[n] < 0x80 {
				n++
				break
			}
		}
	}
	return n, true, true
}

// pass writes parts in the place of n bytes.
func (s *sealer) pass(n int, parts ...[]byte) error {
	m := moved{old: s.old, oldLen: int64(n), new: s.new}
	for _, p := range parts {
		k, err := s.w.Write(p)
		if err != nil {
			return err
		}
		m.newLen += int64(k)
	}
	s.moves = append(s.moves, m)
	s.old, s.new = s.old+m.oldLen, s.new+m.newLen
	return nil
}

// shift is where the file has what the library had at off, which is where a page or an index begins, or where the last one ends.
func (s *sealer) shift(off int64) int64 {
	i := sort.Search(len(s.moves), func(i int) bool { return s.moves[i].old+s.moves[i].oldLen > off })
	if i == 0 {
		return off
	}
	m := s.moves[i-1]
	return off + m.new + m.newLen - m.old - m.oldLen
}

// grown is by how much size bytes from off on have become longer.
func (s *sealer) grown(off, size int64) int64 { return s.shift(off+size) - s.shift(off) - size }

// finish writes what is behind the pages.
func (s *sealer) finish() error {
	n := len(s.buf) - 8
	if !s.tail || n < 0 || string(s.buf[n+4:]) != magic || int64(binary.LittleEndian.Uint32(s.buf[n:])) > int64(n) {
		return fault.Bugf("parquet: what the library wrote does not end as a file does")
	}
	from := n - int(binary.LittleEndian.Uint32(s.buf[n:]))
	footer, indexes := s.buf[from:n], s.buf[:from]
	var e edits
	if err := e.metadata(footer, s); err != nil {
		return err
	}
	first := s.old
	slices.SortFunc(e.indexes, func(a, b indexAt) int { return int(a.off - b.off) })
	for _, x := range e.indexes {
		at := x.off - first
		if x.off != s.old || x.size < 0 || at+x.size > int64(len(indexes)) {
			return fault.Bugf("parquet: an index at %d, after %d bytes", x.off, s.old)
		}
		b := indexes[at : at+x.size]
		if x.locations {
			var in edits
			var err error
			if b, err = in.offsetIndex(b, s); err != nil {
				return err
			}
		}
		if err := s.pass(int(x.size), b); err != nil {
			return err
		}
	}
	if s.old != first+int64(len(indexes)) {
		return fault.Bugf("parquet: %d bytes that are no index", first+int64(len(indexes))-s.old)
	}
	e = edits{}
	if err := e.metadata(footer, s); err != nil { // now that it is known where the indexes are
		return err
	}
	footer = e.apply(footer)
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer)))
	_, err := s.w.Write(append(footer, magic...))
	return err
}

// edits are numbers in a structure that become others.
type edits struct {
	list    []edit
	indexes []indexAt // that the metadata tells of
}

type edit struct {
	from, to int // the old one
	v        int64
}

// indexAt is a column index, or an offset index, which has locations of pages.
type indexAt struct {
	off, size int64
	locations bool
}

// number64 reads a number and keeps its place, so that set can change it.
func number64(c *wire.Cursor, r *thrift.Reader) (e edit) {
	if r.Type() == thrift.I32 {
		e.v = int64(r.I32(""))
	} else {
		e.v = r.I64("")
	}
	e.to = c.Pos()
	var b [binary.MaxVarintLen64]byte
	e.from = e.to - binary.PutVarint(b[:], e.v) // the library writes them as short as can be
	return e
}

// set changes a number that was read; one that is not there (of no bytes) is left alone.
func (e *edits) set(at edit, v int64) {
	if at.to > at.from {
		at.v = v
		e.list = append(e.list, at)
	}
}

// apply gives b with all changes.
func (e *edits) apply(b []byte) []byte {
	slices.SortFunc(e.list, func(a, b edit) int { return a.from - b.from })
	out, at := make([]byte, 0, len(b)+4*len(e.list)), 0
	for _, x := range e.list {
		out = append(out, b[at:x.from]...)
		out = binary.AppendVarint(out, x.v)
		at = x.to
	}
	return append(out, b[at:]...)
}

// offsetIndex moves the pages of an OffsetIndex: 1 page_locations list<{1 offset i64, 2 compressed_page_size i32, …}>.
func (e *edits) offsetIndex(b []byte, s *sealer) ([]byte, error) {
	c := wire.NewCursor(b, fault.Span{Len: int64(len(b))}, "offset_index")
	r := thrift.NewReader(c, thrift.Compact)
	for r.Struct(""); r.Next(); {
		if r.Field() != 1 {
			continue
		}
		for range r.List("page_locations", thrift.Struct) {
			var off, size edit
			for r.Struct(""); r.Next(); {
				switch r.Field() {
				case 1:
					off = number64(c, r)
				case 2:
					size = number64(c, r)
				}
			}
			e.set(off, s.shift(off.v))
			e.set(size, size.v+s.grown(off.v, size.v))
		}
	}
	if c.Err() != nil {
		return nil, fault.Bugf("parquet: an offset index of the library: %v", c.Err())
	}
	return e.apply(b), nil
}

// metadata collects what changes in FileMetaData, and where the indexes are.
func (e *edits) metadata(b []byte, s *sealer) error {
	c := wire.NewCursor(b, fault.Span{Len: int64(len(b))}, "metadata")
	r := thrift.NewReader(c, thrift.Compact)
	for r.Struct(""); r.Next(); {
		if r.Field() != 4 {
			continue
		}
		for range r.List("row_groups", thrift.Struct) {
			e.rowGroup(c, r, s)
		}
	}
	if c.Err() != nil {
		return fault.Bugf("parquet: metadata of the library: %v", c.Err())
	}
	return nil
}

// rowGroup: 1 columns, 2 total_byte_size, 5 file_offset, 6 total_compressed_size.
func (e *edits) rowGroup(c *wire.Cursor, r *thrift.Reader, s *sealer) {
	var raw, off, stored edit
	more := int64(0)
	for r.Struct(""); r.Next(); {
		switch r.Field() {
		case 1:
			for range r.List("columns", thrift.Struct) {
				more += e.column(c, r, s)
			}
		case 2:
			raw = number64(c, r)
		case 5:
			off = number64(c, r)
		case 6:
			stored = number64(c, r)
		}
	}
	e.set(raw, raw.v+more)
	e.set(off, s.shift(off.v))
	e.set(stored, stored.v+more)
}

// column: 2 file_offset, 3 meta_data, 4 offset_index_offset, 5 offset_index_length, 6 column_index_offset,
// 7 column_index_length. It gives by how much the chunk has become longer.
func (e *edits) column(c *wire.Cursor, r *thrift.Reader, s *sealer) (more int64) {
	var at [8]edit
	for r.Struct(""); r.Next(); {
		switch f := r.Field(); {
		case f == 3:
			more = e.columnMeta(c, r, s)
		case f == 2 || f >= 4 && f <= 7:
			at[f] = number64(c, r)
		}
	}
	e.set(at[2], s.shift(at[2].v))
	for _, f := range []int{4, 6} {
		if off, size := at[f], at[f+1]; off.to > 0 {
			e.indexes = append(e.indexes, indexAt{off.v, size.v, f == 4})
			e.set(off, s.shift(off.v))
			e.set(size, size.v+s.grown(off.v, size.v))
		}
	}
	return more
}

// columnMeta: 6 total_uncompressed_size and 7 total_compressed_size, both with headers; 9 data_page_offset,
// 10 index_page_offset, 11 dictionary_page_offset.
func (e *edits) columnMeta(c *wire.Cursor, r *thrift.Reader, s *sealer) (more int64) {
	var at [12]edit
	for r.Struct(""); r.Next(); {
		if f := r.Field(); f == 6 || f == 7 || f >= 9 && f <= 11 {
			at[f] = number64(c, r)
		}
	}
	begin := at[9].v
	if at[11].to > 0 {
		begin = min(begin, at[11].v)
	}
	more = s.grown(begin, at[7].v)
	e.set(at[6], at[6].v+more)
	e.set(at[7], at[7].v+more)
	for _, f := range []int{9, 10, 11} {
		e.set(at[f], s.shift(at[f].v))
	}
	return more
}
