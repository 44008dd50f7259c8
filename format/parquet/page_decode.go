package parquet

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"

	"stoa/fault"
	"stoa/internal/dremel"
	"stoa/internal/enc/plain"
	"stoa/internal/enc/rle"
	"stoa/internal/nest"
	"stoa/internal/thrift"
	"stoa/vec"
)

// pageTask is one page being decoded.
type pageTask struct {
	column *fileColumn
	ref    *pageRef // nil: nothing is known of the page but its bytes
	sealed sealedPage
	codec  compression
	arena  *vec.Arena
	dict   *vec.Vector
	limit  int64 // of bytes
	verify bool
	loose  bool // bytes after the values do not matter

	h     page
	at    fault.Span // of what body is of
	exact bool       // body is those very bytes
	raw   int64
	// The levels as they are stored; their lengths and encodings stand in the header, or before them.
	def, rep []byte
}

// decode appends the entries of a page, or of a dictionary.
func (d *pageTask) decode(b []byte, dst *vec.Vector, dict bool) error {
	data, err := d.open(b, dict)
	before := dst.Len()
	switch {
	case err != nil:
		return err
	case dict:
		err = d.dictionary(dst, data)
	default:
		err = d.entries(dst, data)
	}
	if i := dst.Overlong(before); err == nil && i >= 0 {
		err = fault.Rel(0, len(data), "values", "entry %d has more digits than %s", i-before, dst.Type)
	}
	return err
}

// open reads the header, verifies the checksum, decompresses, and parts the levels from the values, which it gives.
func (d *pageTask) open(b []byte, dict bool) (data []byte, err error) {
	d.at, d.exact = d.ref.at, true
	c, used, err := headerOf(b, d.ref.at, "", d.sealed)
	if err != nil {
		return nil, err
	}
	d.h = parsePageHeader(thrift.NewReader(c, thrift.Compact))
	if c.Err() != nil {
		return nil, c.Err()
	}
	h := &d.h
	if used < 0 {
		used = c.Pos()
	}
	body := b[used:]
	h.header, h.body = d.ref.at.Sub(0, int64(used)), d.ref.at.Sub(int64(used), int64(len(body)))
	switch {
	case dict != (h.kind == dictionaryPage) || !dict && !h.isData():
		return nil, fault.Corruptf(h.header, "", "a page of type %s", named(pageTypes, h.kind))
	case h.size != int64(len(body)):
		return nil, fault.Corruptf(h.header, "compressed_page_size", "%d bytes, the page has %d", h.size, len(body))
	case h.values < 0 || h.raw < 0 || d.ref.values >= 0 && h.values != d.ref.values:
		return nil, fault.Corruptf(h.header, "num_values", "%d values, there should be %d", h.values, d.ref.values)
	}
	d.at = h.body
	if d.verify && h.hasCRC {
		if got := crc32.ChecksumIEEE(body); got != h.crc {
			return nil, fault.Corruptf(h.body, "crc", "the checksum is %08x, the header says %08x", got, h.crc)
		}
	}
	if body, err = d.unseal(body, dict); err != nil {
		return nil, err
	}
	return d.inflate(body)
}

// unseal decrypts the body of a page that is encrypted.
func (d *pageTask) unseal(body []byte, dict bool) ([]byte, error) {
	if d.sealed.sealed == nil {
		return body, nil
	}
	kind := dataModule
	if dict {
		kind = dictionaryModule
	}
	plain, used, err := d.sealed.open(body, kind, d.sealed.ordinal, d.arena.Bytes)
	if err == nil && used != len(body) {
		err = fault.Rel(used, len(body)-used, "", "%d bytes behind the encrypted body", len(body)-used)
	}
	return plain, fault.Locate(err, d.h.body, true, "")
}

// inflate gives the values; levels go to d.
func (d *pageTask) inflate(body []byte) (data []byte, err error) {
	h, raw := &d.h, d.h.raw
	if h.kind == dataPageV2 {
		def, rep := int64(h.levels[0]), int64(h.levels[1])
		if def < 0 || rep < 0 || def+rep > int64(len(body)) || def+rep > raw {
			return nil, fault.Corruptf(h.header, "levels",
				"%d and %d bytes of levels in a page of %d bytes, %d raw", def, rep, len(body), raw)
		}
		d.rep, d.def = body[:rep], body[rep:rep+def]
		body, raw = body[rep+def:], raw-def-rep
		if d.sealed.sealed == nil {
			d.at = h.body.Sub(def+rep, int64(len(body)))
		}
	}
	codec := d.codec
	if h.bare || len(body) == 0 && raw == 0 {
		codec = codecNone
	}
	d.exact = codec == codecNone && d.sealed.sealed == nil
	if data, err = codec.inflate(body, raw, d.limit, d.arena.Bytes); err != nil {
		return nil, fault.Locate(err, d.at, d.sealed.sealed == nil, "")
	}
	d.raw = h.raw
	return data, nil
}

// dictionary appends the entries of a dictionary.
func (d *pageTask) dictionary(dst *vec.Vector, data []byte) error {
	if enc := d.h.encoding; enc != plainValues && enc != plainDictionary {
		return fault.Unsupportedf(d.h.header, "encoding", "a dictionary in %s", named(encodings, enc))
	}
	n := d.h.values
	if n > int64(8*len(data)) || d.column.form.stored > 0 && n*int64(d.column.form.stored) > int64(len(data)) {
		return fault.Rel(0, len(data), "values", "%d entries in %d bytes", n, len(data))
	}
	data = d.column.form.first(data, int(n))
	return d.column.form.append(dst, data, plainValues, dremel.Entries{N: int(n), K: int(n)}, d)
}

// cut leaves out what stands after k values of a page of a writer that leaves something there.
func (d *pageTask) cut(data []byte, k int) []byte {
	if !d.loose || d.h.encoding != plainValues {
		return data
	}
	return d.column.form.first(data, k)
}

// first is the bytes of the first n values, which are PLAIN; all, if there are not so many. What stands after
// those of a dictionary no reader looks at: verify tells of it.
func (v *valueForm) first(data []byte, n int) []byte {
	if v.stored > 0 {
		return data[:min(n*v.stored, len(data))]
	}
	if v.typ == typeBoolean {
		return data[:min((n+7)/8, len(data))]
	}
	pos := 0
	for range n {
		if len(data)-pos < 4 || int64(binary.LittleEndian.Uint32(data[pos:])) > int64(len(data)-pos-4) {
			return data
		}
		pos += 4 + int(binary.LittleEndian.Uint32(data[pos:]))
	}
	return data[:pos]
}

// entries appends the entries of a data page.
func (d *pageTask) entries(dst *vec.Vector, data []byte) (err error) {
	c := d.column
	n := d.h.values
	if width := int64(max(c.form.width, 4)); n > d.limit/width || n > 1<<31-1 {
		return fault.Limitf(d.h.header, "num_values",
			"%d values of %d bytes are more than a page may have (%d bytes)", n, width, d.limit)
	}
	levels := 0
	if d.h.kind == dataPage {
		if levels, err = d.cutLevels(data); err != nil {
			return err
		}
		data = data[levels:]
	}
	place := func(err error) error {
		return fault.Locate(err, fault.Span{Off: int64(levels), Len: int64(len(data))}, true, "")
	}
	if c.flat() {
		e, err := d.presence(int(n))
		if err == nil {
			err = place(c.form.append(dst, d.cut(data, e.K), d.h.encoding, e, d))
		}
		return err
	}
	def, rep := d.arena.Bytes(int(n)), d.arena.Bytes(int(n))
	if err := d.levels(rep, d.rep, d.h.levels[1], uint8(c.maxRep), "repetition_levels"); err != nil {
		return err
	}
	if err := d.levels(def, d.def, d.h.levels[0], uint8(c.maxDef), "definition_levels"); err != nil {
		return err
	}
	if err := d.rowsFit(rep); err != nil {
		return err
	}
	e := dremel.Entries{N: int(n), K: int(n)}
	if c.maxDef > 0 {
		e.Valid = presentBits(def, uint8(c.maxDef), d.arena)
		e.K = plain.CountBits(e.Valid, 0, e.N)
	}
	if err := place(c.form.append(dst, d.cut(data, e.K), d.h.encoding, e, d)); err != nil {
		return err
	}
	dd, rr := dst.ExtendLevels(e.N)
	copy(dd, def)
	copy(rr, rep)
	return nil
}

// cutLevels finds the levels of a data page v1 and says how many bytes they take.
func (d *pageTask) cutLevels(data []byte) (n int, err error) {
	for _, x := range []struct {
		max      int16
		encoding int32
		to       *[]byte
		name     string
	}{{d.column.maxRep, d.h.levels[1], &d.rep, "repetition_levels"},
		{d.column.maxDef, d.h.levels[0], &d.def, "definition_levels"}} {
		if x.max == 0 {
			continue
		}
		left := int64(len(data) - n)
		switch x.encoding {
		case bitPacked:
			size := (d.h.values*int64(bits.Len16(uint16(x.max))) + 7) / 8
			if size > left {
				return 0, fault.Rel(n, int(left), x.name, "%d bytes are needed, %d are left", size, left)
			}
			*x.to, n = data[n:n+int(size)], n+int(size)
		case rleLevels:
			if left < 4 || int64(binary.LittleEndian.Uint32(data[n:])) > left-4 {
				return 0, fault.Rel(n, int(left), x.name, "they are cut: %d bytes are left", left)
			}
			size := int(binary.LittleEndian.Uint32(data[n:]))
			*x.to, n = data[n+4:n+4+size], n+4+size
		default:
			return 0, fault.Unsupportedf(d.h.header, x.name, "levels in encoding %s", named(encodings, x.encoding))
		}
	}
	return n, nil
}

// levels decodes levels.
func (d *pageTask) levels(dst, src []byte, encoding int32, max uint8, name string) (err error) {
	if d.h.kind == dataPage && encoding == bitPacked && max > 0 {
		_, err = dremel.DecodePackedLevels(dst, src, max)
	} else {
		err = dremel.DecodeLevels(dst, src, max)
	}
	return d.ofLevels(err, len(src), name)
}

// ofLevels gives an error of n bytes of levels its place: those of a page of version 2 are never compressed.
func (d *pageTask) ofLevels(err error, n int, name string) error {
	at := fault.Span{Len: int64(n)}
	if d.h.kind == dataPageV2 {
		at = d.h.body
	}
	return fault.Locate(err, at, false, name)
}

// presence says which of n entries of a column without lists or structs have a value.
func (d *pageTask) presence(n int) (e dremel.Entries, err error) {
	e = dremel.Entries{N: n, K: n}
	if d.column.maxDef == 0 {
		return e, nil
	}
	if d.h.kind == dataPage && d.h.levels[0] == bitPacked {
		def := d.arena.Bytes(n)
		if err := d.levels(def, d.def, bitPacked, 1, "definition_levels"); err != nil {
			return e, err
		}
		e.Valid = presentBits(def, 1, d.arena)
		e.K = plain.CountBits(e.Valid, 0, n)
		return e, nil
	}
	if n > 0 && len(d.def) <= 6 && fullRun(d.def, n) {
		return e, nil
	}
	e.Valid = d.arena.Bytes((n + 7) / 8)
	e.K, err = rle.DecodeBits(e.Valid, 0, d.def, 0, n)
	return e, d.ofLevels(err, len(d.def), "definition_levels")
}

// fullRun reports whether levels of width 1 are one run of at least n ones.
func fullRun(b []byte, n int) bool {
	head, used := binary.Uvarint(b)
	return used > 0 && used < len(b) && head&1 == 0 && head>>1 >= uint64(n) && b[used] == 1
}

// rowsFit holds the rows that begin in the page of a list's leaf against what the offset index or its header
// says of them, by which its rows are found.
func (d *pageTask) rowsFit(rep []byte) error {
	if d.column.maxRep == 0 {
		return nil
	}
	if d.ref.starts && len(rep) > 0 && rep[0] != 0 {
		return fault.Corruptf(d.h.header, "",
			"the page begins within a row, which it may not with an offset index, or of version 2")
	}
	if d.ref.rows < 0 {
		return nil
	}
	if n := int64(nest.CountRows(rep)); n != d.ref.rows {
		what := "num_rows"
		if d.ref.index {
			what = "offset_index.first_row_index"
		}
		return fault.Corruptf(d.h.header, what, "%d rows, but %d begin in the page", d.ref.rows, n)
	}
	return nil
}

// presentBits is the bitmap of the entries whose level is max.
func presentBits(def []byte, max uint8, a *vec.Arena) []byte {
	const ones = 0x0101010101010101
	b := a.Bytes((len(def) + 7) / 8)
	i := 0
	for ; 8*i+8 <= len(def); i++ {
		x := binary.LittleEndian.Uint64(def[8*i:]) ^ ones*uint64(max) // a byte is 0 where the level is max
		x = ((x&0x7f7f7f7f7f7f7f7f)+0x7f7f7f7f7f7f7f7f|x)>>7&ones ^ ones
		b[i] = byte(x * 0x0102040810204080 >> 56) // the eight lowest bits, together
	}
	if 8*i < len(def) {
		var x byte
		for j, d := range def[8*i:] {
			if d == max {
				x |= 1 << j
			}
		}
		b[i] = x
	}
	return b
}
