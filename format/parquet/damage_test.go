package parquet

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// TestDamagedPageLosesItsRows flips a bit in every page of a file with checksums and page indexes: the error is located
// at that page, and all rows outside it are read.
func TestDamagedPageLosesItsRows(t *testing.T) {
	n := checkLostPages(t, "testdata/enc-delta.v1.parquet", "full", "s", "ls")
	// encodings that the library does not decode
	if n += checkLostPages(t, "testdata/fixed-gzip.v1.parquet", "id", "dec", "l"); n < 11 {
		t.Errorf("got %d pages, want 11 or more", n)
	}
}

func checkLostPages(t *testing.T, file string, sound string, damage ...string) (pages int) {
	intact := golden(t, file).Bytes("t")
	open := func(b []byte) *reader {
		r, err := openReader(context.Background(),
			targetOf(b), format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := open(intact)
	cols := []int{r.Shown.FieldIndices(sound)[0], r.Shown.FieldIndices(damage[0])[0],
		r.Shown.FieldIndices(damage[1])[0]}
	read := func(b []byte) (rows []string, losses []region.Loss) {
		r := open(b)
		spec := scan.Spec{Damaged: scan.SkipRows, Rows: vec.Range{To: 70},
			Lost: func(l region.Loss) { losses = append(losses, l) }}
		for _, c := range cols {
			spec.Columns = append(spec.Columns, r.Shown.Field(c).Name)
		}
		for rec, err := range scanned(context.Background(), r, spec) {
			if err != nil {
				t.Fatal(err)
			}
			for i := range int(rec.NumRows()) {
				rows = append(rows, rec.Column(0).ValueStr(i)+" "+rec.Column(1).ValueStr(i)+" "+
					rec.Column(2).ValueStr(i))
			}
		}
		return rows, losses
	}
	want, errs := read(intact)
	if len(want) != 70 || errs != nil {
		t.Fatal(len(want), errs)
	}
	for _, leaf := range append(slices.Clone(r.FieldLeaves[cols[1]]), r.FieldLeaves[cols[2]]...) {
		x, err := r.OffsetIndex(context.Background(), 0, leaf)
		if err != nil || x == nil {
			t.Fatal(x, err)
		}
		i := 0
		for p, err := range r.Pages(context.Background(), 0, leaf) {
			if err != nil {
				t.Fatal(err)
			}
			b := bytes.Clone(intact)
			b[p.Body.Off+p.Body.Len/2] ^= 0x10
			got, errs := read(b)
			to := int64(70)
			if i+1 < len(x.FirstRow) {
				to = x.FirstRow[i+1]
			}
			left := append(slices.Clone(want[:x.FirstRow[i]]), want[to:]...)
			if !isSubset(got, left) || len(got) < len(left)-40 {
				t.Errorf("leaf %d, page %d: got %d rows, want those of the %d outside it", leaf, i, len(got), len(left))
			}
			if len(errs) == 0 {
				t.Errorf("leaf %d, page %d: got no loss, want one", leaf, i)
			}
			missing := 0
			for _, l := range errs {
				missing += int(l.Rows[1] - l.Rows[0])
				var e *fault.Error
				if !errors.As(l.Err, &e) || e.Class != fault.Corrupt || e.At != p.Body {
					t.Errorf("leaf %d, page %d: got %v, want class Corrupt at %v", leaf, i, l.Err, p.Body)
				}
			}
			if missing+len(got) != len(want) {
				t.Errorf("leaf %d, page %d: got %d rows, %d lost, want %d in all", leaf, i, len(got),
					missing, len(want))
			}
			i++
			pages++
		}
	}
	return pages
}

func isSubset(a, of []string) bool {
	for _, x := range a {
		if !slices.Contains(of, x) {
			return false
		}
	}
	return true
}

// TestChecksumsWhileReading: reading notices a changed byte that decodes, unless NoVerify is set.
func TestChecksumsWhileReading(t *testing.T) {
	intact := golden(t, "testdata/enc-plain.v2.parquet").Bytes("t")
	at := bytes.Index(intact, []byte("prefix-0001"))
	b := bytes.Clone(intact)
	b[at] = 'P'
	tree := store.NewMemory(map[string][]byte{"t": b})
	if _, _, err := readAll(tree, nil, vec.Range{}); !errors.Is(err, fault.Corrupt) {
		t.Errorf("got %v, want class Corrupt", err)
	}
	r, err := openReader(context.Background(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{NoVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range batchesOf(context.Background(), r, format.RowGroup{},
		format.Query{Cols: []int{r.Shown.FieldIndices("s")[0]}}, vec.Range{}, nil) {
		if err != nil {
			t.Errorf("NoVerify: %v", err)
		}
	}
}

// TestRandomDamage damages files of every encoding and codec in one to four places: nothing panics, every error has a
// class and a location, and verify and describe terminate.
func TestRandomDamage(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.parquet")
	each := 5
	if testing.Short() {
		each = 1
	}
	r := rand.New(rand.NewPCG(7, 7))
	for _, f := range files {
		intact := golden(t, f).Bytes("t")
		for i := range each {
			b := bytes.Clone(intact)
			for range 1 + r.IntN(4) {
				at := r.IntN(len(b))
				switch r.IntN(3) {
				case 0:
					b[at] ^= 1 << r.IntN(8)
				case 1:
					b[at] = 0xff
				case 2: // a piece of the file in another place
					from := r.IntN(len(b))
					copy(b[at:], b[from:min(len(b), from+r.IntN(20))])
				}
			}
			damaged(t, f, i, b)
			findings(b)
			tree := store.NewMemory(map[string][]byte{"t": b})
			for range Format.Describe(context.Background(), format.Target{Tree: tree, Name: "t"},
				format.DescribeOptions{Pages: true}) {
			}
		}
	}
}
