package parquet

import (
	"bytes"
	"encoding/binary"
	"path"
	"testing"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/region"
)

// TestVerifyDictionaries: the number of entries in the header of a dictionary is held against its bytes.
func TestVerifyDictionaries(t *testing.T) {
	for _, file := range []string{"testdata/enc-dict.v1.parquet", "testdata/enc-dict.v2.parquet"} {
		whole, dicts := golden(t, file).Bytes("t"), 0
		r := readerOf(t, whole)
		for leaf := range r.Footer.Schema.NumColumns() {
			var number fault.Span
			at := r.ChunkSpan(0, leaf)
			p, err := r.PlainPageHeader(t.Context(), at, "page", func(n region.Node) {
				if path.Ext(n.Name) == ".num_values" || n.Name == "num_values" {
					number = n.At
				}
			})
			if err != nil || p.Kind != meta.DictionaryPage {
				continue
			}
			for _, by := range []int64{1, -1} {
				other := binary.AppendUvarint(nil, uint64(2*(p.Values+by))) // zigzag
				b := bytes.Clone(whole)
				said := b[number.Off+1 : number.End()] // behind the field's own byte
				if len(other) != len(said) {
					continue
				}
				dicts++
				copy(said, other)
				told := 0
				for _, f := range findings(b) {
					if f.Code == "parquet.dictionary" && f.At == p.Header {
						told++
					}
				}
				if told != 1 {
					t.Errorf("%s: column %d by %d: %+v", file, leaf, by, findings(b))
				}
			}
		}
		if dicts < 4 {
			t.Error(file, "has no dictionary: the test says nothing")
		}
	}
}
