package verify

import (
	"context"
	"encoding/binary"
	"errors"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/page"
	"stoa/format/parquet/internal/read"
	"stoa/vec"
)

// dictionary compares the number of entries in the header of a chunk's dictionary with its bytes: other readers read
// that many entries, and fail if they are missing. Our readers decode only as much as codes need, so decoding alone
// would not reveal it.
func (v *verifier) dictionary(w *chunkWalk) {
	if w.dict == nil || v.badPages[w.dict.Body] || v.Stopped() ||
		v.r.Footer.Schema.Column(w.leaf).PhysicalType() == meta.TypeBoolean {
		return // bytes do not determine the number of bits
	}
	b, err := openDictionary(v.r, v.ctx, w)
	var own *fault.Error
	switch {
	case errors.As(err, &own) && (own.Class == fault.Corrupt || own.Class == fault.Unsupported):
		return // reported elsewhere
	case err != nil:
		v.find("parquet.dictionary", err)
		return
	}
	entries, left := entriesOf(v.r, w.leaf, b)
	path := meta.IndexPath(w.group, w.leaf, "dictionary_page")
	switch {
	case entries != w.dict.Values:
		v.find("parquet.dictionary", fault.Corruptf(w.dict.Header, path+".num_values",
			"%d, but its bytes hold %d entries", w.dict.Values, entries))
	case left > 0:
		v.find("parquet.dictionary", fault.Corruptf(w.dict.Body, path, "%d bytes after its last entry", left))
	}
}

// entriesOf returns the number of PLAIN values in b, and the number of bytes after the last complete one.
func entriesOf(r *read.Reader, leaf int, b []byte) (n int64, left int) {
	col := r.Footer.Schema.Column(leaf)
	size := physicalSize[col.PhysicalType()]
	if col.PhysicalType() == meta.TypeFixed {
		size = int64(col.TypeLength())
	}
	if size > 0 {
		return int64(len(b)) / size, int(int64(len(b)) % size)
	}
	for len(b) >= 4 && int64(binary.LittleEndian.Uint32(b)) <= int64(len(b)-4) {
		b = b[4+int(binary.LittleEndian.Uint32(b)):]
		n++
	}
	return n, len(b)
}

// openDictionary returns the raw bytes of the dictionary page.
func openDictionary(r *read.Reader, ctx context.Context, w *chunkWalk) ([]byte, error) {
	if err := r.Readable(w.group, w.leaf); err != nil {
		return nil, err
	}
	at := w.dict.Whole()
	if n := max(at.Len, w.dict.Raw); n > r.Limits.Page {
		return nil, fault.Limitf(at, "", "%d bytes, the limit is %d", n, r.Limits.Page)
	}
	b := make([]byte, at.Len)
	if err := format.ReadFull(ctx, r.Src, at, "dictionary_page", b); err != nil {
		return nil, err
	}
	d := page.PageTask{Column: r.Leaves[w.leaf], Ref: &page.PageRef{At: at, Values: -1},
		Module: meta.PageModule{Cipher: r.Footer.RowGroups[w.group].Columns[w.leaf].Cipher, First: true, Ordinal: -1},
		Codec:  r.Footer.RowGroups[w.group].Columns[w.leaf].MetaData.Codec,
		Arena:  &vec.Arena{}, AllowTrailing: true, Limit: r.Limits.Page}
	return d.Open(b, true)
}
