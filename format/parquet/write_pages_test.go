package parquet

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// pagesOfAllKinds returns a table with all kinds of pages: dictionaries, nulls, lists, strings.
func pagesOfAllKinds() arrow.RecordBatch {
	sc := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	for i := range 7000 {
		b.Field(0).(*array.Int64Builder).Append(int64(i) * 7919)
		if i%7 == 0 {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("text ", i%50))
		}
		l := b.Field(2).(*array.ListBuilder)
		l.Append(i%5 > 0)
		for k := range i % 5 {
			l.ValueBuilder().(*array.Int32Builder).Append(int32(i + k))
		}
	}
	return b.NewRecordBatch()
}

// TestWrittenPages: every page that stoa writes has a correct checksum; offsets and sizes in indexes and metadata are
// correct; and a file without checksums has the same rows.
func TestWrittenPages(t *testing.T) {
	ctx := context.Background()
	batch := pagesOfAllKinds()
	files, pages := 0, 0
	for _, codec := range []string{"none", "snappy", "zstd"} {
		for _, version := range []string{"1", "2"} {
			for _, dict := range []string{"true", "false"} {
				for _, index := range []string{"true", "false"} {
					if testing.Short() && (version == "1") != (codec == "snappy") {
						continue
					}
					opts := map[string]string{"compression": codec, "page-version": version, "dictionary": dict,
						"page-index": index, "row-group-rows": "3000", "page-size": "256"}
					tree := written(t, opts, batch)
					for _, f := range findings(tree.Bytes("t")) {
						t.Errorf("%v: %+v", opts, f)
					}
					r, err := openReader(ctx, format.Target{Tree: tree, Name: "t"}, format.OpenOptions{})
					if err != nil {
						t.Fatal(err)
					}
					for g := range 3 {
						for leaf := range 3 {
							data := pagesOf(t, r, g, leaf)
							checkOffsets(t, r, g, leaf, data, index == "true")
							pages += len(data)
						}
					}
					opts["crc"] = "false"
					_, got, err := readAll(tree, nil, vec.Range{})
					if err != nil {
						t.Fatal(err)
					}
					_, want, err := readAll(written(t, opts, batch), nil, vec.Range{})
					if err != nil || fmt.Sprint(got) != fmt.Sprint(want) || len(got) == 0 {
						t.Errorf("%v: got %v or different rows without checksums", opts, err)
					}
					files++
				}
			}
		}
	}
	t.Logf("%d files, %d data pages", files, pages)
	if least := map[bool]int{false: 24, true: 12}[testing.Short()]; files != least || pages < 20*least {
		t.Errorf("got %d files, %d pages, want %d, %d or more", files, pages, least, 20*least)
	}
}

// pagesOf returns the data pages of a chunk. It checks that all pages fill the chunk and have checksums.
func pagesOf(t *testing.T, r *reader, group, leaf int) (data []meta.Page) {
	t.Helper()
	at := r.ChunkSpan(group, leaf)
	end := at.Off
	for p, err := range r.Pages(context.Background(), group, leaf) {
		if err != nil {
			t.Fatal(err)
		}
		if !p.HasCRC {
			t.Errorf("got a %s without a checksum", &p)
		}
		if p.Header.Off != end {
			t.Errorf("got a page at %d, want it at %d", p.Header.Off, end)
		}
		if end = p.Body.End(); p.IsData() {
			data = append(data, p)
		}
	}
	if end != at.End() {
		t.Errorf("row group %d, column %d: the pages end at %d, the chunk at %d", group, leaf, end, at.End())
	}
	return data
}

// checkOffsets compares the offset index with the pages.
func checkOffsets(t *testing.T, r *reader, group, leaf int, data []meta.Page, index bool) {
	t.Helper()
	x, err := r.OffsetIndex(context.Background(), group, leaf)
	if err != nil || (x != nil) != index {
		t.Fatalf("offset index: got %v, %v, want one: %t", x, err, index)
	}
	if !index {
		return
	}
	if len(x.Offsets) != len(data) {
		t.Fatalf("got %d pages in the offset index, want %d", len(x.Offsets), len(data))
	}
	for i, p := range data {
		if x.Offsets[i] != p.Header.Off-r.Base {
			t.Errorf("page %d: got offset %d, want %d", i, x.Offsets[i], p.Header.Off-r.Base)
		}
	}
}

// TestWrittenSums: verify and reading notice every flipped bit in a page of a file that stoa wrote.
func TestWrittenSums(t *testing.T) {
	ctx := context.Background()
	intact := written(t, map[string]string{"row-group-rows": "3000", "page-size": "512"}, pagesOfAllKinds()).Bytes("t")
	r, err := openReader(ctx, targetOf(intact),
		format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for g := range 3 {
		for leaf := range 3 {
			for p, err := range r.Pages(ctx, g, leaf) {
				if err != nil {
					t.Fatal(err)
				}
				if n++; testing.Short() && n%4 > 0 {
					continue
				}
				b := bytes.Clone(intact)
				b[p.Body.Off+int64(n*31)%p.Body.Len] ^= 1 << (n % 8)
				found := findings(b)
				if len(found) == 0 || found[0].Severity != region.Error || found[0].At != p.Body {
					t.Errorf("%s: got %+v, want an error at %v", &p, found, p.Body)
				}
				if _, _, err := readAll(store.NewMemory(map[string][]byte{"t": b}), nil, vec.Range{}); err == nil {
					t.Errorf("%s: reading: got no error, want one", &p)
				}
			}
		}
	}
	t.Logf("%d pages", n)
	if n < 36 {
		t.Errorf("got %d pages, want 36 or more", n)
	}
}
