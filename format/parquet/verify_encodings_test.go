package parquet

import (
	"bytes"
	"encoding/binary"
	"path"
	"strings"
	"testing"

	lib "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/metadata"

	"stoa/fault"
	"stoa/region"
)

// TestVerifyEncodings: verify compares encodings and encoding_stats with the pages; two names for the same encoding,
// and unused encodings in the list, are allowed.
func TestVerifyEncodings(t *testing.T) {
	for _, file := range []string{"testdata/enc-dict.v1.parquet", "testdata/enc-dict.v2.parquet"} {
		intact := golden(t, file).Bytes("t")
		wants := map[string]struct {
			edit func(d *metadata.FileMetaData)
			want string
		}{
			"as written": {func(*metadata.FileMetaData) {}, ""},
			"a wrong one": {func(d *metadata.FileMetaData) {
				c := d.RowGroups[0].Columns[0].MetaData
				c.Encodings = append(c.Encodings[:0], 5)
			}, "encodings"},
			"count": {func(d *metadata.FileMetaData) {
				c := d.RowGroups[0].Columns[0].MetaData
				c.EncodingStats[0].Count++
			}, "encoding_stats"},
			"a wrong one in stats": {func(d *metadata.FileMetaData) {
				c := d.RowGroups[0].Columns[0].MetaData
				s := c.EncodingStats
				s[len(s)-1].Encoding = 5
			}, "encoding_stats"},
			"no stats": {func(d *metadata.FileMetaData) {
				c := d.RowGroups[0].Columns[0].MetaData
				c.EncodingStats = nil
			}, ""},
			"more": {func(d *metadata.FileMetaData) {
				c := d.RowGroups[0].Columns[0].MetaData
				c.Encodings = append(c.Encodings, 5)
			}, ""},
		}
		for what, c := range wants {
			b := refooter(t, intact, nil, func(m *metadata.FileMetaData, _ int64) { c.edit(m) })
			got := withCodes(findings(b), "parquet.encodings")
			if len(got) > 0 != (c.want != "") || len(got) > 1 || len(got) == 1 &&
				!strings.Contains(got[0], "columns[0]."+c.want) {
				t.Errorf("%s, %s: got %q, want %q", file, what, got, c.want)
			}
		}
	}
}

// TestVerifyNullsOfPages: verify compares num_nulls of a data page v2 with its entries, including those of lists, but
// not the 0 that the library writes without statistics.
func TestVerifyNullsOfPages(t *testing.T) {
	if got := findings(claimed(t, lib.WithDataPageVersion(lib.DataPageV2), lib.WithStats(false))); len(got) > 0 {
		t.Errorf("without statistics: got %+v, want none", got)
	}
	intact := claimed(t, lib.WithDataPageVersion(lib.DataPageV2), lib.WithBloomFilterEnabled(false))
	r := readerOf(t, intact)
	for _, column := range []int{colX, colL} {
		var number fault.Span
		at := r.ChunkSpan(0, column)
		p, err := r.PlainPageHeader(t.Context(), at, "page", func(n region.Node) {
			if path.Ext(n.Name) == ".num_nulls" || n.Name == "num_nulls" {
				number = n.At
			}
		})
		wrong := binary.AppendUvarint(nil, uint64(2*(p.Nulls+1))) // zigzag, after the field header
		if err != nil || p.Nulls < 1 || number.Len != 1+int64(len(wrong)) {
			t.Fatalf("got page %+v, num_nulls at %v, %v", p, number, err)
		}
		b := bytes.Clone(intact)
		copy(b[number.Off+1:], wrong)
		if got := findings(b); codesIn(got) != "parquet.index.bounds" || len(got) != 1 || got[0].At != p.Header ||
			!strings.HasSuffix(got[0].Path, "num_nulls") {
			t.Errorf("column %d: got %+v, want parquet.index.bounds at num_nulls", column, got)
		}
	}
}
