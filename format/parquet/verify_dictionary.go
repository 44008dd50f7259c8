package parquet

import (
	"encoding/binary"
	"errors"

	"github.com/apache/arrow-go/v18/parquet"

	"stoa/fault"
)

// dictionary holds the number of entries that the header of a chunk's dictionary says against the bytes: other readers take as many as it says, and fail where they are
// not there. It is decoded by codes here, which tell nothing of that.
func (v *verifier) dictionary(w *chunkWalk) {
	if w.dict == nil || v.told[w.dict.body] || v.left || v.r.meta.Schema.Column(w.leaf).PhysicalType() == parquet.Types.Boolean {
		return // of bits the bytes do not tell how many they are
	}
	c := columns{r: v.r, group: w.group, parts: []fieldPart{{leaves: []int{w.leaf}}}}
	if c.refused(w.leaf) != "" {
		return // told when the column was read
	}
	_, b, err := c.openPage(v.ctx, w.leaf, w.dict)
	var own *fault.Error
	switch {
	case errors.As(err, &own) && (own.Class == fault.Corrupt || own.Class == fault.Unsupported):
		return // told likewise
	case err != nil:
		v.find("parquet.dictionary", err)
		return
	}
	entries, left := v.r.entriesOf(w.leaf, b)
	path := indexPath(w.group, w.leaf, "dictionary_page")
	switch {
	case entries != w.dict.values:
		v.find("parquet.dictionary", fault.Corruptf(w.dict.header, path+".num_values", "%d, but its bytes hold %d entries", w.dict.values, entries))
	case left > 0:
		v.find("parquet.dictionary", fault.Corruptf(w.dict.body, path, "%d bytes behind its last entry", left))
	}
}

// entriesOf is how many values lie in b, which is PLAIN, and the bytes left behind the last whole one.
func (r *reader) entriesOf(leaf int, b []byte) (n int64, left int) {
	col := r.meta.Schema.Column(leaf)
	size := physicalSize[col.PhysicalType()]
	if col.PhysicalType() == parquet.Types.FixedLenByteArray {
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
