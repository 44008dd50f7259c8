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

// TestVerifyDictionaries: verify compares the number of entries in the header of a dictionary with its bytes.
func TestVerifyDictionaries(t *testing.T) {
	for _, file := range []string{"testdata/enc-dict.v1.parquet", "testdata/enc-dict.v2.parquet"} {
		intact, dicts := golden(t, file).Bytes("t"), 0
		r := readerOf(t, intact)
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
				changed := binary.AppendUvarint(nil, uint64(2*(p.Values+by))) // zigzag
				b := bytes.Clone(intact)
				stored := b[number.Off+1 : number.End()] // after the field header
				if len(changed) != len(stored) {
					continue
				}
				dicts++
				copy(stored, changed)
				n := 0
				for _, f := range findings(b) {
					if f.Code == "parquet.dictionary" && f.At == p.Header {
						n++
					}
				}
				if n != 1 {
					t.Errorf("%s: column %d by %d: got %+v, want one parquet.dictionary", file, leaf, by, findings(b))
				}
			}
		}
		if dicts < 4 {
			t.Errorf("%s: got %d changed dictionaries, want 4 or more", file, dicts)
		}
	}
}
