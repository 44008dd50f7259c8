package parquet

import (
	"bytes"
	"fmt"
	"testing"

	lib "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/metadata"

	"stoa/format"
	"stoa/internal/scan"
	"stoa/internal/thrift"
	"stoa/vec"
)

// emptyPage returns a data page without values. The body is empty, or a codec's form of an empty input.
func emptyPage(version int, body []byte) []byte {
	w := thrift.NewWriter(thrift.Compact)
	w.Struct(thrift.Item)
	w.I32(1, map[int]int32{1: 0, 2: 3}[version])
	w.I32(2, 0)
	w.I32(3, int32(len(body)))
	if version == 1 {
		w.Struct(5)
		for id, n := range []int32{0, 0, 3, 3} { // no values, PLAIN, levels in RLE
			w.I32(int16(id+1), n)
		}
	} else {
		w.Struct(8)
		for id := range int16(6) { // no values, nulls, rows; PLAIN; no levels
			w.I32(id+1, 0)
		}
	}
	w.End()
	w.End()
	return append(w.Encoded(), body...)
}

// TestPagesWithoutValues: pages without values before, between and after others, as Arrow C++ and Spark may write them,
// change no rows and have no findings, even without an offset index and in lists.
func TestPagesWithoutValues(t *testing.T) {
	intact := claimed(t, lib.WithPageIndexEnabled(false), lib.WithBloomFilterEnabled(false),
		lib.WithCompression(compress.Codecs.Snappy))
	r := readerOf(t, intact)
	defer r.Close()
	want := &damagedFile{starts: []int64{0}}
	for version := 1; version <= 2; version++ {
		for _, body := range [][]byte{nil, {0}} { // {0} is Snappy's output for no input
			empty := emptyPage(version, body)
			for leaf := range r.Leaves {
				var chunk []byte
				pages, dict := 0, false
				for p, err := range r.Pages(t.Context(), 0, leaf) {
					if err != nil {
						t.Fatal(err)
					}
					if p.IsData() {
						chunk = append(chunk, empty...)
						pages++
					} else {
						dict = true
					}
					chunk = append(chunk, intact[p.Header.Off:p.Body.End()]...)
				}
				if chunk = append(chunk, empty...); pages < 3 {
					t.Fatalf("got %d pages, want 3 or more", pages)
				}
				more := int64(len(empty) * (pages + 1))
				b := refooter(t, intact, chunk, func(m *metadata.FileMetaData, at int64) {
					g := m.RowGroups[0]
					c := g.Columns[leaf].MetaData
					first := c.DataPageOffset
					if dict {
						c.DataPageOffset += at - *c.DictionaryPageOffset
						*c.DictionaryPageOffset = at
					} else {
						c.DataPageOffset += at - first
					}
					c.TotalCompressedSize += more
					c.TotalUncompressedSize += more - int64(len(body)*(pages+1))
					c.EncodingStats = nil
					g.TotalByteSize += more - int64(len(body)*(pages+1))
					g.TotalCompressedSize, g.FileOffset = nil, nil
				})
				what := fmt.Sprintf("version %d, body %v, column %d", version, body, leaf)
				got, err := openReader(t.Context(), targetOf(b), format.OpenOptions{})
				if err != nil {
					t.Fatal(what, err)
				}
				was, _, _, err := want.read(r, leaf, scan.Fail)
				now, lost, _, err2 := want.read(got, leaf, scan.SkipRows)
				if err != nil || err2 != nil || len(lost) > 0 || fmt.Sprint(was) != fmt.Sprint(now) {
					t.Errorf("%s: got %v, %v, lost %v, %d rows, want %d", what, err, err2, lost, len(now), len(was))
				}
				got.Close()
				for _, f := range findings(b) {
					if f.Code != "parquet.layout" && f.Code != "parquet.copy" && f.Code != "parquet.encodings" {
						t.Errorf("%s: got %+v, want no findings", what, f)
					}
				}
			}
		}
	}
	if bytes.Equal(emptyPage(1, nil), emptyPage(2, nil)) {
		t.Error("the pages of both versions are equal")
	}
}

// TestCopiesOfPagesWithoutValues: if row groups are cut, a page without values may be the last of a part. The copy is
// healthy, and can be read by rows.
func TestCopiesOfPagesWithoutValues(t *testing.T) {
	b := golden(t, "testdata/empty_page.parquet").Bytes("t")
	want, err := sumOf(t, nil, b)
	if err != nil || want.Rows != 5 {
		t.Fatal(want.Rows, err)
	}
	for rows := 1; rows <= 5; rows++ {
		out, why := copyOf(t, format.CopyOptions{Opts: map[string]string{"row-group-rows": fmt.Sprint(rows)}}, b)
		if why != "" {
			t.Fatalf("%d rows a row group: not copied: %s", rows, why)
		}
		for _, f := range findings(out) {
			t.Errorf("%d rows a row group: got %+v, want no findings", rows, f)
		}
		if got, err := sumOf(t, nil, out); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%d rows a row group: got %v, %v, want %v", rows, got, err, want)
		}
		r := readerOf(t, out)
		for from := range 5 {
			got := 0
			for b, err := range scanned(t.Context(), r, scan.Spec{Rows: vec.Range{From: int64(from), To: 5}}) {
				if err != nil {
					t.Fatal(err)
				}
				got += int(b.NumRows())
			}
			if got != 5-from {
				t.Errorf("%d rows a row group, from row %d: got %d rows, want %d", rows, from, got, 5-from)
			}
		}
		r.Close()
	}
}
