package trevni_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/trevni"
	"stoa/region"
	"stoa/store"
)

// TestCutIsSaid: wherever behind its header a file is cut, opening it, which is all that ls and schema do, reports it.
// The files are those of the real programs, all of whose bytes belong to columns.
func TestCutIsSaid(t *testing.T) {
	r, files, cuts := rand.New(rand.NewPCG(17, 4)), 0, 0
	err := filepath.WalkDir("../../corpus/trevni", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(p, ".trv") || strings.Contains(p, "negative") {
			return err
		}
		whole, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		files++
		if damage := damageAtOpen(t, whole); damage {
			t.Errorf("%s: whole, and an error is reported", p)
		}
		at := []int{1, 2, 3, 4, 5, 12, 13}
		for range 12 {
			at = append(at, 1+r.IntN(len(whole)-1))
		}
		for _, n := range at {
			if n >= len(whole) {
				continue
			}
			cuts++
			if !damageAtOpen(t, whole[:len(whole)-n]) {
				t.Errorf("%s: %d of %d bytes are missing, and opening says nothing", p, n, len(whole))
			}
		}
		return nil
	})
	if err != nil || files < 10 {
		t.Fatalf("%d files: %v", files, err)
	}
	t.Logf("%d files, %d cuts", files, cuts)
}

// damageAtOpen reports whether opening a file fails, or reports an error.
func damageAtOpen(t *testing.T, b []byte) bool {
	t.Helper()
	tree := store.NewMemory(map[string][]byte{"f.trv": b})
	tab, err := stoa.Open(t.Context(), "f.trv", stoa.OpenOptions{Tree: tree, From: "trevni"})
	if err != nil {
		return true
	}
	defer tab.Close()
	return slices.ContainsFunc(tab.Findings(), func(f region.Finding) bool { return f.Severity == region.Error })
}

// TestColumnsBeforeACut: wherever a file is cut, recovery returns all values of the columns that end before the cut.
// Each column's descriptors have a checksum, by which they are known not to be the last column's.
func TestColumnsBeforeACut(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "small", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
		{Name: "text", Type: arrow.BinaryTypes.String},
		{Name: "many", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
		{Name: "last", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	const rows = 40
	var lines []string
	for i := range rows {
		lines = append(lines, fmt.Sprintf(`{"id":%d,"small":%d,"text":"t%d","many":[%d,7],"last":"the last %d"}`,
			i*i*i*1000, i%7, i, i, i))
	}
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader("["+strings.Join(lines, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	for _, opts := range []map[string]string{{}, {"first-values": "all"}, {"block-size": "64"}} {
		tree := store.NewMemory(nil)
		w, err := stoa.Create(t.Context(), "f.trv", sc, stoa.CreateOptions{Sink: tree.Sink("f.trv"), Opts: opts})
		if err == nil {
			err = w.Write(t.Context(), b)
		}
		if err == nil {
			_, err = w.Close(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		whole := tree.Bytes("f.trv")
		var starts []int64
		for n, err := range trevni.Format.Describe(t.Context(), format.Target{Tree: tree, Name: "f.trv"},
			format.DescribeOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(n.Name, "column[") && strings.HasSuffix(n.Name, "]") {
				starts = append(starts, n.At.Off)
			}
		}
		checked := 0
		for cut := starts[0]; cut < int64(len(whole)); cut++ {
			short := store.NewMemory(map[string][]byte{"f.trv": whole[:cut]})
			tab, err := stoa.Open(t.Context(), "f.trv", stoa.OpenOptions{Tree: short, Recover: true})
			if err != nil {
				t.Fatalf("%v, cut at %d of %d: %v", opts, cut, len(whole), err)
			}
			for c := range sc.NumFields() {
				if c+1 >= len(starts) || starts[c+1] > cut {
					break
				}
				checked++
				n := 0
				for got, err := range tab.Scan(t.Context(), stoa.ScanSpec{Columns: []string{sc.Field(c).Name},
					Damaged: stoa.NullCells}) {
					if err != nil {
						t.Fatal(err)
					}
					for i := range int(got.NumRows()) {
						if g, w := got.Column(0).ValueStr(i), b.Column(c).ValueStr(n); g != w {
							t.Fatalf("%v, cut at %d of %d: row %d of %s is %s, want %s", opts, cut, len(whole), n,
								sc.Field(c).Name, g, w)
						}
						n++
					}
				}
				if n != rows {
					t.Errorf("%v, cut at %d of %d: %d rows of %s, want %d", opts, cut, len(whole), n,
						sc.Field(c).Name, rows)
				}
			}
			tab.Close()
		}
		t.Logf("%v: %d bytes, %d columns before a cut", opts, len(whole), checked)
	}
}
