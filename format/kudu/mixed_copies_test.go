package kudu_test

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format/kudu"
	"stoa/internal/kudugen"
	"stoa/internal/sum"
	"stoa/region"
	"stoa/store"
)

// pagesOf returns the data pages of the block at a place.
func pagesOf(t *testing.T, file []byte, at fault.Span) (out []kudugen.Block) {
	t.Helper()
	l, err := kudugen.Walk(file[at.Off:at.End()])
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range l.Blocks {
		if b.Kind == "data" {
			b.Off += at.Off
			out = append(out, b)
		}
	}
	return out
}

// changed returns a file in which a bit of a page is another, with the page's right checksum.
func changed(file []byte, page kudugen.Block) []byte {
	out := bytes.Clone(file)
	body := out[page.Off : page.Off+page.Len-4]
	body[len(body)-3] ^= 1
	binary.LittleEndian.PutUint32(out[page.Off+page.Len-4:], sum.CRC32C(body))
	return out
}

// TestCorpusMixedCopies: of two copies of a table one has other values in sound pages, as a copy of another time has,
// with the same keys, lengths and footers. What is damaged in the first is not filled from it: each row that is read is
// a row of one of the two, whether the other values are in the same column or not, and whether the copies are of one
// server. A copy with the same values fills all of it.
func TestCorpusMixedCopies(t *testing.T) {
	whole, f, tablets := archive(t, "fs_file")
	n := 0
	for _, tb := range []string{"key_int32", "enc_int64", "btree", "d_raw"} {
		if tablets[tb] == nil {
			continue
		}
		blocks := blocksOf(t, f, []*kudu.Tablet{tablets[tb]}, tb)
		want := expected(t, corpus(t), tb, "final")
		for _, c := range tablets[tb].Schema.Columns[tablets[tb].Schema.NumKeys:] {
			if len(blocks[c.Name]) == 0 {
				continue
			}
			object := blocks[c.Name][0].Object
			pages := pagesOf(t, whole[object], blocks[c.Name][0])
			if len(pages) < 2 {
				continue
			}
			first, last := pages[0], pages[len(pages)-1]
			other := maps.Clone(whole)
			other[object] = changed(changed(whole[object], first), last)
			theirs, err := scan(t, store.NewMemory(other), "#"+tb, nil, stoa.ScanSpec{})
			if err != nil || codes(theirs.findings, region.Error) != "" || slices.Equal(theirs.lines(), want) {
				continue // the bit is not a value's
			}
			n++
			for _, server := range []bool{false, true} {
				for _, differs := range []bool{true, false} {
					files := copied(whole)
					if server {
						files = otherServer(t, whole, f, "twin")
						maps.DeleteFunc(files, func(name string, _ []byte) bool {
							return strings.HasSuffix(name, "/consensus-meta/"+tablets[tb].ID)
						})
					}
					if differs {
						files["twin/"+strings.TrimPrefix(object, "tserver/")] = other[object]
					}
					files[object] = flipped(whole[object], last.Off+last.Len/2)
					got, err := scan(t, store.NewMemory(files), "#"+tb, nil, stoa.ScanSpec{Damaged: stoa.SkipRows})
					if err != nil {
						t.Fatal(err)
					}
					rows := got.lines()
					if whole := slices.Equal(rows, want); whole == differs && !slices.Equal(rows, theirs.lines()) {
						t.Errorf("%s.%s, other server %v, other values %v: %d rows, %d losses", tb, c.Name, server,
							differs, len(rows), len(got.lost))
					}
					has := map[string]bool{}
					for _, r := range slices.Concat(want, theirs.lines()) {
						has[r] = true
					}
					if i := slices.IndexFunc(rows, func(r string) bool { return !has[r] }); i >= 0 {
						t.Errorf("%s.%s: row %s is in neither", tb, c.Name, rows[i])
					}
					if differs && len(got.lost) == 0 && !slices.Equal(rows, theirs.lines()) {
						t.Errorf("%s.%s: rows of both, and no loss", tb, c.Name)
					}
				}
			}
		}
	}
	if n < 2 {
		t.Errorf("only %d columns", n)
	}
}
