package parquet

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	lib "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/metadata"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/region"
	"stoa/store"
	"stoa/store/faulty"
)

// TestVerifyCodes makes each kind of damage by hand, and checks its code, location and rows. The file has 400 rows in
// pages of 40 (see claimed).
func TestVerifyCodes(t *testing.T) {
	intact := claimed(t, lib.WithDataPageVersion(lib.DataPageV2))
	r := readerOf(t, intact)
	var pages []meta.Page
	for p, err := range r.Pages(t.Context(), 0, colX) {
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, p)
	}
	footer := func(edit func(m *metadata.FileMetaData)) []byte {
		return refooter(t, intact, nil, func(m *metadata.FileMetaData, _ int64) { edit(m) })
	}
	body := bytes.Clone(intact)
	clear(body[pages[1].Body.Off:pages[1].Body.End()]) // invalid levels of a data page v2
	for name, x := range map[string]struct {
		b    []byte
		want string
		at   int64
		rows [2]int64
		lost int64
	}{
		"rows of the file": {footer(func(m *metadata.FileMetaData) { m.NumRows = 401 }), "parquet.rows", -1,
			[2]int64{-1, -1}, -1},
		"values of a chunk": {footer(
			func(m *metadata.FileMetaData) { m.RowGroups[0].Columns[colX].MetaData.NumValues = 399 }),
			"parquet.values", pages[0].Header.Off, [2]int64{0, 400}, 400},
		"an unknown codec": {footer(
			func(m *metadata.FileMetaData) { m.RowGroups[0].Columns[colX].MetaData.Codec = 3 }),
			"parquet.unsupported", pages[0].Header.Off, [2]int64{0, 400}, 400},
		"a page's levels": {body, "parquet.column", pages[1].Body.Off, [2]int64{0, 400}, 400},
	} {
		fs := findings(x.b)
		k := slices.IndexFunc(fs, func(f region.Finding) bool { return f.Code == x.want })
		if k < 0 || fs[k].Severity != region.Error || fs[k].Rows != x.rows || fs[k].Lost != x.lost || x.at >= 0 &&
			fs[k].At.Off != x.at {
			t.Errorf("%s: got %+v, want %s at %d of rows %v", name, fs, x.want, x.at, x.rows)
		}
	}
	summed := golden(t, "testdata/order.v2.parquet").Bytes("t")
	r, pages = readerOf(t, summed), nil
	for p, err := range r.Pages(t.Context(), 1, 0) { // the second row group begins with row 70
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, p)
	}
	if len(pages) < 2 {
		t.Fatal(len(pages), "pages")
	}
	second := [2]int64{70 + pages[0].Rows, 70 + pages[0].Rows + pages[1].Rows}
	flipped := bytes.Clone(summed)
	flipped[pages[1].Body.Off] ^= 1
	fs := findings(flipped)
	if len(fs) != 1 || fs[0].Code != "parquet.page.checksum" || fs[0].At != pages[1].Body || fs[0].Rows != second ||
		fs[0].Lost != pages[1].Rows || !strings.HasSuffix(fs[0].Path, ".crc") {
		t.Errorf("a flipped bit: got %+v, want parquet.page.checksum at %v of rows %v", fs, pages[1].Body, second)
	}
}

// TestVerifyUnreadable: whichever operation of the store fails, verify reports it as parquet.unreadable.
func TestVerifyUnreadable(t *testing.T) {
	memory := store.NewMemory(map[string][]byte{"t": claimed(t)})
	unreadable(t, memory)
	unreadable(t, golden(t, "testdata/order.v2.parquet"))
}

func unreadable(t *testing.T, memory *store.Memory) {
	t.Helper()
	verified := func(tree store.Tree) []region.Finding {
		return slices.Collect(Format.Verify(t.Context(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{}))
	}
	count := &faulty.Tree{Tree: memory, At: -1}
	if got := verified(count); len(got) != 0 || count.Count() < 20 {
		t.Fatalf("got %+v, %d operations, want no findings, 20 or more", got, count.Count())
	}
	for k := range count.Count() {
		tree := &faulty.Tree{Tree: memory, Mode: faulty.Fail, At: k}
		got := verified(tree)
		if tree.Hit.Load() && !slices.ContainsFunc(got,
			func(f region.Finding) bool { return f.Code == "parquet.unreadable" && f.Severity == region.Error }) {
			t.Errorf("operation %d of %d: got %+v, want parquet.unreadable", k, count.Count(), got)
		}
	}
}

// TestRecoverCodes: findings of recovery for a file that is truncated in its second row group, with and without a
// schema.
func TestRecoverCodes(t *testing.T) {
	intact := golden(t, "testdata/order.v1.parquet").Bytes("t")
	r := readerOf(t, intact)
	cut := r.ChunkSpan(1, 1).End() // two of four columns of the second row group, rows 70 to 140, are complete
	tree := store.NewMemory(map[string][]byte{"t": intact[:cut], "intact": intact})
	target := format.Target{Tree: tree, Name: "t"}
	back, found, err := recoverReader(t.Context(), target,
		format.OpenOptions{Opts: map[string]string{"schema": "intact"}})
	if err != nil {
		t.Fatal(err)
	}
	back.Close()
	for _, want := range []struct {
		code string
		at   fault.Span
		rows [2]int64
		lost int64
	}{
		{"parquet.footer", fault.Span{Object: "t", Off: cut - 4, Len: 4}, [2]int64{-1, -1}, -1},
		{"parquet.recovered", fault.Span{Object: "t", Off: 0, Len: cut}, [2]int64{0, 140}, 0},
		{"parquet.rows.lost", fault.Span{Object: "t", Off: cut}, [2]int64{-1, -1}, 70},
	} {
		k := slices.IndexFunc(found, func(f region.Finding) bool { return f.Code == want.code })
		if k < 0 || found[k].At != want.at || found[k].Rows != want.rows || found[k].Lost != want.lost {
			t.Errorf("got %+v, want %+v", found, want)
		}
	}
	_, found, err = recoverReader(t.Context(), target, format.OpenOptions{})
	if !errors.Is(err, fault.Corrupt) || len(found) != 1 || found[0].Code != "parquet.footer" ||
		found[0].At.Off != cut-4 {
		t.Errorf("without a schema: got %+v, %v, want class Corrupt and parquet.footer", found, err)
	}
}
