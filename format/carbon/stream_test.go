package carbon_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/region"
	"stoa/store"
)

// streaming is a table to which Spark streamed two batches, with the rows that Spark then read.
const streaming = golden2 + "/streaming/sink"

// streamed returns the table in memory, the name of its only row-format file, and its rows.
func streamed(t testing.TB) (tree *store.Memory, file string, right []line) {
	t.Helper()
	tree = loaded(t, streaming)
	for _, n := range tree.Names() {
		if strings.HasSuffix(n, ".carbondata") {
			file = n
		}
	}
	_, right, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
	if err != nil {
		t.Fatal(err)
	}
	return tree, file, right
}

// blocklets returns the spans of the blocklets of a file.
func blocklets(t testing.TB, tree store.Tree, file string) (out []fault.Span) {
	t.Helper()
	for n, err := range carbon.Format.Describe(t.Context(), format.Target{Tree: tree, Name: file},
		format.DescribeOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(n.Name, "blocklet[") {
			out = append(out, n.At)
		}
	}
	return out
}

// TestStreaming: the table, and its file read alone, have the rows that Spark reads.
func TestStreaming(t *testing.T) {
	want := jsonRows(t, filepath.Join(golden2, "streaming/expected.jsonl.gz"))
	if len(want) != 420 {
		t.Fatal(len(want))
	}
	tree, file, _ := streamed(t)
	for _, place := range []string{"t", file} {
		sc, got, err := read(t, place, stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
		if err != nil {
			t.Fatal(err)
		}
		if d := differ(got, wanted(sc, want), true); d != "" {
			t.Errorf("%s: %s", place, d)
		}
	}
	if f := findings(t, tree, "t"); len(f) > 0 {
		t.Error(f)
	}
	if n := coverage(t, streaming); n != 2 {
		t.Errorf("%d files", n)
	}
}

// TestStreamingTail: bytes after the last committed batch are not read; a file that ends inside a blocklet is damaged,
// and its complete blocklets are recovered.
func TestStreamingTail(t *testing.T) {
	tree, file, right := streamed(t)
	whole := tree.Bytes(file)
	tree.Put(file, append(slices.Clone(whole), whole[len(whole)-5000:]...))
	_, rows, err := read(t, "t", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
	if err != nil || differ(rows, right, false) != "" {
		t.Errorf("with an unfinished batch: %v %s", err, differ(rows, right, false))
	}

	at := blocklets(t, tree, file)
	if len(at) != 2 {
		t.Fatal(at)
	}
	first, second := right[:300], right[300:]
	lone := func(b []byte) *store.Memory { return store.NewMemory(map[string][]byte{"x.carbondata": b}) }
	mark := func(b []byte, off int64) []byte { b = slices.Clone(b); b[off] ^= 0xff; return b }
	for _, x := range []struct {
		name string
		file []byte
		rows []line
	}{
		{"cut in the second blocklet", whole[:len(whole)-100], first},
		{"the first blocklet's marker", mark(whole, at[0].Off+3), second},
		{"the first blocklet's length", mark(whole, at[0].Off+16), second},
		{"the second blocklet's marker", mark(whole, at[1].Off), first},
	} {
		tree := lone(x.file)
		if _, _, err := read(t, "x.carbondata", stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{}); !errors.Is(err,
			fault.Corrupt) {
			t.Errorf("%s: %v, want corrupt", x.name, err)
		}
		rows, found, err := recovered(t, tree, "x.carbondata")
		if err != nil || differ(rows, x.rows, false) != "" || !has(found, "carbon.rows.lost") ||
			!has(found, "carbon.recovered") {
			t.Errorf("%s: %v, %d rows, %v", x.name, err, len(rows), found)
		}
	}
}

// TestStreamingDamage: most flipped bits cause errors with a place or change nothing; the others cannot be detected.
func TestStreamingDamage(t *testing.T) {
	tree, file, right := streamed(t)
	data := tree.Bytes(file)
	r := rand.New(rand.NewPCG(7, 9))
	var noticed, same, unnoticed int
	for at := 0; at < len(data); at += max(1, len(data)/300) {
		bad := slices.Clone(data)
		bad[at] ^= 1 << r.IntN(8)
		rows, err := inMemory(t, bad, stoa.ScanSpec{})
		switch {
		case err != nil:
			placed(t, fmt.Sprintf("byte %d", at), err)
			noticed++
		case differ(rows, right, false) == "":
			same++
		default:
			unnoticed++
		}
	}
	t.Logf("%d are errors, %d change nothing, %d change the result without an error", noticed, same, unnoticed)
	if unnoticed*5 > 3*(noticed+same+unnoticed) {
		t.Error("got more than three of five flips with wrong rows and no error")
	}
	// A blocklet that does not decompress loses its rows.
	bad := slices.Clone(data)
	for n, err := range carbon.Format.Describe(t.Context(), format.Target{Tree: tree, Name: file},
		format.DescribeOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n.Name == "rows" {
			bad[n.At.Off] ^= 1 // the size when decompressed
			break
		}
	}
	var lost []region.Loss
	rows, err := inMemory(t, bad, stoa.ScanSpec{Damaged: stoa.SkipRows,
		Lost: func(l region.Loss) { lost = append(lost, l) }})
	if err != nil || len(lost) == 0 || differ(rows, right[300:], false) != "" {
		t.Errorf("with the first blocklet damaged: %v, %d losses, %s", err, len(lost), differ(rows, right[300:], false))
	}
}

// TestStreamingDelete: CarbonData's reader of streams applies no deletes, so rows of a streaming segment are not
// deleted or updated, and the table stays as it is.
func TestStreamingDelete(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(streaming)); err != nil {
		t.Fatal(err)
	}
	_, before, err := read(t, dir, stoa.OpenOptions{}, stoa.ScanSpec{})
	if err != nil || len(before) == 0 {
		t.Fatal(len(before), err)
	}
	c, err := stoa.OpenChanger(t.Context(), dir, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := c.Delete(t.Context(), stoa.DeleteOptions{Where: "true"}); !errors.Is(err, fault.Unsupported) {
		t.Errorf("deleted %v: %v, want a refusal", n, err)
	}
	if _, after, err := read(t, dir, stoa.OpenOptions{}, stoa.ScanSpec{}); err != nil || len(after) != len(before) {
		t.Error(len(after), len(before), err)
	}
}
