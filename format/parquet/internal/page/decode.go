package page

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/dremel"
	"stoa/internal/enc/plain"
	"stoa/internal/enc/rle"
	"stoa/internal/nest"
	"stoa/internal/thrift"
	"stoa/vec"
)

// PageTask decodes one page.
type PageTask struct {
	Column        *FileColumn
	Ref           *PageRef // nil if only the bytes of the page are known
	Module        meta.PageModule
	Codec         meta.Compression
	Arena         *vec.Arena
	Dict          *vec.Vector
	Hits          *vec.Sel // entries of Dict that pass the scan's filter; nil if there is no filter
	Passed        *vec.Sel // set by Decode if the page has codes: the entries that may pass
	Limit         int64    // largest size of the decoded page, in bytes
	Verify        bool
	AllowTrailing bool // bytes after the values are ignored

	h     meta.Page
	At    fault.Span // of the bytes being decoded, for errors
	Exact bool       // these bytes are as in the file, neither compressed nor encrypted
	Raw   int64
	// The levels as stored; their lengths and encodings are in the header or precede them.
	def, rep []byte
}

// Decode appends the entries of a page, or of a dictionary page, to dst.
func (d *PageTask) Decode(b []byte, dst *vec.Vector, dict bool) error {
	data, err := d.Open(b, dict)
	before := dst.Len()
	switch {
	case err != nil:
		return err
	case dict:
		err = d.dictionary(dst, data)
	default:
		err = d.entries(dst, data)
	}
	if i := dst.TooManyDigits(before); err == nil && i >= 0 {
		err = fault.Rel(0, len(data), "values", "entry %d has more digits than %s", i-before, dst.Type)
	}
	return err
}

// Open parses the header, verifies the checksum, decrypts and decompresses. It returns the values, without the levels
// of a data page v2, which it keeps in d.
func (d *PageTask) Open(b []byte, dict bool) (data []byte, err error) {
	d.At, d.Exact = d.Ref.At, true
	c, used, err := meta.HeaderCursor(b, d.Ref.At, "", d.Module)
	if err != nil {
		return nil, err
	}
	d.h = meta.ParsePageHeader(thrift.NewReader(c, thrift.Compact))
	if c.Err() != nil {
		return nil, c.Err()
	}
	h := &d.h
	if used < 0 {
		used = c.Pos()
	}
	body := b[used:]
	h.Header, h.Body = d.Ref.At.Sub(0, int64(used)), d.Ref.At.Sub(int64(used), int64(len(body)))
	switch {
	case h.MissingField != "":
		return nil, fault.Corruptf(h.Header, h.MissingField, "a required field is missing")
	case dict != (h.Kind == meta.DictionaryPage) || !dict && !h.IsData():
		return nil, fault.Corruptf(h.Header, "", "a page of type %s", meta.EnumName(meta.PageTypes, h.Kind))
	case h.Size != int64(len(body)):
		return nil, fault.Corruptf(h.Header, "compressed_page_size", "%d bytes, but the page has %d", h.Size, len(body))
	case h.Values < 0 || h.Raw < 0 || d.Ref.Values >= 0 && h.Values != d.Ref.Values:
		return nil, fault.Corruptf(h.Header, "num_values", "expected %s, found %d",
			fault.Count(d.Ref.Values, "value"), h.Values)
	}
	if d.Ref.Count > 0 {
		h.Values = d.Ref.Count
	}
	d.At = h.Body
	if d.Verify && h.HasCRC {
		if got := crc32.ChecksumIEEE(body); got != h.CRC {
			return nil, fault.Corruptf(h.Body, "crc", "expected %08x, computed %08x", h.CRC, got)
		}
	}
	if body, err = d.decrypt(body, dict); err != nil {
		return nil, err
	}
	return d.decompress(body)
}

// decrypt decrypts the body of a page if it is encrypted.
func (d *PageTask) decrypt(body []byte, dict bool) ([]byte, error) {
	if d.Module.Cipher == nil {
		return body, nil
	}
	kind := meta.DataModule
	if dict {
		kind = meta.DictionaryModule
	}
	plain, used, err := d.Module.Decrypt(body, kind, d.Module.Ordinal, d.Arena.Bytes)
	if err == nil && used != len(body) {
		err = fault.Rel(used, len(body)-used, "", "%d bytes after the encrypted body", len(body)-used)
	}
	return plain, fault.Locate(err, d.h.Body, true, "")
}

// decompress returns the values. It keeps the levels of a data page v2 in d.
func (d *PageTask) decompress(body []byte) (data []byte, err error) {
	h, raw := &d.h, d.h.Raw
	if h.Kind == meta.DataPageV2 {
		def, rep := int64(h.Levels[0]), int64(h.Levels[1])
		if def < 0 || rep < 0 || def+rep > int64(len(body)) || def+rep > raw {
			return nil, fault.Corruptf(h.Header, "levels",
				"%d and %d bytes of levels in a page of %d bytes, %d raw", def, rep, len(body), raw)
		}
		d.rep, d.def = body[:rep], body[rep:rep+def]
		if !d.dropNoLevels() { // otherwise the values would be misread
			return nil, fault.Corruptf(h.Header, "levels",
				"%d and %d bytes of levels, but the maximum levels are %d and %d",
				def, rep, d.Column.MaxDef, d.Column.MaxRep)
		}
		body, raw = body[rep+def:], raw-def-rep
		if d.Module.Cipher == nil {
			d.At = h.Body.Sub(def+rep, int64(len(body)))
		}
	}
	codec := d.Codec
	if h.Uncompressed || len(body) == 0 && raw == 0 {
		codec = meta.CodecNone
	}
	d.Exact = codec == meta.CodecNone && d.Module.Cipher == nil
	if data, err = codec.Decompress(body, raw, d.Limit, d.Arena.Bytes); err != nil {
		return nil, fault.Locate(err, d.At, d.Module.Cipher == nil, "")
	}
	d.Raw = h.Raw
	return data, nil
}

// dropNoLevels drops levels of a data page v2 for a column that has none. It returns false if those levels carry
// information. Some writers encode them as one run in no bits, as many levels as there are values
// (rle_boolean_encoding.parquet of apache/parquet-testing).
func (d *PageTask) dropNoLevels() bool {
	for _, x := range []struct {
		max    int16
		levels *[]byte
	}{{d.Column.MaxRep, &d.rep}, {d.Column.MaxDef, &d.def}} {
		if x.max > 0 || len(*x.levels) == 0 {
			continue
		}
		head, used := binary.Uvarint(*x.levels)
		if used != len(*x.levels) || head&1 != 0 || head>>1 != uint64(d.h.Values) {
			return false
		}
		*x.levels = nil
	}
	return true
}

// dictionary appends the entries of a dictionary page.
func (d *PageTask) dictionary(dst *vec.Vector, data []byte) error {
	if enc := d.h.Encoding; enc != meta.PlainValues && enc != meta.PlainDictionary {
		return fault.Unsupportedf(d.h.Header, "encoding", "a dictionary in %s", meta.EnumName(meta.Encodings, enc))
	}
	n := d.h.Values
	if n > int64(8*len(data)) || d.Column.Form.stored > 0 && n*int64(d.Column.Form.stored) > int64(len(data)) {
		return fault.Rel(0, len(data), "values", "%d entries in %d bytes", n, len(data))
	}
	data = d.Column.Form.first(data, int(n))
	return d.Column.Form.append(dst, data, meta.PlainValues, dremel.Entries{N: int(n), K: int(n)}, d)
}

// trimTrailing removes the bytes after k values, for writers that leave bytes there.
func (d *PageTask) trimTrailing(data []byte, k int) []byte {
	if !d.AllowTrailing || d.h.Encoding != meta.PlainValues {
		return data
	}
	return d.Column.Form.first(data, k)
}

// first returns the bytes of the first n PLAIN values, or all bytes if there are fewer values. Readers ignore bytes
// after the entries of a dictionary; verify reports them.
func (v *valueForm) first(data []byte, n int) []byte {
	if v.stored > 0 {
		return data[:min(n*v.stored, len(data))]
	}
	if v.typ == meta.TypeBoolean {
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
func (d *PageTask) entries(dst *vec.Vector, data []byte) (err error) {
	c := d.Column
	n := d.h.Values
	if width := int64(max(c.Form.width, 4)); n > d.Limit/width || n > 1<<31-1 {
		return fault.Limitf(d.h.Header, "num_values",
			"%s of %d bytes are more than a page may have (%d, page limit or memory limit)", fault.Count(n, "value"),
			width, d.Limit)
	}
	levels := 0
	if d.h.Kind == meta.DataPage {
		if levels, err = d.splitLevels(data); err != nil {
			return err
		}
		data = data[levels:]
	}
	place := func(err error) error {
		return fault.Locate(err, fault.Span{Off: int64(levels), Len: int64(len(data))}, true, "")
	}
	if c.Flat() {
		e, err := d.presence(int(n))
		if err == nil {
			err = place(c.Form.append(dst, d.trimTrailing(data, e.K), d.h.Encoding, e, d))
		}
		return err
	}
	def, rep := d.Arena.Bytes(int(n)), d.Arena.Bytes(int(n))
	if err := d.levels(rep, d.rep, d.h.Levels[1], uint8(c.MaxRep), "repetition_levels"); err != nil {
		return err
	}
	if err := d.levels(def, d.def, d.h.Levels[0], uint8(c.MaxDef), "definition_levels"); err != nil {
		return err
	}
	if err := d.checkRows(rep); err != nil {
		return err
	}
	e := dremel.Entries{N: int(n), K: int(n)}
	if c.MaxDef > 0 {
		e.Valid = dremel.Present(def, uint8(c.MaxDef), d.Arena)
		e.K = plain.CountBits(e.Valid, 0, e.N)
	}
	if err := place(c.Form.append(dst, d.trimTrailing(data, e.K), d.h.Encoding, e, d)); err != nil {
		return err
	}
	dd, rr := dst.ExtendLevels(e.N)
	copy(dd, def)
	copy(rr, rep)
	return nil
}

// splitLevels finds the levels of a data page v1 and returns their length in bytes.
func (d *PageTask) splitLevels(data []byte) (n int, err error) {
	for _, x := range []struct {
		max      int16
		encoding int32
		to       *[]byte
		name     string
	}{{d.Column.MaxRep, d.h.Levels[1], &d.rep, "repetition_levels"},
		{d.Column.MaxDef, d.h.Levels[0], &d.def, "definition_levels"}} {
		if x.max == 0 || d.h.Values == 0 && len(data) == 0 {
			continue
		}
		left := int64(len(data) - n)
		switch x.encoding {
		case meta.BitPacked:
			size := (d.h.Values*int64(bits.Len16(uint16(x.max))) + 7) / 8
			if size > left {
				return 0, fault.Rel(n, int(left), x.name, "%d bytes are needed, %d are left", size, left)
			}
			*x.to, n = data[n:n+int(size)], n+int(size)
		case meta.RleLevels:
			if left < 4 || int64(binary.LittleEndian.Uint32(data[n:])) > left-4 {
				return 0, fault.Rel(n, int(left), x.name, "they are cut: %d bytes are left", left)
			}
			size := int(binary.LittleEndian.Uint32(data[n:]))
			*x.to, n = data[n+4:n+4+size], n+4+size
		default:
			return 0, fault.Unsupportedf(d.h.Header, x.name, "levels in encoding %s",
				meta.EnumName(meta.Encodings, x.encoding))
		}
	}
	return n, nil
}

// levels decodes levels into dst.
func (d *PageTask) levels(dst, src []byte, encoding int32, max uint8, name string) (err error) {
	if d.h.Kind == meta.DataPage && encoding == meta.BitPacked && max > 0 {
		_, err = dremel.DecodePackedLevels(dst, src, max)
	} else {
		err = dremel.DecodeLevels(dst, src, max)
	}
	return d.locateLevels(err, len(src), name)
}

// locateLevels adds the position to an error in n bytes of levels. The levels of a data page v2 are never compressed.
func (d *PageTask) locateLevels(err error, n int, name string) error {
	at := fault.Span{Len: int64(n)}
	if d.h.Kind == meta.DataPageV2 {
		at = d.h.Body
	}
	return fault.Locate(err, at, false, name)
}

// presence returns the set of entries, out of n, that have a value. The column must be flat.
func (d *PageTask) presence(n int) (e dremel.Entries, err error) {
	e = dremel.Entries{N: n, K: n}
	if d.Column.MaxDef == 0 {
		return e, nil
	}
	if d.h.Kind == meta.DataPage && d.h.Levels[0] == meta.BitPacked {
		def := d.Arena.Bytes(n)
		if err := d.levels(def, d.def, meta.BitPacked, 1, "definition_levels"); err != nil {
			return e, err
		}
		e.Valid = dremel.Present(def, 1, d.Arena)
		e.K = plain.CountBits(e.Valid, 0, n)
		return e, nil
	}
	if n > 0 && len(d.def) <= 6 && fullRun(d.def, n) {
		return e, nil
	}
	e.Valid = d.Arena.Bytes((n + 7) / 8)
	e.K, err = rle.DecodeBits(e.Valid, 0, d.def, 0, n)
	return e, d.locateLevels(err, len(d.def), "definition_levels")
}

// fullRun reports whether 1-bit levels are a single run of at least n ones.
func fullRun(b []byte, n int) bool {
	head, used := binary.Uvarint(b)
	return used > 0 && used < len(b) && head&1 == 0 && head>>1 >= uint64(n) && b[used] == 1
}

// checkRows compares the number of rows that begin in a page of a list's leaf with the number in the offset index or
// page header, because rows are located by that number.
func (d *PageTask) checkRows(rep []byte) error {
	if d.Column.MaxRep == 0 {
		return nil
	}
	if d.Ref.Starts && len(rep) > 0 && rep[0] != 0 {
		return fault.Corruptf(d.h.Header, "",
			"the page begins within a row, which is not allowed with an offset index or in version 2")
	}
	if d.Ref.Rows < 0 {
		return nil
	}
	if n := int64(nest.CountRows(rep)); n != d.Ref.Rows {
		what := "num_rows"
		if d.Ref.FromIndex {
			what = "offset_index.first_row_index"
		}
		return fault.Corruptf(d.h.Header, what, "%s, but %d begin in the page", fault.Count(d.Ref.Rows, "row"), n)
	}
	return nil
}
